"""The check cell is deleted."""
# repairs: check cell test-softmax: missing, put back


def change(notebook):
    del notebook["cells"][find(notebook, "test-softmax")]
