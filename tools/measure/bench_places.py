"""How often the line of a slip is found: the bank's wrong answers, as if unnamed.

    python -m tools.measure.bench_places --every 5 --show places.txt

Each wrong answer of the chapters is put into a cell of its own. Its check fails, and
what the check knows of it is not used.
"""

import argparse
import ast
import collections
import contextlib
import functools
import io
import linecache
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path

from autograder import expect
from autograder.exercise import locate
from autograder.expect import CheckFailure
from mistakes import Entry
from tests import chapters


def wrong_answers(chapter: str) -> Iterator[tuple[Entry, str]]:
    """Yield a chapter's wrong functions and classes, and what defines each."""
    for entry in chapters.bank(chapter):
        if entry.mistake and isinstance(entry.answer, (type, types.FunctionType)):
            text = source(entry.answer)
            if text:
                yield entry, text


def source(answer: object) -> str:
    """Return a definition without the bank's decorator; "" if it is not one's own."""
    try:
        function = locate._some_function(answer)
    except locate._Unfit:
        return ""
    lines = linecache.getlines(function.__code__.co_filename)
    node = locate._definition(_tree("".join(lines)), function, answer)
    return "".join(lines[node.lineno - 1 : node.end_lineno]) if node else ""


_tree = functools.cache(ast.parse)


def in_a_cell(entry: Entry, text: str, file: str) -> Entry:
    """Define an answer as a notebook does, in a cell that has nothing else."""
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names = dict(vars(sys.modules[entry.answer.__module__]))
    exec(compile(text, file, "exec"), names)
    return Entry(entry.exercise, entry.mistake, names[entry.answer.__name__])


def place_of(chapter: str, entry: Entry) -> tuple[locate.Place | None, float]:
    """Return where a check says to look, and the seconds that it took."""
    begin = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            chapters.run_checks(chapter, entry, hidden=False)
        except CheckFailure as failure:
            return failure.place, time.process_time() - begin
    return None, 0.0


def main() -> None:
    """Print the counts for each chapter, and write the places into a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--every", type=int, default=1, help="take one answer in so many"
    )
    parser.add_argument("--first", type=int, default=0, help="and begin so many later")
    parser.add_argument("--seconds", type=float, default=locate.SECONDS)
    parser.add_argument("--show", type=Path, help="file to write codes and places into")
    options = parser.parse_args()
    locate.SECONDS = options.seconds
    # processor time, which other programs do not disturb; a try may be held up by them
    locate.locate = functools.partial(locate.locate, clock=time.process_time)
    locate.SECONDS_PER_TRY, locate.SECONDS_PER_CALL = 5.0, 1.0
    expect.is_wanted = lambda failure: not failure.what.startswith(locate.UNTOLD)
    counts, shown, number = collections.Counter(), [], 0
    for chapter in chapters.CHAPTERS[:8]:
        answers = list(wrong_answers(chapter))[options.first :: options.every]
        for entry, code in answers:
            number += 1
            cell = in_a_cell(entry, code, f"<cell {number}>")
            place, seconds = place_of(chapter, cell)
            counts[chapter, "all"] += 1
            counts[chapter, "found"] += place is not None
            shown.append(
                f"# {number} {entry.label} ({seconds:.1f} s)\n{code}-> {place}\n"
            )
            if options.show:
                options.show.write_text("\n".join(shown), encoding="utf-8")
        print(
            chapter, counts[chapter, "found"], "of", counts[chapter, "all"], flush=True
        )
    found = sum(count for (_, kind), count in counts.items() if kind == "found")
    print(f"found: {found} of {number}, {found / number:.1%}")


if __name__ == "__main__":
    main()
