"""Outputs of twenty megabytes are saved in the notebook."""


def change(notebook):
    text = {"output_type": "stream", "name": "stdout", "text": "x" * 20_000_000}
    notebook["cells"][find(notebook, "softmax")]["outputs"] = [text]
