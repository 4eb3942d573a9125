"""Outputs are of no kind that exists."""


def change(notebook):
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = [None, {"output_type": 7}, "text"]
            cell["execution_count"] = "many"
