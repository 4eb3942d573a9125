"""Hands in a notebook of five thousand cells."""
# exercise: softmax
# where: notebook
# status: ungraded
# reason: at most 5000


def change(notebook):
    empty = {
        "cell_type": "code",
        "metadata": {},
        "outputs": [],
        "execution_count": None,
    }
    notebook["cells"] += [empty | {"source": f"x = {n}"} for n in range(5000)]
