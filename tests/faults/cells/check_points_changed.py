"""The metadata of a check cell give it other points."""
# repairs: cell test-softmax: its nbgrader metadata were changed, restored


def change(notebook):
    check = notebook["cells"][find(notebook, "test-softmax")]
    check["metadata"]["nbgrader"]["points"] = 50
