"""What a function holds in memory: the tensors that are made while it runs.

Numbers are counted, which are the same on every machine; bytes and seconds are not. It
runs beside the student's code, so it is a reminder and no wall, as
``autograder.forbidden`` is.
"""

import math
import weakref
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Held(TorchDispatchMode):
    """Counts what is made in its block; a view of something else is nothing new.

    Attributes:
        largest: the shape of the largest tensor.
        most: how many numbers all tensors had together, at most at one time.
    """

    def __init__(self) -> None:
        super().__init__()
        self.largest: tuple[int, ...] = (0,)
        self.most = self._now = 0
        self._alive: set[int] = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        there = {storage._cdata for _, storage in _stored((args, kwargs))}
        for tensor, storage in _stored(result):
            if storage._cdata not in there | self._alive:
                self._note(tensor, storage)
        return result

    def _note(self, tensor: torch.Tensor, storage: torch.UntypedStorage) -> None:
        if tensor.numel() > math.prod(self.largest):
            self.largest = tuple(tensor.shape)
        numbers = storage.nbytes() // tensor.element_size()
        self._alive.add(storage._cdata)
        self._now += numbers
        self.most = max(self.most, self._now)
        weakref.finalize(storage, self._forget, storage._cdata, numbers).atexit = False

    def _forget(self, key: int, numbers: int) -> None:
        self._alive.discard(key)
        self._now -= numbers


def _stored(value: Any) -> Iterator[tuple[torch.Tensor, torch.UntypedStorage]]:
    """Give the tensors in nested data, each with the memory that it lies in."""
    for each in tree_leaves(value):
        if isinstance(each, torch.Tensor):
            yield each, each.untyped_storage()
