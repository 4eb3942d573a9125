"""The student's folder has umlauts and other alphabets in its name."""
# student: Jürgen Groß 長谷川


def hand_in(folder, notebook):
    write(folder / "04_attention" / "04_attention.ipynb", notebook)
