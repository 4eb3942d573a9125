"""Leaves an object that never finishes being deleted."""
# exercise: softmax
# where: answer


class Clinging:
    def __del__(self):
        while True:
            pass


thing = Clinging()
del thing
