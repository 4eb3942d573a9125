"""Hides addresses in the metadata and attachments of cells."""
# exercise: softmax
# where: notebook


def change(notebook):
    notebook["metadata"]["widgets"] = {"LEAKED": "<script>alert(1)</script>"}
    for cell in notebook["cells"]:
        cell["metadata"]["LEAKED"] = "<script>alert(1)</script>"
