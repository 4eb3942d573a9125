# ruff: noqa
# fmt: off

# === exercise: vocabulary | function: build_vocabulary | kind: plain | what is wrong: the ordinary tokens are numbered by falling frequency (Counter.most_common) and not by first appearance, which shows as soon as a later token is more frequent than an earlier one
# told: named
# now: named
# says: tokens in order of frequency
def build_vocabulary(
    tokens: list[str], special_tokens: tuple[str, ...] = SPECIAL_TOKENS
) -> dict[str, int]:
    vocab = {}
    for tok in special_tokens:
        vocab[tok] = len(vocab)
    for tok, _ in Counter(tokens).most_common():
        if tok not in vocab:
            vocab[tok] = len(vocab)
    return vocab


# === exercise: train-bpe | function: train_bpe | kind: plain | what is wrong: every different piece is counted once (its frequency in the text is thrown away by dict.fromkeys(..., 1)), so the wrong pair wins whenever a word that is repeated often decides which pair is most frequent
# told: named
# now: named
# says: every word counts once
def train_bpe(
    text: str, merges: int, special_tokens: tuple[str, ...] = ()
) -> list[tuple[str, str]]:
    pieces = split_words(text, special_tokens)
    keys = [(p,) if p in special_tokens else tuple(p) for p in pieces]
    words = dict.fromkeys(keys, 1)
    learned = []
    while len(learned) < merges:
        counts = pair_counts(words)
        if not counts:
            break
        best = max(counts, key=counts.get)
        learned.append(best)
        words = {merge_pair(w, best): n for w, n in words.items()}
    return learned


# === exercise: weight-tying | function: tied_logits | kind: plain | what is wrong: hidden states and rows are normalised to length 1 first, so cosines come out in place of raw dot products, on all inputs whose vectors do not have length 1
# told: named
# now: named
# says: cosines in place of dot products
def tied_logits(hidden: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    h = F.normalize(hidden, dim=-1)
    e = F.normalize(table, dim=-1)
    return torch.einsum("...d,nd->...n", h, e)


# === exercise: tf-idf | function: tf_idf | kind: plain | what is wrong: the counts are divided by the length of their document (relative term frequency) although the plain count is asked for, which shows in every document of more than one token
# told: named
# now: named
# says: shares in place of counts
def tf_idf(documents: list[list[str]]) -> tuple[torch.Tensor, list[str]]:
    terms = list(dict.fromkeys(t for doc in documents for t in doc))
    df = {t: sum(t in doc for doc in documents) for t in terms}
    result = torch.zeros(len(documents), len(terms))
    for i, doc in enumerate(documents):
        for j, t in enumerate(terms):
            if t in doc:
                tf = doc.count(t) / len(doc)
                result[i, j] = tf * math.log(len(documents) / df[t])
    return result, terms


# === exercise: skip-gram-loss | function: skip_gram_loss | kind: plain | what is wrong: the scores of the K negatives are summed before the logarithm of the sigmoid instead of after it (the sum is inside logsigmoid), which shows for every K greater than 1
# told: named
# now: named
# says: the scores are added before the sigmoid
def skip_gram_loss(
    centers: torch.Tensor, contexts: torch.Tensor, negatives: torch.Tensor
) -> torch.Tensor:
    good = (centers * contexts).sum(-1)
    bad = torch.einsum("bd,bkd->b", centers, negatives)
    return -(F.logsigmoid(good) + F.logsigmoid(-bad)).mean()


# === exercise: encode-decode | function: encode, decode | kind: subtle | what is wrong: encode writes `vocabulary.get(token) or unk`, and 0 is false in Python, so the known token with the id 0 is encoded as "<unk>" whenever "<unk>" is not itself the id 0
# told: named
# now: named
# says: the id 0 is taken for none
def encode(tokens: list[str], vocabulary: dict[str, int]) -> list[int]:
    unk = vocabulary["<unk>"]
    return [vocabulary.get(token) or unk for token in tokens]


def decode(ids: list[int], vocabulary: dict[str, int]) -> list[str]:
    inverse = {i: token for token, i in vocabulary.items()}
    out = []
    for i in ids:
        if i not in inverse:
            raise ValueError(f"no token has the id {i}")
        out.append(inverse[i])
    return out


# === exercise: merge-pair | function: merge_pair | kind: subtle | what is wrong: the joined strings are compared instead of the two symbols, so neighbours with the same letters cut elsewhere are merged too, e.g. ("a", "bc") for the pair ("ab", "c")
# told: named
# now: named
# says: text compared in place of symbols
def merge_pair(symbols: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    new = "".join(pair)
    merged = []
    i = 0
    while i < len(symbols):
        if i + 1 < len(symbols) and symbols[i] + symbols[i + 1] == new:
            merged.append(new)
            i += 2
        else:
            merged.append(symbols[i])
            i += 1
    return tuple(merged)


# === exercise: train-bpe | function: train_bpe | kind: subtle | what is wrong: the words are put in order of frequency (most_common) before the pairs are counted, so among equally frequent pairs the one of the most frequent word wins and not the one that appears first in the text, e.g. for "xy zxy ab ab"
# told: shown
# now: named
# says: the words in order of frequency
def train_bpe(
    text: str, merges: int, special_tokens: tuple[str, ...] = ()
) -> list[tuple[str, str]]:
    def symbols_of(piece):
        return (piece,) if piece in special_tokens else tuple(piece)

    frequencies = Counter(split_words(text, special_tokens)).most_common()
    vocab = {symbols_of(piece): n for piece, n in frequencies}
    result: list[tuple[str, str]] = []
    for _ in range(merges):
        counts = pair_counts(vocab)
        if len(counts) == 0:
            return result
        winner = max(counts, key=counts.get)
        vocab = {merge_pair(s, winner): n for s, n in vocab.items()}
        result.append(winner)
    return result


# === exercise: bpe-encode | function: bpe_encode | kind: subtle | what is wrong: the cut pieces are kept in a global cache whose key is the piece alone, so a later call with other merges returns the tokens of the earlier merges for every piece seen before; the first call is right
# told: wrong
# now: named
# says: kept from a call with other merges
_piece_cache: dict[str, tuple[str, ...]] = {}


def bpe_encode(
    text: str, merges: list[tuple[str, str]], special_tokens: tuple[str, ...] = ()
) -> list[str]:
    tokens = []
    for piece in split_words(text, special_tokens):
        if piece in special_tokens:
            tokens.append(piece)
            continue
        if piece not in _piece_cache:
            symbols = tuple(piece)
            for pair in merges:
                symbols = merge_pair(symbols, pair)
            _piece_cache[piece] = symbols
        tokens.extend(_piece_cache[piece])
    return tokens


# === exercise: embedding | function: Embedding | kind: subtle | what is wrong: the look-up uses F.embedding with padding_idx=0, so the values are right but row 0 of the table never gets a gradient when the id 0 occurs
# told: named
# now: named
# says: row 0 learns nothing
class Embedding(nn.Module):
    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        nn.init.normal_(self.weight, mean=0.0, std=d_model**-0.5)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return F.embedding(ids, self.weight, padding_idx=0) * self.d_model**0.5


# === exercise: tf-idf | function: tf_idf | kind: subtle | what is wrong: the number of documents D is taken from the documents that hold at least one term, so every weight is too small as soon as an empty document is among them; without empty ones it is right
# told: named
# now: named
# says: an empty document is left out
def tf_idf(documents: list[list[str]]) -> tuple[torch.Tensor, list[str]]:
    column = {}
    for doc in documents:
        for word in doc:
            column.setdefault(word, len(column))
    counts = torch.zeros(len(documents), len(column))
    for row, doc in enumerate(documents):
        for word in doc:
            counts[row, column[word]] += 1
    present = counts > 0
    n_docs = present.any(dim=1).sum()
    idf = torch.log(n_docs / present.sum(dim=0))
    return counts * idf, list(column)


# === exercise: skip-gram-pairs | function: skip_gram_pairs | kind: subtle | what is wrong: the contexts of a centre are listed by distance (left 1, right 1, left 2, right 2) and not by position from left to right, so the order of the list is wrong for windows of 2 and more; a window of 1 is right
# told: named
# now: named
# says: right pairs in another order
def skip_gram_pairs(ids: list[int], window: int) -> list[tuple[int, int]]:
    pairs = []
    n = len(ids)
    for i, center in enumerate(ids):
        for distance in range(1, window + 1):
            for j in (i - distance, i + distance):
                if 0 <= j < n:
                    pairs.append((center, ids[j]))
    return pairs


# === exercise: pair-counts | function: pair_counts | kind: double | what is wrong: first: a pair that stands several times in one word is counted only once per word (dict.fromkeys removes the repetitions), e.g. (a, n) in "banana"; second: the result is sorted by falling count and not in order of first appearance
# told: named
# now: named
# says: a pair counts once in a word
def pair_counts(words: dict[tuple[str, ...], int]) -> dict[tuple[str, str], int]:
    counts = Counter()
    for word, n in words.items():
        for pair in dict.fromkeys(pairwise(word)):
            counts[pair] += n
    return dict(counts.most_common())


# === exercise: one-hot | function: one_hot | kind: double | what is wrong: first: the upper bound is tested with > in place of >=, so the id vocab_size is not refused and becomes a row of zeros; second: a squeeze at the end drops all axes of size 1, so ids with T = 1 or a batch of 1 lose an axis
# told: named
# now: named
# says: an id outside becomes a row of zeros
def one_hot(ids: torch.Tensor, vocab_size: int) -> torch.Tensor:
    if torch.any(ids < 0) or torch.any(ids > vocab_size):
        raise ValueError("id outside of the vocabulary")
    columns = torch.arange(vocab_size, device=ids.device)
    rows = ids[..., None] == columns
    return rows.to(torch.float32).squeeze()


# === exercise: embedding | function: Embedding | kind: double | what is wrong: first: the table is drawn with the standard deviation 1/d_model in place of 1/sqrt(d_model) (the standard normal is divided by d_model); second: the factor is the whole-number root math.isqrt(d_model), which is too small when d_model is no square number
# told: wrong
# now: named
# says: the root is cut down to a whole number
class Embedding(nn.Module):
    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocab_size, d_model) / d_model)
        self.scale = math.isqrt(d_model)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.weight[ids] * self.scale


# === exercise: skip-gram-loss | function: skip_gram_loss | kind: double | what is wrong: first: the negatives are multiplied by the contexts and not by the centers; second: the term of the negatives is summed over the batch, too, and never divided by B (only the true term is averaged), which shows for B greater than 1
# told: named
# now: named
# says: negatives compared with the contexts, and sum over the batch
def skip_gram_loss(
    centers: torch.Tensor, contexts: torch.Tensor, negatives: torch.Tensor
) -> torch.Tensor:
    pos_scores = torch.einsum("bd,bd->b", centers, contexts)
    neg_scores = (negatives @ contexts.unsqueeze(-1)).squeeze(-1)
    pos_loss = F.softplus(-pos_scores).mean()
    neg_loss = F.softplus(neg_scores).sum()
    return pos_loss + neg_loss


# === exercise: patch-kernel | function: patch_kernel | kind: double | what is wrong: first: the axes are reversed by permute(3, 2, 1, 0), so rows and columns of the kernel change places; second: the test asks only whether the number of elements is divisible by P*P*C, so a matrix with another number of rows passes (and the -1 takes up the rest) when its rows, or rows times d_model, are a multiple of P*P*C
# told: named
# now: named
# says: rows and columns exchanged
def patch_kernel(matrix: torch.Tensor, patch_size: int, channels: int) -> torch.Tensor:
    size = patch_size * patch_size * channels
    if matrix.numel() % size != 0:
        raise ValueError(f"{matrix.shape[0]} rows do not fit patches of {size} numbers")
    blocks = matrix.reshape(patch_size, patch_size, channels, -1)
    return blocks.permute(3, 2, 1, 0)


# === exercise: find-the-slips | function: token_table_slips | kind: double | what is wrong: first: "row_of_zero" is the index -1 that is written and not the row 6, counted from 0, that Python takes for it; second: "repaired" lacks the token "." before "<eos>", so joined it is not the sentence
# told: named
# now: named
# says: the index in place of the row
def token_table_slips() -> dict:
    ids = [0, 5, 3, 7, 2, 1]
    n_rows = 7
    pieces = ["Bobby<EOW>", "mag<EOW>", "Brom", "beeren<EOW>"]
    return {
        "outside": [i for i in ids if not 1 <= i <= n_rows],
        "refused": [i for i in ids if i >= n_rows],
        "rows_needed": max(ids) + 1,
        "row_of_zero": 0 - 1,
        "same_vector": [0, 7],
        "decoded": "".join(pieces).replace("<EOW>", " ").rstrip(),
        "lost": ".",
        "repaired": ["<sos>", "Bobby", " mag", " Brom", "beeren", "<eos>"],
    }
