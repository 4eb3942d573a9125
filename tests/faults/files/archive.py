"""The notebook was handed in inside an archive."""
# status: ungraded
# reason: archive


def hand_in(folder, notebook):
    path = folder / "04_attention" / "04_attention.zip"
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("04_attention.ipynb", json.dumps(notebook))
