"""Prints all that IPython has kept of cells that ran before."""
# exercise: softmax
# where: after

shell = get_ipython()
tell(globals().get("In"), globals().get("_ih"), globals().get("_i"))
tell(shell.user_ns, shell.history_manager.__dict__)
for entry in shell.history_manager.get_range(raw=True):
    tell(entry)
