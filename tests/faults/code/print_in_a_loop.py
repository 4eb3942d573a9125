"""Prints every element of a large tensor."""
# exercise: softmax
# where: after
# limited: output cut

for number in range(20_000):
    print("element", number, torch.zeros(3))
