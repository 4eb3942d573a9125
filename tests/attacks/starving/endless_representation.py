"""Leaves a value whose text never ends."""
# exercise: softmax
# where: answer
# status: any


class Endless:
    def __repr__(self):
        while True:
            pass


Endless()
