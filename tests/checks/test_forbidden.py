"""What an exercise forbids fails with a message, however a student's code reaches it.

And nothing else does: neither the check's own use of it, nor anything after the call.
"""

import ast
import importlib
import inspect
import pkgutil
import sys
import threading

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import autograder.chapters
from autograder import forbidden
from autograder.expect import Chapter, CheckFailure
from autograder.interface import LocalFunction, StudentError, StudentFunction
from tests import chapters

ATTENTION = (forbidden.SCALED_DOT_PRODUCT, forbidden.MULTI_HEAD)
LAYERS = (forbidden.TRANSFORMER, forbidden.ENCODER_LAYER, forbidden.DECODER_LAYER)
CHECK = Chapter(0, "00_example")

kept = F.scaled_dot_product_attention
method = torch.Tensor.softmax
heads = nn.MultiheadAttention(4, 2)  # these are made before any check
layer = nn.TransformerEncoderLayer(4, 2, 8).eval()


@torch.jit.script
def compiled(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)


def by_its_name(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


def by_another_name(q, k, v):
    return kept(q, k, v)


def by_parts_of_its_name(q, k, v):
    module = importlib.import_module("torch.nn." + "functional")
    return getattr(module, "scaled_dot_product_" + "attention")(q, k, v)


def below_the_public_functions(q, k, v):
    return torch._C._nn.scaled_dot_product_attention(q, k, v)


def by_the_dispatcher(q, k, v):
    return torch.ops.aten.scaled_dot_product_attention.default(q, k, v)


def by_an_inner_step(q, k, v):
    return torch.ops.aten._scaled_dot_product_attention_math(q, k, v)[0]


def compiled_before(q, k, v):
    return compiled(q, k, v)


def in_vmap(q, k, v):
    return torch.vmap(kept)(q, k, v)


def in_inference_mode(q, k, v):
    with torch.inference_mode():
        return kept(q + 0, k + 0, v + 0)


def of_nested_tensors(q, k, v):
    nested = [torch.nested.nested_tensor(list(each[None])) for each in (q, k, v)]
    return kept(*nested)[0]


def by_flexible_attention(q, k, v):
    from torch.nn.attention.flex_attention import flex_attention

    return flex_attention(q[None], k[None], v[None])[0]


def with_many_heads(q, k, v):
    return nn.MultiheadAttention(4, 2)(q, k, v)[0]


def with_heads_made_before(q, k, v):
    return heads(q, k, v)[0]


def without_the_module(q, k, v):
    return nn.MultiheadAttention.forward(heads, q, k, v)[0]


def by_the_function_of_the_module(q, k, v):
    weights = torch.ones(12, 4), torch.zeros(12), None, None, False, 0.0
    last = torch.eye(4), torch.zeros(4)
    return F.multi_head_attention_forward(q, k, v, 4, 2, *weights, *last)[0]


def of_a_class_derived_from_it(q, k, v):
    class Mine(nn.MultiheadAttention):
        pass

    return Mine(4, 2)(q, k, v)[0]


def and_goes_on(q, k, v):
    try:
        return kept(q, k, v)
    except Exception:
        return (q @ k.mT / 2).softmax(-1) @ v


def in_a_thread(q, k, v):
    found = [v]
    thread = threading.Thread(target=lambda: found.append(kept(q, k, v)))
    thread.start()
    thread.join()
    return found[-1]


WAYS = [
    by_its_name,
    by_another_name,
    by_parts_of_its_name,
    below_the_public_functions,
    by_the_dispatcher,
    by_an_inner_step,
    compiled_before,
    in_vmap,
    in_inference_mode,
    of_nested_tensors,
    by_flexible_attention,
    with_many_heads,
    with_heads_made_before,
    without_the_module,
    by_the_function_of_the_module,
    of_a_class_derived_from_it,
    and_goes_on,
    in_a_thread,
]


def call(function, names: tuple[str, ...], *arguments) -> None:
    student = LocalFunction(function, function.__name__)
    student.forbidden = names
    student(*arguments)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("way", WAYS)
def test_pytorchs_own_attention_is_refused(way) -> None:
    q = torch.randn(2, 3, 4)
    with pytest.raises(StudentError) as caught:
        call(way, ATTENTION, q, q, q)
    assert caught.value.kind == "forbidden"
    assert caught.value.text.startswith(
        ("uses torch.nn.functional.s", "uses torch.nn.M")
    )
    call(way, (), q, q, q)  # where it is not forbidden, it works


@pytest.mark.parametrize(
    "way",
    [
        lambda x: torch.softmax(x, -1),
        lambda x: F.softmax(x, -1, dtype=torch.float64),
        lambda x: method(x, -1),
        lambda x: nn.Softmax(-1)(x),
        lambda x: torch.softmax(x, -1, out=torch.empty(2, 3)),
        lambda x: torch.special.softmax(x, -1),
        lambda x: F.softmin(-x, -1),
        lambda x: x.log_softmax(-1).exp(),
        lambda x: (-F.cross_entropy(x, torch.tensor([0, 1]), reduction="none")).exp(),
        lambda x: torch.func.grad(lambda y: y.softmax(-1)[0, 0])(x),
        lambda x: torch.sparse.softmax(x.to_sparse(), -1).to_dense(),
    ],
)
def test_pytorchs_own_softmax_is_refused(way) -> None:
    x = torch.randn(2, 3)
    with pytest.raises(StudentError, match=r"uses torch\.softmax, which"):
        call(way, (forbidden.SOFTMAX,), x)
    call(way, (), x)


@pytest.mark.parametrize(
    ("name", "way"),
    [
        (forbidden.LAYER_NORM, lambda x: nn.LayerNorm(4)(x)),
        (
            forbidden.LAYER_NORM,
            lambda x: torch.native_layer_norm(x, [4], None, None, 0),
        ),
        (forbidden.RMS_NORM, lambda x: nn.RMSNorm(4)(x)),
        (forbidden.GELU, lambda x: nn.GELU()(x)),
        (forbidden.GELU, lambda x: torch.ops.aten.gelu_(x + 0)),
        (forbidden.ENCODER_LAYER, lambda x: layer(x)),
        (forbidden.ENCODER_LAYER, lambda x: nn.TransformerEncoder(layer, 1)(x)),
        (forbidden.DECODER_LAYER, lambda x: nn.TransformerDecoderLayer(4, 2)(x, x)),
        (forbidden.TRANSFORMER, lambda x: nn.Transformer(4, 2)(x, x)),
    ],
)
def test_layers_are_refused(name: str, way) -> None:
    x = torch.randn(2, 3, 4)
    with pytest.raises(StudentError, match=f"uses {name}, which"):
        call(way, (name,), x)
    call(way, (), x)


def test_every_known_name_is_tried_above() -> None:
    tree = ast.parse(inspect.getsource(sys.modules[__name__]))
    tried = {
        getattr(forbidden, node.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in vars(forbidden)
    }
    names = {value for key, value in vars(forbidden).items() if key[0].isupper()}
    names = {value for value in names if isinstance(value, str)}
    assert names == tried & names


def test_the_message_says_what_where_and_what_to_do() -> None:
    @CHECK.check(section="here", forbidden=ATTENTION)
    def attention(student: StudentFunction) -> None:
        q = torch.ones(1, 3, 4)
        expected = F.scaled_dot_product_attention(q, q, q)  # the check's own
        assert torch.equal(student(q, q, q), expected)

    with pytest.raises(CheckFailure) as caught:
        attention(by_another_name)
    message = str(caught.value)
    assert "uses torch.nn.functional.scaled_dot_product_attention, which" in message
    assert "return kept(q, k, v)" in message
    assert "Write it from PyTorch's simpler operations" in message
    assert caught.value.mistake == caught.value.what


def test_a_right_answer_is_let_through_and_its_gradients_are_right() -> None:
    def attend(q, k, v):
        scores = q @ k.mT / 2
        return scores.softmax(-1) @ v

    student = LocalFunction(attend, "attend")
    student.forbidden = ATTENTION + LAYERS
    q = torch.randn(2, 3, 4)
    found = student.gradients(q, q, q, wrt=(0,))
    q.requires_grad_()
    F.scaled_dot_product_attention(q, q.detach(), q.detach()).sum().backward()
    assert torch.allclose(found.inputs[0], q.grad, atol=1e-5)


def test_a_forbidden_backward_pass_is_refused() -> None:
    class Mine(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            return x + 0

        @staticmethod
        def backward(context, gradient):
            return gradient.softmax(-1)

    student = LocalFunction(Mine.apply, "mine")
    student.forbidden = (forbidden.SOFTMAX,)
    with pytest.raises(StudentError, match=r"uses torch\.softmax"):
        student.gradients(torch.ones(2, 3))


def test_all_is_as_before_afterwards() -> None:
    with forbidden.while_running(ATTENTION + LAYERS + (forbidden.SOFTMAX,)) as used:
        with pytest.raises(Exception, match=r"uses torch\.softmax"):
            torch.ones(3).softmax(-1)
        with pytest.raises(Exception, match=r"uses torch\.nn\.Transformer,"):
            nn.Transformer(4, 2)
    assert used == [forbidden.SOFTMAX, forbidden.TRANSFORMER]
    assert torch.ones(2).softmax(-1).tolist() == [0.5, 0.5]
    q = torch.ones(1, 3, 4)
    assert F.scaled_dot_product_attention(q, q, q).tolist() == q.tolist()
    assert heads(q, q, q)[0].shape == layer(q).shape == q.shape
    assert nn.Transformer(4, 2, 1, 1, 8)(q, q).shape == q.shape


def test_an_unknown_name_is_an_error_of_the_course() -> None:
    with pytest.raises(KeyError, match=r"does not know torch\.nothing"):
        call(by_its_name, ("torch.nothing",), *3 * [torch.ones(3, 4)])


def checks_that_forbid() -> list[tuple[int, str, tuple[str, ...]]]:
    """List the chapter, the name and the forbidden names of every such check."""
    found = []
    for module in pkgutil.iter_modules(autograder.chapters.__path__):
        checks = importlib.import_module(f"autograder.chapters.{module.name}")
        for name, value in vars(checks).items():
            if getattr(value, "forbidden", ()) and callable(value):
                found.append((value.chapter, name, value.forbidden))
    return found


@pytest.mark.parametrize(("number", "check", "names"), checks_that_forbid())
def test_an_exercise_says_what_it_forbids(number: int, check: str, names) -> None:
    chapter = next(
        each for each in chapters.CHAPTERS if each.startswith(f"{number:02}")
    )
    exercise = next(
        exercise
        for exercise in chapters.source(chapter).exercises
        if any(
            f"check.{check}(" in text
            for text in chapters.check_cells(chapter, exercise.name, hidden=True)
        )
    )
    words = "it does" if len(names) == 1 else "they do"
    sentence = (
        f"**Forbidden.** {', '.join(f'`{name}`' for name in names)}: {words} what you "
        "are asked to write."
    )
    cells = chapters.source(chapter).cells
    said = [cell.options["exercise"] for cell in cells if sentence in cell.text]
    assert exercise.name in said
