"""Uses the name of the checks for something else."""
# exercise: softmax
# where: before

check = True
plots = None
