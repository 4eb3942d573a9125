"""What it takes to grade a chapter on any machine: its notebooks and earlier parts."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass

import nbformat

from autograder.grading.imports import modules_of

RUBRIC = "rubric"  # metadata of a written answer: what only its grader reads
# what a library imports when it is first used, and that takes a second
LATE = {"torch.optim": "torch._dynamo"}


@dataclass(frozen=True)
class Paper:
    """A chapter to grade, as data; it holds the answers and the hidden tests.

    Args:
        chapter: its name.
        released: the notebook that students got, in nbformat's JSON.
        source: the instructor's notebook, in nbformat's JSON.
        parts: the reference modules of the chapters before, by file name.
        points: the most that each graded cell gives, by grade_id and in order.
        checksums: nbgrader's, of the graded cells as the instructor has them.
    """

    chapter: str
    released: str
    source: str
    parts: dict[str, str]
    points: dict[str, float]
    checksums: dict[str, str]

    @classmethod
    def of(cls, chapter: str) -> Paper:
        """Build the paper of a chapter from its text notebook.

        Raises:
            Missing: there is no such chapter, or no folder solutions/.
            SourceError: the text notebook is bad.
        """
        # the generator is slow to import, and no grading process needs it
        from autograder import generator
        from autograder.generator import notebooks

        source = generator.source_notebook(chapter)
        return cls.of_notebooks(
            chapter,
            notebooks.write(notebooks.release_notebook(source)),
            notebooks.write(source),
            generator.parts_before(chapter),
        )

    @classmethod
    def of_notebooks(
        cls, chapter: str, released: str, source: str, parts: dict[str, str]
    ) -> Paper:
        """Build the paper of a chapter from its two notebooks."""
        # slow to import as well, and no grading process needs it
        from nbgrader.utils import compute_checksum, is_grade

        cells = nbformat.reads(source, as_version=4).cells
        graded = {c.metadata.nbgrader.grade_id: c for c in cells if is_grade(c)}
        points = {name: float(c.metadata.nbgrader.points) for name, c in graded.items()}
        checksums = {name: compute_checksum(cell) for name, cell in graded.items()}
        return cls(chapter, released, source, parts, points, checksums)

    def digest(self) -> str:
        """Return a checksum of all of it: equal papers give equal grades."""
        text = json.dumps(asdict(self), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def imports(self) -> set[str]:
        """Name the modules that a notebook of this chapter is going to import."""
        cells = nbformat.reads(self.released, as_version=4).cells
        code = [cell.source for cell in cells if cell.cell_type == "code"]
        texts = [*code, *self.parts.values()]
        late = {module for name, module in LATE.items() if name in "\n".join(texts)}
        return modules_of(texts) | late


def exercise_of(grade_id: str) -> str:
    """Name the exercise of a cell: test-softmax and test-softmax-2 belong to softmax.

    >>> exercise_of("test-causal-mask-2"), exercise_of("causal-mask")
    ('causal-mask', 'causal-mask')
    """
    if not grade_id.startswith("test-"):
        return grade_id
    return re.sub(r"-\d+$", "", grade_id.removeprefix("test-"))
