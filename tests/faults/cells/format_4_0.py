"""The notebook was saved in format 4.0, without ids."""


def change(notebook):
    notebook["nbformat"], notebook["nbformat_minor"] = 4, 0
    for cell in notebook["cells"]:
        del cell["id"]
