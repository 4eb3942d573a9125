"""An answer's cell is deleted."""
# repairs: answer cell softmax: missing, nothing put in its place
# lost: softmax


def change(notebook):
    del notebook["cells"][find(notebook, "softmax")]
