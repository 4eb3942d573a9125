"""Prints a single line of a hundred megabytes."""
# exercise: softmax
# where: answer
# limited: output cut

print("x" * 100_000_000)
