"""What shows a check's words: a notebook's front end, or a terminal."""

import os
import sys
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


def notebook_folder() -> Path | None:
    """Return the folder of the notebook that a person has open, if this is its kernel.

    None where a program runs the notebook, such as nbgrader or nbconvert: it may hand
    on what JupyterLab has told its own kernel, but runs the notebook elsewhere.
    """
    shell = kernel()
    if shell is None:
        return None
    here = Path.cwd()
    if "google.colab" in sys.modules:
        return here
    named = os.environ.get("JPY_SESSION_NAME")  # by Jupyter's server
    if named is None:
        named = shell.user_ns.get("__vsc_ipynb_file__")  # by VS Code
    if not isinstance(named, str):
        return None
    folder = Path(named).parent
    if folder.is_absolute():
        return here if folder.resolve() == here.resolve() else None
    parts = folder.parts  # below the folder that the server shows
    return here if here.parts[len(here.parts) - len(parts) :] == parts else None
