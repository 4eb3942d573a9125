"""Replaces the methods with which IPython shows that a cell has failed."""
# exercise: softmax
# where: before

shell = get_ipython()
for name in (
    "showtraceback",
    "showsyntaxerror",
    "_showtraceback",
    "showindentationerror",
):
    setattr(shell, name, lambda *_, **__: None)
