"""Takes the matrix from the workbench, and reads the worst pair off it."""
# chapter: 10_vision
# exercise: confusion
# where: answer

from workbench.use import image_metrics


def confusion(predictions, labels, classes):
    matrix = image_metrics.confusion(predictions, labels, classes)
    both = (matrix + matrix.T).triu(1)
    place = int(both.argmax())
    return matrix, (place // classes, place % classes)
