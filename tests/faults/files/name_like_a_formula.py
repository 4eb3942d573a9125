"""The student's name begins like a formula of a spreadsheet."""
# student: =cmd|'calc'!A0


def hand_in(folder, notebook):
    write(folder / "04_attention" / "04_attention.ipynb", notebook)
