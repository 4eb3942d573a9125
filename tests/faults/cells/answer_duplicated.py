"""An answer's cell is copied, and the copy is corrected."""
# repairs: answer cell softmax: there 2 times


def change(notebook):
    at = find(notebook, "softmax")
    second = copy.deepcopy(notebook["cells"][at])
    notebook["cells"][at]["source"] = "def softmax(scores):\n    return scores"
    notebook["cells"].insert(at + 1, second)
