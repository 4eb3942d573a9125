"""The notebook has another name, as a browser gives it to a second copy."""
# repairs: the notebook was named 04_attention (1).ipynb


def hand_in(folder, notebook):
    write(folder / "04_attention" / "04_attention (1).ipynb", notebook)
