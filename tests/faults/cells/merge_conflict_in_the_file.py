"""The file has the marks of a merge conflict in it."""
# status: ungraded
# reason: not valid JSON


def change(notebook):
    text = json.dumps(notebook, indent=1)
    middle = text.index("\n", len(text) // 2)
    marks = "\n<<<<<<< HEAD\n=======\n>>>>>>> main"
    return (text[:middle] + marks + text[middle:]).encode()
