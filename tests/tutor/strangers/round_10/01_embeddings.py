# ruff: noqa
# fmt: off

# === exercise: vocabulary | function: build_vocabulary | kind: subtle | what is wrong: only the ordinary tokens are looked up among those already seen, so a special token that also occurs in the text is numbered a second time and loses its id (leaving a gap).
# told: shown
# now: named
# says: a special token in the text takes a new id
def build_vocabulary(tokens, special_tokens=SPECIAL_TOKENS):
    vocab = {}
    next_id = 0
    for special in special_tokens:
        vocab[special] = next_id
        next_id += 1
    seen = set()
    for word in tokens:
        if word in seen:
            continue
        seen.add(word)
        vocab[word] = next_id
        next_id += 1
    return vocab


# === exercise: encode-decode | function: encode | kind: double | what is wrong: (1) encode uses `get(token) or unk`, so the token with id 0 counts as unknown because 0 is falsy; (2) decode indexes a list of the tokens and only catches IndexError, so negative ids give the tokens at the end instead of a ValueError.
# told: named
# now: named
# says: the id 0 is taken for none
def encode(tokens, vocabulary):
    result = []
    for tok in tokens:
        result.append(vocabulary.get(tok) or vocabulary["<unk>"])
    return result


def decode(ids, vocabulary):
    by_id = sorted(vocabulary, key=vocabulary.get)
    out = []
    for number in ids:
        try:
            out.append(by_id[number])
        except IndexError:
            raise ValueError(f"there is no token with the id {number}")
    return out


# === exercise: pair-counts | function: pair_counts | kind: plain | what is wrong: each different word is counted once; how often the word occurs in the text is ignored.
# told: named
# now: named
# says: every word counts once
def pair_counts(words):
    totals = Counter()
    for word in words:
        totals.update(pairwise(word))
    return dict(totals)


# === exercise: merge-pair | function: merge_pair | kind: subtle | what is wrong: the symbols are joined with separators and searched with replace, but two occurrences directly after each other share one separator, so the second is missed: (a, b, a, b) gives (ab, a, b).
# told: shown
# now: named
# says: of two occurrences in a row one is missed
def merge_pair(symbols, pair):
    if len(symbols) < 2:
        return tuple(symbols)
    left, right = pair
    sep = "\0"
    line = sep + sep.join(symbols) + sep
    line = line.replace(sep + left + sep + right + sep, sep + left + right + sep)
    return tuple(line[1:-1].split(sep))


# === exercise: train-bpe | function: train_bpe | kind: plain | what is wrong: the pairs are counted once at the start and the most frequent ones are all taken from that list; the counts are not taken anew after each merge.
# told: named
# now: named
# says: the counts are never renewed
def train_bpe(text, merges, special_tokens=()):
    pieces = Counter(split_words(text, special_tokens))
    words = {}
    for piece, n in pieces.items():
        key = (piece,) if piece in special_tokens else tuple(piece)
        words[key] = n

    counts = pair_counts(words)
    ranking = sorted(counts, key=lambda pair: counts[pair], reverse=True)

    learned = []
    for pair in ranking[:merges]:
        learned.append(pair)
        words = {merge_pair(word, pair): n for word, n in words.items()}
    return learned


# === exercise: train-bpe | function: train_bpe | kind: double | what is wrong: (1) every different piece counts once instead of as often as it occurs; (2) special tokens are cut into characters too, so that merges are learned inside them.
# told: named
# now: named
# says: special tokens are cut, and every word counts once
def train_bpe(text, merges, special_tokens=()):
    vocab = {tuple(piece): 1 for piece in split_words(text, special_tokens)}
    history = []
    while len(history) < merges:
        stats = pair_counts(vocab)
        if not stats:
            break
        best = max(stats, key=stats.get)
        history.append(best)
        new_vocab = {}
        for word, freq in vocab.items():
            new_vocab[merge_pair(word, best)] = freq
        vocab = new_vocab
    return history


# === exercise: bpe-encode | function: bpe_encode | kind: subtle | what is wrong: it takes the longest learned token that fits at each place from left to right, instead of replaying the merges in order; with the merges (b, c), (a, b) the word abc becomes ab, c instead of a, bc.
# told: named
# now: named
# says: the longest known token is taken first
def bpe_encode(text, merges, special_tokens=()):
    known = {a + b for a, b in merges}
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


# === exercise: one-hot | function: one_hot | kind: double | what is wrong: (1) the bound is off by one: the id vocab_size itself is let through and gives a row of zeros; (2) the result is int64 instead of float32.
# told: named
# now: named
# says: no floats
def one_hot(ids, vocab_size):
    if (ids < 0).any() or (ids > vocab_size).any():
        raise ValueError("id outside of the vocabulary")
    columns = torch.arange(vocab_size, device=ids.device)
    return (ids.unsqueeze(-1) == columns).long()


# === exercise: embedding | function: Embedding | kind: subtle | what is wrong: the table is drawn with the standard deviation 1/d_model instead of 1/√d_model (variance and standard deviation confused); the look-up itself is right.
# told: named
# now: named
# says: the weights start too small
class Embedding(nn.Module):
    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model
        table = torch.empty(vocab_size, d_model)
        nn.init.normal_(table, mean=0.0, std=1.0 / d_model)
        self.weight = nn.Parameter(table)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        vectors = F.embedding(ids, self.weight)
        return vectors * self.d_model ** 0.5


# === exercise: weight-tying | function: tied_logits | kind: plain | what is wrong: the scores are multiplied by √d_model as in the embedding layer; logits want no factor.
# told: named
# now: named
# says: multiplied by √d_model
def tied_logits(hidden, table):
    d_model = table.size(1)
    scores = torch.einsum("...d,nd->...n", hidden, table)
    return math.sqrt(d_model) * scores


# === exercise: tf-idf | function: tf_idf | kind: double | what is wrong: (1) the counts are divided by the length of the document, but the plain count is wanted; (2) D_t counts all occurrences of the term instead of the documents that contain it.
# told: useless
# now: named
# says: shares in place of counts, and occurrences in place of documents
def tf_idf(documents):
    terms = []
    for doc in documents:
        for word in doc:
            if word not in terms:
                terms.append(word)

    total = Counter(word for doc in documents for word in doc)
    n_docs = len(documents)

    matrix = torch.zeros(len(documents), len(terms))
    for i, doc in enumerate(documents):
        for j, term in enumerate(terms):
            if term in doc:
                tf = doc.count(term) / len(doc)
                idf = math.log(n_docs / total[term])
                matrix[i, j] = tf * idf
    return matrix, terms


# === exercise: skip-gram-pairs | function: skip_gram_pairs | kind: subtle | what is wrong: the slice to the left starts at i - window without a lower bound; near the beginning the start is negative, Python counts it from the end, and left neighbours are lost (only visible with window >= 2).
# told: named
# now: named
# says: a slice that begins before the text
def skip_gram_pairs(ids, window):
    pairs = []
    for i, center in enumerate(ids):
        before = ids[i - window : i]
        after = ids[i + 1 : i + 1 + window]
        for context in before + after:
            pairs.append((center, context))
    return pairs


# === exercise: skip-gram-loss | function: skip_gram_loss | kind: plain | what is wrong: the scores of the negatives go into the sigmoid without the minus sign, so false neighbours are pulled near like true ones.
# told: named
# now: named
# says: the sign of the negatives is not turned
def skip_gram_loss(centers, contexts, negatives):
    pos_score = torch.einsum("bd,bd->b", centers, contexts)
    neg_score = torch.einsum("bd,bkd->bk", centers, negatives)
    pos_loss = -F.logsigmoid(pos_score)
    neg_loss = -F.logsigmoid(neg_score).sum(dim=1)
    return (pos_loss + neg_loss).mean()


# === exercise: skip-gram-loss | function: skip_gram_loss | kind: subtle | what is wrong: -ln sigma(x) is written as ln(1 + exp(-x)); the formula is right, but the exponential overflows for scores beyond about 88 and the loss becomes infinite.
# told: named
# now: named
# says: not stable for large scores
def skip_gram_loss(centers, contexts, negatives):
    good = (centers * contexts).sum(-1)
    bad = (negatives @ centers.unsqueeze(-1)).squeeze(-1)
    cost_good = torch.log(1 + torch.exp(-good))
    cost_bad = torch.log(1 + torch.exp(bad))
    return cost_good.mean() + cost_bad.sum(-1).mean()


# === exercise: patch-kernel | function: patch_kernel | kind: double | what is wrong: (1) a matrix with too many rows is cut to size instead of refused with a ValueError (too few rows are not checked for either); (2) the axes are simply reversed, so rows and columns of each patch are exchanged.
# told: named
# now: named
# says: rows and columns exchanged
def patch_kernel(matrix, patch_size, channels):
    n = patch_size * patch_size * channels
    d_model = matrix.shape[1]
    blocks = matrix[:n].reshape(patch_size, patch_size, channels, d_model)
    return blocks.permute(3, 2, 1, 0)


# === exercise: find-the-slips | function: token_table_slips | kind: plain | what is wrong: "refused" also lists the id 0, as if nn.Embedding counted its rows from 1; only 7 raises an IndexError.
# told: named
# now: named
# says: 0 counted as no row
def token_table_slips():
    answer = {}
    answer["outside"] = [0]
    answer["refused"] = [0, 7]
    answer["rows_needed"] = 8
    answer["row_of_zero"] = 6
    answer["same_vector"] = [0, 7]
    answer["decoded"] = "Bobby mag Brombeeren"
    answer["lost"] = "."
    answer["repaired"] = ["<sos>", "Bobby", " mag", " Brom", "beeren", ".", "<eos>"]
    return answer
