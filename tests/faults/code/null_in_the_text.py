"""Has a null character in a cell."""
# exercise: causal-mask
# where: answer
# lost: causal-mask

causal_mask = "NULL"
