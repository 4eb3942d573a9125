"""The chapter's folder is a link to itself."""
# status: ungraded
# reason: symbolic links


def hand_in(folder, notebook):
    folder.mkdir()
    (folder / "04_attention").symlink_to("04_attention")
