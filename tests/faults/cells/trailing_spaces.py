"""An editor has changed the spaces at the ends of all lines."""
# repairs: any


def change(notebook):
    for cell in notebook["cells"]:
        cell["source"] = cell["source"].replace("\n", "  \n") + "\n\n\n"
