"""Types exit() and quit() at the end of an answer, as in a terminal."""
# exercise: softmax
# where: with

exit()
quit()
