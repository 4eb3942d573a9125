"""Registers an input transformer that empties all cells to come."""
# exercise: softmax
# where: before

get_ipython().input_transformers_cleanup.append(lambda lines: ["pass\n"])
get_ipython().input_transformers_post.append(lambda lines: ["pass\n"])
