"""Returns a text of two hundred megabytes."""
# exercise: softmax
# where: answer


def softmax(scores):
    return "x" * 200_000_000
