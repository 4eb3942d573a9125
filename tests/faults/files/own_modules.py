"""Modules with names of libraries lie beside the notebook, and must not be imported."""
# repairs: other files were not used


def hand_in(folder, notebook):
    write(folder / "04_attention" / "04_attention.ipynb", notebook)
    for name in ("torch.py", "math.py", "autograder.py", "sitecustomize.py"):
        write(folder / "04_attention" / name, b"raise SystemExit")
