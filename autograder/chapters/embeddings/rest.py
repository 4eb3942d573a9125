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
from autograder.chapters.embeddings.chapter import chapter
from autograder.chapters.embeddings.vocabularies import numbered as _numbered
from autograder.chapters.embeddings_mistakes import (
    Candidate,
    embedding_candidates,
    gradient_candidates,
    kernel_candidates,
    logits_candidates,
    loss_candidates,
    one_hot_candidates,
    tf_idf_candidates,
)
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.naming import known_mistakes
from autograder.exercise.showing import shortened
from autograder.expect import describe_error, refuse, show
from autograder.forms import several
from autograder.interface import (
    Data,
    StudentError,
    StudentFunction,
    StudentInstance,
    StudentModule,
)

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


DEFAULT = None

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
