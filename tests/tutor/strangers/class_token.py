"""Wrong answers to chapter 2, written from its notebook alone."""

# ruff: noqa: F811

import math

import torch
from torch import nn

from tests.tutor.bank import stranger


@stranger(
    "class-token",
    "zeros in place of small random numbers",
    kind="plain",
    first="named",
    verdict="named",
    says="the weights all start alike",
)
class ClassToken(nn.Module):
    def __init__(self, d_model, count=1):
        super().__init__()
        self.token = nn.Parameter(torch.zeros(count, d_model))

    def forward(self, x):
        tokens = self.token.expand(x.shape[0], -1, -1)
        return torch.cat((tokens, x), dim=1)


@stranger(
    "class-token",
    "only the first of several tokens is used",
    kind="subtle",
    first="named",
    verdict="named",
    says="only one of several class tokens is prepended",
)
class ClassToken(nn.Module):
    def __init__(self, d_model, count=1):
        super().__init__()
        self.token = nn.Parameter(torch.randn(count, d_model) * 0.02)

    def forward(self, x):
        first = self.token[0].expand(x.shape[0], 1, -1)
        return torch.cat([first, x], dim=1)


@stranger(
    "class-token",
    "the .data of the parameter is used, so no gradient",
    kind="subtle",
    first="named",
    verdict="named",
    says="no gradient comes back",
)
class ClassToken(nn.Module):
    def __init__(self, d_model, count=1):
        super().__init__()
        self.token = nn.Parameter(0.02 * torch.randn(count, d_model))

    def forward(self, x):
        batch = x.size(0)
        tokens = torch.stack([self.token.data for _ in range(batch)])
        return torch.cat((tokens, x), 1)


@stranger(
    "class-token",
    "uniform numbers (rand) AND the tokens stand at the end",
    kind="double",
    first="named",
    verdict="named",
    says="the class token is appended at the end",
)
class ClassToken(nn.Module):
    def __init__(self, d_model, count=1):
        super().__init__()
        self.token = nn.Parameter(0.02 * torch.rand(count, d_model))

    def forward(self, x):
        tokens = self.token.unsqueeze(0).repeat(x.shape[0], 1, 1)
        return torch.cat((x, tokens), dim=1)


@stranger(
    "class-token",
    "repeat_interleave mixes up the order of the tokens",
    kind="subtle",
    first="told",
    verdict="named",
    says="the class tokens are mixed up over the batch",
)
class ClassToken(nn.Module):
    def __init__(self, d_model, count=1):
        super().__init__()
        self.count = count
        self.token = nn.Parameter(torch.randn(count, d_model) * 0.02)

    def forward(self, x):
        b, _, d = x.shape
        tokens = self.token.repeat_interleave(b, dim=0).reshape(b, self.count, d)
        return torch.cat((tokens, x), dim=1)


@stranger(
    "mask-with-class-token",
    "count is ignored, always one",
    kind="subtle",
    first="named",
    verdict="named",
    says="one entry whatever count is",
)
def mask_with_class_token(mask, count=1):
    ones = torch.ones_like(mask[:, :, :1])
    return torch.cat((ones, mask), dim=-1)


@stranger(
    "mask-with-class-token",
    "the first entry of the mask is repeated, not True (empty sequence)",
    kind="subtle",
    first="named",
    verdict="named",
    says="the first entry is copied",
)
def mask_with_class_token(mask, count=1):
    front = mask[..., :1].expand(-1, -1, count)
    return torch.cat([front, mask], dim=-1)


@stranger(
    "mask-with-class-token",
    "the first entries are overwritten, in place and without growing",
    kind="double",
    first="named",
    verdict="named",
    says="the mask is not extended",
)
def mask_with_class_token(mask, count=1):
    mask[:, :, :count] = True
    return mask


@stranger(
    "class-head",
    "the mean of all positions is read",
    kind="plain",
    first="named",
    verdict="named",
    says="the head reads the mean",
)
class ClassHead(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / d_model**0.5)
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, hidden):
        return hidden.mean(dim=1) @ self.weight + self.bias


@stranger(
    "class-head",
    "the weight is divided by the root of classes",
    kind="subtle",
    first="told",
    verdict="named",
    says="divided by the root of the number of classes",
)
class ClassHead(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / math.sqrt(classes))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, hidden):
        return hidden[:, 0] @ self.weight + self.bias


@stranger(
    "class-head",
    "squeeze drops the batch axis of a single sequence",
    kind="subtle",
    first="told",
    verdict="named",
    says="squeeze takes the axis of the batch away",
)
class ClassHead(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / d_model**0.5)
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, hidden):
        first = hidden[:, :1, :].squeeze()
        return first @ self.weight + self.bias


@stranger(
    "class-head",
    "a bias of random numbers AND a softmax on the logits",
    kind="double",
    first="named",
    verdict="named",
    says="probabilities in place of logits",
)
class ClassHead(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / d_model**0.5)
        self.bias = nn.Parameter(torch.randn(classes))

    def forward(self, hidden):
        logits = hidden[:, 0] @ self.weight + self.bias
        return torch.softmax(logits, dim=-1)


@stranger(
    "masked-mean",
    "1 is added to the count instead of at least 1",
    kind="subtle",
    first="named",
    verdict="named",
    says="one token too many in the divisor",
)
def masked_mean(hidden, mask):
    real = mask.mT
    total = (hidden * real).sum(dim=1)
    count = real.sum(dim=1)
    return total / (count + 1)


@stranger(
    "masked-mean",
    "0 times NaN padding is NaN AND divided by the number of the whole batch",
    kind="double",
    first="named",
    verdict="named",
    says="one number of tokens for the whole batch",
)
def masked_mean(hidden, mask):
    real = mask.transpose(1, 2).float()
    summed = torch.sum(hidden * real, dim=1)
    number = real.sum().clamp(min=1)
    return summed / number


@stranger(
    "masked-mean",
    "an empty sequence gets the mean of its padding",
    kind="subtle",
    first="shown",
    verdict="named",
    says="padding is read for a sequence without real tokens",
)
def masked_mean(hidden, mask):
    real = mask[:, 0, :, None]
    total = hidden.masked_fill(~real, 0).sum(1)
    count = real.sum(1)
    count[count == 0] = hidden.shape[1]
    mean = total / count
    return torch.where(count == hidden.shape[1], hidden.mean(1), mean)


@stranger(
    "masked-mean",
    "divided by the number of the longest sequence for all",
    kind="subtle",
    first="useless",
    verdict="named",
    says="one number of tokens for the whole batch",
)
def masked_mean(hidden, mask):
    longest = int(mask.sum(-1).max())
    real = mask.mT
    total = hidden.masked_fill(~real, 0.0).sum(dim=1)
    return total / max(longest, 1)


@stranger(
    "masked-mean",
    "the mask is turned round",
    kind="plain",
    first="told",
    verdict="named",
    says="mask inverted",
)
class MeanHead(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / d_model**0.5)
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, hidden, mask=None):
        if mask is None:
            return hidden.mean(1) @ self.weight + self.bias
        return masked_mean(hidden, ~mask) @ self.weight + self.bias


@stranger(
    "masked-mean",
    "without a mask only the first position is read",
    kind="subtle",
    first="named",
    verdict="named",
    says="the head reads position 0",
)
class MeanHead(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / math.sqrt(d_model))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, hidden, mask=None):
        if mask is None:
            mask = torch.zeros(hidden.shape[0], 1, hidden.shape[1], dtype=torch.bool)
            mask[..., 0] = True
        return masked_mean(hidden, mask) @ self.weight + self.bias


@stranger(
    "masked-mean",
    "an empty sequence gets no bias, for the bias is inside the mean",
    kind="subtle",
    first="named",
    verdict="named",
    says="the bias is masked, too",
)
class MeanHead(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / math.sqrt(d_model))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, hidden, mask=None):
        b, t, _ = hidden.shape
        if mask is None:
            mask = torch.ones(b, 1, t, dtype=torch.bool)
        scores = hidden @ self.weight + self.bias
        return masked_mean(scores, mask)


@stranger(
    "masked-mean",
    "uniform weights AND the mask is not used",
    kind="double",
    first="named",
    verdict="named",
    says="mask ignored",
)
class MeanHead(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(d_model, classes) / math.sqrt(d_model))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, hidden, mask=None):
        return hidden.mean(1) @ self.weight + self.bias


@stranger(
    "readout-behaviour",
    "the maximum is called equivariant",
    kind="plain",
    first="named",
    verdict="named",
    says="a single answer is called equivariant",
)
def readout_behaviour():
    return {
        "class_token": "invariant",
        "mean": "invariant",
        "maximum": "equivariant",
        "last_token": "neither",
        "flattened": "neither",
        "token_head": "equivariant",
        "class_token_with_positions": "neither",
        "token_head_with_positions": "neither",
    }


@stranger(
    "readout-behaviour",
    "flattened taken for equivariant AND positions forgotten at the token head",
    kind="double",
    first="named",
    verdict="named",
    says="a single answer is called equivariant",
)
def readout_behaviour():
    return {
        "class_token": "invariant",
        "mean": "invariant",
        "maximum": "invariant",
        "last_token": "neither",
        "flattened": "equivariant",
        "token_head": "equivariant",
        "class_token_with_positions": "neither",
        "token_head_with_positions": "equivariant",
    }


@stranger(
    "task-heads",
    "task i reads the position i from the end",
    kind="subtle",
    first="shown",
    verdict="named",
    says="positions counted from the end",
)
class TaskHeads(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        self.heads = nn.ModuleList([ClassHead(d_model, n) for n in classes])

    def forward(self, hidden):
        return [head(hidden[:, -i:]) for i, head in enumerate(self.heads)]


@stranger(
    "task-heads",
    "positions are counted from 1",
    kind="plain",
    first="named",
    verdict="named",
    says="class tokens counted from 1",
)
class TaskHeads(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        self.heads = nn.ModuleList([ClassHead(d_model, n) for n in classes])

    def forward(self, hidden):
        answers = []
        for i, head in enumerate(self.heads, start=1):
            answers.append(head(hidden[:, i:]))
        return answers


@stranger(
    "task-heads",
    "a tuple is returned AND every task has the classes of the first",
    kind="double",
    first="told",
    verdict="named",
    says="every head has the classes of the first",
)
class TaskHeads(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        self.heads = nn.ModuleList(ClassHead(d_model, classes[0]) for _ in classes)

    def forward(self, hidden):
        return tuple(head(hidden[:, i:]) for i, head in enumerate(self.heads))


# --- a second round, after the checks were mended from the first ---


@stranger(
    "class-token",
    "with several class tokens all start with the same numbers",
    kind="subtle",
    first="named",
    verdict="named",
    says="the weights all start alike",
    round=2,
)
class ClassToken(nn.Module):
    def __init__(self, d_model, count=1):
        super().__init__()
        self.token = nn.Parameter(0.02 * torch.randn(d_model).repeat(count, 1))

    def forward(self, x):
        tokens = self.token.expand(x.shape[0], -1, -1)
        return torch.cat([tokens, x], dim=1)


@stranger(
    "mask-with-class-token",
    "the new entries copy the first token's: False where a sequence is all padding",
    kind="subtle",
    first="named",
    verdict="named",
    says="the first entry is copied",
    round=2,
)
def mask_with_class_token(mask, count=1):
    first = mask[:, :, :1].expand(-1, -1, count)
    return torch.cat((first, mask), dim=-1)


@stranger(
    "class-head",
    "a softmax is applied AND the bias starts with random numbers",
    kind="double",
    first="named",
    verdict="named",
    says="probabilities in place of logits",
    round=2,
)
class ClassHead(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / math.sqrt(d_model))
        self.bias = nn.Parameter(torch.randn(classes) / math.sqrt(d_model))

    def forward(self, hidden):
        logits = hidden[:, 0] @ self.weight + self.bias
        return torch.softmax(logits, dim=-1)


@stranger(
    "masked-mean",
    "divided by the number of real tokens of the whole batch",
    kind="subtle",
    first="named",
    verdict="named",
    says="one number of tokens for the whole batch",
    round=2,
)
def masked_mean(hidden, mask):
    real = mask.mT
    total = hidden.masked_fill(~real, 0.0).sum(dim=1)
    return total / real.sum().clamp(min=1)


@stranger(
    "masked-mean",
    "a sequence without real tokens gets the mean of its padding",
    kind="subtle",
    first="named",
    verdict="named",
    says="padding is read for a sequence without real tokens",
    round=2,
)
def masked_mean(hidden, mask):
    real = mask.mT
    count = real.sum(dim=1)
    total = hidden.masked_fill(~real, 0.0).sum(dim=1)
    return torch.where(count == 0, hidden.mean(dim=1), total / count.clamp(min=1))


@stranger(
    "masked-mean",
    "the mean is taken of the logits: without real tokens they are 0, not the bias",
    kind="subtle",
    first="named",
    verdict="named",
    says="the bias is masked, too",
    round=2,
)
class MeanHead(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / math.sqrt(d_model))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, hidden, mask=None):
        if mask is None:
            mask = torch.ones(hidden.shape[0], 1, hidden.shape[1], dtype=torch.bool)
        logits = hidden @ self.weight + self.bias
        return masked_mean(logits, mask)


@stranger(
    "readout-behaviour",
    "the last token is called equivariant AND the maximum neither",
    kind="double",
    first="named",
    verdict="named",
    says="neither although the tokens only changed places",
    round=2,
)
def readout_behaviour():
    return {
        "class_token": "invariant",
        "mean": "invariant",
        "maximum": "neither",
        "last_token": "equivariant",
        "flattened": "neither",
        "token_head": "equivariant",
        "class_token_with_positions": "neither",
        "token_head_with_positions": "neither",
    }


@stranger(
    "task-heads",
    "head i reads position i + 1",
    first="named",
    verdict="named",
    says="class tokens counted from 1",
    round=2,
)
class TaskHeads(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        self.heads = nn.ModuleList([ClassHead(d_model, n) for n in classes])

    def forward(self, hidden):
        return [head(hidden[:, i:]) for i, head in enumerate(self.heads, start=1)]


# --- a third round, of what came later ---


@stranger(
    "task-heads",
    "the positions are counted from behind: task i reads position -1 - i",
    kind="plain",
    first="named",
    verdict="named",
    says="the heads read the last positions",
    round=3,
)
class TaskHeads(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        self.heads = nn.ModuleList(ClassHead(d_model, n) for n in classes)

    def forward(self, hidden):
        result = []
        for i, head in enumerate(self.heads):
            result.append(head(hidden.flip(1)[:, i:]))
        return result


@stranger(
    "task-heads",
    "all heads read the mean of the class tokens in place of each its own position",
    kind="subtle",
    first="shown",
    verdict="named",
    says="the heads read the mean of the class tokens",
    round=3,
)
class TaskHeads(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        self.heads = nn.ModuleList([ClassHead(d_model, n) for n in classes])

    def forward(self, hidden):
        tokens = hidden[:, : len(self.heads)].mean(dim=1, keepdim=True)
        return [head(tokens) for head in self.heads]


@stranger(
    "task-heads",
    "tasks with the same number of classes share one head AND a tuple is returned",
    kind="double",
    first="named",
    verdict="named",
    says="one head shared by all tasks",
    round=3,
)
class TaskHeads(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        made = {}
        for n in classes:
            if n not in made:
                made[n] = ClassHead(d_model, n)
        self.heads = nn.ModuleList([made[n] for n in classes])

    def forward(self, hidden):
        return tuple(head(hidden[:, i:]) for i, head in enumerate(self.heads))
