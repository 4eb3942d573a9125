"""A picture is pasted into a text."""


def change(notebook):
    picture = {"picture.png": {"image/png": "iVBORw0KGgo="}}
    text = {"cell_type": "markdown", "metadata": {}, "source": "![x](attachment:x)"}
    notebook["cells"].insert(2, text | {"attachments": picture})
