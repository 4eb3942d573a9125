"""The chapter's folder is a link to another student's."""
# status: ungraded
# reason: link out of the student's folder


def hand_in(folder, notebook):
    write(folder.parent / "somebody" / "04_attention" / "04_attention.ipynb", notebook)
    folder.mkdir()
    target = folder.parent / "somebody" / "04_attention"
    (folder / "04_attention").symlink_to(target, target_is_directory=True)
