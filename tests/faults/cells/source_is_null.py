"""A cell's source is null."""
# lost: softmax


def change(notebook):
    notebook["cells"][find(notebook, "softmax")]["source"] = None
