"""Works on its argument in place."""
# exercise: softmax
# where: answer
# lost: softmax
# says: changes its argument in place


def softmax(scores):
    with torch.no_grad():
        scores -= scores.amax(-1, keepdim=True)
        scores.exp_()
        return scores / scores.sum(-1, keepdim=True)
