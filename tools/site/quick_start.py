"""Start Jupyter Book without what costs seconds and gives nothing here.

Run it as `python -P tools/site/quick_start.py build .`, in place of `jupyter-book build
.`
"""

import contextlib
import functools
import gc
import importlib
import sys

import yaml


def prepare() -> None:
    """Spare this process what is slow; call it before notebooks can be read."""
    # a grammar of addresses in all scripts: nothing here is checked by it
    sys.modules["rfc3987_syntax"] = None
    # pages are a million objects that stay: look less often for those that may go
    gc.set_threshold(50_000)
    # what is installed stays so, and is looked up for every page and every style
    for name in ("importlib.metadata", "importlib_metadata"):
        with contextlib.suppress(ImportError):
            module = importlib.import_module(name)
            module.entry_points = functools.cache(module.entry_points)
    # the same loader, written in C
    yaml.SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


if __name__ == "__main__":
    prepare()
    from jupyter_book.cli.main import main

    main()
