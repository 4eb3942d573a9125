"""What a student is told of a hidden test that failed: nothing of what it asked.

A name that the checks give a mistake is the course's own, and so is its reason, but
for the numbers that it was computed with. All else may carry inputs: values, shapes,
the choice of an exception, its text, the name of a function. It stays with the
instructor.
"""

import re
import textwrap
from collections.abc import Mapping
from typing import Any

FOR_STUDENTS = "for_students"  # metadata of a failed check's cell: what feedback says
WIDTH = 88
NUMBER = re.compile(r"\d+\.\d+|\d{3,}")  # sizes and axes are shorter
RAISED = "raised an error, or did not return, on an input that the hidden tests use"
WRONG = "fails on inputs that the visible check does not try"
TRY = (
    "The visible check passes. Try inputs of other sizes, a single row, large, equal "
    "and negative values, and whatever else the exercise says may come."
)


def told(failure: Mapping) -> dict[str, Any]:
    """Return what a student may read of a failure: its facts, and all of it as text.

    Args:
        failure: the facts of a hidden test's failure, as a ``Verdict`` has them.
    """
    mistake = None if failure.get("raised") else failure.get("mistake")
    what = mistake or (RAISED if failure.get("raised") else WRONG)
    why = NUMBER.sub("…", failure.get("why") or "") if mistake else TRY
    read = failure.get("read") or ""
    lines = [f"{failure.get('check', '')}: {what}", *textwrap.wrap(why, WIDTH - 2)]
    lines += [f"Read {read}"] if read else []
    facts = {"what": what, "mistake": mistake, "why": why, "read": read}
    return facts | {"text": "\n  ".join(lines)}
