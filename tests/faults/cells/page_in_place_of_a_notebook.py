"""The file is a web page saved under the notebook's name."""
# status: ungraded
# reason: not valid JSON


def change(notebook):
    return b"<!DOCTYPE html><html><title>Sign in</title></html>"
