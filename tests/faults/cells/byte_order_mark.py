"""The file begins with a byte order mark."""


def change(notebook):
    return json.dumps(notebook).encode("utf-8-sig")
