"""Returns an object of a class that is named by what was asked."""
# exercise: softmax
# where: notebook
# hidden: asked


def change(notebook):
    asked = """\
return type(f"Asked{int(value)}", (), {})()
"""
    listen(notebook, asked=asked)
