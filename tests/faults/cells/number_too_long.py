"""A number in the file has ten thousand digits."""
# status: ungraded
# reason: a number too long


def change(notebook):
    text = json.dumps(notebook | {"number": 0})
    return text.replace('"number": 0', '"number": ' + "9" * 10_000).encode()
