"""Writes what is asked to a file, which the last cell prints."""
# exercise: softmax
# where: notebook
# hidden: asked


def change(notebook):
    asked = """\
with open("asked.txt", "a") as file:
    print(value, file=file)
"""
    late = """\
import pathlib

file = pathlib.Path("asked.txt")
print(file.read_text() if file.exists() else "")
"""
    listen(notebook, asked=asked, late=late)
