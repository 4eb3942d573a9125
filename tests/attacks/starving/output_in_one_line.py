"""Prints a single line of a hundred megabytes."""
# exercise: softmax
# where: answer
# status: any

print("x" * 100_000_000)
