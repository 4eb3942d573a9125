# ruff: noqa
# fmt: off

# === exercise: vocabulary | function: build_vocabulary | kind: plain | what is wrong: numbers a new token by its place in the text, so repetitions leave gaps
# told: named
# now: named
# says: gaps between the ids
SPECIAL_TOKENS = ("<pad>", "<unk>", "<sos>", "<eos>")


def build_vocabulary(
    tokens: list[str], special_tokens: tuple[str, ...] = SPECIAL_TOKENS
) -> dict[str, int]:
    vocabulary = {token: i for i, token in enumerate(special_tokens)}
    for i, token in enumerate(tokens, start=len(special_tokens)):
        if token not in vocabulary:
            vocabulary[token] = i
    return vocabulary


# === exercise: vocabulary | function: build_vocabulary | kind: double | what is wrong: orders the tokens by frequency, not by first appearance AND a special token that occurs in the text is numbered again
# told: shown
# now: named
# says: tokens in order of frequency, and a special token in the text takes a new id
SPECIAL_TOKENS = ("<pad>", "<unk>", "<sos>", "<eos>")


def build_vocabulary(
    tokens: list[str], special_tokens: tuple[str, ...] = SPECIAL_TOKENS
) -> dict[str, int]:
    vocab = {}
    for tok in special_tokens:
        vocab[tok] = len(vocab)
    frequencies = Counter(tokens)
    for position, (tok, _) in enumerate(frequencies.most_common()):
        vocab[tok] = len(special_tokens) + position
    return vocab


# === exercise: encode-decode | function: encode, decode | kind: subtle | what is wrong: `get(...) or ...` takes the id 0 for missing, so the token with id 0 becomes <unk>
# told: named
# now: named
# says: the id 0 is taken for none
def encode(tokens: list[str], vocabulary: dict[str, int]) -> list[int]:
    unknown = vocabulary["<unk>"]
    return [vocabulary.get(token) or unknown for token in tokens]


def decode(ids: list[int], vocabulary: dict[str, int]) -> list[str]:
    by_id = {index: token for token, index in vocabulary.items()}
    tokens = []
    for index in ids:
        if index not in by_id:
            raise ValueError(f"no token has the id {index}")
        tokens.append(by_id[index])
    return tokens


# === exercise: pair-counts | function: pair_counts | kind: plain | what is wrong: counts each different word once, whatever its number of occurrences
# told: named
# now: named
# says: every word counts once
def pair_counts(words: dict[tuple[str, ...], int]) -> dict[tuple[str, str], int]:
    counts = {}
    for word in words:
        for left, right in zip(word, word[1:]):
            counts[left, right] = counts.get((left, right), 0) + 1
    return counts


# === exercise: merge-pair | function: merge_pair | kind: subtle | what is wrong: joins with a space and replaces in the string (as in the paper's listing, without its look-around), so it also joins the end of one symbol with the beginning of another
# told: named
# now: named
# says: text compared in place of symbols
def merge_pair(symbols: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    glue = "\x00"  # the symbols themselves may hold spaces
    text = glue.join(symbols)
    text = text.replace(glue.join(pair), "".join(pair))
    return tuple(text.split(glue))


# === exercise: train-bpe | function: train_bpe | kind: subtle | what is wrong: among equally frequent pairs takes the alphabetically largest, not the one that appears first
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
    while len(learned) < merges:
        counts = pair_counts(words)
        if not counts:
            break
        best = max(counts, key=lambda pair: (counts[pair], pair))
        learned.append(best)
        words = {merge_pair(word, best): n for word, n in words.items()}
    return learned


# === exercise: train-bpe | function: train_bpe | kind: double | what is wrong: stops already when the best pair occurs only once AND a special token is a piece of its own but is still cut into characters
# told: shown
# now: named
# says: special tokens are cut, and stops while there are pairs left
def train_bpe(
    text: str, merges: int, special_tokens: tuple[str, ...] = ()
) -> list[tuple[str, str]]:
    pieces = Counter(split_words(text, special_tokens))
    words = {tuple(piece): count for piece, count in pieces.items()}
    result = []
    for _ in range(merges):
        counts = pair_counts(words)
        if not counts:
            break
        pair = max(counts, key=counts.get)
        if counts[pair] < 2:  # a pair that occurs once is not worth a token
            break
        words = {merge_pair(word, pair): count for word, count in words.items()}
        result.append(pair)
    return result


# === exercise: bpe-encode | function: bpe_encode | kind: subtle | what is wrong: stops replaying in a piece at the first merge that finds nothing there
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
        started = False
        for pair in merges:
            merged = merge_pair(symbols, pair)
            if merged == symbols and started:
                break  # nothing more to merge
            started = started or merged != symbols
            symbols = merged
        tokens.extend(symbols)
    return tokens


# === exercise: one-hot | function: one_hot | kind: double | what is wrong: an id equal to vocab_size passes and gives a row of zeros AND returns int64 in place of float32
# told: named
# now: named
# says: no floats
def one_hot(ids: torch.Tensor, vocab_size: int) -> torch.Tensor:
    if ids.min() < 0 or ids.max() > vocab_size:
        raise ValueError("an id is outside of the vocabulary")
    columns = torch.arange(vocab_size)
    return (ids.unsqueeze(-1) == columns).long()


# === exercise: embedding | function: Embedding | kind: double | what is wrong: takes 1/√d for the variance, so the standard deviation is d^(-1/4) AND sets row 0 to zero as padding
# told: named
# now: named
# says: row 0 is taken for padding
class Embedding(nn.Module):
    """Parameter: weight (vocab_size, d_model)."""

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        variance = 1 / math.sqrt(d_model)
        table = torch.randn(vocab_size, d_model) * math.sqrt(variance)
        table[0] = 0.0  # <pad> has no meaning
        self.weight = nn.Parameter(table)
        self.scale = math.sqrt(d_model)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.weight[ids] * self.scale


# === exercise: weight-tying | function: tied_logits | kind: plain | what is wrong: divides the logits by the root of d_model
# told: named
# now: named
# says: divided by √d_model
def tied_logits(hidden: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    d_model = table.shape[1]
    return torch.einsum("...td,nd->...tn", hidden, table) / d_model**0.5


# === exercise: tf-idf | function: tf_idf | kind: double | what is wrong: term frequency as a share of the document's length, not a count AND logarithm to the base 2
# told: shown
# now: named
# says: shares in place of counts, and logarithm to base 2
def tf_idf(documents: list[list[str]]) -> tuple[torch.Tensor, list[str]]:
    terms = list(dict.fromkeys(token for document in documents for token in document))
    matrix = torch.zeros(len(documents), len(terms))
    for j, term in enumerate(terms):
        containing = sum(term in document for document in documents)
        idf = math.log2(len(documents) / containing)
        for i, document in enumerate(documents):
            if document:
                matrix[i, j] = document.count(term) / len(document) * idf
    return matrix, terms


# === exercise: tf-idf | function: tf_idf | kind: plain | what is wrong: the terms are in alphabetical order, as in scikit-learn, not in that of first appearance
# told: named
# now: named
# says: terms in alphabetical order
def tf_idf(documents: list[list[str]]) -> tuple[torch.Tensor, list[str]]:
    terms = sorted({token for document in documents for token in document})
    place = {term: j for j, term in enumerate(terms)}
    counts = torch.zeros(len(documents), len(terms))
    for i, document in enumerate(documents):
        for token in document:
            counts[i, place[token]] += 1
    df = (counts > 0).sum(0)
    return counts * torch.log(len(documents) / df), terms


# === exercise: skip-gram-pairs | function: skip_gram_pairs | kind: subtle | what is wrong: the slice ids[i-window:i] has a negative start near the beginning, so left contexts there are lost
# told: named
# now: named
# says: a slice that begins before the text
def skip_gram_pairs(ids: list[int], window: int) -> list[tuple[int, int]]:
    pairs = []
    for i, center in enumerate(ids):
        left = ids[i - window : i]
        right = ids[i + 1 : i + 1 + window]
        pairs += [(center, context) for context in left + right]
    return pairs


# === exercise: skip-gram-loss | function: skip_gram_loss | kind: plain | what is wrong: averages over the negatives in place of summing
# told: named
# now: named
# says: mean over the negatives
def skip_gram_loss(
    centers: torch.Tensor, contexts: torch.Tensor, negatives: torch.Tensor
) -> torch.Tensor:
    true = torch.einsum("bd,bd->b", centers, contexts)
    false = torch.einsum("bd,bkd->bk", centers, negatives)
    return -(F.logsigmoid(true) + F.logsigmoid(-false).mean(dim=1)).mean()


# === exercise: skip-gram-loss | function: skip_gram_loss | kind: subtle | what is wrong: log(sigmoid + 1e-9) stays finite but is capped at 20.7 for large wrong scores, and its gradient vanishes
# told: named
# now: named
# says: the loss is cut off
def skip_gram_loss(
    centers: torch.Tensor, contexts: torch.Tensor, negatives: torch.Tensor
) -> torch.Tensor:
    eps = 1e-9  # so that log never sees a 0
    positive = torch.sigmoid((centers * contexts).sum(-1))
    negative = torch.sigmoid(-(negatives @ centers[:, :, None]).squeeze(-1))
    losses = -torch.log(positive + eps) - torch.log(negative + eps).sum(-1)
    return losses.mean()


# === exercise: patch-kernel | function: patch_kernel | kind: plain | what is wrong: splits the rows as (channel, row, column), PyTorch's order, not as (row, column, channel)
# told: named
# now: named
# says: a patch read as (channel, row, column)
def patch_kernel(matrix: torch.Tensor, patch_size: int, channels: int) -> torch.Tensor:
    if matrix.shape[0] != patch_size**2 * channels:
        raise ValueError(f"the matrix has {matrix.shape[0]} rows")
    return matrix.T.reshape(-1, channels, patch_size, patch_size)


# === exercise: find-the-slips | function: token_table_slips | kind: double | what is wrong: nn.Embedding(7, 4) is said to refuse 0 as well AND seven rows are said to be enough
# told: named
# now: named
# says: 0 counted as no row
def token_table_slips() -> dict:
    return {
        "outside": [0],
        "refused": [0, 7],
        "rows_needed": 7,
        "row_of_zero": 6,
        "same_vector": [0, 7],
        "decoded": "Bobby mag Brombeeren",
        "lost": ".",
        "repaired": ["<sos>", "Bobby", " mag", " Brom", "beeren", ".", "<eos>"],
    }
