"""Returns a list that is its own element."""
# exercise: softmax
# where: answer


def softmax(scores):
    value = []
    value.append(value)
    value *= 8
    return value
