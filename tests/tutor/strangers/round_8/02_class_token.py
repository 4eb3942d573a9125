# ruff: noqa
# fmt: off

# === exercise: class-token | function: ClassToken | kind: plain | what is wrong: the token is divided by 0.02 in place of multiplied, so it starts with a standard deviation of 50
# told: named
# now: named
# says: the weights start too large
class ClassToken(nn.Module):
    def __init__(self, d_model: int, count: int = 1) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.randn(count, d_model) / 0.02)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        token = self.token.expand(x.shape[0], -1, -1)
        return torch.cat((token, x), dim=1)


# === exercise: class-token | function: ClassToken | kind: subtle | what is wrong: only the first vector is trained; with count above 1 it is repeated, so all class tokens are the same
# told: shown
# now: named
# says: one vector for all class tokens
class ClassToken(nn.Module):
    def __init__(self, d_model: int, count: int = 1) -> None:
        super().__init__()
        self.token = nn.Parameter(0.02 * torch.randn(count, d_model))
        self.count = count

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = self.token[0].view(1, 1, -1)
        return torch.cat([first.repeat(len(x), self.count, 1), x], 1)


# === exercise: class-token | function: ClassToken | kind: double | what is wrong: the token is drawn from a uniform distribution on [0, 0.02) and not from a normal one AND it is put behind the sequence
# told: named
# now: named
# says: the class token is appended at the end
class ClassToken(nn.Module):
    def __init__(self, d_model: int, count: int = 1) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.rand(count, d_model) * 0.02)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        B, T, d = x.shape
        out = torch.empty(B, T + len(self.token), d)
        out[:, :T] = x
        out[:, T:] = self.token
        return out


# === exercise: mask-with-class-token | function: mask_with_class_token | kind: plain | what is wrong: count is ignored, one entry is added whatever it is
# told: named
# now: named
# says: one entry whatever count is
def mask_with_class_token(mask: torch.Tensor, count: int = 1) -> torch.Tensor:
    return F.pad(mask, (1, 0), value=True)


# === exercise: mask-with-class-token | function: mask_with_class_token | kind: subtle | what is wrong: the new entries repeat the first entry of each sentence, so a sentence that is only padding gets False for its class token
# told: named
# now: named
# says: the first entry is copied
def mask_with_class_token(mask: torch.Tensor, count: int = 1) -> torch.Tensor:
    front = mask[:, :, :1].expand(-1, -1, count)
    return torch.cat((front, mask), dim=-1)


# === exercise: class-head | function: ClassHead | kind: subtle | what is wrong: the axis of the batch is lost if there is only one sequence, because of squeeze()
# told: named
# now: named
# says: squeeze takes the axis of the batch away
class ClassHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / math.sqrt(d_model))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        first = hidden[:, 0].squeeze()
        return first @ self.weight + self.bias


# === exercise: class-head | function: ClassHead | kind: double | what is wrong: the weight is divided by d and not by its root AND the logits go through a softmax
# told: named
# now: named
# says: probabilities in place of logits
class ClassHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / d_model)
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        y = torch.einsum("bd,dc->bc", hidden[:, 0, :], self.weight) + self.bias
        return torch.softmax(y, dim=-1)


# === exercise: masked-mean | functions: masked_mean, MeanHead | kind: subtle | what is wrong: NaN or infinity in the padding gets through, because it is multiplied by 0
# dropped: hint 3 allows a product with the mask, which lets NaN through
def masked_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    column = mask.transpose(1, 2).to(hidden.dtype)
    total = (hidden * column).sum(dim=1)
    return total / column.sum(dim=1).clamp(min=1)


class MeanHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) * d_model**-0.5)
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, hidden, mask=None):
        if mask is None:
            mask = torch.ones(hidden.shape[0], 1, hidden.shape[1], dtype=torch.bool)
        return masked_mean(hidden, mask) @ self.weight + self.bias


# === exercise: masked-mean | functions: masked_mean, MeanHead | kind: double | what is wrong: the number of real tokens is that of the longest sentence of the batch AND the head without a mask takes the first position alone
# told: named
# now: named
# says: one number of tokens for the whole batch
def masked_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    m = mask.mT
    total = hidden.masked_fill(~m, 0.0).sum(1)
    number = m.sum(1).max().clamp(min=1)
    return total / number


class MeanHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / math.sqrt(d_model))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, hidden, mask=None):
        if mask is None:
            mask = torch.zeros(len(hidden), 1, hidden.shape[1], dtype=torch.bool)
            mask[:, :, 0] = True
        return masked_mean(hidden, mask) @ self.weight + self.bias


# === exercise: masked-mean | functions: masked_mean, MeanHead | kind: plain | what is wrong: the head without a mask uses a mask of False (as if True meant padding), so the mean is 0 and the logits are the bias
# told: shown
# now: named
# says: without a mask nothing is real
def masked_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    rows = []
    for h, m in zip(hidden, mask[:, 0]):
        real = h[m]
        rows.append(real.mean(0) if len(real) else torch.zeros(h.shape[-1], dtype=h.dtype))
    return torch.stack(rows)


class MeanHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / math.sqrt(d_model))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, hidden, mask=None):
        if mask is None:
            mask = hidden.new_zeros(hidden.shape[0], 1, hidden.shape[1]).bool()
        return masked_mean(hidden, mask) @ self.weight + self.bias


# === exercise: readout-behaviour | function: readout_behaviour | kind: double | what is wrong: flattened is called equivariant (its entries move with the words) AND the token head with positions is still called equivariant
# told: named
# now: named
# says: a single answer is called equivariant
def readout_behaviour() -> dict[str, str]:
    return dict(
        class_token="invariant",
        mean="invariant",
        maximum="invariant",
        last_token="neither",
        flattened="equivariant",
        token_head="equivariant",
        class_token_with_positions="neither",
        token_head_with_positions="equivariant",
    )


# === exercise: tagging-loss | function: tagging_loss | kind: subtle | what is wrong: a word whose tag is 0 is left out, because ignore_index=0 marks the padding
# told: named
# now: named
# says: tag 0 is taken for padding
def tagging_loss(logits, tags, mask, count=1):
    words = logits[:, count:]
    targets = tags.masked_fill(~mask[:, 0], 0)
    total = F.cross_entropy(words.flatten(0, 1), targets.flatten(), ignore_index=0, reduction="sum")
    return total / mask.sum().clamp(min=1)


# === exercise: tagging-loss | function: tagging_loss | kind: double | what is wrong: mean of the sentences' means and not of all words AND the class token is skipped with a fixed 1, whatever count says
# told: named
# now: named
# says: one class token is left out, whatever count says, and the mean of the sentences' means
def tagging_loss(logits, tags, mask, count=1):
    losses = F.cross_entropy(logits[:, 1 : 1 + tags.shape[1]].mT, tags, reduction="none")
    real = mask[:, 0].float()
    each = (losses * real).sum(1) / real.sum(1).clamp(min=1)
    return each.mean()


# === exercise: tagging-loss | function: tagging_loss | kind: plain | what is wrong: log base 2 in place of the natural one
# told: named
# now: named
# says: in bits
def tagging_loss(logits, tags, mask, count=1):
    p = logits[:, count:].softmax(-1).gather(-1, tags[..., None])[..., 0]
    keep = mask.squeeze(1)
    if not keep.any():
        return logits.sum() * 0
    return -torch.log2(p[keep]).mean()


# === exercise: task-heads | function: TaskHeads | kind: plain | what is wrong: the heads are built from the class counts in reverse order
# told: shown
# now: named
# says: the heads in reverse order
class TaskHeads(nn.Module):
    def __init__(self, d_model: int, classes: list[int]) -> None:
        super().__init__()
        self.heads = nn.ModuleList([ClassHead(d_model, k) for k in reversed(classes)])

    def forward(self, hidden):
        return [head(hidden[:, i:]) for i, head in enumerate(self.heads)]


# === exercise: task-heads | function: TaskHeads | kind: subtle | what is wrong: tasks with the same number of classes share one head
# told: named
# now: named
# says: one head shared by all tasks
class TaskHeads(nn.Module):
    def __init__(self, d_model: int, classes: list[int]) -> None:
        super().__init__()
        made = {k: ClassHead(d_model, k) for k in set(classes)}
        self.heads = nn.ModuleList([made[k] for k in classes])

    def forward(self, hidden):
        answers = []
        for position in range(len(self.heads)):
            answers.append(self.heads[position](hidden[:, position : position + 1]))
        return answers
