# ruff: noqa
# fmt: off

# === exercise: class-token | function: ClassToken | kind: plain | what is wrong: 0.02 is taken for the variance, so the token starts with a standard deviation of sqrt(0.02) = 0.141 instead of 0.02; everything else is right
# told: named
# now: named
# says: the weights start too large
class ClassToken(nn.Module):
    """Put trained vectors in front of every sequence (BERT 2018, ViT 2020)."""

    def __init__(self, d_model: int, count: int = 1) -> None:
        super().__init__()
        variance = 0.02
        self.token = nn.Parameter(torch.empty(count, d_model))
        nn.init.normal_(self.token, mean=0.0, std=math.sqrt(variance))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        in_front = self.token.expand(x.shape[0], -1, -1)
        return torch.cat([in_front, x], dim=1)


# === exercise: class-token | function: ClassToken | kind: plain | what is wrong: forward reads self.token.data, which is cut off from the graph, so the values are right but the parameter never receives a gradient and is in effect frozen
# told: named
# now: named
# says: no gradient comes back
class ClassToken(nn.Module):
    def __init__(self, d_model, count=1):
        super().__init__()
        self.token = nn.Parameter(0.02 * torch.randn(count, d_model))

    def forward(self, x):
        batch, length, width = x.shape
        # the raw numbers, once per sequence
        tokens = self.token.data.unsqueeze(0).repeat(batch, 1, 1)
        return torch.cat((tokens, x), dim=1)


# === exercise: class-token | function: ClassToken | kind: subtle | what is wrong: the parameter is stored as (1, count, d_model), as in timm's cls_token, instead of (count, d_model); the output is right, only the shape of the parameter (and so loading a (count, d_model) token) breaks the contract
# told: named
# now: named
# says: one axis too many
class ClassToken(nn.Module):
    """Class tokens in the style of the ViT code."""

    def __init__(self, d_model: int, count: int = 1) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.randn(1, count, d_model) * 0.02)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        cls_tokens = self.token.expand(x.shape[0], -1, -1)
        return torch.cat((cls_tokens, x), dim=1)


# === exercise: class-token | function: ClassToken | kind: subtle | what is wrong: only one vector (1, d_model) is trained and shown count times, so for count > 1 the parameter has the wrong shape and all class tokens are the same vector; with count = 1 nothing shows
# told: named
# now: named
# says: one vector for all class tokens
class ClassToken(nn.Module):
    def __init__(self, d_model: int, count: int = 1) -> None:
        super().__init__()
        self.count = count
        self.token = nn.Parameter(torch.randn(1, d_model).mul(0.02))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b = x.size(0)
        front = self.token[None].expand(b, self.count, -1)
        return torch.cat((front, x), 1)


# === exercise: class-token | function: ClassToken | kind: double | what is wrong: the parameter starts with zeros instead of random numbers of standard deviation 0.02; the class tokens are joined behind the words (last positions) instead of in front
# told: named
# now: named
# says: the class token is appended at the end
class ClassToken(nn.Module):
    def __init__(self, d_model: int, count: int = 1) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.zeros(count, d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        summary = self.token.unsqueeze(0).expand(len(x), -1, -1)
        # the summary comes after everything that it has to summarise
        return torch.cat((x, summary), dim=1)


# === exercise: class-token | function: ClassToken | kind: double | what is wrong: torch.rand draws uniform numbers between 0 and 0.02 (mean 0.01) instead of normal ones; the tokens overwrite the first count words of every sequence, so the result has length T instead of count + T and words are lost
# told: named
# now: named
# says: the class token replaces the first token
class ClassToken(nn.Module):
    def __init__(self, d_model, count=1):
        super().__init__()
        self.count = count
        self.token = nn.Parameter(0.02 * torch.rand(count, d_model))

    def forward(self, x):
        # position 0 is [CLS], as in BERT
        words = x[:, self.count:]
        cls = self.token.expand(x.size(0), -1, -1)
        return torch.cat([cls, words], dim=1)


# === exercise: mask-with-class-token | function: mask_with_class_token | kind: plain | what is wrong: F.pad fills with its default value 0, so the new entries in front are False and the class tokens count as padding
# told: named
# now: named
# says: the mask is extended with False
def mask_with_class_token(mask: torch.Tensor, count: int = 1) -> torch.Tensor:
    # (left, right) of the last axis
    return F.pad(mask, (count, 0))


# === exercise: mask-with-class-token | function: mask_with_class_token | kind: subtle | what is wrong: the new entries are ones_like of a slice of the mask, which has only T entries when count > T, so with more class tokens than positions the result is too short (2T instead of count + T)
# told: named
# now: named
# says: no more new entries than the mask is long
def mask_with_class_token(mask: torch.Tensor, count: int = 1) -> torch.Tensor:
    # same dtype, same device, same number of sequences
    always = torch.ones_like(mask[:, :, :count])
    return torch.cat((always, mask), dim=-1)


# === exercise: mask-with-class-token | function: mask_with_class_token | kind: subtle | what is wrong: the new entries are copies of the mask's first entry instead of True, so a sequence whose first position is padding (one without any real token, or padded on the left) gets class tokens that are False
# told: named
# now: named
# says: the first entry is copied
def mask_with_class_token(mask, count=1):
    first = mask[..., :1].expand(-1, -1, count)  # already boolean
    return torch.cat([first, mask], dim=-1)


# === exercise: mask-with-class-token | function: mask_with_class_token | kind: subtle | what is wrong: always exactly one True is put in front and count is never used, so with count other than 1 the mask has the wrong length
# told: named
# now: named
# says: one entry whatever count is
def mask_with_class_token(mask: torch.Tensor, count: int = 1) -> torch.Tensor:
    batch, one, length = mask.shape
    extended = torch.ones(batch, one, length + 1, dtype=torch.bool, device=mask.device)
    extended[:, :, 1:] = mask
    return extended


# === exercise: mask-with-class-token | function: mask_with_class_token | kind: double | what is wrong: the axis in the middle is dropped, so the result is (B, count + T) as PyTorch's key_padding_mask instead of (B, 1, count + T); the new entries are at the end instead of in front
# told: told
# now: told
# says: the mask loses its middle axis
# line: 4
def mask_with_class_token(mask: torch.Tensor, count: int = 1) -> torch.Tensor:
    keys = mask.squeeze(1)
    extra = keys.new_ones((keys.shape[0], count))
    return torch.cat((keys, extra), dim=1)


# === exercise: class-head | function: ClassHead | kind: plain | what is wrong: the vector at position 0 goes through a tanh (BERT's pooler) before the linear map, which the statement does not ask for: (1, 2) W is computed with (.76, .96)
# told: shown
# now: named
# says: squashed before the linear map
class ClassHead(nn.Module):
    """Classify a sequence by the output at position 0, the class token's."""

    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / math.sqrt(d_model))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        pooled = torch.tanh(hidden[:, 0])
        return pooled @ self.weight + self.bias


# === exercise: class-head | function: ClassHead | kind: plain | what is wrong: the weight is stored transposed, (classes, d_model), as nn.Linear keeps it, instead of (d_model, classes)
# told: named
# now: named
# says: weights stored transposed
class ClassHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(classes, d_model) * d_model ** -0.5)
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return F.linear(hidden[:, 0, :], self.weight, self.bias)


# === exercise: class-head | function: ClassHead | kind: subtle | what is wrong: squeeze() without an axis also removes the axis of the batch when B = 1, so for a single sequence the logits have the shape (classes,) instead of (1, classes)
# told: named
# now: named
# says: squeeze takes the axis of the batch away
class ClassHead(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        scale = 1 / math.sqrt(d_model)
        self.weight = nn.Parameter(scale * torch.randn(d_model, classes))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, hidden):
        cls = hidden[:, :1].squeeze()
        return cls @ self.weight + self.bias


# === exercise: class-head | function: ClassHead | kind: double | what is wrong: xavier_normal_ gives a standard deviation of sqrt(2 / (d_model + classes)) instead of 1/sqrt(d_model); the bias starts with random numbers instead of zeros
# told: passed
# now: named
# says: the biases do not start at zero
class ClassHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(d_model, classes))
        self.bias = nn.Parameter(torch.empty(classes))
        self.reset_parameters(d_model)

    def reset_parameters(self, d_model: int) -> None:
        nn.init.xavier_normal_(self.weight)
        nn.init.normal_(self.bias, std=1 / math.sqrt(d_model))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return torch.einsum("bd,dc->bc", hidden[:, 0], self.weight) + self.bias


# === exercise: class-head | function: ClassHead | kind: double | what is wrong: the last position is read (hidden[:, -1], as for a GPT classifier) instead of position 0; log-probabilities are returned in place of logits
# told: shown
# now: named
# says: the head reads the last position, and logarithms of probabilities in place of logits
class ClassHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / d_model ** 0.5)
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        # the last position has seen everything
        scores = hidden[:, -1] @ self.weight + self.bias
        return F.log_softmax(scores, dim=-1)


# === exercise: masked-mean | function: MeanHead | kind: plain | what is wrong: for mask=None the head makes a mask of zeros (PyTorch's convention, False = not hidden), so no position is real, the mean is zero and the logits are the bias whatever the input
# told: named
# now: named
# says: without a mask nothing is real
def masked_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    column = mask.transpose(1, 2)
    total = hidden.masked_fill(~column, 0.0).sum(dim=1)
    return total / column.sum(dim=1).clamp(min=1)


class MeanHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / math.sqrt(d_model))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, hidden, mask=None):
        if mask is None:
            # nothing is masked
            batch, length, _ = hidden.shape
            mask = torch.zeros(batch, 1, length, dtype=torch.bool, device=hidden.device)
        return masked_mean(hidden, mask) @ self.weight + self.bias


# === exercise: masked-mean | function: masked_mean | kind: plain | what is wrong: masked_fill gets the mask without ~, so it puts 0 at the real tokens and sums the padding; the number of real tokens is right
# told: named
# now: named
# says: mask inverted
def masked_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    m = mask.mT  # (B, T, 1)
    kept = hidden.masked_fill(m, 0)
    lengths = m.sum(1).clamp(min=1)
    return kept.sum(1) / lengths


class MeanHead(nn.Module):
    """Classify a sequence by the mean of the outputs of its real tokens."""

    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / math.sqrt(d_model))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(
        self, hidden: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        if mask is None:
            mask = hidden.new_ones((hidden.shape[0], 1, hidden.shape[1]), dtype=torch.bool)
        return masked_mean(hidden, mask) @ self.weight + self.bias


# === exercise: masked-mean | function: MeanHead | kind: subtle | what is wrong: the head maps every token to logits with the bias and takes the masked mean afterwards, which is the same except for a sequence without real tokens: its logits are zeros instead of the bias (zero mean times W plus b)
# told: named
# now: named
# says: the bias is masked, too
def masked_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    real = mask.mT
    zero = torch.zeros((), dtype=hidden.dtype, device=hidden.device)
    total = torch.where(real, hidden, zero).sum(dim=1)
    return total / real.sum(dim=1).clamp(min=1)


class MeanHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / d_model ** 0.5)
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, hidden, mask=None):
        if mask is None:
            mask = torch.ones_like(hidden[..., 0], dtype=torch.bool).unsqueeze(1)
        # a linear map and a mean can change places
        votes = hidden @ self.weight + self.bias  # (B, T, classes)
        return masked_mean(votes, mask)


# === exercise: masked-mean | function: MeanHead | kind: subtle | what is wrong: without a mask the head guesses one from the data (rows of zeros are padding, as Keras's Masking layer does) instead of taking every position as real; shows only with mask=None and a row that is all zeros
# told: named
# now: named
# says: rows of zeros are taken for padding
def masked_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    keep = mask[:, 0, :, None]  # (B, T, 1)
    summed = hidden.masked_fill(~keep, 0).sum(1)
    return summed / keep.sum(1).clamp_min(1)


class MeanHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / math.sqrt(d_model))
        self.bias = nn.Parameter(torch.zeros(classes))

    @staticmethod
    def compute_mask(hidden):
        return (hidden != 0).any(dim=-1)[:, None, :]

    def forward(self, hidden, mask=None):
        mask = self.compute_mask(hidden) if mask is None else mask
        return masked_mean(hidden, mask) @ self.weight + self.bias


# === exercise: masked-mean | function: masked_mean | kind: subtle | what is wrong: the padding is cut off by a product with the mask and 0/0 is repaired afterwards with nan_to_num, so the value for a sequence without real tokens is right, but the gradient that reaches its hidden rows is NaN
# told: named
# now: named
# says: NaN gradient for a sequence without real tokens
def masked_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    weights = mask.mT.to(hidden.dtype)
    mean = (hidden * weights).sum(dim=1) / weights.sum(dim=1)
    return torch.nan_to_num(mean, nan=0.0)  # empty sequences: 0/0


class MeanHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / math.sqrt(d_model))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(
        self, hidden: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        if mask is None:
            shape = (hidden.size(0), 1, hidden.size(1))
            mask = torch.ones(shape, dtype=torch.bool, device=hidden.device)
        pooled = masked_mean(hidden, mask)
        return pooled @ self.weight + self.bias


# === exercise: masked-mean | function: masked_mean | kind: double | what is wrong: masked_mean sets the padding to 0 but .mean(1) still divides by T, the padding counted; MeanHead returns probabilities (softmax) in place of logits
# told: named
# now: named
# says: divided by T in place of the number of real tokens
def masked_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    column = mask.mT
    return hidden.masked_fill(~column, 0.0).mean(dim=1)


class MeanHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / math.sqrt(d_model))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, hidden, mask=None):
        if mask is None:
            mask = torch.ones(len(hidden), 1, hidden.shape[1], dtype=torch.bool, device=hidden.device)
        y = masked_mean(hidden, mask) @ self.weight + self.bias
        return y.softmax(dim=-1)


# === exercise: masked-mean | function: masked_mean | kind: double | what is wrong: the number of real tokens is used as a length and the first n rows are averaged, which is wrong for a mask whose True entries are not all at the beginning; a sequence without real tokens gives NaN (the mean of an empty slice) instead of zeros
# told: named
# now: named
# says: the first rows in place of the real ones
def masked_mean(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    lengths = mask.sum(dim=-1).squeeze(1).tolist()
    means = []
    for rows, n in zip(hidden, lengths):
        means.append(rows[:n].mean(dim=0))
    return torch.stack(means)


class MeanHead(nn.Module):
    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / math.sqrt(d_model))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, hidden, mask=None):
        pooled = hidden.mean(dim=1) if mask is None else masked_mean(hidden, mask)
        return pooled @ self.weight + self.bias


# === exercise: readout-behaviour | function: readout_behaviour | kind: plain | what is wrong: "token_head_with_positions" is called equivariant, as if the positions moved along with the words; they stay at their places, so it is neither
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
        # still one label for each word, and the label goes with its word
        "token_head_with_positions": "equivariant",
    }


# === exercise: readout-behaviour | function: readout_behaviour | kind: double | what is wrong: "flattened" is called equivariant (the weights of each place do not move with the words: neither); "class_token_with_positions" is called invariant because the class token keeps its own position, although the words have other positions after the permutation: neither
# told: named
# now: named
# says: a single answer is called equivariant
def readout_behaviour():
    answer = {}
    for key in ("class_token", "mean", "maximum"):
        answer[key] = "invariant"
    # has all the rows, and they are reordered
    for key in ("flattened", "token_head"):
        answer[key] = "equivariant"
    answer["last_token"] = "neither"
    # the class token is always at position 0
    answer["class_token_with_positions"] = "invariant"
    answer["token_head_with_positions"] = "neither"
    return answer


# === exercise: readout-behaviour | function: readout_behaviour | kind: double | what is wrong: "maximum" is called neither, as if the largest output depended on the place it stands at (it is invariant); "last_token" is called equivariant because its output goes with the word, but it has no row for each word: neither
# told: named
# now: named
# says: neither although the tokens only changed places
def readout_behaviour() -> dict[str, str]:
    invariant, equivariant, neither = "invariant", "equivariant", "neither"
    return dict(
        class_token=invariant,
        mean=invariant,
        maximum=neither,  # picks one certain word for each feature
        last_token=equivariant,  # moves when the last word moves
        flattened=neither,
        token_head=equivariant,
        class_token_with_positions=neither,
        token_head_with_positions=neither,
    )


# === exercise: tagging-loss | function: tagging_loss | kind: plain | what is wrong: reshape instead of a transpose brings the logits (B, T, classes) into the shape (B, classes, T), so the numbers of different words and classes are mixed up
# told: named
# now: named
# says: reshaped in place of transposed
def tagging_loss(
    logits: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor, count: int = 1
) -> torch.Tensor:
    words = logits[:, count:]
    batch, length, classes = words.shape
    # cross_entropy wants the classes on axis 1
    losses = F.cross_entropy(words.reshape(batch, classes, length), tags, reduction="none")
    real = mask[:, 0]
    return losses.masked_fill(~real, 0.0).sum() / real.sum().clamp(min=1)


# === exercise: tagging-loss | function: tagging_loss | kind: plain | what is wrong: the losses of the padding are set to 0 but the final .mean() divides by all B * T positions instead of the number of words
# told: named
# now: named
# says: the mean over all positions
def tagging_loss(logits, tags, mask, count=1):
    log_p = logits[:, count:].log_softmax(dim=-1)
    nll = -log_p.gather(-1, tags.unsqueeze(-1)).squeeze(-1)  # (B, T)
    nll = torch.where(mask.squeeze(1), nll, torch.zeros_like(nll))
    return nll.mean()


# === exercise: tagging-loss | function: tagging_loss | kind: subtle | what is wrong: the result of masked_mean on the flattened batch is returned as it is, so the value is right but the shape is (1, 1) instead of ()
# told: named
# now: named
# says: a list of one number
def tagging_loss(
    logits: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor, count: int = 1
) -> torch.Tensor:
    losses = F.cross_entropy(logits[:, count:].mT, tags, reduction="none")
    # the whole batch as one long sequence with one feature
    one_sequence = losses.reshape(1, -1, 1)
    one_mask = mask.reshape(1, 1, -1)
    return masked_mean(one_sequence, one_mask)


# === exercise: tagging-loss | function: tagging_loss | kind: subtle | what is wrong: the padding's tags become 0 and ignore_index=0 leaves class 0 out, although 0 is a tag like the others, so words whose tag is 0 are not scored and not counted; nothing shows when no word has the tag 0
# told: named
# now: named
# says: tag 0 is taken for padding
def tagging_loss(
    logits: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor, count: int = 1
) -> torch.Tensor:
    pad = 0
    targets = tags.masked_fill(~mask[:, 0], pad).flatten()
    rows = logits[:, count:].flatten(0, 1)
    total = F.cross_entropy(rows, targets, ignore_index=pad, reduction="sum")
    number = (targets != pad).sum().clamp(min=1)
    return total / number


# === exercise: tagging-loss | function: tagging_loss | kind: double | what is wrong: the first T rows are kept, so the last rows are left out in place of the class tokens' and every word is compared with a wrong row; the mean of each sentence is taken first and then the mean of the sentences, so words of short sentences count more
# told: named
# now: named
# says: the end is left out in place of the class tokens, and the mean of the sentences' means
def tagging_loss(logits, tags, mask, count=1):
    length = tags.shape[1]
    rows = logits[:, :length]
    losses = F.cross_entropy(rows.transpose(1, 2), tags, reduction="none")
    real = mask[:, 0]
    per_sentence = losses.masked_fill(~real, 0).sum(1) / real.sum(1).clamp(min=1)
    return per_sentence.mean()


# === exercise: tagging-loss | function: tagging_loss | kind: double | what is wrong: softmax is applied before cross_entropy, which applies its own (softmax twice); without any word the mean of an empty selection gives NaN instead of 0
# told: named
# now: named
# says: softmax taken twice
def tagging_loss(
    logits: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor, count: int = 1
) -> torch.Tensor:
    is_word = mask[:, 0]  # (B, T)
    probabilities = logits[:, count:].softmax(dim=-1)
    return F.cross_entropy(probabilities[is_word], tags[is_word])


# === exercise: task-heads | function: TaskHeads | kind: plain | what is wrong: the heads are nn.Linear modules, whose weight is stored transposed, (classes_i, d_model), instead of (d_model, classes_i)
# told: named
# now: named
# says: weights stored transposed
class TaskHeads(nn.Module):
    def __init__(self, d_model: int, classes: list[int]) -> None:
        super().__init__()
        self.heads = nn.ModuleList()
        for n in classes:
            self.heads.append(nn.Linear(d_model, n))

    def forward(self, hidden: torch.Tensor) -> list[torch.Tensor]:
        return [head(hidden[:, i]) for i, head in enumerate(self.heads)]


# === exercise: task-heads | function: TaskHeads | kind: plain | what is wrong: the tasks are counted from 1, so head i reads position i + 1 instead of position i (task 0 gets the second class token, the last task a word)
# told: named
# now: named
# says: class tokens counted from 1
class TaskHeads(nn.Module):
    """Answer task i from the output of its class token."""

    def __init__(self, d_model: int, classes: list[int]) -> None:
        super().__init__()
        self.heads = nn.ModuleList([ClassHead(d_model, n) for n in classes])

    def forward(self, hidden: torch.Tensor) -> list[torch.Tensor]:
        answers = []
        for position, head in enumerate(self.heads, start=1):
            answers.append(head(hidden[:, position:]))
        return answers


# === exercise: task-heads | function: TaskHeads | kind: subtle | what is wrong: the heads are made once for each number of classes and looked up, so two tasks with the same number of classes share one head (same parameters); nothing shows when all numbers differ
# told: named
# now: named
# says: one head shared by all tasks
class TaskHeads(nn.Module):
    def __init__(self, d_model: int, classes: list[int]) -> None:
        super().__init__()
        by_size = {n: ClassHead(d_model, n) for n in classes}
        self.heads = nn.ModuleList([by_size[n] for n in classes])

    def forward(self, hidden: torch.Tensor) -> list[torch.Tensor]:
        return [head(hidden[:, i:]) for i, head in enumerate(self.heads)]


# === exercise: task-heads | function: TaskHeads | kind: double | what is wrong: the heads are in an ordinary Python list, so their parameters are not found by parameters() or state_dict(); the logits of all tasks are concatenated into one tensor (B, sum of classes) instead of returned as a list
# told: named
# now: named
# says: an ordinary list in place of nn.ModuleList
class TaskHeads(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        self.heads = [ClassHead(d_model, n) for n in classes]

    def forward(self, hidden):
        logits = [self.heads[i](hidden[:, i:]) for i in range(len(self.heads))]
        return torch.cat(logits, dim=-1)
