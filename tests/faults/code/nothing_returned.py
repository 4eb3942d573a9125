"""Forgets to return the result."""
# exercise: softmax
# where: answer
# lost: softmax
# says: None


def softmax(scores):
    torch.exp(scores) / torch.exp(scores).sum(-1, keepdim=True)
