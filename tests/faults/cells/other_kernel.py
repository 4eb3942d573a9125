"""The notebook was saved with a kernel of another name."""
# repairs: kernel 'conda-env-ml-py' replaced


def change(notebook):
    notebook["metadata"]["kernelspec"] = {
        "name": "conda-env-ml-py",
        "language": "python",
    }
