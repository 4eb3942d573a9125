# ruff: noqa
# fmt: off

# === exercise: vocabulary | function: build_vocabulary | kind: plain | what is wrong: the ordinary tokens are numbered by frequency (Counter.most_common) and not by first appearance, so ["a", "b", "b"] gives b a smaller id than a
# told: named
# now: named
# says: tokens in order of frequency
SPECIAL_TOKENS = ("<pad>", "<unk>", "<sos>", "<eos>")


def build_vocabulary(
    tokens: list[str], special_tokens: tuple[str, ...] = SPECIAL_TOKENS
) -> dict[str, int]:
    frequencies = Counter(tokens)
    index_to_token = list(special_tokens)
    for token, _ in frequencies.most_common():
        if token not in special_tokens:
            index_to_token.append(token)
    return {token: index for index, token in enumerate(index_to_token)}


# === exercise: vocabulary | function: build_vocabulary | kind: subtle | what is wrong: an empty tuple of special tokens is falsy and is replaced by the four default ones, so build_vocabulary(["a"], ()) gives a the id 4 and adds tokens nobody asked for, in place of {"a": 0}
# told: passed
# now: named
# says: an empty tuple is taken for none given
SPECIAL_TOKENS = ("<pad>", "<unk>", "<sos>", "<eos>")


def build_vocabulary(tokens, special_tokens=SPECIAL_TOKENS):
    special_tokens = special_tokens or SPECIAL_TOKENS
    vocab = {}
    for token in (*special_tokens, *tokens):
        # setdefault leaves the id of a token that is already there alone
        vocab.setdefault(token, len(vocab))
    return vocab


# === exercise: encode-decode | function: decode | kind: plain | what is wrong: decode answers "<unk>" for an id that no token has (also for -1) where it must raise a ValueError
# told: named
# now: named
# says: a wrong id becomes <unk>
def encode(tokens: list[str], vocabulary: dict[str, int]) -> list[int]:
    unknown = vocabulary["<unk>"]
    return [vocabulary.get(token, unknown) for token in tokens]


def decode(ids: list[int], vocabulary: dict[str, int]) -> list[str]:
    inverse = {index: token for token, index in vocabulary.items()}
    # symmetric to encode: what we do not know is unknown
    return [inverse.get(index, "<unk>") for index in ids]


# === exercise: encode-decode | function: encode | kind: subtle | what is wrong: encode writes get(token) or the id of "<unk>", and as 0 is falsy the known token with the id 0 is encoded as unknown
# told: named
# now: named
# says: the id 0 is taken for none
def encode(tokens, vocabulary):
    ids = []
    for token in tokens:
        ids.append(vocabulary.get(token) or vocabulary["<unk>"])
    return ids


def decode(ids, vocabulary):
    id_to_token = dict(zip(vocabulary.values(), vocabulary.keys()))
    tokens = []
    for index in ids:
        if index not in id_to_token:
            raise ValueError(f"no token has the id {index}")
        tokens.append(id_to_token[index])
    return tokens


# === exercise: encode-decode | function: encode | kind: double | what is wrong: encode uses the fixed number 1 for unknown tokens in place of the id that "<unk>" has in this vocabulary; decode takes the token at position id of the dict, which is another token when the dict is not in the order of its ids
# told: named
# now: named
# says: the id of <unk> is assumed
UNK_ID = 1


def encode(tokens: list[str], vocabulary: dict[str, int]) -> list[int]:
    return [vocabulary[t] if t in vocabulary else UNK_ID for t in tokens]


def decode(ids: list[int], vocabulary: dict[str, int]) -> list[str]:
    itos = list(vocabulary)
    for i in ids:
        if i < 0 or i >= len(itos):
            raise ValueError(f"id {i} is not in the vocabulary")
    return [itos[i] for i in ids]


# === exercise: pair-counts | function: pair_counts | kind: plain | what is wrong: all words, repeated as often as they occur, are put into one stream before the pairs are taken, so pairs that reach from one word into the next are counted as well
# told: named
# now: named
# says: pairs that reach from word to word
def pair_counts(words: dict[tuple[str, ...], int]) -> dict[tuple[str, str], int]:
    stream = []
    for word, times in words.items():
        stream += list(word) * times
    counts = {}
    for left, right in pairwise(stream):
        counts[left, right] = counts.get((left, right), 0) + 1
    return counts


# === exercise: pair-counts | function: pair_counts | kind: subtle | what is wrong: the counts are right but the dict comes sorted by frequency (most_common) in place of the order of first appearance, which shows as soon as a later pair is more frequent than an earlier one
# told: named
# now: named
# says: right pairs in another order
def pair_counts(words: dict[tuple[str, ...], int]) -> dict[tuple[str, str], int]:
    counts = Counter()
    for symbols, frequency in words.items():
        for pair in pairwise(symbols):
            counts[pair] += frequency
    return dict(counts.most_common())


# === exercise: merge-pair | function: merge_pair | kind: plain | what is wrong: only the first occurrence of the pair is joined, as the function returns at once, so (a, b, c, a, b) gives (ab, c, a, b)
# told: named
# now: named
# says: only the first occurrence is merged
def merge_pair(symbols: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    left, right = pair
    for i in range(len(symbols) - 1):
        if symbols[i] == left and symbols[i + 1] == right:
            return symbols[:i] + (left + right,) + symbols[i + 2 :]
    return symbols


# === exercise: merge-pair | function: merge_pair | kind: subtle | what is wrong: two neighbours are compared with the pair as joined strings and not symbol by symbol, so (a, bc) is joined for the pair (ab, c) although neither symbol is in the pair
# told: named
# now: named
# says: text compared in place of symbols
def merge_pair(symbols: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    new_symbol = "".join(pair)
    merged = []
    i = 0
    while i < len(symbols):
        if i + 1 < len(symbols) and symbols[i] + symbols[i + 1] == new_symbol:
            merged.append(new_symbol)
            i += 2
        else:
            merged.append(symbols[i])
            i += 1
    return tuple(merged)


# === exercise: merge-pair | function: merge_pair | kind: double | what is wrong: the pair is replaced in the symbols written as one string without a look at where a symbol begins and ends, so (ba, b) becomes (bab) for the pair (a, b); the string is cut again with split(), which loses the spaces that belong to symbols, so a symbol " " vanishes and " lo" becomes "lo"
# told: named
# now: named
# says: text compared in place of symbols
def merge_pair(symbols, pair):
    # as in the paper: symbols separated by blanks, then search and replace
    word = " ".join(symbols)
    bigram = " ".join(pair)
    word = word.replace(bigram, "".join(pair))
    return tuple(word.split())


# === exercise: train-bpe | function: train_bpe | kind: plain | what is wrong: the pairs are counted once and the most frequent ones are returned, nothing is ever merged and counted anew, so no pair contains a symbol made by an earlier merge
# told: named
# now: named
# says: the counts are never renewed
def train_bpe(
    text: str, merges: int, special_tokens: tuple[str, ...] = ()
) -> list[tuple[str, str]]:
    pieces = Counter(split_words(text, special_tokens))
    words = {}
    for piece, count in pieces.items():
        key = (piece,) if piece in special_tokens else tuple(piece)
        words[key] = count
    ranking = Counter(pair_counts(words)).most_common(merges)
    return [pair for pair, _ in ranking]


# === exercise: train-bpe | function: train_bpe | kind: subtle | what is wrong: training stops when the most frequent pair occurs only once, although it may stop early only when no pair is left, so train_bpe("ab", 5) gives [] in place of [("a", "b")]
# told: named
# now: named
# says: stops while there are pairs left
def train_bpe(
    text: str, merges: int, special_tokens: tuple[str, ...] = ()
) -> list[tuple[str, str]]:
    words = {}
    for piece, count in Counter(split_words(text, special_tokens)).items():
        words[(piece,) if piece in special_tokens else tuple(piece)] = count

    learned = []
    while len(learned) < merges:
        counts = pair_counts(words)
        best = max(counts, key=counts.get, default=None)
        if best is None or counts[best] < 2:  # nothing worth a token of its own
            break
        learned.append(best)
        words = {merge_pair(symbols, best): n for symbols, n in words.items()}
    return learned


# === exercise: train-bpe | function: train_bpe | kind: double | what is wrong: the special tokens are not passed to split_words, so <eos> is cut into <, eos and > and its letters are counted and merged; of equally frequent pairs the last one wins because of >= in place of >
# told: named
# now: named
# says: special tokens are cut, and ties go to the last pair
def train_bpe(text, merges, special_tokens=()):
    def to_symbols(piece):
        return (piece,) if piece in special_tokens else tuple(piece)

    vocab = {to_symbols(p): n for p, n in Counter(split_words(text)).items()}
    result = []
    for _ in range(merges):
        best, best_count = None, 0
        for pair, count in pair_counts(vocab).items():
            if count >= best_count:
                best, best_count = pair, count
        if best is None:
            break
        result.append(best)
        vocab = {merge_pair(word, best): n for word, n in vocab.items()}
    return result


# === exercise: bpe-encode | function: bpe_encode | kind: plain | what is wrong: the loop over the merges ends at the first merge that finds nothing in the piece, so later merges are never tried and er stays e, r with the merges (l, o), (e, r)
# told: named
# now: named
# says: ends at the first merge that does not fit
def bpe_encode(
    text: str, merges: list[tuple[str, str]], special_tokens: tuple[str, ...] = ()
) -> list[str]:
    result = []
    for piece in split_words(text, special_tokens):
        if piece in special_tokens:
            result.append(piece)
            continue
        symbols = tuple(piece)
        for pair in merges:
            shorter = merge_pair(symbols, pair)
            if len(shorter) == len(symbols):
                break  # nothing changed any more, this piece is finished
            symbols = shorter
        result.extend(symbols)
    return result


# === exercise: bpe-encode | function: bpe_encode | kind: subtle | what is wrong: pieces of white space only are skipped, so line breaks, doubled spaces and spaces at the end are missing and the tokens, joined, are not the text
# told: named
# now: named
# says: the text does not come back
def bpe_encode(text, merges, special_tokens=()):
    def apply_merges(piece):
        if piece in special_tokens:
            return (piece,)
        symbols = tuple(piece)
        for pair in merges:
            symbols = merge_pair(symbols, pair)
        return symbols

    tokens = []
    for piece in split_words(text, special_tokens):
        if not piece.strip():
            continue  # no word in it
        tokens += apply_merges(piece)
    return tokens


# === exercise: bpe-encode | function: bpe_encode | kind: double | what is wrong: each piece is cut by the longest known token from the left in place of replaying the merges in order, so abc with the merges (b, c), (a, b) gives ab, c and not a, bc; special tokens are treated like every other piece and come out in single characters
# told: named
# now: named
# says: special tokens are cut, and the longest known token is taken first
def bpe_encode(
    text: str, merges: list[tuple[str, str]], special_tokens: tuple[str, ...] = ()
) -> list[str]:
    known = {left + right for left, right in merges}
    tokens = []
    for piece in split_words(text, special_tokens):
        start = 0
        while start < len(piece):
            end = len(piece)
            # shorten until we know it; a single character is always fine
            while end > start + 1 and piece[start:end] not in known:
                end -= 1
            tokens.append(piece[start:end])
            start = end
    return tokens


# === exercise: one-hot | function: one_hot | kind: subtle | what is wrong: the upper limit is off by one (> vocab_size in place of >=), so the id vocab_size is not refused and gets a row of zeros
# told: named
# now: named
# says: an id outside becomes a row of zeros
def one_hot(ids: torch.Tensor, vocab_size: int) -> torch.Tensor:
    if (ids < 0).any() or (ids > vocab_size).any():
        raise ValueError(f"ids must lie between 0 and {vocab_size}")
    columns = torch.arange(vocab_size, device=ids.device)
    return (ids.unsqueeze(-1) == columns).float()


# === exercise: one-hot | function: one_hot | kind: double | what is wrong: negative ids are not refused and take rows of the identity from its end; the rows are float64 in place of float32
# told: told
# now: named
# says: float32 expected
def one_hot(ids, vocab_size):
    if (ids >= vocab_size).any():
        raise ValueError("id too large for the vocabulary")
    identity = torch.eye(vocab_size, dtype=torch.float64)  # like np.eye
    return identity[ids.long()]


# === exercise: embedding | function: Embedding | kind: plain | what is wrong: forward divides the rows by the root of d_model in place of multiplying
# told: named
# now: named
# says: divided by √d_model
class Embedding(nn.Module):
    """Look up a vector for each token id."""

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.scale = math.sqrt(d_model)
        self.weight = nn.Parameter(torch.randn(vocab_size, d_model) / self.scale)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.weight[ids] / self.scale


# === exercise: embedding | function: Embedding | kind: subtle | what is wrong: F.embedding is called with padding_idx=0, so the values are right but the row of the id 0 never gets a gradient and cannot be learned
# told: named
# now: named
# says: row 0 learns nothing
class Embedding(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.d_model = d_model
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        nn.init.normal_(self.weight, mean=0.0, std=d_model**-0.5)

    def forward(self, ids):
        # id 0 is <pad>
        rows = F.embedding(ids, self.weight, padding_idx=0)
        return rows * math.sqrt(self.d_model)


# === exercise: embedding | function: Embedding | kind: double | what is wrong: the table is drawn with the standard deviation 1/d_model, which should be 1/√d_model (1/d_model is the variance); forward applies dropout, so in training mode some entries are 0 and the others too large
# told: told
# now: told
# line: 11
class Embedding(nn.Module):
    """Look up a vector for each token id.

    Parameter: weight (vocab_size, d_model), row i belongs to the id i.
    """

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model
        table = torch.empty(vocab_size, d_model)
        nn.init.normal_(table, mean=0.0, std=1.0 / d_model)
        self.weight = nn.Parameter(table)
        self.dropout = nn.Dropout(p=0.1)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        vectors = self.weight[ids]
        vectors = vectors * math.sqrt(self.d_model)
        return self.dropout(vectors)


# === exercise: weight-tying | function: tied_logits | kind: subtle | what is wrong: the table is transposed only if its first size differs from d_model, so for a square table (vocab_size equal to d_model) the product takes the columns and not the rows
# told: named
# now: named
# says: the table is not transposed
def tied_logits(hidden: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    d_model = hidden.shape[-1]
    # the product wants (d_model, vocab_size): turn the table if it is the other way
    if table.shape[0] != d_model:
        table = table.transpose(0, 1)
    return torch.matmul(hidden, table)


# === exercise: weight-tying | function: tied_logits | kind: double | what is wrong: the hidden states are divided by the root of d_model, a factor that the logits must not have; the table is detached, so no gradient reaches it
# told: named
# now: named
# says: divided by √d_model
def tied_logits(hidden, table):
    output_weight = table.detach()  # the embedding is trained at the input
    scaled = hidden * hidden.shape[-1] ** -0.5  # shared tables are rescaled, as in T5
    return F.linear(scaled, output_weight)


# === exercise: tf-idf | function: tf_idf | kind: plain | what is wrong: the term frequency is divided by the length of the document, but the count itself is wanted
# told: named
# now: named
# says: shares in place of counts
def tf_idf(documents: list[list[str]]) -> tuple[torch.Tensor, list[str]]:
    terms = list(dict.fromkeys(token for document in documents for token in document))
    frequency = torch.zeros(len(documents), len(terms))
    for row, document in enumerate(documents):
        counts = Counter(document)
        for column, term in enumerate(terms):
            if counts[term] > 0:
                frequency[row, column] = counts[term] / len(document)
    holding = (frequency > 0).sum(dim=0)
    inverse = torch.log(len(documents) / holding)
    return frequency * inverse, terms


# === exercise: tf-idf | function: tf_idf | kind: subtle | what is wrong: whether a document contains a term is asked of the joined text, so a term that is a part of another word (cat in cats) is counted in documents that do not hold it and gets too small a logarithm
# told: told
# now: named
# says: a term is found inside other words
def tf_idf(documents: list[list[str]]) -> tuple[torch.Tensor, list[str]]:
    terms: list[str] = []
    for document in documents:
        for token in document:
            if token not in terms:
                terms.append(token)

    texts = [" ".join(document) for document in documents]
    idf = []
    for term in terms:
        document_frequency = sum(term in text for text in texts)
        idf.append(math.log(len(documents) / document_frequency))

    rows = [
        [document.count(term) * weight for term, weight in zip(terms, idf)]
        for document in documents
    ]
    matrix = torch.tensor(rows, dtype=torch.float32)
    return matrix.reshape(len(documents), len(terms)), terms


# === exercise: tf-idf | function: tf_idf | kind: double | what is wrong: the logarithm is to the base 10 in place of the natural one; empty documents are thrown away, so their row of zeros is missing and the number of documents is too small
# told: named
# now: named
# says: logarithm to base 10, and an empty document is left out
def tf_idf(documents):
    documents = [document for document in documents if document]
    terms = list(dict.fromkeys(sum(documents, [])))
    counts = torch.tensor(
        [[document.count(term) for term in terms] for document in documents],
        dtype=torch.float32,
    ).reshape(len(documents), len(terms))
    df = (counts > 0).sum(dim=0)
    idf = torch.log10(len(documents) / df)
    return counts * idf[None, :], terms


# === exercise: skip-gram-pairs | function: skip_gram_pairs | kind: plain | what is wrong: the window is taken as the width of both sides together (window // 2 on each side), so a window of 1 gives no pairs and one of 2 gives a single neighbour on each side
# told: named
# now: named
# says: half the window on each side
def skip_gram_pairs(ids: list[int], window: int) -> list[tuple[int, int]]:
    half = window // 2
    pairs = []
    for i in range(len(ids)):
        first = max(0, i - half)
        last = min(len(ids) - 1, i + half)
        for j in range(first, last + 1):
            if j != i:
                pairs.append((ids[i], ids[j]))
    return pairs


# === exercise: skip-gram-pairs | function: skip_gram_pairs | kind: subtle | what is wrong: the slice of the left neighbours begins at a negative index near the start and is then empty or too short, so with a window of 2 or more the first tokens lose left neighbours that exist
# told: named
# now: named
# says: a slice that begins before the text
def skip_gram_pairs(ids: list[int], window: int) -> list[tuple[int, int]]:
    pairs = []
    for i, center in enumerate(ids):
        # slices never run over the end, so no test is needed
        neighbours = ids[i - window : i] + ids[i + 1 : i + window + 1]
        pairs.extend((center, context) for context in neighbours)
    return pairs


# === exercise: skip-gram-pairs | function: skip_gram_pairs | kind: double | what is wrong: the contexts come by distance (nearest left, nearest right, next left, ...) in place of from left to right, visible for windows from 2 on; the centre is left out by comparing ids and not positions, so an equal token beside it is lost, too
# told: told
# now: named
# says: right pairs in another order, and equal neighbours left out
def skip_gram_pairs(ids, window):
    pairs = []
    for i, center in enumerate(ids):
        for distance in range(1, window + 1):
            for j in (i - distance, i + distance):
                if 0 <= j < len(ids) and ids[j] != center:
                    pairs.append((center, ids[j]))
    return pairs


# === exercise: skip-gram-loss | function: skip_gram_loss | kind: plain | what is wrong: the term of the true pair is broadcast over the negatives before the sum and so counts K times in place of once
# told: named
# now: named
# says: the true neighbour counts once for each negative
def skip_gram_loss(
    centers: torch.Tensor, contexts: torch.Tensor, negatives: torch.Tensor
) -> torch.Tensor:
    true_scores = (centers * contexts).sum(dim=-1, keepdim=True)  # (B, 1)
    false_scores = torch.einsum("bd,bkd->bk", centers, negatives)  # (B, K)
    log_likelihood = F.logsigmoid(true_scores) + F.logsigmoid(-false_scores)
    return -log_likelihood.sum(dim=1).mean()


# === exercise: skip-gram-loss | function: skip_gram_loss | kind: subtle | what is wrong: squeeze() without an axis also removes the axis of the negatives when K is 1, so the sum then runs over the batch and the negative term is not averaged but B times too large
# told: named
# now: named
# says: squeeze takes the axis of the negatives away
def skip_gram_loss(
    centers: torch.Tensor, contexts: torch.Tensor, negatives: torch.Tensor
) -> torch.Tensor:
    positive = torch.sum(centers * contexts, dim=-1)
    negative = torch.bmm(negatives, centers.unsqueeze(-1)).squeeze()
    loss = -F.logsigmoid(positive) - F.logsigmoid(-negative).sum(dim=-1)
    return loss.mean()


# === exercise: skip-gram-loss | function: skip_gram_loss | kind: double | what is wrong: the logarithm is taken of sigmoid + 1e-10, which is finite but stops at about 23 where a score of -200 costs 200; the negatives are averaged over K in place of summed
# told: named
# now: named
# says: mean over the negatives
def skip_gram_loss(centers, contexts, negatives):
    eps = 1e-10  # against log(0)

    def log_sigmoid(x):
        return torch.log(torch.sigmoid(x) + eps)

    pos_score = torch.einsum("bd,bd->b", centers, contexts)
    neg_score = (centers[:, None] * negatives).sum(-1)
    pos_loss = -log_sigmoid(pos_score)
    neg_loss = -log_sigmoid(-neg_score).mean(dim=1)
    return (pos_loss + neg_loss).mean()


# === exercise: patch-kernel | function: patch_kernel | kind: plain | what is wrong: the rows of the matrix are split in the order (channel, row, column) and not (row, column, channel), so with more than one channel the shape is right and the values are in wrong places
# told: named
# now: named
# says: a patch read as (channel, row, column)
def patch_kernel(matrix: torch.Tensor, patch_size: int, channels: int) -> torch.Tensor:
    rows, d_model = matrix.shape
    if rows != patch_size * patch_size * channels:
        raise ValueError(
            f"expected {patch_size * patch_size * channels} rows, got {rows}"
        )
    # one row of the transposed matrix is one filter
    return matrix.T.reshape(d_model, channels, patch_size, patch_size)


# === exercise: patch-kernel | function: patch_kernel | kind: double | what is wrong: permute(3, 2, 1, 0) also exchanges the rows and columns of the patch; a matrix with too many rows is not refused but cut off, so a 769th row is silently dropped
# told: named
# now: named
# says: rows and columns exchanged
def patch_kernel(matrix, patch_size, channels):
    expected = patch_size**2 * channels
    if matrix.shape[0] < expected:
        raise ValueError(f"the matrix needs {expected} rows")
    weights = matrix[:expected]  # without a bias row
    weights = weights.reshape(patch_size, patch_size, channels, -1)
    return weights.permute(3, 2, 1, 0)


# === exercise: find-the-slips | function: token_table_slips | kind: plain | what is wrong: row_of_zero is given as the index -1, but the row that Python takes, counted from 0, is 6
# told: named
# now: named
# says: the index in place of the row
def token_table_slips() -> dict:
    return {
        "outside": [0],
        "refused": [7],
        "rows_needed": 8,
        "row_of_zero": -1,
        "same_vector": [0, 7],
        "decoded": "Bobby mag Brombeeren",
        "lost": ".",
        "repaired": ["<sos>", "Bobby", " mag", " Brom", "beeren", ".", "<eos>"],
    }


# === exercise: find-the-slips | function: token_table_slips | kind: double | what is wrong: rows_needed is the largest id 7, but E[7] needs 8 rows; in repaired the spaces are put at the end of the word before and not at the beginning of the word after
# told: named
# now: named
# says: rows counted from 1
def token_table_slips() -> dict:
    printed = [0, 5, 3, 7, 2, 1]
    pieces = ["Bobby<EOW>", "mag<EOW>", "Brom", "beeren<EOW>"]
    decoded = "".join(pieces).replace("<EOW>", " ").rstrip()
    slips = {}
    slips["outside"] = [i for i in printed if not 1 <= i <= 7]
    slips["refused"] = [i for i in printed if i >= 7]
    slips["rows_needed"] = max(printed)
    slips["row_of_zero"] = (0 - 1) % 7
    slips["same_vector"] = [0, 7]
    slips["decoded"] = decoded
    slips["lost"] = "."
    slips["repaired"] = ["<sos>", "Bobby ", "mag ", "Brom", "beeren", ".", "<eos>"]
    return slips
