"""The notebook was saved in format 3."""
# repairs: brought from notebook format 3 to 4


def change(notebook):
    old = nbformat.convert(nbformat.from_dict(notebook), 3)
    return json.dumps(old).encode()
