"""A check cell has been moved above the answer."""
# repairs: check cell test-softmax: moved behind its answer


def change(notebook):
    check = notebook["cells"].pop(find(notebook, "test-softmax"))
    notebook["cells"].insert(find(notebook, "softmax"), check)
