"""The notebook is a link to itself."""
# status: ungraded
# reason: link


def hand_in(folder, notebook):
    (folder / "04_attention").mkdir(parents=True)
    path = folder / "04_attention" / "04_attention.ipynb"
    path.symlink_to(path)
