"""Two answers' cells have changed places, with their metadata."""
# repairs: check cell test-softmax: moved behind its answer


def change(notebook):
    cells = notebook["cells"]
    a, b = find(notebook, "softmax"), find(notebook, "worked-context")
    cells[a], cells[b] = cells[b], cells[a]
