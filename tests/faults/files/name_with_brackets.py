"""The student's folder has characters in its name that patterns use."""
# student: a[b]*c?{d}%20;$HOME


def hand_in(folder, notebook):
    write(folder / "04_attention" / "04_attention.ipynb", notebook)
