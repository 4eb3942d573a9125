"""An output is a list of millions of empty lists."""
# status: ungraded
# reason: too many values


def change(notebook):
    data = json.dumps(notebook).encode()
    return data.replace(
        b'"cells": [', b'"x": [' + b"[]," * 5_000_000 + b'0], "cells": ['
    )
