"""A check cell is edited, so that a wrong answer would pass."""
# repairs: check cell test-softmax: its text was changed, restored
# lost: softmax


def change(notebook):
    notebook["cells"][find(notebook, "test-softmax")]["source"] = "print('all good')"
    answer = notebook["cells"][find(notebook, "softmax")]
    answer["source"] = "def softmax(scores):\n    return scores"
