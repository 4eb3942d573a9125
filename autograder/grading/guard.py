"""Keep what goes wrong over one submission from ending the grading of a class.

Each step that is done for one submission here -- it is read and planned, recorded, and
told of in the tables and the report -- is done through ``guarded``. What it raises
becomes a ``Fault``: this submission is ungraded because of it, and the command goes on
with the others. A disk that is full and a gradebook that is gone concern everybody, so
these still end the command.
"""

import errno
import traceback
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from autograder.grading.clean import plain
from autograder.grading.reading import Refused

# what a disk says of a name that it cannot hold; others: it was no disk that said it
OF_ONE = (
    *(errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL, errno.ELOOP, 0, None),
    *(errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENOTEMPTY),
)

Given = ParamSpec("Given")
Found = TypeVar("Found")


class ConcernsAll(Exception):
    """An error that concerns the whole class, whoever's submission met it first."""


class Fault(Refused):
    """The grader itself failed over a submission; the text is the reason.

    Attributes:
        log: where it failed, for the grader's maintainers.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(plain(f"{type(error).__name__} in the grader: {error}", 500))
        self.log = plain("".join(traceback.format_exception(error)), 20_000)


def guarded(
    step: Callable[Given, Found], *arguments: Given.args, **more: Given.kwargs
) -> Found | Fault:
    """Do a step for one submission; return what it returns, or a fault if it fails.

    Raises:
        ConcernsAll: such as a database that is gone.
        OSError: the disk is full, or gone. What comes of the submission's own files is
            a ``Refused`` before it gets here.
    """
    try:
        return step(*arguments, **more)
    except ConcernsAll:
        raise
    except Fault as fault:
        return fault
    except OSError as error:
        if error.errno not in OF_ONE:
            raise
        return Fault(error)
    except Exception as error:  # whatever it is, it must cost nobody else anything
        return Fault(error)
