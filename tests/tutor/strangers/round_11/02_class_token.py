# ruff: noqa
# fmt: off

# === exercise: class-token | function: ClassToken | kind: subtle | what is wrong: the tokens are put in front one after the other, so with count > 1 they come out in reversed order (token[count-1] at position 0)
# told: named
# now: named
# says: several class tokens in reverse order
class ClassToken(nn.Module):
    def __init__(self, d_model: int, count: int = 1) -> None:
        super().__init__()
        self.token = nn.Parameter(0.02 * torch.randn(count, d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch = x.shape[0]
        for vector in self.token:
            row = vector.expand(batch, 1, -1)
            x = torch.cat((row, x), dim=1)
        return x


# === exercise: class-token | function: ClassToken | kind: double | what is wrong: the parameter has the shape (1, count, d_model) instead of (count, d_model) AND normal_(token, 0.02) sets the mean to 0.02 and leaves the standard deviation at 1
# told: named
# now: named
# says: one axis too many
class ClassToken(nn.Module):
    def __init__(self, d_model: int, count: int = 1) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.empty(1, count, d_model))
        nn.init.normal_(self.token, 0.02)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        cls_tokens = self.token.expand(x.size(0), -1, -1)
        return torch.cat([cls_tokens, x], dim=1)


# === exercise: mask-with-class-token | function: mask_with_class_token | kind: subtle | what is wrong: rebuilds the mask from the number of real tokens, so old entries change when the padding is not at the end (in front or in the middle)
# told: passed
# now: named
# says: the old entries are made anew from their number
def mask_with_class_token(mask: torch.Tensor, count: int = 1) -> torch.Tensor:
    T = mask.size(-1)
    lengths = mask.sum(dim=-1, keepdim=True) + count
    places = torch.arange(count + T, device=mask.device)
    return places < lengths


# === exercise: mask-with-class-token | function: mask_with_class_token | kind: double | what is wrong: the new entries are added at the end instead of the front AND the result is float, not boolean
# told: named
# now: named
# says: numbers in place of True and False
def mask_with_class_token(mask: torch.Tensor, count: int = 1) -> torch.Tensor:
    return F.pad(mask.float(), (0, count), value=1.0)


# === exercise: class-head | function: ClassHead | kind: plain | what is wrong: the weight is divided by the root of the number of classes instead of the root of d_model
# told: named
# now: named
# says: divided by the root of the number of classes
class ClassHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        w = torch.randn(d_model, classes)
        self.weight = nn.Parameter(w / math.sqrt(w.shape[-1]))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        first = hidden[:, 0, :]
        return torch.einsum("bd,dc->bc", first, self.weight) + self.bias


# === exercise: masked-mean | function: masked_mean, MeanHead | kind: plain | what is wrong: masked_mean divides by the number of real tokens of the whole batch instead of that of each sequence
# told: named
# now: named
# says: one number of tokens for the whole batch
def masked_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    column = mask.transpose(1, 2)
    total = torch.where(column, hidden, 0.0).sum(dim=1)
    number = column.sum().clamp(min=1)
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
            mask = torch.ones(B, 1, T, dtype=torch.bool, device=hidden.device)
        return masked_mean(hidden, mask) @ self.weight + self.bias


# === exercise: masked-mean | function: masked_mean, MeanHead | kind: subtle | what is wrong: the padding is removed by a product and 0/0 is repaired afterwards by nan_to_num, so the values are right but the gradient with respect to hidden is NaN for a sequence without real tokens
# told: named
# now: named
# says: NaN gradient for a sequence without real tokens
def masked_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    m = mask.mT.to(hidden.dtype)
    mean = (hidden * m).sum(1) / m.sum(1)
    return torch.nan_to_num(mean, nan=0.0)


class MeanHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / math.sqrt(d_model))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(
        self, hidden: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        if mask is None:
            mask = torch.ones_like(hidden[..., 0], dtype=torch.bool).unsqueeze(1)
        pooled = masked_mean(hidden, mask)
        return torch.matmul(pooled, self.weight) + self.bias


# === exercise: masked-mean | function: masked_mean, MeanHead | kind: double | what is wrong: masked_mean takes the mean over no rows for a sequence without real tokens and gives NaN instead of zeros AND MeanHead without a mask treats position 0 as not real (as if it were a class token), although all positions are real
# told: named
# now: named
# says: NaN for a sequence without real tokens
def masked_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    means = []
    for rows, keep in zip(hidden, mask):
        real = rows[keep[0]]
        means.append(real.mean(dim=0))
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
            positions = torch.arange(hidden.shape[1], device=hidden.device)
            mask = (positions > 0).expand(hidden.shape[0], 1, -1)
        return masked_mean(hidden, mask) @ self.weight + self.bias


# === exercise: readout-behaviour | function: readout_behaviour | kind: plain | what is wrong: class_token_with_positions is called invariant (because the class token itself stays in front), but the words' positions make it neither
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
        "class_token_with_positions": "invariant",
        "token_head_with_positions": "neither",
    }


# === exercise: readout-behaviour | function: readout_behaviour | kind: subtle | what is wrong: the answers are found by an experiment with one permutation that leaves the last word in its place, so last_token comes out as invariant instead of neither
# told: named
# now: named
# says: invariant although the order matters
def readout_behaviour() -> dict[str, str]:
    torch.manual_seed(0)
    T, d = 4, 8
    layer = nn.TransformerEncoderLayer(
        d, nhead=2, dim_feedforward=32, dropout=0.0, batch_first=True
    )
    cls = torch.randn(1, 1, d)
    table = torch.randn(1, T + 1, d)
    head = nn.Linear(d, 3)
    long_head = nn.Linear((T + 1) * d, 3)

    def run_layer(x, positions=False):
        x = torch.cat((cls, x), dim=1)
        return layer(x + table if positions else x)

    readouts = {
        "class_token": lambda x: run_layer(x)[:, 0],
        "mean": lambda x: run_layer(x)[:, 1:].mean(1),
        "maximum": lambda x: run_layer(x)[:, 1:].amax(1),
        "last_token": lambda x: run_layer(x)[:, -1],
        "flattened": lambda x: long_head(run_layer(x).flatten(1)),
        "token_head": lambda x: head(run_layer(x)[:, 1:]),
        "class_token_with_positions": lambda x: run_layer(x, True)[:, 0],
        "token_head_with_positions": lambda x: head(run_layer(x, True)[:, 1:]),
    }

    x = torch.randn(1, T, d)
    order = torch.tensor([2, 0, 1, 3])
    result = {}
    for key, f in readouts.items():
        before, after = f(x), f(x[:, order])
        if torch.allclose(before, after, atol=1e-4):
            result[key] = "invariant"
        elif before.dim() == 3 and torch.allclose(before[:, order], after, atol=1e-4):
            result[key] = "equivariant"
        else:
            result[key] = "neither"
    return result


# === exercise: tagging-loss | function: tagging_loss | kind: plain | what is wrong: the logits are brought to (B, classes, T) by reshape instead of a transpose, which mixes up positions and classes
# told: named
# now: named
# says: reshaped in place of transposed
def tagging_loss(
    logits: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor, count: int = 1
) -> torch.Tensor:
    B, T = tags.shape
    C = logits.shape[-1]
    word_logits = logits[:, count:].reshape(B, C, T)
    losses = F.cross_entropy(word_logits, tags, reduction="none")
    real = mask[:, 0]
    losses = losses.masked_fill(~real, 0.0)
    return losses.sum() / real.sum().clamp(min=1)


# === exercise: tagging-loss | function: tagging_loss | kind: subtle | what is wrong: if the batch has no word at all, the result has the shape (1,) instead of ()
# told: told
# now: named
# says: a list of one number
def tagging_loss(
    logits: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor, count: int = 1
) -> torch.Tensor:
    is_word = mask.squeeze(1)
    scores = logits[:, count:, :][is_word]
    targets = tags[is_word]
    if len(targets) == 0:
        return torch.zeros(1, dtype=logits.dtype, device=logits.device)
    return F.cross_entropy(scores, targets)


# === exercise: tagging-loss | function: tagging_loss | kind: double | what is wrong: the first T rows are kept (the class tokens' among them) instead of the rows after the class tokens AND tag 0 is used as the mark of padding (ignore_index=0), so words whose true tag is class 0 add nothing to the sum
# told: named
# now: named
# says: the end is left out in place of the class tokens, and tag 0 is taken for padding
def tagging_loss(
    logits: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor, count: int = 1
) -> torch.Tensor:
    real = mask[:, 0, :]
    rows = logits[:, : logits.shape[1] - count]
    target = torch.where(real, tags, torch.zeros_like(tags))
    total = F.cross_entropy(
        rows.flatten(0, 1), target.flatten(), ignore_index=0, reduction="sum"
    )
    n_words = real.sum().clamp(min=1)
    return total / n_words


# === exercise: task-heads | function: TaskHeads | kind: plain | what is wrong: off by one: head i reads position i + 1 instead of position i
# told: named
# now: named
# says: class tokens counted from 1
class TaskHeads(nn.Module):
    def __init__(self, d_model: int, classes: list[int]) -> None:
        super().__init__()
        self.heads = nn.ModuleList([ClassHead(d_model, n) for n in classes])

    def forward(self, hidden: torch.Tensor) -> list[torch.Tensor]:
        logits = []
        for i, head in enumerate(self.heads, start=1):
            logits.append(head(hidden[:, i:]))
        return logits


# === exercise: task-heads | function: TaskHeads | kind: subtle | what is wrong: the heads are built in a dict by number of classes, so two tasks with the same number of classes share one head
# told: named
# now: named
# says: one head shared by all tasks
class TaskHeads(nn.Module):
    def __init__(self, d_model: int, classes: list[int]) -> None:
        super().__init__()
        by_size = {n: ClassHead(d_model, n) for n in classes}
        self.heads = nn.ModuleList(by_size[n] for n in classes)

    def forward(self, hidden: torch.Tensor) -> list[torch.Tensor]:
        return [head(hidden[:, i:]) for i, head in enumerate(self.heads)]


# === exercise: task-heads | function: TaskHeads | kind: double | what is wrong: the heads are nn.Linear, whose weights are stored transposed as (classes, d_model), AND every head reads position 0 instead of its own position
# told: named
# now: named
# says: weights stored transposed
class TaskHeads(nn.Module):
    def __init__(self, d_model: int, classes: list[int]) -> None:
        super().__init__()
        self.heads = nn.ModuleList()
        for n_classes in classes:
            linear = nn.Linear(d_model, n_classes)
            nn.init.normal_(linear.weight, std=d_model**-0.5)
            nn.init.zeros_(linear.bias)
            self.heads.append(linear)

    def forward(self, hidden: torch.Tensor) -> list[torch.Tensor]:
        cls_output = hidden[:, 0]
        return [head(cls_output) for head in self.heads]
