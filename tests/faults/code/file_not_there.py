"""Reads a file that only the student has."""
# exercise: softmax
# where: before

data = open("C:\\Users\\ada\\Desktop\\data.csv").read()
