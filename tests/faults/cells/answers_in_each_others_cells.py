"""Two answers are written into each other's cells."""
# lost: softmax
# says: is not there


def change(notebook):
    cells = notebook["cells"]
    a, b = find(notebook, "softmax"), find(notebook, "worked-context")
    cells[a]["source"], cells[b]["source"] = cells[b]["source"], cells[a]["source"]
