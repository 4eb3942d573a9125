"""An editor has dropped all metadata and numbered the cells anew."""
# repairs: found without | found without | found without | found without | found without | found without


def change(notebook):
    for number, cell in enumerate(notebook["cells"]):
        cell["metadata"], cell["id"] = {}, f"{number:08x}"
