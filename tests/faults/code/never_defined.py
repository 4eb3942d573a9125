"""Leaves the answer's cell empty."""
# exercise: softmax
# where: answer
# lost: softmax
# says: is not there

# I will do this later
