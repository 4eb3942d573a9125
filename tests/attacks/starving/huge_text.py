"""Returns a text of two hundred megabytes."""
# exercise: softmax
# where: answer
# status: any


def softmax(scores):
    return "x" * 200_000_000
