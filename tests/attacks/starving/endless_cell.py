"""Never comes to the end of a cell."""
# exercise: softmax
# where: answer
# limited: cell softmax: stopped after

while True:
    pass
