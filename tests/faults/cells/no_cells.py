"""There is no cell at all."""
# repairs: any
# lost: worked-context | softmax | causal-mask


def change(notebook):
    notebook["cells"] = []
