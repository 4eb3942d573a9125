"""Text with what Python brings along: Counter, heapq, itertools, functools.

In the manner of scripts for programming courses, and of minbpe and sacreBLEU.
"""

import functools
import heapq
import itertools
import math
import operator
from collections import Counter, OrderedDict, defaultdict, deque

import numpy as np
import torch


def build_vocabulary(tokens, special_tokens=("<pad>", "<unk>", "<sos>", "<eos>")):
    numbers = itertools.count()
    found = defaultdict(lambda: next(numbers))
    deque(map(found.__getitem__, itertools.chain(special_tokens, tokens)), maxlen=0)
    return OrderedDict(found)


def encode(tokens, vocabulary):
    unknown = vocabulary["<unk>"]
    ids = np.array([vocabulary.get(token, unknown) for token in tokens], dtype=int)
    return list(ids)  # of np.int64


def decode(ids, vocabulary):
    pairs = sorted((number, token) for token, number in vocabulary.items())
    back = dict(pairs)
    strangers = set(ids) - back.keys()
    if strangers:
        raise ValueError(f"no token for {sorted(strangers)}")
    return [*map(back.get, ids)]


def pair_counts(words):
    counts = Counter()
    for symbols, times in words.items():
        for pair in itertools.pairwise(symbols):
            counts.update({pair: times})
    return counts


def merge_pair(symbols, pair):
    def step(done, symbol):
        if done and done[-1] == (pair[0], True) and symbol == pair[1]:
            return [*done[:-1], ("".join(pair), False)]
        return [*done, (symbol, True)]

    return tuple(symbol for symbol, _ in functools.reduce(step, symbols, []))


def tf_idf(documents):
    terms = list(OrderedDict.fromkeys(itertools.chain.from_iterable(documents)))
    counts = [Counter(document) for document in documents]
    holding = Counter(itertools.chain.from_iterable(counts))
    weigh = {term: math.log(len(documents) / holding[term]) for term in terms}
    rows = [[count[term] * weigh[term] for term in terms] for count in counts]
    return [torch.tensor(rows, dtype=torch.float32), terms]


def skip_gram_pairs(ids, window):
    places = itertools.product(range(len(ids)), repeat=2)
    near = [pair for pair in places if 0 < abs(operator.sub(*pair)) <= window]
    return [operator.itemgetter(*pair)(ids) for pair in near]


def noam_rate(step, d_model, warmup=4000):
    if not step >= 1:
        raise ValueError(step)
    rising = step / math.pow(warmup, 1.5)
    return np.sqrt(1 / d_model) * np.minimum(step**-0.5, rising)  # np.float64


def shift_right(sequences, sos_id, eos_id, pad_id=0):
    read = ([sos_id, *each] for each in sequences)
    said = ([*each, eos_id] for each in sequences)

    def filled(rows):
        columns = itertools.zip_longest(*rows, fillvalue=pad_id)
        return torch.tensor(list(zip(*columns, strict=True)), dtype=torch.int32)

    return [filled(read), filled(said)]


@torch.inference_mode()
def greedy_decode(model, prefix, eos_id, max_length):
    ids = deque(prefix)
    while len(ids) < max_length and ids[-1] != eos_id:
        row = model(torch.tensor([ids]))[0, -1].numpy()
        ids.append(row.argmax())  # np.int64
    return list(ids)


@torch.no_grad()
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    def final(score, ids):
        return score / (len(ids) - len(prefix)) ** alpha

    ended, beams = [], [(0.0, tuple(prefix))]
    while beams:
        found = []
        for score, ids in beams:
            rows = torch.log_softmax(model(torch.tensor([ids]))[0, -1], dim=-1)
            steps = enumerate(rows.tolist())
            found += [(score + more, (*ids, token)) for token, more in steps]
        best = heapq.nlargest(beam_width, found, key=operator.itemgetter(0))
        over = [i for i, (_, ids) in enumerate(best)
                if ids[-1] == eos_id or len(ids) == max_length]  # fmt: skip
        ended += [(final(*best[i]), best[i][1]) for i in over]
        beams = [each for i, each in enumerate(best) if i not in over]
    score, ids = max(ended, key=operator.itemgetter(0))
    return [list(ids), np.float64(score)]


def bleu(hypotheses, references, maximum=4):
    def grams(tokens, n):
        return Counter(zip(*(tokens[i:] for i in range(n)), strict=False))

    def precision(n):
        pairs = zip(hypotheses, references, strict=True)
        both = [(grams(a, n), grams(b, n)) for a, b in pairs]
        right = sum((a & b).total() for a, b in both)
        return right / max(1, sum(a.total() for a, _ in both))

    chances = [precision(n) for n in range(1, maximum + 1)]
    said, wanted = (sum(map(len, each)) for each in (hypotheses, references))
    if not all(chances) or not said:
        return 0
    penalty = min(1.0, math.exp(1 - wanted / said))
    return 100 * penalty * np.exp(np.mean(np.log(chances)))
