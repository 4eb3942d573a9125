"""The notebook says it is of a format that does not exist yet."""


def change(notebook):
    notebook["nbformat"], notebook["nbformat_minor"] = 9, "beta"
