"""The notebook is a link to a file outside of the student's folder."""
# status: ungraded
# reason: link out of the student's folder


def hand_in(folder, notebook):
    write(folder.parent / "somebody" / "04_attention.ipynb", notebook)
    target = folder.parent / "somebody" / "04_attention.ipynb"
    (folder / "04_attention").mkdir(parents=True)
    (folder / "04_attention" / "04_attention.ipynb").symlink_to(target)
