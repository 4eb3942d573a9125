# ruff: noqa
# fmt: off

# === exercise: vocabulary | function: build_vocabulary | kind: subtle | what is wrong: a special token that also occurs in the text loses its id: it is numbered again with len(vocabulary), and the next new token gets the same number; shows only when a special token is among the tokens
# told: named
# now: named
# says: a special token in the text takes a new id
def build_vocabulary(tokens, special_tokens=SPECIAL_TOKENS):
    vocab = {name: number for number, name in enumerate(special_tokens)}
    seen = set()
    for token in tokens:
        if token not in seen:
            seen.add(token)
            vocab[token] = len(vocab)
    return vocab


# === exercise: vocabulary | function: build_vocabulary | kind: double | what is wrong: the tokens are ordered by frequency, not by first appearance AND the ordinary tokens begin at len(special_tokens) + 1, so one id is left out
# told: shown
# now: named
# says: tokens in order of frequency, and an id is left out after the special tokens
def build_vocabulary(tokens, special_tokens=SPECIAL_TOKENS):
    ids = {}
    for i, tok in enumerate(special_tokens):
        ids[tok] = i
    i = len(special_tokens)
    for tok, _ in Counter(tokens).most_common():
        if tok not in ids:
            i += 1
            ids[tok] = i
    return ids


# === exercise: encode-decode | functions: encode, decode | kind: double | what is wrong: encode uses "get(...) or unk", so a token whose id is 0 (for example "<pad>") becomes "<unk>" AND decode refuses only ids above the largest one, negative ids (and ids in a gap) become "<unk>" instead of a ValueError
# told: named
# now: named
# says: the id 0 is taken for none
def encode(tokens, vocabulary):
    return [vocabulary.get(t) or vocabulary["<unk>"] for t in tokens]


def decode(ids, vocabulary):
    token_of = {i: t for t, i in vocabulary.items()}
    largest = max(token_of)
    result = []
    for i in ids:
        if i > largest:
            raise ValueError(f"no token has the id {i}")
        result.append(token_of.get(i, "<unk>"))
    return result


# === exercise: pair-counts | function: pair_counts | kind: subtle | what is wrong: a pair of equal symbols is counted without overlap, so (a, a, a) gives (a, a) once per word instead of twice; shows only where the same symbol stands three or more times in a row
# told: shown
# now: named
# says: equal pairs that overlap count once
def pair_counts(words):
    counts = {}
    for symbols, times in words.items():
        just_counted = None
        for k in range(len(symbols) - 1):
            pair = (symbols[k], symbols[k + 1])
            if pair == just_counted:
                just_counted = None
                continue
            counts[pair] = counts.get(pair, 0) + times
            just_counted = pair
    return counts


# === exercise: merge-pair | function: merge_pair | kind: subtle | what is wrong: compares the joined strings, not the two symbols, so for the pair ("a", "bc") the neighbours ("ab", "c") are merged as well; shows only where another cut of the same letters occurs
# told: named
# now: named
# says: text compared in place of symbols
def merge_pair(symbols, pair):
    joined = pair[0] + pair[1]
    merged = []
    i = 0
    while i < len(symbols):
        if i + 1 < len(symbols) and symbols[i] + symbols[i + 1] == joined:
            merged.append(joined)
            i += 2
        else:
            merged.append(symbols[i])
            i += 1
    return tuple(merged)


# === exercise: train-bpe | function: train_bpe | kind: plain | what is wrong: the pairs are counted once, on single characters, and the most frequent ones are returned; nothing is merged and counted anew, so no merge is built on an earlier one
# told: named
# now: named
# says: the counts are never renewed
def train_bpe(text, merges, special_tokens=()):
    words = {}
    for piece, times in Counter(split_words(text, special_tokens)).items():
        symbols = (piece,) if piece in special_tokens else tuple(piece)
        words[symbols] = times
    ranking = Counter(pair_counts(words)).most_common(merges)
    return [pair for pair, _ in ranking]


# === exercise: train-bpe | function: train_bpe | kind: double | what is wrong: of equally frequent pairs the last one is taken (>=) AND it stops as soon as the best pair occurs only once, although pairs are left
# told: told
# now: named
# says: ties go to the last pair, and stops while there are pairs left
def train_bpe(text, merges, special_tokens=()):
    state = {}
    for piece, n in Counter(split_words(text, special_tokens)).items():
        if piece in special_tokens:
            state[(piece,)] = n
        else:
            state[tuple(piece)] = n
    learned = []
    while len(learned) < merges:
        best, top = None, 0
        for pair, n in pair_counts(state).items():
            if n >= top:
                best, top = pair, n
        if top < 2:
            break
        learned.append(best)
        state = {merge_pair(symbols, best): n for symbols, n in state.items()}
    return learned


# === exercise: bpe-encode | function: bpe_encode | kind: plain | what is wrong: takes the longest known token from the left instead of replaying the merges in order; with the merges (b, c), (a, b) the text "abc" gives ab, c instead of a, bc
# told: named
# now: named
# says: the longest known token is taken first
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
            while end - start > 1 and piece[start:end] not in known:
                end -= 1
            tokens.append(piece[start:end])
            start = end
    return tokens


# === exercise: bpe-encode | function: bpe_encode | kind: double | what is wrong: stops replaying at the first merge that finds nothing in the piece, so later merges are not tried AND special tokens are skipped and are missing from the result
# told: named
# now: named
# says: special tokens are left out, and ends at the first merge that does not fit
def bpe_encode(text, merges, special_tokens=()):
    output = []
    for piece in split_words(text, special_tokens):
        if piece in special_tokens:
            continue
        symbols = tuple(piece)
        for pair in merges:
            shorter = merge_pair(symbols, pair)
            if len(shorter) == len(symbols):
                break
            symbols = shorter
        output.extend(symbols)
    return output


# === exercise: one-hot | function: one_hot | kind: double | what is wrong: refuses only if all ids are outside (all in place of any), so one bad id among good ones raises no ValueError (scatter_ raises a RuntimeError) AND the result has the dtype of the ids, int64, not float32
# told: named
# now: named
# says: no floats
def one_hot(ids, vocab_size):
    outside = (ids < 0) | (ids >= vocab_size)
    if outside.all():
        raise ValueError(f"ids must be from 0 to {vocab_size - 1}")
    rows = ids.new_zeros(*ids.shape, vocab_size)
    rows.scatter_(-1, ids.unsqueeze(-1), 1)
    return rows


# === exercise: embedding | function: Embedding | kind: plain | what is wrong: takes 1/d_model (the variance) for the standard deviation, so the table is too small by the factor √d_model at the start; forward is right
# told: named
# now: named
# says: the weights start too small
class Embedding(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.d_model = d_model
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        nn.init.normal_(self.weight, mean=0.0, std=1.0 / d_model)

    def forward(self, ids):
        return self.weight[ids] * math.sqrt(self.d_model)


# === exercise: embedding | function: Embedding | kind: subtle | what is wrong: padding_idx=0 gives right values, but row 0 never gets a gradient; shows only in the gradient when the ids hold a 0
# told: named
# now: named
# says: row 0 learns nothing
class Embedding(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.factor = d_model ** 0.5
        self.weight = nn.Parameter(torch.randn(vocab_size, d_model) / self.factor)

    def forward(self, ids):
        return self.factor * F.embedding(ids, self.weight, padding_idx=0)


# === exercise: weight-tying | function: tied_logits | kind: double | what is wrong: the logits are divided by √d_model, a factor that is not wanted AND the table is detached, so it gets no gradient from the output layer
# told: named
# now: named
# says: divided by √d_model
def tied_logits(hidden, table):
    width = hidden.size(-1)
    shared = table.detach()
    return torch.einsum("...d,nd->...n", hidden, shared) / math.sqrt(width)


# === exercise: tf-idf | function: tf_idf | kind: plain | what is wrong: the term frequency is the count divided by the length of the document (relative frequency), not the count
# told: told
# now: named
# says: shares in place of counts
def tf_idf(documents):
    terms = list(dict.fromkeys(word for document in documents for word in document))
    tf = torch.tensor(
        [[d.count(t) / max(len(d), 1) for t in terms] for d in documents]
    )
    df = torch.tensor([sum(t in d for d in documents) for t in terms])
    return tf * torch.log(len(documents) / df), terms


# === exercise: tf-idf | function: tf_idf | kind: subtle | what is wrong: the row is looked up with documents.index(document), so of two equal documents the first row gets both counts, the second stays 0, and the document frequency is one too small; shows only when a document occurs twice
# told: passed
# now: named
# says: equal documents are not told apart
def tf_idf(documents):
    terms = []
    for document in documents:
        for token in document:
            if token not in terms:
                terms.append(token)
    counts = torch.zeros(len(documents), len(terms))
    for document in documents:
        for token in document:
            counts[documents.index(document), terms.index(token)] += 1
    in_documents = (counts > 0).sum(dim=0)
    idf = (len(documents) / in_documents).log()
    return counts * idf, terms


# === exercise: skip-gram-pairs | function: skip_gram_pairs | kind: double | what is wrong: the centre is left out by its id, not by its position, so an equal neighbour (very very good) is lost AND range ends at len(ids) - 1, so the last token is never a context
# told: named
# now: named
# says: equal neighbours left out
# line: 6
def skip_gram_pairs(ids, window):
    n = len(ids)
    pairs = []
    for i in range(n):
        first = max(0, i - window)
        last = min(n - 1, i + window + 1)
        pairs += [(ids[i], ids[j]) for j in range(first, last) if ids[j] != ids[i]]
    return pairs


# === exercise: skip-gram-loss | function: skip_gram_loss | kind: plain | what is wrong: one binary cross-entropy over all B * (1 + K) scores with its default mean: the loss is divided by 1 + K instead of summed over the negatives
# told: named
# now: named
# says: mean over the K + 1 terms
def skip_gram_loss(centers, contexts, negatives):
    good = (centers * contexts).sum(dim=1, keepdim=True)
    bad = torch.einsum("bd,bkd->bk", centers, negatives)
    scores = torch.cat([good, bad], dim=1)
    answers = torch.zeros_like(scores)
    answers[:, 0] = 1
    return F.binary_cross_entropy_with_logits(scores, answers)


# === exercise: skip-gram-loss | function: skip_gram_loss | kind: subtle | what is wrong: squeeze() without an axis also drops the axis of the negatives when K = 1, so sum(-1) adds over the batch and the second term is B times too large; shows only for K = 1 and B > 1
# told: passed
# now: named
# says: squeeze takes the axis of the negatives away
def skip_gram_loss(centers, contexts, negatives):
    true_scores = (centers * contexts).sum(-1)
    false_scores = (negatives @ centers.unsqueeze(-1)).squeeze()
    per_pair = -F.logsigmoid(true_scores) - F.logsigmoid(-false_scores).sum(-1)
    return per_pair.mean()


# === exercise: patch-kernel | function: patch_kernel | kind: subtle | what is wrong: refuses only what cannot be reshaped: with reshape(P, P, C, -1) a wrong number of rows passes whenever the number of entries is divisible by P * P * C (13 rows and d = 12, or twice as many rows)
# told: named
# now: named
# says: a wrong number of rows is accepted
def patch_kernel(matrix, patch_size, channels):
    try:
        cube = matrix.reshape(patch_size, patch_size, channels, -1)
    except RuntimeError:
        raise ValueError(f"{matrix.shape[0]} rows do not fit the patches") from None
    return cube.permute(3, 2, 0, 1)


# === exercise: find-the-slips | function: token_table_slips | kind: plain | what is wrong: "rows_needed" is 6, the number of different printed ids, instead of 8, the largest id plus 1
# told: named
# now: named
# says: the tokens counted in place of the rows
def token_table_slips():
    printed = [0, 5, 3, 7, 2, 1]
    pieces = ["Bobby<EOW>", "mag<EOW>", "Brom", "beeren<EOW>"]
    return {
        "outside": [i for i in printed if not 1 <= i <= 7],
        "refused": [i for i in printed if i >= 7],
        "rows_needed": len(set(printed)),
        "row_of_zero": (0 - 1) % 7,
        "same_vector": [0, 7],
        "decoded": "".join(pieces).replace("<EOW>", " ").rstrip(),
        "lost": ".",
        "repaired": ["<sos>", "Bobby", " mag", " Brom", "beeren", ".", "<eos>"],
    }
