"""Returns a dictionary whose items never end."""
# exercise: worked-context
# where: answer

import itertools


class Endless(dict):
    def items(self):
        return ((number, number) for number in itertools.count())


def worked_context():
    return Endless()
