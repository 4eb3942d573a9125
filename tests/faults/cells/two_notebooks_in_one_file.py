"""The file holds the notebook twice, one after the other."""
# status: ungraded
# reason: not valid JSON


def change(notebook):
    return json.dumps(notebook).encode() * 2
