"""Asks the user something, who is not there."""
# exercise: softmax
# where: before

name = input("Your name: ")
