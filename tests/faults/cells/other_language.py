"""The notebook was saved with a kernel of another language."""
# repairs: kernel 'ir' replaced


def change(notebook):
    notebook["metadata"]["kernelspec"] = {"name": "ir", "language": "R"}
    notebook["metadata"]["language_info"] = {"name": "R"}
