"""Start Jupyter Book without what costs seconds and gives nothing here.

Run it as `python -P tools/quick_start.py build .`, in place of `jupyter-book build .`
"""

import gc
import sys


def prepare() -> None:
    """Spare this process what is slow; call it before notebooks can be read."""
    # a grammar of addresses in all scripts: nothing here is checked by it
    sys.modules["rfc3987_syntax"] = None
    # pages are a million objects that stay: look less often for those that may go
    gc.set_threshold(50_000)


if __name__ == "__main__":
    prepare()
    from jupyter_book.cli.main import main

    main()
