"""A file has the chapter's name."""
# status: ungraded
# reason: no notebook was submitted


def hand_in(folder, notebook):
    write(folder / "04_attention", notebook)
