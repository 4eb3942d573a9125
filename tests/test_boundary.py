"""The boundary: data cross and nothing else; checks work as in an open notebook."""

import contextlib
import io

import pytest

from autograder.expect import CheckFailure
from tests import chapters, remote


@pytest.mark.parametrize("chapter", chapters.CHAPTERS)
def test_every_check_passes_on_the_solved_notebook(chapter, tmp_path) -> None:
    with remote.kernel(tmp_path) as kernel:
        names = remote.run_notebook(chapter, kernel)
        with contextlib.redirect_stdout(io.StringIO()):
            for exercise in chapters.source(chapter).exercises:
                for text in chapters.check_cells(chapter, exercise.name, hidden=True):
                    exec(text, names)


@pytest.mark.parametrize("chapter", chapters.CHAPTERS)
def test_a_mistake_has_the_same_message(chapter, tmp_path) -> None:
    bank = chapters.bank(chapter)
    number, entry = next(each for each in enumerate(bank) if each[1].mistake)
    with pytest.raises(CheckFailure) as here:
        chapters.run_checks(chapter, entry, hidden=False)
    with remote.kernel(tmp_path) as kernel:
        names = remote.run_notebook(chapter, kernel)
        kernel.run_cell(
            "from tests import chapters\n"
            f"{entry.answer.__name__} = chapters.bank({chapter!r})[{number}].answer"
        )
        with pytest.raises(CheckFailure) as there:
            for text in chapters.check_cells(chapter, entry.exercise, hidden=False):
                exec(text, names)
    assert str(there.value) == str(here.value)
