"""The notebook is a link to another file of the student's."""


def hand_in(folder, notebook):
    write(folder / "mine.ipynb", notebook)
    (folder / "04_attention").mkdir()
    (folder / "04_attention" / "04_attention.ipynb").symlink_to(folder / "mine.ipynb")
