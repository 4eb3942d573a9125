"""Embeddings: the answers to the exercises of chapter 1.

Generated from solutions/01_embeddings.md by `make exercises`; change that file.
"""

import math
import re
from collections import Counter
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import nn


# a word with the space before it; punctuation; white space that no word follows; other
ORDINARY = r" ?\w+| ?[^\w\s]+|\s+(?!\S)|\s+"


def split_words(text: str, special_tokens: tuple[str, ...] = ()) -> list[str]:
    """Cut a text into words, punctuation, white space and special tokens.

    Args:
        text: any string.
        special_tokens: strings that are pieces of their own wherever they stand.

    Returns:
        The pieces in order; joined, they are the text.
    """
    longest_first = sorted(special_tokens, key=len, reverse=True)
    special = "|".join(re.escape(token) for token in longest_first)
    parts = re.split(f"({special})", text) if special else [text]
    pieces = []
    for part in parts:
        pieces += [part] if part in longest_first else re.findall(ORDINARY, part)
    return pieces


SPECIAL_TOKENS = ("<pad>", "<unk>", "<sos>", "<eos>")


def build_vocabulary(
    tokens: list[str], special_tokens: tuple[str, ...] = SPECIAL_TOKENS
) -> dict[str, int]:
    """Number the different tokens, the special ones first.

    Args:
        tokens: any number of strings, with repetitions.
        special_tokens: different strings; they get the ids 0, 1, ..., in this order.

    Returns:
        token -> id; the ids are 0, 1, ..., without gaps, in order of appearance.

    Defined in Exercise 1.1 · A vocabulary.
    """
    # 1. Special tokens first. 2. Each further token once. 3. Number from 0.
    different = dict.fromkeys([*special_tokens, *tokens])
    return {token: index for index, token in enumerate(different)}


def encode(tokens: list[str], vocabulary: dict[str, int]) -> list[int]:
    """Replace each token by its id; unknown ones by the id of "<unk>".

    Args:
        tokens: T strings.
        vocabulary: token -> id; it has "<unk>".

    Returns:
        T ids.

    Defined in Exercise 1.2 · There and back.
    """
    # 1. The id of each token, that of "<unk>" if it has none.
    unknown = vocabulary["<unk>"]
    return [vocabulary.get(token, unknown) for token in tokens]


def decode(ids: list[int], vocabulary: dict[str, int]) -> list[str]:
    """Replace each id by its token.

    Args:
        ids: T whole numbers.
        vocabulary: token -> id.

    Returns:
        T tokens.

    Raises:
        ValueError: an id belongs to no token.

    Defined in Exercise 1.2 · There and back.
    """
    # 2. Turn the vocabulary round. 3. Refuse ids without a token.
    token_of = {index: token for token, index in vocabulary.items()}
    for index in ids:
        if index not in token_of:
            raise ValueError(f"no token has the id {index}")
    return [token_of[index] for index in ids]


def pair_counts(words: dict[tuple[str, ...], int]) -> dict[tuple[str, str], int]:
    """Count the pairs of neighbours inside words.

    Args:
        words: the symbols of a word -> how often the word occurs.

    Returns:
        (left, right) -> count, in the order in which the pairs first appear.

    Defined in Exercise 1.3 · Count the pairs.
    """
    # 1. Words in order, each from left to right. 2. Count by occurrences.
    counts = {}
    for symbols, occurrences in words.items():
        for pair in pairwise(symbols):
            counts[pair] = counts.get(pair, 0) + occurrences
    return counts


def merge_pair(symbols: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    """Join every occurrence of a pair, from the left.

    Args:
        symbols: the symbols of one word.
        pair: (left, right).

    Returns:
        The symbols of the word, with left and right written as one symbol.

    Defined in Exercise 1.4 · Merge a pair.
    """
    # 1. From left to right. 2. Join the pair and skip it. 3. Copy what is left.
    merged, position = [], 0
    while position < len(symbols):
        found = symbols[position : position + 2] == pair
        merged.append("".join(pair) if found else symbols[position])
        position += 2 if found else 1
    return tuple(merged)


def train_bpe(
    text: str, merges: int, special_tokens: tuple[str, ...] = ()
) -> list[tuple[str, str]]:
    """Learn byte-pair encoding from a text (Sennrich et al. 2016).

    Args:
        text: what to learn from.
        merges: how many merges at most.
        special_tokens: strings that are never cut and never merged.

    Returns:
        The merged pairs in order. Of equally frequent pairs the one that appears
        first is merged; when no pair is left, the list ends early.

    Defined in Exercise 1.5 · Learn the merges.
    """
    # 1. Count the pieces. 2. Cut them into characters, special tokens not.
    # 3. The most frequent pair, the first of several. 4. Merge it in every word.
    # 5. Stop when no pair is left.
    pieces = Counter(split_words(text, special_tokens))
    words = {
        (piece,) if piece in special_tokens else tuple(piece): occurrences
        for piece, occurrences in pieces.items()
    }
    found = []
    while len(found) < merges and (counts := pair_counts(words)):
        best = max(counts, key=counts.get)
        found.append(best)
        words = {merge_pair(word, best): count for word, count in words.items()}
    return found


def bpe_encode(
    text: str, merges: list[tuple[str, str]], special_tokens: tuple[str, ...] = ()
) -> list[str]:
    """Cut a text into tokens by replaying the merges in order.

    Args:
        text: any string; characters that were never learned stay as they are.
        merges: pairs, in the order in which they were learned.
        special_tokens: strings that are tokens of their own wherever they stand.

    Returns:
        The tokens; joined, they are the text.

    Defined in Exercise 1.6 · Use the merges.
    """
    # 1. Pieces, and their characters. 2. All merges in order. 3. One list.
    tokens = []
    for piece in split_words(text, special_tokens):
        symbols = (piece,) if piece in special_tokens else tuple(piece)
        for pair in merges:
            symbols = merge_pair(symbols, pair)
        tokens.extend(symbols)
    return tokens


def one_hot(ids: torch.Tensor, vocab_size: int) -> torch.Tensor:
    """Write ids as rows with a single 1.

    Args:
        ids: (..., T), integers from 0 to vocab_size - 1.
        vocab_size: N.

    Returns:
        (..., T, N), float32.

    Raises:
        ValueError: an id is negative or too large.

    Defined in Exercise 1.7 · One-hot rows.
    """
    # 1. Refuse ids outside the vocabulary. 2. A 1 where the column is the id.
    if ((ids < 0) | (ids >= vocab_size)).any():
        raise ValueError(f"ids must lie between 0 and {vocab_size - 1}")
    columns = torch.arange(vocab_size, device=ids.device)
    return (ids[..., None] == columns).float()  # (..., T, N)


class Embedding(nn.Module):
    """Look up a vector for each token id.

    Parameter: weight (vocab_size, d_model), row i belongs to the id i.

    Defined in Exercise 1.8 · The embedding layer.
    """

    def __init__(self, vocab_size: int, d_model: int) -> None:
        """Draw the table with a standard deviation of 1/√d_model."""
        super().__init__()
        # 1. The parameter.
        table = torch.randn(vocab_size, d_model) / math.sqrt(d_model)
        self.weight = nn.Parameter(table)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Take the rows of the ids and multiply them by √d_model.

        Args:
            ids: (..., T), integers from 0 to vocab_size - 1.

        Returns:
            (..., T, d_model).
        """
        # 2. Rows. 3. Scale.
        return self.weight[ids] * math.sqrt(self.weight.shape[1])  # (..., T, d_model)


def tied_logits(hidden: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """Score each token of the vocabulary with its row of the embedding table.

    Args:
        hidden: (..., T, d_model).
        table: (vocab_size, d_model), the weight of the embedding.

    Returns:
        Logits (..., T, vocab_size).

    Defined in Exercise 1.9 · The table backwards.
    """
    # 1. All dot products of hidden states and rows.
    return hidden @ table.mT  # (..., T, vocab_size)


def tf_idf(documents: list[list[str]]) -> tuple[torch.Tensor, list[str]]:
    """Weigh the words of documents by how often and how special they are.

    Args:
        documents: a list of tokens for each; it may be empty, and its row is zeros.

    Returns:
        Matrix (documents, terms), float32, and the terms in order of first appearance.

    Defined in Exercise 1.10 · Counting instead of learning.
    """
    # 1. Terms. 2. Counts. 3. Documents that hold a term. 4. Count times logarithm.
    terms = list(dict.fromkeys(token for document in documents for token in document))
    rows = [[document.count(term) for term in terms] for document in documents]
    counts = torch.tensor(rows, dtype=torch.float32)  # (documents, terms)
    holding = (counts > 0).sum(dim=0)  # (terms,)
    return counts * torch.log(len(documents) / holding), terms


def skip_gram_pairs(ids: list[int], window: int) -> list[tuple[int, int]]:
    """Pair every token with its neighbours.

    Args:
        ids: T token ids.
        window: how many neighbours on each side.

    Returns:
        (center, context) by position of the center, then of the context.

    Defined in Exercise 1.11 · Who is near whom?.
    """
    # 1. Centers. 2. Contexts on both sides. 3. Stay inside the text.
    pairs = []
    for center, center_id in enumerate(ids):
        first, last = max(0, center - window), min(len(ids) - 1, center + window)
        for context in range(first, last + 1):
            if context != center:
                pairs.append((center_id, ids[context]))
    return pairs


def skip_gram_loss(
    centers: torch.Tensor, contexts: torch.Tensor, negatives: torch.Tensor
) -> torch.Tensor:
    """Compute the loss of skip-gram with negative sampling (Mikolov et al. 2013).

    Args:
        centers: (B, d), vectors of the center tokens.
        contexts: (B, d), vectors of their true neighbours.
        negatives: (B, K, d), vectors of tokens drawn at random.

    Returns:
        The loss, summed over the negatives and averaged over the batch; shape ().

    Defined in Exercise 1.12 · True neighbours and false ones.
    """
    # 1. Scores of the true pairs. 2. Scores of the false ones.
    # 3. Logarithms of the sigmoid. 4. Sum over K, mean over B.
    positive = (centers * contexts).sum(dim=-1)  # (B,)
    negative = (centers[:, None] * negatives).sum(dim=-1)  # (B, K)
    losses = -F.logsigmoid(positive) - F.logsigmoid(-negative).sum(dim=-1)  # (B,)
    return losses.mean()


def patch_kernel(matrix: torch.Tensor, patch_size: int, channels: int) -> torch.Tensor:
    """Turn the matrix of a patch embedding into the weight of a convolution.

    Args:
        matrix: (patch_size * patch_size * channels, d_model); a patch is flattened in
            the order (row, column, channel).
        patch_size: P.
        channels: C.

    Returns:
        (d_model, channels, patch_size, patch_size), for a convolution of stride P.

    Raises:
        ValueError: the matrix has another number of rows.

    Defined in Exercise 1.13 · Patches are tokens, too.
    """
    # 1. Refuse other numbers of rows. 2. Split the rows. 3. Reorder the axes.
    rows = patch_size * patch_size * channels
    if matrix.shape[0] != rows:
        raise ValueError(f"the matrix needs {rows} rows, not {matrix.shape[0]}")
    split = matrix.reshape(patch_size, patch_size, channels, -1)  # (P, P, C, d)
    return split.permute(3, 2, 0, 1)  # (d, C, P, P)
