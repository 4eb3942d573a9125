"""Raises an exception that is derived from BaseException."""
# exercise: softmax
# where: answer
# lost: softmax


def softmax(scores):
    raise GeneratorExit("stop")
