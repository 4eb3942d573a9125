"""A named pipe has the notebook's name: whoever reads it waits for ever."""
# status: ungraded
# reason: notebook


def hand_in(folder, notebook):
    (folder / "04_attention").mkdir(parents=True)
    os.mkfifo(folder / "04_attention" / "04_attention.ipynb")
