"""A trained model lies beside a notebook that asks for none."""


def hand_in(folder, notebook):
    write(folder / "04_attention" / "04_attention.ipynb", notebook)
    write(folder / "04_attention" / "model" / "model.safetensors", b"x")
