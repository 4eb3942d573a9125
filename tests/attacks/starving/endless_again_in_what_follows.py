"""Does not return, and is called by all that follows."""
# exercise: softmax
# where: answer
# limited: softmax had not returned after


def softmax(scores):
    while True:
        pass


def masked_softmax(scores, mask=None):
    return softmax(scores)


def worked_context():
    return {"context": softmax(None)}
