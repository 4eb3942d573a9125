"""Makes the answer an object with __call__ instead of a function."""
# exercise: causal-mask
# where: answer


class Mask:
    def __call__(self, length):
        return torch.arange(length) <= torch.arange(length)[:, None]


causal_mask = Mask()
