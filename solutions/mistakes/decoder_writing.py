"""Wrong and right answers to chapter 7, second part: training and writing text."""

import heapq
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


def epoch(model, batches, learning_rate, loss=sequence_loss, see=None):
    descent = torch.optim.SGD(model.parameters(), lr=learning_rate)
    losses = []
    for source, inputs, labels in batches:
        logits = model(*(see(source, inputs, labels) if see else (source, inputs)))
        error = loss(logits, labels)
        descent.zero_grad()
        error.backward()
        descent.step()
        losses.append(error.item())
    return losses


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


@wrong("bug-hunt", "padding is scored")
def repaired_epoch(model, batches, learning_rate):
    def loss(logits, labels):
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())

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


@wrong("filter-logits", "zeros in place of −∞")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    kept = reference.filter_logits(logits, temperature, top_k, None)
    kept = kept.masked_fill(kept == -math.inf, 0.0)
    return (
        limited_p(kept, top_p)
        .clamp(min=-1e30)
        .masked_fill_(limited_p(kept, top_p) == -math.inf, 0.0)
    )


@wrong("filter-logits", "ties are cut")
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    refuse(temperature, top_k, top_p)
    logits = logits / temperature
    if top_k is not None:
        values, places = logits.topk(min(top_k, logits.shape[-1]))
        empty = torch.full_like(logits, -math.inf)
        logits = empty.scatter(-1, places, values)
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


@wrong("sample-next", "clamped to the last id")
def sample_next(probabilities, uniform):
    passed = (probabilities.cumsum(-1) <= uniform.unsqueeze(-1)).sum(-1)
    return passed.clamp(max=probabilities.shape[-1] - 1)


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


@wrong("beam-search", "ids and score exchanged")
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    return reference.beam_search(model, prefix, eos_id, beam_width, max_length, alpha)[
        ::-1
    ]


@wrong("beam-search", "a tensor in place of a number")
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    ids, score = reference.beam_search(
        model, prefix, eos_id, beam_width, max_length, alpha
    )
    return ids, torch.tensor(score)


@right("beam-search")
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    """A heap, and tuples of sum and ids."""
    alive, finished = [(0.0, list(prefix))], []
    while alive and len(alive[0][1]) < max_length:
        grown = []
        for total, ids in alive:
            row = model(torch.tensor([ids]))[0, -1].log_softmax(-1).tolist()
            grown += [(total + gain, [*ids, i]) for i, gain in enumerate(row)]
        kept = heapq.nlargest(beam_width, grown)
        finished += [each for each in kept if each[1][-1] == eos_id]
        alive = [each for each in kept if each[1][-1] != eos_id]
    new = len(prefix)
    score, ids = max((s / (len(x) - new) ** alpha, x) for s, x in finished + alive)
    return ids, score


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


# --- BLEU -----------------------------------------------------------------------------


def grams(tokens, n):
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def clipped(ours, theirs):
    return (ours & theirs).total(), ours.total()


def shares(hypotheses, references, maximum):
    for n in range(1, maximum + 1):
        pairs = zip(hypotheses, references, strict=True)
        counts = [clipped(grams(a, n), grams(b, n)) for a, b in pairs]
        found, there = map(sum, zip(*counts, strict=True))
        yield found / there if there else 0.0


def total_brevity(hypotheses, references):
    c, r = sum(map(len, hypotheses)), sum(map(len, references))
    return min(1.0, math.exp(1 - r / c))


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
    return torch.tensor(reference.bleu(hypotheses, references, maximum))


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
