"""The bank of mistakes: wrong answers with what to say, right ones in other styles.

Each entry replaces the object of its name in the solved notebook; then the exercise's
check cell is run. A wrong entry must be rejected under its own name, a right one pass.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Entry:
    """One answer to one exercise.

    Args:
        exercise: its name in the notebook.
        mistake: the name under which it must be refused; None for a right variant.
        answer: what is handed in; of what a specification gives, the function that
            makes it of the right answer.
        replaces: the name in the notebook, if the answer itself has not got it.
    """

    exercise: str
    mistake: str | None
    answer: Any
    replaces: str = ""

    @property
    def name(self) -> str:
        """The name in the notebook that the answer stands for."""
        return self.replaces or self.answer.__name__

    def hand_in(self, names: dict[str, Any]) -> None:
        """Put the answer among a solved notebook's names."""
        if self.name not in names:
            raise KeyError(f"{self.label}: the notebook has no {self.name}")
        made = self.answer(names[self.name]) if self.replaces else self.answer
        names[self.name] = made

    @property
    def label(self) -> str:
        """What a test report calls it."""
        return f"{self.exercise}: {self.mistake or self.answer.__doc__ or 'variant'}"


def wrong(exercise: str, mistake: str) -> Callable:
    """Mark a wrong answer and the name of the mistake that its message must carry."""
    return _mark(exercise, mistake)


def right(exercise: str) -> Callable:
    """Mark a correct answer in another style than the reference."""
    return _mark(exercise, None)


def _mark(exercise: str, mistake: str | None) -> Callable:
    def decorate(answer: object) -> object:
        entry = Entry(exercise, mistake, answer)
        _entries.setdefault(answer.__module__, []).append(entry)
        return answer

    return decorate


_entries: dict[str, list[Entry]] = {}


def entries(module: str) -> list[Entry]:
    """Return the entries of one module of the bank, and of its parts `<module>_…`."""
    return [
        entry
        for name, found in _entries.items()
        if name == module or name.startswith(module + "_")
        for entry in found
    ]
