# ruff: noqa
# fmt: off

# === exercise: class-token | function: ClassToken | kind: subtle | what is wrong: repeat_interleave repeats each token B times before the next one, so with count >= 2 and B >= 2 the view deals them out wrongly: with count = 2, B = 2 sequence 0 gets token 0 twice and sequence 1 gets token 1 twice (right for count = 1 or B = 1)
# told: named
# now: named
# says: the class tokens are mixed up over the batch
class ClassToken(nn.Module):
    def __init__(self, d_model: int, count: int = 1) -> None:
        super().__init__()
        self.token = nn.Parameter(0.02 * torch.randn(count, d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, _, width = x.shape
        front = self.token.repeat_interleave(batch, dim=0).view(batch, -1, width)
        return torch.cat([front, x], dim=1)


# === exercise: class-token | function: ClassToken | kind: double | what is wrong: nn.init.normal_(self.token, 0.02) sets the mean to 0.02 and leaves the standard deviation at 1 AND forward uses self.token.data, so the parameter gets no gradient and is never trained
# told: named
# now: named
# says: no gradient comes back
class ClassToken(nn.Module):
    def __init__(self, d_model: int, count: int = 1) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.empty(count, d_model))
        nn.init.normal_(self.token, 0.02)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = self.token.data[None].expand(x.shape[0], -1, -1)
        return torch.hstack((tokens, x))


# === exercise: mask-with-class-token | function: mask_with_class_token | kind: subtle | what is wrong: the new entries are modelled on the first count columns of the mask, of which there are only T: with count > T (T = 2, count = 3) too few are put in front, and the result is (B, 1, 2T) in place of (B, 1, count + T)
# told: passed
# now: named
# says: no more new entries than the mask is long
def mask_with_class_token(mask: torch.Tensor, count: int = 1) -> torch.Tensor:
    front = torch.ones_like(mask[..., :count])
    return torch.cat((front, mask), dim=-1)


# === exercise: class-head | function: ClassHead | kind: plain | what is wrong: returns log-probabilities (log_softmax) in place of the logits, on every input: by hand (1.5, 2, 1) comes out as (-1.18, -0.68, -1.68)
# told: named
# now: named
# says: logarithms of probabilities in place of logits
class ClassHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / d_model**0.5)
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        scores = torch.addmm(self.bias, hidden[:, 0], self.weight)
        return F.log_softmax(scores, dim=-1)


# === exercise: masked-mean | functions: masked_mean, MeanHead | kind: subtle | what is wrong: the mean is taken by softmax weights with -1e9 at the padding: a sequence without real tokens gets equal weights 1/T, so the mean of its padding in place of zeros (and a NaN or inf in the padding comes through, as 0 * NaN is NaN); right for every sequence with a real token and finite padding
# told: named
# now: named
# says: padding is read for a sequence without real tokens
def masked_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    scores = hidden.new_zeros(mask.shape).masked_fill(~mask, -1e9)
    weights = scores.softmax(dim=-1)
    return torch.bmm(weights, hidden).squeeze(1)


class MeanHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / math.sqrt(d_model))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(
        self, hidden: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        if mask is None:
            mask = torch.ones(
                hidden.shape[0], 1, hidden.shape[1], dtype=torch.bool, device=hidden.device
            )
        return masked_mean(hidden, mask) @ self.weight + self.bias


# === exercise: masked-mean | functions: masked_mean, MeanHead | kind: double | what is wrong: masked_mean counts the real tokens and averages the first n rows, wrong when a padding stands before or between real tokens (mask 0 1 1) AND MeanHead without a mask takes all-zero rows of hidden for padding, though without a mask every position is real
# told: shown
# now: named
# says: the first rows in place of the real ones
def masked_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    lengths = mask.sum(dim=-1).flatten().tolist()
    means = []
    for sequence, length in zip(hidden, lengths):
        if length == 0:
            means.append(torch.zeros_like(sequence[0]))
        else:
            means.append(sequence[:length].mean(dim=0))
    return torch.stack(means)


class MeanHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) * d_model**-0.5)
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(
        self, hidden: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        if mask is None:
            mask = (hidden != 0).any(dim=-1).unsqueeze(1)
        pooled = masked_mean(hidden, mask)
        return torch.einsum("bd,dc->bc", pooled, self.weight) + self.bias


# === exercise: readout-behaviour | function: readout_behaviour | kind: plain | what is wrong: "class_token_with_positions" is called "invariant", because the class token itself keeps its place and its position; but the words it attends to change theirs, so it is "neither"
# told: named
# now: named
# says: positions are forgotten
def readout_behaviour() -> dict[str, str]:
    moves, stays, other = "equivariant", "invariant", "neither"
    return dict(
        class_token=stays,
        mean=stays,
        maximum=stays,
        last_token=other,
        flattened=other,
        token_head=moves,
        class_token_with_positions=stays,
        token_head_with_positions=other,
    )


# === exercise: tagging-loss | function: tagging_loss | kind: plain | what is wrong: cross_entropy is given probabilities (softmax of the logits) and applies its own softmax to them once more, so the loss is wrong on every batch with a word whose logits are not all equal
# told: named
# now: named
# says: softmax taken twice
def tagging_loss(
    logits: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor, count: int = 1
) -> torch.Tensor:
    is_word = mask[:, 0]
    probabilities = logits[:, count:].softmax(dim=-1)[is_word]
    total = F.cross_entropy(probabilities, tags[is_word], reduction="sum")
    return total / max(int(is_word.sum()), 1)


# === exercise: tagging-loss | function: tagging_loss | kind: subtle | what is wrong: mask.squeeze() removes the axis of the positions, too, when T = 1: with B > 1 the mask (B,) broadcasts against the losses (B, 1) to (B, B), so the losses of all sequences, padding included, are added up and not divided (right for T > 1 and for B = 1)
# told: passed
# now: named
# says: squeeze takes the axis of the tokens away
def tagging_loss(
    logits: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor, count: int = 1
) -> torch.Tensor:
    keep = mask.squeeze()
    losses = F.cross_entropy(logits[:, count:].mT, tags, reduction="none")
    return torch.where(keep, losses, 0.0).sum() / keep.sum().clamp(min=1)


# === exercise: task-heads | function: TaskHeads | kind: double | what is wrong: forward cuts i positions off what the last round left, so task 2 reads position 3 (task 3 position 6), which shows with three or more tasks AND __init__ empties the caller's list classes with pop
# told: useless
# now: named
# says: changes its argument in place
class TaskHeads(nn.Module):
    def __init__(self, d_model: int, classes: list[int]) -> None:
        super().__init__()
        self.heads = nn.ModuleList()
        while classes:
            self.heads.append(ClassHead(d_model, classes.pop(0)))

    def forward(self, hidden: torch.Tensor) -> list[torch.Tensor]:
        answers = []
        for i, head in enumerate(self.heads):
            hidden = hidden[:, i:]
            answers.append(head(hidden))
        return answers
