# ruff: noqa
# fmt: off

# === exercise: class-token | function: ClassToken | kind: plain | what is wrong: the class tokens are joined at the end, not in front
# told: named
# now: named
# says: the class token is appended at the end
class ClassToken(nn.Module):
    def __init__(self, d_model: int, count: int = 1) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.randn(count, d_model) * 0.02)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch = x.shape[0]
        tokens = self.token.expand(batch, -1, -1)
        return torch.cat([x, tokens], dim=1)


# === exercise: class-token | function: ClassToken | kind: subtle | what is wrong: the factor 0.02 is outside of nn.Parameter, so token is an ordinary tensor that no optimizer finds
# told: named
# now: named
# says: parameters are missing
class ClassToken(nn.Module):
    """Put trained vectors in front of every sequence."""

    def __init__(self, d_model: int, count: int = 1) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.randn(count, d_model)) * 0.02

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for_each = self.token.unsqueeze(0).expand(len(x), -1, -1)
        return torch.cat((for_each, x), dim=1)


# === exercise: class-token | function: ClassToken | kind: subtle | what is wrong: repeat_interleave mixes the tokens up for count > 1: the first sequences get copies of the first token only
# told: named
# now: named
# says: the class tokens are mixed up over the batch
class ClassToken(nn.Module):
    def __init__(self, d_model: int, count: int = 1) -> None:
        super().__init__()
        self.count = count
        self.token = nn.Parameter(torch.empty(count, d_model))
        nn.init.normal_(self.token, std=0.02)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        B, T, d = x.shape
        cls = self.token.repeat_interleave(B, dim=0).view(B, self.count, d)
        return torch.cat((cls, x), dim=1)


# === exercise: class-token | function: ClassToken | kind: double | what is wrong: drawn from the uniform distribution (rand), not the normal one; only the first of the count tokens is put in front
# told: named
# now: named
# says: only one of several class tokens is prepended
class ClassToken(nn.Module):
    def __init__(self, d_model: int, count: int = 1) -> None:
        super().__init__()
        start = 0.02 * torch.rand(count, d_model)
        self.token = nn.Parameter(start)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        sequences = []
        for sequence in x:
            sequences.append(torch.vstack([self.token[0], sequence]))
        return torch.stack(sequences)


# === exercise: mask-with-class-token | function: mask_with_class_token | kind: plain | what is wrong: the new entries are at the end, not in front
# told: named
# now: named
# says: the mask is extended at the end
def mask_with_class_token(mask: torch.Tensor, count: int = 1) -> torch.Tensor:
    real = torch.ones(mask.shape[0], 1, count, dtype=torch.bool, device=mask.device)
    return torch.cat((mask, real), dim=-1)


# === exercise: mask-with-class-token | function: mask_with_class_token | kind: subtle | what is wrong: copies the entry of the first token, which is False for a sequence whose first position is padding
# told: named
# now: named
# says: the first entry is copied
def mask_with_class_token(mask: torch.Tensor, count: int = 1) -> torch.Tensor:
    # the first token of a sentence is always real, so its entry can be used again
    first = mask[..., :1].expand(-1, -1, count)
    return torch.cat((first, mask), dim=-1)


# === exercise: mask-with-class-token | function: mask_with_class_token | kind: double | what is wrong: gives floats in place of booleans; adds one entry whatever count is
# told: named
# now: named
# says: numbers in place of True and False
def mask_with_class_token(mask: torch.Tensor, count: int = 1) -> torch.Tensor:
    B, _, T = mask.shape
    longer = torch.ones(B, 1, T + 1)
    longer[:, :, 1:] = mask
    return longer


# === exercise: class-head | function: ClassHead | kind: plain | what is wrong: returns probabilities (a softmax) and not logits
# told: named
# now: named
# says: probabilities in place of logits
class ClassHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / math.sqrt(d_model))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        y = hidden[:, 0] @ self.weight + self.bias
        return torch.softmax(y, dim=-1)


# === exercise: class-head | function: ClassHead | kind: subtle | what is wrong: squeeze() without an axis also drops the batch axis when B is 1 (or the class axis when there is one class)
# told: named
# now: named
# says: squeeze takes the axis of the batch away
class ClassHead(nn.Module):
    """Classify a sequence by the output at position 0."""

    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        weight = torch.randn(d_model, classes) * d_model**-0.5
        self.weight = nn.Parameter(weight)
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        first = hidden[:, :1]
        return (first @ self.weight + self.bias).squeeze()


# === exercise: class-head | function: ClassHead | kind: double | what is wrong: the weight is divided by d_model and not by its root; the bias is never added
# told: named
# now: named
# says: the bias is not added
class ClassHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / d_model)
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        cls = hidden[:, 0, :]
        return torch.matmul(cls, self.weight)


# === exercise: class-head | function: ClassHead | kind: double | what is wrong: reads the mean of all positions; the standard deviation is 1/√classes and not 1/√d_model
# told: named
# now: named
# says: the head reads the mean
class ClassHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(d_model, classes))
        self.bias = nn.Parameter(torch.zeros(classes))
        std = 1 / math.sqrt(self.weight.shape[-1])
        nn.init.normal_(self.weight, mean=0, std=std)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        summary = hidden.mean(dim=1)
        return torch.einsum("bd,dc->bc", summary, self.weight) + self.bias


# === exercise: masked-mean | functions: masked_mean, MeanHead | kind: plain | what is wrong: the padding is set to 0 but still counted in the divisor
# told: named
# now: named
# says: divided by T in place of the number of real tokens
def masked_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    column = mask.mT
    kept = hidden.masked_fill(~column, 0.0)
    return kept.mean(dim=1)


class MeanHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / math.sqrt(d_model))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(
        self, hidden: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        if mask is None:
            mask = torch.ones(len(hidden), 1, hidden.shape[1], dtype=torch.bool)
        return masked_mean(hidden, mask) @ self.weight + self.bias


# === exercise: masked-mean | functions: masked_mean, MeanHead | kind: plain | what is wrong: a sequence without real tokens gives 0/0 = NaN
# told: named
# now: named
# says: NaN for a sequence without real tokens
def masked_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    keep = mask.transpose(1, 2)  # (B, T, 1)
    total = torch.where(keep, hidden, torch.zeros_like(hidden)).sum(1)
    number = keep.sum(1)
    return total / number


class MeanHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / d_model**0.5)
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(
        self, hidden: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        if mask is None:
            B, T, _ = hidden.shape
            mask = torch.full((B, 1, T), True)
        mean = masked_mean(hidden, mask)
        return mean @ self.weight + self.bias


# === exercise: masked-mean | functions: masked_mean, MeanHead | kind: subtle | what is wrong: takes the first n rows of a sequence with n real tokens, so padding in front or in between is averaged
# told: named
# now: named
# says: the first rows in place of the real ones
def masked_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    means = []
    for sequence, keep in zip(hidden, mask):
        length = int(keep.sum())
        if length == 0:
            means.append(torch.zeros_like(sequence[0]))
        else:
            means.append(sequence[:length].mean(dim=0))
    return torch.stack(means)


class MeanHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / math.sqrt(d_model))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(
        self, hidden: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        if mask is None:
            mask = hidden.new_ones((hidden.size(0), 1, hidden.size(1))).bool()
        return masked_mean(hidden, mask) @ self.weight + self.bias


# === exercise: masked-mean | functions: masked_mean, MeanHead | kind: subtle | what is wrong: without a mask the head takes rows of zeros for padding, although then every position is real
# told: named
# now: named
# says: rows of zeros are taken for padding
def masked_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    mask = mask.mT
    n = mask.sum(dim=1).clamp(min=1)
    return hidden.masked_fill(~mask, 0).sum(dim=1) / n


class MeanHead(nn.Module):
    """Mean of the real tokens, then a linear map."""

    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(d_model, classes))
        nn.init.normal_(self.weight, 0.0, d_model**-0.5)
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(
        self, hidden: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        if mask is None:
            # no mask given: a row with an entry other than 0 is a real token
            mask = (hidden != 0).any(dim=-1).unsqueeze(1)
        pooled = masked_mean(hidden, mask)
        return torch.addmm(self.bias, pooled, self.weight)


# === exercise: masked-mean | functions: masked_mean, MeanHead | kind: double | what is wrong: masked_mean writes zeros into the caller's tensor; the head ignores the mask it is given
# told: named
# now: named
# says: changes its argument in place
def masked_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    rows = mask[:, 0]  # (B, T)
    hidden[~rows] = 0
    number = rows.sum(dim=1, keepdim=True)
    number[number == 0] = 1
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
        mask = torch.ones(B, 1, T, dtype=torch.bool)
        x = masked_mean(hidden, mask)
        return x @ self.weight + self.bias


# === exercise: masked-mean | functions: masked_mean, MeanHead | kind: double | what is wrong: divides by the number of real tokens of the whole batch; the bias of the head starts at random numbers and not at 0
# told: named
# now: named
# says: one number of tokens for the whole batch
def masked_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    real = mask.permute(0, 2, 1)  # (B, T, 1)
    summed = torch.where(real, hidden, 0.0).sum(dim=1)  # (B, d)
    return summed / real.sum().clamp(min=1)


class MeanHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        scale = 1 / math.sqrt(d_model)
        self.weight = nn.Parameter(scale * torch.randn(d_model, classes))
        self.bias = nn.Parameter(scale * torch.randn(classes))

    def forward(
        self, hidden: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        if mask is None:
            mask = torch.ones(hidden.shape[0], 1, hidden.shape[1], dtype=torch.bool)
        return masked_mean(hidden, mask).matmul(self.weight).add(self.bias)


# === exercise: readout-behaviour | function: readout_behaviour | kind: plain | what is wrong: calls the token head with positions equivariant, but a word's label then depends on its place
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


# === exercise: readout-behaviour | function: readout_behaviour | kind: double | what is wrong: calls the last token invariant; calls the flattened outputs equivariant
# told: named
# now: named
# says: invariant although the order matters
def readout_behaviour() -> dict[str, str]:
    answers = dict.fromkeys(
        ("class_token", "mean", "maximum", "last_token"), "invariant"
    )
    answers.update(dict.fromkeys(("flattened", "token_head"), "equivariant"))
    for key in ("class_token", "token_head"):
        answers[key + "_with_positions"] = "neither"
    return answers


# === exercise: tagging-loss | function: tagging_loss | kind: plain | what is wrong: the padding is scored, too, and counted
# told: named
# now: named
# says: padding is scored
def tagging_loss(
    logits: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor, count: int = 1
) -> torch.Tensor:
    words = logits[:, count:]
    if not mask.any():
        return words.sum() * 0.0
    return F.cross_entropy(words.mT, tags)


# === exercise: tagging-loss | function: tagging_loss | kind: plain | what is wrong: leaves out the last count rows in place of the first, so each row is compared with the tag of another word
# told: named
# now: named
# says: the end is left out in place of the class tokens
def tagging_loss(
    logits: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor, count: int = 1
) -> torch.Tensor:
    length = tags.shape[1]
    rows = logits[:, :length]
    losses = F.cross_entropy(rows.transpose(1, 2), tags, reduction="none")
    real = mask.squeeze(1)
    return losses.masked_fill(~real, 0.0).sum() / real.sum().clamp(min=1)


# === exercise: tagging-loss | function: tagging_loss | kind: subtle | what is wrong: marks the padding by the tag 0 and ignores it, so words of class 0 are not scored either
# told: named
# now: named
# says: tag 0 is taken for padding
def tagging_loss(
    logits: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor, count: int = 1
) -> torch.Tensor:
    scores = logits[:, count:].flatten(0, 1)  # (B * T, classes)
    target = (tags * mask[:, 0]).flatten()  # 0 in the padding
    total = F.cross_entropy(scores, target, ignore_index=0, reduction="sum")
    return total / (target != 0).sum().clamp(min=1)


# === exercise: tagging-loss | function: tagging_loss | kind: subtle | what is wrong: squeeze() removes the axis of the positions as well when T is 1, and the product then broadcasts to (B, B)
# told: named
# now: named
# says: squeeze takes the axis of the tokens away
def tagging_loss(
    logits: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor, count: int = 1
) -> torch.Tensor:
    log_p = logits[:, count:].log_softmax(dim=-1)
    nll = -log_p.gather(-1, tags.unsqueeze(-1))[..., 0]  # (B, T)
    m = mask.squeeze().float()
    return (nll * m).sum() / m.sum().clamp(min=1.0)


# === exercise: tagging-loss | function: tagging_loss | kind: double | what is wrong: applies a softmax before cross_entropy, which applies its own; without any word the mean of nothing is NaN
# told: named
# now: named
# says: softmax taken twice
def tagging_loss(
    logits: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor, count: int = 1
) -> torch.Tensor:
    probabilities = F.softmax(logits[:, count:, :], dim=-1)
    is_word = mask[:, 0, :]
    return F.cross_entropy(probabilities[is_word], tags[is_word])


# === exercise: task-heads | function: TaskHeads | kind: plain | what is wrong: every head gets the whole of hidden, so all of them read position 0
# told: named
# now: named
# says: all heads read position 0
class TaskHeads(nn.Module):
    def __init__(self, d_model: int, classes: list[int]) -> None:
        super().__init__()
        self.heads = nn.ModuleList([ClassHead(d_model, n) for n in classes])

    def forward(self, hidden: torch.Tensor) -> list[torch.Tensor]:
        return [head(hidden) for head in self.heads]


# === exercise: task-heads | function: TaskHeads | kind: subtle | what is wrong: cuts i positions off what is already cut, so from the third task on the wrong position is read (0, 1, 3, 6, ...)
# told: named
# now: named
# says: positions are cut off again and again
class TaskHeads(nn.Module):
    """Answer task i from position i."""

    def __init__(self, d_model: int, classes: list[int]) -> None:
        super().__init__()
        self.heads = nn.ModuleList()
        for number in classes:
            self.heads.append(ClassHead(d_model, number))

    def forward(self, hidden: torch.Tensor) -> list[torch.Tensor]:
        answers = []
        for i, head in enumerate(self.heads):
            hidden = hidden[:, i:]
            answers.append(head(hidden))
        return answers


# === exercise: task-heads | function: TaskHeads | kind: double | what is wrong: tasks with the same number of classes share one head; the positions are counted from 1
# told: named
# now: named
# says: one head shared by all tasks
class TaskHeads(nn.Module):
    def __init__(self, d_model: int, classes: list[int]) -> None:
        super().__init__()
        by_size = {n: ClassHead(d_model, n) for n in classes}
        self.heads = nn.ModuleList([by_size[n] for n in classes])

    def forward(self, hidden: torch.Tensor) -> list[torch.Tensor]:
        logits = []
        for task, head in enumerate(self.heads, start=1):
            logits.append(head(hidden[:, task:]))
        return logits


# === exercise: class-head | function: ClassHead | kind: plain | what is wrong: returns probabilities (softmax) instead of logits
# told: named
# now: named
# says: probabilities in place of logits
class ClassHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / d_model**0.5)
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        cls = hidden.select(1, 0)
        scores = torch.addmm(self.bias, cls, self.weight)
        return F.softmax(scores, dim=-1)


# === exercise: task-heads | function: TaskHeads | kind: plain | what is wrong: every head reads position 0 instead of head i reading position i
# told: named
# now: named
# says: all heads read position 0
class TaskHeads(nn.Module):
    def __init__(self, d_model: int, classes: list[int]) -> None:
        super().__init__()
        self.heads = nn.ModuleList()
        for n in classes:
            self.heads.append(ClassHead(d_model, n))

    def forward(self, hidden: torch.Tensor) -> list[torch.Tensor]:
        answers = []
        for i in range(len(self.heads)):
            answers.append(self.heads[i](hidden))
        return answers


# === exercise: mask-with-class-token | function: mask_with_class_token | kind: subtle | what is wrong: copies the entry of the first token for the class tokens, so they are False where a sequence begins with padding or has no real token
# told: named
# now: named
# says: the first entry is copied
def mask_with_class_token(mask: torch.Tensor, count: int = 1) -> torch.Tensor:
    # the first entry is real, so the class tokens can borrow it
    first = mask[:, :, 0:1].expand(-1, -1, count)
    return torch.cat([first, mask], dim=2)


# === exercise: tagging-loss | function: tagging_loss | kind: subtle | what is wrong: NaN instead of 0 for a batch without any word (mean over zero targets with ignore_index)
# told: named
# now: named
# says: NaN when nothing is scored
def tagging_loss(
    logits: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor, count: int = 1
) -> torch.Tensor:
    words = logits[:, count:]
    targets = torch.where(mask.squeeze(1), tags, torch.full_like(tags, -100))
    return F.cross_entropy(
        words.flatten(0, 1), targets.flatten(), ignore_index=-100, reduction="mean"
    )


# === exercise: masked-mean | functions: masked_mean, MeanHead | kind: double | what is wrong: (1) a sequence without real tokens gives NaN (0/0); (2) the weight of MeanHead is drawn with a standard deviation of 1/√classes instead of 1/√d_model
# told: named
# now: named
# says: NaN for a sequence without real tokens
def masked_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    column = mask.transpose(1, 2)  # (B, T, 1)
    kept = hidden.masked_fill(~column, 0.0)
    total = kept.sum(dim=1)
    how_many = column.sum(dim=1)
    return total / how_many


class MeanHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / math.sqrt(classes))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(
        self, hidden: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        if mask is None:
            B, T, _ = hidden.shape
            mask = torch.ones(B, 1, T, dtype=torch.bool, device=hidden.device)
        return masked_mean(hidden, mask) @ self.weight + self.bias


# === exercise: class-token | function: ClassToken | kind: double | what is wrong: (1) all count tokens start as copies of one drawn vector; (2) the class tokens are put behind the sequence instead of in front
# told: named
# now: named
# says: the class token is appended at the end
class ClassToken(nn.Module):
    def __init__(self, d_model: int, count: int = 1) -> None:
        super().__init__()
        start = torch.randn(1, d_model) * 0.02
        self.token = nn.Parameter(start.repeat(count, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch = x.size(0)
        tokens = torch.stack([self.token for _ in range(batch)])
        return torch.cat((x, tokens), dim=1)
