"""The file is JSON that is nested far too deeply."""
# status: ungraded
# reason: nested too deeply


def change(notebook):
    return b'{"cells": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
