"""The notebook does not say of which format it is."""


def change(notebook):
    del notebook["nbformat"], notebook["nbformat_minor"]
