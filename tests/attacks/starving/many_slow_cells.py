"""Uses nearly all the time that a cell may take, in many cells."""
# exercise: softmax
# where: notebook
# status: ungraded
# reason: notebook


def change(notebook):
    slow = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    for number in range(20):
        cell = slow | {"id": f"slow-{number}", "source": "import time; time.sleep(1.5)"}
        notebook["cells"].insert(0, cell)
