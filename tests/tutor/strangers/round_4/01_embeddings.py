# ruff: noqa
# fmt: off

# === exercise: vocabulary | function: build_vocabulary | kind: subtle | what is wrong: a special token that also occurs in the text gets a second, later id (dict overwritten, gap at the start)
# told: shown
# now: named
# says: a special token in the text takes a new id
def build_vocabulary(
    tokens: list[str], special_tokens: tuple[str, ...] = SPECIAL_TOKENS
) -> dict[str, int]:
    vocabulary = {}
    for token in special_tokens:
        vocabulary[token] = len(vocabulary)
    next_id = len(vocabulary)
    seen = set()
    for token in tokens:
        if token not in seen:
            seen.add(token)
            vocabulary[token] = next_id
            next_id += 1
    return vocabulary


# === exercise: vocabulary | function: build_vocabulary | kind: plain | what is wrong: sorts the tokens alphabetically in place of first appearance
# told: named
# now: named
# says: tokens in alphabetical order
def build_vocabulary(
    tokens: list[str], special_tokens: tuple[str, ...] = SPECIAL_TOKENS
) -> dict[str, int]:
    words = sorted(set(tokens) - set(special_tokens))
    return {token: i for i, token in enumerate(list(special_tokens) + words)}


# === exercise: encode-decode | function: encode, decode | kind: double | what is wrong: encode uses the id 1 for unknown tokens whatever the vocabulary says AND decode takes the position of a key in the dict for its id
# told: named
# now: named
# says: the id of <unk> is assumed
def encode(tokens: list[str], vocabulary: dict[str, int]) -> list[int]:
    ids = []
    for token in tokens:
        if token in vocabulary:
            ids.append(vocabulary[token])
        else:
            ids.append(1)
    return ids


def decode(ids: list[int], vocabulary: dict[str, int]) -> list[str]:
    names = list(vocabulary)
    result = []
    for i in ids:
        if i < 0 or i >= len(names):
            raise ValueError(f"no token has the id {i}")
        result.append(names[i])
    return result


# === exercise: encode-decode | function: encode, decode | kind: subtle | what is wrong: encode writes `get(token) or unk`, so that the token with id 0 becomes unknown
# told: named
# now: named
# says: the id 0 is taken for none
def encode(tokens: list[str], vocabulary: dict[str, int]) -> list[int]:
    unknown = vocabulary["<unk>"]
    return [vocabulary.get(token) or unknown for token in tokens]


def decode(ids: list[int], vocabulary: dict[str, int]) -> list[str]:
    inverse = {index: token for token, index in vocabulary.items()}
    try:
        return [inverse[i] for i in ids]
    except KeyError as e:
        raise ValueError(f"unknown id {e}") from e


# === exercise: pair-counts | function: pair_counts | kind: plain | what is wrong: every word counts once, the number of occurrences is ignored
# told: named
# now: named
# says: every word counts once
def pair_counts(words: dict[tuple[str, ...], int]) -> dict[tuple[str, str], int]:
    counts = {}
    for word in words:
        for pair in zip(word, word[1:]):
            counts[pair] = counts.get(pair, 0) + 1
    return counts


# === exercise: pair-counts | function: pair_counts | kind: double | what is wrong: a set of the pairs of a word, so a pair twice in one word counts once AND result is ordered by count (most_common) rather than first appearance
# told: named
# now: named
# says: a pair counts once in a word
def pair_counts(words: dict[tuple[str, ...], int]) -> dict[tuple[str, str], int]:
    counter = Counter()
    for word, n in words.items():
        for pair in dict.fromkeys(pairwise(word)):
            counter[pair] += n
    return dict(counter.most_common())


# === exercise: merge-pair | function: merge_pair | kind: subtle | what is wrong: compares the joined strings, so ("a","bc") is merged for the pair ("ab","c")
# told: named
# now: named
# says: text compared in place of symbols
def merge_pair(symbols: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    joined = "".join(pair)
    out = []
    i = 0
    while i < len(symbols):
        if i + 1 < len(symbols) and symbols[i] + symbols[i + 1] == joined:
            out.append(joined)
            i += 2
        else:
            out.append(symbols[i])
            i += 1
    return tuple(out)


# === exercise: merge-pair | function: merge_pair | kind: subtle | what is wrong: the loop ends at the last but one symbol, so a last symbol that is not merged gets lost
# told: named
# now: named
# says: the last symbol is lost
def merge_pair(symbols: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    merged = ()
    position = 0
    while position < len(symbols) - 1:
        if symbols[position : position + 2] == pair:
            merged += (pair[0] + pair[1],)
            position += 2
        else:
            merged += (symbols[position],)
            position += 1
    return merged


# === exercise: train-bpe | function: train_bpe | kind: subtle | what is wrong: of equally frequent pairs the last (or lexicographically largest) is merged: max over (count, pair)
# told: named
# now: named
# says: ties go by the alphabet
def train_bpe(
    text: str, merges: int, special_tokens: tuple[str, ...] = ()
) -> list[tuple[str, str]]:
    words = {}
    for piece, n in Counter(split_words(text, special_tokens)).items():
        key = (piece,) if piece in special_tokens else tuple(piece)
        words[key] = n
    learned = []
    for _ in range(merges):
        counts = pair_counts(words)
        if not counts:
            break
        _, best = max((n, pair) for pair, n in counts.items())
        learned.append(best)
        words = {merge_pair(word, best): n for word, n in words.items()}
    return learned


# === exercise: train-bpe | function: train_bpe | kind: double | what is wrong: text is lowercased before it is cut AND it stops as soon as the best pair occurs only once
# told: shown
# now: named
# says: capital letters are lost, and stops while there are pairs left
def train_bpe(
    text: str, merges: int, special_tokens: tuple[str, ...] = ()
) -> list[tuple[str, str]]:
    pieces = split_words(text.lower(), special_tokens)
    words = Counter(
        (piece,) if piece in special_tokens else tuple(piece) for piece in pieces
    )
    learned = []
    while len(learned) < merges:
        counts = pair_counts(words)
        if not counts or max(counts.values()) < 2:
            break
        best = max(counts, key=counts.get)
        learned.append(best)
        words = {merge_pair(word, best): count for word, count in words.items()}
    return learned


# === exercise: bpe-encode | function: bpe_encode | kind: subtle | what is wrong: stops with the first merge that finds nothing in the piece
# told: shown
# now: named
# says: ends at the first merge that does not fit
def bpe_encode(
    text: str, merges: list[tuple[str, str]], special_tokens: tuple[str, ...] = ()
) -> list[str]:
    tokens = []
    for piece in split_words(text, special_tokens):
        if piece in special_tokens:
            tokens.append(piece)
            continue
        symbols = tuple(piece)
        for pair in merges:
            new = merge_pair(symbols, pair)
            if new == symbols:
                break
            symbols = new
        tokens.extend(symbols)
    return tokens


# === exercise: bpe-encode | function: bpe_encode | kind: double | what is wrong: greedy longest match against the vocabulary of merged strings in place of replaying merges AND special tokens are not passed to split_words
# told: named
# now: named
# says: special tokens are cut, and the longest known token is taken first
def bpe_encode(
    text: str, merges: list[tuple[str, str]], special_tokens: tuple[str, ...] = ()
) -> list[str]:
    known = {left + right for left, right in merges} | set(special_tokens)
    tokens = []
    for piece in split_words(text):
        start = 0
        while start < len(piece):
            end = len(piece)
            while end > start + 1 and piece[start:end] not in known:
                end -= 1
            tokens.append(piece[start:end])
            start = end
    return tokens


# === exercise: one-hot | function: one_hot | kind: double | what is wrong: ids equal to vocab_size pass the test (> in place of >=), and give a row of zeros AND int64 is returned, not float32
# told: named
# now: named
# says: no floats
def one_hot(ids: torch.Tensor, vocab_size: int) -> torch.Tensor:
    if ids.min() < 0 or ids.max() > vocab_size:
        raise ValueError("ids outside the vocabulary")
    columns = torch.arange(vocab_size)
    return (ids.unsqueeze(-1) == columns).long()


# === exercise: embedding | function: Embedding | kind: plain | what is wrong: the lookup is not multiplied by the root of d_model
# told: named
# now: named
# says: no factor √d_model
class Embedding(nn.Module):
    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocab_size, d_model) / math.sqrt(d_model))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.weight[ids]


# === exercise: embedding | function: Embedding | kind: double | what is wrong: spread of the table is 1/d_model (no root) AND scales by the root of the number of tokens in the sentence (ids.shape[-1])
# told: told
# now: named
# says: multiplied by the root of the number of ids
class Embedding(nn.Module):
    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        w = torch.empty(vocab_size, d_model)
        nn.init.normal_(w, mean=0.0, std=1 / d_model)
        self.weight = nn.Parameter(w)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        rows = nn.functional.embedding(ids, self.weight)
        return rows * ids.shape[-1] ** 0.5


# === exercise: tf-idf | function: tf_idf | kind: double | what is wrong: term frequency is divided by the length of the document AND idf is the smoothed variant of scikit-learn, ln((1+D)/(1+D_t)) + 1
# told: useless
# now: named
# says: another variant of the formula, and shares in place of counts
def tf_idf(documents: list[list[str]]) -> tuple[torch.Tensor, list[str]]:
    terms = []
    for document in documents:
        for token in document:
            if token not in terms:
                terms.append(token)
    matrix = torch.zeros(len(documents), len(terms))
    for i, document in enumerate(documents):
        for j, term in enumerate(terms):
            if document:
                matrix[i, j] = document.count(term) / len(document)
    df = (matrix > 0).sum(dim=0)
    idf = torch.log((1 + len(documents)) / (1 + df)) + 1
    return matrix * idf, terms


# === exercise: skip-gram-pairs | function: skip_gram_pairs | kind: subtle | what is wrong: skips every context with the same id as the centre, not only the centre's position
# told: named
# now: named
# says: equal neighbours left out
def skip_gram_pairs(ids: list[int], window: int) -> list[tuple[int, int]]:
    pairs = []
    for i, center in enumerate(ids):
        left = max(0, i - window)
        for context in ids[left : i + window + 1]:
            if context != center:
                pairs.append((center, context))
    return pairs


# === exercise: skip-gram-loss | function: skip_gram_loss | kind: plain | what is wrong: means over the K negatives in place of summing over them
# told: named
# now: named
# says: mean over the negatives
def skip_gram_loss(
    centers: torch.Tensor, contexts: torch.Tensor, negatives: torch.Tensor
) -> torch.Tensor:
    positive = torch.einsum("bd,bd->b", centers, contexts)
    negative = torch.einsum("bd,bkd->bk", centers, negatives)
    return -F.logsigmoid(positive).mean() - F.logsigmoid(-negative).mean()


# === exercise: patch-kernel | function: patch_kernel | kind: double | what is wrong: rows and columns of the kernel are exchanged (permute 3, 2, 1, 0) AND only refuses numbers of rows that are not divisible, taking the number of channels from the matrix
# told: named
# now: named
# says: rows and columns exchanged
def patch_kernel(matrix: torch.Tensor, patch_size: int, channels: int) -> torch.Tensor:
    rows, d_model = matrix.shape
    if rows % (patch_size * patch_size) != 0:
        raise ValueError(f"{rows} rows do not fit patches of {patch_size}")
    cube = matrix.reshape(patch_size, patch_size, -1, d_model)
    return cube.permute(3, 2, 1, 0)
