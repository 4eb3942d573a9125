"""Hands in a cell of ten megabytes."""
# exercise: softmax
# where: notebook


def change(notebook):
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == "softmax":
            cell["source"] = "x = 1\n" * 1_700_000
