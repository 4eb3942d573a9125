"""What the workbench says about an input that it cannot use."""


class WorkbenchError(Exception):
    """A bad input: the message names the file or option, and what to do about it."""
