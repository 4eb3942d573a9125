"""Wrong and right answers to the exercises of chapter 1."""

import math
import re
from collections import Counter, defaultdict
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import nn

from mistakes import right, wrong

SPECIAL = ("<pad>", "<unk>", "<sos>", "<eos>")
ORDINARY = r" ?\w+| ?[^\w\s]+|\s+(?!\S)|\s+"


def split_words(text, special_tokens=()):
    """As the notebook gives it."""
    special = "|".join(re.escape(t) for t in sorted(special_tokens, key=len)[::-1])
    parts = re.split(f"({special})", text) if special else [text]
    pieces = []
    for part in parts:
        pieces += [part] if part in special_tokens else re.findall(ORDINARY, part)
    return pieces


# --- vocabulary -----------------------------------------------------------------------


@wrong("vocabulary", "the special tokens come last")
def build_vocabulary(tokens, special_tokens=SPECIAL):
    words = [token for token in tokens if token not in special_tokens]
    return {t: i for i, t in enumerate(dict.fromkeys([*words, *special_tokens]))}


@wrong("vocabulary", "tokens in order of frequency")
def build_vocabulary(tokens, special_tokens=SPECIAL):
    common = [token for token, _ in Counter(tokens).most_common()]
    return {t: i for i, t in enumerate(dict.fromkeys([*special_tokens, *common]))}


@wrong("vocabulary", "a repeated token takes a new id")
def build_vocabulary(tokens, special_tokens=SPECIAL):
    vocabulary = {}
    for token in [*special_tokens, *tokens]:
        vocabulary[token] = len(vocabulary)
    return vocabulary


@wrong("vocabulary", "a special token in the text takes a new id")
def build_vocabulary(tokens, special_tokens=SPECIAL):
    vocabulary = {token: i for i, token in enumerate(special_tokens)}
    for token in dict.fromkeys(tokens):
        vocabulary[token] = len(vocabulary)
    return vocabulary


@wrong("vocabulary", "gaps between the ids")
def build_vocabulary(tokens, special_tokens=SPECIAL):
    vocabulary = {}
    for i, token in enumerate([*special_tokens, *tokens]):
        vocabulary.setdefault(token, i)
    return vocabulary


@right("vocabulary")
def build_vocabulary(tokens, special_tokens=SPECIAL):
    """a loop and the length"""
    vocabulary = {}
    for token in list(special_tokens) + tokens:
        if token not in vocabulary:
            vocabulary[token] = len(vocabulary)
    return vocabulary


@right("vocabulary")
def build_vocabulary(tokens, special_tokens=SPECIAL):
    """a dict that numbers by itself"""
    vocabulary = defaultdict(lambda: len(vocabulary))
    for token in (*special_tokens, *tokens):
        vocabulary[token]
    return vocabulary


# --- encode and decode ----------------------------------------------------------------


@wrong("encode-decode", "an unknown token stops the program")
def encode(tokens, vocabulary):
    return [vocabulary[token] for token in tokens]


@wrong("encode-decode", "the position in the dict in place of the id")
def encode(tokens, vocabulary):
    names = list(vocabulary)
    return [names.index(t if t in vocabulary else "<unk>") for t in tokens]


@wrong("encode-decode", "the exception is returned, not raised")
def decode(ids, vocabulary):
    back = {number: token for token, number in vocabulary.items()}
    if any(number not in back for number in ids):
        return ValueError("no such id")
    return [back[number] for number in ids]


@wrong("encode-decode", "a tensor in place of a list")
def encode(tokens, vocabulary):
    return torch.tensor([vocabulary.get(t, vocabulary["<unk>"]) for t in tokens])


@wrong("encode-decode", "changes its argument in place")
def encode(tokens, vocabulary):
    return [vocabulary.setdefault(token, len(vocabulary)) for token in tokens]


@wrong("encode-decode", "the position in the dict in place of the id")
def decode(ids, vocabulary):
    names = list(vocabulary)
    return [names[i] for i in ids]


@wrong("encode-decode", "another exception than ValueError")
def decode(ids, vocabulary):
    names = {i: token for token, i in vocabulary.items()}
    return [names[i] for i in ids]


@wrong("encode-decode", "another exception than ValueError")
def decode(ids, vocabulary):
    names = {i: token for token, i in vocabulary.items()}
    for i in ids:
        if i < 0 or i > max(names):
            raise ValueError(i)
    return [names[i] for i in ids]


@wrong("encode-decode", "a negative id counts from the end")
def decode(ids, vocabulary):
    names = [None] * (max(vocabulary.values()) + 1)
    for token, i in vocabulary.items():
        names[i] = token
    if any(i >= len(names) or names[i] is None for i in ids):
        raise ValueError
    return [names[i] for i in ids]


@right("encode-decode")
def encode(tokens, vocabulary):
    """a question and a loop"""
    ids = []
    for token in tokens:
        ids.append(vocabulary[token] if token in vocabulary else vocabulary["<unk>"])
    return ids


@right("encode-decode")
def decode(ids, vocabulary):
    """the KeyError is caught"""
    names = dict(zip(vocabulary.values(), vocabulary.keys(), strict=True))
    try:
        return [names[i] for i in ids]
    except KeyError as error:
        raise ValueError(f"no token has the id {error}") from None


# --- pair counts ----------------------------------------------------------------------


@wrong("pair-counts", "every word counts once")
def pair_counts(words):
    return Counter(pair for symbols in words for pair in pairwise(symbols))


@wrong("pair-counts", "pairs that reach from word to word")
def pair_counts(words):
    return Counter(pairwise(symbol for symbols in words for symbol in symbols))


@wrong("pair-counts", "pairs that reach from word to word")
def pair_counts(words):
    text = [s for symbols, n in words.items() for _ in range(n) for s in symbols]
    return Counter(pairwise(text))


@wrong("pair-counts", "a later word replaces the count")
def pair_counts(words):
    counts = {}
    for symbols, n in words.items():
        for pair in pairwise(symbols):
            counts[pair] = n
    return counts


@wrong("pair-counts", "right pairs in another order")
def pair_counts(words):
    counts = Counter()
    for symbols, n in words.items():
        for pair in pairwise(symbols):
            counts[pair] += n
    return dict(sorted(counts.items()))


@wrong("pair-counts", "right pairs in another order")
def pair_counts(words):
    counts = Counter()
    for symbols, n in words.items():
        for pair in pairwise(symbols):
            counts[pair] += n
    return dict(counts.most_common())


@right("pair-counts")
def pair_counts(words):
    """a Counter and zip"""
    counts = Counter()
    for symbols, n in words.items():
        for pair in pairwise(symbols):
            counts[pair] += n
    return counts


@right("pair-counts")
def pair_counts(words):
    """indices and a defaultdict"""
    counts = defaultdict(int)
    for symbols in words:
        for i in range(1, len(symbols)):
            counts[symbols[i - 1], symbols[i]] += words[symbols]
    return counts


# --- merging a pair -------------------------------------------------------------------


def merged(symbols, pair):
    """The right answer, for what is built on it."""
    out, i = [], 0
    while i < len(symbols):
        if i + 1 < len(symbols) and (symbols[i], symbols[i + 1]) == pair:
            out.append(symbols[i] + symbols[i + 1])
            i += 2
        else:
            out.append(symbols[i])
            i += 1
    return tuple(out)


@wrong("merge-pair", "only the first occurrence is merged")
def merge_pair(symbols, pair):
    for i in range(len(symbols) - 1):
        if symbols[i : i + 2] == pair:
            return (*symbols[:i], "".join(pair), *symbols[i + 2 :])
    return symbols


@wrong("merge-pair", "merged from the right")
def merge_pair(symbols, pair):
    out, i = [], len(symbols) - 1
    while i >= 0:
        found = i > 0 and (symbols[i - 1], symbols[i]) == pair
        out.insert(0, "".join(pair) if found else symbols[i])
        i -= 2 if found else 1
    return tuple(out)


@wrong("merge-pair", "the second symbol stays")
def merge_pair(symbols, pair):
    out = []
    for i, symbol in enumerate(symbols):
        out.append("".join(pair) if symbols[i : i + 2] == pair else symbol)
    return tuple(out)


@wrong("merge-pair", "the last symbol is lost")
def merge_pair(symbols, pair):
    out, i = [], 0
    while i < len(symbols) - 1:
        found = symbols[i : i + 2] == pair
        out.append("".join(pair) if found else symbols[i])
        i += 2 if found else 1
    return tuple(out)


@wrong("merge-pair", "text compared in place of symbols")
def merge_pair(symbols, pair):
    out, i = [], 0
    while i < len(symbols):
        found = "".join(symbols[i : i + 2]) == "".join(pair)
        out.append("".join(pair) if found else symbols[i])
        i += 2 if found else 1
    return tuple(out)


@wrong("merge-pair", "the pair is removed")
def merge_pair(symbols, pair):
    out, i = [], 0
    while i < len(symbols):
        if symbols[i : i + 2] == pair:
            i += 2
            continue
        out.append(symbols[i])
        i += 1
    return tuple(out)


@wrong("merge-pair", "looks beyond the last symbol")
def merge_pair(symbols, pair):
    out, i = [], 0
    while i < len(symbols):
        if symbols[i] == pair[0] and symbols[i + 1] == pair[1]:
            out.append(pair[0] + pair[1])
            i += 2
        else:
            out.append(symbols[i])
            i += 1
    return tuple(out)


@right("merge-pair")
def merge_pair(symbols, pair):
    """a for loop that remembers to skip"""
    out, skip = [], False
    for i, symbol in enumerate(symbols):
        if skip:
            skip = False
        elif symbols[i : i + 2] == pair:
            out.append("".join(pair))
            skip = True
        else:
            out.append(symbol)
    return tuple(out)


@right("merge-pair")
def merge_pair(symbols, pair):
    """calling itself"""
    if len(symbols) < 2:
        return symbols
    if symbols[:2] == pair:
        return ("".join(pair), *merge_pair(symbols[2:], pair))
    return (symbols[0], *merge_pair(symbols[1:], pair))


@right("merge-pair")
def merge_pair(symbols, pair):
    """eating up a list"""
    left, out = list(symbols), []
    while left:
        if tuple(left[:2]) == pair:
            out.append(left.pop(0) + left.pop(0))
        else:
            out.append(left.pop(0))
    return tuple(out)


# --- learning the merges --------------------------------------------------------------


def counted(words):
    """The right counts, for what is built on them."""
    counts = Counter()
    for symbols, n in words.items():
        for pair in pairwise(symbols):
            counts[pair] += n
    return counts


def start(text, special_tokens):
    """The words as the algorithm starts with them."""
    pieces = Counter(split_words(text, special_tokens))
    return {(p,) if p in special_tokens else tuple(p): n for p, n in pieces.items()}


def learn(words, merges):
    """The right algorithm, for words that are not."""
    found = []
    while len(found) < merges and (counts := counted(words)):
        found.append(max(counts, key=counts.get))
        words = {merged(word, found[-1]): n for word, n in words.items()}
    return found


@wrong("train-bpe", "every word counts once")
def train_bpe(text, merges, special_tokens=()):
    return learn(dict.fromkeys(start(text, special_tokens), 1), merges)


@wrong("train-bpe", "the spaces are lost")
def train_bpe(text, merges, special_tokens=()):
    words = {}
    for piece, n in Counter(split_words(text, special_tokens)).items():
        key = (piece,) if piece in special_tokens else tuple(piece.strip())
        words[key] = words.get(key, 0) + n
    return learn(words, merges)


@wrong("train-bpe", "the words change places")
def train_bpe(text, merges, special_tokens=()):
    words, found = start(text, special_tokens), []
    while len(found) < merges and (counts := counted(words)):
        found.append(max(counts, key=counts.get))
        for word in list(words):
            if merged(word, found[-1]) != word:
                words[merged(word, found[-1])] = words.pop(word)
    return found


@wrong("train-bpe", "does not stop when no pair is left")
def train_bpe(text, merges, special_tokens=()):
    words, found = start(text, special_tokens), []
    for _ in range(merges):
        counts = counted(words)
        found.append(max(counts, key=counts.get))
        words = {merged(word, found[-1]): n for word, n in words.items()}
    return found


@right("train-bpe")
def train_bpe(text, merges, special_tokens=()):
    """without counting words: every piece by itself"""
    pieces = split_words(text, special_tokens)
    words = [(p,) if p in special_tokens else tuple(p) for p in pieces]
    found = []
    for _ in range(merges):
        counts = Counter(pair for word in words for pair in pairwise(word))
        if not counts:
            break
        found.append(counts.most_common(1)[0][0])
        words = [merged(word, found[-1]) for word in words]
    return found


@right("train-bpe")
def train_bpe(text, merges, special_tokens=()):
    """comparing by hand, first largest wins"""
    words, found = start(text, special_tokens), []
    while len(found) < merges:
        best, most = None, 0
        for pair, count in counted(words).items():
            if count > most:
                best, most = pair, count
        if best is None:
            return found
        found.append(best)
        renewed = Counter()
        for word, n in words.items():
            renewed[merged(word, best)] += n
        words = renewed
    return found


# --- using the merges -----------------------------------------------------------------


def apply(pieces, merges, special_tokens=()):
    """The right algorithm for given pieces."""
    tokens = []
    for piece in pieces:
        symbols = (piece,) if piece in special_tokens else tuple(piece)
        for pair in merges:
            symbols = merged(symbols, pair)
        tokens += symbols
    return tokens


@wrong("bpe-encode", "each merge only once in a word")
def bpe_encode(text, merges, special_tokens=()):
    tokens = []
    for piece in split_words(text, special_tokens):
        symbols = [piece] if piece in special_tokens else list(piece)
        for pair in merges:
            for i in range(len(symbols) - 1):
                if (symbols[i], symbols[i + 1]) == pair:
                    symbols[i : i + 2] = ["".join(pair)]
                    break
        tokens += symbols
    return tokens


@wrong("bpe-encode", "ends at the first merge that does not fit")
def bpe_encode(text, merges, special_tokens=()):
    tokens = []
    for piece in split_words(text, special_tokens):
        word = (piece,) if piece in special_tokens else tuple(piece)
        left = list(merges)
        while left and (new := merge_pair(word, left.pop(0))) != word:
            word = new
        tokens.extend(word)
    return tokens


@wrong("bpe-encode", "the longest known token is taken first")
def bpe_encode(text, merges, special_tokens=()):
    known, tokens = {"".join(pair) for pair in merges}, []
    for piece in split_words(text, special_tokens):
        rest = piece
        while rest and piece not in special_tokens:
            size = len(rest)
            while size > 1 and rest[:size] not in known:
                size -= 1
            tokens.append(rest[:size])
            rest = rest[size:]
        tokens += [rest] if rest else []
    return tokens


@wrong("bpe-encode", "unknown symbols become <unk>")
def bpe_encode(text, merges, special_tokens=()):
    known = {s for pair in merges for s in (*pair, "".join(pair))} | {*special_tokens}
    tokens = apply(split_words(text, special_tokens), merges, special_tokens)
    return [token if token in known else "<unk>" for token in tokens]


@wrong("bpe-encode", "the characters are not merged")
def bpe_encode(text, merges, special_tokens=()):
    tokens = []
    for piece in split_words(text, special_tokens):
        symbols = (piece,) if piece in special_tokens else tuple(piece)
        for pair in merges:
            merged(symbols, pair)
        tokens += symbols
    return tokens


@wrong("bpe-encode", "only the last merge is applied")
def bpe_encode(text, merges, special_tokens=()):
    tokens = []
    for piece in split_words(text, special_tokens):
        symbols = (piece,) if piece in special_tokens else tuple(piece)
        out = symbols
        for pair in merges:
            out = merged(symbols, pair)
        tokens += out
    return tokens


@right("bpe-encode")
def bpe_encode(text, merges, special_tokens=()):
    """the lowest merge that fits, again and again"""
    rank = {pair: i for i, pair in enumerate(merges)}
    tokens = []
    for piece in split_words(text, special_tokens):
        symbols = (piece,) if piece in special_tokens else tuple(piece)
        while pairs := [pair for pair in pairwise(symbols) if pair in rank]:
            symbols = merged(symbols, min(pairs, key=rank.get))
        tokens.extend(symbols)
    return tokens


@right("bpe-encode")
def bpe_encode(text, merges, special_tokens=()):
    """special tokens treated first"""
    tokens = []
    for piece in split_words(text, special_tokens):
        if piece in special_tokens:
            tokens.append(piece)
        else:
            tokens += apply([piece], merges)
    return tokens


# --- one-hot rows ---------------------------------------------------------------------


def refuse(ids, vocab_size):
    """The right refusal."""
    if ids.min() < 0 or ids.max() >= vocab_size:
        raise ValueError("an id outside the vocabulary")


@wrong("one-hot", "columns counted from 1")
def one_hot(ids, vocab_size):
    refuse(ids, vocab_size)
    return torch.eye(vocab_size)[ids - 1]


@wrong("one-hot", "one row for all ids")
def one_hot(ids, vocab_size):
    refuse(ids, vocab_size)
    return torch.eye(vocab_size)[ids].amax(-2)


@wrong("one-hot", "0 and 1 exchanged")
def one_hot(ids, vocab_size):
    refuse(ids, vocab_size)
    return (ids[..., None] != torch.arange(vocab_size)).float()


@wrong("one-hot", "no floats")
def one_hot(ids, vocab_size):
    refuse(ids, vocab_size)
    return F.one_hot(ids, vocab_size)


@wrong("one-hot", "no floats")
def one_hot(ids, vocab_size):
    refuse(ids, vocab_size)
    return ids[..., None] == torch.arange(vocab_size)


@wrong("one-hot", "one column too many")
def one_hot(ids, vocab_size):
    refuse(ids, vocab_size)
    return F.one_hot(ids, vocab_size + 1).float()


@wrong("one-hot", "the id in place of 1")
def one_hot(ids, vocab_size):
    refuse(ids, vocab_size)
    return F.one_hot(ids, vocab_size).float() * ids[..., None]


@wrong("one-hot", "only works for one sequence")
def one_hot(ids, vocab_size):
    refuse(ids, vocab_size)
    rows = torch.zeros(len(ids), vocab_size)
    for i, index in enumerate(ids):
        rows[i, index.item()] = 1
    return rows


@wrong("one-hot", "another exception than ValueError")
def one_hot(ids, vocab_size):
    return F.one_hot(ids, vocab_size).float() if ids.min() >= 0 else {}[ids]


@right("one-hot")
def one_hot(ids, vocab_size):
    """rows of the identity matrix"""
    refuse(ids, vocab_size)
    return torch.eye(vocab_size)[ids]


@right("one-hot")
def one_hot(ids, vocab_size):
    """scatter"""
    refuse(ids, vocab_size)
    return torch.zeros(*ids.shape, vocab_size).scatter(-1, ids[..., None], 1.0)


@right("one-hot")
def one_hot(ids, vocab_size):
    """PyTorch's own, which raises other errors"""
    refuse(ids, vocab_size)
    return F.one_hot(ids, vocab_size).to(torch.float32)


# --- the embedding layer --------------------------------------------------------------


class Table(nn.Module):
    """What most answers share: the parameter, and a look-up to get wrong."""

    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.weight = nn.Parameter(self.draw(vocab_size, d_model))

    def draw(self, vocab_size, d_model):
        return torch.randn(vocab_size, d_model) / math.sqrt(d_model)

    def forward(self, ids):
        return self.weight[ids] * math.sqrt(self.weight.shape[1])


@wrong("embedding", "look-up at id + 1")
class Embedding(Table):
    def forward(self, ids):
        return self.weight[ids + 1] * math.sqrt(self.weight.shape[1])


@wrong("embedding", "no gradient comes back")
class Embedding(Table):
    """one-hot rows times a table that is cut off"""

    def forward(self, ids):
        hot = F.one_hot(ids, len(self.weight)).float()
        return hot @ self.weight.detach() * math.sqrt(self.weight.shape[1])


@wrong("embedding", "no gradient comes back")
class Embedding(Table):
    def __init__(self, vocab_size, d_model):
        super().__init__(vocab_size, d_model)
        self.weight.requires_grad_(False)


@wrong("embedding", "no gradient comes back")
class Embedding(Table):
    def forward(self, ids):
        with torch.no_grad():
            return super().forward(ids)


@wrong("embedding", "a repeated token learns once")
class Embedding(Table):
    def forward(self, ids):
        class Once(torch.autograd.Function):
            @staticmethod
            def forward(context, weight):
                context.shape = weight.shape
                return weight[ids]

            @staticmethod
            def backward(context, gradient):
                found = torch.zeros(context.shape)
                found[ids.flatten()] = gradient.flatten(0, -2)
                return found

        return Once.apply(self.weight) * math.sqrt(self.weight.shape[1])


@wrong("embedding", "row 0 learns nothing")
class Embedding(Table):
    def forward(self, ids):
        rows = F.embedding(ids, self.weight, padding_idx=0)
        return rows * math.sqrt(self.weight.shape[1])


@wrong("embedding", "only works for one sequence")
class Embedding(Table):
    def forward(self, ids):
        rows = [self.weight[int(index)] for index in ids]
        return torch.stack(rows) * math.sqrt(self.weight.shape[1])


@wrong("embedding", "PyTorch's module in place of your own")
class Embedding(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.table, self.width = nn.Embedding(vocab_size, d_model), d_model

    def forward(self, ids):
        return self.table(ids) * math.sqrt(self.width)


@wrong("embedding", "parameters are missing")
class Embedding(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.weight = torch.randn(vocab_size, d_model) / math.sqrt(d_model)

    def forward(self, ids):
        return self.weight[ids] * math.sqrt(self.weight.shape[1])


@wrong("embedding", "a buffer in place of a parameter")
class Embedding(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        table = torch.randn(vocab_size, d_model) / math.sqrt(d_model)
        self.register_buffer("weight", table)

    def forward(self, ids):
        return self.weight[ids] * math.sqrt(self.weight.shape[1])


@wrong("embedding", "the parameters have other names")
class Embedding(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.table = nn.Parameter(torch.randn(vocab_size, d_model) / d_model**0.5)

    def forward(self, ids):
        return self.table[ids] * math.sqrt(self.table.shape[1])


@wrong("embedding", "one parameter too many")
class Embedding(Table):
    def __init__(self, vocab_size, d_model):
        super().__init__(vocab_size, d_model)
        self.scale = nn.Parameter(torch.tensor(math.sqrt(d_model)))

    def forward(self, ids):
        return self.weight[ids] * self.scale


@wrong("embedding", "weights stored transposed")
class Embedding(Table):
    def draw(self, vocab_size, d_model):
        return torch.randn(d_model, vocab_size) / math.sqrt(d_model)

    def forward(self, ids):
        return self.weight.T[ids] * math.sqrt(self.weight.shape[0])


for name, start_from in (
    ("the weights start too large", lambda n, d: torch.randn(n, d)),
    ("the weights all start alike", lambda n, d: torch.zeros(n, d)),
    ("the weights do not start around 0", lambda n, d: torch.rand(n, d) / d**0.5),
    ("the weights start too small", lambda n, d: torch.randn(n, d) / n**0.5),
    ("the weights start too small", lambda n, d: torch.randn(n, d) / d),
    ("the weights start too small", lambda n, d: 0.02 * torch.randn(n, d)),
    (
        "row 0 is taken for padding",
        lambda n, d: F.pad(torch.randn(n - 1, d), (0, 0, 1, 0)) / d**0.5,
    ),
    (
        "some of the weights start alike",
        lambda n, d: F.pad(torch.randn(n - 1, d), (0, 0, 0, 1)) / d**0.5,
    ),
    (
        "some of the weights start alike",
        lambda n, d: torch.randn(n // 2 + 1, d).repeat(2, 1)[:n] / d**0.5,
    ),
):

    @wrong("embedding", name)
    class Embedding(Table):
        draw = staticmethod(start_from)


@right("embedding")
class Embedding(Table):
    """one-hot rows times the table"""

    def forward(self, ids):
        hot = F.one_hot(ids, len(self.weight)).float()
        return hot @ self.weight * math.sqrt(self.weight.shape[1])


@right("embedding")
class Embedding(nn.Module):
    """F.embedding and nn.init"""

    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.d_model = d_model
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        nn.init.normal_(self.weight, mean=0.0, std=d_model**-0.5)

    def forward(self, ids):
        return F.embedding(ids, self.weight) * self.d_model**0.5


@right("embedding")
class Embedding(nn.Embedding):
    """derived from nn.Embedding"""

    def __init__(self, vocab_size, d_model):
        super().__init__(vocab_size, d_model)
        nn.init.normal_(self.weight, std=1 / math.sqrt(d_model))

    def forward(self, ids):
        return super().forward(ids) * math.sqrt(self.embedding_dim)


# --- weight tying ---------------------------------------------------------------------


@wrong("weight-tying", "divided by d_model")
def tied_logits(hidden, table):
    return (hidden[..., None, :] * table).mean(-1)


@wrong("weight-tying", "cosines in place of dot products")
def tied_logits(hidden, table):
    return F.cosine_similarity(hidden[..., None, :], table, dim=-1)


@wrong("weight-tying", "rows and columns of the result exchanged")
def tied_logits(hidden, table):
    return table @ hidden.mT


@wrong("weight-tying", "no gradient comes back")
def tied_logits(hidden, table):
    return hidden @ table.detach().T


@wrong("weight-tying", "no gradient comes back")
def tied_logits(hidden, table):
    return F.linear(hidden.detach(), table)


@right("weight-tying")
def tied_logits(hidden, table):
    """F.linear, which transposes by itself"""
    return F.linear(hidden, table)


@right("weight-tying")
def tied_logits(hidden, table):
    """einsum"""
    return torch.einsum("...td,vd->...tv", hidden, table)


# --- tf-idf ---------------------------------------------------------------------------


def parts(documents):
    """Counts, number of documents, documents with a term, terms."""
    terms = list(dict.fromkeys(token for each in documents for token in each))
    counts = torch.tensor([[float(d.count(term)) for term in terms] for d in documents])
    return counts, len(documents), (counts > 0).sum(0), terms


@wrong("tf-idf", "terms in alphabetical order")
def tf_idf(documents):
    counts, n, holding, terms = parts(documents)
    order = sorted(range(len(terms)), key=terms.__getitem__)
    matrix = counts * torch.log(n / holding)
    return matrix[:, order], [terms[i] for i in order]


@wrong("tf-idf", "columns in another order than the terms")
def tf_idf(documents):
    counts, n, holding, terms = parts(documents)
    order = sorted(range(len(terms)), key=terms.__getitem__)
    return (counts * torch.log(n / holding))[:, order], terms


@wrong("tf-idf", "a term is listed twice")
def tf_idf(documents):
    terms = [token for each in documents for token in each]
    counts = torch.tensor([[float(d.count(term)) for term in terms] for d in documents])
    return counts * torch.log(len(documents) / (counts > 0).sum(0)), terms


@right("tf-idf")
def tf_idf(documents):
    """loops and math.log"""
    terms = []
    for document in documents:
        terms += [t for t in dict.fromkeys(document) if t not in terms]
    matrix = torch.zeros(len(documents), len(terms))
    for column, term in enumerate(terms):
        holding = sum(term in document for document in documents)
        for row, document in enumerate(documents):
            weight = math.log(len(documents) / holding)
            matrix[row, column] = document.count(term) * weight
    return matrix, terms


@right("tf-idf")
def tf_idf(documents):
    """a difference of logarithms"""
    counts, n, holding, terms = parts(documents)
    return counts * (math.log(n) - holding.log()), terms


# --- skip-gram: pairs -----------------------------------------------------------------


@wrong("skip-gram-pairs", "the window ends too early")
def skip_gram_pairs(ids, window):
    return [
        (ids[i], ids[j])
        for i in range(len(ids))
        for j in range(max(0, i - window), min(len(ids), i + window))
        if i != j
    ]


@wrong("skip-gram-pairs", "the window wraps around at the start")
def skip_gram_pairs(ids, window):
    return [
        (ids[i], ids[j])
        for i in range(len(ids))
        for j in range(i - window, min(len(ids), i + window + 1))
        if i != j
    ]


@wrong("skip-gram-pairs", "the window runs over the end")
def skip_gram_pairs(ids, window):
    return [
        (ids[i], ids[j])
        for i in range(len(ids))
        for j in range(max(0, i - window), i + window + 1)
        if i != j
    ]


@wrong("skip-gram-pairs", "right pairs in another order")
def skip_gram_pairs(ids, window):
    pairs = []
    for i, center in enumerate(ids):
        around = ids[i + 1 : i + 1 + window] + ids[max(0, i - window) : i]
        pairs += [(center, context) for context in around]
    return pairs


@wrong("skip-gram-pairs", "a slice that begins before the text")
def skip_gram_pairs(ids, window):
    pairs = []
    for i, center in enumerate(ids):
        around = ids[i - window : i] + ids[i + 1 : i + 1 + window]
        pairs += [(center, context) for context in around]
    return pairs


@right("skip-gram-pairs")
def skip_gram_pairs(ids, window):
    """slices to the left and to the right"""
    pairs = []
    for i, center in enumerate(ids):
        around = ids[max(0, i - window) : i] + ids[i + 1 : i + 1 + window]
        pairs += [(center, context) for context in around]
    return pairs


@right("skip-gram-pairs")
def skip_gram_pairs(ids, window):
    """all pairs of positions, as lists"""
    places = range(len(ids))
    near = [(i, j) for i in places for j in places if 0 < abs(i - j) <= window]
    return [[ids[i], ids[j]] for i, j in near]


# --- skip-gram: loss ------------------------------------------------------------------


def scores(centers, contexts, negatives):
    """Of the true pairs (B,) and of the false ones (B, K)."""
    true = (centers * contexts).sum(-1)
    return true, torch.einsum("bd,bkd->bk", centers, negatives)


@wrong("skip-gram-loss", "softmax in place of sigmoids")
def skip_gram_loss(centers, contexts, negatives):
    true, false = scores(centers, contexts, negatives)
    everything = torch.cat([true[:, None], false], 1)
    return F.cross_entropy(everything, torch.zeros(len(true), dtype=torch.long))


@wrong("skip-gram-loss", "the products are not added up to a score")
def skip_gram_loss(centers, contexts, negatives):
    true, false = centers * contexts, centers[:, None] * negatives
    return -(F.logsigmoid(true).sum() + F.logsigmoid(-false).sum()) / len(centers)


@wrong("skip-gram-loss", "every center with every context")
def skip_gram_loss(centers, contexts, negatives):
    _, false = scores(centers, contexts, negatives)
    true = F.logsigmoid(centers @ contexts.T).sum(-1)
    return -(true + F.logsigmoid(-false).sum(-1)).mean()


@wrong("skip-gram-loss", "every center with every context")
def skip_gram_loss(centers, contexts, negatives):
    _, false = scores(centers, contexts, negatives)
    true = F.logsigmoid(centers @ contexts.mT).mean()
    return -true - F.logsigmoid(-false).sum(-1).mean()


@wrong("skip-gram-loss", "the negatives of other pairs, too")
def skip_gram_loss(centers, contexts, negatives):
    true = (centers * contexts).sum(-1)
    false = centers @ negatives.flatten(0, 1).T
    return (-F.logsigmoid(true) - F.logsigmoid(-false).sum(-1)).mean()


@wrong("skip-gram-loss", "not stable for large scores")
def skip_gram_loss(centers, contexts, negatives):
    true, false = scores(centers, contexts, negatives)
    return (-true.sigmoid().log() - (-false).sigmoid().log().sum(-1)).mean()


@wrong("skip-gram-loss", "not stable for large scores")
def skip_gram_loss(centers, contexts, negatives):
    true, false = scores(centers, contexts, negatives)
    return (torch.log(1 + (-true).exp()) + torch.log(1 + false.exp()).sum(-1)).mean()


@wrong("skip-gram-loss", "no gradient comes back")
def skip_gram_loss(centers, contexts, negatives):
    true, false = scores(centers, contexts, negatives.detach())
    return (-F.logsigmoid(true) - F.logsigmoid(-false).sum(-1)).mean()


@right("skip-gram-loss")
def skip_gram_loss(centers, contexts, negatives):
    """softplus"""
    true, false = scores(centers, contexts, negatives)
    return (F.softplus(-true) + F.softplus(false).sum(dim=1)).mean()


@right("skip-gram-loss")
def skip_gram_loss(centers, contexts, negatives):
    """binary cross-entropy over all K + 1 questions"""
    others = torch.cat([contexts[:, None], negatives], dim=1)  # (B, K + 1, d)
    logits = (others @ centers[..., None]).squeeze(-1)  # (B, K + 1)
    labels = torch.zeros_like(logits)
    labels[:, 0] = 1
    ask = F.binary_cross_entropy_with_logits
    return ask(logits, labels, reduction="none").sum(1).mean()


# --- patches --------------------------------------------------------------------------


def split(matrix, patch_size, channels):
    """Refuse and reshape as it should be."""
    if len(matrix) != patch_size * patch_size * channels:
        raise ValueError("wrong number of rows")
    return matrix.reshape(patch_size, patch_size, channels, -1)


@wrong("patch-kernel", "a patch read as (channel, row, column)")
def patch_kernel(matrix, patch_size, channels):
    split(matrix, patch_size, channels)
    return matrix.T.reshape(-1, channels, patch_size, patch_size)


@wrong("patch-kernel", "a wrong number of rows is accepted")
def patch_kernel(matrix, patch_size, channels):
    rows = patch_size * patch_size * channels
    return split(matrix[:rows], patch_size, channels).permute(3, 2, 0, 1)


@wrong("patch-kernel", "a wrong number of rows is accepted")
def patch_kernel(matrix, patch_size, channels):
    if len(matrix) % (patch_size * patch_size * channels):
        raise ValueError("the rows are not a multiple of a patch")
    kernel = matrix.reshape(patch_size, patch_size, channels, -1)
    return kernel.permute(3, 2, 0, 1)


@wrong("patch-kernel", "another exception than ValueError")
def patch_kernel(matrix, patch_size, channels):
    shape = patch_size, patch_size, channels, matrix.shape[1]
    return matrix.reshape(shape).permute(3, 2, 0, 1)


@right("patch-kernel")
def patch_kernel(matrix, patch_size, channels):
    """transposed first"""
    if matrix.shape[0] != patch_size**2 * channels:
        raise ValueError("wrong number of rows")
    rows = matrix.T.reshape(-1, patch_size, patch_size, channels)
    return rows.permute(0, 3, 1, 2).contiguous()


@right("patch-kernel")
def patch_kernel(matrix, patch_size, channels):
    """einsum only names the axes"""
    return torch.einsum("rckd->dkrc", split(matrix, patch_size, channels))


# --- the slips ------------------------------------------------------------------------

REPAIRED = ["<sos>", "Bobby", " mag", " Brom", "beeren", ".", "<eos>"]


def slips(**changes):
    """The right answers, with some exchanged."""
    return {
        "outside": [0],
        "refused": [7],
        "rows_needed": 8,
        "row_of_zero": 6,
        "same_vector": [0, 7],
        "decoded": "Bobby mag Brombeeren",
        "lost": ".",
        "repaired": REPAIRED,
    } | changes


@wrong("find-the-slips", "an entry is missing")
def token_table_slips():
    return {"outside": [0], "refused": [7]}


@wrong("find-the-slips", "<EOW> still there")
def token_table_slips():
    return slips(
        repaired=["<sos>", "Bobby<EOW>", "mag<EOW>", "Brom", "beeren", ".", "<eos>"]
    )


@right("find-the-slips")
def token_table_slips():
    """tuples and a tensor"""
    return slips(outside=(0,), same_vector=torch.tensor([0, 7]))


@right("find-the-slips")
def token_table_slips():
    """worked out by Python"""
    ids, allowed = [0, 5, 3, 7, 2, 1], range(1, 8)
    tokens = ["Bobby<EOW>", "mag<EOW>", "Brom", "beeren<EOW>"]
    rows = torch.arange(7)[torch.tensor(ids) - 1].tolist()
    return slips(
        outside=[i for i in ids if i not in allowed],
        refused=[i for i in ids if i >= 7],
        rows_needed=max(ids) + 1,
        row_of_zero=rows[0],
        same_vector=[i for i, row in zip(ids, rows, strict=True) if row == rows[0]],
        decoded="".join(tokens).replace("<EOW>", " ").rstrip(),
    )
