"""Cells have ids and names that are no texts."""
# repairs: any


def change(notebook):
    for number, cell in enumerate(notebook["cells"]):
        cell["id"] = [None, 3, {"a": 1}, ["x"], True][number % 5]
        if "nbgrader" in cell["metadata"]:
            cell["metadata"]["nbgrader"]["schema_version"] = "new"
