"""Leaves a message among the results, which students get to see."""
# exercise: softmax
# where: answer

import os

for folder in (
    f"{CLASS}/feedback",
    f"{CLASS}/submitted/friend",
    f"{CLASS}/course",
    HOME,
):
    try:
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/attack-was-here.html", "w") as file:
            file.write("attack-was-here")
    except OSError:
        pass
