"""All check cells are deleted."""
# repairs: test-softmax: missing | test-worked-context: missing | test-causal-mask: missing


def change(notebook):
    notebook["cells"] = [c for c in notebook["cells"] if "check." not in c["source"]]
