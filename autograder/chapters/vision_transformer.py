"""Checks of chapter 8, the Vision Transformer.

The oracles are PyTorch's own unfold, fold, conv2d and encoder with the same weights,
scikit-learn's PCA, loops over pixels, values worked out by hand, and properties. A
known mistake is found by computing what it would give on the same input.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator

import torch
import torch.nn.functional as F
from sklearn.decomposition import PCA
from torch import nn

from autograder import expect
from autograder.chapters.vision_transformer_mistakes import (
    State,
    Vision,
    convolution_candidates,
    cutmix_candidates,
    interpolate_candidates,
    mixup_candidates,
    pasted,
    patch_embedding_candidates,
    patchify_candidates,
    principal_candidates,
    receptive_candidates,
    rollout_candidates,
    shift_brute,
    shift_candidates,
    under,
    unpatchify_candidates,
    vision_candidates,
)
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.naming import Mistake, known_mistakes
from autograder.expect import Chapter, describe_error, refuse, refuse_if, show
from autograder.interface import (
    Data,
    StudentError,
    StudentFunction,
    StudentInstance,
    StudentModule,
)

chapter = Chapter(8, "08_vision_transformer")
progress = chapter.progress

DEEP = 3e-5  # tolerance of what has gone through several matrices in float32


# --- shared ---------------------------------------------------------------------------


@contextlib.contextmanager
def _error_named(words: Iterable[str], name: str, why: str) -> Iterator[None]:
    """Name the mistake behind an exception whose text holds one of the words."""
    try:
        yield
    except StudentError as error:
        if error.kind == "NotImplementedError" or not any(
            word in error.text for word in words
        ):
            raise
        got = f"{error.kind}: {describe_error(error)}"
        refuse(name, why, on=error.call, got=got)


def _expect_gradients(found: dict[str, torch.Tensor | None], on: str) -> None:
    """Expect that a gradient reached every input and parameter."""
    why = (
        "A step cut the result off from it, so it could not learn. Stay in PyTorch: no "
        ".detach(), .data, .item(), .numpy(), torch.no_grad() and no torch.tensor(...) "
        "of a tensor."
    )
    for name, gradient in found.items():
        where = f"the gradient with respect to {name}; {on}"
        say = {"on": where, "got": "None", "expected": "a tensor"}
        refuse_if(gradient is None, "no gradient comes back", why, **say)


def _names(state: State) -> str:
    return ", ".join(f"{name} {tuple(x.shape)}" for name, x in state.items())


Special = Callable[[State, set[str], set[str]], Iterable[tuple[bool, str, str]]]


def _expect_parameters(
    student: StudentInstance,
    shapes: dict[str, tuple[int, ...]],
    on: str,
    special: Special = lambda state, missing, extra: (),
) -> None:
    """Expect parameters of these names and shapes, and no others.

    ``special`` yields (whether, name, why) for the mistakes of one exercise, given the
    state dict, the names that are missing and those that are too many.
    """
    state, trained = student.state_dict(), set(student.parameter_names())
    missing, extra = set(shapes) - trained, trained - set(shapes)
    wrong = {n for n in shapes if n not in missing and state[n].shape != shapes[n]}
    notable = sorted(missing | extra | wrong) or sorted(shapes)
    wanted = {n: s for n, s in shapes.items() if n in notable[:6] or len(shapes) < 6}
    had = {n: x for n, x in state.items() if n in notable[:6] or len(state) < 6}
    say = {
        "on": on,
        "got": _names(had) or f"{len(trained)} parameters, none of these",
        "expected": ", ".join(f"{n} {s}" for n, s in wanted.items())
        or f"{len(shapes)} parameters, none of these",
    }
    for condition, name, why in special(state, missing, extra):
        refuse_if(condition, name, why, **say)
    why = (
        "PyTorch's modules would do the same work, but they keep their numbers in "
        "another order. Here the matrix itself is the parameter: nn.Parameter."
    )
    inside = bool(missing) and any(
        name.endswith(".weight") and name not in shapes for name in extra
    )
    refuse_if(inside, "PyTorch's module in place of your own", why, **say)
    lost = ", ".join(sorted(missing)[:5])
    why = (
        f"Not among the parameters: {lost}. Only an nn.Parameter, or a module, that "
        "is an attribute of the module is found by an optimiser."
    )
    refuse_if(bool(missing) and not extra, "parameters are missing", why, **say)
    why = "The check loads its own numbers by name: keep the names of the docstring."
    refuse_if(bool(missing), "the parameters have other names", why, **say)
    why = f"Not asked for: {', '.join(sorted(extra)[:5])}."
    refuse_if(bool(extra), "one parameter too many", why, **say)
    turned = all(state[name].shape == shapes[name][::-1] for name in wrong)
    why = "Vectors are rows, y = x W, so a matrix is (width in, width out)."
    refuse_if(bool(wrong) and turned, "weights stored transposed", why, **say)
    why = f"Look at {', '.join(sorted(wrong)[:5])}."
    refuse_if(bool(wrong), "parameters of other shapes", why, **say)


def _images(
    generator: torch.Generator, channels: int = 3
) -> tuple[torch.Tensor, int, tuple[int, int]]:
    """Draw images that are not square, a patch size, and the grid of patches."""
    others = [size for size in draw_sizes(generator, 6) if size != channels]
    p = next(size for size in others if size < 6)
    others.remove(p)
    b, rows, columns = others[:3]
    images = normal(generator, b, channels, rows * p, columns * p)
    return images, p, (rows, columns)


# --- patches --------------------------------------------------------------------------


def _patches(images: torch.Tensor, p: int) -> torch.Tensor:
    """Cut by PyTorch's unfold, which puts channels first."""
    columns = F.unfold(images, p, stride=p)  # (B, C·P·P, N)
    split = columns.unflatten(1, (images.shape[1], p * p))
    return split.permute(0, 3, 2, 1).flatten(2).contiguous()


def _together(rows: torch.Tensor, p: int, height: int, width: int) -> torch.Tensor:
    """Put together by PyTorch's fold."""
    split = rows.unflatten(2, (p * p, -1)).permute(0, 3, 2, 1)  # (B, C, P·P, N)
    return F.fold(split.flatten(1, 2), (height, width), p, stride=p)


def _count_up(b: int, channels: int, height: int, width: int) -> torch.Tensor:
    """Make an image of the numbers 0, 1, 2, ..., each channel 10 higher."""
    first = torch.arange(float(height * width)).view(1, 1, height, width)
    offset = 10 * torch.arange(float(channels)).view(1, channels, 1, 1)
    return (first + offset).repeat(b, 1, 1, 1)


@chapter.check(section="vision-patches")
def patchify(student: StudentFunction, seed: int = 0) -> None:
    """By hand, PyTorch's unfold, grey and colour, refusals, the gradient."""
    _check_patchify(student, seed)


@chapter.check(section="vision-patches")
def _patchify_alone(student: StudentFunction, seed: int = 0) -> None:
    _check_patchify(student, seed)


def _check_patchify(student: StudentFunction, seed: int) -> None:
    hand = _count_up(1, 2, 2, 4)
    grey = torch.tensor([[[0.0, 1, 4, 5], [2, 3, 6, 7]]])
    both = [[0.0, 10, 1, 11, 4, 14, 5, 15], [2, 12, 3, 13, 6, 16, 7, 17]]
    for image, right, on in (
        (hand[:, :1].contiguous(), grey, "the example by hand, one channel"),
        (hand, torch.tensor([both]), "the example by hand, two channels"),
    ):
        known = patchify_candidates(image, 2)
        expect.equal(student(image, 2), right, on=on, mistakes=known_mistakes(known))
    generator = seeded(seed)
    for channels in (3, 1, 4):
        images, p, _ = _images(generator, channels)
        on = f"images {tuple(images.shape)}, patch size {p}"
        known = patchify_candidates(images, p)
        expect.equal(
            student(images, p),
            _patches(images, p),
            on=on,
            mistakes=known_mistakes(known),
        )
    on = f"images {tuple(hand.shape)}, patch size 1: every pixel is a patch"
    expect.equal(student(hand, 1), _patches(hand, 1), on=on)
    _expect_no_remainder(lambda image, p: student(image, p))
    images, p, _ = _images(generator)
    cotangent = normal(generator, *_patches(images, p).shape)
    found = student.gradients(images, p, cotangent=cotangent).inputs[0]
    on = f"images {tuple(images.shape)}, patch size {p}"
    _expect_gradients({"images": found}, on)
    right = _together(cotangent, p, *images.shape[2:])
    expect.equal(found, right, on=on, what="the gradient")


def _expect_no_remainder(call: Callable[[torch.Tensor, int], Data]) -> None:
    why = (
        "Rows or columns would be left over. Count with patch_count, which raises the "
        "ValueError, before anything is cut."
    )
    for height, width in ((7, 6), (6, 7), (8, 7)):
        expect.raises(
            "ValueError",
            lambda size=(height, width): call(torch.zeros(1, 3, *size), 3),
            on=f"an image of {height} x {width} pixels, patch size 3",
            why=why,
            mistake="no ValueError for a remainder",
        )


@chapter.check(section="vision-patches")
def unpatchify(student: StudentFunction, seed: int = 0) -> None:
    """By hand, PyTorch's fold, there and back again, refusals, the gradient."""
    rows = torch.tensor([[[0.0, 1, 4, 5], [2, 3, 6, 7]]])
    wide = torch.tensor([[[[0.0, 1, 2, 3], [4, 5, 6, 7]]]])
    high = torch.tensor([[[[0.0, 1], [4, 5], [2, 3], [6, 7]]]])
    for right in (wide, high):
        size = tuple(right.shape[2:])
        on = f"the example by hand, {size[0]} x {size[1]} pixels"
        known = unpatchify_candidates(rows, 2, *size)
        expect.equal(
            student(rows, 2, *size), right, on=on, mistakes=known_mistakes(known)
        )
    generator = seeded(seed)
    for channels in (3, 1, 4):
        images, p, _ = _images(generator, channels)
        size = tuple(images.shape[2:])
        rows = _patches(images, p)
        on = f"patches {tuple(rows.shape)} of size {p}, {size[0]} x {size[1]} pixels"
        known = unpatchify_candidates(rows, p, *size)
        right = _together(rows, p, *size)  # the images again
        expect.equal(
            student(rows, p, *size), right, on=on, mistakes=known_mistakes(known)
        )
    why = (
        "These patches do not make such an image. Compare N with patch_count; a "
        "reshape with -1 would silently make up other channels."
    )
    for n, height, width in ((6, 2, 6), (6, 8, 6), (4, 4, 5)):
        expect.raises(
            "ValueError",
            lambda n=n, size=(height, width): student(torch.zeros(2, n, 12), 2, *size),
            on=f"{n} patches of size 2, {height} x {width} pixels",
            why=why,
            mistake="no ValueError for another number of patches",
        )
    rows = normal(generator, *rows.shape)
    cotangent = normal(generator, *images.shape)
    found = student.gradients(rows, p, *size, cotangent=cotangent).inputs[0]
    _expect_gradients({"patches": found}, on)
    right = _patches(cotangent, p)
    expect.equal(found, right, on=on, what="the gradient")


def _kernel(weight: torch.Tensor, p: int, channels: int) -> torch.Tensor:
    """Arrange the matrix of a patch embedding as the weight of a convolution."""
    return weight.unflatten(0, (p, p, channels)).permute(3, 2, 0, 1).contiguous()


@chapter.check(section="vision-embedding")
def patch_embedding(
    student: StudentModule, patchify_student: StudentFunction, seed: int = 0
) -> None:
    """Parameters, by hand, PyTorch's convolution of stride P, gradients."""
    with expect.relying_on(_patchify_alone, patchify_student):
        _check_patch_embedding(student, seed)


@chapter.check(section="vision-embedding")
def _embedding_alone(student: StudentModule, seed: int = 0) -> None:
    _check_patch_embedding(student, seed)


def _check_patch_embedding(student: StudentModule, seed: int) -> None:
    generator = seeded(seed)
    for channels in (3, 1):
        images, p, _ = _images(generator, channels)
        d = 8 + p
        on = f"PatchEmbedding(patch_size={p}, channels={channels}, d_model={d})"
        layer = student.build(p, channels, d)
        length = p * p * channels
        shapes = {"weight": (length, d), "bias": (d,)}
        _expect_parameters(layer, shapes, on, _special_of_embedding(p, channels, d))
        if channels == 3:
            _expect_embedding_by_hand(student)
        weight = normal(generator, length, d) / length**0.5
        bias = normal(generator, d)
        layer.load_state_dict({"weight": weight, "bias": bias})
        where = f"{on}, images {tuple(images.shape)}"
        kernel = _kernel(weight, p, channels)
        right = F.conv2d(images, kernel, bias, stride=p).flatten(2).mT.contiguous()
        found = known_mistakes(patch_embedding_candidates(images, p, weight, bias))
        got = layer(images)
        expect.equal(got, right, on=where, mistakes=found, tolerance=DEEP)
    cotangent = normal(generator, *right.shape)
    found = layer.gradients(images, cotangent=cotangent)
    everything = {"images": found.inputs[0], **found.parameters}
    _expect_gradients(everything, on)
    right = torch.einsum("bnl,bnd->ld", _patches(images, p), cotangent)
    say = {"what": "the gradient of weight", "tolerance": 1e-4}
    expect.equal(everything["weight"], right, on=where, **say)
    _expect_no_remainder(lambda image, p: student.build(p, 3, 5)(image))
    _expect_embedding_start(student.build(8, 3, 64).state_dict())


def _special_of_embedding(p: int, channels: int, d: int) -> Special:
    length = p * p * channels

    def special(state, missing, extra):
        weight = state.get("weight", torch.empty(0))
        why = (
            f"A patch has P · P · C = {length} numbers, so the matrix has {length} "
            "rows. Source 3 writes 769 instead of 768: that fits only if a constant 1 "
            "is appended to every patch, and then the last row is the bias. Here bias "
            "is a parameter of its own."
        )
        one_more = weight.shape == (length + 1, d)
        yield one_more, "a row too many in the matrix", why
        why = f"A patch has P · P · C numbers: count all {channels} channels."
        yield channels > 1 and weight.shape == (p * p, d), "channels not counted", why
        why = "y = x E + b: the bias is a parameter, too, zeros at first."
        yield missing == {"bias"} and not extra, "no bias", why

    return special


def _expect_embedding_by_hand(student: StudentModule) -> None:
    layer = student.build(2, 1, 2)
    weight = torch.tensor([[1.0, 0.25], [0.0, 0.25], [0.0, 0.25], [-1.0, 0.25]])
    bias = torch.tensor([0.5, 0.0])
    layer.load_state_dict({"weight": weight, "bias": bias})
    image = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    right = torch.tensor([[[-2.5, 2.5]]])
    found = known_mistakes(patch_embedding_candidates(image, 2, weight, bias))
    on = "the example by hand, the patch (1, 2, 3, 4)"
    expect.equal(layer(image), right, on=on, mistakes=found)


def _expect_embedding_start(state: State) -> None:
    on = "PatchEmbedding(8, 3, 64), freshly built"
    say = {"on": on, "got": f"bias = {show(state['bias'])}"}
    zero = bool((state["bias"] == 0).all())
    why = "The bias starts at 0."
    refuse_if(not zero, "the bias does not start at zero", why, **say)
    wanted, spread = 192**-0.5, state["weight"].std().item()
    say = {
        "on": on,
        "got": f"weight with a standard deviation of {spread:.3f}",
        "expected": f"about 1/√192 = {wanted:.3f}",
    }
    why = (
        "Each sum of x @ weight has P · P · C = 192 terms. Divide the random numbers "
        "by the root of that, and the sums have a spread of about 1."
    )
    refuse_if(spread > 2 * wanted, "the weights start too large", why, **say)
    refuse_if(not spread > wanted / 2, "the weights start too small", why, **say)


# --- the model ------------------------------------------------------------------------


def _layer_shapes(d: int, d_ff: int) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for each in "qkvo":
        shapes[f"attention.w_{each}"], shapes[f"attention.b_{each}"] = (d, d), (d,)
    shapes |= {"feed_forward.w_1": (d, d_ff), "feed_forward.b_1": (d_ff,)}
    shapes |= {"feed_forward.w_2": (d_ff, d), "feed_forward.b_2": (d,)}
    for i in (1, 2):
        shapes |= {f"norm_{i}.gamma": (d,), f"norm_{i}.beta": (d,)}
    return shapes


def _vision_shapes(p, channels, classes, d, layers, d_ff, n, pooling) -> dict:
    shapes = {"patches.weight": (p * p * channels, d), "patches.bias": (d,)}
    if pooling == "class":
        shapes["class_token.token"] = (1, d)
    shapes["position.table"] = (n + (pooling == "class"), d)
    for i in range(layers):
        for name, shape in _layer_shapes(d, d_ff).items():
            shapes[f"encoder.layers.{i}.{name}"] = shape
    shapes |= {"encoder.norm.gamma": (d,), "encoder.norm.beta": (d,)}
    return shapes | {"head.weight": (d, classes), "head.bias": (classes,)}


def _draw_state(generator: torch.Generator, shapes: dict) -> State:
    """Draw parameters: matrices with a spread of 1/√rows, gammas around 1."""
    state = {}
    for name, shape in shapes.items():
        value = normal(generator, *shape)
        matrix = len(shape) == 2 and not name.endswith(("token", "table"))
        value = value / shape[0] ** 0.5 if matrix else 0.5 * value
        state[name] = value + 1 if name.endswith("gamma") else value
    return state


def _torch_encoder(state: State, layers: int, d, heads, d_ff) -> nn.Module:
    """Build PyTorch's stack, pre-norm and GELU, from the parameters of an Encoder."""
    layer = nn.TransformerEncoderLayer(
        d, heads, d_ff, 0.0, "gelu", batch_first=True, norm_first=True
    )
    right = nn.TransformerEncoder(
        layer, layers, nn.LayerNorm(d), enable_nested_tensor=False
    )
    theirs = {"norm.weight": state["norm.gamma"], "norm.bias": state["norm.beta"]}
    for i in range(layers):
        own, at = under(f"layers.{i}.", state), f"layers.{i}."
        matrices = [own[f"attention.w_{each}"].T for each in "qkv"]
        biases = [own[f"attention.b_{each}"] for each in "qkv"]
        theirs[f"{at}self_attn.in_proj_weight"] = torch.cat(matrices)
        theirs[f"{at}self_attn.in_proj_bias"] = torch.cat(biases)
        theirs[f"{at}self_attn.out_proj.weight"] = own["attention.w_o"].T
        theirs[f"{at}self_attn.out_proj.bias"] = own["attention.b_o"]
        for j in (1, 2):
            theirs[f"{at}linear{j}.weight"] = own[f"feed_forward.w_{j}"].T
            theirs[f"{at}linear{j}.bias"] = own[f"feed_forward.b_{j}"]
            theirs[f"{at}norm{j}.weight"] = own[f"norm_{j}.gamma"]
            theirs[f"{at}norm{j}.bias"] = own[f"norm_{j}.beta"]
    right.load_state_dict(theirs)
    return right


@chapter.check(section="vision-model")
def vision_transformer(
    student: StudentModule, embedding_student: StudentModule, seed: int = 0
) -> None:
    """Submodules, PyTorch's encoder on the same input, both poolings, dropout."""
    with expect.relying_on(_embedding_alone, embedding_student):
        _check_vision(student, seed)


def _check_vision(student: StudentModule, seed: int) -> None:
    generator = seeded(seed)
    for pooling, channels in (("class", 3), ("mean", 1)):
        images, p, grid = _images(generator, channels)
        size = tuple(images.shape[2:])
        heads, layers, classes = 2 + p % 2, 3 - p % 2, 10 + p
        d = 4 * heads
        d_ff, n = 2 * d + 3, grid[0] * grid[1]
        sizes = size, p, channels, classes, d, heads, layers, d_ff
        on = (
            f"VisionTransformer(image_size={size}, patch_size={p}, "
            f"channels={channels}, classes={classes}, d_model={d}, heads={heads}, "
            f"layers={layers}, d_ff={d_ff}, pooling={pooling!r})"
        )
        with _by_hand_shapes_named():
            model = student.build(*sizes, 0.0, pooling)
        shapes = _vision_shapes(p, channels, classes, d, layers, d_ff, n, pooling)
        _expect_parameters(model, shapes, on, _special_of_vision(pooling, n, layers))
        state = _draw_state(generator, shapes)
        model.load_state_dict(state)
        vision = Vision(state, p, heads, layers)
        right = _torch_encoder(under("encoder.", state), layers, d, heads, d_ff)
        with torch.no_grad():
            x = vision.place(vision.sequence(images))
            expected = vision.read(right(x))
        where = f"{on}, images {tuple(images.shape)}"
        with _steps_named():
            got = model(images)
        found = known_mistakes(vision_candidates(vision, images))
        say = {"on": where, "what": "the logits", "tolerance": 1e-4}
        expect.equal(got, expected, mistakes=found, **say)
        _expect_dropout(student, (*sizes, 1.0, pooling), vision, images, where)
        found = model.gradients(images)
        _expect_gradients({"images": found.inputs[0], **found.parameters}, on)
    _expect_square(student, generator)
    _expect_refusals(student, sizes)


@contextlib.contextmanager
def _by_hand_shapes_named() -> Iterator[None]:
    why = (
        "image_size is a pair (height, width) here. The given lines of __init__ take "
        "it apart for you: use height and width."
    )
    words = ("'tuple' and 'int'", "tuple indices", "not tuple", "'int' and 'tuple'")
    with _error_named(words, "a pair as image_size is not taken apart", why):
        yield


@contextlib.contextmanager
def _steps_named() -> Iterator[None]:
    """Name the mistakes that end in an exception."""
    why = (
        "The class token has a position, too: LearnedPositionalEncoding(N + 1, ...), "
        "and class token first, then positions."
    )
    rows = _error_named(("positions",), "the table of positions is one row short", why)
    why = "With the mean there is no class token: skip the step, or use nn.Identity()."
    missing = _error_named(
        ("has no attribute 'class_token'", "'NoneType' object is not callable"),
        "the missing class token is called",
        why,
    )
    with rows, missing:
        yield


def _special_of_vision(pooling: str, n: int, layers: int) -> Special:
    def special(state, missing, extra):
        token = {name for name in missing if name.startswith("class_token")}
        why = 'With pooling="class" a class token stands first: ClassToken(d_model).'
        yield bool(token) and missing == token and not extra, "no class token", why
        table = state.get("position.table", torch.empty(0, 0))
        if pooling == "class":
            why = (
                f"{n} patches and one class token make {n + 1} positions; row 0 of the "
                "table is the class token's."
            )
            short = table.shape[0] == n
            yield short, "class token without a position", why
        else:
            why = (
                'With pooling="mean" there is no class token, and the mean is over '
                "patches only. Nothing of it may stay, not even its position."
            )
            more = any(name.startswith("class_token") for name in extra)
            yield more, "mean over the class token", why
            yield table.shape[0] == n + 1, "a position too many", why
        why = (
            "Positions are learned: LearnedPositionalEncoding, whose parameter is "
            "position.table."
        )
        positions = "position.table" in missing and not any(
            name.startswith("position") for name in extra
        )
        yield positions, "no learned positions", why
        final = {"encoder.norm.gamma", "encoder.norm.beta"}
        why = "The encoder is pre-norm, with a norm at its end: norm_first=True."
        yield final == missing and not extra, "post-norm in place of pre-norm", why
        numbers = {
            name.split(".")[2] for name in state if name.startswith("encoder.layers.")
        }
        why = f"{layers} layers were asked for, and {len(numbers)} are there."
        wrong = bool(numbers) and len(numbers) != layers
        yield wrong, "another number of layers", why
        part = {name.partition(".")[0] for name in missing}
        why = f"The model lacks {' and '.join(sorted(part))}."
        yield bool(missing) and not extra, "a submodule is missing", why

    return special


def _expect_dropout(student, sizes, vision: Vision, images, on: str) -> None:
    """With a probability of 1, nothing but the last norm and the head is left."""
    model = student.build(*sizes)
    model.load_state_dict(vision.state)
    model.train(True)
    x = vision.place(vision.sequence(images))
    zero = torch.zeros_like(x)
    why = "Both the positions and the encoder have a dropout: hand it on to both."
    known = [
        ("dropout not passed on", lambda: vision.read(vision.encode(x)), why),
        (
            "dropout not passed to the positions",
            lambda: vision.read(vision.norm(x)),
            why,
        ),
        (
            "dropout not passed to the encoder",
            lambda: vision.read(vision.encode(zero)),
            why,
        ),
    ]
    say = {"on": f"{on}, dropout=1 in training", "mistakes": known_mistakes(known)}
    expected = vision.read(vision.norm(zero))
    expect.equal(model(images), expected, what="the logits", tolerance=1e-4, **say)


def _expect_square(student: StudentModule, generator: torch.Generator) -> None:
    model = student.build(6, 2, 1, 4, 8, 2, 1, 12)
    on = "VisionTransformer(6, 2, 1, 4, 8, 2, 1, 12), images (3, 1, 6, 6)"
    got = model(normal(generator, 3, 1, 6, 6))
    expect.tensor(got, shape=(3, 4), dtype=torch.float32, on=on)


def _expect_refusals(student: StudentModule, sizes: tuple) -> None:
    (height, width), p, channels, *others = sizes
    expect.raises(
        "ValueError",
        lambda: student.build(*sizes, 0.0, "maximum"),
        on='pooling="maximum"',
        why="The stub's given lines refuse other words than the two: keep them.",
        mistake="an unknown pooling is accepted",
    )
    expect.raises(
        "ValueError",
        lambda: student.build((height, width + 1), p, channels, *others),
        on=f"image_size={(height, width + 1)}, patch_size={p}",
        why="Count with patch_count, which refuses what cannot be cut.",
        mistake="no ValueError for a remainder",
    )
    model = student.build(*sizes)
    for size in ((width, height), (height, width - p)):
        expect.raises(
            "ValueError",
            lambda size=size: model(torch.zeros(2, channels, *size)),
            on=f"a model for {(height, width)}, images of {size}",
            why=(
                "The table of positions belongs to one grid. The stub's given lines "
                "refuse other images: keep them."
            ),
            mistake="images of another size are accepted",
        )


# --- positions ------------------------------------------------------------------------


def _between(old: int, new: int) -> torch.Tensor:
    """Weights (new, old) of linear interpolation between the middles of old cells."""
    place = (torch.arange(new, dtype=torch.float64) + 0.5) * old / new - 0.5
    distance = (place.clamp(0, old - 1).unsqueeze(1) - torch.arange(old)).abs()
    return (1 - distance).clamp(min=0)


def _resized(table: torch.Tensor, old, new, class_tokens: int) -> torch.Tensor:
    """Interpolate by a matrix for the rows and one for the columns."""
    grid = table[class_tokens:].double().unflatten(0, old)
    down, right = _between(old[0], new[0]), _between(old[1], new[1])
    rows = torch.einsum("ir,jc,rcd->ijd", down, right, grid).flatten(0, 1)
    return torch.cat((table[:class_tokens], rows.float()))


@chapter.check(section="vision-interpolation")
def interpolate_positions(student: StudentFunction, seed: int = 0) -> None:
    """By hand, by matrices, larger and smaller, 0 to 2 class tokens, the gradient."""
    table = torch.tensor([[9.0], [0.0], [4.0]])
    right = torch.tensor([[9.0], [0.0], [1.0], [3.0], [4.0]])
    on = "the example by hand, with a class token of 9"
    known = interpolate_candidates(table, (1, 2), (1, 4), 1)
    expect.equal(
        student(table, (1, 2), (1, 4)), right, on=on, mistakes=known_mistakes(known)
    )
    generator = seeded(seed)
    h, w, d = draw_sizes(generator, 3)
    cases = (
        ((h, w), (h + 3, w + 1), 1),
        ((h, w), (2 * w, 3 * h), 1),
        ((h + 3, w + 5), (h + 1, w), 1),
        ((h, w), (w + 1, h + 2), 0),
        ((h + 1, w), (h + 2, w + 4), 2),
        ((h, w), (h, w), 1),
    )
    d += 5
    for old, new, class_tokens in cases:
        table = normal(generator, class_tokens + old[0] * old[1], d)
        on = f"a table {tuple(table.shape)}, grid {old} to {new}"
        on += f", class_tokens={class_tokens}"
        options = {} if class_tokens == 1 else {"class_tokens": class_tokens}
        why = "Set aside class_tokens rows, which may be 0, 1 or more."
        name = "class_tokens is ignored"
        words = ("invalid for input", "must match", "not match")
        handled = _error_named(words, name, why)
        with handled if options else contextlib.nullcontext():
            got = student(table, old, new, **options)
        known = interpolate_candidates(table, old, new, class_tokens)
        expected = _resized(table, old, new, class_tokens)
        expect.equal(got, expected, on=on, mistakes=known_mistakes(known))
    table = normal(generator, 1 + h * w, d)
    cotangent = normal(generator, 1 + (h + 1) * (w + 2), d)
    new = (h + 1, w + 2)
    found = student.gradients(table, (h, w), new, cotangent=cotangent).inputs[0]
    on = f"a table {tuple(table.shape)}, grid {(h, w)} to {new}"
    _expect_gradients({"table": found}, on)
    table.requires_grad_()
    total = (_resized(table, (h, w), new, 1) * cotangent).sum()
    (right,) = torch.autograd.grad(total, table)
    expect.equal(found, right, on=on, what="the gradient")


# --- attention and convolution --------------------------------------------------------


@chapter.check(section="vision-convolution")
def shift_weights(student: StudentFunction, seed: int = 0) -> None:
    """By hand, every step on several grids, steps beyond the border."""
    _check_shift(student, seed)


@chapter.check(section="vision-convolution")
def _shift_alone(student: StudentFunction, seed: int = 0) -> None:
    _check_shift(student, seed)


def _check_shift(student: StudentFunction, seed: int) -> None:
    right = torch.zeros(6, 6)
    for token, neighbour in ((0, 1), (1, 2), (3, 4), (4, 5)):
        right[token, neighbour] = 1.0
    cases = [(2, 3, 0, 1, right)]
    generator = seeded(seed)
    a, b, c, d = draw_sizes(generator, 4)
    for h, w in ((a, b), (c, d), (1, 4), (3, 3)):
        steps = itertools.product((-1, 2, 0, -2, 1), (1, -2, 0, 2, -1))
        cases += [(h, w, *step, shift_brute(h, w, *step)) for step in steps]
    cases += [(a, b, *step, shift_brute(a, b, *step)) for step in ((a, 0), (0, -b))]
    for h, w, down, to_right, right in cases:
        on = f"shift_weights({h}, {w}, {down}, {to_right})"
        why = (
            "A place outside the grid was used as an index. Test whether row and "
            "column lie in the grid before you write."
        )
        name = "places outside the grid are not sorted out"
        with _error_named(("out of bounds", "out of range"), name, why):
            got = student(h, w, down, to_right)
        if isinstance(got, torch.Tensor) and got.isnan().any():
            why = (
                "Where a token has nothing to look at, softmax divides 0 by 0. No "
                "softmax is needed: write zeros and ones."
            )
            say = {"on": on, "got": "NaN", "expected": "zeros and ones"}
            refuse("a softmax over a row with nothing left", why, **say)
        expect.equal(
            got,
            right,
            on=on,
            mistakes=known_mistakes(shift_candidates(h, w, down, to_right)),
        )


@chapter.check(section="vision-convolution")
def convolution_by_heads(
    student: StudentFunction, shift_student: StudentFunction, seed: int = 0
) -> None:
    """By hand, PyTorch's conv2d, kernels of 1, 3 and 5, any leading axes, gradients."""
    with expect.relying_on(_shift_alone, shift_student):
        _check_convolution(student, seed)


def _convolved(tokens: torch.Tensor, kernel: torch.Tensor, h, w) -> torch.Tensor:
    """Convolve by PyTorch's conv2d, zeros around."""
    image = tokens.reshape(-1, h, w, tokens.shape[-1]).permute(0, 3, 1, 2)
    found = F.conv2d(image, kernel, padding=kernel.shape[-1] // 2)
    return found.flatten(2).mT.reshape(*tokens.shape[:-1], -1)


def _check_convolution(student: StudentFunction, seed: int) -> None:
    tokens = torch.tensor([[1.0], [2.0], [3.0]])
    kernel = torch.zeros(1, 1, 3, 3)
    kernel[0, 0, 1] = torch.tensor([1.0, 0.0, -1.0])
    right = torch.tensor([[-2.0], [-2.0], [2.0]])
    on = "the example by hand, tokens 1, 2, 3 in a row"
    known = convolution_candidates(tokens, kernel, 1, 3)
    expect.equal(
        student(tokens, kernel, 1, 3),
        right,
        on=on,
        mistakes=known_mistakes(known),
        tolerance=DEEP,
    )
    generator = seeded(seed)
    a, h, w, c_in, c_out = draw_sizes(generator, 5)
    cases = (
        ((), c_in, c_out, 3),
        ((a,), c_in, c_out, 3),
        ((2, a), c_in, 1, 3),
        ((), c_in, c_in, 3),
        ((a,), 1, c_out, 5),
        ((), c_in, c_out, 1),
    )
    for lead, come, go, k in cases:
        tokens = normal(generator, *lead, h * w, come)
        kernel = normal(generator, go, come, k, k)
        on = f"tokens {tuple(tokens.shape)} on a grid of {h} x {w}"
        on += f", kernel {tuple(kernel.shape)}"
        why = (
            "kernel[:, :, i, j] is (C_out, C_in). Tokens are rows, so they are "
            "multiplied by its transpose: .T"
        )
        name = "the kernel's matrix is not transposed"
        words = ("cannot be multiplied", "Expected size for", "must match the size")
        with _error_named(words, name, why):
            got = student(tokens, kernel, h, w)
        known = convolution_candidates(tokens, kernel, h, w)
        expect.equal(
            got,
            _convolved(tokens, kernel, h, w),
            on=on,
            mistakes=known_mistakes(known),
            tolerance=DEEP,
        )
    tokens = normal(generator, h * w, c_in)
    kernel = normal(generator, c_out, c_in, 3, 3)
    cotangent = normal(generator, h * w, c_out)
    both = student.gradients(tokens, kernel, h, w, wrt=(0, 1), cotangent=cotangent)
    on = f"tokens {tuple(tokens.shape)}, kernel {tuple(kernel.shape)}"
    everything = dict(zip(("tokens", "kernel"), both.inputs, strict=True))
    _expect_gradients(everything, on)
    sources = tokens.requires_grad_(), kernel.requires_grad_()
    total = (_convolved(*sources, h, w) * cotangent).sum()
    wanted = torch.autograd.grad(total, sources)
    for (name, got), right in zip(everything.items(), wanted, strict=True):
        say = {"what": f"the gradient of {name}", "tolerance": 1e-4}
        expect.equal(got, right, on=on, **say)


def _box(gradient: torch.Tensor) -> tuple[int, int]:
    """Look at every entry."""
    channels, height, width = gradient.shape
    rows, columns = set(), set()
    for k, r, c in itertools.product(range(channels), range(height), range(width)):
        if gradient[k, r, c].item() != 0:
            rows.add(r)
            columns.add(c)
    if not rows:
        return 0, 0
    return max(rows) - min(rows) + 1, max(columns) - min(columns) + 1


def _gradients_to_measure(generator: torch.Generator) -> Iterator[tuple]:
    """Draw gradients that one mistake after the other measures in another way."""
    a, b, c, h, w = draw_sizes(generator, 5)
    h, w = h + 8, w + 11  # room for 5 + c, and c may be 7
    sparse = torch.zeros(3, h, w)
    for k, r, s in ((0, 2, 3), (2, 2 + a, 3 + b), (1, 3, 4)):
        sparse[k, r, s] = 1.0 + normal(generator, 1).abs().item()
    yield sparse, "three entries in three channels"
    yield -sparse, "negative entries"
    opposite = torch.zeros(2, h, w)
    opposite[0, 1, 2], opposite[1, 1, 2] = 1.5, -1.5
    opposite[0, 1 + c, 4] = 1.0
    yield opposite, "two channels of opposite sign at one pixel"
    small = torch.zeros(1, h, w)
    small[0, 3, 3], small[0, 4, 5 + c] = 1.0, 1e-12
    yield small, "an entry of 1e-12"
    for dilation in (1, 2):
        layers = [
            nn.Conv2d(3, 2, 3, dilation=dilation, device="meta"),
            nn.Conv2d(2, 1, (1, 3), device="meta"),
        ]
        x = normal(generator, 1, 3, h, w).requires_grad_()
        y = x
        for layer in layers:
            kernel = 1 + normal(generator, *layer.weight.shape).abs()
            y = F.conv2d(y, kernel, dilation=layer.dilation)
        (found,) = torch.autograd.grad(y[0, 0, 1, 2], x)
        yield found[0], f"two convolutions, the first with dilation {dilation}"
    yield normal(generator, 2, a, b), "everything is seen"
    yield torch.zeros(2, a, b), "nothing is seen"


@chapter.check(section="vision-receptive-field")
def receptive_field(student: StudentFunction, seed: int = 0) -> None:
    """By hand, gaps, signs and channels, stacks of convolutions, nothing seen."""
    hand = torch.zeros(1, 4, 5)
    hand[0, 1, 1] = hand[0, 2, 3] = 1.0
    cases = [(hand, "the example by hand"), *_gradients_to_measure(seeded(seed))]
    for gradient, words in cases:
        gradient = gradient.contiguous()
        on = f"a gradient {tuple(gradient.shape)}: {words}"
        right = _box(gradient)
        if right == (0, 0):
            with _error_named(
                ("numel() == 0", "no elements", "empty", "out of "),
                "fails when nothing is seen",
                "There is no first and no last row. Answer (0, 0) before you look.",
            ):
                got = student(gradient)
        else:
            got = student(gradient)
        expect.equal(
            got,
            right,
            on=on,
            mistakes=known_mistakes(receptive_candidates(gradient)),
            what="the box",
        )


# --- filters --------------------------------------------------------------------------


def _spread_out(generator: torch.Generator, length: int, d: int) -> torch.Tensor:
    """Draw filters whose principal components have clearly different variances."""
    rank = min(length, d)
    left, _ = torch.linalg.qr(normal(generator, length, rank))
    right, _ = torch.linalg.qr(normal(generator, d, rank))
    sizes = 2.0 * 0.75 ** torch.arange(rank)
    mean = 0.5 * normal(generator, length, 1)
    return ((left * sizes) @ right.T + mean).contiguous()


def _turned(got: Data, expected: tuple) -> Data:
    """Give each component the sign of the expected one."""
    right = expected[0]
    if not isinstance(got, (tuple, list)) or len(got) != 2:
        return got
    first, second = got
    fits = isinstance(first, torch.Tensor) and first.shape == right.shape
    if not fits or not first.is_floating_point() or first.dim() < 2:
        return got
    agree = (first * right).flatten(1).sum(1) >= 0
    signs = torch.where(agree, 1.0, -1.0).to(first.dtype)
    return type(got)((first * signs.view(-1, *[1] * (first.dim() - 1)), second))


@chapter.check(section="vision-filters")
def principal_filters(student: StudentFunction, seed: int = 0) -> None:
    """By hand, scikit-learn's PCA, more and fewer filters than pixels, colour."""
    weight = torch.tensor([[1.0, 2.0, 3.0], [1.0, 3.0, 5.0]])
    slope = torch.tensor([[0.447214, 0.894427], [0.894427, -0.447214]])
    right = slope.reshape(2, 1, 1, 2), torch.tensor([1.0, 0.0])
    _expect_components(student, weight, (2, 1, 2), right, "the example by hand")
    generator = seeded(seed)
    a, b = draw_sizes(generator, 2)
    for p, channels, d, count in (
        (3, 1, 4 + a, 3),
        (2, 3, 20 + b, 4),
        (2, 3, 12, 5),
        (3, 3, 7 + a, 4),
    ):
        weight = _spread_out(generator, p * p * channels, d)
        pca = PCA(count, svd_solver="full").fit(weight.T.double().numpy())
        components = torch.tensor(pca.components_, dtype=torch.float32)
        share = torch.tensor(pca.explained_variance_ratio_, dtype=torch.float32)
        right = components.reshape(count, p, p, channels), share
        on = (
            f"weight {tuple(weight.shape)}, {count} components, P = {p}, C = {channels}"
        )
        _expect_components(student, weight, (count, p, channels), right, on)


def _expect_components(student, weight, sizes, right, on: str) -> None:
    why = (
        "Components of the rows have d_model entries and are no pictures. The columns "
        "of weight are the filters, and the samples: start from weight.T."
    )
    words = ("invalid for input", "invalid for size")
    with _error_named(words, "rows in place of columns", why):
        got = student(weight, *sizes)
    tolerance = 5e-4
    candidates = principal_candidates(weight, *sizes)
    if not expect.close(_turned(got, right), right, tolerance):
        for mistake in known_mistakes(candidates):
            same = expect.close(_turned(got, mistake.value), mistake.value, tolerance)
            if same:
                shown = expect.show_both(_turned(got, right), right, tolerance)
                say = {"on": on, "got": shown[0], "expected": shown[1]}
                refuse(mistake.name, mistake.why, **say)
    expect.equal(_turned(got, right), right, on=on, tolerance=tolerance)


# --- rollout --------------------------------------------------------------------------


def _paths(weights: list[torch.Tensor]) -> torch.Tensor:
    """Add up all paths: in each layer either by attention or past it."""
    length = weights[0].shape[-1]
    total = torch.zeros(length, length, dtype=torch.float64)
    for choice in itertools.product((False, True), repeat=len(weights)):
        path = torch.eye(length, dtype=torch.float64)
        for layer, attends in zip(weights, choice, strict=True):
            if attends:
                path = torch.einsum("hij,jk->ik", layer.double(), path) / len(layer)
        total += path / 2 ** len(weights)
    return total.float()


@chapter.check(section="vision-rollout")
def attention_rollout(student: StudentFunction, seed: int = 0) -> None:
    """By hand, all paths added up, tokens that attend to themselves."""
    hand = [
        torch.tensor([[[1.0, 0.0], [1.0, 0.0]]]),
        torch.tensor([[[0.0, 1.0], [0.0, 1.0]]]),
    ]
    right = torch.tensor([[0.75, 0.25], [0.5, 0.5]])
    on = "the example by hand, two layers of one head"
    expect.equal(
        student(hand), right, on=on, mistakes=known_mistakes(rollout_candidates(hand))
    )
    generator = seeded(seed)
    heads, length = draw_sizes(generator, 2)
    for layers, h, t in (
        (3, heads, length),
        (1, heads, length + 1),
        (5, 2, length + 2),
    ):
        weights = [
            (2 * normal(generator, h, t, t)).softmax(-1).contiguous()
            for _ in range(layers)
        ]
        on = f"{layers} layers, each {(h, t, t)}"
        got = student(weights)
        right = _paths(weights)
        expect.equal(
            got, right, on=on, mistakes=known_mistakes(rollout_candidates(weights))
        )
    identity = [torch.eye(length).repeat(heads, 1, 1) for _ in range(4)]
    on = "4 layers in which every token attends to itself"
    expect.equal(student(identity), torch.eye(length), on=on)


# --- mixed images ---------------------------------------------------------------------


def _batch(generator: torch.Generator) -> tuple:
    """Draw images, one-hot targets, and a permutation that is not its own inverse."""
    b, c, h, w, classes = draw_sizes(generator, 5)
    b = b + 3
    images = normal(generator, b, 1 + c % 3, h + 4, w + 5)
    labels = torch.randperm(b, generator=generator) % (classes + 1)
    targets = F.one_hot(labels, classes + 1).float()
    order = torch.randperm(b, generator=generator)
    permutation = torch.empty(b, dtype=torch.long)
    permutation[order] = order.roll(1)  # one cycle through all of them
    return images, targets, permutation


@chapter.check(section="vision-mixing")
def mixup(student: StudentFunction, seed: int = 0) -> None:
    """By hand, PyTorch's lerp, shares of 0 and 1, soft targets, the gradient."""
    images = torch.tensor([10.0, 20.0]).view(2, 1, 1, 1)
    targets, swap = torch.eye(2), torch.tensor([1, 0])
    right = (
        torch.tensor([13.0, 17.0]).view(2, 1, 1, 1),
        torch.tensor([[0.7, 0.3], [0.3, 0.7]]),
    )
    _expect_mixed(student, (images, targets, 0.7, swap), right, "the example by hand")
    generator = seeded(seed)
    for share in (0.8, 0.35, 1.0, 0.0):
        images, targets, permutation = _batch(generator)
        right = tuple(torch.lerp(x[permutation], x, share) for x in (images, targets))
        on = f"images {tuple(images.shape)}, share {share}"
        on += f", permutation {permutation.tolist()}"
        _expect_mixed(student, (images, targets, share, permutation), right, on)
    soft = normal(generator, *targets.shape).softmax(-1)
    right = tuple(torch.lerp(x[permutation], x, 0.6) for x in (images, soft))
    on = f"targets {tuple(soft.shape)} that are not one-hot, share 0.6"
    _expect_mixed(student, (images, soft, 0.6, permutation), right, on)
    found = student.gradients(images, targets, 0.6, permutation, output=0).inputs[0]
    _expect_gradients({"images": found}, on)


def _expect_mixed(student, given: tuple, right: tuple, on: str) -> None:
    got = student(*given)
    found = known_mistakes(mixup_candidates(*given))
    _expect_pair(got, right, found, on)


def _expect_pair(got: Data, right: tuple, found: Iterable[Mistake], on: str) -> None:
    """Expect mixed images and mixed targets."""
    if isinstance(got, torch.Tensor):
        why = "Two things are returned: the images and, after them, the targets."
        say = {"on": on, "got": show(got), "expected": "(images, targets)"}
        refuse("only one of two results", why, **say)
    if expect.close(got, right):
        expect.equal(got, right, on=on)
        return
    for mistake in found:
        if expect.close(got, mistake.value):
            refuse(mistake.name, mistake.why, on=on, **_where(got, right))
    for name, part, value in zip(
        ("images", "targets"), _two(got, on), right, strict=True
    ):
        expect.equal(part, value, on=on, what=f"the mixed {name}")


def _two(got: Data, on: str) -> tuple:
    pair = isinstance(got, (tuple, list)) and len(got) == 2
    why = "The function ends without `return`." if got is None else "Return both."
    expect.true(
        pair,
        "the result is not a pair",
        on=on,
        got=show(got),
        expected="(images, targets)",
        why=why,
    )
    return tuple(got)


def _where(got: tuple, right: tuple) -> dict[str, str]:
    """Show the part of a pair that is wrong, where it first differs."""
    for name, part, value in zip(("images", "targets"), got, right, strict=True):
        if not expect.close(part, value):
            shown = expect.show_both(part, value, expect.TOLERANCE)
            words = [f"{name}: {each}" for each in shown]
            return dict(zip(("got", "expected"), words, strict=True))
    return {}


@chapter.check(section="vision-mixing")
def cutmix(student: StudentFunction, seed: int = 0) -> None:
    """By hand, pixel by pixel, the area, empty and full boxes, the gradient."""
    images = _count_up(2, 1, 4, 5)
    images[1] += 100
    targets, swap = torch.eye(2), torch.tensor([1, 0])
    right = images.clone()
    right[0, 0, 1:3, 2:5] += 100
    right[1, 0, 1:3, 2:5] -= 100
    mixed = torch.tensor([[0.7, 0.3], [0.3, 0.7]])
    box = (1, 2, 2, 3)
    on = "the example by hand"
    _expect_cut(student, (images, targets, box, swap), (right, mixed), on)
    generator = seeded(seed)
    for number in range(4):
        images, targets, permutation = _batch(generator)
        h, w = images.shape[2:]
        box = (
            (1, 2, h - 3, w - 4),
            (2, 1, 2, 4),
            (0, 0, h, w),
            (2, 3, 0, 2),
        )[number]
        area = box[2] * box[3] / (h * w)
        mixed = torch.lerp(targets, targets[permutation], area)
        right = pasted(images, box, permutation)
        on = f"images {tuple(images.shape)}, box {box}"
        on += f", permutation {permutation.tolist()}"
        _expect_cut(student, (images, targets, box, permutation), (right, mixed), on)
    found = student.gradients(images, targets, box, permutation, output=0).inputs[0]
    _expect_gradients({"images": found}, on)


def _expect_cut(student, given: tuple, right: tuple, on: str) -> None:
    got = student(*given)
    found = known_mistakes(cutmix_candidates(*given))
    _expect_pair(got, right, found, on)
