"""Shows a progress bar made for notebooks."""
# exercise: softmax
# where: after

from tqdm.notebook import tqdm

for _ in tqdm(range(10)):
    pass
