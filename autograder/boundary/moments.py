"""What cells change for the code after them: kept, and brought back.

Hidden tests run behind the last cell, where no cell can show any more what they ask.
They are to find what the check's visible part found: the same functions, and the
settings of the whole process that notebooks change.
"""

import contextlib
import os

import torch


class Moment:
    """The names of a notebook, and the process's settings, at one time.

    Args:
        names: the notebook's, which go on changing.
    """

    def __init__(self, names: dict) -> None:
        self._names = dict(names)
        self._folder = _folder()
        self._dtype = torch.get_default_dtype()
        self._device = torch.get_default_device()
        self._inference = torch.is_inference_mode_enabled()
        self._gradients = torch.is_grad_enabled()

    def bring_back(self, names: dict) -> None:
        """Make the names and the settings what they were."""
        names.clear()
        names.update(self._names)
        if self._folder:
            with contextlib.suppress(OSError):  # it was removed since
                os.chdir(self._folder)
        torch.set_default_dtype(self._dtype)
        if torch.get_default_device() != self._device:
            torch.set_default_device(self._device)
        if torch.is_inference_mode_enabled() != self._inference:
            torch.inference_mode(self._inference).__enter__()
        torch.set_grad_enabled(self._gradients)


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return ""
