"""Wrong and right answers to chapter 7, second part: training and writing text."""

import heapq
import itertools
import math
from collections import Counter

import torch
import torch.nn.functional as F

from mistakes import right, wrong
from transformer import decoder as reference
from transformer.attention import causal_mask, scaled_dot_product_attention
from transformer.decoder import sequence_loss

# --- the bug hunt ---------------------------------------------------------------------

BUGS = {
    3: "no <eos>",
    5: "pointless empty leaf",
    6: "starts from the source",
    7: "counts the source",
    8: "the source never gets in",
    9: "a name never assigned",
    10: "softmax before the loss",
    11: "all positions appended again",
    12: "argmax over positions",
    13: "own predictions as input",
    14: "multiplied by the mask",
    15: "labels not shifted",
    16: "classes on the wrong axis",
    17: "a tab among spaces",
    18: "gradients never cleared",
}


@wrong("bug-hunt", "two lines have each other's names")
def find_bugs():
    return {**BUGS, 6: BUGS[8], 8: BUGS[6]}


@wrong("bug-hunt", "two lines have each other's names")
def find_bugs():
    """The target's ends."""
    return {**BUGS, 3: BUGS[15], 15: BUGS[3]}


@wrong("bug-hunt", "a name that fits nowhere")
def find_bugs():
    return {**BUGS, 9: "the mask hides the past"}


@wrong("bug-hunt", "a line that is right")
def find_bugs():
    answer = {**BUGS, 19: "the graph is kept"}
    del answer[5]
    return answer


@wrong("bug-hunt", "a line that is right")
def find_bugs():
    answer = {**BUGS, 4: "multiplied by the mask"}
    del answer[14]
    return answer


@wrong("bug-hunt", "a bug on another line")
def find_bugs():
    answer = {**BUGS, 13: "all positions appended again"}
    del answer[11]
    return answer


@wrong("bug-hunt", "not all bugs are named")
def find_bugs():
    return {line: BUGS[line] for line in (3, 8, 9, 12, 17)}


@wrong("bug-hunt", "not all bugs are named")
def find_bugs():
    """Nothing found."""
    return {}


@wrong("bug-hunt", "one name for two lines")
def find_bugs():
    return {**BUGS, 6: "the source never gets in"}


@wrong("bug-hunt", "a name that the table does not have")
def find_bugs():
    return {**BUGS, 3: "no eos"}


@wrong("bug-hunt", "lines and names exchanged")
def find_bugs():
    return {name: line for line, name in BUGS.items()}


@wrong("bug-hunt", "lines counted from 0")
def find_bugs():
    return {line - 1: name for line, name in BUGS.items()}


@wrong("bug-hunt", "a line that is not there")
def find_bugs():
    return {**BUGS, 20: "the graph is kept"}


@right("bug-hunt")
def find_bugs():
    """From the last line to the first."""
    return dict(sorted(BUGS.items(), reverse=True))


def epoch(model, batches, learning_rate, loss=sequence_loss, see=None, clear=True):
    descent = torch.optim.SGD(model.parameters(), lr=learning_rate)
    losses = []
    for source, inputs, labels in batches:
        logits = model(*(see(source, inputs, labels) if see else (source, inputs)))
        error = loss(logits, labels)
        if clear:
            descent.zero_grad()
        error.backward()
        descent.step()
        losses.append(error.item())
    return losses


@wrong("bug-hunt", "gradients never cleared")
def repaired_epoch(model, batches, learning_rate):
    return epoch(model, batches, learning_rate, clear=False)


@wrong("bug-hunt", "own predictions as input")
def repaired_epoch(model, batches, learning_rate):
    def see(source, inputs, labels):
        written = inputs[:, :1]
        for _ in range(inputs.shape[1] - 1):
            hidden = model.decode(written, model.encode(source), source)
            best = (hidden[:, -1] @ model.embedding.weight.T).argmax(dim=-1)
            written = torch.cat((written, best.unsqueeze(1)), dim=1)
        return source, written

    return epoch(model, batches, learning_rate, see=see)


@wrong("bug-hunt", "the source never gets in")
def repaired_epoch(model, batches, learning_rate):
    def see(source, inputs, labels):
        return inputs, inputs

    return epoch(model, batches, learning_rate, see=see)


@wrong("bug-hunt", "the labels as input")
def repaired_epoch(model, batches, learning_rate):
    def see(source, inputs, labels):
        return source, labels

    return epoch(model, batches, learning_rate, see=see)


@wrong("bug-hunt", "labels not shifted")
def repaired_epoch(model, batches, learning_rate):
    batches = [(source, inputs, inputs) for source, inputs, _ in batches]
    return epoch(model, batches, learning_rate)


@wrong("bug-hunt", "multiplied by the mask")
def repaired_epoch(model, batches, learning_rate):
    def loss(logits, labels):
        real = (labels != 0).unsqueeze(-1)
        return F.cross_entropy((logits * real).flatten(0, 1), labels.flatten())

    return epoch(model, batches, learning_rate, loss)


@wrong("bug-hunt", "padding is scored")
def repaired_epoch(model, batches, learning_rate):
    def loss(logits, labels):
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())

    return epoch(model, batches, learning_rate, loss)


@wrong("bug-hunt", "softmax before the loss")
def repaired_epoch(model, batches, learning_rate):
    def loss(logits, labels):
        return sequence_loss(logits.softmax(-1), labels)

    return epoch(model, batches, learning_rate, loss)


@wrong("bug-hunt", "the loss after the step")
def repaired_epoch(model, batches, learning_rate):
    descent = torch.optim.SGD(model.parameters(), lr=learning_rate)
    losses = []
    for source, inputs, labels in batches:
        descent.zero_grad()
        sequence_loss(model(source, inputs), labels).backward()
        descent.step()
        losses.append(sequence_loss(model(source, inputs), labels).item())
    return losses


@wrong("bug-hunt", "the weights never change")
def repaired_epoch(model, batches, learning_rate):
    losses = []
    for source, inputs, labels in batches:
        error = sequence_loss(model(source, inputs), labels)
        error.backward()
        losses.append(error.item())
    return losses


@wrong("bug-hunt", "the weights never change")
def repaired_epoch(model, batches, learning_rate):
    """The gradients are cleared between backward and step."""
    descent = torch.optim.SGD(model.parameters(), lr=learning_rate)
    losses = []
    for source, inputs, labels in batches:
        error = sequence_loss(model(source, inputs), labels)
        error.backward()
        descent.zero_grad()
        descent.step()
        losses.append(error.item())
    return losses


@wrong("bug-hunt", "labels shifted twice")
def repaired_epoch(model, batches, learning_rate):
    batches = [(source, x[:, :-1], y[:, 1:]) for source, x, y in batches]
    return epoch(model, batches, learning_rate)


@wrong("bug-hunt", "the loss is smoothed")
def repaired_epoch(model, batches, learning_rate):
    def loss(logits, labels):
        return sequence_loss(logits, labels, smoothing=0.1)

    return epoch(model, batches, learning_rate, loss)


@wrong("bug-hunt", "source and inputs exchanged")
def repaired_epoch(model, batches, learning_rate):
    batches = [(inputs, source, labels) for source, inputs, labels in batches]
    return epoch(model, batches, learning_rate)


@wrong("bug-hunt", "classes on the wrong axis")
def repaired_epoch(model, batches, learning_rate):
    return epoch(model, batches, learning_rate, F.cross_entropy)


@wrong("bug-hunt", "hidden states in place of logits")
def repaired_epoch(model, batches, learning_rate):
    descent = torch.optim.SGD(model.parameters(), lr=learning_rate)
    for source, inputs, labels in batches:
        hidden = model.decode(inputs, model.encode(source), source)
        descent.zero_grad()
        sequence_loss(hidden, labels).backward()


@wrong("bug-hunt", "one step for all batches")
def repaired_epoch(model, batches, learning_rate):
    descent = torch.optim.SGD(model.parameters(), lr=learning_rate)
    losses = []
    for source, inputs, labels in batches:
        error = sequence_loss(model(source, inputs), labels)
        error.backward()
        losses.append(error.item())
    descent.step()
    return losses


@wrong("bug-hunt", "the sum in place of the mean")
def repaired_epoch(model, batches, learning_rate):
    def loss(logits, labels):
        return sequence_loss(logits, labels) * (labels != 0).sum()

    return epoch(model, batches, learning_rate, loss)


@wrong("bug-hunt", "Adam in place of gradient descent")
def repaired_epoch(model, batches, learning_rate):
    optimiser = torch.optim.Adam(model.parameters(), lr=learning_rate)
    losses = []
    for source, inputs, labels in batches:
        optimiser.zero_grad()
        error = sequence_loss(model(source, inputs), labels)
        error.backward()
        optimiser.step()
        losses.append(error.item())
    return losses


@wrong("bug-hunt", "the learning rate is not used")
def repaired_epoch(model, batches, learning_rate):
    return epoch(model, batches, 0.1)


@wrong("bug-hunt", "the encoder never learns")
def repaired_epoch(model, batches, learning_rate):
    descent = torch.optim.SGD(model.parameters(), lr=learning_rate)
    losses = []
    for source, inputs, labels in batches:
        with torch.no_grad():
            memory = model.encode(source)
        hidden = model.decode(inputs, memory, source)
        error = sequence_loss(hidden @ model.embedding.weight.T, labels)
        descent.zero_grad()
        error.backward()
        descent.step()
        losses.append(error.item())
    return losses


@wrong("bug-hunt", "the decoder never learns")
def repaired_epoch(model, batches, learning_rate):
    descent = torch.optim.SGD(model.encoder.parameters(), lr=learning_rate)
    losses = []
    for source, inputs, labels in batches:
        error = sequence_loss(model(source, inputs), labels)
        descent.zero_grad()
        error.backward()
        descent.step()
        losses.append(error.item())
    return losses


@wrong("bug-hunt", "tensors in place of numbers")
def repaired_epoch(model, batches, learning_rate):
    return list(map(torch.tensor, epoch(model, batches, learning_rate)))


@wrong("bug-hunt", "one number for the epoch")
def repaired_epoch(model, batches, learning_rate):
    losses = epoch(model, batches, learning_rate)
    return sum(losses) / len(losses)


@wrong("bug-hunt", "returns after the first batch")
def repaired_epoch(model, batches, learning_rate):
    return epoch(model, batches[:1], learning_rate)


@wrong("bug-hunt", "the losses are added up")
def repaired_epoch(model, batches, learning_rate):
    losses = epoch(model, batches, learning_rate)
    return [sum(losses[: i + 1]) for i in range(len(losses))]


@right("bug-hunt")
def repaired_epoch(model, batches, learning_rate):
    """Gradients from autograd, the step by hand."""
    losses, parameters = [], list(model.parameters())
    for source, inputs, labels in batches:
        error = sequence_loss(model(source, inputs), labels)
        slopes = torch.autograd.grad(error, parameters, allow_unused=True)
        with torch.no_grad():
            for parameter, slope in zip(parameters, slopes, strict=True):
                if slope is not None:
                    parameter -= learning_rate * slope
        losses.append(float(error))
    return losses


@right("bug-hunt")
def repaired_epoch(model, batches, learning_rate):
    """PyTorch's loss, encode and decode one by one, cleared after the step."""
    model.train()
    descent = torch.optim.SGD(model.parameters(), learning_rate)
    losses = []
    for source, inputs, labels in batches:
        hidden = model.decode(inputs, model.encode(source), source)
        logits = hidden @ model.embedding.weight.T
        error = F.cross_entropy(logits.transpose(1, 2), labels, ignore_index=0)
        error.backward()
        descent.step()
        model.zero_grad()
        losses += [error.detach().item()]
    return losses


# --- greedy ---------------------------------------------------------------------------


@wrong("greedy-decode", "the wrong row of logits")
@torch.no_grad()
def greedy_decode(model, prefix, eos_id, max_length):
    ids = list(prefix)
    while len(ids) < max_length:
        ids.append(int(model(torch.tensor([ids]))[0, 0].argmax()))
        if ids[-1] == eos_id:
            break
    return ids


@wrong("greedy-decode", "only the last token is read")
def greedy_decode(model, prefix, eos_id, max_length):
    ids = list(prefix)
    while len(ids) < max_length:
        ids.append(int(model(torch.tensor([ids[-1:]]))[0, -1].argmax()))
        if ids[-1] == eos_id:
            break
    return ids


@wrong("greedy-decode", "goes on after the end")
def greedy_decode(model, prefix, eos_id, max_length):
    ids = list(prefix)
    for _ in range(max_length - len(prefix)):
        ids.append(int(model(torch.tensor([ids]))[0, -1].argmax()))
    return ids


@wrong("greedy-decode", "the end token is left out")
def greedy_decode(model, prefix, eos_id, max_length):
    ids = list(prefix)
    while len(ids) < max_length:
        best = int(model(torch.tensor([ids]))[0, -1].argmax())
        if best == eos_id:
            break
        ids.append(best)
    return ids


@wrong("greedy-decode", "the prefix is left out")
def greedy_decode(model, prefix, eos_id, max_length):
    return reference.greedy_decode(model, prefix, eos_id, max_length)[len(prefix) :]


@wrong("greedy-decode", "max_length counts the new tokens alone")
def greedy_decode(model, prefix, eos_id, max_length):
    return reference.greedy_decode(model, prefix, eos_id, max_length + len(prefix))


@wrong("greedy-decode", "one token too many")
def greedy_decode(model, prefix, eos_id, max_length):
    return reference.greedy_decode(model, prefix, eos_id, max_length + 1)


@wrong("greedy-decode", "one token too many")
def greedy_decode(model, prefix, eos_id, max_length):
    """Tested after the first token."""
    ids = list(prefix)
    while True:
        ids.append(int(model(torch.tensor([ids]))[0, -1].argmax()))
        if ids[-1] == eos_id or len(ids) >= max_length:
            return ids


@wrong("greedy-decode", "drawn by chance")
def greedy_decode(model, prefix, eos_id, max_length):
    """Sampling, as source 4 calls it."""
    ids = list(prefix)
    while len(ids) < max_length:
        chances = model(torch.tensor([ids]))[0, -1].softmax(-1)
        ids.append(int(torch.multinomial(chances, 1)))
        if ids[-1] == eos_id:
            break
    return ids


@wrong("greedy-decode", "a tensor in place of a number")
def greedy_decode(model, prefix, eos_id, max_length):
    ids = reference.greedy_decode(model, prefix, eos_id, max_length)
    return ids[: len(prefix)] + [torch.tensor(x) for x in ids[len(prefix) :]]


@wrong("greedy-decode", "a tensor in place of a list")
def greedy_decode(model, prefix, eos_id, max_length):
    return torch.tensor(reference.greedy_decode(model, prefix, eos_id, max_length))


@wrong("greedy-decode", "changes its argument in place")
def greedy_decode(model, prefix, eos_id, max_length):
    ids = prefix
    while len(ids) < max_length:
        ids.append(int(model(torch.tensor([ids]))[0, -1].argmax()))
        if ids[-1] == eos_id:
            break
    return ids


@wrong("greedy-decode", "the largest of all positions")
def greedy_decode(model, prefix, eos_id, max_length):
    ids = list(prefix)
    while len(ids) < max_length:
        ids.append(int(model(torch.tensor([ids])).argmax()))
        if ids[-1] == eos_id:
            break
    return ids


@wrong("greedy-decode", "several numbers in place of one id")
def greedy_decode(model, prefix, eos_id, max_length):
    ids = list(prefix)
    while len(ids) < max_length:
        ids.append(int(model(torch.tensor([ids])).argmax(dim=1)))
        if ids[-1] == eos_id:
            break
    return ids


@wrong("greedy-decode", "the model reads the prefix again and again")
def greedy_decode(model, prefix, eos_id, max_length):
    ids = list(prefix)
    while len(ids) < max_length:
        ids.append(int(model(torch.tensor([prefix]))[0, -1].argmax()))
        if ids[-1] == eos_id:
            break
    return ids


@wrong("greedy-decode", "the least probable token")
def greedy_decode(model, prefix, eos_id, max_length):
    ids = list(prefix)
    while len(ids) < max_length:
        ids.append(int((-model(torch.tensor([ids])))[0, -1].argmax()))
        if ids[-1] == eos_id:
            break
    return ids


@right("greedy-decode")
@torch.no_grad()
def greedy_decode(model, prefix, eos_id, max_length):
    """A tensor that grows, with a softmax that is not needed."""
    ids = torch.tensor([prefix])
    for _ in range(max_length - len(prefix)):
        best = model(ids)[:, -1, :].softmax(-1).argmax(-1, keepdim=True)
        ids = torch.cat((ids, best), dim=1)
        if best.item() == eos_id:
            break
    return ids[0].tolist()


@right("greedy-decode")
def greedy_decode(model, prefix, eos_id, max_length):
    """Recursion."""
    if len(prefix) >= max_length:
        return [*prefix]
    scores = model(torch.tensor(prefix).unsqueeze(0)).squeeze(0)[-1].tolist()
    best = scores.index(max(scores))
    if best == eos_id:
        return [*prefix, best]
    return greedy_decode(model, [*prefix, best], eos_id, max_length)


# --- filters --------------------------------------------------------------------------


def refuse(temperature, top_k, top_p):
    if temperature <= 0 or (top_k is not None and top_k < 1):
        raise ValueError("temperature or top_k")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError("top_p")


def limited_k(logits, top_k):
    if top_k is None:
        return logits
    smallest = logits.topk(min(top_k, logits.shape[-1])).values[..., -1:]
    return logits.masked_fill(logits < smallest, -math.inf)


def limited_p(logits, top_p, chances=None):
    if top_p is None:
        return logits
    chances = logits.softmax(-1) if chances is None else chances
    ranked, order = chances.sort(dim=-1, descending=True)
    drop = (ranked.cumsum(-1) - ranked >= top_p).gather(-1, order.argsort(-1))
    return logits.masked_fill(drop, -math.inf)


@wrong("filter-logits", "multiplied by the temperature")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    refuse(temperature, top_k, top_p)
    return limited_p(limited_k(logits * temperature, top_k), top_p)


@wrong("filter-logits", "the temperature is not used")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    refuse(temperature, top_k, top_p)
    return limited_p(limited_k(logits, top_k), top_p)


@wrong("filter-logits", "zeros in place of −∞")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    kept = reference.filter_logits(logits, temperature, top_k, None)
    kept = kept.masked_fill(kept == -math.inf, 0.0)
    return (
        limited_p(kept, top_p)
        .clamp(min=-1e30)
        .masked_fill_(limited_p(kept, top_p) == -math.inf, 0.0)
    )


@wrong("filter-logits", "a large negative number in place of −∞")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    kept = reference.filter_logits(logits, temperature, top_k, top_p)
    return kept.masked_fill(kept == -math.inf, -1e9)


@wrong("filter-logits", "ties are cut")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    refuse(temperature, top_k, top_p)
    logits = logits / temperature
    if top_k is not None:
        values, places = logits.topk(min(top_k, logits.shape[-1]))
        empty = torch.full_like(logits, -math.inf)
        logits = empty.scatter(-1, places, values)
    return limited_p(logits, top_p)


@wrong("filter-logits", "the k-th is dropped")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    refuse(temperature, top_k, top_p)
    logits = logits / temperature
    if top_k is not None:
        smallest = logits.topk(min(top_k, logits.shape[-1])).values[..., -1:]
        logits = logits.masked_fill(logits <= smallest, -math.inf)
    return limited_p(logits, top_p)


@wrong("filter-logits", "the smallest are kept")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    refuse(temperature, top_k, top_p)
    logits = logits / temperature
    if top_k is not None:
        k = min(top_k, logits.shape[-1])
        limit = logits.sort(dim=-1).values[..., k - 1 : k]
        logits = logits.masked_fill(logits > limit, -math.inf)
    return limited_p(logits, top_p)


@wrong("filter-logits", "one token short")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    refuse(temperature, top_k, top_p)
    logits = limited_k(logits / temperature, top_k)
    if top_p is not None:
        ranked, order = logits.softmax(-1).sort(dim=-1, descending=True)
        drop = (ranked.cumsum(-1) > top_p).gather(-1, order.argsort(-1))
        logits = logits.masked_fill(drop, -math.inf)
    return logits


@wrong("filter-logits", "one token short")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    """The most probable is kept all the same."""
    refuse(temperature, top_k, top_p)
    logits = limited_k(logits / temperature, top_k)
    if top_p is not None:
        ranked, order = logits.softmax(-1).sort(dim=-1, descending=True)
        drop = ranked.cumsum(-1) > top_p
        drop[..., 0] = False
        logits = logits.masked_fill(drop.gather(-1, order.argsort(-1)), -math.inf)
    return logits


@wrong("filter-logits", "in the order of the sorted")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    refuse(temperature, top_k, top_p)
    logits = limited_k(logits / temperature, top_k)
    if top_p is not None:
        ranked, _ = logits.softmax(-1).sort(dim=-1, descending=True)
        logits = logits.masked_fill(ranked.cumsum(-1) - ranked >= top_p, -math.inf)
    return logits


@wrong("filter-logits", "top-p from the least probable")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    refuse(temperature, top_k, top_p)
    logits = limited_k(logits / temperature, top_k)
    if top_p is not None:
        ranked, order = logits.softmax(-1).sort(dim=-1)
        drop = (ranked.cumsum(-1) - ranked >= top_p).gather(-1, order.argsort(-1))
        logits = logits.masked_fill(drop, -math.inf)
    return logits


@wrong("filter-logits", "the sorting is done twice, not undone")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    refuse(temperature, top_k, top_p)
    logits = limited_k(logits / temperature, top_k)
    if top_p is not None:
        chances, order = logits.softmax(-1).sort(-1, descending=True)
        drop = chances.cumsum(-1) - chances >= top_p
        logits = logits.masked_fill(drop.gather(-1, order), -math.inf)
    return logits


@wrong("filter-logits", "each probability compared with p")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    refuse(temperature, top_k, top_p)
    logits = limited_k(logits / temperature, top_k)
    if top_p is not None:
        logits = logits.masked_fill(logits.softmax(-1) < top_p, -math.inf)
    return logits


@wrong("filter-logits", "either top-k or top-p")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    refuse(temperature, top_k, top_p)
    logits = logits / temperature
    return limited_p(logits, top_p) if top_k is None else limited_k(logits, top_k)


@wrong("filter-logits", "either top-k or top-p")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    """The other one first."""
    refuse(temperature, top_k, top_p)
    logits = logits / temperature
    return limited_k(logits, top_k) if top_p is None else limited_p(logits, top_p)


@wrong("filter-logits", "one limit for all rows")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    refuse(temperature, top_k, top_p)
    logits = logits / temperature
    if top_k is not None:
        limit = logits.flatten().topk(min(top_k, logits.shape[-1])).values[-1]
        logits = logits.masked_fill(logits < limit, -math.inf)
    return limited_p(logits, top_p)


@wrong("filter-logits", "softmax along the wrong axis")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    refuse(temperature, top_k, top_p)
    logits = limited_k(logits / temperature, top_k)
    if top_p is not None:
        chances, order = logits.softmax(0).sort(-1, descending=True)
        drop = chances.cumsum(-1) - chances >= top_p
        drop = drop.gather(-1, order.argsort(-1))
        logits = logits.masked_fill(drop, -math.inf)
    return logits


@wrong("filter-logits", "log-probabilities in place of logits")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    return reference.filter_logits(logits, temperature, top_k, top_p).log_softmax(-1)


@wrong("filter-logits", "good settings are refused")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    if top_p == 1:
        raise ValueError("top_p must be below 1")
    return reference.filter_logits(logits, temperature, top_k, top_p)


@wrong("filter-logits", "good settings are refused")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    """A large k."""
    if top_k is not None and top_k > logits.shape[-1]:
        raise ValueError("top_k is too large")
    return reference.filter_logits(logits, temperature, top_k, top_p)


@wrong("filter-logits", "top-p before top-k")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    refuse(temperature, top_k, top_p)
    return limited_k(limited_p(logits / temperature, top_p), top_k)


@wrong("filter-logits", "top-p before top-k")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    """The probabilities for top-p are those before top-k: the same tokens stay."""
    refuse(temperature, top_k, top_p)
    logits = logits / temperature
    return limited_p(limited_k(logits, top_k), top_p, logits.softmax(-1))


@wrong("filter-logits", "top-p without the temperature")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    refuse(temperature, top_k, top_p)
    kept = limited_k(logits / temperature, top_k)
    return limited_p(kept, top_p, (kept * temperature).softmax(-1))


@wrong("filter-logits", "sums of logits")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    refuse(temperature, top_k, top_p)
    kept = limited_k(logits / temperature, top_k)
    return limited_p(kept, top_p, kept)


@wrong("filter-logits", "probabilities in place of logits")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    return reference.filter_logits(logits, temperature, top_k, top_p).softmax(-1)


@wrong("filter-logits", "k is larger than the vocabulary")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    refuse(temperature, top_k, top_p)
    logits = logits / temperature
    if top_k is not None:
        limit = logits.topk(top_k).values[..., -1:]
        logits = logits.masked_fill(logits < limit, -math.inf)
    return limited_p(logits, top_p)


@wrong("filter-logits", "bad settings are accepted")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    return limited_p(limited_k(logits / temperature, top_k), top_p)


@wrong("filter-logits", "bad settings are accepted")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    """A top_p of 0 is taken for none."""
    refuse(temperature, top_k, top_p or None)
    return limited_p(limited_k(logits / temperature, top_k), top_p or None)


@wrong("filter-logits", "changes its argument in place")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    refuse(temperature, top_k, top_p)
    if top_k is not None:
        smallest = logits.topk(min(top_k, logits.shape[-1])).values[..., -1:]
        logits[logits < smallest] = -math.inf
    return limited_p(logits / temperature, top_p)


@wrong("filter-logits", "top-p is not used")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    refuse(temperature, top_k, top_p)
    return limited_k(logits / temperature, top_k)


@wrong("filter-logits", "top-k is not used")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    refuse(temperature, top_k, top_p)
    return limited_p(logits / temperature, top_p)


@right("filter-logits")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    """A threshold from the sorted logits, no order to undo."""
    if not temperature > 0:
        raise ValueError("temperature")
    if top_k is not None and not top_k >= 1:
        raise ValueError("top_k")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError("top_p")
    scaled = logits / temperature
    ranked = scaled.sort(-1, descending=True).values
    if top_k is not None:
        limit = ranked[..., min(top_k, ranked.shape[-1]) - 1].unsqueeze(-1)
        scaled = torch.where(scaled >= limit, scaled, float("-inf"))
        ranked = torch.where(ranked >= limit, ranked, float("-inf"))
    if top_p is not None:
        chances = ranked.softmax(-1)
        before = F.pad(chances.cumsum(-1), (1, -1))
        last = (before < top_p).sum(-1, keepdim=True) - 1
        scaled = torch.where(scaled >= ranked.gather(-1, last), scaled, float("-inf"))
    return scaled


@right("filter-logits")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    """The mask shifted by one place, brought back by scatter."""
    refuse(temperature, top_k, top_p)
    logits = limited_k(logits.clone().div_(temperature), top_k)
    if top_p is not None:
        ranked, order = torch.sort(logits, descending=True)
        drop = ranked.softmax(-1).cumsum(-1) >= top_p
        drop = drop.roll(1, -1)
        drop[..., 0] = False
        drop = torch.zeros_like(drop).scatter(-1, order, drop)
        logits[drop] = -torch.inf
    return logits


# --- chance ---------------------------------------------------------------------------


@wrong("sample-next", "the most probable token")
def sample_next(probabilities, uniform):
    return probabilities.argmax(dim=-1)


@wrong("sample-next", "a token of probability 0 is drawn")
def sample_next(probabilities, uniform):
    sums = probabilities.cumsum(-1)
    return (sums < uniform.unsqueeze(-1) * sums[..., -1:]).sum(-1)


@wrong("sample-next", "a token of probability 0 is drawn")
def sample_next(probabilities, uniform):
    """searchsorted as it comes."""
    sums = probabilities.cumsum(-1)
    number = uniform.unsqueeze(-1) * sums[..., -1:]
    return torch.searchsorted(sums, number).squeeze(-1)


@wrong("sample-next", "a number that no sum exceeds")
def sample_next(probabilities, uniform):
    return (probabilities.cumsum(-1) <= uniform.unsqueeze(-1)).sum(-1)


@wrong("sample-next", "a number that no sum exceeds")
def sample_next(probabilities, uniform):
    """argmax of nothing"""
    return (probabilities.cumsum(-1) > uniform.unsqueeze(-1)).int().argmax(-1)


@wrong("sample-next", "no running sums")
def sample_next(probabilities, uniform):
    return (probabilities <= uniform.unsqueeze(-1)).sum(-1)


@wrong("sample-next", "no running sums")
def sample_next(probabilities, uniform):
    return (probabilities > uniform.unsqueeze(-1)).int().argmax(-1)


@wrong("sample-next", "clamped to the last id")
def sample_next(probabilities, uniform):
    passed = (probabilities.cumsum(-1) <= uniform.unsqueeze(-1)).sum(-1)
    return passed.clamp(max=probabilities.shape[-1] - 1)


@wrong("sample-next", "running sums along the wrong axis")
def sample_next(probabilities, uniform):
    sums = probabilities.cumsum(0)
    return (sums <= uniform.unsqueeze(-1) * sums[..., -1:]).sum(-1)


@wrong("sample-next", "one id too far")
def sample_next(probabilities, uniform):
    return reference.sample_next(probabilities, uniform) + 1


@wrong("sample-next", "one id too early")
def sample_next(probabilities, uniform):
    return reference.sample_next(probabilities, uniform) - 1


@wrong("sample-next", "ids of the sorted probabilities")
def sample_next(probabilities, uniform):
    ranked = probabilities.sort(-1, descending=True).values
    return reference.sample_next(ranked, uniform)


@wrong("sample-next", "the number is not used")
def sample_next(probabilities, uniform):
    flat = probabilities.reshape(-1, probabilities.shape[-1])
    return torch.multinomial(flat, 1).reshape(uniform.shape)


@wrong("sample-next", "a value for each token")
def sample_next(probabilities, uniform):
    sums = probabilities.cumsum(-1)
    return (sums <= uniform.unsqueeze(-1) * sums[..., -1:]).long()


@wrong("sample-next", "no integers")
def sample_next(probabilities, uniform):
    return reference.sample_next(probabilities, uniform).float()


@right("sample-next")
def sample_next(probabilities, uniform):
    """searchsorted, with the right side."""
    sums = probabilities.cumsum(-1).contiguous()
    number = uniform.unsqueeze(-1) * sums[..., -1:]
    return torch.searchsorted(sums, number.contiguous(), right=True).squeeze(-1)


@right("sample-next")
def sample_next(probabilities, uniform):
    """The first True, by argmax; the sums divided in place of the number multiplied."""
    sums = probabilities.double().cumsum(-1)
    sums = sums / sums[..., -1:]
    return (sums > uniform.double()[..., None]).int().argmax(-1)


# --- beams ----------------------------------------------------------------------------


def search(
    model,
    prefix,
    eos_id,
    beam_width,
    max_length,
    alpha=0.0,
    *,
    see=lambda ids: ids,
    gains=lambda row: row.log_softmax(-1),
    keep=None,
    first=0,
    go_on=False,
    rate=lambda total, new, alpha: total / new**alpha,
    pool=lambda finished, alive: finished + alive,
):
    """The reference with places to break it."""
    alive, finished = [(0.0, list(prefix))], []
    while alive and len(alive[0][1]) < max_length and not 0 < first <= len(finished):
        families = [
            [
                (total + gain, [*ids, token])
                for token, gain in enumerate(
                    gains(model(torch.tensor([see(ids)]))[0, -1]).tolist()
                )
            ]
            for total, ids in alive
        ]
        if keep is None:
            every = [each for family in families for each in family]
            kept = heapq.nlargest(beam_width, every)
        else:
            kept = keep(families, beam_width, finished, eos_id)
        if go_on:
            alive = kept
            continue
        finished += [each for each in kept if each[1][-1] == eos_id]
        alive = [each for each in kept if each[1][-1] != eos_id]
    rated = [
        (rate(s, len(x) - len(prefix), alpha), x) for s, x in pool(finished, alive)
    ]
    score, ids = max(rated)
    return ids, score


@wrong("beam-search", "the width is not used")
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    return search(model, prefix, eos_id, 1, max_length, alpha)


@wrong("beam-search", "only the last token is read")
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    given = model, prefix, eos_id, beam_width, max_length, alpha
    return search(*given, see=lambda ids: ids[-1:])


@wrong("beam-search", "the beam is taken for each hypothesis")
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    def keep(families, width, finished, eos):
        return [each for family in families for each in heapq.nlargest(width, family)]

    given = model, prefix, eos_id, beam_width, max_length, alpha
    return search(*given, keep=keep)


@wrong("beam-search", "finished ones take no place in the beam")
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    def keep(families, width, finished, eos):
        kept, living = [], 0
        for each in sorted(itertools.chain(*families), reverse=True):
            if living < width:
                kept.append(each)
                living += each[1][-1] != eos
        return kept

    given = model, prefix, eos_id, beam_width, max_length, alpha
    return search(*given, keep=keep)


@wrong("beam-search", "the beam shrinks")
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    def keep(families, width, finished, eos):
        return heapq.nlargest(width - len(finished), itertools.chain(*families))

    given = model, prefix, eos_id, beam_width, max_length, alpha
    return search(*given, keep=keep)


@wrong("beam-search", "goes on after the end")
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    given = model, prefix, eos_id, beam_width, max_length, alpha
    return search(*given, go_on=True)


@wrong("beam-search", "stops at the first that ends")
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    given = model, prefix, eos_id, beam_width, max_length, alpha
    return search(*given, first=1)


@wrong("beam-search", "finished ones are forgotten")
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    given = model, prefix, eos_id, beam_width, max_length, alpha
    return search(*given, pool=lambda finished, alive: alive or finished)


@wrong("beam-search", "those alive are forgotten")
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    given = model, prefix, eos_id, beam_width, max_length, alpha
    return search(*given, pool=lambda finished, alive: finished or alive)


@wrong("beam-search", "alpha is not used")
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    return search(model, prefix, eos_id, beam_width, max_length, 0.0)


@wrong("beam-search", "stops when beam_width have ended")
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    given = model, prefix, eos_id, beam_width, max_length, alpha
    return search(*given, first=beam_width)


@wrong("beam-search", "max_length counts the new tokens alone")
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    limit = max_length + len(prefix)
    return search(model, prefix, eos_id, beam_width, limit, alpha)


@wrong("beam-search", "chosen by the sum, divided too late")
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    ids, total = search(model, prefix, eos_id, beam_width, max_length, 0.0)
    return ids, total / (len(ids) - len(prefix)) ** alpha


@wrong("beam-search", "the length leaves out <eos>")
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    def score(total, ids):
        new = len([token for token in ids[len(prefix) :] if token != eos_id])
        return total / max(new, 1) ** alpha

    alive, finished = [(0.0, list(prefix))], []
    while alive and len(alive[0][1]) < max_length:
        grown = []
        for total, ids in alive:
            row = model(torch.tensor([ids]))[0, -1].log_softmax(-1).tolist()
            grown += [(total + gain, [*ids, i]) for i, gain in enumerate(row)]
        kept = heapq.nlargest(beam_width, grown)
        finished += [each for each in kept if each[1][-1] == eos_id]
        alive = [each for each in kept if each[1][-1] != eos_id]
    total, ids = max(finished + alive, key=lambda each: score(*each))
    return ids, score(total, ids)


@wrong("beam-search", "the mean at every alpha")
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    return search(model, prefix, eos_id, beam_width, max_length, 1.0)


@wrong("beam-search", "the length counts the prefix")
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    def rate(total, new, alpha):
        return total / (new + len(prefix)) ** alpha

    given = model, prefix, eos_id, beam_width, max_length, alpha
    return search(*given, rate=rate)


@wrong("beam-search", "multiplied by the length")
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    given = model, prefix, eos_id, beam_width, max_length, alpha
    return search(*given, rate=lambda total, new, alpha: total * new**alpha)


@wrong("beam-search", "another length penalty")
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    given = model, prefix, eos_id, beam_width, max_length, alpha
    return search(*given, rate=lambda total, new, a: total / ((5 + new) / 6) ** a)


@wrong("beam-search", "logits in place of log-probabilities")
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    given = model, prefix, eos_id, beam_width, max_length, alpha
    return search(*given, gains=lambda row: row)


@wrong("beam-search", "probabilities are added")
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    given = model, prefix, eos_id, beam_width, max_length, alpha
    return search(*given, gains=lambda row: row.softmax(-1))


@wrong("beam-search", "a probability in place of its logarithm")
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    ids, score = search(model, prefix, eos_id, beam_width, max_length, alpha)
    return ids, math.exp(score)


@wrong("beam-search", "only the new tokens are returned")
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    ids, score = search(model, prefix, eos_id, beam_width, max_length, alpha)
    return ids[len(prefix) :], score


@wrong("beam-search", "ids and score exchanged")
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    return search(model, prefix, eos_id, beam_width, max_length, alpha)[::-1]


@wrong("beam-search", "a tensor in place of a number")
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    ids, score = search(model, prefix, eos_id, beam_width, max_length, alpha)
    return ids, torch.tensor(score)


@right("beam-search")
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    """A heap, and sums that are negated."""
    return search(model, prefix, eos_id, beam_width, max_length, alpha)


@right("beam-search")
@torch.no_grad()
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    """Tensors: all living hypotheses are one batch, topk chooses."""
    texts, sums, best = torch.tensor([prefix]), torch.zeros(1), (-math.inf, None)
    for length in range(len(prefix) + 1, max_length + 1):
        rows = model(texts)[:, -1].log_softmax(-1)
        grown = (sums.unsqueeze(1) + rows).flatten()
        values, places = grown.topk(min(beam_width, len(grown)))
        parents, tokens = places // rows.shape[1], places % rows.shape[1]
        texts = torch.cat((texts[parents], tokens.unsqueeze(1)), dim=1)
        ended = (tokens == eos_id) | (length == max_length)
        for text, value in zip(texts[ended], values[ended], strict=True):
            score = value.item() / (length - len(prefix)) ** alpha
            best = max(best, (score, text.tolist()), key=lambda each: each[0])
        texts, sums = texts[~ended], values[~ended]
        if not len(texts):
            break
    return best[1], best[0]


# --- the cache ------------------------------------------------------------------------


def appended(k_new, v_new, cache):
    if cache is None:
        return k_new, v_new
    return torch.cat((cache["k"], k_new), -2), torch.cat((cache["v"], v_new), -2)


@wrong("attend-cached", "no mask among the new tokens")
def attend_cached(q, k_new, v_new, cache):
    """As source 4 says: no mask is needed."""
    k, v = appended(k_new, v_new, cache)
    return scaled_dot_product_attention(q, k, v)[0], {"k": k, "v": v}


@wrong("attend-cached", "the mask knows nothing of the past")
def attend_cached(q, k_new, v_new, cache):
    k, v = appended(k_new, v_new, cache)
    mask = causal_mask(q.shape[-2])
    return scaled_dot_product_attention(q, k, v, mask)[0], {"k": k, "v": v}


@wrong("attend-cached", "the first rows of the mask")
def attend_cached(q, k_new, v_new, cache):
    k, v = appended(k_new, v_new, cache)
    mask = causal_mask(k.shape[-2])[: q.shape[-2]]
    return scaled_dot_product_attention(q, k, v, mask)[0], {"k": k, "v": v}


@wrong("attend-cached", "a token does not see itself")
def attend_cached(q, k_new, v_new, cache):
    k, v = appended(k_new, v_new, cache)
    mask = causal_mask(k.shape[-2]).tril(-1)[-q.shape[-2] :]
    return scaled_dot_product_attention(q, k, v, mask)[0], {"k": k, "v": v}


@wrong("attend-cached", "the cache holds the new ones alone")
def attend_cached(q, k_new, v_new, cache):
    output, _ = reference.attend_cached(q, k_new, v_new, cache)
    return output, {"k": k_new, "v": v_new}


@wrong("attend-cached", "the cache is not used")
def attend_cached(q, k_new, v_new, cache):
    return reference.attend_cached(q, k_new, v_new, None)


@wrong("attend-cached", "the new ones in front")
def attend_cached(q, k_new, v_new, cache):
    k, v = k_new, v_new
    if cache is not None:
        k, v = torch.cat((k, cache["k"]), -2), torch.cat((v, cache["v"]), -2)
    mask = causal_mask(k.shape[-2])[-q.shape[-2] :]
    return scaled_dot_product_attention(q, k, v, mask)[0], {"k": k, "v": v}


@wrong("attend-cached", "the scores are not scaled")
def attend_cached(q, k_new, v_new, cache):
    return reference.attend_cached(q * q.shape[-1] ** 0.5, k_new, v_new, cache)


@wrong("attend-cached", "keys and values exchanged in the cache")
def attend_cached(q, k_new, v_new, cache):
    output, cache = reference.attend_cached(q, k_new, v_new, cache)
    return output, {"k": cache["v"], "v": cache["k"]}


@wrong("attend-cached", "joined along the wrong axis")
def attend_cached(q, k_new, v_new, cache):
    k, v = k_new, v_new
    if cache is not None:
        k, v = torch.cat((cache["k"], k), -1), torch.cat((cache["v"], v), -1)
    mask = causal_mask(k.shape[-2])[-q.shape[-2] :]
    return scaled_dot_product_attention(q, k, v, mask)[0], {"k": k, "v": v}


@wrong("attend-cached", "changes its argument in place")
def attend_cached(q, k_new, v_new, cache):
    if cache is None:
        return reference.attend_cached(q, k_new, v_new, None)
    output, new = reference.attend_cached(q, k_new, v_new, cache)
    cache.update(new)
    return output, cache


@wrong("attend-cached", "the first call has no cache")
def attend_cached(q, k_new, v_new, cache):
    k = torch.cat((cache["k"], k_new), dim=-2)
    v = torch.cat((cache["v"], v_new), dim=-2)
    mask = causal_mask(k.shape[-2])[-q.shape[-2] :]
    return scaled_dot_product_attention(q, k, v, mask)[0], {"k": k, "v": v}


@wrong("attend-cached", "True hides")
def attend_cached(q, k_new, v_new, cache):
    k, v = appended(k_new, v_new, cache)
    mask = ~causal_mask(k.shape[-2])[-q.shape[-2] :]
    return scaled_dot_product_attention(q, k, v, mask)[0], {"k": k, "v": v}


@wrong("attend-cached", "a row for each position")
def attend_cached(q, k_new, v_new, cache):
    k, v = appended(k_new, v_new, cache)
    mask = causal_mask(k.shape[-2])
    return scaled_dot_product_attention(q, k, v, mask)[0], {"k": k, "v": v}


@wrong("attend-cached", "the values are not appended")
def attend_cached(q, k_new, v_new, cache):
    k, _ = appended(k_new, v_new, cache)
    v = v_new if cache is None else cache["v"]
    mask = causal_mask(k.shape[-2])[-q.shape[-2] :]
    return scaled_dot_product_attention(q, k, v, mask)[0], {"k": k, "v": v}


@wrong("attend-cached", "joined along the wrong axis")
def attend_cached(q, k_new, v_new, cache):
    """The axis of the heads."""
    k, v = k_new, v_new
    if cache is not None:
        k, v = torch.cat((cache["k"], k), dim=1), torch.cat((cache["v"], v), dim=1)
    mask = causal_mask(k.shape[-2])[-q.shape[-2] :]
    return scaled_dot_product_attention(q, k, v, mask)[0], {"k": k, "v": v}


@wrong("attend-cached", "the pair of attention is used whole")
def attend_cached(q, k_new, v_new, cache):
    k, v = appended(k_new, v_new, cache)
    mask = causal_mask(k.shape[-2])[-q.shape[-2] :]
    return scaled_dot_product_attention(q, k, v, mask), {"k": k, "v": v}


@wrong("attend-cached", "output and cache exchanged")
def attend_cached(q, k_new, v_new, cache):
    return reference.attend_cached(q, k_new, v_new, cache)[::-1]


@wrong("attend-cached", "the weights in place of the cache")
def attend_cached(q, k_new, v_new, cache):
    k, v = appended(k_new, v_new, cache)
    mask = causal_mask(k.shape[-2])[-q.shape[-2] :]
    return scaled_dot_product_attention(q, k, v, mask)


@right("attend-cached")
def attend_cached(q, k_new, v_new, cache):
    """Positions compared, and PyTorch's attention."""
    cache = cache or {"k": k_new[:, :, :0], "v": v_new[:, :, :0]}
    old, new = cache["k"].shape[2], q.shape[2]
    k = torch.cat([cache["k"], k_new], dim=2)
    v = torch.cat([cache["v"], v_new], dim=2)
    own = torch.arange(old, old + new).unsqueeze(1)
    mask = torch.arange(old + new) <= own
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask), {"k": k, "v": v}


@right("attend-cached")
def attend_cached(q, k_new, v_new, cache):
    """By hand, token by token."""
    outputs = []
    for i in range(q.shape[-2]):
        one = slice(i, i + 1)
        k, v = appended(k_new[..., one, :], v_new[..., one, :], cache)
        cache = {"k": k, "v": v}
        scores = q[..., one, :] @ k.mT / math.sqrt(q.shape[-1])
        outputs.append(scores.softmax(-1) @ v)
    return torch.cat(outputs, dim=-2), cache


# --- perplexity -----------------------------------------------------------------------


def token_losses(logits, labels):
    return F.cross_entropy(logits.transpose(1, 2), labels, reduction="none")


def sentence_means(logits, labels, pad_id):
    real = labels != pad_id
    return (token_losses(logits, labels) * real).sum(1) / real.sum(1)


@wrong("perplexity", "no exponential")
def perplexity(logits, labels, pad_id=0):
    return sequence_loss(logits, labels, pad_id)


@wrong("perplexity", "the mean of the exponentials")
def perplexity(logits, labels, pad_id=0):
    return token_losses(logits, labels)[labels != pad_id].exp().mean()


@wrong("perplexity", "the mean of sentence means")
def perplexity(logits, labels, pad_id=0):
    return sentence_means(logits, labels, pad_id).mean().exp()


@wrong("perplexity", "the mean of sentence perplexities")
def perplexity(logits, labels, pad_id=0):
    return sentence_means(logits, labels, pad_id).exp().mean()


@wrong("perplexity", "a perplexity for each sentence")
def perplexity(logits, labels, pad_id=0):
    return sentence_means(logits, labels, pad_id).exp()


@wrong("perplexity", "pad_id is not used")
def perplexity(logits, labels, pad_id=0):
    return sequence_loss(logits, labels).exp()


@wrong("perplexity", "padding is counted")
def perplexity(logits, labels, pad_id=0):
    return token_losses(logits, labels).mean().exp()


@wrong("perplexity", "divided by all positions")
def perplexity(logits, labels, pad_id=0):
    return (token_losses(logits, labels) * (labels != pad_id)).mean().exp()


@wrong("perplexity", "base 2 in place of e")
def perplexity(logits, labels, pad_id=0):
    return 2 ** sequence_loss(logits, labels, pad_id)


@wrong("perplexity", "the sum in place of the mean")
def perplexity(logits, labels, pad_id=0):
    return token_losses(logits, labels)[labels != pad_id].sum().exp()


@wrong("perplexity", "smoothing belongs to training")
def perplexity(logits, labels, pad_id=0):
    return torch.exp(sequence_loss(logits, labels, pad_id, 0.1))


@wrong("perplexity", "the sign is missing")
def perplexity(logits, labels, pad_id=0):
    return torch.exp(-sequence_loss(logits, labels, pad_id))


@wrong("perplexity", "one over the mean probability")
def perplexity(logits, labels, pad_id=0):
    own = logits.softmax(-1).gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    return 1 / own[labels != pad_id].mean()


@wrong("perplexity", "a number in place of a tensor")
def perplexity(logits, labels, pad_id=0):
    return math.exp(sequence_loss(logits, labels, pad_id))


@right("perplexity")
def perplexity(logits, labels, pad_id=0):
    """PyTorch's loss."""
    flat = logits.reshape(-1, logits.shape[-1])
    return F.cross_entropy(flat, labels.reshape(-1), ignore_index=pad_id).exp()


@right("perplexity")
def perplexity(logits, labels, pad_id=0):
    """The geometric mean of one over the probabilities."""
    chances = logits.double().softmax(-1).gather(-1, labels[..., None])[..., 0]
    chances = chances[labels != pad_id]
    return (1 / chances).pow(1 / len(chances)).prod().float()


# --- BLEU -----------------------------------------------------------------------------


def grams(tokens, n):
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def clipped(ours, theirs):
    return (ours & theirs).total(), ours.total()


def brevity(c, r):
    return 1.0 if c > r else math.exp(1 - r / c)


def score(hypotheses, references, maximum=4, count=clipped, penalty=brevity, add=0):
    mean = 0.0
    for n in range(1, maximum + 1):
        matches = total = add if n > 1 else 0
        for mine, other in zip(hypotheses, references, strict=True):
            found, there = count(grams(mine, n), grams(other, n))
            matches, total = matches + found, total + there
        if not matches:
            return 0.0
        mean += math.log(matches / total) / maximum
    c, r = sum(map(len, hypotheses)), sum(map(len, references))
    return 100 * penalty(c, r) * math.exp(mean)


@wrong("bleu", "counts are not clipped")
def bleu(hypotheses, references, maximum=4):
    def count(ours, theirs):
        return sum(ours[gram] for gram in ours if gram in theirs), ours.total()

    return score(hypotheses, references, maximum, count)


@wrong("bleu", "each n-gram counts once")
def bleu(hypotheses, references, maximum=4):
    def count(ours, theirs):
        return len(set(ours) & set(theirs)), len(set(ours))

    return score(hypotheses, references, maximum, count)


@wrong("bleu", "recall in place of precision")
def bleu(hypotheses, references, maximum=4):
    def count(ours, theirs):
        return (ours & theirs).total(), theirs.total()

    return score(hypotheses, references, maximum, count)


@wrong("bleu", "the mean of sentence scores")
def bleu(hypotheses, references, maximum=4):
    pairs = list(zip(hypotheses, references, strict=True))
    return sum(score([a], [b], maximum) for a, b in pairs) / len(pairs)


@wrong("bleu", "no brevity penalty")
def bleu(hypotheses, references, maximum=4):
    return score(hypotheses, references, maximum, penalty=lambda c, r: 1)


@wrong("bleu", "the brevity penalty is turned round")
def bleu(hypotheses, references, maximum=4):
    return score(hypotheses, references, maximum, penalty=lambda c, r: brevity(r, c))


@wrong("bleu", "the penalty grows with short texts")
def bleu(hypotheses, references, maximum=4):
    def penalty(c, r):
        return 1.0 if c > r else math.exp(1 - c / r)

    return score(hypotheses, references, maximum, penalty=penalty)


@wrong("bleu", "a reward for long texts")
def bleu(hypotheses, references, maximum=4):
    def penalty(c, r):
        return math.exp(1 - r / c)

    return score(hypotheses, references, maximum, penalty=penalty)


@wrong("bleu", "a ratio in place of the exponential")
def bleu(hypotheses, references, maximum=4):
    return score(hypotheses, references, maximum, penalty=lambda c, r: min(1.0, c / r))


@wrong("bleu", "always up to four")
def bleu(hypotheses, references, maximum=4):
    return score(hypotheses, references)


@wrong("bleu", "one length too few")
def bleu(hypotheses, references, maximum=4):
    return score(hypotheses, references, maximum - 1) if maximum > 1 else 0.0


@wrong("bleu", "smoothed")
def bleu(hypotheses, references, maximum=4):
    return score(hypotheses, references, maximum, add=1)


@wrong("bleu", "from 0 to 1")
def bleu(hypotheses, references, maximum=4):
    return score(hypotheses, references, maximum) / 100


def shares(hypotheses, references, maximum):
    for n in range(1, maximum + 1):
        pairs = zip(hypotheses, references, strict=True)
        counts = [clipped(grams(a, n), grams(b, n)) for a, b in pairs]
        found, there = map(sum, zip(*counts, strict=True))
        yield found / there if there else 0.0


def total_brevity(hypotheses, references):
    return brevity(sum(map(len, hypotheses)), sum(map(len, references)))


@wrong("bleu", "the arithmetic mean of the precisions")
def bleu(hypotheses, references, maximum=4):
    found = list(shares(hypotheses, references, maximum))
    return 100 * total_brevity(hypotheses, references) * sum(found) / maximum


@wrong("bleu", "the product without the root")
def bleu(hypotheses, references, maximum=4):
    found = math.prod(shares(hypotheses, references, maximum))
    return 100 * total_brevity(hypotheses, references) * found


@wrong("bleu", "only the longest n-grams")
def bleu(hypotheses, references, maximum=4):
    *_, last = shares(hypotheses, references, maximum)
    return 100 * total_brevity(hypotheses, references) * last


@wrong("bleu", "lengths without a match are skipped")
def bleu(hypotheses, references, maximum=4):
    found = [each for each in shares(hypotheses, references, maximum) if each]
    mean = math.prod(found) ** (1 / len(found)) if found else 0.0
    return 100 * total_brevity(hypotheses, references) * mean


@wrong("bleu", "the mean of sentence precisions")
def bleu(hypotheses, references, maximum=4):
    mean = 0.0
    for n in range(1, maximum + 1):
        pairs = zip(hypotheses, references, strict=True)
        counts = [clipped(grams(a, n), grams(b, n)) for a, b in pairs]
        found = [matches / total for matches, total in counts if total]
        if not sum(found):
            return 0.0
        mean += math.log(sum(found) / len(found)) / maximum
    return 100 * total_brevity(hypotheses, references) * math.exp(mean)


@wrong("bleu", "the logarithm of 0")
def bleu(hypotheses, references, maximum=4):
    found = shares(hypotheses, references, maximum)
    mean = sum(math.log(each) for each in found) / maximum
    return 100 * total_brevity(hypotheses, references) * math.exp(mean)


@wrong("bleu", "no n-grams of this length")
def bleu(hypotheses, references, maximum=4):
    mean = 1.0
    for n in range(1, maximum + 1):
        pairs = zip(hypotheses, references, strict=True)
        counts = [clipped(grams(a, n), grams(b, n)) for a, b in pairs]
        mean *= (sum(x for x, _ in counts) / sum(y for _, y in counts)) ** (1 / maximum)
    return 100 * total_brevity(hypotheses, references) * mean


@wrong("bleu", "a tensor in place of a number")
def bleu(hypotheses, references, maximum=4):
    return torch.tensor(score(hypotheses, references, maximum))


@right("bleu")
def bleu(hypotheses, references, maximum=4):
    """Products and roots, no logarithm."""
    precision = math.prod(shares(hypotheses, references, maximum))
    factor = total_brevity(hypotheses, references)
    return 100.0 * factor * precision ** (1 / maximum)


@right("bleu")
def bleu(hypotheses, references, maximum=4):
    """Lists and count, no Counter; penalty by min."""
    logs = []
    for n in range(1, maximum + 1):
        matches = total = 0
        for mine, other in zip(hypotheses, references, strict=True):
            ours = [tuple(mine[i : i + n]) for i in range(len(mine) - n + 1)]
            left = [tuple(other[i : i + n]) for i in range(len(other) - n + 1)]
            total += len(ours)
            for gram in ours:
                if gram in left:
                    left.remove(gram)
                    matches += 1
        if total == 0 or matches == 0:
            return 0.0
        logs.append(math.log(matches) - math.log(total))
    c = sum(len(text) for text in hypotheses)
    r = sum(len(text) for text in references)
    return math.exp(sum(logs) / len(logs)) * math.exp(min(0, 1 - r / c)) * 100
