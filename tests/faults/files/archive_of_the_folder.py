"""The chapter's folder was handed in as an archive."""
# status: ungraded
# reason: archive


def hand_in(folder, notebook):
    folder.mkdir(parents=True)
    with tarfile.open(folder / "04_attention.tar.gz", "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("04_attention/04_attention.ipynb"))
