"""A check cell is copied."""
# repairs: check cell test-softmax: 1 copies dropped


def change(notebook):
    at = find(notebook, "test-softmax")
    notebook["cells"].insert(at, copy.deepcopy(notebook["cells"][at]))
