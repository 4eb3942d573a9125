"""The notebook is a link to a file that is not there."""
# status: ungraded
# reason: link to a file that is not there


def hand_in(folder, notebook):
    (folder / "04_attention").mkdir(parents=True)
    (folder / "04_attention" / "04_attention.ipynb").symlink_to("nowhere.ipynb")
