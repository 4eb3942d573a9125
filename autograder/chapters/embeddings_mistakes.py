"""The known mistakes of chapter 1: what each gives on an input, and why it is wrong.

Each function whose name ends in ``_candidates`` yields (name, what it gives, why) for
the inputs of one exercise. The checks compare a wrong answer with them, in this order.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations, pairwise

import torch
import torch.nn.functional as F

from autograder.exercise.naming import Candidate
from autograder.interface import Data

Words = dict[tuple[str, ...], int]
Pair = tuple[str, str]
Merges = list[Pair]


# --- the vocabulary -------------------------------------------------------------------


def _index(tokens: Iterable[str]) -> dict[str, int]:
    return {token: i for i, token in enumerate(dict.fromkeys(tokens))}


def _renumbered(words: dict[str, int], tokens: Iterable[str]) -> dict[str, int]:
    for token in tokens:
        words[token] = len(words)
    return words


def vocabulary_candidates(
    tokens: list[str], specials: tuple[str, ...], default: tuple[str, ...]
) -> Iterator[Candidate]:
    """Misnumber a vocabulary."""
    right = _index([*specials, *tokens])
    others = [token for token in right if token not in specials]
    frequency = Counter(token for token in tokens if token in others)
    yield (
        "ids start at 1",
        lambda: {token: i + 1 for token, i in right.items()},
        "An id is the number of a row, and rows start at 0. With ids from 1 to N the "
        "last one has no row, and row 0 is never used.",
    )
    yield (
        "the special tokens come last",
        lambda: _index([*others, *specials]),
        "Put the special tokens first: their ids stay the same, whatever the text.",
    )
    yield (
        "the special tokens are missing",
        lambda: _index(tokens),
        "Without <unk> there is no answer for a new word, without <pad> no batch.",
    )
    yield (
        "the argument special_tokens is not used",
        lambda: _index([*default, *tokens]),
        "The ids of the default special tokens came out, although others were given.",
    )
    for ordered in (
        [*specials, *sorted(others)],
        sorted(right),
        sorted([*specials, *others], key=str.lower),
    ):
        yield (
            "tokens in alphabetical order",
            lambda ordered=ordered: _index(ordered),
            "The ids follow the order in which tokens first appear: do not sort.",
        )
    yield (
        "tokens in order of frequency",
        lambda: _index([*specials, *(token for token, _ in frequency.most_common())]),
        "The most frequent token came first. Wanted is the order of first appearance.",
    )
    listed = [*specials, *tokens]
    yield (
        "a repeated token takes a new id",
        lambda: {token: i for i, token in enumerate(listed)},
        "A number was given to every entry of the list, and a later one replaced the "
        "earlier. Remove repetitions first, so that there are no gaps.",
    )
    yield (
        "a special token in the text takes a new id",
        lambda: _renumbered(_index(specials), dict.fromkeys(tokens)),
        "A special token keeps its first id, also where it occurs in the text. Number "
        "only what is not yet in the vocabulary.",
    )
    yield (
        "a repeated token takes a new id",
        lambda: _renumbered({}, listed),
        "vocabulary[token] = len(vocabulary) also writes over the id of a token that "
        "has one, and then two tokens share a number. Ask first whether it is there.",
    )
    yield (
        "gaps between the ids",
        lambda: {token: listed.index(token) for token in listed},
        "The id is the place in a text with repetitions, so some numbers belong to no "
        "token. Take the size that the vocabulary has so far.",
    )
    yield (
        "id to token instead of token to id",
        lambda: {i: token for token, i in right.items()},
        "The dict is turned round: a token is looked up, an id is found.",
    )
    yield (
        "a list instead of a dict",
        lambda: list(right),
        "A list has to be searched for a token; a dict answers at once.",
    )


def encode_candidates(tokens: list[str], words: dict[str, int]) -> Iterator[Candidate]:
    """Misread a vocabulary on the way in."""
    yield (
        "unknown tokens are left out",
        lambda: [words[token] for token in tokens if token in words],
        "Each token needs an id, or sequence and ids no longer match.",
    )
    for name, number, why in (
        (
            "unknown tokens become <pad>",
            words.get("<pad>"),
            "<pad> says 'there is no token here'. An unknown token is one: <unk>.",
        ),
        (
            "unknown tokens have no id",
            None,
            ".get(token) answers None for a token that is missing. Its second argument "
            'says what to answer then: vocabulary["<unk>"].',
        ),
        (
            "an id that no token has",
            -1,
            "There is no row -1 (Python would take the last).",
        ),
        (
            "an id that no token has",
            len(words),
            "There is no such row in the table.",
        ),
        (
            "the id of <unk> is assumed",
            0,
            'Look up the id of "<unk>" in the vocabulary you are given.',
        ),
        (
            "the id of <unk> is assumed",
            1,
            'Look up the id of "<unk>" in the vocabulary you are given.',
        ),
    ):
        yield name, lambda n=number: [words.get(token, n) for token in tokens], why
    yield (
        "the position in the dict instead of the id",
        lambda: [
            list(words).index(token if token in words else "<unk>") for token in tokens
        ],
        "A token's place in the dict need not be its id: ask the dict itself.",
    )
    yield (
        "the id 0 is taken for none",
        lambda: [words.get(token) or words["<unk>"] for token in tokens],
        "0 is an id like any other, and Python takes it for False. Ask whether the "
        "token is in the vocabulary, or give `get` a second argument.",
    )
    yield (
        "the token <unk> instead of its id",
        lambda: [words.get(token, "<unk>") for token in tokens],
        'The answer for an unknown token is a number: vocabulary["<unk>"].',
    )


def decode_candidates(ids: list[int], words: dict[str, int]) -> Iterator[Candidate]:
    """Misread a vocabulary on the way out."""
    back = {i: token for token, i in words.items()}
    for glue in ("", " "):
        yield (
            "a string instead of a list",
            lambda glue=glue: glue.join(back[i] for i in ids),
            "A list of tokens is wanted. Joining them is a second step, and for "
            "special tokens not always the right one.",
        )
    yield (
        "the position in the dict instead of the id",
        lambda: [list(words)[i] for i in ids],
        "A token's place in the dict need not be its id: turn the dict round.",
    )
    yield (
        "the id before",
        lambda: [back.get(i - 1) for i in ids],
        "Ids count from 0 and are not shifted.",
    )


# --- byte-pair encoding ---------------------------------------------------------------


def _counts(words: Iterable[tuple], neighbours: Callable, weigh: bool = True) -> dict:
    found: dict = {}
    for symbols, occurrences in words:
        for pair in neighbours(symbols):
            found[pair] = found.get(pair, 0) + (occurrences if weigh else 1)
    return found


def _neighbours(symbols: tuple[str, ...]) -> Merges:
    return list(pairwise(symbols))


def pair_candidates(words: Words) -> Iterator[Candidate]:
    """Miscount pairs."""
    items = list(words.items())
    yield (
        "every word counts once",
        lambda: _counts(items, _neighbours, weigh=False),
        "A word that occurs 3 times has each of its pairs 3 times: add the value that "
        "the dict holds for the word.",
    )
    chain = [symbol for symbols in words for symbol in symbols]
    text = [s for symbols, n in items for _ in range(n) for s in symbols]
    long = [(symbol, n) for symbols, n in items for symbol in symbols]
    reaching = "pairs that reach from word to word"
    why = (
        "Merges must stay inside words. Otherwise tokens such as 'the cat' appear, and "
        "the order of words is baked into the vocabulary."
    )
    yield reaching, lambda: _counts([(chain, 1)], _neighbours), why
    yield reaching, lambda: _counts([(text, 1)], _neighbours), why
    yield (
        reaching,
        lambda: _counts(
            [((a, b), n) for (a, n), (b, _) in pairwise(long)],
            _neighbours,
        ),
        why,
    )
    yield (
        "pairs that are not neighbours",
        lambda: _counts(items, lambda symbols: combinations(symbols, 2)),
        "Only symbols that stand directly next to each other can be merged.",
    )
    yield (
        "left and right exchanged",
        lambda: _counts(items, lambda s: [(b, a) for a, b in _neighbours(s)]),
        "The pair is (left, right): reading order.",
    )
    yield (
        "no difference between left and right",
        lambda: _counts(items, lambda s: [tuple(sorted(p)) for p in _neighbours(s)]),
        "(e, r) and (r, e) are two pairs: merged, they are different tokens.",
    )
    yield (
        "a pair counts once in a word",
        lambda: _counts(items, lambda s: dict.fromkeys(_neighbours(s))),
        "In (n, a, n, a) the pair (n, a) stands twice: count both.",
    )
    yield (
        "every second pair is left out",
        lambda: _counts(items, lambda s: list(zip(s[::2], s[1::2], strict=False))),
        "The pairs overlap: (l, o) and (o, w) in (l, o, w). Move on by one symbol.",
    )
    yield (
        "a later word replaces the count",
        lambda: {pair: n for symbols, n in items for pair in _neighbours(symbols)},
        "Add to the count that is there: counts.get(pair, 0) + occurrences.",
    )
    yield (
        "a string instead of a pair",
        lambda: _counts(items, lambda s: [a + b for a, b in _neighbours(s)]),
        "Joined, (l, ow) and (lo, w) could not be told apart. Keep the pair.",
    )
    yield (
        "symbols instead of pairs",
        lambda: _counts(items, list),
        "These are the frequencies of single symbols.",
    )


def _merged(
    symbols: Iterable[str],
    pair: Pair,
    *,
    most: float = math.inf,
    skip: int = 2,
    either: bool = False,
    loosely: bool = False,
    write: Callable[[str, str], Data] = lambda left, right: left + right,
) -> tuple:
    symbols, merged, i, done = tuple(symbols), [], 0, 0
    while i < len(symbols):
        two = symbols[i : i + 2]
        hit = two == pair or (either and two == pair[::-1])
        hit = hit or (loosely and len(two) == 2 and "".join(two) == "".join(pair))
        if hit and done < most:
            merged.append(write(*two))
            i, done = i + skip, done + 1
        else:
            merged.append(symbols[i])
            i += 1
    return tuple(merged)


def merge_candidates(symbols: tuple[str, ...], pair: Pair) -> Iterator[Candidate]:
    """Merge wrongly."""
    yield (
        "only the first occurrence is merged",
        lambda: _merged(symbols, pair, most=1),
        "The pair may stand several times in a word: go on to the end.",
    )
    yield (
        "merged from the right",
        lambda: _merged(
            symbols[::-1], pair[::-1], write=lambda right, left: left + right
        )[::-1],
        "Of (a, a, a) the first two are merged: read from the left, always.",
    )
    yield (
        "the second symbol stays",
        lambda: _merged(symbols, pair, skip=1),
        "After a merge go on two symbols further. The right one has been used up.",
    )
    yield (
        "the last symbol is lost",
        lambda: _without_last(symbols, pair),
        "The last symbol has no right neighbour, but it belongs to the word: copy it.",
    )
    yield (
        "both orders are merged",
        lambda: _merged(symbols, pair, either=True),
        "(b, a) is another pair than (a, b).",
    )
    text = "text compared instead of symbols"
    why = (
        "Inside a string, the borders of symbols cannot be seen any more: 'ba' and 'b' "
        "contain 'ab'. Compare symbol by symbol."
    )
    left, right = pair
    yield text, lambda: _merged(symbols, pair, loosely=True), why
    replaced = " ".join(symbols).replace(f"{left} {right}", left + right)
    yield text, lambda: tuple(replaced.split()), why
    yield text, lambda: tuple(replaced.split(" ")), why
    yield (
        text,
        lambda: tuple(
            part
            for part in re.split(
                f"({re.escape(left + right)})|",
                "".join(symbols),
            )
            if part
        ),
        why,
    )
    yield (
        "the pair is not joined",
        lambda: _merged(symbols, pair, write=lambda left, right: (left, right)),
        "Two symbols become one string: left + right.",
    )
    yield (
        "the pair is not joined",
        lambda: _merged(symbols, pair, write=lambda left, right: f"{left} {right}"),
        "Two symbols become one string with nothing between: left + right.",
    )
    yield (
        "the pair is removed",
        lambda: tuple(s for s in _merged(symbols, pair) if s != left + right),
        "The merged symbol takes the place of the two.",
    )
    yield (
        "nothing is merged",
        lambda: tuple(symbols),
        "Compare tuple with tuple: symbols[i : i + 2] == pair.",
    )


def _without_last(symbols: tuple[str, ...], pair: Pair) -> tuple[str, ...]:
    merged, i = [], 0
    while i < len(symbols) - 1:
        found = symbols[i : i + 2] == pair
        merged.append("".join(pair) if found else symbols[i])
        i += 2 if found else 1
    return tuple(merged)


ORDINARY = r" ?\w+| ?[^\w\s]+|\s+(?!\S)|\s+"


def learn(
    pieces: list[str],
    merges: int,
    specials: tuple[str, ...] = (),
    *,
    choose: Callable[[dict], Pair] = lambda counts: max(counts, key=counts.get),
    across: bool = False,
    once: bool = False,
    moved: bool = False,
    least: int = 1,
) -> Merges:
    """Learn merges by counting all pieces of the text again in each step."""
    words = [(p,) if p in specials else tuple(p) for p in pieces]
    words = [tuple(s for word in words for s in word)] if across else words
    words = list(dict.fromkeys(words)) if once else words
    found: Merges = []
    for _ in range(merges):
        counts = _counts([(word, 1) for word in words], _neighbours)
        counts = {pair: n for pair, n in counts.items() if n >= least}
        if not counts:
            break
        found.append(choose(counts))
        after = [(_merged(word, found[-1]), word) for word in words]
        if moved:
            after.sort(key=lambda pair: pair[0] != pair[1])
        words = [word for word, _ in after]
    return found


def merges_candidates(
    pieces: list[str], merges: int, specials: tuple[str, ...]
) -> Iterator[Candidate]:
    """Learn wrongly."""
    text = "".join(pieces)
    right = learn(pieces, merges, specials)
    cut = "special tokens are cut"
    why = (
        "A special token is one symbol from the start, ('<eos>',), and has no pairs. "
        "Pass the special tokens on to split_words and do not take tuple() of them."
    )
    if specials:
        plain = re.findall(ORDINARY, text)
        yield cut, lambda: learn(pieces, merges), why
        yield cut, lambda: learn(plain, merges), why
        yield cut, lambda: learn(plain, merges, specials), why
    across = "merges reach from word to word"
    why = (
        "Pairs are counted inside the pieces of split_words. Over the whole text, "
        "tokens such as 'the cat' would be learned."
    )
    yield across, lambda: learn(pieces, merges, specials, across=True), why
    yield across, lambda: learn([text], merges), why
    spaces = "the spaces are lost"
    why = (
        "A space is the first symbol of the word after it and takes part in merges. "
        "split_words keeps it; split() and strip() do not."
    )
    stripped = [p if p in specials else p.strip() for p in pieces]
    yield spaces, lambda: learn(stripped, merges, specials), why
    yield spaces, lambda: learn(text.split(), merges, specials), why
    yield (
        "capital letters are lost",
        lambda: learn([piece.lower() for piece in pieces], merges, specials),
        "B and b are two symbols. Made small, a text could never be put together "
        "again as it was: take the pieces as they are.",
    )
    yield (
        "every word counts once",
        lambda: learn(pieces, merges, specials, once=True),
        "A frequent word has frequent pairs: count how often each piece occurs.",
    )
    yield (
        "the words change places",
        lambda: learn(pieces, merges, specials, moved=True),
        "A merged word that is taken out of the dict and put back stands at the end, "
        "and ties are then settled in another order. Build a new dict instead.",
    )
    yield (
        "the counts are never renewed",
        lambda: _most_common(pieces, specials)[:merges],
        "After a merge there are new symbols and new pairs, and old ones have become "
        "rarer. Count again in each step.",
    )
    for choose in (
        lambda counts: max(reversed(counts), key=counts.get),
        lambda counts: sorted(counts, key=counts.get)[-1],
    ):
        yield (
            "ties go to the last pair",
            lambda choose=choose: learn(pieces, merges, specials, choose=choose),
            "Of several pairs with the largest count the first one is merged.",
        )
    for choose in (
        lambda counts: max(counts, key=lambda pair: (counts[pair], pair)),
        lambda counts: min(counts, key=lambda pair: (-counts[pair], pair)),
    ):
        yield (
            "ties go by the alphabet",
            lambda choose=choose: learn(pieces, merges, specials, choose=choose),
            "Of several pairs with the largest count the one that appears first is "
            "merged, not the one that sorts first or last.",
        )
    yield (
        "the rarest pair is merged",
        lambda: learn(
            pieces, merges, specials, choose=lambda counts: min(counts, key=counts.get)
        ),
        "A token is worth its place when it is frequent: take the largest count.",
    )
    yield (
        "the longest pair is merged",
        lambda: learn(pieces, merges, specials, choose=max),
        "max of a dict looks at the keys; max(counts, key=counts.get) at the counts.",
    )
    yield (
        "one merge too many",
        lambda: learn(pieces, merges + 1, specials),
        "`merges` says how many merges there are at most.",
    )
    yield (
        "one merge too few",
        lambda: learn(pieces, merges - 1, specials),
        "`merges` says how many merges there are, the last one included.",
    )
    yield (
        "stops while there are pairs left",
        lambda: learn(pieces, merges, specials, least=2),
        "Some programs stop when every pair occurs once. Here a merge is made as long "
        "as any pair is left.",
    )
    yield (
        "strings instead of pairs",
        lambda: [a + b for a, b in right],
        "Joined, nobody can tell (l, ow) from (lo, w). Keep the pairs.",
    )


def _most_common(pieces: list[str], specials: tuple[str, ...]) -> Merges:
    words = [((p,) if p in specials else tuple(p), 1) for p in pieces]
    counts = _counts(words, _neighbours)
    return sorted(counts, key=counts.get, reverse=True)


def replay(
    pieces: list[str],
    merges: Merges,
    specials: tuple[str, ...] = (),
    merge: Callable = _merged,
) -> list[str]:
    """Apply all merges in order to each piece."""
    tokens: list[str] = []
    for piece in pieces:
        symbols = (piece,) if piece in specials else tuple(piece)
        for pair in merges:
            symbols = merge(symbols, pair)
        tokens += symbols
    return tokens


def encoding_candidates(
    pieces: list[str], merges: Merges, specials: tuple[str, ...]
) -> Iterator[Candidate]:
    """Apply merges wrongly."""
    text = "".join(pieces)
    cut = "special tokens are cut"
    why = (
        "A special token is a token of its own wherever it stands. Pass the special "
        "tokens on to split_words, and do not take tuple() of them."
    )
    if specials:
        plain = re.findall(ORDINARY, text)
        yield cut, lambda: replay(pieces, merges), why
        yield cut, lambda: replay(plain, merges), why
        yield cut, lambda: replay(plain, merges, specials), why
    yield (
        "merges in the wrong order",
        lambda: replay(pieces, merges[::-1], specials),
        "A merge needs the symbols that earlier ones made: from the first to the last.",
    )
    yield (
        "each merge only once in a word",
        lambda: replay(pieces, merges, specials, lambda s, p: _merged(s, p, most=1)),
        "merge_pair joins every occurrence; go on to the end of the word.",
    )
    across = "merges reach from word to word"
    why = "Merges were learned inside words and apply inside words: piece by piece."
    yield across, lambda: replay([text], merges, specials), why
    spaces = "the spaces are lost"
    why = (
        "The space belongs to the word after it and is part of its tokens. "
        "split_words keeps it; split() and strip() do not."
    )
    yield spaces, lambda: replay(text.split(), merges, specials), why
    stripped = [p if p in specials else p.strip() for p in pieces]
    yield spaces, lambda: replay(stripped, merges, specials), why
    yield (
        spaces,
        lambda: [t.strip() for t in replay(pieces, merges, specials) if t.strip()],
        why,
    )
    yield (
        "the longest known token is taken first",
        lambda: _greedy(pieces, merges, specials),
        "That is another algorithm (WordPiece cuts so). Byte-pair encoding replays the "
        "merges, and the two can cut a word differently.",
    )
    known = {symbol for pair in merges for symbol in pair}
    known |= {"".join(pair) for pair in merges}
    yield (
        "unknown symbols become <unk>",
        lambda: [
            token if token in known or token in specials else "<unk>"
            for token in replay(pieces, merges, specials)
        ],
        "A character that no merge knows stays as it is: nothing may be lost.",
    )
    yield (
        "the pieces are not put together",
        lambda: [tuple(replay([piece], merges, specials)) for piece in pieces],
        "One list of tokens is wanted: extend it by the symbols of each piece.",
    )
    yield (
        "the pieces are not put together",
        lambda: [replay([piece], merges, specials) for piece in pieces],
        "One list of tokens is wanted: extend it by the symbols of each piece.",
    )
    yield (
        "the characters are not merged",
        lambda: replay(pieces, [], specials),
        "merge_pair returns a new tuple: keep what it returns.",
    )
    yield (
        "only the last merge is applied",
        lambda: replay(pieces, merges[-1:], specials),
        "Each merge starts from what the one before made: symbols = merge_pair(symbols"
        ", pair).",
    )
    yield (
        "whole words are not cut",
        lambda: list(pieces),
        "Begin with the characters of each piece, tuple(piece), and merge those.",
    )


def _greedy(pieces: list[str], merges: Merges, specials: tuple[str, ...]) -> list[str]:
    known = {"".join(pair) for pair in merges}
    tokens = []
    for piece in pieces:
        while piece and piece not in specials:
            lengths = range(len(piece), 0, -1)
            size = next(n for n in lengths if n == 1 or piece[:n] in known)
            tokens.append(piece[:size])
            piece = piece[size:]
        tokens += [piece] if piece else []
    return tokens


# --- one-hot rows and the table -------------------------------------------------------


def one_hot_candidates(ids: torch.Tensor, vocab_size: int) -> Iterator[Candidate]:
    """Set the 1 somewhere else."""
    right = F.one_hot(ids, vocab_size).float()
    yield (
        "columns counted from 1",
        lambda: right.roll(-1, -1),
        "The 1 stands one column too far to the left: the id 0 belongs to column 0.",
    )
    yield (
        "one row for all ids",
        lambda: right.amax(-2),
        "Every id needs a row of its own, or the order of the tokens is lost.",
    )
    yield (
        "one row for all ids",
        lambda: right.sum(-2),
        "Every id needs a row of its own, or the order of the tokens is lost.",
    )
    yield (
        "rows and columns exchanged",
        lambda: right.mT,
        "A token is a row (T, N), so that rows times a table give rows.",
    )
    yield (
        "0 and 1 exchanged",
        lambda: 1 - right,
        "The column whose number is the id holds the 1, all others 0.",
    )
    yield (
        "as wide as the largest id",
        lambda: F.one_hot(ids).float(),
        "The width is vocab_size, also when the largest ids do not occur.",
    )
    yield (
        "one column too many",
        lambda: F.one_hot(ids, vocab_size + 1).float(),
        "Ids from 0 to vocab_size - 1 need vocab_size columns.",
    )
    yield (
        "the id instead of 1",
        lambda: right * ids[..., None],
        "The column says which id it is; the entry there is 1.",
    )


def embedding_candidates(
    weight: torch.Tensor, ids: torch.Tensor
) -> Iterator[Candidate]:
    """Look up wrongly."""
    vocab_size, d_model = weight.shape
    root = math.sqrt(d_model)
    rows = weight[ids]
    yield (
        "no factor √d_model",
        lambda: rows,
        "The rows start with entries of about 1/√d_model, 1/16 at d_model = 256; the "
        "positions that are added have entries up to 1. Multiply by √d_model.",
    )
    yield (
        "scaled twice",
        lambda: rows * d_model,
        "Multiplied by d_model, which is √d_model twice. The root makes the entries "
        "as large as 1.",
    )
    yield (
        "divided by √d_model",
        lambda: rows / root,
        "The table was divided by √d_model when it was drawn; here it is multiplied. "
        "(Attention divides by √d_k: another place, another reason.)",
    )
    yield (
        "multiplied by √vocab_size",
        lambda: rows * math.sqrt(vocab_size),
        "The factor is the root of the width of a vector, weight.shape[1].",
    )
    for factor in (root, 1.0):
        yield (
            "look-up at id − 1",
            lambda factor=factor: weight[ids - 1] * factor,
            "Ids are row numbers counted from 0. With id - 1 the id 0 silently gets "
            "the last row, weight[-1], and no error tells.",
        )
        yield (
            "look-up at id + 1",
            lambda factor=factor: weight[(ids + 1) % vocab_size] * factor,
            "Ids are row numbers counted from 0: take the row of the id itself.",
        )
    for mixed in (rows.mean(-2), rows.sum(-2)):
        yield (
            "one vector for all tokens",
            lambda mixed=mixed: mixed * root,
            "Every token keeps a row of its own, (..., T, d_model). Mixing tokens is "
            "the task of attention.",
        )
    for factor in (root, 1.0):
        yield (
            "rows of length 1",
            lambda factor=factor: F.normalize(rows, dim=-1) * factor,
            "The rows are taken as they are. How long a row is may be learned, too.",
        )


def gradient_candidates(
    ids: torch.Tensor, cotangent: torch.Tensor, wanted: torch.Tensor
) -> Iterator[Candidate]:
    """Let some rows learn too little."""
    once = torch.zeros_like(wanted)
    once[ids.flatten()] = cotangent.flatten(0, -2) * math.sqrt(wanted.shape[1])
    yield (
        "a repeated token learns once",
        lambda: once,
        "A token that occurs three times gets the sum of three gradients.",
    )
    without = wanted.clone()
    without[0] = 0
    yield (
        "row 0 learns nothing",
        lambda: without,
        "padding_idx=0 keeps the first row from learning. Which id is the padding, the "
        "vocabulary says; here all rows learn.",
    )


def logits_candidates(hidden: torch.Tensor, table: torch.Tensor) -> Iterator[Candidate]:
    """Score tokens wrongly."""
    logits = F.linear(hidden, table)
    d_model = table.shape[1]
    for factor, name, why in (
        (
            math.sqrt(d_model),
            "multiplied by √d_model",
            "The factor belongs to the look-up. The logits use the small numbers of "
            "the table as they are, so that they start with a spread of about 1.",
        ),
        (
            1 / math.sqrt(d_model),
            "divided by √d_model",
            "The rows already start with a length of about 1. (Attention divides its "
            "scores, whose vectors are long.)",
        ),
        (1 / d_model, "divided by d_model", "A dot product is a sum, not a mean."),
    ):
        yield name, lambda factor=factor: logits * factor, why
    yield (
        "probabilities instead of logits",
        lambda: logits.softmax(-1),
        "Cross-entropy takes raw scores and has the softmax inside: it would be "
        "applied twice.",
    )
    yield (
        "probabilities instead of logits",
        lambda: logits.log_softmax(-1),
        "Cross-entropy takes raw scores and has the logarithm of the softmax inside.",
    )
    yield (
        "cosines instead of dot products",
        lambda: F.linear(F.normalize(hidden, dim=-1), F.normalize(table, dim=-1)),
        "Cosines lie between -1 and 1, so no token could ever get a probability near "
        "1. The lengths count, too.",
    )
    yield (
        "rows and columns of the result exchanged",
        lambda: logits.mT,
        "Rows are positions, columns are tokens: hidden times the transposed table.",
    )
    yield (
        "the table is not transposed",
        lambda: hidden @ table,
        "A dot product with each row of the table: hidden (T, d) times (d, N), and "
        "that is the table transposed.",
    )


# --- older word vectors ---------------------------------------------------------------


def tf_idf_candidates(
    documents: list[list[str]], terms: list[str]
) -> Iterator[Candidate]:
    """Weigh words wrongly."""
    rows = [[document.count(term) for term in terms] for document in documents]
    counts = torch.tensor(rows, dtype=torch.float32)
    number = len(documents)
    holding = (counts > 0).sum(0)
    idf = torch.log(number / holding)
    right = counts * idf
    yield (
        "only the counts",
        lambda: counts,
        "'the' would be the most important word. Multiply by the logarithm.",
    )
    yield (
        "shares instead of counts",
        lambda: right / counts.sum(1, keepdim=True),
        "The counts were divided by the length of the document; here they are not.",
    )
    yield (
        "0 or 1 instead of counts",
        lambda: (counts > 0) * idf,
        "A term that occurs twice in a document counts twice.",
    )
    yield (
        "occurrences instead of documents",
        lambda: counts * torch.log(number / counts.sum(0)),
        "How many documents hold the term, not how often it occurs in all: "
        "(counts > 0).sum(dim=0).",
    )
    yield (
        "occurrences instead of documents",
        lambda: counts * torch.log(counts.sum() / counts.sum(0)),
        "The logarithm is of documents over documents that hold the term.",
    )
    for name, base in (("base 10", math.log(10)), ("base 2", math.log(2))):
        yield (
            f"logarithm to {name}",
            lambda base=base: right / base,
            "The natural logarithm is wanted: torch.log, math.log.",
        )
    yield (
        "no logarithm",
        lambda: counts * number / holding,
        "Without the logarithm, a term that is everywhere has the factor 1, not 0.",
    )
    yield (
        "terms counted instead of documents",
        lambda: counts * torch.log(len(terms) / holding),
        "The logarithm is of all documents over those that hold the term; how many "
        "terms there are has no part in it.",
    )
    yield (
        "the fraction upside down",
        lambda: -right,
        "The logarithm of (documents with the term / documents) is negative. A rare "
        "term has a large weight: documents over documents with the term.",
    )
    variant = "another variant of the formula"
    why = (
        "Libraries add 1 in the fraction, after the logarithm, or both, and may scale "
        "rows to length 1. Here it is count · ln(documents / those with the term)."
    )
    smooth = torch.log((1 + number) / (1 + holding))
    yield variant, lambda: counts * smooth, why
    yield variant, lambda: counts * (smooth + 1), why
    yield variant, lambda: counts * (idf + 1), why
    yield variant, lambda: counts * torch.log(1 + number / holding), why
    yield variant, lambda: counts * torch.log(number / (1 + holding)), why
    yield variant, lambda: F.normalize(right, dim=1), why
    yield variant, lambda: F.normalize(counts * (smooth + 1), dim=1), why
    yield variant, lambda: torch.log(1 + counts) * idf, why
    yield (
        "terms in rows",
        lambda: right.T,
        "A document is a row, a term a column.",
    )
    alphabet = sorted(range(len(terms)), key=lambda i: terms[i])
    yield (
        "columns in another order than the terms",
        lambda: right[:, alphabet],
        "The columns are sorted, the list of terms is not: make both from one list.",
    )


def neighbour_candidates(ids: list[int], window: int) -> Iterator[Candidate]:
    """Pair wrongly."""
    places = range(len(ids))

    def pairs(near: Callable[[int, int], bool]) -> list[tuple[int, int]]:
        return [(ids[i], ids[j]) for i in places for j in places if near(i, j)]

    right = pairs(lambda i, j: 1 <= abs(i - j) <= window)
    yield (
        "a token paired with itself",
        lambda: pairs(lambda i, j: abs(i - j) <= window),
        "The center is not its own context: leave out its position.",
    )
    for near in (
        lambda i, j: 1 <= j - i <= window,
        lambda i, j: 1 <= i - j <= window,
    ):
        yield (
            "one side only",
            lambda near=near: pairs(near),
            "The window reaches to the left and to the right.",
        )
    for near in (
        lambda i, j: i != j and -window <= j - i < window,
        lambda i, j: 1 <= abs(i - j) < window,
    ):
        yield (
            "the window ends too early",
            lambda near=near: pairs(near),
            "range stops before its end: a neighbour `window` places away belongs in.",
        )
    yield (
        "the window is one wider",
        lambda: pairs(lambda i, j: 1 <= abs(i - j) <= window + 1),
        "A neighbour is at most `window` places away.",
    )
    yield (
        "half the window on each side",
        lambda: pairs(lambda i, j: 1 <= abs(i - j) <= window // 2),
        "`window` counts the neighbours on one side, not on both.",
    )
    yield (
        "center and context exchanged",
        lambda: [(b, a) for a, b in right],
        "The center comes first in each pair.",
    )
    yield (
        "positions instead of ids",
        lambda: [(i, j) for i in places for j in places if 1 <= abs(i - j) <= window],
        "The pairs hold the ids that stand at these positions: ids[i], ids[j].",
    )
    yield (
        "equal neighbours left out",
        lambda: [(a, b) for a, b in right if a != b],
        "In 'very very good' the first word is a neighbour of the second, although "
        "they are equal. Compare positions, not ids.",
    )
    yield (
        "each pair only once",
        lambda: list(dict.fromkeys(right)),
        "Pairs that occur more often count more: repetitions stay.",
    )
    wrapped = [
        (ids[i], ids[j])
        for i in places
        for j in range(i - window, min(len(ids), i + window + 1))
        if j != i and j >= -len(ids)
    ]
    around = "the window wraps around at the start"
    why = "ids[-1] is the last token. Begin the window with max(0, i - window)."
    yield around, lambda: wrapped, why
    inner = range(window, len(ids) - window)
    yield (
        "centers near the ends left out",
        lambda: [
            (ids[i], ids[j]) for i in inner for j in places if 1 <= abs(i - j) <= window
        ],
        "The first and the last token have neighbours as well, only fewer.",
    )
    nearest = [
        (ids[i], ids[j])
        for i in places
        for step in range(1, window + 1)
        for j in (i - step, i + step)
        if 0 <= j < len(ids)
    ]
    order = "right pairs in another order"
    why = "Centers from left to right, and for each its contexts from left to right."
    yield order, lambda: nearest, why
    before = [ids[max(0, i - window) : i] for i in places]
    behind = [ids[i + 1 : i + 1 + window] for i in places]
    sides = list(zip(ids, before, behind, strict=True))
    yield order, lambda: [(c, x) for c, a, b in sides for x in [*b, *a]], why
    yield (
        "a set instead of a list",
        lambda: [(c, x) for c, a, b in sides for x in {*a, *b}],
        "A set has no order and keeps no repetitions; both matter here.",
    )
    yield (
        "a slice that begins before the text",
        lambda: [
            (ids[i], x)
            for i in places
            for x in [*ids[i - window : i], *ids[i + 1 : i + 1 + window]]
        ],
        "ids[-2:1] begins at the last token but one, so it is empty, and the left "
        "neighbours are missing. Begin the slice with max(0, i - window).",
    )
    yield order, lambda: sorted(right), why
    yield (
        "contexts as a list",
        lambda: [
            (ids[i], tuple(ids[j] for j in places if 1 <= abs(i - j) <= window))
            for i in places
        ],
        "One pair for each neighbour: (center, context), two ids.",
    )


def loss_candidates(
    centers: torch.Tensor, contexts: torch.Tensor, negatives: torch.Tensor
) -> Iterator[Candidate]:
    """Write the loss wrongly."""
    true = (centers * contexts).sum(-1)
    false = (centers[:, None] * negatives).sum(-1)
    log = F.logsigmoid
    each = -log(true) - log(-false).sum(-1)
    yield (
        "the sign of the negatives is not turned",
        lambda: (-log(true) - log(false).sum(-1)).mean(),
        "A false neighbour should NOT fit: ln σ(-c·n). With +c·n the negatives are "
        "treated as true neighbours.",
    )
    yield (
        "the minus sign is missing",
        lambda: -each.mean(),
        "A loss is to be made small. Logarithms of probabilities are negative, so "
        "there is a minus before both terms.",
    )
    yield (
        "a minus too few before the negatives",
        lambda: (-log(true) + log(-false).sum(-1)).mean(),
        "Both terms are logarithms of probabilities and get a minus.",
    )
    yield (
        "mean over the negatives",
        lambda: (-log(true) - log(-false).mean(-1)).mean(),
        "The formula sums over the K negatives; the mean is taken over the batch only.",
    )
    yield (
        "mean over the negatives",
        lambda: -log(true).mean() - log(-false).mean(),
        "The formula sums over the K negatives; .mean() of a (B, K) tensor divides by "
        "K as well.",
    )
    yield (
        "sum over the batch",
        lambda: each.sum(),
        "Divide by the size of the batch: the loss should not grow with it.",
    )
    yield (
        "one loss for each pair",
        lambda: each,
        "One number is wanted, the mean over the batch: a tensor of shape ().",
    )
    yield (
        "no negatives",
        lambda: -log(true).mean(),
        "Without false neighbours, longer and longer equal vectors are best.",
    )
    yield (
        "only negatives",
        lambda: -log(-false).sum(-1).mean(),
        "The term of the true neighbour is missing.",
    )
    yield (
        "no logarithm",
        lambda: (-true.sigmoid() - (-false).sigmoid().sum(-1)).mean(),
        "These are probabilities; the formula takes their logarithm.",
    )
    yield (
        "no sigmoid",
        lambda: (-true + false.sum(-1)).mean(),
        "Without ln σ the loss has no lower end, and the vectors grow for ever.",
    )
    everything = torch.cat([true[:, None], false], dim=-1)
    yield (
        "softmax instead of sigmoids",
        lambda: -everything.log_softmax(-1)[:, 0].mean(),
        "That asks which of K + 1 is the neighbour. The formula asks K + 1 separate "
        "yes-or-no questions.",
    )
    yield (
        "mean over the K + 1 terms",
        lambda: -log(torch.cat([true[:, None], -false], dim=-1)).mean(),
        "The terms of one pair, a true one and K false ones, are added; the mean is "
        "taken over the batch only.",
    )
    yield (
        "the scores are added before the sigmoid",
        lambda: (-log(true) - log(-false.sum(-1))).mean(),
        "Each negative is a question of its own: first ln σ of each score, then the "
        "sum over K.",
    )
    products = centers * contexts, centers[:, None] * negatives
    yield (
        "the products are not added up to a score",
        lambda: (-log(products[0]).sum(-1) - log(-products[1]).sum((1, 2))).mean(),
        "A score is one number for a pair: add the d products, then take the sigmoid.",
    )
    for reduce in (torch.sum, torch.mean):
        yield (
            "every center with every context",
            lambda reduce=reduce: (
                -reduce(log(centers @ contexts.T), -1) - log(-false).sum(-1)
            ).mean(),
            "centers @ contexts.T has the shape (B, B): it also scores the contexts of "
            "other pairs. Pair b has one score: (centers * contexts).sum(-1).",
        )
    crossed = (contexts[:, None] * negatives).sum(-1)
    yield (
        "negatives compared with the contexts",
        lambda: (-log(true) - log(-crossed).sum(-1)).mean(),
        "The negatives are false neighbours of the center: c·n.",
    )
    every = torch.einsum("bd,ckd->bck", centers, negatives)
    yield (
        "the negatives of other pairs, too",
        lambda: (-log(true) - log(-every).sum((1, 2))).mean(),
        "Each center has K negatives of its own: keep the axes of the batch together.",
    )
    yield (
        "divided by √d",
        lambda: (
            -log(true / math.sqrt(centers.shape[-1]))
            - log(-false / math.sqrt(centers.shape[-1])).sum(-1)
        ).mean(),
        "The scores are plain dot products here.",
    )


# --- patches --------------------------------------------------------------------------


def kernel_candidates(
    matrix: torch.Tensor, p: int, channels: int
) -> Iterator[Candidate]:
    """Sort the rows of the matrix wrongly."""
    d_model = matrix.shape[1]
    split = matrix.reshape(p, p, channels, d_model)
    right = split.permute(3, 2, 0, 1)
    yield (
        "a patch read as (channel, row, column)",
        lambda: matrix.T.reshape(d_model, channels, p, p),
        "The shape is right, the numbers are not: a patch is flattened in the order "
        "(row, column, channel). Split the axis in that order first, then permute.",
    )
    yield (
        "rows and columns exchanged",
        lambda: split.permute(3, 2, 1, 0),
        "Every patch is mirrored along its diagonal. Rows come before columns.",
    )
    yield (
        "channels last",
        lambda: split.permute(3, 0, 1, 2),
        "PyTorch's convolution wants the channels before rows and columns.",
    )
    for value in (
        lambda: matrix.reshape(d_model, channels, p, p),
        lambda: matrix.reshape(d_model, p, p, channels).permute(0, 3, 1, 2),
    ):
        yield (
            "the matrix is not transposed",
            value,
            "The first axis of the matrix is the patch, the second the width. A "
            "reshape cannot exchange them; it only renames. Transpose or permute.",
        )
    yield (
        "the kernel is turned round",
        lambda: right.flip(-1, -2),
        "What PyTorch calls convolution does not turn the kernel: no flip.",
    )
    yield (
        "input and output exchanged",
        lambda: split.permute(2, 3, 0, 1),
        "The weight begins with the output channels: (d_model, channels, P, P).",
    )
    yield (
        "axes not reordered",
        lambda: split,
        "The weight of a convolution is (output, input, rows, columns): permute.",
    )
