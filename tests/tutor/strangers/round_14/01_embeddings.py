# ruff: noqa
# fmt: off

# === exercise: vocabulary | function: build_vocabulary | kind: plain | what is wrong: numbers the list with its repetitions, so a repeated token takes a later id and the ids have gaps
# told: named
# now: named
# says: a repeated token takes a new id
SPECIAL_TOKENS = ("<pad>", "<unk>", "<sos>", "<eos>")


def build_vocabulary(
    tokens: list[str], special_tokens: tuple[str, ...] = SPECIAL_TOKENS
) -> dict[str, int]:
    everything = [*special_tokens, *tokens]
    return {token: number for number, token in enumerate(everything)}


# === exercise: vocabulary | function: build_vocabulary | kind: double | what is wrong: an empty tuple of special tokens is replaced by the default ones; a special token that also occurs in the text is renumbered
# told: named
# now: named
# says: an empty tuple is taken for none given, and a special token in the text takes a new id
SPECIAL_TOKENS = ("<pad>", "<unk>", "<sos>", "<eos>")


def build_vocabulary(
    tokens: list[str], special_tokens: tuple[str, ...] = SPECIAL_TOKENS
) -> dict[str, int]:
    specials = list(special_tokens or SPECIAL_TOKENS)
    vocab = {}
    for i, s in enumerate(specials):
        vocab[s] = i

    # now the ordinary tokens, each once, in order
    unique = list(dict.fromkeys(tokens))
    offset = len(specials)
    for i, tok in enumerate(unique):
        vocab[tok] = offset + i
    return vocab


# === exercise: encode-decode | functions: encode, decode | kind: subtle | what is wrong: encode uses `get(...) or unk`, so the token with the id 0 is taken for unknown
# told: named
# now: named
# says: the id 0 is taken for none
def encode(tokens: list[str], vocabulary: dict[str, int]) -> list[int]:
    unknown = vocabulary["<unk>"]
    return [vocabulary.get(token) or unknown for token in tokens]


def decode(ids: list[int], vocabulary: dict[str, int]) -> list[str]:
    backwards = {index: token for token, index in vocabulary.items()}
    result = []
    for index in ids:
        if index not in backwards:
            raise ValueError(f"no token has the id {index}")
        result.append(backwards[index])
    return result


# === exercise: encode-decode | functions: encode, decode | kind: double | what is wrong: encode drops unknown tokens; decode indexes the list of keys by position, so negative ids count from the end and are not refused
# told: named
# now: named
# says: unknown tokens are left out
def encode(tokens: list[str], vocabulary: dict[str, int]) -> list[int]:
    ids = []
    for t in tokens:
        if t in vocabulary:
            ids.append(vocabulary[t])
    return ids


def decode(ids: list[int], vocabulary: dict[str, int]) -> list[str]:
    names = list(vocabulary.keys())
    try:
        return [names[i] for i in ids]
    except IndexError as err:
        raise ValueError("this id does not exist") from err


# === exercise: pair-counts | function: pair_counts | kind: plain | what is wrong: every word counts once, however often it occurs
# told: named
# now: named
# says: every word counts once
def pair_counts(words: dict[tuple[str, ...], int]) -> dict[tuple[str, str], int]:
    counts = {}
    for word in words:
        for i in range(len(word) - 1):
            pair = (word[i], word[i + 1])
            counts[pair] = counts.get(pair, 0) + 1
    return counts


# === exercise: pair-counts | function: pair_counts | kind: double | what is wrong: a pair that occurs twice in one word is counted once for it; the result is in order of frequency, not of first appearance
# told: named
# now: named
# says: a pair counts once in a word
def pair_counts(words: dict[tuple[str, ...], int]) -> dict[tuple[str, str], int]:
    """Count the pairs of neighbours inside words."""
    counter = Counter()
    for symbols, occurrences in words.items():
        pairs_of_word = dict.fromkeys(pairwise(symbols))
        for pair in pairs_of_word:
            counter[pair] += occurrences
    return dict(counter.most_common())


# === exercise: merge-pair | function: merge_pair | kind: plain | what is wrong: does not skip the right symbol after joining, so it is written again
# told: named
# now: named
# says: the second symbol stays
def merge_pair(symbols: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    left, right = pair
    out = []
    for i, s in enumerate(symbols):
        if symbols[i : i + 2] == (left, right):
            out.append(left + right)
        else:
            out.append(s)
    return tuple(out)


# === exercise: merge-pair | function: merge_pair | kind: subtle | what is wrong: compares the joined strings, so (ab, c) is taken for the pair (a, bc)
# told: named
# now: named
# says: text compared in place of symbols
def merge_pair(symbols: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    joined = "".join(pair)
    merged = []
    position = 0
    while position < len(symbols):
        two = symbols[position : position + 2]
        if len(two) == 2 and "".join(two) == joined:
            merged.append(joined)
            position += 2
        else:
            merged.append(symbols[position])
            position += 1
    return tuple(merged)


# === exercise: train-bpe | function: train_bpe | kind: plain | what is wrong: counts the pairs once and takes the most frequent ones; the counts are not taken anew after a merge
# told: named
# now: named
# says: the counts are never renewed
def train_bpe(
    text: str, merges: int, special_tokens: tuple[str, ...] = ()
) -> list[tuple[str, str]]:
    pieces = Counter(split_words(text, special_tokens))
    words = {}
    for piece, n in pieces.items():
        key = (piece,) if piece in special_tokens else tuple(piece)
        words[key] = n
    counts = Counter(pair_counts(words))
    learned = []
    for pair, _ in counts.most_common(merges):
        words = {merge_pair(w, pair): n for w, n in words.items()}
        learned.append(pair)
    return learned


# === exercise: train-bpe | function: train_bpe | kind: subtle | what is wrong: words that a merge changes are moved to the end of the dict, so among equally frequent pairs no longer the one that appears first wins
# told: named
# now: named
# says: the words change places
def train_bpe(
    text: str, merges: int, special_tokens: tuple[str, ...] = ()
) -> list[tuple[str, str]]:
    words = {}
    for piece in split_words(text, special_tokens):
        symbols = (piece,) if piece in special_tokens else tuple(piece)
        words[symbols] = words.get(symbols, 0) + 1

    learned = []
    while len(learned) < merges:
        counts = pair_counts(words)
        if not counts:
            break
        best = max(counts, key=counts.get)
        learned.append(best)
        # only the words that contain the pair have to change
        for old in list(words):
            new = merge_pair(old, best)
            if new != old:
                words[new] = words.pop(old)
    return learned


# === exercise: bpe-encode | function: bpe_encode | kind: subtle | what is wrong: takes the longest known token from the left instead of replaying the merges in their order
# told: named
# now: named
# says: the longest known token is taken first
def bpe_encode(
    text: str, merges: list[tuple[str, str]], special_tokens: tuple[str, ...] = ()
) -> list[str]:
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


# === exercise: bpe-encode | function: bpe_encode | kind: double | what is wrong: the special tokens are not passed on to split_words and come out in parts; the replay stops at the first merge that finds nothing
# told: named
# now: named
# says: special tokens are cut, and ends at the first merge that does not fit
def bpe_encode(
    text: str, merges: list[tuple[str, str]], special_tokens: tuple[str, ...] = ()
) -> list[str]:
    def apply_merges(word):
        symbols = tuple(word)
        for pair in merges:
            shorter = merge_pair(symbols, pair)
            if shorter == symbols:
                break  # nothing left to merge
            symbols = shorter
        return symbols

    result = []
    for word in split_words(text):
        if word in special_tokens:
            result.append(word)
        else:
            result.extend(apply_merges(word))
    return result


# === exercise: one-hot | function: one_hot | kind: plain | what is wrong: the result is int64, not float32
# told: named
# now: named
# says: no floats
def one_hot(ids: torch.Tensor, vocab_size: int) -> torch.Tensor:
    if (ids < 0).any() or (ids >= vocab_size).any():
        raise ValueError("ids outside of the vocabulary")
    return F.one_hot(ids, num_classes=vocab_size)


# === exercise: one-hot | function: one_hot | kind: double | what is wrong: negative ids are not refused and count from the end; the axes before T are flattened away
# told: shown
# now: named
# says: the leading axes are lost
def one_hot(ids: torch.Tensor, vocab_size: int) -> torch.Tensor:
    too_large = ids >= vocab_size
    if too_large.any():
        raise ValueError(f"there are only {vocab_size} tokens")
    identity = torch.eye(vocab_size)
    flat = ids.reshape(-1)
    return identity[flat]


# === exercise: embedding | function: Embedding | kind: plain | what is wrong: the rows are not multiplied by the root of d_model
# told: named
# now: named
# says: no factor √d_model
class Embedding(nn.Module):
    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(
            torch.randn(vocab_size, d_model) / math.sqrt(d_model)
        )

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.weight[ids]


# === exercise: embedding | function: Embedding | kind: subtle | what is wrong: padding_idx=0 keeps the gradient from row 0, so the vector of the id 0 is never trained
# told: named
# now: named
# says: row 0 learns nothing
class Embedding(nn.Module):
    """Look up a vector for each token id."""

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.scale = d_model**0.5
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        nn.init.normal_(self.weight, mean=0.0, std=1 / self.scale)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        # id 0 is <pad>
        return F.embedding(ids, self.weight, padding_idx=0) * self.scale


# === exercise: weight-tying | function: tied_logits | kind: subtle | what is wrong: the axes are restored for hidden states (B, T, d) only; (T, d) gives (T, 1, N), four axes lose one
# told: shown
# now: named
# says: the leading axes are not as they were
def tied_logits(hidden: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    n, d = table.shape
    flat = hidden.reshape(-1, d)  # all hidden states below each other
    scores = torch.mm(flat, table.t())
    return scores.reshape(hidden.shape[0], -1, n)


# === exercise: weight-tying | function: tied_logits | kind: double | what is wrong: the table is cut off from the gradient by .data; the logits are divided by the root of d_model
# told: named
# now: named
# says: divided by √d_model
def tied_logits(hidden: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    d_model = table.shape[1]
    logits = torch.einsum("...d,nd->...n", hidden, table.data)
    # undo the factor of the embedding layer
    return logits / math.sqrt(d_model)


# === exercise: tf-idf | function: tf_idf | kind: plain | what is wrong: divides by how often a term occurs in all documents, not by how many documents have it
# told: named
# now: named
# says: occurrences in place of documents
def tf_idf(documents: list[list[str]]) -> tuple[torch.Tensor, list[str]]:
    terms = list(dict.fromkeys(token for document in documents for token in document))
    counts = torch.tensor(
        [[float(document.count(term)) for term in terms] for document in documents]
    )
    document_frequency = counts.sum(dim=0)
    inverse = torch.log(len(documents) / document_frequency)
    return counts * inverse, terms


# === exercise: tf-idf | function: tf_idf | kind: subtle | what is wrong: empty documents are left out of the number of documents D
# told: named
# now: named
# says: an empty document is left out
def tf_idf(documents: list[list[str]]) -> tuple[torch.Tensor, list[str]]:
    terms = []
    holders = Counter()  # in how many documents
    number_of_documents = 0
    for document in documents:
        if not document:
            continue
        number_of_documents += 1
        holders.update(set(document))
        for token in document:
            if token not in terms:
                terms.append(token)

    matrix = torch.zeros(len(documents), len(terms))
    for i, document in enumerate(documents):
        frequency = Counter(document)
        for t, term in enumerate(terms):
            idf = math.log(number_of_documents / holders[term])
            matrix[i, t] = frequency[term] * idf
    return matrix, terms


# === exercise: skip-gram-pairs | function: skip_gram_pairs | kind: plain | what is wrong: the range ends one too early, the farthest right neighbour is missing
# told: named
# now: named
# says: the window ends too early
def skip_gram_pairs(ids: list[int], window: int) -> list[tuple[int, int]]:
    pairs = []
    for i in range(len(ids)):
        first = max(0, i - window)
        last = min(len(ids), i + window)
        for j in range(first, last):
            if j != i:
                pairs.append((ids[i], ids[j]))
    return pairs


# === exercise: skip-gram-pairs | function: skip_gram_pairs | kind: double | what is wrong: a negative start of the left slice loses left neighbours near the beginning; the right slice is one too short
# told: told
# now: named
# says: the window ends too early, and a slice that begins before the text
def skip_gram_pairs(ids: list[int], window: int) -> list[tuple[int, int]]:
    result = []
    for i, center in enumerate(ids):
        neighbours = ids[i - window : i] + ids[i + 1 : i + window]
        result += [(center, context) for context in neighbours]
    return result


# === exercise: skip-gram-loss | function: skip_gram_loss | kind: plain | what is wrong: takes the mean over the negatives instead of the sum
# told: named
# now: named
# says: mean over the negatives
def skip_gram_loss(
    centers: torch.Tensor, contexts: torch.Tensor, negatives: torch.Tensor
) -> torch.Tensor:
    true_scores = (centers * contexts).sum(dim=-1)
    false_scores = (centers[:, None] * negatives).sum(dim=-1)
    loss = -F.logsigmoid(true_scores).mean() - F.logsigmoid(-false_scores).mean()
    return loss


# === exercise: skip-gram-loss | function: skip_gram_loss | kind: subtle | what is wrong: squeeze() also removes the axis of the negatives when K is 1, and then the sum runs over the batch
# told: named
# now: named
# says: squeeze takes the axis of the negatives away
def skip_gram_loss(
    centers: torch.Tensor, contexts: torch.Tensor, negatives: torch.Tensor
) -> torch.Tensor:
    positive = torch.einsum("bd,bd->b", centers, contexts)
    negative = torch.bmm(negatives, centers.unsqueeze(-1)).squeeze()  # (B, K)
    per_pair = F.logsigmoid(positive) + F.logsigmoid(-negative).sum(-1)
    return -per_pair.mean()


# === exercise: patch-kernel | function: patch_kernel | kind: subtle | what is wrong: works out the channels from the matrix, so a matrix with another number of channels is not refused
# told: named
# now: named
# says: a wrong number of rows is accepted
def patch_kernel(matrix: torch.Tensor, patch_size: int, channels: int) -> torch.Tensor:
    rows, d_model = matrix.shape
    pixels = patch_size * patch_size
    if rows % pixels != 0:
        raise ValueError(f"{rows} rows are no multiple of {pixels} pixels")
    split = matrix.reshape(patch_size, patch_size, -1, d_model)
    return split.permute(3, 2, 0, 1)


# === exercise: patch-kernel | function: patch_kernel | kind: double | what is wrong: a wrong number of rows raises an AssertionError instead of a ValueError; rows and columns of the kernel are exchanged
# told: named
# now: named
# says: rows and columns exchanged
def patch_kernel(matrix: torch.Tensor, patch_size: int, channels: int) -> torch.Tensor:
    P, C = patch_size, channels
    assert matrix.shape[0] == P * P * C, "wrong number of rows"
    kernels = matrix.T.reshape(-1, P, P, C)  # one patch for each output channel
    return kernels.transpose(1, 3).contiguous()


# === exercise: find-the-slips | function: token_table_slips | kind: double | what is wrong: row_of_zero is -1 and not the row 6 that Python takes; the repaired tokens lack the full stop
# told: named
# now: named
# says: the index in place of the row
def token_table_slips() -> dict:
    printed = [0, 5, 3, 7, 2, 1]
    rows = 7
    tokens = ["Bobby<EOW>", "mag<EOW>", "Brom", "beeren<EOW>"]
    return {
        "outside": [i for i in printed if not 1 <= i <= rows],
        "refused": [i for i in printed if i >= rows],
        "rows_needed": max(printed) + 1,
        "row_of_zero": printed[0] - 1,
        "same_vector": [0, 7],
        "decoded": "".join(tokens).replace("<EOW>", " ").rstrip(),
        "lost": ".",
        "repaired": ["<sos>", "Bobby", " mag", " Brom", "beeren", "<eos>"],
    }


# === exercise: skip-gram-pairs | function: skip_gram_pairs | kind: plain | what is wrong: leaves out contexts whose id equals the centre's id instead of only the centre's own position
# told: named
# now: named
# says: equal neighbours left out
def skip_gram_pairs(ids: list[int], window: int) -> list[tuple[int, int]]:
    result = []
    for position, center in enumerate(ids):
        start = max(0, position - window)
        stop = min(len(ids), position + window + 1)
        neighbours = [word for word in ids[start:stop] if word != center]
        result.extend((center, word) for word in neighbours)
    return result


# === exercise: skip-gram-loss | function: skip_gram_loss | kind: plain | what is wrong: averages over the K negatives instead of summing over them
# told: named
# now: named
# says: mean over the negatives
def skip_gram_loss(
    centers: torch.Tensor, contexts: torch.Tensor, negatives: torch.Tensor
) -> torch.Tensor:
    true_scores = torch.einsum("bd,bd->b", centers, contexts)
    false_scores = torch.einsum("bd,bkd->bk", centers, negatives)
    true_loss = F.logsigmoid(true_scores).mean()
    false_loss = F.logsigmoid(-false_scores).mean()
    return -(true_loss + false_loss)


# === exercise: patch-kernel | function: patch_kernel | kind: subtle | what is wrong: swaps the row and column axes of the kernel (the shape is the same because patches are square)
# told: named
# now: named
# says: rows and columns exchanged
def patch_kernel(matrix: torch.Tensor, patch_size: int, channels: int) -> torch.Tensor:
    rows, d_model = matrix.shape
    if rows != patch_size**2 * channels:
        raise ValueError(f"expected {patch_size**2 * channels} rows, got {rows}")
    # (d, P*P*C) -> (d, P, P, C) -> (d, C, P, P)
    per_output = matrix.T.reshape(d_model, patch_size, patch_size, channels)
    return per_output.transpose(1, 3).contiguous()


# === exercise: tf-idf | function: tf_idf | kind: subtle | what is wrong: empty documents are not counted in the number of documents D of the inverse document frequency
# told: named
# now: named
# says: an empty document is left out
def tf_idf(documents: list[list[str]]) -> tuple[torch.Tensor, list[str]]:
    terms = list(dict.fromkeys(word for doc in documents for word in doc))
    counts = torch.zeros(len(documents), len(terms))
    frequency = Counter()
    filled = 0
    for i, doc in enumerate(documents):
        if not doc:
            continue  # its row stays zero
        filled += 1
        frequency.update(set(doc))
        for word in doc:
            counts[i, terms.index(word)] += 1.0
    for j, term in enumerate(terms):
        counts[:, j] *= math.log(filled / frequency[term])
    return counts, terms


# === exercise: embedding | function: Embedding | kind: double | what is wrong: (1) draws the table with standard deviation 1/d_model; (2) divides by the root of d_model in forward instead of multiplying
# told: named
# now: named
# says: divided by √d_model
class Embedding(nn.Module):
    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        nn.init.normal_(self.weight, mean=0.0, std=1 / d_model)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        vectors = F.embedding(ids, self.weight)
        return vectors / math.sqrt(self.d_model)


# === exercise: bpe-encode | function: bpe_encode | kind: double | what is wrong: (1) stops replaying at the first merge that finds nothing; (2) special tokens are cut into characters like other pieces
# told: named
# now: named
# says: special tokens are cut, and ends at the first merge that does not fit
def bpe_encode(
    text: str, merges: list[tuple[str, str]], special_tokens: tuple[str, ...] = ()
) -> list[str]:
    out = []
    for piece in split_words(text, special_tokens):
        symbols = tuple(piece)
        for pair in merges:
            merged = merge_pair(symbols, pair)
            if merged == symbols:
                break
            symbols = merged
        out += symbols
    return out
