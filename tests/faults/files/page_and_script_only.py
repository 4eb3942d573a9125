"""The notebook was exported to HTML and to a script, and only these handed in."""
# status: ungraded
# reason: no notebook was submitted


def hand_in(folder, notebook):
    write(folder / "04_attention" / "04_attention.html", b"<html></html>")
    write(folder / "04_attention" / "04_attention.py", b"softmax = None")
