# ruff: noqa
# fmt: off

# === exercise: class-token | function: ClassToken | kind: plain | what is wrong: drawn with randn * 0.02 but the token is put at the end, after the words
# told: named
# now: named
# says: the class token is appended at the end
class ClassToken(nn.Module):
    def __init__(self, d_model: int, count: int = 1) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.randn(count, d_model) * 0.02)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = self.token.unsqueeze(0).expand(x.size(0), -1, -1)
        return torch.cat((x, tokens), dim=1)


# === exercise: class-token | function: ClassToken | kind: double | what is wrong: spread 1, without the factor 0.02 AND the token is detached (.data) when it is joined, so it never learns
# told: named
# now: named
# says: no gradient comes back
class ClassToken(nn.Module):
    def __init__(self, d_model: int, count: int = 1) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.randn(count, d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch = x.shape[0]
        cls = self.token.data.repeat(batch, 1, 1)
        return torch.cat([cls, x], dim=1)


# === exercise: mask-with-class-token | function: mask_with_class_token | kind: subtle | what is wrong: copies the first column of the mask count times, which is False for a sentence without any real token
# told: named
# now: named
# says: the first entry is copied
def mask_with_class_token(mask: torch.Tensor, count: int = 1) -> torch.Tensor:
    front = mask[:, :, :1].expand(-1, -1, count)
    return torch.cat([front, mask], dim=-1)


# === exercise: class-head | function: ClassHead | kind: subtle | what is wrong: divides the weight by the root of the number of classes, not of d_model
# told: named
# now: named
# says: divided by the root of the number of classes
class ClassHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / classes**0.5)
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        cls = hidden[:, 0, :]
        return torch.matmul(cls, self.weight) + self.bias


# === exercise: masked-mean | function: masked_mean, MeanHead | kind: subtle | what is wrong: multiplies hidden by the mask, so NaN or inf in the padding gets through (0 * NaN)
# dropped: hidden times the mask is a right variant of the bank: the statement promises nothing of NaN in the padding
def masked_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    m = mask.transpose(1, 2).float()
    return (hidden * m).sum(dim=1) / m.sum(dim=1).clamp(min=1)


class MeanHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / math.sqrt(d_model))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(
        self, hidden: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        if mask is None:
            mask = torch.ones(hidden.shape[0], 1, hidden.shape[1], dtype=torch.bool)
        return masked_mean(hidden, mask) @ self.weight + self.bias


# === exercise: masked-mean | function: masked_mean, MeanHead | kind: double | what is wrong: masked_mean writes zeros into the padding of hidden in place AND MeanHead without a mask takes only position 0 for real
# told: named
# now: named
# says: changes its argument in place
def masked_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    real = mask.squeeze(1)
    hidden[~real] = 0
    number = real.sum(dim=1, keepdim=True)
    number = torch.where(number == 0, torch.ones_like(number), number)
    return hidden.sum(dim=1) / number


class MeanHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / math.sqrt(d_model))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(
        self, hidden: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        B, T, d = hidden.shape
        if mask is None:
            mask = torch.zeros(B, 1, T, dtype=torch.bool)
            mask[:, :, 0] = True
        mean = masked_mean(hidden.clone(), mask)
        return mean @ self.weight + self.bias


# === exercise: readout-behaviour | function: readout_behaviour | kind: plain | what is wrong: says that the token head with positions is still equivariant, and the maximum is neither
# told: named
# now: named
# says: neither although the tokens only changed places
def readout_behaviour() -> dict[str, str]:
    return {
        "class_token": "invariant",
        "mean": "invariant",
        "maximum": "neither",
        "last_token": "neither",
        "flattened": "neither",
        "token_head": "equivariant",
        "class_token_with_positions": "neither",
        "token_head_with_positions": "equivariant",
    }


# === exercise: tagging-loss | function: tagging_loss | kind: subtle | what is wrong: the mean of the sentences' means in place of the mean over all words of the batch
# told: named
# now: named
# says: the mean of the sentences' means
def tagging_loss(
    logits: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor, count: int = 1
) -> torch.Tensor:
    words = logits[:, count:]
    real = mask[:, 0]
    tags = tags.masked_fill(~real, 0)
    loss = nn.functional.cross_entropy(words.transpose(1, 2), tags, reduction="none")
    loss = loss.masked_fill(~real, 0.0)
    per_sentence = loss.sum(dim=1) / real.sum(dim=1).clamp(min=1)
    return per_sentence.mean()


# === exercise: task-heads | function: TaskHeads | kind: plain | what is wrong: all heads read position 0
# told: named
# now: named
# says: all heads read position 0
class TaskHeads(nn.Module):
    def __init__(self, d_model: int, classes: list[int]) -> None:
        super().__init__()
        self.heads = nn.ModuleList([ClassHead(d_model, c) for c in classes])

    def forward(self, hidden: torch.Tensor) -> list[torch.Tensor]:
        return [head(hidden) for head in self.heads]
