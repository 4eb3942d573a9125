"""Makes a file that claims to be an exabyte."""
# exercise: softmax
# where: answer

import os

with open("attack-was-here", "wb") as file:
    os.truncate(file.fileno(), 2**60)
