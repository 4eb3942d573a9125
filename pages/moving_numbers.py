"""Numbers that a page's reader moves: a choice, and what follows from each."""

import html
import json

NARROW = "\N{NARROW NO-BREAK SPACE}"


def grouped(number: float) -> str:
    """Write a whole number with its thousands apart."""
    return f"{number:,.0f}".replace(",", NARROW)


class MovingNumbers:
    """A table whose first column is chosen from and whose others follow.

    The roles `move` and `moved` of the site's pages show it. All values are texts, as
    they are to be read; `start` is the one of the first column that is shown at first.
    """

    def __init__(self, name: str, start: str, **columns: list[str]):
        choices = next(iter(columns.values()))
        wrong = [key for key, values in columns.items() if len(values) != len(choices)]
        if wrong:
            raise ValueError(f"{wrong} and the values to choose from differ in number")
        if start not in choices:
            raise ValueError(f"{start!r} is none of {choices}")
        self.name, self.start, self.columns = name, choices.index(start), columns

    def __repr__(self) -> str:
        """Give the values that are shown at first."""
        return ", ".join(f"{key} {it[self.start]}" for key, it in self.columns.items())

    def _repr_html_(self) -> str:
        """Give the table in a form that the site's builder reads."""
        table = {"name": self.name, "start": self.start, "columns": self.columns}
        text = html.escape(json.dumps(table, ensure_ascii=False))
        return f'<span class="numbers-table" hidden data-table="{text}"></span>'
