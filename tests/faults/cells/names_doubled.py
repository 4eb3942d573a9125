"""Two answers have the same name in their metadata."""
# repairs: any


def change(notebook):
    cell = notebook["cells"][find(notebook, "causal-mask")]
    cell["metadata"]["nbgrader"]["grade_id"] = "softmax"
