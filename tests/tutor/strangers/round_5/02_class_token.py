# ruff: noqa
# fmt: off

# === exercise: class-token | function: ClassToken | kind: subtle | what is wrong: joins token.data, so the parameter never receives a gradient
# told: named
# now: named
# says: no gradient comes back
class ClassToken(nn.Module):
    def __init__(self, d_model: int, count: int = 1) -> None:
        super().__init__()
        self.token = nn.Parameter(0.02 * torch.randn(count, d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = self.token.data.unsqueeze(0).repeat(x.shape[0], 1, 1)
        return torch.cat([tokens, x], dim=1)


# === exercise: class-token | function: ClassToken | kind: double | what is wrong: uniform numbers (torch.rand) in place of normal ones AND the tokens stand behind the sequence
# told: named
# now: named
# says: the class token is appended at the end
class ClassToken(nn.Module):
    def __init__(self, d_model: int, count: int = 1) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.rand(count, d_model) * 0.02)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch = x.size(0)
        return torch.cat((x, self.token.expand(batch, -1, -1)), dim=-2)


# === exercise: mask-with-class-token | function: mask_with_class_token | kind: subtle | what is wrong: always adds one entry, whatever count is
# told: named
# now: named
# says: one entry whatever count is
def mask_with_class_token(mask: torch.Tensor, count: int = 1) -> torch.Tensor:
    real = mask.new_ones(mask.shape[0], 1, 1)
    return torch.cat((real, mask), dim=2)


# === exercise: class-head | function: ClassHead | kind: plain | what is wrong: returns probabilities (softmax) in place of logits
# told: named
# now: named
# says: probabilities in place of logits
class ClassHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / math.sqrt(d_model))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        logits = hidden[:, 0, :] @ self.weight + self.bias
        return torch.softmax(logits, dim=-1)


# === exercise: masked-mean | function: masked_mean, MeanHead | kind: subtle | what is wrong: multiplies by the mask, so an inf or NaN in the padding makes the mean NaN
# dropped: hidden times the mask is a right variant of the bank: the statement promises nothing of NaN in the padding
def masked_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    column = mask.transpose(1, 2).to(hidden.dtype)  # (B, T, 1)
    total = (hidden * column).sum(dim=1)
    return total / column.sum(dim=1).clamp(min=1)


class MeanHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) * d_model**-0.5)
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(
        self, hidden: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        if mask is None:
            b, t, _ = hidden.shape
            mask = torch.ones(b, 1, t, dtype=torch.bool)
        return masked_mean(hidden, mask) @ self.weight + self.bias


# === exercise: masked-mean | function: masked_mean, MeanHead | kind: double | what is wrong: the weight is divided by the root of classes, not of d_model AND without a mask position 0 is left out as if it were a class token
# told: useless
# now: named
# says: without a mask position 0 is left out
def masked_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    column = mask.squeeze(1).unsqueeze(-1)
    total = torch.where(column, hidden, torch.zeros_like(hidden)).sum(1)
    return total / torch.clamp(column.sum(1), min=1)


class MeanHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / math.sqrt(classes))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(
        self, hidden: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        if mask is None:
            pooled = hidden[:, 1:].mean(dim=1)
        else:
            pooled = masked_mean(hidden, mask)
        return pooled @ self.weight + self.bias


# === exercise: readout-behaviour | function: readout_behaviour | kind: plain | what is wrong: calls the token head with positions equivariant
# told: named
# now: named
# says: positions are forgotten
def readout_behaviour() -> dict[str, str]:
    return {
        "class_token": "invariant",
        "mean": "invariant",
        "maximum": "invariant",
        "last_token": "neither",
        "flattened": "neither",
        "token_head": "equivariant",
        "class_token_with_positions": "neither",
        "token_head_with_positions": "equivariant",
    }


# === exercise: tagging-loss | function: tagging_loss | kind: double | what is wrong: averages the means of the sentences, not all words of the batch AND is in bits, not in nats
# told: useless
# now: named
# says: the mean of the sentences' means, and in bits
def tagging_loss(
    logits: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor, count: int = 1
) -> torch.Tensor:
    words = mask[:, 0].float()
    log_p = torch.log_softmax(logits[:, count:], dim=-1) / math.log(2)
    safe = tags * mask[:, 0]
    losses = -log_p.gather(-1, safe[..., None])[..., 0] * words
    per_sentence = losses.sum(dim=1) / words.sum(dim=1).clamp(min=1)
    return per_sentence.mean()


# === exercise: task-heads | function: TaskHeads | kind: plain | what is wrong: every head reads position 0
# told: named
# now: named
# says: all heads read position 0
class TaskHeads(nn.Module):
    def __init__(self, d_model: int, classes: list[int]) -> None:
        super().__init__()
        self.heads = nn.ModuleList(ClassHead(d_model, n) for n in classes)

    def forward(self, hidden: torch.Tensor) -> list[torch.Tensor]:
        return [head(hidden) for head in self.heads]
