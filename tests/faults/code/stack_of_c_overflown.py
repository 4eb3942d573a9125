"""Overflows the C stack by data that hold themselves many times over."""
# exercise: softmax
# where: answer
# status: any
# lost: softmax


def softmax(scores):
    value = ()
    for _ in range(200_000):
        value = (value,)
    return hash(value)
