"""The file holds NaN and Infinity, which JSON does not have."""


def change(notebook):
    notebook["metadata"]["loss"] = [float("nan"), float("inf")]
