"""A transformer/ of the student's own lies beside the notebook."""


def hand_in(folder, notebook):
    write(folder / "04_attention" / "04_attention.ipynb", notebook)
    write(folder / "04_attention" / "transformer" / "__init__.py", b"raise SystemExit")
