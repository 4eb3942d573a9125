"""An answer's cell is split in two."""


def change(notebook):
    at = find(notebook, "softmax")
    notebook["cells"][at]["source"] = "import math\nsmall = 0.0"
    own = "def softmax(scores):\n    scores = scores.nan_to_num(neginf=-1e30)\n"
    own += "    weights = torch.exp(scores - scores.amax(-1, keepdim=True))\n"
    own += "    weights = weights * (scores > -1e29)\n    total = weights.sum(-1)\n"
    own += "    total = total.masked_fill(total == small, 1.0)\n"
    own += "    return weights / total[..., None]\n"
    notebook["cells"].insert(at + 1, code_cell(own))
