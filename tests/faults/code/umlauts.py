"""Writes names and comments in other alphabets."""
# exercise: causal-mask
# where: answer


def causal_mask(length):
    größe = length  # 長さ, длина, 🙂
    return torch.ones(größe, größe, dtype=torch.bool).tril()
