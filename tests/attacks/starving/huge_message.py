"""Raises an error whose text is fifty megabytes long."""
# exercise: softmax
# where: answer


def softmax(scores):
    raise ValueError("x" * 50_000_000)
