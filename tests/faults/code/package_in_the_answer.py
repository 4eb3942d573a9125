"""Imports a package that is not installed here, at the top of the answer's cell."""
# exercise: softmax
# where: answer
# lost: softmax
# says: the cell of your answer stopped at line 3: ModuleNotFoundError: No module named

import math

import transformers_made_easy


def softmax(scores):
    return transformers_made_easy.softmax(scores)
