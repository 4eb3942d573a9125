"""An answer's cell has another name in its metadata."""
# repairs: cell softmax: found under another id


def change(notebook):
    cell = notebook["cells"][find(notebook, "softmax")]
    cell["metadata"]["nbgrader"]["grade_id"] = cell["id"] = "my-softmax"
