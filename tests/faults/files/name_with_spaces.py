"""The student's folder has spaces and quotation marks in its name."""
# student: Ada "Countess" O'Lovelace


def hand_in(folder, notebook):
    write(folder / "04_attention" / "04_attention.ipynb", notebook)
