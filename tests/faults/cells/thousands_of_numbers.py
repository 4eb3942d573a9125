"""An output is a table of a hundred thousand numbers, as interactive plots save them."""


def change(notebook):
    values = {"x": list(range(50_000)), "y": [0.5] * 50_000}
    output = {"output_type": "display_data", "metadata": {}}
    output["data"] = {"application/vnd.plotly.v1+json": values}
    notebook["cells"][find(notebook, "softmax")]["outputs"] = [output]
