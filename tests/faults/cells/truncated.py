"""Only the first half of the file has arrived."""
# status: ungraded
# reason: not valid JSON


def change(notebook):
    data = json.dumps(notebook).encode()
    return data[: len(data) // 2]
