"""Wrong answers to chapter 1, written from its notebook alone."""

# ruff: noqa: C408, E501, F811, F821

import math
from collections import Counter
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import nn

from tests.tutor.bank import stranger


@stranger(
    "vocabulary",
    "a special token that occurs in the text is numbered anew",
    first="named",
    verdict="named",
    says="a special token in the text takes a new id",
)
def build_vocabulary(tokens, special_tokens=("<pad>", "<unk>", "<sos>", "<eos>")):
    vocabulary = {}
    for index, token in enumerate(special_tokens):
        vocabulary[token] = index
    for token in dict.fromkeys(tokens):
        vocabulary[token] = len(vocabulary)
    return vocabulary


@stranger(
    "vocabulary",
    "sorted by the alphabet, not by first appearance",
    first="named",
    verdict="named",
    says="tokens in alphabetical order",
)
def build_vocabulary(tokens, special_tokens=("<pad>", "<unk>", "<sos>", "<eos>")):
    others = sorted(set(tokens) - set(special_tokens))
    return {token: i for i, token in enumerate([*special_tokens, *others])}


@stranger(
    "vocabulary",
    "the default special tokens are always used",
    kind="subtle",
    first="named",
    verdict="named",
    says="the argument special_tokens is not used",
)
def build_vocabulary(tokens, special_tokens=("<pad>", "<unk>", "<sos>", "<eos>")):
    vocabulary = {token: i for i, token in enumerate(SPECIAL_TOKENS)}
    for token in tokens:
        if token not in vocabulary:
            vocabulary[token] = len(vocabulary)
    return vocabulary


@stranger(
    "vocabulary",
    "numbered by position in the text, so gaps where a token repeats",
    kind="subtle",
    first="named",
    verdict="named",
    says="gaps between the ids",
)
def build_vocabulary(tokens, special_tokens=("<pad>", "<unk>", "<sos>", "<eos>")):
    vocabulary = {}
    for index, token in enumerate([*special_tokens, *tokens]):
        if token not in vocabulary:
            vocabulary[token] = index
    return vocabulary


@stranger(
    "encode-decode",
    "unknown tokens are dropped",
    first="named",
    verdict="named",
    says="unknown tokens are left out",
)
def encode(tokens, vocabulary):
    return [vocabulary[token] for token in tokens if token in vocabulary]


@stranger(
    "encode-decode",
    "the id of <unk> is fixed at 1",
    kind="subtle",
    first="named",
    verdict="named",
    says="the id of <unk> is assumed",
)
def encode(tokens, vocabulary):
    ids = []
    for token in tokens:
        if token in vocabulary:
            ids.append(vocabulary[token])
        else:
            ids.append(1)
    return ids


@stranger(
    "encode-decode",
    "an id of 0 counts as missing, as `or` takes 0 for false",
    kind="subtle",
    first="named",
    verdict="named",
    says="the id 0 is taken for none",
)
def encode(tokens, vocabulary):
    return [vocabulary.get(token) or vocabulary["<unk>"] for token in tokens]


@stranger(
    "encode-decode",
    "tokens by place in the dict, not by id",
    kind="subtle",
    first="useless",
    verdict="named",
    says="the position in the dict in place of the id",
)
def decode(ids, vocabulary):
    words = list(vocabulary)
    for index in ids:
        if index < 0 or index >= len(words):
            raise ValueError(f"no token has the id {index}")
    return [words[index] for index in ids]


@stranger(
    "encode-decode",
    "the largest id is not tested: > in place of >=, then by place in the dict "
    "AND KeyError for a gap",
    kind="double",
    first="useless",
    verdict="named",
    says="the size of the vocabulary taken for its largest id",
)
def decode(ids, vocabulary):
    back = {index: token for token, index in vocabulary.items()}
    for index in ids:
        if index < 0 or index > len(vocabulary):
            raise ValueError("unknown id")
    return [back[index] for index in ids]


@stranger(
    "pair-counts",
    "each word counts once, however often it occurs",
    first="named",
    verdict="named",
    says="every word counts once",
)
def pair_counts(words):
    counts = {}
    for symbols in words:
        for pair in pairwise(symbols):
            counts[pair] = counts.get(pair, 0) + 1
    return counts


@stranger(
    "pair-counts",
    "a pair that comes twice in one word counts once there",
    kind="subtle",
    first="named",
    verdict="named",
    says="a pair counts once in a word",
)
def pair_counts(words):
    counts = {}
    for symbols, times in words.items():
        for pair in dict.fromkeys(pairwise(symbols)):
            counts[pair] = counts.get(pair, 0) + times
    return counts


@stranger(
    "pair-counts",
    "the number of occurrences overwrites instead of being added",
    kind="subtle",
    first="named",
    verdict="named",
    says="a later word replaces the count",
)
def pair_counts(words):
    counts = {}
    for symbols, times in words.items():
        for i in range(len(symbols) - 1):
            pair = (symbols[i], symbols[i + 1])
            counts[pair] = times
    return counts


@stranger(
    "merge-pair",
    "only the first occurrence is merged",
    kind="subtle",
    first="named",
    verdict="named",
    says="only the first occurrence is merged",
)
def merge_pair(symbols, pair):
    for i in range(len(symbols) - 1):
        if symbols[i : i + 2] == pair:
            return (*symbols[:i], symbols[i] + symbols[i + 1], *symbols[i + 2 :])
    return symbols


@stranger(
    "merge-pair",
    "the last symbol is lost when it is not part of a pair",
    kind="subtle",
    first="named",
    verdict="named",
    says="the last symbol is lost",
)
def merge_pair(symbols, pair):
    merged = []
    i = 0
    while i < len(symbols) - 1:
        if (symbols[i], symbols[i + 1]) == pair:
            merged.append(symbols[i] + symbols[i + 1])
            i += 2
        else:
            merged.append(symbols[i])
            i += 1
    return tuple(merged)


@stranger(
    "merge-pair",
    "the strings are compared, joined: (b, a) with ('', ba)",
    kind="subtle",
    first="named",
    verdict="named",
    says="text compared in place of symbols",
)
def merge_pair(symbols, pair):
    joined = "".join(pair)
    merged, i = [], 0
    while i < len(symbols):
        if i + 1 < len(symbols) and symbols[i] + symbols[i + 1] == joined:
            merged.append(joined)
            i += 2
        else:
            merged.append(symbols[i])
            i += 1
    return tuple(merged)


@stranger(
    "merge-pair",
    "in (a, a, a) a merged symbol may be used again: steps of one after a merge",
    kind="subtle",
    first="told",
    verdict="named",
    says="a symbol is used twice",
)
def merge_pair(symbols, pair):
    merged = []
    for i in range(len(symbols)):
        if symbols[i : i + 2] == pair:
            merged.append(symbols[i] + symbols[i + 1])
        elif i > 0 and symbols[i - 1 : i + 1] == pair:
            continue
        else:
            merged.append(symbols[i])
    return tuple(merged)


@stranger(
    "train-bpe",
    "the counts are taken once, before the loop",
    first="named",
    verdict="named",
    says="the counts are never renewed",
)
def train_bpe(text, merges, special_tokens=()):
    pieces = split_words(text, special_tokens)
    words = Counter(
        (piece,) if piece in special_tokens else tuple(piece) for piece in pieces
    )
    counts = dict(pair_counts(words))
    found = []
    while counts and len(found) < merges:
        best = max(counts, key=counts.get)
        found.append(best)
        del counts[best]
    return found


@stranger(
    "train-bpe",
    "of equally frequent pairs the last wins",
    kind="subtle",
    first="named",
    verdict="named",
    says="ties go to the last pair",
)
def train_bpe(text, merges, special_tokens=()):
    words = Counter(
        (piece,) if piece in special_tokens else tuple(piece)
        for piece in split_words(text, special_tokens)
    )
    found = []
    for _ in range(merges):
        counts = pair_counts(words)
        if not counts:
            break
        best, most = None, 0
        for pair, count in counts.items():
            if count >= most:
                best, most = pair, count
        found.append(best)
        words = {merge_pair(word, best): count for word, count in words.items()}
    return found


@stranger(
    "train-bpe",
    "stops when no pair occurs twice",
    kind="subtle",
    first="named",
    verdict="named",
    says="stops while there are pairs left",
)
def train_bpe(text, merges, special_tokens=()):
    words = {}
    for piece in split_words(text, special_tokens):
        key = (piece,) if piece in special_tokens else tuple(piece)
        words[key] = words.get(key, 0) + 1
    found = []
    for _ in range(merges):
        counts = pair_counts(words)
        if not counts or max(counts.values()) < 2:
            break
        best = max(counts, key=counts.get)
        found.append(best)
        words = {merge_pair(word, best): count for word, count in words.items()}
    return found


@stranger(
    "train-bpe",
    "special tokens are not handed to split_words AND the words count once each",
    kind="double",
    first="named",
    verdict="named",
    says="special tokens are cut, and every word counts once",
)
def train_bpe(text, merges, special_tokens=()):
    words = {}
    for piece in split_words(text):
        words[(piece,) if piece in special_tokens else tuple(piece)] = 1
    found = []
    for _ in range(merges):
        counts = pair_counts(words)
        if not counts:
            break
        best = max(counts, key=counts.get)
        found.append(best)
        words = {merge_pair(word, best): count for word, count in words.items()}
    return found


@stranger(
    "bpe-encode",
    "only the first merge that fits is applied in a piece",
    first="told",
    verdict="named",
    says="only the first merge that fits",
)
def bpe_encode(text, merges, special_tokens=()):
    tokens = []
    for piece in split_words(text, special_tokens):
        symbols = (piece,) if piece in special_tokens else tuple(piece)
        for pair in merges:
            merged = merge_pair(symbols, pair)
            if merged != symbols:
                symbols = merged
                break
        tokens += symbols
    return tokens


@stranger(
    "bpe-encode",
    "special tokens are handed to split_words but then cut into characters",
    kind="subtle",
    first="named",
    verdict="named",
    says="special tokens are cut",
)
def bpe_encode(text, merges, special_tokens=()):
    tokens = []
    for piece in split_words(text, special_tokens):
        symbols = tuple(piece)
        for pair in merges:
            symbols = merge_pair(symbols, pair)
        tokens.extend(symbols)
    return tokens


@stranger(
    "bpe-encode",
    "the merges are sorted by length, the longest first",
    kind="subtle",
    first="named",
    verdict="named",
    says="merges in the wrong order",
)
def bpe_encode(text, merges, special_tokens=()):
    ordered = sorted(merges, key=lambda pair: len(pair[0] + pair[1]), reverse=True)
    tokens = []
    for piece in split_words(text, special_tokens):
        symbols = (piece,) if piece in special_tokens else tuple(piece)
        for pair in ordered:
            symbols = merge_pair(symbols, pair)
        tokens.extend(symbols)
    return tokens


@stranger(
    "bpe-encode",
    "the whole text is one word, so merges reach across pieces (and special tokens)",
    kind="subtle",
    first="named",
    verdict="named",
    says="merges reach from word to word",
)
def bpe_encode(text, merges, special_tokens=()):
    symbols = []
    for piece in split_words(text, special_tokens):
        symbols += [piece] if piece in special_tokens else list(piece)
    symbols = tuple(symbols)
    for pair in merges:
        symbols = merge_pair(symbols, pair)
    return list(symbols)


@stranger(
    "one-hot",
    "ids of vocab_size are let through as rows of zeros",
    kind="subtle",
    first="named",
    verdict="named",
    says="an id outside becomes a row of zeros",
)
def one_hot(ids, vocab_size):
    if (ids < 0).any() or (ids > vocab_size).any():
        raise ValueError("an id is outside the vocabulary")
    return (ids[..., None] == torch.arange(vocab_size)).float()


@stranger(
    "one-hot",
    "negative ids are not refused and count from the end",
    kind="subtle",
    first="named",
    verdict="named",
    says="a negative id takes the last row",
)
def one_hot(ids, vocab_size):
    if ids.max() >= vocab_size:
        raise ValueError("an id is too large")
    return torch.eye(vocab_size)[ids]


@stranger(
    "one-hot",
    "made by scatter in a matrix for one sequence only: no leading axes",
    kind="subtle",
    first="named",
    verdict="named",
    says="only works for one sequence",
)
def one_hot(ids, vocab_size):
    if (ids < 0).any() or (ids >= vocab_size).any():
        raise ValueError("an id is outside the vocabulary")
    rows = torch.zeros(len(ids), vocab_size)
    rows[torch.arange(len(ids)), ids] = 1.0
    return rows


@stranger(
    "embedding",
    "times d in place of its root",
    first="named",
    verdict="named",
    says="scaled twice",
)
class Embedding(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.d_model = d_model
        self.weight = nn.Parameter(
            torch.randn(vocab_size, d_model) / math.sqrt(d_model)
        )

    def forward(self, ids):
        return self.weight[ids] * self.d_model


@stranger(
    "embedding",
    "the rows start with the standard deviation 1/d AND no factor",
    kind="double",
    first="named",
    verdict="named",
    says="no factor √d_model",
)
class Embedding(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocab_size, d_model) / d_model)

    def forward(self, ids):
        return self.weight[ids]


@stranger(
    "embedding",
    "the table starts uniform from 0 to 1/√d",
    kind="subtle",
    first="named",
    verdict="named",
    says="the weights do not start around 0",
)
class Embedding(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.scale = math.sqrt(d_model)
        self.weight = nn.Parameter(torch.rand(vocab_size, d_model) / self.scale)

    def forward(self, ids):
        return self.scale * self.weight[ids]


@stranger(
    "embedding",
    "the row of id 0 is set to zero, as for padding",
    kind="subtle",
    first="named",
    verdict="named",
    says="row 0 learns nothing",
)
class Embedding(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        table = torch.randn(vocab_size, d_model) / math.sqrt(d_model)
        table[0] = 0.0
        self.weight = nn.Parameter(table)

    def forward(self, ids):
        return F.embedding(ids, self.weight, padding_idx=0) * math.sqrt(
            self.weight.size(1)
        )


@stranger(
    "weight-tying",
    "the logits are divided by √d",
    first="named",
    verdict="named",
    says="divided by √d_model",
)
def tied_logits(hidden, table):
    return hidden @ table.T / math.sqrt(table.shape[1])


@stranger(
    "weight-tying",
    "the table is detached",
    kind="subtle",
    first="named",
    verdict="named",
    says="no gradient comes back",
)
def tied_logits(hidden, table):
    return F.linear(hidden, table.detach())


@stranger(
    "tf-idf",
    "every occurrence counts as a document",
    kind="subtle",
    first="named",
    verdict="named",
    says="occurrences in place of documents",
)
def tf_idf(documents):
    terms = list(dict.fromkeys(word for document in documents for word in document))
    counts = torch.tensor(
        [[float(document.count(term)) for term in terms] for document in documents]
    )
    return counts * torch.log(len(documents) / counts.sum(dim=0)), terms


@stranger(
    "tf-idf",
    "the counts are divided by the length of the document AND logarithm to base 10",
    kind="double",
    first="shown",
    verdict="named",
    says="shares in place of counts, and logarithm to base 10",
)
def tf_idf(documents):
    terms = []
    for document in documents:
        for word in document:
            if word not in terms:
                terms.append(word)
    counts = torch.zeros(len(documents), len(terms))
    for i, document in enumerate(documents):
        for j, term in enumerate(terms):
            counts[i, j] = document.count(term) / len(document)
    holding = (counts > 0).sum(dim=0)
    return counts * torch.log10(len(documents) / holding), terms


@stranger(
    "tf-idf",
    "a term counts only 0 or 1 in a document",
    kind="subtle",
    first="named",
    verdict="named",
    says="0 or 1 in place of counts",
)
def tf_idf(documents):
    terms = list(dict.fromkeys(word for document in documents for word in document))
    present = torch.tensor(
        [[float(term in document) for term in terms] for document in documents]
    )
    return present * torch.log(len(documents) / present.sum(0)), terms


@stranger(
    "skip-gram-pairs",
    "contexts equal to the centre's id are left out",
    kind="subtle",
    first="named",
    verdict="named",
    says="equal neighbours left out",
)
def skip_gram_pairs(ids, window):
    pairs = []
    for i in range(len(ids)):
        for j in range(max(0, i - window), min(len(ids), i + window + 1)):
            if ids[i] != ids[j]:
                pairs.append((ids[i], ids[j]))
    return pairs


@stranger(
    "skip-gram-pairs",
    "the right end of the window is missing",
    first="named",
    verdict="named",
    says="the window ends too early",
)
def skip_gram_pairs(ids, window):
    pairs = []
    for i in range(len(ids)):
        for j in range(max(0, i - window), min(len(ids), i + window)):
            if i != j:
                pairs.append((ids[i], ids[j]))
    return pairs


@stranger(
    "skip-gram-pairs",
    "the neighbours nearest first: left and right in turn, not from left to right",
    kind="subtle",
    first="named",
    verdict="named",
    says="right pairs in another order",
)
def skip_gram_pairs(ids, window):
    pairs = []
    for i, center in enumerate(ids):
        for distance in range(1, window + 1):
            if i - distance >= 0:
                pairs.append((center, ids[i - distance]))
            if i + distance < len(ids):
                pairs.append((center, ids[i + distance]))
    return pairs


@stranger(
    "skip-gram-loss",
    "the mean over the negatives in place of the sum",
    first="named",
    verdict="named",
    says="mean over the negatives",
)
def skip_gram_loss(centers, contexts, negatives):
    positive = (centers * contexts).sum(-1)
    negative = (centers[:, None] * negatives).sum(-1)
    return (-F.logsigmoid(positive) - F.logsigmoid(-negative).mean(-1)).mean()


@stranger(
    "skip-gram-loss",
    "1 - sigmoid with a small number under the logarithm: wrong for large scores",
    kind="subtle",
    first="named",
    verdict="named",
    says="the loss is cut off",
)
def skip_gram_loss(centers, contexts, negatives):
    positive = torch.einsum("bd,bd->b", centers, contexts)
    negative = torch.einsum("bd,bkd->bk", centers, negatives)
    true = -torch.log(torch.sigmoid(positive) + 1e-10)
    false = -torch.log(1 - torch.sigmoid(negative) + 1e-10).sum(dim=1)
    return (true + false).mean()


@stranger(
    "skip-gram-loss",
    "the sign in the negatives' sigmoid is missing AND summed over the batch",
    kind="double",
    first="shown",
    verdict="named",
    says="the sign of the negatives is not turned, and sum over the batch",
)
def skip_gram_loss(centers, contexts, negatives):
    positive = (centers * contexts).sum(dim=1)
    negative = (negatives @ centers.unsqueeze(-1)).squeeze(-1)
    return -(F.logsigmoid(positive) + F.logsigmoid(negative).sum(dim=1)).sum()


@stranger(
    "patch-kernel",
    "flattened as (channel, row, column)",
    first="named",
    verdict="named",
    says="a patch read as (channel, row, column)",
)
def patch_kernel(matrix, patch_size, channels):
    if matrix.shape[0] != patch_size * patch_size * channels:
        raise ValueError("wrong number of rows")
    return matrix.T.reshape(-1, channels, patch_size, patch_size)


@stranger(
    "patch-kernel",
    "rows and columns of the kernel are exchanged",
    first="named",
    verdict="named",
    says="rows and columns exchanged",
)
def patch_kernel(matrix, patch_size, channels):
    if matrix.shape[0] != patch_size * patch_size * channels:
        raise ValueError("wrong number of rows")
    split = matrix.reshape(patch_size, patch_size, channels, -1)
    return split.permute(3, 2, 1, 0)


@stranger(
    "patch-kernel",
    "a matrix with too many rows is cut, not refused",
    kind="subtle",
    first="named",
    verdict="named",
    says="a wrong number of rows is accepted",
)
def patch_kernel(matrix, patch_size, channels):
    rows = patch_size * patch_size * channels
    if matrix.shape[0] < rows:
        raise ValueError("too few rows")
    split = matrix[:rows].reshape(patch_size, patch_size, channels, -1)
    return split.permute(3, 2, 0, 1)


@stranger(
    "find-the-slips",
    "refused holds 0 (as the lecture says), row_of_zero is -1 as written in Python",
    kind="double",
    first="named",
    verdict="named",
    says="0 counted as no row",
)
def token_table_slips():
    return {
        "outside": [0],
        "refused": [0, 7],
        "rows_needed": 8,
        "row_of_zero": -1,
        "same_vector": [0, 7],
        "decoded": "Bobby mag Brombeeren",
        "lost": ".",
        "repaired": ["<sos>", "Bobby", " mag", " Brom", "beeren", ".", "<eos>"],
    }


@stranger(
    "find-the-slips",
    "the full stop is missing in the repaired tokens",
    kind="subtle",
    first="named",
    verdict="named",
    says="the full stop still has no token",
)
def token_table_slips():
    return {
        "outside": [0],
        "refused": [7],
        "rows_needed": 8,
        "row_of_zero": 6,
        "same_vector": [0, 7],
        "decoded": "Bobby mag Brombeeren",
        "lost": ".",
        "repaired": ["<sos>", "Bobby", " mag", " Brom", "beeren", "<eos>"],
    }


# --- a second round, after the checks were mended from the first ---


@stranger(
    "vocabulary",
    "the number is the position in the list, repetitions counted: gaps",
    first="named",
    verdict="named",
    says="gaps between the ids",
    round=2,
)
def build_vocabulary(tokens, special_tokens=("<pad>", "<unk>", "<sos>", "<eos>")):
    vocabulary = {}
    for index, token in enumerate([*special_tokens, *tokens]):
        if token not in vocabulary:
            vocabulary[token] = index
    return vocabulary


@stranger(
    "encode-decode",
    "the id 0 counts as nothing found (get(...) or ...)",
    kind="subtle",
    first="named",
    verdict="named",
    says="the id 0 is taken for none",
    round=2,
)
def encode(tokens, vocabulary):
    unknown = vocabulary["<unk>"]
    return [vocabulary.get(token) or unknown for token in tokens]


@stranger(
    "pair-counts",
    "the pairs are sorted by their count, not by their first appearance",
    kind="subtle",
    first="named",
    verdict="named",
    says="right pairs in another order",
    round=2,
)
def pair_counts(words):
    counts = Counter()
    for symbols, times in words.items():
        for pair in pairwise(symbols):
            counts[pair] += times
    return dict(counts.most_common())


@stranger(
    "merge-pair",
    "the joined text is compared: (a, bc) is taken for the pair (ab, c)",
    kind="subtle",
    first="named",
    verdict="named",
    says="text compared in place of symbols",
    round=2,
)
def merge_pair(symbols, pair):
    joined = pair[0] + pair[1]
    merged = []
    position = 0
    while position < len(symbols):
        two = "".join(symbols[position : position + 2])
        if two == joined and position + 1 < len(symbols):
            merged.append(joined)
            position += 2
        else:
            merged.append(symbols[position])
            position += 1
    return tuple(merged)


@stranger(
    "train-bpe",
    "it stops when no pair occurs more than once",
    kind="subtle",
    first="named",
    verdict="named",
    says="stops while there are pairs left",
    round=2,
)
def train_bpe(text, merges, special_tokens=()):
    words = Counter()
    for piece in split_words(text, special_tokens):
        symbols = (piece,) if piece in special_tokens else tuple(piece)
        words[symbols] += 1
    found = []
    for _ in range(merges):
        counts = pair_counts(words)
        if not counts or max(counts.values()) < 2:
            break
        best = max(counts, key=counts.get)
        found.append(best)
        words = {merge_pair(symbols, best): n for symbols, n in words.items()}
    return found


@stranger(
    "bpe-encode",
    "the longest known token is taken from the left, merges are not replayed",
    kind="subtle",
    first="named",
    verdict="named",
    says="the longest known token is taken first",
    round=2,
)
def bpe_encode(text, merges, special_tokens=()):
    known = {left + right for left, right in merges}
    tokens = []
    for piece in split_words(text, special_tokens):
        if piece in special_tokens:
            tokens.append(piece)
            continue
        start = 0
        while start < len(piece):
            end = len(piece)
            while end > start + 1 and piece[start:end] not in known:
                end -= 1
            tokens.append(piece[start:end])
            start = end
    return tokens


@stranger(
    "one-hot",
    "the id vocab_size is let through (> in place of >=) AND the result is integers",
    kind="double",
    first="named",
    verdict="named",
    says="no floats",
    round=2,
)
def one_hot(ids, vocab_size):
    if (ids < 0).any() or (ids > vocab_size).any():
        raise ValueError("id outside the vocabulary")
    return (ids[..., None] == torch.arange(vocab_size)).long()


@stranger(
    "embedding",
    "row 0 is set to zeros at the start, as if for padding",
    kind="subtle",
    first="passed",
    verdict="named",
    says="row 0 is taken for padding",
    round=2,
)
class Embedding(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        weight = torch.randn(vocab_size, d_model) / math.sqrt(d_model)
        weight[0] = 0.0
        self.weight = nn.Parameter(weight)
        self.scale = math.sqrt(d_model)

    def forward(self, ids):
        return self.weight[ids] * self.scale


@stranger(
    "tf-idf",
    "the counts are divided by the document's length AND log is to the base 10",
    kind="double",
    first="named",
    verdict="named",
    says="shares in place of counts, and logarithm to base 10",
    round=2,
)
def tf_idf(documents):
    terms = list(dict.fromkeys(token for each in documents for token in each))
    counts = torch.tensor(
        [[float(each.count(term)) for term in terms] for each in documents]
    )
    frequency = counts / counts.sum(dim=1, keepdim=True)
    holding = (counts > 0).sum(dim=0)
    return frequency * torch.log10(len(documents) / holding), terms


@stranger(
    "skip-gram-pairs",
    "the contexts come nearest first, left then right, not from left to right",
    kind="subtle",
    first="named",
    verdict="named",
    says="right pairs in another order",
    round=2,
)
def skip_gram_pairs(ids, window):
    pairs = []
    for i in range(len(ids)):
        for distance in range(1, window + 1):
            if i - distance >= 0:
                pairs.append((ids[i], ids[i - distance]))
            if i + distance < len(ids):
                pairs.append((ids[i], ids[i + distance]))
    return pairs


@stranger(
    "skip-gram-loss",
    "the negatives' term is log sigmoid(1 - score), not of -score",
    first="shown",
    verdict="named",
    says="one minus the score in place of minus the score",
    round=2,
)
def skip_gram_loss(centers, contexts, negatives):
    positive = (centers * contexts).sum(dim=-1)
    negative = (centers[:, None] * negatives).sum(dim=-1)
    losses = -F.logsigmoid(positive) - F.logsigmoid(1 - negative).sum(dim=-1)
    return losses.mean()


@stranger(
    "patch-kernel",
    "rows and columns of the patch exchanged AND no other number of rows refused",
    kind="double",
    first="named",
    verdict="named",
    says="rows and columns exchanged",
    round=2,
)
def patch_kernel(matrix, patch_size, channels):
    d_model = matrix.shape[1]
    split = matrix.reshape(patch_size, patch_size, channels, d_model)
    return split.permute(3, 2, 1, 0)


# --- a third round, of what came later ---


@stranger(
    "find-the-slips",
    "seven rows are said to be enough for the id 7 (row 0 is forgotten)",
    kind="subtle",
    first="named",
    verdict="named",
    says="rows counted from 1",
    round=3,
)
def token_table_slips():
    return {
        "outside": [0],
        "refused": [7],
        "rows_needed": 7,
        "row_of_zero": 6,
        "same_vector": [0, 7],
        "decoded": "Bobby mag Brombeeren",
        "lost": ".",
        "repaired": ["<sos>", "Bobby", " mag", " Brom", "beeren", ".", "<eos>"],
    }


@stranger(
    "find-the-slips",
    "the row of the id 0 is given as -1 in place of counted from 0 AND the space is put "
    "behind a word in the repaired tokens",
    kind="double",
    first="named",
    verdict="named",
    says="the index in place of the row",
    round=3,
)
def token_table_slips():
    ids = [0, 5, 3, 7, 2, 1]
    answer = {}
    answer["outside"] = [i for i in ids if not 1 <= i <= 7]
    answer["refused"] = [i for i in ids if i >= 7]
    answer["rows_needed"] = max(ids) + 1
    answer["row_of_zero"] = 0 - 1
    answer["same_vector"] = [0, 7]
    answer["decoded"] = "Bobby mag Brombeeren"
    answer["lost"] = "."
    answer["repaired"] = ["<sos>", "Bobby ", "mag ", "Brom", "beeren", ".", "<eos>"]
    return answer


@stranger(
    "find-the-slips",
    "the ids 0 and 1 are said to share a row, as if a negative row were cut off at 0",
    kind="subtle",
    first="named",
    verdict="named",
    says="id 0 and id 1 exchanged for the same",
    round=3,
)
def token_table_slips():
    tokens = ["Bobby<EOW>", "mag<EOW>", "Brom", "beeren<EOW>"]
    return dict(
        outside=[0],
        refused=[7],
        rows_needed=8,
        row_of_zero=6,
        same_vector=[0, 1],
        decoded="".join(tokens).replace("<EOW>", " ").strip(),
        lost=".",
        repaired=["<sos>", "Bobby", " mag", " Brom", "beeren", ".", "<eos>"],
    )
