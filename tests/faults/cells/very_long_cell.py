"""A data set of two megabytes is pasted into a cell."""
# repairs: its text of 2000006 characters was cut


def change(notebook):
    notebook["cells"].append(code_cell("x = '''" + "1, " * 666_666 + "'"))
