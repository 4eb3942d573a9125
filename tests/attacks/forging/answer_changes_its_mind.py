"""Returns an object that becomes another one while it is being written out."""
# exercise: worked-context
# where: answer

import torch


class Late(dict):
    asked = 0

    def items(self):
        Late.asked += 1
        return iter([("context", torch.zeros(3, 4)), (["unhashable"], Late.asked)])

    keys = values = __iter__ = items


def worked_context():
    return Late()
