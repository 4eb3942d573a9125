"""Read files as a grader does, each in a fork of this process; say what it took.

Called by test_trusted_memory.py: ``read_apart.py notebook|model|executed PLACE…``
"""

import json
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path


def reader(what: str) -> Callable[[Path], str]:
    """Import what reading takes; return what reads a place and says what came of it."""
    if what == "notebook":
        from autograder.grading.reading import Refused, parse

        def read(place: Path) -> str:
            try:
                return f"{len(parse(place.read_bytes())[0].cells)} cells"
            except Refused as refused:
                return str(refused)

    elif what == "executed":
        from autograder.grading import class_report, gradebook

        def read(place: Path) -> str:
            text = place.read_text("utf-8")
            found = gradebook._comments(text), class_report._answers(text)
            return f"{len(found[0])} answers"

    else:
        from autograder.chapters import results
        from autograder.chapters.translator.own import DEMAND
        from autograder.expect import CheckFailure

        def read(place: Path) -> str:
            results.PLACE = place.parent

            class Student:
                name = "own_translator"

                def __call__(self) -> str:
                    return place.name

            try:
                return results.submitted(Student(), DEMAND).digest
            except CheckFailure as failure:
                return failure.what

    return read


def measure(read: Callable[[Path], str], place: Path) -> dict:
    """Read a place; return bytes above the start, seconds, and what came of it."""
    before, failed = _resident(), False
    try:
        said = read(place)
    except BaseException as error:
        said, failed = f"{type(error).__name__}: {error}"[:500], True
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "place": str(place),
        "bytes": used.ru_maxrss * 1024 - before,
        "seconds": round(used.ru_utime + used.ru_stime, 1),
        "said": said[:200],
        "failed": failed,
    }


def _resident() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * resource.getpagesize()


def main() -> None:
    """Fork for each place, one after the other."""
    read = reader(sys.argv[1])
    for place in map(Path, sys.argv[2:]):
        sys.stdout.flush()
        process = os.fork()
        if process == 0:
            print(json.dumps(measure(read, place)), flush=True)
            os._exit(0)
        os.waitpid(process, 0)


if __name__ == "__main__":
    main()
