"""All lines end as on Windows."""
# repairs: any


def change(notebook):
    for cell in notebook["cells"]:
        cell["source"] = cell["source"].replace("\n", "\r\n")
