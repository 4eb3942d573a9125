"""An answer is written into a copy of the cell; the untouched stub stands below it."""
# repairs: cell softmax: an untouched copy of the stub dropped


def change(notebook):
    at = find(notebook, "softmax")
    stub = copy.deepcopy(notebook["cells"][at])
    stub["source"] = released("softmax")
    notebook["cells"].insert(at + 1, stub)
