"""What hidden tests draw: from a secret of the class, for each submission anew.

A hidden test is written as ``check.softmax(softmax, seed=7301)``. That number is only a
label of the draw. When a class is graded, it is replaced by a number that follows from

- ``seed=``: the secret, the chapter, the check cell, the label, and the SHA-256 of the
  notebook that was handed in. The same file always meets the same inputs, whenever and
  wherever it is graded; another file meets others.
- ``class_seed=``: the secret, the chapter and the label. What measures a trained model
  is the same for the whole class, and for all cells that name the same label.

The numbers are from 1 to 2³¹ - 1. Every check must be fair for each of them, which
``tests/checks/test_seeds.py`` tries.

The secret is a file that only its owner reads, in the folder of the instructor's
course. A grading process gets keys that were derived from it, for one submission.
"""

import ast
import contextlib
import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from autograder.files import read_regular

FILE = "hidden_seeds.key"
SECRET_BYTES = 32
LARGEST = 2**31 - 1
OF_SUBMISSION, OF_CLASS = "seed", "class_seed"  # keywords in the call of a check
DRAW = "__hidden_seed__"  # the name of the function that a hidden test then calls


class SecretError(Exception):
    """The file with the secret cannot be used; says what to do."""


# --- the secret -----------------------------------------------------------------------


def secret_of(folder: Path, *, make: bool = True) -> bytes:
    """Read the secret of the course in a folder.

    Args:
        folder: the instructor's course.
        make: whether to make a secret if there is none; without, it is empty.

    Raises:
        SecretError: it cannot be read or written, or is too short.
    """
    path = folder / FILE
    try:
        if not os.path.lexists(path):
            if not make:
                return b""
            _make(path)
        if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            path.chmod(0o600)
        text = read_regular(path, 10_000, follow=False).strip()
    except OSError as error:
        raise SecretError(
            f"{path}: cannot be used ({error.strerror or error}); hidden tests need "
            "it. Make it a file that you may read and write"
        ) from None
    if len(text) < SECRET_BYTES:
        raise SecretError(
            f"{path}: holds {len(text)} bytes, {SECRET_BYTES} are the fewest. Put it "
            "back from a backup; or delete it: a new one is made, all is graded again"
        )
    return text


def _make(path: Path) -> None:
    """Write a new secret; if another process was faster, its secret stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        with open(os.open(beside, flags, mode=0o600), "w") as file:
            file.write(secrets.token_hex(SECRET_BYTES) + "\n")
        with contextlib.suppress(FileExistsError):
            os.link(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def digest(secret: bytes) -> str:
    """Name a secret without giving it away: for journals and logs."""
    return _derived(secret, "digest").hex()[:16]


# --- keys and seeds -------------------------------------------------------------------


@dataclass(frozen=True)
class Keys:
    """What the seeds of a submission are drawn from; only its own follow from them.

    Args:
        submission: the key for ``seed=``.
        chapter: the key for ``class_seed=``.
    """

    submission: bytes = b""
    chapter: bytes = b""

    @classmethod
    def of(cls, secret: bytes, chapter: str, notebook: bytes) -> "Keys":
        """Derive the keys of a notebook that was handed in."""
        sha256 = hashlib.sha256(notebook).hexdigest()
        return cls(
            _derived(secret, "submission", chapter, sha256),
            _derived(secret, "chapter", chapter),
        )

    def draw(self, keyword: str, label: int, grade_id: str) -> int:
        """Return the seed that takes the place of a label in a check cell."""
        if keyword == OF_CLASS:
            found = _derived(self.chapter, str(label))
        else:
            found = _derived(self.submission, grade_id, str(label))
        return 1 + int.from_bytes(found) % LARGEST


def _derived(key: bytes, *facts: str) -> bytes:
    return hmac.digest(key, "\n".join(facts).encode(), "sha256")


# --- check cells ----------------------------------------------------------------------


def with_drawn_seeds(text: str, grade_id: str) -> ast.Module:
    """Parse a hidden test so that it calls ``DRAW`` where a label was written.

    >>> ast.unparse(with_drawn_seeds("check.gelu(gelu, seed=7604)", "test-gelu"))
    "check.gelu(gelu, seed=__hidden_seed__('seed', 7604, 'test-gelu'))"
    """
    tree = _Labels(grade_id).visit(ast.parse(text))
    return ast.fix_missing_locations(tree)


class _Labels(ast.NodeTransformer):
    def __init__(self, grade_id: str) -> None:
        self.grade_id = grade_id

    def visit_keyword(self, node: ast.keyword) -> ast.keyword:
        is_label = type(getattr(node.value, "value", None)) is int
        if node.arg in (OF_SUBMISSION, OF_CLASS) and is_label:
            facts = [ast.Constant(node.arg), node.value, ast.Constant(self.grade_id)]
            node.value = ast.Call(ast.Name(DRAW, ast.Load()), facts, [])
            return node
        self.generic_visit(node)
        return node


def drawing(keys: Keys) -> dict[str, Callable]:
    """Return what the globals of a hidden test must have besides its own names."""
    return {DRAW: keys.draw}
