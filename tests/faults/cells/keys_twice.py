"""The file has the same key twice."""


def change(notebook):
    return b'{"cells": [], ' + json.dumps(notebook).encode()[1:]
