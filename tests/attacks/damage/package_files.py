"""Overwrites the course's own package and PyTorch's, for the submissions to come."""
# exercise: softmax
# where: answer

import torch

import autograder.expect
import workbench

for module in (autograder.expect, torch, workbench):
    try:
        with open(module.__file__, "a") as file:
            file.write("\n# attack-was-here\n")
    except OSError:
        pass
