"""The file holds nothing but zeros, after a full disk."""
# status: ungraded
# reason: not valid JSON


def change(notebook):
    return bytes(5000)
