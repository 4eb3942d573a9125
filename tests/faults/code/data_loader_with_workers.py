"""Uses a data loader with worker processes."""
# exercise: softmax
# where: before

from torch.utils.data import DataLoader, TensorDataset

for _ in DataLoader(TensorDataset(torch.zeros(4, 2)), num_workers=2):
    pass
