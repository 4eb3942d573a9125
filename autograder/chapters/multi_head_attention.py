"""Checks of chapter 5, multi-head attention.

The oracles are PyTorch's own layers, values worked out by hand, and properties. A known
mistake is found by computing what it would give on the same input.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator

import torch
from torch import nn

from autograder import expect, forbidden
from autograder.chapters.multi_head_attention_mistakes import (
    State,
    cut,
    grouped_candidates,
    join,
    layer_candidates,
    loop_candidates,
    merge_candidates,
    parameter_candidates,
    per_head,
    removal_candidates,
    repeat_candidates,
    run_layer,
    split_candidates,
    sum_candidates,
    torch_grouped,
    torch_layer,
    torch_state_candidates,
)
from autograder.exercise.inputs import draw_mask, draw_sizes, normal, seeded
from autograder.exercise.naming import Candidate, Mistake, known_mistakes
from autograder.expect import Chapter, CheckFailure, describe_error, refuse, show
from autograder.forms import several
from autograder.interface import (
    Data,
    StudentError,
    StudentFunction,
    StudentInstance,
    StudentModule,
)

chapter = Chapter(5, "05_multi_head_attention")
progress = chapter.progress


# --- shared ---------------------------------------------------------------------------


@contextlib.contextmanager
def _named(
    name: str, why: str, kinds: tuple[str, ...] = (), saying: str = ""
) -> Iterator[None]:
    """Give a failure this name: the answer was right until here.

    With ``kinds``, only exceptions of these kinds are named, and of them only those
    whose text contains ``saying``.
    """
    try:
        yield
    except StudentError as error:
        if error.kind in ("NotImplementedError", "signature", "in-place"):
            raise
        if kinds and (error.kind not in kinds or saying not in error.text):
            raise
        if kinds and "ambiguous" in error.text:
            raise  # a tensor asked for one truth value; that is explained elsewhere
        got = f"{error.kind}: {describe_error(error)}"
        refuse(name, why, on=error.call, got=got)
    except CheckFailure as failure:
        if kinds:
            raise
        seen = f"\nWhat came out looks like: {failure.what}." if failure.mistake else ""
        failure.what, failure.mistake, failure.why = name, name, why + seen
        raise


def _only_a_batch() -> contextlib.AbstractContextManager[None]:
    why = (
        "With a batch it works, with fewer or more axes in front it does not. Count "
        "axes from the end: features −1, tokens −2, and let any number of axes stand "
        "before them."
    )
    return _named("only works with a batch", why)


def _no_mask_handled() -> contextlib.AbstractContextManager[None]:
    why = "There may be no mask. Ask `if mask is not None` before you change it."
    kinds = ("AttributeError", "TypeError")
    return _named("mask=None is not handled", why, kinds, "None")


def _pair_named() -> contextlib.AbstractContextManager[None]:
    why = (
        "A function that returns several things gives a tuple. Take it apart first, as "
        "in z, weights = scaled_dot_product_attention(...)."
    )
    kinds = ("AttributeError", "TypeError")
    return _named("a tuple where a tensor is wanted", why, kinds, "tuple")


def _expect_value(
    got: Data, expected: torch.Tensor, on: str, candidates: Iterable[Candidate]
) -> None:
    """Expect a tensor; known mistakes are named first."""
    expect.equal(got, expected, on=on, mistakes=known_mistakes(candidates))


def _expect_gradient(
    student: StudentFunction, expected: torch.Tensor, inputs: tuple, cotangent, on: str
) -> None:
    """Expect the gradient of the first input."""
    found = student.gradients(*inputs, cotangent=cotangent).inputs[0]
    _expect_some_gradient(found, on)
    expect.equal(found, expected, on=on, what="the gradient")


def _expect_some_gradient(found: torch.Tensor | None, on: str) -> None:
    if found is None:
        why = (
            "The result has lost its connection to the input: .detach(), .data, "
            "torch.no_grad() or a way through NumPy or Python lists cuts it."
        )
        refuse("no gradient comes back", why, on=on, got="None", expected="a tensor")


# --- split and merge ------------------------------------------------------------------


@chapter.check(section="multi-head-split")
def split_heads(student: StudentFunction, seed: int = 0) -> None:
    """Each head's columns of all tokens; any leading axes; what cannot be divided."""
    generator = seeded(seed)
    batch, length, heads, width, more = draw_sizes(generator, 5)
    d = heads * width
    hand = 10.0 * torch.arange(2)[:, None] + torch.arange(6)
    x = normal(generator, batch, length, d)
    _expect_split(student, x, heads)
    with _only_a_batch():
        _expect_split(student, hand, 3, on="the example by hand, x (2, 6), heads 3")
        _expect_split(student, x[0], heads)
        _expect_split(student, normal(generator, more, batch, length, d), heads)
    _expect_split(student, x, 1)
    _expect_split(student, x, d)
    on = f"split_heads(tensor {(length, heads * width + 1)}, {heads})"
    expect.raises(
        "ValueError",
        lambda: student(normal(generator, length, heads * width + 1), heads),
        on=on,
        why="Some features would be left over. Test d % heads yourself, and raise a "
        "ValueError that says what does not fit.",
        mistake="a width that heads does not divide is accepted",
    )
    cotangent = normal(generator, batch, heads, length, width)
    expected, on = join(cotangent), f"the gradient, x {tuple(x.shape)}, heads {heads}"
    _expect_gradient(student, expected, (x, heads), cotangent, on)


def _expect_split(
    student: StudentFunction, x: torch.Tensor, heads: int, on: str = ""
) -> None:
    on = on or f"x {tuple(x.shape)}, heads {heads}"
    got = student(x, heads)
    _expect_value(got, cut(x, heads), on, split_candidates(x, heads))


@chapter.check(section="multi-head-merge")
def merge_heads(student: StudentFunction, seed: int = 0) -> None:
    """The heads side by side; any leading axes; the gradient."""
    generator = seeded(seed)
    batch, length, heads, width, more = draw_sizes(generator, 5)
    why = (
        "view wants the numbers in the order of memory. After an exchange of axes they "
        "are not: use reshape or flatten, which copy when they must."
    )
    name = "view of exchanged axes"
    x = normal(generator, batch, heads, length, width)
    with _named(name, why, ("RuntimeError",), "view size"):
        _expect_merged(student, x)
    head = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with _only_a_batch():
        hand = torch.stack([head, 10 * head])
        _expect_merged(student, hand, on="the example by hand, x (2, 3, 2)")
        _expect_merged(student, x[0])
        _expect_merged(student, normal(generator, more, batch, heads, length, width))
    turned = normal(generator, batch, length, heads, width).transpose(1, 2)
    with _named(name, why, ("RuntimeError",)):
        _expect_merged(student, turned, on=f"x {tuple(turned.shape)}, not contiguous")
    cotangent = normal(generator, batch, length, heads * width)
    on = f"the gradient, x {tuple(x.shape)}"
    _expect_gradient(student, cut(cotangent, heads), (x,), cotangent, on)


def _expect_merged(student: StudentFunction, x: torch.Tensor, on: str = "") -> None:
    on = on or f"x {tuple(x.shape)}"
    _expect_value(student(x), join(x), on, merge_candidates(x))


# --- the loop and the sum -------------------------------------------------------------


@chapter.check(section="multi-head-loop", forbidden=(forbidden.MULTI_HEAD,))
def loop_of_heads(student: StudentFunction, seed: int = 0) -> None:
    """Against PyTorch's attention, with all sizes different, masks, and by hand."""
    generator = seeded(seed)
    t_q, t_k, d_k, d_v, batch, heads = draw_sizes(generator, 6)
    d_model = heads * d_v + 1
    matrices = (
        normal(generator, heads, d_model, d_k) / d_model**0.5,
        normal(generator, heads, d_model, d_k) / d_model**0.5,
        normal(generator, heads, d_model, d_v) / d_model**0.5,
        normal(generator, heads * d_v, d_model) / d_model**0.5,
    )
    x_q = normal(generator, batch, t_q, d_model)
    x_kv = normal(generator, batch, t_k, d_model)
    for q, kv, shape in (
        (x_q[0], x_kv[0], None),
        (x_q, x_kv, None),
        (x_q, x_kv, (batch, 1, t_k)),
        (x_q, x_q, (t_q, t_q)),
        (x_q[None], x_kv[None], (1, batch, t_q, t_k)),
    ):
        mask = shape and draw_mask(generator, *shape)
        inputs = (q, kv, *matrices) if mask is None else (q, kv, *matrices, mask)
        on = f"x_q {tuple(q.shape)}, x_kv {tuple(kv.shape)}, {heads} heads, "
        on += f"d_k {d_k}, d_v {d_v}" + (f", mask {tuple(mask.shape)}" if shape else "")
        expected = join(per_head(q, kv, *matrices[:3], mask)[0]) @ matrices[3]
        no_mask = _no_mask_handled() if mask is None else contextlib.nullcontext()
        with _pair_named(), no_mask:
            got = student(*inputs)
        if isinstance(got, tuple) and got and expect.close(got[0], expected):
            name, why = (
                "a tuple is returned",
                "Return the output alone, no weights.",
            )
            refuse(name, why, on=on, got=show(got), expected="one tensor")
        _expect_value(got, expected, on, loop_candidates(*inputs))
    x = torch.tensor([[3.0, 5.0]])
    anything = normal(generator, 2, 2, 3)
    w_v = torch.tensor([[[1.0], [0.0]], [[0.0], [2.0]]])
    w_o = torch.tensor([[1.0, 1.0], [0.0, -1.0]])
    inputs = (x, x, anything, anything, w_v, w_o)
    hand, on = torch.tensor([[3.0, -7.0]]), "the example by hand"
    _expect_value(student(*inputs), hand, on, loop_candidates(*inputs))
    inputs = (x_q, x_kv, *matrices)
    cotangent = normal(generator, batch, t_q, d_model)
    leaf = x_q.clone().requires_grad_()
    output = join(per_head(leaf, x_kv, *matrices[:3])[0]) @ matrices[3]
    (wanted,) = torch.autograd.grad((output * cotangent).sum(), leaf)
    on = f"the gradient with respect to x_q {tuple(x_q.shape)}"
    _expect_gradient(student, wanted, inputs, cotangent, on)


@chapter.check(section="multi-head-sum")
def sum_over_heads(student: StudentFunction, seed: int = 0) -> None:
    """Against concatenation times w_o; each head alone; by hand; the gradient."""
    generator = seeded(seed)
    batch, length, heads, d_v, d_model, more = draw_sizes(generator, 6)
    w_o = normal(generator, heads * d_v, d_model)
    z = normal(generator, batch, heads, length, d_v)
    _expect_sum(student, z, w_o)
    square = normal(generator, heads * d_v, heads * d_v)
    _expect_sum(student, z, square)
    with _only_a_batch():
        _expect_sum(student, z[0], w_o)
        _expect_sum(student, normal(generator, more, *z.shape), w_o)
    z = torch.tensor([[[1.0, 2.0]], [[3.0, -1.0]]])
    w_o = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [1.0, 1.0]])
    _expect_sum(student, z, w_o, on="the example by hand")
    cotangent = torch.tensor([[1.0, 10.0]])
    wanted = cut(cotangent @ w_o.T, 2)
    _expect_gradient(student, wanted, (z, w_o), cotangent, "the gradient, by hand")


def _expect_sum(
    student: StudentFunction, z: torch.Tensor, w_o: torch.Tensor, on: str = ""
) -> None:
    on = on or f"z {tuple(z.shape)}, w_o {tuple(w_o.shape)}"
    _expect_value(student(z, w_o), join(z) @ w_o, on, sum_candidates(z, w_o))


# --- the layer ------------------------------------------------------------------------


@chapter.check(section="multi-head-layer", forbidden=(forbidden.MULTI_HEAD,))
def multi_head_attention(
    student: StudentModule,
    split_student: StudentFunction,
    merge_student: StudentFunction,
    seed: int = 0,
) -> None:
    """Against nn.MultiheadAttention with the same numbers: masks, cross-attention."""
    with (
        expect.relying_on(merge_heads, merge_student),
        expect.relying_on(split_heads, split_student),
    ):
        _expect_layer(student, seed)


def _expect_layer(student: StudentModule, seed: int) -> None:
    generator = seeded(seed)
    width, *_ = draw_sizes(generator, 1)
    heads, batch, t_q, t_k = 3, 4, 5, 6 + seed % 2
    d = heads * width
    build = f"MultiHeadAttention(d_model={d}, heads={heads})"
    layer = student.build(d, heads)
    matrices = {f"w_{n}": (d, d) for n in "qkvo"}
    shapes = matrices | {f"b_{n}": (d,) for n in "qkvo"}
    _expect_parameters(layer, shapes, build, heads)
    _expect_refusal(student, (d + 1, heads), f"MultiHeadAttention({d + 1}, {heads})")
    state = {
        name: normal(generator, *shape) / (d**0.5 if name[0] == "w" else 1)
        for name, shape in shapes.items()
    }
    layer.load_state_dict(state)

    def draw(*shape: int) -> torch.Tensor:
        return normal(generator, *shape, d)

    def mask(*shape: int) -> torch.Tensor:
        return draw_mask(generator, *shape)

    source = draw(batch, t_k)
    for x_q, x_kv, allowed in (
        (draw(t_q), None, None),
        (draw(batch, t_q), None, None),
        (draw(batch, t_q), source, None),
        (draw(heads, t_q), None, mask(heads, t_q, t_q)),  # B = h
        (draw(heads, t_q), draw(heads, t_k), mask(heads, t_q, t_k)),
        (draw(batch, heads), None, mask(heads, heads)),  # T = h
        (draw(batch, t_q), None, mask(batch, 1, t_q)),
        (draw(batch, t_q), source, mask(batch, 1, t_k)),
        (draw(batch, t_q), source, mask(batch, t_q, t_k)),
        (draw(t_q), draw(t_k), mask(t_q, t_k)),
        (draw(2, batch, t_q), None, None),
        (draw(2, batch, t_q), None, mask(batch, 1, t_q)),
    ):
        _expect_layer_case(
            layer,
            (x_q, x_kv, allowed),
            build,
            lambda *inputs: torch_layer(*inputs[:2], state, heads, *inputs[2:]),
            lambda *inputs: layer_candidates(*inputs[:2], state, heads, *inputs[2:]),
        )
    _expect_empty_row(layer, draw(t_q), state["b_o"], heads, build)

    def compute(x_q, x_kv):
        return run_layer(x_q, x_kv, state, heads)[0]

    _expect_layer_gradients(layer, draw(batch, t_q), source, compute, build, {"b_k"})
    _expect_start(student, (48, 4), "MultiHeadAttention(d_model=48, heads=4)", 4)


def _expect_layer_case(
    layer: StudentInstance,
    inputs: tuple,
    build: str,
    oracle: Callable,
    candidates: Callable,
) -> None:
    """Call the layer; name what its exception or its values tell."""
    x_q, x_kv, mask = inputs
    on = f"{build}, x_q {tuple(x_q.shape)}"
    on += f", x_kv {tuple(x_kv.shape)}" if x_kv is not None else ", x_kv None"
    on += f", mask {tuple(mask.shape)}" if mask is not None else ", no mask"
    given = inputs if mask is not None else inputs[:2] if x_kv is not None else (x_q,)
    unmasked = (
        "The mask has to broadcast to the weights (…, h, T_q, T_k). It comes without "
        "an axis for the heads: mask.unsqueeze(-3) adds it."
    )
    with contextlib.ExitStack() as stack:
        if mask is not None:
            kinds = ("RuntimeError", "IndexError")
            stack.enter_context(_named("mask does not fit the scores", unmasked, kinds))
        elif x_q.ndim > 3:
            why = (
                "Any number of axes may stand before the tokens, here two. Count axes "
                "from the end, as in x.shape[-1] and transpose(-3, -2)."
            )
            stack.enter_context(_named("only works with one batch axis", why))
        elif x_kv is None:
            why = (
                "Called with x_q alone, the layer is self-attention: keys and values "
                "come from x_q; and without a mask everything is allowed."
            )
            kinds = ("AttributeError", "TypeError")
            named = _named("an argument that is None", why, kinds, "None")
            stack.enter_context(named)
        stack.enter_context(_pair_named())
        got = layer(*given)
    full = (x_q, x_q if x_kv is None else x_kv, mask)
    _expect_pair(got, oracle(*full), on, known_mistakes(candidates(*full)))


def _expect_pair(
    got: Data, expected: tuple, on: str, mistakes: Iterable[Mistake]
) -> None:
    """Expect (output, weights); name known mistakes, then look at one after another."""
    if expect.close(got, expected):
        return
    say = {"got": _show_pair(got), "expected": _show_pair(expected)}
    for mistake in mistakes:
        if expect.close(got, mistake.value):
            refuse(mistake.name, mistake.why, on=on, **say)
    got = several(got)
    if not (isinstance(got, tuple) and len(got) == 2):
        why = "The function ends without `return`." if got is None else ""
        what = "the result is not a pair (output, weights)"
        expect.true(False, what, on=on, why=why, **say)
    expect.equal(got[1], expected[1], on=on, what="weights")
    expect.equal(got[0], expected[0], on=on, what="output")


def _show_pair(pair: Data) -> str:
    """Write output and weights by their shapes and first rows."""
    if isinstance(pair, torch.Tensor):
        return f"one tensor {_first_row(pair)}"
    if not isinstance(pair, tuple) or len(pair) != 2:
        return show(pair)
    return "\n".join(
        f"{name:<7} {_first_row(part)}"
        for name, part in zip(("output", "weights"), pair, strict=True)
    )


def _first_row(part: Data) -> str:
    if not isinstance(part, torch.Tensor) or part.dim() < 2 or not part.numel():
        return show(part)
    row = part.reshape(-1, part.shape[-1])[0][:6]
    more = " …" if part.shape[-1] > 6 else ""
    return f"{tuple(part.shape)}, first row {show(row)}{more}"


def _expect_parameters(
    layer: StudentInstance, shapes: dict[str, tuple[int, ...]], on: str, heads: int
) -> None:
    """Expect parameters of these names and shapes, and no others."""
    state, names = layer.state_dict(), layer.parameter_names()
    expected = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
    got = ", ".join(f"{name} {tuple(x.shape)}" for name, x in state.items())
    say = {"on": on, "got": got or "no parameters", "expected": expected}
    missing = [name for name in shapes if name not in names]
    extra = [name for name in names if name not in shapes]
    wrong = [
        name
        for name in shapes
        if name in state and tuple(state[name].shape) != shapes[name]
    ]
    d = shapes["w_q"][0]
    for condition, name, why in (
        (
            any(name.endswith((".weight", "_weight")) for name in names),
            "nn.Linear instead of nn.Parameter",
            "nn.Linear would do the same work, but it hides the matrix and stores its "
            "transpose. Here the matrices themselves are the parameters: "
            "self.w_q = nn.Parameter(...).",
        ),
        (
            bool(missing) and all(name in state for name in missing),
            "the weights are not nn.Parameters",
            f"Not among the parameters: {', '.join(missing)}. A buffer stays as it is; "
            "only an nn.Parameter is trained.",
        ),
        (
            missing == ["w_o", "b_o"] or missing == ["w_o"],
            "no output projection",
            "w_o (d_model, d_model) mixes the heads. Sources 0 and 1 leave it out.",
        ),
        (
            bool(missing) and all(name[0] == "b" for name in missing) and not extra,
            "the biases are missing",
            f"Not there: {', '.join(missing)}. Each projection is x W + b.",
        ),
        (
            bool(missing) and not extra,
            "the weights are not nn.Parameters",
            f"Not among the parameters: {', '.join(missing)}. Only an nn.Parameter "
            "that is an attribute of the module is found by an optimiser.",
        ),
        (
            bool(missing),
            "the parameters have other names",
            "The check loads its own numbers by name: keep the names of the docstring.",
        ),
        (
            bool(extra) and all(name[0] == "b" for name in extra),
            "the projections have a bias",
            "Here y = x W, without a bias.",
        ),
        (
            bool(extra),
            "one parameter too many",
            f"Too much: {', '.join(extra)}.",
        ),
        (
            any(state[name].dim() == 3 for name in wrong),
            "a matrix for each head",
            "Here the heads' matrices stand side by side in one: its columns are cut "
            "after the product, by split_heads.",
        ),
        (
            any(state[name].shape == (d, heads * d) for name in wrong),
            "each head as wide as the model",
            "Heads are d_model/heads wide, so that all of them together are as wide as "
            "the model.",
        ),
        (
            {"w_k", "w_v"} >= set(wrong) != set()
            and all(state[name].shape == (d, d) for name in wrong),
            "keys and values as wide as the queries",
            "There are kv_heads of them, each d_model/heads wide: fewer columns.",
        ),
        (
            {"w_k", "w_v"} >= set(wrong) != set()
            and all(state[name].shape == shapes[name][::-1] for name in wrong),
            "weights stored transposed",
            "Vectors are rows, y = x W, so a matrix is (width in, width out).",
        ),
        (bool(wrong), "parameters of other shapes", f"Look at {', '.join(wrong)}."),
    ):
        if condition:
            refuse(name, why, **say)


def _expect_refusal(student: StudentModule, sizes: tuple, on: str) -> None:
    expect.raises(
        "ValueError",
        lambda: student.build(*sizes) and None,
        on=on,
        why="Heads must all have the same whole width. Say so when the layer is built, "
        "not when it is used: raise ValueError.",
        mistake="a width that heads does not divide is accepted",
    )


def _expect_empty_row(layer: StudentInstance, x, bias, heads: int, build: str) -> None:
    length = x.shape[0]
    mask = torch.ones(length, length, dtype=torch.bool)
    mask[2] = False
    on = f"{build}, x_q {tuple(x.shape)}, a mask whose row 2 is all False"
    output, weights = several(layer(x, x, mask))
    zero = not bias.any()
    left = "the output is zero" if zero else "only b_o comes out"
    for what, value, expected in (
        ("weights[:, 2]", weights[:, 2], torch.zeros(heads, length)),
        ("output[2]", output[2], bias),
    ):
        name = "NaN on fully masked rows"
        why = f"A query that sees nothing has weights of zero, and {left}."
        if value.isfinite().all():
            name = "a large negative number instead of −∞"
            why += (
                " With −1e9 or the like in every place, the row is a row of equal "
                "scores, and all keys share the weight although all are forbidden."
            )
        if not expect.close(value, expected):
            say = {"got": f"{what} = {show(value)}", "expected": show(expected)}
            refuse(name, why, on=on, **say)


def _expect_layer_gradients(
    layer: StudentInstance, x_q, x_kv, compute: Callable, on: str, without: set
) -> None:
    cotangent = torch.ones(x_q.shape).cumsum(-1)
    found = layer.gradients(x_q, x_kv, wrt=(0, 1), cotangent=cotangent, output=0)
    leaves = [x.clone().requires_grad_() for x in (x_q, x_kv)]
    wanted = torch.autograd.grad((compute(*leaves) * cotangent).sum(), leaves)
    for name, got, expected in zip(("x_q", "x_kv"), found.inputs, wanted, strict=True):
        where = f"the gradient with respect to {name}; {on}"
        _expect_some_gradient(got, where)
        expect.equal(got, expected, on=where, what="the gradient", tolerance=1e-3)
    for name, gradient in found.parameters.items():
        where = f"the gradient with respect to {name}; {on}"
        _expect_some_gradient(gradient, where)
        moved = name in without or bool(gradient.abs().sum() > 0)
        expect.true(moved, "the gradient is zero", on=where)


def _expect_start(student: StudentModule, sizes: tuple, on: str, heads: int) -> None:
    """Expect random matrices of the right size, and biases of zero."""
    d = sizes[0]
    on += ", freshly built"
    for name, value in student.build(*sizes).parameters().items():
        spread = value.std().item()
        say = {
            "on": on,
            "got": f"{name} with a standard deviation of {spread:.3f}",
            "expected": f"about 1/√d_model = {d**-0.5:.3f}",
        }
        if name[0] == "b":
            if value.any():
                say["expected"] = "zeros"
                why = "Biases start at 0, so that at first the matrices alone count."
                refuse("the biases do not start at zero", why, **say)
            continue
        if spread > 1.7 * d**-0.5:
            why = (
                "Queries and keys would be too large, and the softmax saturated before "
                "the first step. Divide by √d_model."
            )
            refuse("the weights start too large", why, **say)
        if not spread > 0.01 * d**-0.5:
            why = (
                "Equal or tiny numbers: features and heads get the same gradient and "
                "never become different. Draw with standard deviation 1/√d_model."
            )
            refuse("the weights all start alike", why, **say)
        if not spread > 0.3 * d**-0.5:
            why = (
                "Queries and keys would be small and all scores nearly 0. torch.randn "
                "has a spread of 1: divide by √d_model, not by d_model."
            )
            refuse("the weights start too small", why, **say)
        if name == "w_q":
            pieces = cut(value, heads)
            if expect.close(pieces[0], pieces[1]):
                say["got"] = f"{name}: the columns of head 1 equal those of head 0"
                say["expected"] = "independent random numbers for each head"
                why = (
                    "Heads that start alike get the same gradient and stay alike: "
                    "several heads that do the work of one."
                )
                refuse("all heads start alike", why, **say)


# --- weights from PyTorch -------------------------------------------------------------


@chapter.check(section="multi-head-torch")
def attention_from_torch(student: StudentFunction, seed: int = 0) -> None:
    """Every entry in its place; and the same output as PyTorch's layer."""
    generator = seeded(seed)
    heads, width, length, batch = draw_sizes(generator, 4)
    d = heads * width
    hand = torch.arange(1.0, 13.0).reshape(6, 2)
    for packed, on in (
        (normal(generator, 3 * d, d), f"the state of a layer with d_model = {d}"),
        (hand, "the example by hand"),
    ):
        size = packed.shape[1]
        state = {
            "in_proj_weight": packed,
            "in_proj_bias": normal(generator, 3 * size),
            "out_proj.weight": normal(generator, size, size),
            "out_proj.bias": normal(generator, size),
        }
        _expect_translated(student(state), state, on)
    layer = nn.MultiheadAttention(d, heads, batch_first=True)
    layer.load_state_dict(
        {
            name: normal(generator, *value.shape) / d**0.5
            for name, value in layer.state_dict().items()
        }
    )
    x = normal(generator, batch, length, d)
    got = student({name: x.detach() for name, x in layer.state_dict().items()})
    on = f"nn.MultiheadAttention({d}, {heads}) and its translation, on the same x"
    with torch.no_grad():
        expected = layer(x, x, x)[0]
    expect.equal(run_layer(x, x, got, heads)[0], expected, on=on, what="the output")


def _expect_translated(got: Data, state: State, on: str) -> None:
    d = state["in_proj_weight"].shape[1]
    right = {
        "w_o": state["out_proj.weight"].T,
        "b_o": state["out_proj.bias"],
    }
    for number, name in enumerate("qkv"):
        rows = slice(number * d, (number + 1) * d)
        right[f"w_{name}"] = state["in_proj_weight"][rows].T
        right[f"b_{name}"] = state["in_proj_bias"][rows]
    if not isinstance(got, dict):
        why = "The function ends without `return`." if got is None else ""
        what, wanted = "the result is not a dict", f"{sorted(right)}"
        expect.true(False, what, on=on, got=show(got), expected=wanted, why=why)
    for mistake in known_mistakes(torch_state_candidates(state, right)):
        if expect.close(got, mistake.value) and not expect.close(got, right):
            shown = next(
                n for n in right if n not in got or not expect.close(got[n], right[n])
            )
            there = show(got[shown]) if shown in got else "is not there"
            say = {"got": f"{shown}: {there}", "expected": show(right[shown])}
            refuse(mistake.name, mistake.why, on=on, **say)
    if got.keys() != right.keys():
        name, why = "other names", "Keep the names of the docstring, and no others."
        lost = ", ".join(sorted(right.keys() - got.keys()))
        why = f"Not there: {lost}. {why}" if lost else why
        say = {"got": f"{sorted(map(str, got))}", "expected": f"{sorted(right)}"}
        refuse(name, why, on=on, **say)
    for name, value in right.items():
        expect.equal(got[name], value, on=on, what=repr(name))


# --- counting and removing ------------------------------------------------------------


@chapter.check(section="multi-head-parameters")
def attention_parameters(student: StudentFunction, seed: int = 0) -> None:
    """Against counts by hand, and projection by projection."""
    generator = seeded(seed)
    width, groups, kv_heads = draw_sizes(generator, 3)
    heads = groups * kv_heads
    d = width * heads
    narrow = kv_heads * width
    counted = sum(d * out + out for out in (d, narrow, narrow, d))
    for inputs, expected in (
        ((36, 12, 3), 3330),
        ((6, 3), 168),
        ((6, 3, 1), 112),
        ((512, 8), 1_050_624),
        ((d, heads, kv_heads), counted),
        ((d, heads), 4 * (d * d + d)),
    ):
        on = f"attention_parameters{inputs}"
        why = "kv_heads=None means as many heads of keys and values as of queries."
        with _named("kv_heads=None is not handled", why, ("TypeError",), "None"):
            got = student(*inputs)
        if type(got) in (int, float):
            kv = inputs[2] if len(inputs) > 2 else None
            for mistake in known_mistakes(parameter_candidates(*inputs[:2], kv)):
                if got == mistake.value:
                    say = {"got": f"{got}", "expected": f"{expected}"}
                    refuse(mistake.name, mistake.why, on=on, **say)
            if type(got) is float and got == expected:
                say = {"got": f"{got}", "expected": f"{expected}"}
                why = "A width is a whole number: divide with //."
                refuse("not a whole number", why, on=on, **say)
        why = "Each projection: width in times width out, and biases of width out."
        expect.equal(got, expected, on=on, what="the number", tolerance=0, why=why)


@chapter.check(section="multi-head-ablation")
def without_heads(student: StudentFunction, seed: int = 0) -> None:
    """Rows of the removed heads zero, all others unchanged, in a new matrix."""
    generator = seeded(seed)
    d_v, d_model, _ = draw_sizes(generator, 3)
    heads = 4 if d_v != 4 else 5
    w_o = normal(generator, heads * d_v, d_model)
    for removed in ([1], [0, 1], [heads - 1, 1, 2], [], list(range(heads))):
        _expect_removed(student, w_o, heads, removed)
    square = normal(generator, heads * d_v, heads * d_v)
    _expect_removed(student, square, heads, [2])
    hand = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [1.0, 1.0]])
    _expect_removed(student, hand, 2, [1], "the example by hand, heads 2, removed [1]")


def _expect_removed(
    student: StudentFunction, w_o, heads: int, removed: list[int], on: str = ""
) -> None:
    on = on or f"w_o {tuple(w_o.shape)}, heads {heads}, removed {removed}"
    expected = w_o.clone()
    rows = expected.unflatten(0, (heads, -1))
    rows[removed] = 0.0
    got = student(w_o, heads, list(removed))
    _expect_value(got, expected, on, removal_candidates(w_o, heads, removed))


# --- two look-ups ---------------------------------------------------------------------

LOOKUP_SIZE = 6


@chapter.check(section="multi-head-why")
def two_lookups(student: StudentFunction, seed: int = 0) -> None:
    """Both values in their slots, at every position of random sequences."""
    got = student()
    names = ("w_q", "w_k", "w_v", "w_o")
    if not isinstance(got, dict) or set(got) != set(names):
        why = "The function ends without `return`." if got is None else ""
        why = why or "The dict needs these four keys, spelt exactly so."
        seen = f"{list(got)}" if isinstance(got, dict) else show(got)
        on = "the keys of the result"
        refuse("an entry is missing", why, on=on, got=seen, expected=f"{list(names)}")
    for name in names:
        shape = (LOOKUP_SIZE, LOOKUP_SIZE)
        what = f"the entry {name!r}"
        expect.tensor(got[name], shape=shape, dtype=torch.float32, what=what)
    generator = seeded(seed)
    sequences = [
        _sequence([[0.5, 0, 1], [-1, 1, 0], [2, -1, 1]], a=2, b=0),
        _sequence([[2, 2, 2]] + [[-2, -2, -2]] * 11, a=0, b=5),
        _sequence([[-2, 2, 1]] + [[2, -2, -1]] * 11, a=4, b=0),
    ]
    for length in (2, 3, 5, 8, 12):
        a, b = torch.randperm(length, generator=generator)[:2].tolist()
        values = 4 * torch.rand(length, 3, generator=generator) - 2
        sequences.append(_sequence(values, a, b))
        sequences.append(_sequence(values, b, b))
    for x in sequences:
        if not _found(got, x):
            _explain_lookup(got, x, sequences)


def _sequence(values: torch.Tensor | list, a: int, b: int) -> torch.Tensor:
    """Make tokens (mark A, mark B, value, 1)."""
    values = torch.as_tensor(values, dtype=torch.float32)
    marks = torch.zeros(len(values), 2)
    marks[a, 0] = marks[b, 1] = 1.0
    return torch.cat([marks, values, torch.ones(len(values), 1)], dim=1)


def _look(weights: State, x: torch.Tensor) -> torch.Tensor:
    return run_layer(x, x, weights, 2)[0]


def _wanted(x: torch.Tensor) -> torch.Tensor:
    """Give the two values by the marks: marks as one-hot rows pick them."""
    return (x[:, :2].T @ x[:, 2:5]).reshape(1, 6).expand(len(x), 6)


def _found(weights: State, x: torch.Tensor) -> bool:
    return bool((_look(weights, x) - _wanted(x)).abs().max() <= 1e-3)


def _explain_lookup(weights: State, x: torch.Tensor, sequences: list) -> None:
    """Say what would repair the weights, or what the output is instead."""
    output, wanted = _look(weights, x), _wanted(x)
    error = (output - wanted).abs().amax(-1)
    row = int(error.argmax())
    marks = ", ".join(
        f"mark {n} at {int(x[:, i].argmax())}" for i, n in enumerate("AB")
    )
    say = {
        "on": f"a sequence of {len(x)} tokens, {marks}; output at position {row}",
        "got": show(output[row]),
        "expected": f"{show(wanted[row])}, to within 0.001",
    }

    def repaired(**changed: torch.Tensor) -> bool:
        return all(_found(weights | changed, each) for each in sequences)

    w_q, w_k, w_v, w_o = (weights[name] for name in ("w_q", "w_k", "w_v", "w_o"))
    dealt = torch.tensor([0, 2, 4, 1, 3, 5])
    for condition, name, why in (
        (
            lambda: repaired(w_q=100 * w_q),
            "the attention is not sharp enough",
            "With larger queries the heads would be right: too much weight is left to "
            "the other tokens. Make the entries of w_q (or w_k) larger.",
        ),
        (
            lambda: repaired(w_q=-w_q) or repaired(w_q=-100 * w_q),
            "the heads avoid the marked tokens",
            "With the opposite sign the heads would be right: the marked token has the "
            "smallest score. It must have the largest.",
        ),
        (
            lambda: repaired(w_o=w_o.roll(3, dims=1)),
            "the slots are exchanged",
            "The value of the token with mark A belongs in the first three numbers, "
            "that of mark B in the last three.",
        ),
        (
            lambda: repaired(w_q=w_k, w_k=w_q) or repaired(w_q=100 * w_k, w_k=w_q),
            "queries and keys exchanged",
            "w_q reads the marks and w_k the constant: then every key is the same, and "
            "all tokens get equal weight. The question is constant, the mark answers.",
        ),
        (
            lambda: (
                repaired(w_q=w_q.T, w_k=w_k.T, w_v=w_v.T, w_o=w_o.T)
                or repaired(w_q=w_q.T, w_k=w_k.T, w_v=w_v.T)
            ),
            "weights transposed",
            "Vectors are rows, y = x W: the row of an entry is the coordinate that is "
            "read, its column the feature that is made.",
        ),
        (
            lambda: repaired(
                w_q=w_q[:, dealt],
                w_k=w_k[:, dealt],
                w_v=w_v[:, dealt],
                w_o=w_o[dealt],
            ),
            "features dealt out in turn",
            "Head 0 owns columns 0, 1, 2 (and rows 0, 1, 2 of w_o), head 1 owns 3, 4, "
            "5; not every second one.",
        ),
    ):
        if condition():
            refuse(name, why, **say)
    a, b = wanted[0, :3], wanted[0, 3:]
    zero, mean = torch.zeros(3), x[:, 2:5].mean(0)
    same = "both heads look up the same token"
    why_same = (
        "Both slots hold the value of one token. Head 1 needs a key made of mark B: in "
        "columns 3 to 5 of w_k."
    )
    empty = "one slot stays empty"
    why_empty = (
        "One half of the output is zero. Each head needs its values in w_v and its "
        "rows in w_o: head 1 has columns and rows 3 to 5."
    )
    idle = "one head looks at nothing"
    why_idle = (
        "One slot is right, the other holds the average of all values: that head's "
        "scores are all equal. Head 0 has the columns 0 to 2 of w_q and w_k, head 1 "
        "the columns 3 to 5, and each needs its query and its key there."
    )
    middle, both = (a + b) / 2, a + b
    asked = torch.cat(
        [
            torch.where(x[:, i : i + 1] == 1, value, mean)
            for i, value in enumerate((a, b))
        ],
        dim=1,
    )
    for parts, name, why in (
        ((a, a), same, why_same),
        ((b, b), same, why_same),
        ((a, zero), empty, why_empty),
        ((zero, b), empty, why_empty),
        (
            (middle, middle),
            "the average of both",
            "Each slot holds the average of the two values: a head shares its weight "
            "between both marks. One mark for each head.",
        ),
        (
            (both, both),
            "the heads are added up",
            "Both heads write into the same numbers. In w_o head 0 (rows 0 to 2) goes "
            "to columns 0 to 2, head 1 (rows 3 to 5) to columns 3 to 5.",
        ),
        (
            (both, zero),
            "the heads are added up",
            "Both heads write into the first three numbers. In w_o head 1 (rows 3 to "
            "5) goes to columns 3 to 5.",
        ),
        ((a, mean), idle, why_idle),
        ((mean, b), idle, why_idle),
        (
            (middle, mean),
            "both marks in head 0",
            "Head 0 looks at both marked tokens, head 1 at nothing. The columns 0 to 2 "
            "of w_q and w_k belong to head 0, the columns 3 to 5 to head 1: the query "
            "and the key for mark B stand there.",
        ),
        (
            (mean, mean),
            "all tokens get the same weight",
            "Each slot holds the average of all values: the scores do not depend on "
            "the marks. w_k has to read the coordinates 0 and 1.",
        ),
        (
            asked,
            "only the marked tokens ask",
            "At a marked token its slot is right, elsewhere it is the average of all: "
            "the queries are made of the marks. Every token has to ask: make the query "
            "of coordinate 5, which is 1 for all.",
        ),
    ):
        wrong = parts if isinstance(parts, torch.Tensor) else torch.cat(parts)
        if bool((output - wrong).abs().max() <= 2e-3):
            refuse(name, why, **say)
    why = (
        "Look at one head alone: does its weight fall on the marked token, and do w_v "
        "and w_o carry the coordinates 2 to 4 to its place in the output?"
    )
    expect.true(False, "the output is not the two values", why=why, **say)


# --- shared heads ---------------------------------------------------------------------


@chapter.check(section="multi-head-grouped")
def repeat_heads(student: StudentFunction, seed: int = 0) -> None:
    """Copies side by side along the heads; any leading axes; the gradient."""
    generator = seeded(seed)
    batch, kv_heads, length, width, times, more = draw_sizes(generator, 6)
    x = normal(generator, batch, kv_heads, length, width)
    _expect_repeated(student, x, times)
    _expect_repeated(student, x, 1)
    with _only_a_batch():
        hand = torch.tensor([[[1.0, 2.0]], [[3.0, 4.0]]])
        _expect_repeated(student, hand, 3, "two heads of one token, three times")
        _expect_repeated(student, x[0], times)
        _expect_repeated(student, normal(generator, more, *x.shape), times)
    cotangent = normal(generator, batch, kv_heads * times, length, width)
    wanted = cotangent.unflatten(1, (kv_heads, times)).sum(2)
    on = f"the gradient, x {tuple(x.shape)}, times {times}"
    _expect_gradient(student, wanted, (x, times), cotangent, on)


def _expect_repeated(
    student: StudentFunction, x: torch.Tensor, times: int, on: str = ""
) -> None:
    on = on or f"x {tuple(x.shape)}, times {times}"
    heads = [x.select(-3, i // times) for i in range(x.shape[-3] * times)]
    expected = torch.stack(heads, dim=-3)
    _expect_value(student(x, times), expected, on, repeat_candidates(x, times))


@chapter.check(section="multi-head-grouped", forbidden=(forbidden.MULTI_HEAD,))
def grouped_query_attention(
    student: StudentModule,
    split_student: StudentFunction,
    merge_student: StudentFunction,
    repeat_student: StudentFunction,
    seed: int = 0,
) -> None:
    """Against PyTorch's grouped attention, from one kv head to as many as heads."""
    with (
        expect.relying_on(repeat_heads, repeat_student),
        expect.relying_on(merge_heads, merge_student),
        expect.relying_on(split_heads, split_student),
    ):
        for heads, kv_heads in ((6, 2), (4, 1), (3, 3)):
            _expect_grouped(student, heads, kv_heads, seed)
        on = "GroupedQueryAttention(d_model={}, heads={}, kv_heads={})"
        for sizes in ((13, 4, 2), (12, 6, 4)):
            _expect_refusal(student, sizes, on.format(*sizes))
        _expect_start(student, (48, 4, 2), on.format(48, 4, 2), 4)


def _expect_grouped(
    student: StudentModule, heads: int, kv_heads: int, seed: int
) -> None:
    generator = seeded(seed)
    width, batch, t_q, t_k = 2 + seed % 2, 4, 5, 7
    d, narrow = heads * width, kv_heads * width
    build = f"GroupedQueryAttention(d_model={d}, heads={heads}, kv_heads={kv_heads})"
    layer = student.build(d, heads, kv_heads)
    shapes = {"w_q": (d, d), "w_k": (d, narrow), "w_v": (d, narrow), "w_o": (d, d)}
    _expect_parameters(layer, shapes, build, heads)
    state = {name: normal(generator, *shape) / d**0.5 for name, shape in shapes.items()}
    layer.load_state_dict(state)

    def draw(*shape: int) -> torch.Tensor:
        return normal(generator, *shape, d)

    def mask(*shape: int) -> torch.Tensor:
        return draw_mask(generator, *shape)

    def oracle(x_q, x_kv, mask=None):
        return torch_grouped(x_q, x_kv, state, heads, kv_heads, mask)

    def candidates(x_q, x_kv, mask=None):
        return grouped_candidates(x_q, x_kv, state, heads, kv_heads, mask)

    why = (
        f"{heads} heads of queries meet {kv_heads} of keys and values. With one kv "
        "head they broadcast, else they do not: repeat_heads gives each query head "
        "its copy."
    )
    for x_q, x_kv, allowed in (
        (draw(batch, t_q), None, None),
        (draw(t_q), None, None),
        (draw(batch, t_q), draw(batch, t_k), None),
        (draw(heads, t_q), draw(heads, t_k), mask(heads, t_q, t_k)),  # B = h
        (draw(batch, heads), None, mask(heads, heads)),  # T = h
        (draw(batch, t_q), draw(batch, t_k), mask(batch, 1, t_k)),
        (draw(2, batch, t_q), None, mask(t_q, t_q)),
    ):
        with (
            _named("keys and values are not repeated", why, ("RuntimeError",))
            if allowed is None
            else contextlib.nullcontext()
        ):
            _expect_layer_case(layer, (x_q, x_kv, allowed), build, oracle, candidates)
    _expect_empty_row(layer, draw(t_q), torch.zeros(d), heads, build)

    def compute(x_q, x_kv):
        return oracle(x_q, x_kv)[0]

    inputs = draw(batch, t_q), draw(batch, t_k)
    _expect_layer_gradients(layer, *inputs, compute, build, set())
