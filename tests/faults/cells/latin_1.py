"""The file was saved in Latin-1, with umlauts in it."""
# repairs: read as Latin-1


def change(notebook):
    notebook["cells"].insert(2, code_cell("# Müller, Größe"))
    return json.dumps(notebook, ensure_ascii=False).encode("latin-1")
