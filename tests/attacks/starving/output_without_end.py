"""Prints without end."""
# exercise: softmax
# where: answer
# status: any

while True:
    print("softmax" * 1000)
