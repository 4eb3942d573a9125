"""What shows a check's words: a notebook's front end, or a terminal."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def kernel() -> Any:
    """Return IPython's shell in a notebook's kernel; None everywhere else.

    There is none in a terminal, in tests, and where the grader runs checks.
    """
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module else None
    return shell if getattr(shell, "kernel", None) is not None else None


def display(html: str, text: str) -> None:
    """Show HTML where a front end can, and else the text."""
    shell = kernel()
    if shell is None:
        print(text)
    else:
        shell.display_pub.publish({"text/html": html, "text/plain": text})


def replaceable() -> Callable[[str, str], None] | None:
    """Return what shows HTML or text, and later other HTML or text in its place.

    None where that cannot be relied on: a notebook that a person has open does it; of
    consoles, which have a kernel, too, some do not.
    """
    shell = kernel()
    if shell is None or not (_is_colab() or _name_of_notebook(shell)):
        return None
    place = {"display_id": os.urandom(16).hex()}
    is_shown = False

    def show(html: str, text: str) -> None:
        nonlocal is_shown
        data = {"text/html": html, "text/plain": text}
        shell.display_pub.publish(data, transient=place, update=is_shown)
        is_shown = True

    return show


def notebook_folder() -> Path | None:
    """Return the folder of the notebook that a person has open, if this is its kernel.

    None where a program runs the notebook, such as nbgrader or nbconvert: it may hand
    on what JupyterLab has told its own kernel, but runs the notebook elsewhere.
    """
    shell = kernel()
    if shell is None:
        return None
    here = Path.cwd()
    if _is_colab():
        return here
    named = _name_of_notebook(shell)
    if named is None:
        return None
    folder = Path(named).parent
    if folder.is_absolute():
        return here if folder.resolve() == here.resolve() else None
    parts = folder.parts  # below the folder that the server shows
    return here if here.parts[len(here.parts) - len(parts) :] == parts else None


def _is_colab() -> bool:
    return "google.colab" in sys.modules


def _name_of_notebook(shell: Any) -> str | None:
    """Return the path that Jupyter's server or VS Code gives; None if neither does."""
    named = os.environ.get("JPY_SESSION_NAME")
    if named is None:
        named = shell.user_ns.get("__vsc_ipynb_file__")
    return named if isinstance(named, str) else None
