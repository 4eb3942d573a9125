"""An archive has the notebook's name."""
# status: ungraded
# reason: archive


def hand_in(folder, notebook):
    write(folder / "04_attention" / "04_attention.ipynb", b"PK\x03\x04" + bytes(100))
