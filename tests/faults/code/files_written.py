"""Saves a model, a figure and its notes beside the notebook."""
# exercise: softmax
# where: after

import matplotlib.pyplot as pyplot

torch.save({"w": torch.zeros(3)}, "model.pt")
pyplot.savefig("figure.png")
with open("notes.txt", "w") as file:
    file.write("done")
torch.load("model.pt")
