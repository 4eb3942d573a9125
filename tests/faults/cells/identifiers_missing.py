"""An old editor has dropped the cells' ids."""


def change(notebook):
    for cell in notebook["cells"]:
        cell.pop("id", None)
