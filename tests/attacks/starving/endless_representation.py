"""Leaves a value whose text never ends."""
# exercise: softmax
# where: answer


class Endless:
    def __repr__(self):
        while True:
            pass


Endless()
