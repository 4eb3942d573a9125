"""The cell of an exercise as students get it: what is to be written, not the answer.

    ```{handed-out} 04_attention softmax
    ```

is a link to the exercise, and below it, to be unfolded, its cell of the handed-out
notebook, from exercises/.
"""

import json
import re
from pathlib import Path

from docutils import nodes
from page_elements import element
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
HEADING = re.compile(r"^## (Exercise (\d+)\.(\d+) · .+)$", re.MULTILINE)


class HandedOut(SphinxDirective):
    """The cell of one exercise, behind its title."""

    required_arguments = 2

    def run(self) -> list[nodes.Node]:
        """Make a box of the cell, and a link to the exercise."""
        chapter, name = self.arguments
        notebook = ROOT / "exercises" / chapter / f"{chapter}.ipynb"
        self.env.note_dependency(str(notebook))
        try:
            title, anchor, code = cell(json.loads(notebook.read_text("utf-8")), name)
        except LookupError as missing:
            raise self.error(f"{notebook.name}: {missing}") from None
        up = "../" * self.env.docname.count("/")
        address = f"{up}exercises/{chapter}/{chapter}.html#{anchor}"
        block = nodes.literal_block(code, code, language="python")
        return [
            element(
                "p",
                element("a", nodes.Text(title), href=address),
                class_="handed-out-link",
            ),
            element(
                "details",
                element("summary", nodes.Text("The code that you write")),
                block,
                class_="handed-out",
            ),
        ]


def cell(notebook: dict, name: str) -> tuple[str, str, str]:
    """Find an exercise by the id of its cell: its title, its anchor, its code.

    Raises:
        LookupError: no cell has this id, or no exercise stands before it.
    """
    heading = None
    for each in notebook["cells"]:
        text = "".join(each["source"])
        if each["cell_type"] == "markdown":
            heading = HEADING.search(text) or heading
        elif each["id"] == name and heading:
            title, chapter, number = heading.groups()
            return title, f"exercise-{chapter}-{number}", text
    raise LookupError(f"no exercise {name!r}")


def setup(app) -> dict:
    """Tell Sphinx of the directive."""
    app.setup_extension("page_elements")
    app.add_directive("handed-out", HandedOut)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
