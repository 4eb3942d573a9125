"""Older versions and checkpoints lie beside the notebook."""
# repairs: other files were not used


def hand_in(folder, notebook):
    write(folder / "04_attention" / "04_attention.ipynb", notebook)
    write(folder / "04_attention" / "04_attention-old.ipynb", {"cells": []})
    write(folder / "04_attention" / ".ipynb_checkpoints" / "a.ipynb", {"cells": []})
