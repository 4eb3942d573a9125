"""Training: the loop, its steps and presets, and the records of runs."""
