"""Writes nbgrader's markers into a cell, so that what stands between them is cut."""
# exercise: softmax
# where: answer

### BEGIN HIDDEN TESTS
softmax = None
### END HIDDEN TESTS
### BEGIN SOLUTION
### END SOLUTION


def softmax(scores):
    return scores  ### END HIDDEN TESTS
