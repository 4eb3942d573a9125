"""Raises in a function that is named by what was asked."""
# exercise: softmax
# where: notebook
# hidden: asked


def change(notebook):
    asked = """\
exec(f"def asked_{int(value)}(): raise ValueError()", globals())
globals()[f"asked_{int(value)}"]()
"""
    listen(notebook, asked=asked)
