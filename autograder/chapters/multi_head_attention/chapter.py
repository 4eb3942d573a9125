"""Where the checks of this chapter send their readers, and what all of them may say."""

import contextlib
from collections.abc import Iterator

from autograder.expect import Chapter, describe_error, refuse
from autograder.interface import StudentError

chapter = Chapter(5, "05_multi_head_attention")


@contextlib.contextmanager
def exception_named(
    name: str, why: str, kinds: tuple[str, ...] = (), saying: str = ""
) -> Iterator[None]:
    """Give an exception this name: the answer was right until here.

    With ``kinds``, only exceptions of these kinds are named, and of them only those
    whose text contains ``saying``.
    """
    try:
        yield
    except StudentError as error:
        if error.kind in ("NotImplementedError", "signature", "in-place", "forbidden"):
            raise
        if kinds and (error.kind not in kinds or saying not in error.text):
            raise
        if kinds and "ambiguous" in error.text:
            raise  # a tensor asked for one truth value; that is explained elsewhere
        refuse(name, why, on=error.call, got=f"{error.kind}: {describe_error(error)}")


ONLY_A_BATCH = (
    "only works with a batch",
    "With a batch it works, with fewer or more axes in front it does not. Count axes "
    "from the end: features −1, tokens −2, and let any number of axes stand before "
    "them.",
)


def pair_named() -> contextlib.AbstractContextManager[None]:
    """Name what happens to a pair that is used as a tensor."""
    why = (
        "A function that returns several things gives a tuple. Take it apart first, as "
        "in z, weights = scaled_dot_product_attention(...)."
    )
    kinds = ("AttributeError", "TypeError")
    return exception_named("a tuple where a tensor is wanted", why, kinds, "tuple")
