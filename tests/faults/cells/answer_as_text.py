"""An answer's cell is turned into Markdown by a slip of the keyboard."""
# repairs: answer cell softmax: made a code cell again


def change(notebook):
    notebook["cells"][find(notebook, "softmax")]["cell_type"] = "markdown"
