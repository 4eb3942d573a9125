"""Raises an error in the last cell whose class is named by what was asked."""
# exercise: softmax
# where: notebook
# hidden: asked


def change(notebook):
    late = """\
kind = type("Asked" + "_".join(str(int(each)) for each in HEARD), (Exception,), {})
raise kind()
"""
    listen(notebook, late=late)
