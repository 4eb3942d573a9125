"""Checks of chapter 1, embeddings.

The oracles are PyTorch's and scikit-learn's own functions, brute force, values worked
out by hand, and properties. What is known of mistakes is in embeddings_mistakes.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator

import torch
import torch.nn.functional as F
from torch import nn

from autograder import expect
from autograder.chapters.embeddings_mistakes import (
    Candidate,
    decode_candidates,
    embedding_candidates,
    encode_candidates,
    encoding_candidates,
    gradient_candidates,
    kernel_candidates,
    learn,
    logits_candidates,
    loss_candidates,
    merge_candidates,
    merges_candidates,
    neighbour_candidates,
    one_hot_candidates,
    pair_candidates,
    replay,
    tf_idf_candidates,
    vocabulary_candidates,
)
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.naming import known_mistakes
from autograder.exercise.showing import shortened
from autograder.expect import Chapter, describe_error, refuse, show
from autograder.forms import several
from autograder.interface import (
    Data,
    StudentError,
    StudentFunction,
    StudentInstance,
    StudentModule,
)

chapter = Chapter(1, "01_embeddings")
progress = chapter.progress


# --- shared ---------------------------------------------------------------------------


def _whole(generator: torch.Generator, low: int, high: int, count: int) -> list[int]:
    """Draw whole numbers from low to high - 1."""
    return torch.randint(low, high, (count,), generator=generator).tolist()


def _write(value: Data, limit: int = 320) -> str:
    """Write lists and dicts longer than other checks do: a token list is read whole."""
    if isinstance(value, (str, list, tuple, dict)):
        return shortened(repr(value), limit)
    return show(value)


def _expect_data(
    got: Data,
    expected: Data,
    *,
    on: str,
    why: str,
    what: str = "the result",
    candidates: Iterable[Candidate] = (),
) -> None:
    """Expect text data: known mistakes first, then type, length, the first difference.

    Lists and tuples may stand for each other only inside the result.
    """
    say = {"on": on, "got": _write(got), "expected": _write(expected)}
    if expect.close(got, expected) and type(got) is type(expected):
        return
    if not expect.close(got, expected):
        for mistake in known_mistakes(candidates):
            same = type(got) is type(mistake.value)
            if same and expect.close(got, mistake.value):
                refuse(mistake.name, mistake.why, **say)
    if got is None:
        why = "The function ends without `return`."
    expect.form(got, expected, what=what, on=on)
    wanted = type(expected).__name__
    expect.true(
        type(got) is type(expected),
        f"{what} has the wrong type",
        why=why,
        **(say | {"expected": f"a {wanted}: {say['expected']}"}),
    )
    if isinstance(expected, dict):
        missing = [key for key in expected if key not in got]
        more = [key for key in got if key not in expected]
        expect.true(not missing, f"{what} lacks {_write(missing, 60)}", why=why, **say)
        expect.true(not more, f"{what} also has {_write(more, 60)}", why=why, **say)
        key = next(k for k in expected if not expect.close(got[k], expected[k]))
        expect.true(False, f"{what} is wrong at {key!r}", why=why, **say)
    if isinstance(expected, (list, tuple)):
        pairs = enumerate(zip(got, expected, strict=False))
        first = next((i for i, (a, b) in pairs if not expect.close(a, b)), None)
        length = f"{what} has {len(got)} elements, not {len(expected)}"
        expect.true(first is not None, length, why=why, **say)
        expect.true(False, f"{what} is wrong at index {first}", why=why, **say)
    expect.true(False, f"{what} is wrong", why=why, **say)


@contextlib.contextmanager
def _naming(name: str, why: str, *kinds: str) -> Iterator[None]:
    """Name the mistake that an exception of one of these kinds gives away."""
    try:
        yield
    except StudentError as error:
        if error.kind not in kinds:
            raise
        got = f"{error.kind}: {describe_error(error)}"
        refuse(name, why, on=error.call, got=got)


OTHER_EXCEPTION = "another exception than ValueError"


def _expect_refusal(
    call: Callable[[], Data], on: str, explain: Callable[[Data], tuple[str, str]]
) -> None:
    """Expect a ValueError; ``explain`` names the mistake by what came out instead."""
    try:
        value = call()
    except StudentError as error:
        if error.kind == "ValueError":
            return
        if error.kind in ("NotImplementedError", "signature", "missing"):
            raise
        why = (
            "It should say itself what is wrong: test the numbers first, and raise "
            "ValueError with a sentence that names the bad one."
        )
        got = f"{error.kind}: {describe_error(error)}"
        refuse(OTHER_EXCEPTION, why, on=on, got=got, expected="ValueError")
    if getattr(value, "type_name", "").endswith("Error"):
        why = "`return` hands an exception over like any value; `raise` stops with it."
        name = "the exception is returned, not raised"
        refuse(name, why, on=on, got=_write(value), expected="ValueError")
    name, why = explain(value)
    refuse(name, why, on=on, got=_write(value), expected="ValueError")


@contextlib.contextmanager
def _shapes_explained(call: Callable, square: tuple, candidates: Callable) -> Iterator:
    """Name the mistake behind an error of shapes, by what it gives on equal sizes."""
    try:
        yield
    except StudentError as error:
        if error.kind in ("RuntimeError", "IndexError"):
            with contextlib.suppress(StudentError):
                got = call(*square)
                for mistake in known_mistakes(candidates(*square)):
                    if expect.close(got, mistake.value):
                        said = f"{error.kind}: {describe_error(error)}"
                        refuse(mistake.name, mistake.why, on=error.call, got=said)
        raise


def _more_axes(axes: int, why: str) -> contextlib.AbstractContextManager:
    """Name an exception that comes with leading axes only."""
    if axes == 0:
        return contextlib.nullcontext()
    kinds = "RuntimeError", "IndexError", "ValueError", "TypeError", "AttributeError"
    return _naming("only works for one sequence", why, *kinds)


def _expect_some_gradient(found: torch.Tensor | None, on: str) -> None:
    if found is not None:
        return
    why = (
        "A step cut the result off from it, so it could never learn. No .detach(), "
        ".data, .item(), torch.no_grad(), requires_grad=False, and no "
        "torch.tensor(...) of a tensor."
    )
    refuse("no gradient comes back", why, on=on, got="None", expected="a tensor")


# --- the vocabulary -------------------------------------------------------------------

DEFAULT = ("<pad>", "<unk>", "<sos>", "<eos>")


def _numbered(tokens: Iterable[str], specials: Iterable[str]) -> dict[str, int]:
    """Number by searching a list, which is slow and plain."""
    seen: list[str] = []
    for token in [*specials, *tokens]:
        if token not in seen:
            seen.append(token)
    return {token: seen.index(token) for token in seen}


@chapter.check(section="embeddings-vocabulary")
def vocabulary(student: StudentFunction, seed: int = 0) -> None:
    """By hand, the running example, random tokens, no tokens at all."""
    generator = seeded(seed)
    english = ["<sos>", "Bobby", " likes", " blackberries", ".", "<eos>"]
    letters = ["dcbafeg"[i] for i in _whole(generator, 0, 7, 20)]
    letters += letters[-1:] * 3
    for tokens, specials in (
        (["the", "dog", "sees", "the", "cat"], ("<pad>", "<unk>")),
        (english, None),
        (letters, ("<unk>", "<end>", "<pad>")),
        ([], ("<unk>",)),
    ):
        inputs = (tokens,) if specials is None else (tokens, specials)
        specials = DEFAULT if specials is None else specials
        on = f"build_vocabulary({', '.join(map(_write, inputs))})"
        _expect_data(
            student(*inputs),
            _numbered(tokens, specials),
            on=on,
            what="the vocabulary",
            why="The special tokens get 0, 1, ...; then each further token, where it "
            "first appears, the next number.",
            candidates=vocabulary_candidates(tokens, specials, DEFAULT),
        )


@chapter.check(section="embeddings-vocabulary")
def encode_decode(
    encode: StudentFunction, decode: StudentFunction, seed: int = 0
) -> None:
    """Unknown tokens, vocabularies in any order, ids that no token has."""
    generator = seeded(seed)
    ordered = {"<pad>": 0, "<unk>": 1, "the": 2, "dog": 3}
    names = ["cat", "dog", "sees", "the", "<pad>", "<unk>", "mice"]
    drawn = torch.randperm(7, generator=generator).tolist()
    if drawn[5] < 2 or drawn == sorted(drawn):  # <unk> has neither the id 0 nor 1
        drawn = drawn[3:] + drawn[:3] if drawn[1] > 1 else [6, 0, 1, 4, 2, 5, 3]
    shuffled = dict(zip(names, drawn, strict=True))
    shuffled["gap"] = 9  # no token has the ids 7 and 8
    for tokens, words in (
        (["the", "fox", "the"], ordered),
        (["mice", "fox", "the", "gap", "cat", "hen"], shuffled),
        (["dog", "sees"], shuffled),
        ([], ordered),
    ):
        on = f"encode({tokens}, {words})"
        why = (
            "encode must not insist on finding the token: ask the dict with "
            '.get(token, the id of "<unk>").'
        )
        with _naming("an unknown token stops the program", why, "KeyError"):
            got = encode(tokens, words)
        expected = [words[token if token in words else "<unk>"] for token in tokens]
        _expect_data(
            got,
            expected,
            on=on,
            why="One id for each token, as a list of numbers; for unknown ones that "
            'of "<unk>".',
            candidates=encode_candidates(tokens, words),
        )
    for ids, words in (([2, 1, 2], ordered), ([9, *drawn, 9], shuffled), ([], ordered)):
        on = f"decode({ids}, {words})"
        back = [next(token for token in words if words[token] == i) for i in ids]
        with _naming(
            "the position in the dict instead of the id",
            "A token's place in the dict need not be its id: turn the dict round.",
            "IndexError",
        ):
            got = decode(ids, words)
        _expect_data(
            got,
            back,
            on=on,
            why="One token for each id, as a list of strings.",
            candidates=decode_candidates(ids, words),
        )
    for ids, words in (([2, -1], ordered), ([4], ordered), ([0, 8], shuffled)):
        on = f"decode({ids}, {words}): no token has the id {ids[-1]}"
        _expect_refusal(
            lambda ids=ids, words=words: decode(ids, words),
            on,
            lambda value, ids=ids: _decoded_nonsense(value, ids),
        )


def _decoded_nonsense(value: Data, ids: list[int]) -> tuple[str, str]:
    tokens = value if isinstance(value, list) else []
    if len(tokens) == len(ids) and tokens[-1] in ("<unk>", None):
        return (
            "a wrong id becomes <unk>",
            "<unk> stands for a token that the vocabulary does not know. An id that "
            "does not exist is a bug elsewhere, and hiding it makes it hard to find.",
        )
    if len(tokens) < len(ids):
        return (
            "a wrong id is left out",
            "The tokens that come back no longer match the ids. Refuse instead.",
        )
    if ids[-1] < 0:
        return (
            "a negative id counts from the end",
            "names[-1] is the last element of a list, so a bug (an id shifted by one) "
            "would come out as an ordinary word.",
        )
    return (
        "a wrong id gets some token",
        "No token has this id; test that it is one of the vocabulary's values.",
    )


# --- byte-pair encoding ---------------------------------------------------------------


def _draw_pieces(
    generator: torch.Generator, count: int, specials: tuple[str, ...] = ()
) -> list[str]:
    """Draw words over few letters, full stops and special tokens, as pieces of a text.

    Words repeat, and a special token may follow a word or a full stop at once.
    """
    lengths = _whole(generator, 1, 6, 9)
    stock = ["".join("abcn"[i] for i in _whole(generator, 0, 4, n)) for n in lengths]
    pieces: list[str] = []
    for draw in _whole(generator, 0, 12, count):
        last = pieces[-1] if pieces else ""
        if draw == 9 and last and last != "." and last not in specials:
            pieces.append(".")
        elif draw == 10 and specials:
            pieces.append(specials[len(pieces) % len(specials)])
        else:
            space = " " if last and last not in specials else ""
            pieces.append(space + stock[draw % 9])
    return pieces


@chapter.check(section="embeddings-bpe")
def pair_counts(student: StudentFunction, seed: int = 0) -> None:
    """By hand, words drawn at random, words of one symbol, no words."""
    generator = seeded(seed)
    drawn = {tuple(piece): 0 for piece in _draw_pieces(generator, 20)}
    drawn = dict(zip(drawn, _whole(generator, 2, 9, len(drawn)), strict=True))
    for words in (
        {tuple("low"): 2, tuple(" lower"): 2},
        {tuple("nana"): 3, tuple("ban"): 2, ("low", "er"): 5, tuple("aaa"): 4},
        drawn,
        {("a",): 7, ("<eos>",): 2},
        {},
    ):
        expected: dict = {}
        for symbols, occurrences in words.items():
            for i in range(len(symbols) - 1):
                pair = symbols[i], symbols[i + 1]
                expected[pair] = expected.get(pair, 0) + occurrences
        on = f"pair_counts({_write(words)})"
        got = student(words)
        _expect_data(
            got,
            expected,
            on=on,
            what="the dict of counts",
            why="Each pair of neighbours inside a word, (left, right), counts as often "
            "as the word occurs.",
            candidates=pair_candidates(words),
        )
        if list(got) != list(expected):
            why = (
                "The order decides which of equally frequent pairs is merged. Count "
                "words in order and from left to right; do not sort, and use no set."
            )
            say = {"got": _write(list(got)), "expected": _write(list(expected))}
            refuse("the pairs are in another order", why, on=on, **say)


def _joined(symbols: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    """Merge by replacing in a string in which every symbol is one character."""
    names = list(dict.fromkeys([*symbols, *pair]))
    new = chr(0xE000 + len(names))

    def write(some: Iterable[str]) -> str:
        return "".join(chr(0xE000 + names.index(symbol)) for symbol in some)

    names.append("".join(pair))
    text = write(symbols).replace(write(pair), new)
    return tuple(names[ord(character) - 0xE000] for character in text)


@chapter.check(section="embeddings-bpe")
def merge_pair(student: StudentFunction, seed: int = 0) -> None:
    """Every occurrence, overlaps, borders of symbols, random words."""
    generator = seeded(seed)
    known = [
        (("a", "b", "c", "a", "b"), ("a", "b")),
        (("b", "a", "b", "c"), ("a", "b")),
        (("a", "a", "a"), ("a", "a")),
        (("c", "a", "a", "a", "a", "b"), ("a", "a")),
        (("ba", "b"), ("a", "b")),
        (("ab", "c", "a", "bc"), ("a", "bc")),
        ((" ", "low", "er", " ", "low"), (" ", "low")),
        (("<eos>",), ("<", "e")),
        ((), ("a", "b")),
    ]
    stock = ["a", "b", "ab", "ba"]
    for _ in range(8):
        symbols = tuple(stock[i] for i in _whole(generator, 0, 4, 9))
        pair = tuple(stock[i] for i in _whole(generator, 0, 3, 2))
        known.append((symbols, pair))
    for symbols, pair in known:
        on = f"merge_pair({symbols}, {pair})"
        why = (
            "The last symbol has no neighbour to its right. Compare a slice of two "
            "with the pair, or test the length first."
        )
        with _naming("looks beyond the last symbol", why, "IndexError"):
            got = student(symbols, pair)
        expected = _joined(symbols, pair)
        if isinstance(got, list) and tuple(got) == expected:
            why = "Words are keys of a dict, and a list cannot be one: tuple(...)."
            say = {"on": on, "got": _write(got), "expected": _write(expected)}
            refuse("a list instead of a tuple", why, **say)
        _expect_data(
            got,
            expected,
            on=on,
            what="the tuple of symbols",
            why="Read from the left; where two symbols are the pair, write them as one "
            "and go on behind them.",
            candidates=merge_candidates(symbols, pair),
        )


@chapter.check(section="embeddings-bpe")
def train_bpe(
    student: StudentFunction,
    pair_counts_student: StudentFunction,
    merge_pair_student: StudentFunction,
    seed: int = 0,
) -> None:
    """By hand, ties, word borders, special tokens, the end of all pairs."""
    with (
        expect.relying_on(pair_counts, pair_counts_student),
        expect.relying_on(merge_pair, merge_pair_student),
    ):
        _expect_learner(student, seeded(seed))


def _expect_learner(student: StudentFunction, generator: torch.Generator) -> None:
    special = ("<eos>", "<sos>")
    hand = ["low", " lower", " lowest"]
    drawn = _draw_pieces(generator, 60)
    marked = [*_draw_pieces(generator, 60, special), ".", "<eos>", "<eos>"]
    repeated = ["na", " na", " na", " na", " bca", " bca", " cab"]
    for pieces, merges, specials in (
        (["bdacb", " bdacb", " zz"], 1, ()),
        (hand, 4, ()),
        (["a", " nana", " nana", " to", " to"], 2, ()),
        (repeated, 3, ()),
        (drawn, 12, ()),
        (marked, 9, special),
        (["<sos>", "ab", "<eos>"], 6, special),
        (["ab", " ab"], 1, ()),
        (["Bobby", " bob"], 2, ()),
        (["ab"], 0, ()),
    ):
        text = "".join(pieces)
        inputs = (text, merges, specials) if specials else (text, merges)
        on = f"train_bpe({', '.join(map(_write, inputs))})"
        why = (
            "The largest of no counts does not exist. When every word has become a "
            "single symbol, no pair is left: return what has been found."
        )
        with _naming("does not stop when no pair is left", why, "ValueError"):
            got = student(*inputs)
        expected = learn(pieces, merges, specials)
        _expect_data(
            got,
            expected,
            on=on,
            what="the list of merges",
            why="In each step: count pairs inside the pieces, merge the most frequent, "
            "of several the one that appears first.",
            candidates=merges_candidates(pieces, merges, specials),
        )
        if any(type(pair) is not tuple for pair in got):
            why = (
                "A list is never equal to a tuple of symbols, so a later comparison "
                "with such a pair finds nothing. Keep the pairs as they are counted."
            )
            say = {"on": on, "got": _write(got), "expected": _write(expected)}
            refuse("lists instead of tuples", why, **say)


@chapter.check(section="embeddings-bpe-encoding")
def bpe_encode(
    student: StudentFunction, merge_pair_student: StudentFunction, seed: int = 0
) -> None:
    """By hand, learned merges on new text, odd texts, special tokens."""
    with expect.relying_on(merge_pair, merge_pair_student):
        _expect_encoder(student, seeded(seed))


ODD = (
    "Bobby likes blackberries.",
    "Bobby mag Brombeeren, süße Brombeeren!",
    "snake_case 2026  two spaces\n\tand a new line\n",
    " ... (space first) ",
)


def _expect_encoder(student: StudentFunction, generator: torch.Generator) -> None:
    special = ("<eos>", "<sos>")
    four = [("l", "o"), ("lo", "w"), (" ", "low"), (" low", "e")]
    text = _draw_pieces(generator, 50)
    learned = learn(text, 14)
    new = _draw_pieces(generator, 25)
    marked = ["<sos>", "banana", ".", "<eos>", "<sos>", "can", "<eos>"]
    marked += [*_draw_pieces(generator, 15, special)[1:], "<eos>"]
    eos = [("<", "e"), ("o", "s"), *learned]
    for pieces, merges, specials in (
        (["low", " slowly"], [*four, ("l", "y")], ()),
        (["lowlow", " low", " lower"], four, ()),
        (["abc"], [("b", "c"), ("a", "b"), ("ab", "c")], ()),
        (["low", " low"], [("w", " "), ("l", "o")], ()),
        (["low", " low"], [], ()),
        (new, learned, ()),
        (["<sos>", "low", ".", "<eos>", "low", "<eos>", "<eos>"], four, special),
        (marked, eos, special),
        ([], four, ()),
    ):
        inputs = ("".join(pieces), merges, *([specials] if specials else []))
        on = f"bpe_encode({', '.join(map(_write, inputs))})"
        got = student(*inputs)
        _expect_data(
            got,
            replay(pieces, merges, specials),
            on=on,
            what="the list of tokens",
            why="Cut the text with split_words, each piece into characters (special "
            "tokens not), and replay all merges in order in each piece.",
            candidates=encoding_candidates(pieces, merges, specials),
        )
    for text in ODD:
        on = f"bpe_encode({text!r}, merges): the tokens, joined again"
        got = student(text, learned)
        whole = isinstance(got, list) and all(isinstance(each, str) for each in got)
        expect.true(whole, "the result is no list of strings", on=on, got=_write(got))
        if "".join(got) != text:
            why = (
                "Something was lost on the way. White space and punctuation belong to "
                "the text: take all pieces of split_words, and all their symbols."
            )
            say = {"got": repr("".join(got)), "expected": repr(text)}
            refuse("the text does not come back", why, on=on, **say)


# --- one-hot rows and the table -------------------------------------------------------


@chapter.check(section="embeddings-one-hot")
def one_hot(student: StudentFunction, seed: int = 0) -> None:
    """PyTorch's own, ids with leading axes, ids outside the vocabulary."""
    generator = seeded(seed)
    a, b, length, width = draw_sizes(generator, 4)
    vocab_size = width + 6
    for leading in (None, (), (b,), (a, b)):
        if leading is None:
            ids, size, on = torch.tensor([2, 0]), 4, "one_hot(tensor([2, 0]), 4)"
        else:
            shape = (*leading, length)
            ids = torch.randint(0, vocab_size - 1, shape, generator=generator)
            size, on = vocab_size, f"ids {shape}, vocab_size {vocab_size}"
        why = (
            "Ids (T,) work, ids with a batch do not. Write the columns into a new last "
            "axis: ids[..., None] compared with torch.arange(vocab_size)."
        )
        with _more_axes(len(leading or ()), why):
            got = student(ids, size)
        wanted = F.one_hot(ids, size)
        plain = got.float() if isinstance(got, torch.Tensor) else got
        if expect.close(plain, wanted.float()) and got.dtype != torch.float32:
            why = (
                "One-hot rows are there to be multiplied by a table of floats, and "
                "PyTorch does not multiply integers by floats: .float()."
            )
            say = {"got": f"{got.dtype}", "expected": "torch.float32"}
            refuse("no floats", why, on=on, **say)
        mistakes = known_mistakes(one_hot_candidates(ids, size))
        for mistake in mistakes:
            if not expect.close(plain, wanted) and expect.close(plain, mistake.value):
                say = {"got": show(got), "expected": show(wanted)}
                refuse(mistake.name, mistake.why, on=on, **say)
        expect.equal(got, wanted.float(), on=on)
    for bad in (-1, 4, 9):
        on = f"one_hot(tensor([2, {bad}]), 4): there is no column {bad}"
        _expect_refusal(
            lambda bad=bad: student(torch.tensor([2, bad]), 4), on, _hot_nonsense
        )
    for ids in (torch.tensor([0, 3]), torch.tensor([[3], [0]])):
        expect.equal(student(ids, 4), F.one_hot(ids, 4).float(), on=f"ids {show(ids)}")


def _hot_nonsense(value: Data) -> tuple[str, str]:
    if isinstance(value, torch.Tensor) and not value[-1].any():
        return (
            "an id outside becomes a row of zeros",
            "Times a table, such a row gives the zero vector: a bug that nobody sees.",
        )
    return (
        "a negative id takes the last row",
        "An index of -1 means the last row in Python. An id shifted by one would "
        "become an ordinary token without a word.",
    )


@chapter.check(section="embeddings-lookup")
def embedding(student: StudentModule, seed: int = 0) -> None:
    """Parameter, rows times √d_model for ids of any shape, gradient, start."""
    generator = seeded(seed)
    a, b, length, d_model, more = draw_sizes(generator, 5)
    vocab_size = 8 + more
    build = f"Embedding(vocab_size={vocab_size}, d_model={d_model})"
    layer = student.build(vocab_size, d_model)
    _expect_table(layer, (vocab_size, d_model), build)
    weight = normal(generator, vocab_size, d_model)
    layer.load_state_dict({"weight": weight})
    reference = nn.Embedding(vocab_size, d_model, _weight=weight)
    for shape in ((length,), (b, length), (a, b, length)):
        ids = torch.randint(1, vocab_size - 1, shape, generator=generator)
        on = f"{build}, ids {tuple(shape)}"
        why = (
            "Ids (T,) work, ids with a batch do not. Indexing, weight[ids], keeps all "
            "axes of the ids and adds one."
        )
        with _more_axes(len(shape) - 1, why):
            got = layer(ids)
        with torch.no_grad():
            expected = reference(ids) * d_model**0.5
        mistakes = known_mistakes(embedding_candidates(weight, ids))
        expect.equal(got, expected, on=on, mistakes=mistakes)
    ids = torch.tensor([0, vocab_size - 1, 3, 0])
    on = f"{build}, ids {ids.tolist()}"
    why = (
        "The largest id is the number of the last row, vocab_size - 1. Take the row "
        "of the id itself, and build the table with vocab_size rows."
    )
    with _naming("look-up at id + 1", why, "IndexError"):
        got = layer(ids)
    with torch.no_grad():
        expected = reference(ids) * d_model**0.5
    mistakes = known_mistakes(embedding_candidates(weight, ids))
    expect.equal(got, expected, on=on, mistakes=mistakes)
    _expect_table_gradient(layer, reference, generator, build)
    _expect_table_start(student)


def _expect_table(layer: StudentInstance, shape: tuple[int, int], on: str) -> None:
    """Expect one parameter, weight, of this shape."""
    state, names = layer.state_dict(), layer.parameter_names()
    got = ", ".join(f"{name} {tuple(x.shape)}" for name, x in state.items())
    got = got or "nothing in state_dict()"
    say = {"on": on, "got": got, "expected": f"parameter weight {shape}"}
    if any(name.endswith(".weight") for name in names):
        why = (
            "nn.Embedding would do the look-up, but it is what this exercise builds; "
            "its table also starts √d_model times too large. The table itself is the "
            "parameter: self.weight = nn.Parameter(...)."
        )
        refuse("nn.Embedding inside", why, **say)
    if not names:
        why = (
            "An optimiser finds only what is an nn.Parameter and an attribute of the "
            "module. An ordinary tensor or a buffer stays as it was drawn."
        )
        refuse("the table is no parameter", why, **say)
    if "weight" not in names:
        why = "The check loads its own numbers by name: call the parameter weight."
        refuse("the parameter has another name", why, **say)
    if len(names) > 1:
        why = "One table is all that is trained: no bias, no factor."
        refuse("one parameter too many", why, **say)
    if tuple(state["weight"].shape) == shape[::-1]:
        why = (
            "Vectors are rows, and each token has a row: (vocab_size, d_model). "
            "(One of the sources writes the table the other way round.)"
        )
        refuse("the table is transposed", why, **say)
    expect.tensor(state["weight"], shape=shape, what="weight", on=on, dtype=torch.float)


def _expect_table_gradient(
    layer: StudentInstance,
    reference: nn.Embedding,
    generator: torch.Generator,
    build: str,
) -> None:
    """Compare the gradient of the table with that of nn.Embedding."""
    ids = torch.tensor([[4, 0, 4], [2, 4, 6]])
    d_model = reference.embedding_dim
    cotangent = normal(generator, *ids.shape, d_model)
    found = layer.gradients(ids, wrt=(), cotangent=cotangent).parameters["weight"]
    on = f"the gradient of weight; {build}, ids {ids.tolist()}"
    _expect_some_gradient(found, on)
    (wanted,) = torch.autograd.grad(
        (reference(ids) * d_model**0.5 * cotangent).sum(), reference.weight
    )
    mistakes = known_mistakes(gradient_candidates(ids, cotangent, wanted))
    expect.equal(
        found, wanted, on=on, what="the gradient", mistakes=mistakes, tolerance=1e-4
    )


def _expect_table_start(student: StudentModule) -> None:
    vocab_size, d_model = 900, 25
    weight = student.build(vocab_size, d_model).state_dict()["weight"]
    mean, spread = weight.mean().item(), weight.std().item()
    wanted = d_model**-0.5
    say = {
        "on": f"Embedding(vocab_size={vocab_size}, d_model={d_model}), freshly built",
        "got": f"weight with mean {mean:.3f} and standard deviation {spread:.3f}",
        "expected": f"about 0 and 1/√d_model = {wanted:.3f}",
    }
    for condition, name, why in (
        (
            not spread > 1e-4,
            "the rows all start alike",
            "Equal rows make all tokens equal. Start from random numbers.",
        ),
        (
            abs(mean) > 0.2 * wanted,
            "the mean of the start is not 0",
            "torch.rand draws from 0 to 1; torch.randn draws from a normal "
            "distribution with mean 0.",
        ),
        (
            0.9 < spread < 1.1,
            "the table starts too large",
            "With a standard deviation of 1, times √d_model in forward, the vectors "
            "drown the positions, and tied logits have a spread of √d_model. Divide "
            "the numbers by √d_model.",
        ),
        (
            abs(spread * vocab_size**0.5 - 1) < 0.1,
            "divided by √vocab_size",
            "The width of a vector decides how large its entries are, not the number "
            "of tokens: 1/√d_model.",
        ),
        (
            abs(spread * d_model - 1) < 0.1,
            "divided by d_model instead of its root",
            "Then the vectors have a length of 1/√d_model after all. A sum of d_model "
            "squares becomes 1 when each entry has the variance 1/d_model: take the "
            "root.",
        ),
        (
            not 0.93 < spread / wanted < 1.07,
            "another spread at the start",
            "Draw from the standard normal distribution (torch.randn) and divide by "
            "√d_model.",
        ),
    ):
        if condition:
            refuse(name, why, **say)


@chapter.check(section="embeddings-tying")
def weight_tying(student: StudentFunction, seed: int = 0) -> None:
    """PyTorch's linear, leading axes, gradients to hidden states and table."""
    generator = seeded(seed)
    a, b, length, d_model, more = draw_sizes(generator, 5)
    vocab_size = 7 + more
    table = normal(generator, vocab_size, d_model)
    square = normal(generator, 4, 4), normal(generator, 4, 4)
    by_hand = (
        torch.tensor([[1.0, 2.0]]),
        torch.tensor([[1.0, 0.0], [0.0, 3.0], [-1.0, 1.0]]),
    )
    for leading in (None, (), (b,), (a, b)):
        hidden = normal(generator, *(leading or ()), length, d_model)
        inputs = by_hand if leading is None else (hidden, table)
        on = f"hidden {tuple(inputs[0].shape)}, table {tuple(inputs[1].shape)}"
        why = (
            "A matrix (T, d) works, hidden states with a batch do not. The operator @ "
            "and F.linear leave leading axes alone; torch.mm and .T do not."
        )
        with (
            _more_axes(len(leading or ()), why),
            _shapes_explained(student, square, logits_candidates),
        ):
            got = student(*inputs)
        mistakes = known_mistakes(logits_candidates(*inputs))
        expect.equal(got, F.linear(*inputs), on=on, mistakes=mistakes)
    cotangent = normal(generator, a, b, length, vocab_size)
    found = student.gradients(hidden, table, wrt=(0, 1), cotangent=cotangent).inputs
    hidden, table = hidden.requires_grad_(), table.requires_grad_()
    value = (F.linear(hidden, table) * cotangent).sum()
    for name, gradient, wanted in zip(
        ("hidden", "table"),
        found,
        torch.autograd.grad(value, (hidden, table)),
        strict=True,
    ):
        where = f"the gradient with respect to {name}"
        _expect_some_gradient(gradient, where)
        expect.equal(gradient, wanted, on=where, what="the gradient", tolerance=1e-4)


# --- older word vectors ---------------------------------------------------------------


def _by_sklearn(documents: list[list[str]]) -> tuple[torch.Tensor, list[str]]:
    """Compute by scikit-learn, whose formula has 1 more in each logarithm."""
    # slow to import, and needed by this check alone
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

    terms = list(_numbered([token for each in documents for token in each], ()))
    counter = CountVectorizer(analyzer=list, vocabulary=terms, token_pattern=None)
    counts = counter.fit_transform(documents).astype("float64")
    weigh = TfidfTransformer(norm=None, smooth_idf=False)
    matrix = (weigh.fit_transform(counts) - counts).toarray()
    return torch.from_numpy(matrix).float(), terms


@chapter.check(section="embeddings-count-vectors")
def tf_idf(student: StudentFunction, seed: int = 0) -> None:
    """scikit-learn's counts and weights, by hand and on random documents."""
    generator = seeded(seed)
    count, *lengths = draw_sizes(generator, 5)
    stock = ["zebra", "the", "a", "cat", "dog", "sees", "mice", "tea"]
    drawn = [
        [stock[i] for i in _whole(generator, 0, 8, 4 + length)] for length in lengths
    ]
    drawn[0] += ["zebra"] * count
    hand = ["the cat sees the dog", "the dog sleeps", "the cat sleeps"]
    for documents in ([each.split() for each in hand], drawn, [["tea", "tea"]]):
        on = f"tf_idf({_write(documents)})"
        got = student(documents)
        matrix, terms = _by_sklearn(documents)
        got = several(got)
        pair = type(got) is tuple and len(got) == 2
        why = "Two results, separated by a comma: the matrix and the list of terms."
        what = "the result is not a pair of matrix and terms"
        expect.true(pair, what, on=on, got=_write(got), why=why)
        _expect_terms(got[1], terms, on)
        for mistake in known_mistakes(tf_idf_candidates(documents, terms)):
            if expect.close(got[0], matrix):
                break
            if expect.close(got[0], mistake.value):
                say = {"got": show(got[0]), "expected": show(matrix)}
                refuse(mistake.name, mistake.why, on=on, **say)
        expect.equal(
            got[0],
            matrix,
            what="the matrix",
            on=on,
            why="How often the term is in this document, times ln(documents / "
            "documents that hold the term).",
        )


def _expect_terms(got: Data, terms: list[str], on: str) -> None:
    say = {"on": on, "got": _write(got), "expected": _write(terms)}
    listed = isinstance(got, list) and all(isinstance(each, str) for each in got)
    why = "The second result is the list of the terms, each once."
    expect.true(listed, "the terms are no list of strings", why=why, **say)
    if got != terms and got == sorted(terms):
        why = (
            "Right terms, but sorted. In order of first appearance they match the "
            "vocabulary of exercise 1.1: dict.fromkeys keeps that order."
        )
        refuse("terms in alphabetical order", why, **say)
    if len(got) > len(set(got)):
        why = "A term that occurs again gets no second column."
        refuse("a term is listed twice", why, **say)
    if got != terms and set(got) == set(terms):
        why = "Right terms; wanted in order of first appearance (a set has no order)."
        refuse("terms in another order", why, **say)
    expect.true(got == terms, "the terms are wrong", why=why, **say)


@chapter.check(section="embeddings-skip-gram")
def skip_gram_pairs(student: StudentFunction, seed: int = 0) -> None:
    """By hand, repeated ids, windows wider than the text."""
    generator = seeded(seed)
    length, window = _whole(generator, 8, 12, 1)[0], _whole(generator, 2, 4, 1)[0]
    drawn = _whole(generator, 0, 5, length)
    for ids, width in (
        ([5, 2, 7, 9, 3, 8], 3),
        ([5, 2, 7, 2], 1),
        ([4, 4, 6, 4], 1),
        (drawn, window),
        ([3, 1, 4], 6),
        ([3], 2),
        ([], 1),
    ):
        on = f"skip_gram_pairs({ids}, window={width})"
        why = "The last token has no right neighbours: end the window with the text."
        with _naming("the window runs over the end", why, "IndexError"):
            got = student(ids, width)
        expected = [
            (ids[i], ids[j])
            for i in range(len(ids))
            for j in range(len(ids))
            if 1 <= abs(i - j) <= width
        ]
        mixed = isinstance(got, list) and all(isinstance(p, (list, tuple)) for p in got)
        inside = [tuple(pair) for pair in got] if mixed else got
        _expect_data(
            inside,
            expected,
            on=on,
            what="the list of pairs",
            why="(center, context) for every position and every other position at most "
            "`window` away, in the order of the text.",
            candidates=neighbour_candidates(ids, width),
        )


@chapter.check(section="embeddings-skip-gram")
def skip_gram_loss(student: StudentFunction, seed: int = 0) -> None:
    """PyTorch's binary cross-entropy, by hand, large scores, the gradients."""
    generator = seeded(seed)
    batch, draws, width = draw_sizes(generator, 3)
    three = torch.tensor(3.0).log()
    hand = (
        torch.tensor([[1.0, 0.0]]),
        torch.tensor([[three, 2.0]]),
        torch.tensor([[[three, -1.0], [0.0, 5.0]]]),
    )
    drawn = (
        normal(generator, batch, width),
        normal(generator, batch, width),
        normal(generator, batch, draws, width),
    )
    for inputs in (hand, drawn):
        centers, contexts, negatives = (tuple(x.shape) for x in inputs)
        on = f"centers {centers}, contexts {contexts}, negatives {negatives}"
        got = student(*inputs)
        mistakes = known_mistakes(loss_candidates(*inputs))
        expected = _by_cross_entropy(*inputs)
        why = (
            "Each score goes through ln σ with its sign; then the sum over the K "
            "negatives, and the mean over the batch."
        )
        expect.equal(got, expected, what="the loss", on=on, why=why, mistakes=mistakes)
    _expect_stable_loss(student)
    found = student.gradients(*drawn, wrt=(0, 1, 2)).inputs
    inputs = [each.clone().requires_grad_() for each in drawn]
    wanted = torch.autograd.grad(_by_cross_entropy(*inputs), inputs)
    for name, gradient, right in zip(
        ("centers", "contexts", "negatives"), found, wanted, strict=True
    ):
        where = f"the gradient with respect to {name}"
        _expect_some_gradient(gradient, where)
        expect.equal(gradient, right, on=where, what="the gradient")


def _by_cross_entropy(centers, contexts, negatives) -> torch.Tensor:
    """Ask a yes-or-no question of each pair: a true neighbour?"""
    true = torch.einsum("bd,bd->b", centers, contexts)
    false = torch.einsum("bd,bkd->bk", centers, negatives)
    ask = F.binary_cross_entropy_with_logits
    total = ask(true, torch.ones_like(true), reduction="sum")
    total = total + ask(false, torch.zeros_like(false), reduction="sum")
    return total / len(centers)


def _expect_stable_loss(student: StudentFunction) -> None:
    one = torch.ones(1, 1)
    for true, false in ((-200.0, 0.0), (0.0, 200.0)):
        inputs = one, true * one, false * one[None]
        on = f"centers [[1]], contexts [[{true:g}]], negatives [[[{false:g}]]]"
        got, right = student(*inputs), _by_cross_entropy(*inputs)
        if isinstance(got, torch.Tensor) and not got.isfinite().all():
            why = (
                "The sigmoid of -200 is 0 in floating point, and the logarithm of 0 is "
                "-∞. F.logsigmoid takes both steps at once and stays finite."
            )
            say = {"got": show(got), "expected": show(right)}
            refuse("not stable for large scores", why, on=on, **say)
        if isinstance(got, torch.Tensor) and bool((got < 0.9 * right).all()):
            why = (
                "A small number added before the logarithm, or a limit, keeps it "
                "finite, but the worst mistakes then cost, and teach, too little. "
                "F.logsigmoid needs neither."
            )
            say = {"got": show(got), "expected": show(right)}
            refuse("the loss is cut off", why, on=on, **say)
        expect.equal(got, right, what="the loss", on=on, tolerance=1e-4)


# --- patches --------------------------------------------------------------------------


def _kernel(matrix: torch.Tensor, size: int, channels: int) -> torch.Tensor:
    """Put row by row of the matrix in its place."""
    kernel = torch.zeros(matrix.shape[1], channels, size, size)
    for row in range(size):
        for column in range(size):
            for channel in range(channels):
                place = (row * size + column) * channels + channel
                kernel[:, channel, row, column] = matrix[place]
    return kernel


@chapter.check(section="embeddings-patches")
def patch_kernel(student: StudentFunction, seed: int = 0) -> None:
    """The weight row by row, the convolution patch by patch, wrong numbers of rows."""
    generator = seeded(seed)
    size, channels, width = draw_sizes(generator, 3)
    for p, c, d in ((2, 3, 5), (size, channels, width + 6), (3, 1, 4)):
        matrix = normal(generator, p * p * c, d)
        on = f"matrix {tuple(matrix.shape)}, patch_size {p}, channels {c}"
        got = student(matrix, p, c)
        mistakes = known_mistakes(kernel_candidates(matrix, p, c))
        expect.equal(
            got,
            _kernel(matrix, p, c),
            what="the weight",
            on=on,
            why="Row (r · P + c) · C + k of the matrix becomes weight[:, k, r, c].",
            mistakes=mistakes,
        )
        _expect_same_embedding(got, matrix, p, c, generator, on)

    def explain(value: Data) -> tuple[str, str]:
        return (
            "a wrong number of rows is accepted",
            "A patch has P · P · C numbers, and each has one row (16 · 16 · 3 = 768, "
            "not 769). A row left over is somebody's mistake: say so.",
        )

    for rows in (19, 36):
        matrix = normal(generator, rows, 5)
        on = f"matrix ({rows}, 5), patch_size 3, channels 2: a patch has 18 numbers"
        _expect_refusal(lambda matrix=matrix: student(matrix, 3, 2), on, explain)


def _expect_same_embedding(kernel, matrix, p, c, generator, on) -> None:
    """Expect the convolution to give what patches times matrix give."""
    image = normal(generator, 1, c, 2 * p, 3 * p)
    rows = []
    for top in range(0, 2 * p, p):
        for left in range(0, 3 * p, p):
            patch = image[0, :, top : top + p, left : left + p]
            rows.append(torch.stack([patch[k] for k in range(c)], dim=-1).flatten())
    tokens = F.conv2d(image, kernel, stride=p).flatten(2)[0].mT
    on = f"an image {tuple(image.shape)}; {on}"
    wanted = torch.stack(rows) @ matrix
    expect.equal(tokens, wanted, on=on, what="the convolution", tolerance=1e-4)


# --- the slips ------------------------------------------------------------------------

FROM_ONE = (
    "The lecture's rows are w_1 to w_7; Python's are 0 to 6. A table of 7 rows has no "
    "row 7."
)
SLIPS: dict[str, tuple[Data, str, dict]] = {
    "outside": (
        [0],
        "A list: which printed ids are not in {1, ..., 7}?",
        {
            (): ("nothing found outside", "Compare every printed id with 1 to 7."),
            (7,): (
                "the set without its end",
                "{1, ..., 7} contains 7. Another printed id is not in it.",
            ),
            (0, 7): (
                "the set without its end",
                "{1, ..., 7} contains 7; only one printed id is not in it.",
            ),
        },
    ),
    "refused": (
        [7],
        "A list: nn.Embedding(7, 4) has the rows 0 to 6.",
        {
            (0,): ("rows counted from 1", FROM_ONE),
            (): ("rows counted from 1", FROM_ONE),
            (0, 7): (
                "0 counted as no row",
                "0 is the first row in Python, so it is not refused.",
            ),
        },
    ),
    "rows_needed": (
        8,
        "A whole number: the rows start with 0 and must include every printed id.",
        {
            7: ("rows counted from 1", FROM_ONE),
            6: (
                "the tokens counted instead of the rows",
                "The sentence has six tokens, but a table needs a row for each number "
                "up to the largest id.",
            ),
        },
    ),
    "row_of_zero": (
        6,
        "A whole number from 0 to 6: what does Python do with the index -1?",
        {
            -1: (
                "the index instead of the row",
                "-1 is what Python is asked for. Which row does it take, counted from "
                "0?",
            ),
            7: ("rows counted from 1", FROM_ONE),
            0: (
                "the wrong look-up",
                "E[id] takes row 0. Here someone wrote E[id - 1].",
            ),
        },
    ),
    "same_vector": (
        [0, 7],
        "A list of two printed ids, the smaller first, whose id - 1 is the same row.",
        {
            (7, 0): ("the larger id first", "The two are right; the smaller first."),
            (6, 6): (
                "rows instead of ids",
                "That is the row both get. Which two printed ids get it?",
            ),
            (0, 1): (
                "id 0 and id 1 exchanged for the same",
                "id 1 takes row 0, id 0 takes row -1: not the same.",
            ),
        },
    ),
    "decoded": (
        "Bobby mag Brombeeren",
        "A string: four tokens joined, <EOW> a space, no space at the end.",
        {
            "Bobby mag Brombeeren.": (
                "the sentence instead of the decoded text",
                "That is what was meant. Only what is in the tokens can come back.",
            ),
            "Bobby mag Brom beeren": (
                "a space after every token",
                "Brom does not end a word: it has no <EOW>, so no space follows.",
            ),
            "Bobby mag Brombeeren ": (
                "a space left at the end",
                "The last <EOW> became a space, too; drop it.",
            ),
        },
    ),
    "lost": (
        ".",
        "A string of one character: compare the sentence with what came back.",
        {
            "": ("nothing found lost", "Compare the ends of the two texts."),
            " ": (
                "the space instead of the full stop",
                "Every <EOW> gives its space back. Look at the very end.",
            ),
            "<EOW>": (
                "a mark instead of text",
                "<EOW> was never in the sentence; it was added and removed.",
            ),
        },
    ),
}
SENTENCE = "Bobby mag Brombeeren."


@chapter.check(section="embeddings-disagreements")
def find_the_slips(student: StudentFunction, seed: int = 0) -> None:
    """Eight entries about the printed table, each named when a known slip is made."""
    got = student()
    keys = [*SLIPS, "repaired"]
    why = "The function ends without `return`." if got is None else ""
    on = "the result of token_table_slips()"
    expect.true(isinstance(got, dict), "not a dict", on=on, got=show(got), why=why)
    if any(key not in got for key in keys):
        why = "The dict needs every key below 'expected', spelt exactly so."
        say = {"got": f"{list(got)}", "expected": f"{keys}"}
        refuse("an entry is missing", why, on=on, **say)
    for key, (expected, why, slips) in SLIPS.items():
        value, on = got[key], f"the entry {key!r}"
        if isinstance(value, torch.Tensor):
            value = value.tolist()
        value = list(value) if isinstance(value, tuple) else value
        with contextlib.suppress(TypeError):  # what cannot be a key is no known slip
            known = tuple(value) if isinstance(value, list) else value
            if known in slips and type(known) is not bool:
                name, reason = slips[known]
                refuse(name, reason, on=on, got=_write(value))
        if isinstance(expected, list) and type(value) is int:
            why = "A list is wanted, also where it has one element only."
        right = type(value) is type(expected) and value == expected
        expect.true(right, f"{key!r} is wrong", on=on, got=_write(value), why=why)
    _expect_repaired(got["repaired"])


def _expect_repaired(value: Data) -> None:
    on = "the entry 'repaired'"
    value = list(value) if isinstance(value, tuple) else value
    say = {"on": on, "got": _write(value)}
    strings = isinstance(value, list) and all(isinstance(each, str) for each in value)
    why = "A list of strings, from '<sos>' to '<eos>'."
    expect.true(strings, "'repaired' is no list of strings", why=why, **say)
    ends = value[:1] == ["<sos>"] and value[-1:] == ["<eos>"]
    if not ends:
        why = "The list still begins with <sos> and ends with <eos>."
        refuse("the special tokens are gone", why, **say)
    inner = value[1:-1]
    text = "".join(inner)
    if "<EOW>" in text:
        why = (
            "In this course's manner the space itself is kept, before the word it "
            "belongs to. A mark for the end of a word is then not needed."
        )
        refuse("<EOW> still there", why, **say)
    if text == SENTENCE[:-1]:
        why = "The full stop needs a token of its own, or it is lost again."
        refuse("the full stop still has no token", why, **say)
    if text == SENTENCE.replace(" ", ""):
        why = "Joined, the words run into each other. Write ' mag', with its space."
        refuse("the spaces are lost", why, **say)
    expected = f"tokens that, joined, are {SENTENCE!r}"
    what = "'repaired' is wrong"
    expect.true(text == SENTENCE, what, expected=expected, **say)
    if any(token != token.rstrip() for token in inner):
        why = "In this course a space belongs to the word after it, not before it."
        refuse("the space stands behind the word", why, **say)
    if " Brom" not in inner or "beeren" not in inner:
        why = (
            "Keep the cut: ' Brom' and 'beeren' are two tokens, the full stop a third."
        )
        refuse("another cut", why, **say)
