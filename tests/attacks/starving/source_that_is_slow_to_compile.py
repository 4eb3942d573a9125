"""Hands in a cell that takes the compiler for ever, or all of its stack."""
# exercise: softmax
# where: notebook


def change(notebook):
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == "softmax":
            cell["source"] = "x = " + "-" * 200_000 + "1\n" + "(" * 5000 + ")" * 5000
