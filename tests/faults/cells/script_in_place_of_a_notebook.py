"""The file is a Python script under the notebook's name."""
# status: ungraded
# reason: not valid JSON


def change(notebook):
    return "\n\n".join(cell["source"] for cell in notebook["cells"]).encode()
