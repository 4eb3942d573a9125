"""Wrong and right answers to the exercises of chapter 2."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from mistakes import right, wrong


def average(hidden, mask=None):
    """Average the real tokens of each sequence."""
    if mask is None:
        return hidden.mean(1)
    real = mask.mT.to(hidden.dtype)
    return (hidden * real).sum(1) / real.sum(1).clamp_min(1)


class Head(nn.Module):
    """What the three heads have in common: their parameters."""

    def __init__(self, d_model, classes):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / math.sqrt(d_model))
        self.bias = nn.Parameter(torch.zeros(classes))

    def logits(self, x):
        return x @ self.weight + self.bias


class Token(nn.Module):
    """The class token's parameter."""

    def __init__(self, d_model, count=1):
        super().__init__()
        self.token = nn.Parameter(0.02 * torch.randn(count, d_model))

    def expanded(self, x):
        return self.token.expand(len(x), -1, -1)


# --- the class token ------------------------------------------------------------------


@wrong("class-token", "one token per sequence position")
class ClassToken(Token):
    def forward(self, x):
        return torch.cat((self.token[:1].expand_as(x), x), dim=1)


@wrong("class-token", "a class token before every token")
class ClassToken(Token):
    def forward(self, x):
        pairs = torch.stack((self.token[0].expand_as(x), x), dim=2)
        return pairs.flatten(1, 2)


@wrong("class-token", "the class token is not expanded over the batch")
class ClassToken(Token):
    def forward(self, x):
        return torch.cat((self.token[None], x), dim=1)


@wrong("class-token", "the class token is not expanded over the batch")
class ClassToken(Token):
    def forward(self, x):
        return torch.cat((self.token, x), dim=1)


@wrong("class-token", "a buffer in place of a parameter")
class ClassToken(Token):
    def __init__(self, d_model, count=1):
        nn.Module.__init__(self)
        self.register_buffer("token", 0.02 * torch.randn(count, d_model))

    def forward(self, x):
        return torch.cat((self.expanded(x), x), dim=1)


@wrong("class-token", "a buffer in place of a parameter")
class ClassToken(Token):
    def __init__(self, d_model, count=1):
        super().__init__(d_model, count)
        frozen = self.token.detach().clone()
        del self.token
        self.register_buffer("token", frozen)

    def forward(self, x):
        return torch.cat((self.expanded(x), x), dim=1)


@wrong("class-token", "parameters are missing")
class ClassToken(nn.Module):
    def __init__(self, d_model, count=1):
        super().__init__()
        self.token = 0.02 * torch.randn(count, d_model)

    def forward(self, x):
        return torch.cat((self.token.expand(len(x), -1, -1), x), dim=1)


@wrong("class-token", "parameters are missing")
class ClassToken(nn.Module):
    def __init__(self, d_model, count=1):
        super().__init__()
        self.count = count

    def forward(self, x):
        token = torch.randn(len(x), self.count, x.shape[-1])
        return torch.cat((token, x), dim=1)


@wrong("class-token", "one axis too many")
class ClassToken(nn.Module):
    def __init__(self, d_model, count=1):
        super().__init__()
        self.token = nn.Parameter(0.02 * torch.randn(1, count, d_model))

    def forward(self, x):
        return torch.cat((self.token.expand(len(x), -1, -1), x), dim=1)


@wrong("class-token", "an axis missing in the parameter")
class ClassToken(nn.Module):
    def __init__(self, d_model, count=1):
        super().__init__()
        self.token = nn.Parameter(0.02 * torch.randn(d_model))

    def forward(self, x):
        return torch.cat((self.token.expand(len(x), 1, -1), x), dim=1)


@wrong("class-token", "one vector for all class tokens")
class ClassToken(nn.Module):
    def __init__(self, d_model, count=1):
        super().__init__()
        self.count = count
        self.token = nn.Parameter(0.02 * torch.randn(1, d_model))

    def forward(self, x):
        return torch.cat((self.token.expand(len(x), self.count, -1), x), dim=1)


@wrong("class-token", "the parameters have other names")
class ClassToken(nn.Module):
    def __init__(self, d_model, count=1):
        super().__init__()
        self.cls = nn.Parameter(0.02 * torch.randn(count, d_model))

    def forward(self, x):
        return torch.cat((self.cls.expand(len(x), -1, -1), x), dim=1)


@wrong("class-token", "several class tokens in reverse order")
class ClassToken(Token):
    def forward(self, x):
        for vector in self.token:
            x = torch.cat((vector.expand(len(x), 1, -1), x), dim=1)
        return x


@wrong("class-token", "the weights start too large")
class ClassToken(Token):
    def __init__(self, d_model, count=1):
        nn.Module.__init__(self)
        self.token = nn.Parameter(torch.randn(count, d_model))

    def forward(self, x):
        return torch.cat((self.expanded(x), x), dim=1)


@wrong("class-token", "the weights do not start around 0")
class ClassToken(Token):
    def __init__(self, d_model, count=1):
        nn.Module.__init__(self)
        self.token = nn.Parameter(0.02 * torch.rand(count, d_model))

    def forward(self, x):
        return torch.cat((self.expanded(x), x), dim=1)


@wrong("class-token", "the factor 0.02 is applied at every call")
class ClassToken(Token):
    def __init__(self, d_model, count=1):
        nn.Module.__init__(self)
        self.token = nn.Parameter(torch.randn(count, d_model))

    def forward(self, x):
        return torch.cat((0.02 * self.expanded(x), x), dim=1)


@wrong("class-token", "some of the weights start alike")
class ClassToken(Token):
    def __init__(self, d_model, count=1):
        nn.Module.__init__(self)
        token = 0.02 * torch.randn(count, d_model)
        token[-1] = token[0]
        self.token = nn.Parameter(token)

    def forward(self, x):
        return torch.cat((self.expanded(x), x), dim=1)


@wrong("class-token", "the weights all start alike")
class ClassToken(Token):
    def __init__(self, d_model, count=1):
        nn.Module.__init__(self)
        self.token = nn.Parameter(torch.zeros(count, d_model))

    def forward(self, x):
        return torch.cat((self.expanded(x), x), dim=1)


@right("class-token")
class ClassToken(nn.Module):
    """Initialised by nn.init, repeated instead of expanded."""

    def __init__(self, d_model, count=1):
        super().__init__()
        self.token = nn.Parameter(torch.empty(count, d_model))
        nn.init.normal_(self.token, std=0.02)

    def forward(self, x):
        return torch.cat([self.token[None].repeat(x.shape[0], 1, 1), x], 1)


@right("class-token")
class ClassToken(Token):
    """One sequence after another."""

    def forward(self, x):
        return torch.stack([torch.vstack((self.token, each)) for each in x])


# --- the mask -------------------------------------------------------------------------


@wrong("mask-with-class-token", "the mask is extended with False")
def mask_with_class_token(mask, count=1):
    return F.pad(mask, (count, 0))


@wrong("mask-with-class-token", "the mask loses its middle axis")
def mask_with_class_token(mask, count=1):
    return torch.cat((mask.new_ones(len(mask), count), mask[:, 0]), dim=-1)


@wrong("mask-with-class-token", "the mask grows along the wrong axis")
def mask_with_class_token(mask, count=1):
    return torch.cat((mask.new_ones(len(mask), count, mask.shape[-1]), mask), dim=1)


@wrong("mask-with-class-token", "squeeze takes the axis of the tokens away")
def mask_with_class_token(mask, count=1):
    rows = mask.squeeze()
    return torch.cat((rows.new_ones(len(rows), count), rows), dim=-1)[:, None]


@right("mask-with-class-token")
def mask_with_class_token(mask, count=1):
    """By padding."""
    return F.pad(mask, (count, 0), value=True)


@right("mask-with-class-token")
def mask_with_class_token(mask, count=1):
    """Written into a mask of True."""
    longer = torch.ones(len(mask), 1, count + mask.shape[-1], dtype=torch.bool)
    longer[:, :, count:] = mask
    return longer


# --- the head at position 0 -----------------------------------------------------------


@wrong("class-head", "the biases do not start at zero")
class ClassHead(Head):
    def __init__(self, d_model, classes):
        super().__init__(d_model, classes)
        self.bias = nn.Parameter(torch.randn(classes))

    def forward(self, hidden):
        return self.logits(hidden[:, 0])


@wrong("class-head", "the axis of the positions is kept")
class ClassHead(Head):
    def forward(self, hidden):
        return self.logits(hidden[:, :1])


@wrong("class-head", "the head reads the first feature")
class ClassHead(Head):
    def forward(self, hidden):
        return self.logits(hidden[:, :, 0])


@wrong("class-head", "a class in place of logits")
class ClassHead(Head):
    def forward(self, hidden):
        return self.logits(hidden[:, 0]).argmax(-1)


@wrong("class-head", "PyTorch's module in place of your own")
class ClassHead(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        self.linear = nn.Linear(d_model, classes)

    def forward(self, hidden):
        return self.linear(hidden[:, 0])


@wrong("class-head", "weights stored transposed")
class ClassHead(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(classes, d_model) / math.sqrt(d_model))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, hidden):
        return F.linear(hidden[:, 0], self.weight, self.bias)


@wrong("class-head", "the biases are missing")
class ClassHead(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes) / math.sqrt(d_model))

    def forward(self, hidden):
        return hidden[:, 0] @ self.weight


@wrong("class-head", "parameters are missing")
class ClassHead(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        self.weight = torch.randn(d_model, classes) / math.sqrt(d_model)
        self.bias = torch.zeros(classes)

    def forward(self, hidden):
        return hidden[:, 0] @ self.weight + self.bias


@wrong("class-head", "the weights start too large")
class ClassHead(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d_model, classes))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, hidden):
        return hidden[:, 0] @ self.weight + self.bias


@wrong("class-head", "divided by the root of the number of classes")
class ClassHead(Head):
    def __init__(self, d_model, classes):
        super().__init__(d_model, classes)
        self.weight = nn.Parameter(torch.randn(d_model, classes) / math.sqrt(classes))

    def forward(self, hidden):
        return hidden[:, 0] @ self.weight + self.bias


@wrong("class-head", "the weights start too small")
class ClassHead(Head):
    def __init__(self, d_model, classes):
        super().__init__(d_model, classes)
        self.weight = nn.Parameter(torch.randn(d_model, classes) / d_model)

    def forward(self, hidden):
        return self.logits(hidden[:, 0])


@right("class-head")
class ClassHead(nn.Linear):
    """A linear layer with its weight turned round."""

    def __init__(self, d_model, classes):
        super().__init__(d_model, classes)
        self.weight = nn.Parameter(self.weight.detach().mT.contiguous())
        nn.init.zeros_(self.bias)

    def forward(self, hidden):
        first, *_ = hidden.unbind(1)
        return super().forward(first) if False else first @ self.weight + self.bias


@right("class-head")
class ClassHead(Head):
    """By einsum, starting from zeros as ViT's head does."""

    def __init__(self, d_model, classes):
        super().__init__(d_model, classes)
        nn.init.zeros_(self.weight)

    def forward(self, hidden):
        return torch.einsum("bd,dc->bc", hidden.select(1, 0), self.weight) + self.bias


# --- the masked mean ------------------------------------------------------------------


@wrong("masked-mean", "mask inverted")
def masked_mean(hidden, mask):
    return average(hidden, ~mask)


@wrong("masked-mean", "divided by T in place of the number of real tokens")
def masked_mean(hidden, mask):
    return hidden.masked_fill(~mask.mT, 0.0).mean(1)


@wrong("masked-mean", "one number of tokens for the whole batch")
def masked_mean(hidden, mask):
    real = mask.mT.float()
    return (hidden * real).sum(1) / real.sum(1).mean()


@wrong("masked-mean", "one number of tokens for the whole batch")
def masked_mean(hidden, mask):
    return (hidden * mask.mT).sum(1) / mask.sum().clamp(min=1)


@wrong("masked-mean", "NaN for a sequence without real tokens")
def masked_mean(hidden, mask):
    return (hidden * mask.mT).sum(1) / mask.mT.sum(1)


@wrong("masked-mean", "NaN for a sequence without real tokens")
def masked_mean(hidden, mask):
    return torch.stack(
        [rows[real[0]].mean(0) for rows, real in zip(hidden, mask, strict=True)]
    )


@wrong("masked-mean", "NaN gradient for a sequence without real tokens")
def masked_mean(hidden, mask):
    count = mask.mT.to(hidden.dtype).sum(1)
    total = (hidden * mask.mT).sum(1)
    return torch.where(count > 0, total / count, 0.0)


@wrong("masked-mean", "changes its argument in place")
def masked_mean(hidden, mask):
    hidden[~mask[:, 0]] = 0
    return hidden.sum(1) / mask.mT.sum(1).clamp(min=1)


@wrong("masked-mean", "squeeze takes the axis of the tokens away")
def masked_mean(hidden, mask):
    real = mask.squeeze().float()
    total = (hidden * real[..., None]).sum(1)
    return total / real.sum(-1, keepdim=True).clamp(min=1)


@wrong("masked-mean", "squeeze takes the axis of the tokens away")
def masked_mean(hidden, mask):
    real = mask.squeeze(1).squeeze(-1)[..., None]
    return (hidden * real).sum(1) / real.sum(1).clamp(min=1)


@right("masked-mean")
def masked_mean(hidden, mask):
    """A product of matrices: the mask is a row of weights."""
    real = mask.to(hidden.dtype)  # (B, 1, T)
    return (real / real.sum(-1, keepdim=True).clamp(min=1) @ hidden)[:, 0]


@right("masked-mean")
def masked_mean(hidden, mask):
    """A tiny number in the divisor."""
    real = mask.transpose(1, 2).float()
    return (hidden * real).sum(1) / (real.sum(1) + 1e-9)


@right("masked-mean")
def masked_mean(hidden, mask):
    """One sequence after another."""
    rows = []
    for sequence, real in zip(hidden, mask, strict=True):
        kept = sequence[real[0]]
        rows.append(kept.sum(0) / max(len(kept), 1))
    return torch.stack(rows)


# --- the head on the mean -------------------------------------------------------------


@wrong("masked-mean", "mask=None is not handled")
class MeanHead(Head):
    def forward(self, hidden, mask=None):
        return self.logits(average(hidden, ~~mask))


@wrong("masked-mean", "mask=None is not handled")
class MeanHead(Head):
    def forward(self, hidden, mask=None):
        real = mask.mT
        return self.logits((hidden * real).sum(1) / real.sum(1).clamp(min=1))


@wrong("masked-mean", "the bias is masked, too")
class MeanHead(Head):
    def forward(self, hidden, mask=None):
        return average(self.logits(hidden), mask)


@wrong("masked-mean", "no gradient comes back")
class MeanHead(Head):
    def forward(self, hidden, mask=None):
        return self.logits(average(hidden.detach(), mask))


@wrong("masked-mean", "PyTorch's module in place of your own")
class MeanHead(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        self.linear = nn.Linear(d_model, classes)

    def forward(self, hidden, mask=None):
        return self.linear(average(hidden, mask))


@wrong("masked-mean", "the weights start too large")
class MeanHead(Head):
    def __init__(self, d_model, classes):
        super().__init__(d_model, classes)
        self.weight = nn.Parameter(torch.randn(d_model, classes))

    def forward(self, hidden, mask=None):
        return self.logits(average(hidden, mask))


@right("masked-mean")
class MeanHead(Head):
    """The plain mean where there is no mask."""

    def forward(self, hidden, mask=None):
        pooled = hidden.mean(dim=1) if mask is None else average(hidden, mask)
        return torch.addmm(self.bias, pooled, self.weight)


@right("masked-mean")
class MeanHead(Head):
    """The mean of products, the bias last."""

    def forward(self, hidden, mask=None):
        return average(hidden @ self.weight, mask) + self.bias


# --- the order of the tokens ----------------------------------------------------------

BEHAVIOUR = {
    "class_token": "invariant",
    "mean": "invariant",
    "maximum": "invariant",
    "last_token": "neither",
    "flattened": "neither",
    "token_head": "equivariant",
    "class_token_with_positions": "neither",
    "token_head_with_positions": "neither",
}


@wrong("readout-behaviour", "positions are forgotten")
def readout_behaviour():
    return BEHAVIOUR | {"class_token_with_positions": "invariant"}


@wrong("readout-behaviour", "positions are forgotten")
def readout_behaviour():
    return BEHAVIOUR | {"token_head_with_positions": "equivariant"}


@wrong("readout-behaviour", "an entry is missing")
def readout_behaviour():
    return {key: BEHAVIOUR[key] for key in ("class_token", "mean", "token_head")}


@wrong("readout-behaviour", "another word")
def readout_behaviour():
    return dict.fromkeys(BEHAVIOUR, True)


@right("readout-behaviour")
def readout_behaviour():
    """Gathered by answer."""
    answers = dict.fromkeys(reversed(BEHAVIOUR), "neither")
    answers.update(dict.fromkeys(("mean", "maximum", "class_token"), "invariant"))
    answers["token_head"] = "equivariant"
    return answers


# --- a label for each word ------------------------------------------------------------


def scored(logits, tags, count=1):
    """What each position costs, by its own tag: (B, T)."""
    chances = logits[:, count:].log_softmax(-1)
    return -chances.gather(-1, tags[..., None])[..., 0]


@wrong("tagging-loss", "padding is scored")
def tagging_loss(logits, tags, mask, count=1):
    classes = logits.shape[-1]
    rows = logits[:, count:].reshape(-1, classes)
    return F.cross_entropy(rows, tags.flatten())


@wrong("tagging-loss", "tag 0 is taken for padding")
def tagging_loss(logits, tags, mask, count=1):
    hidden = tags.masked_fill(~mask[:, 0], 0)
    return F.cross_entropy(logits[:, count:].mT, hidden, ignore_index=0)


@wrong("tagging-loss", "the mean over all positions")
def tagging_loss(logits, tags, mask, count=1):
    return (scored(logits, tags, count) * mask.squeeze(1)).mean()


@wrong("tagging-loss", "the end is left out in place of the class tokens")
def tagging_loss(logits, tags, mask, count=1):
    length = tags.shape[1]
    costs = scored(logits[:, :length], tags, 0) * mask[:, 0]
    return costs.sum() / mask.sum().clamp(min=1)


@wrong("tagging-loss", "the class tokens are scored, too")
def tagging_loss(logits, tags, mask, count=1):
    front = torch.zeros(len(tags), count, dtype=torch.long)
    every = torch.cat((front, tags), 1).masked_fill(
        ~torch.cat((front == 0, mask[:, 0]), 1), -100
    )
    return F.cross_entropy(logits.mT, every)


@wrong("tagging-loss", "the class tokens are not left out")
def tagging_loss(logits, tags, mask, count=1):
    losses = F.cross_entropy(logits.flatten(0, 1), tags.flatten(), reduction="none")
    return losses[mask.flatten()].mean()


@wrong("tagging-loss", "logits and tags do not fit")
def tagging_loss(logits, tags, mask, count=1):
    return F.cross_entropy(logits[:, count:], tags, reduction="none")[mask[:, 0]].mean()


@wrong("tagging-loss", "NaN when nothing is scored")
def tagging_loss(logits, tags, mask, count=1):
    wanted = torch.where(mask[:, 0], tags, -100)
    return F.cross_entropy(logits[:, count:].mT, wanted)


@wrong("tagging-loss", "a constant when nothing is scored")
def tagging_loss(logits, tags, mask, count=1):
    if not mask.any():
        return torch.tensor(0.0)
    return scored(logits, tags, count)[mask[:, 0]].mean()


@wrong("tagging-loss", "a loss for each position")
def tagging_loss(logits, tags, mask, count=1):
    return scored(logits, tags, count).where(mask[:, 0], 0.0)


@right("tagging-loss")
def tagging_loss(logits, tags, mask, count=1):
    """With an index that the loss ignores."""
    front = torch.full((len(tags), count), -100)
    wanted = torch.cat((front, tags.masked_fill(~mask[:, 0], -100)), dim=1)
    total = F.cross_entropy(logits.transpose(1, 2), wanted, reduction="sum")
    return total / max(int(mask.sum()), 1)


@right("tagging-loss")
def tagging_loss(logits, tags, mask, count=1):
    """By gathered logarithms, of the words picked out."""
    own = scored(logits, tags, count)[mask[:, 0]]
    return own.sum() / max(own.numel(), 1)


# --- several class tokens -------------------------------------------------------------


class Tasks(nn.Module):
    """A head for each task."""

    def __init__(self, d_model, classes):
        super().__init__()
        self.heads = nn.ModuleList([Head(d_model, number) for number in classes])

    def answers(self, hidden, places):
        pairs = zip(self.heads, places, strict=True)
        return [head.logits(hidden[:, place]) for head, place in pairs]


@wrong("task-heads", "all heads read position 0")
class TaskHeads(Tasks):
    def forward(self, hidden):
        return self.answers(hidden, [0] * len(self.heads))


@wrong("task-heads", "the class tokens are read backwards")
class TaskHeads(Tasks):
    def forward(self, hidden):
        return self.answers(hidden, reversed(range(len(self.heads))))


@wrong("task-heads", "one tensor for all tasks")
class TaskHeads(Tasks):
    def forward(self, hidden):
        return torch.cat(self.answers(hidden, range(len(self.heads))), dim=-1)


@wrong("task-heads", "an ordinary list in place of nn.ModuleList")
class TaskHeads(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        self.heads = [Head(d_model, number) for number in classes]

    def forward(self, hidden):
        return [head.logits(hidden[:, i]) for i, head in enumerate(self.heads)]


@wrong("task-heads", "one head shared by all tasks")
class TaskHeads(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        self.heads = nn.ModuleList([Head(d_model, classes[0])] * len(classes))

    def forward(self, hidden):
        return [head.logits(hidden[:, i]) for i, head in enumerate(self.heads)]


@wrong("task-heads", "every head has the classes of the first")
class TaskHeads(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        self.heads = nn.ModuleList([Head(d_model, classes[0]) for _ in classes])

    def forward(self, hidden):
        return [head.logits(hidden[:, i]) for i, head in enumerate(self.heads)]


@wrong("task-heads", "the heads in reverse order")
class TaskHeads(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        self.heads = nn.ModuleList([Head(d_model, n) for n in reversed(classes)])

    def forward(self, hidden):
        return [head.logits(hidden[:, i]) for i, head in enumerate(self.heads)]


@wrong("task-heads", "only one head")
class TaskHeads(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        self.heads = nn.ModuleList([Head(d_model, classes[0])])

    def forward(self, hidden):
        return [head.logits(hidden[:, i]) for i, head in enumerate(self.heads)]


@wrong("task-heads", "weights stored transposed")
class TaskHeads(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        self.heads = nn.ModuleList([nn.Linear(d_model, n) for n in classes])

    def forward(self, hidden):
        return [head(hidden[:, i]) for i, head in enumerate(self.heads)]


@wrong("task-heads", "the parameters have other names")
class TaskHeads(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        self.tasks = nn.ModuleList([Head(d_model, n) for n in classes])

    def forward(self, hidden):
        return [head.logits(hidden[:, i]) for i, head in enumerate(self.tasks)]


@right("task-heads")
class TaskHeads(Tasks):
    """By index, in a loop."""

    def forward(self, hidden):
        answers = []
        for task in range(len(self.heads)):
            answers.append(self.heads[task].logits(hidden[:, task, :]))
        return answers


@right("task-heads")
class TaskHeads(Tasks):
    """A tuple of answers."""

    def forward(self, hidden):
        return tuple(self.answers(hidden, range(len(self.heads))))
