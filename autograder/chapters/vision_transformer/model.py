"""The Vision Transformer, assembled, and the ways to assemble another model."""

import functools
from collections.abc import Iterator

import torch

from autograder import expect
from autograder.chapters.encoder.oracles import draw_state, encoder_shapes
from autograder.chapters.vision_transformer.chapter import chapter
from autograder.chapters.vision_transformer.embedding import embedding_alone
from autograder.chapters.vision_transformer.images import draw_images
from autograder.chapters.vision_transformer.parts import Vision, right
from autograder.exercise.inputs import normal, seeded
from autograder.exercise.parameters import Shapes, State, expect_parameters
from autograder.exercise.spec import Case, Module, expect_gradients
from autograder.interface import StudentModule


def _taken_apart(module) -> tuple[Vision]:
    layers = module.encoder.layers
    dropping = module.training and module.position.dropout.p == 1.0
    heads = layers[0].attention.heads
    state, p = module.state_dict(), module.patches.patch_size
    return (Vision(state, p, heads, len(layers), dropping=dropping),)


model = Module("vision-transformer", "VisionTransformer", right, given=_taken_apart)
dropped = Module("vision-transformer", "VisionTransformer", right, given=_taken_apart)
model.accident(
    "has no attribute 'class_token'",
    "the missing class token is called",
    "With the mean there is no class token: skip the step, or use nn.Identity().",
)
model.accident("'NoneType' object is not callable", *model.accidents[0][1:])
for words in ("'tuple' and 'int'", "tuple indices", "not tuple", "'int' and 'tuple'"):
    model.accident(
        words,
        "a pair as image_size is not taken apart",
        "image_size is a pair (height, width) here. The given lines of __init__ take "
        "it apart for you: use height and width.",
    )


# --- what goes wrong ------------------------------------------------------------------


def _by_token(images, vision):
    return vision.token is not None


def _by_mean(images, vision):
    return vision.token is None


def _behind(images: torch.Tensor, vision: Vision) -> torch.Tensor:
    x = vision.sequence(images)
    return vision.place(torch.cat((x[:, 1:], x[:, :1]), 1))


@model.mistake(
    "positions before the class token",
    "First the class token, then the positions: the class token has position 0 and "
    "the first patch position 1.",
    when=_by_token,
)
def _(images, vision):
    x = vision.sequence(images)
    return vision.logits(torch.cat((x[:, :1], vision.place(x[:, 1:])), 1))


@model.mistake(
    "class token without a position",
    "The class token has a position, too: row 0 of the table.",
    when=_by_token,
)
def _(images, vision):
    x = vision.sequence(images)
    return vision.logits(torch.cat((x[:, :1], vision.place(x)[:, 1:]), 1))


for at in (0, -1):
    model.mistake(
        "the class token behind the patches",
        "The class token comes before the patches, and the head reads position 0.",
        when=_by_token,
    )(lambda images, vision, at=at: vision.logits(_behind(images, vision), at))

MEAN = (
    "the mean in place of the class token",
    'With pooling="class" the head reads position 0: ClassHead.',
)
LAST = "the head reads the last token"
model.mistake(*MEAN, when=_by_token)(
    lambda images, vision: vision.logits(vision.placed(images), "mean")
)
model.mistake(*MEAN, when=_by_token)(
    lambda images, vision: vision.read(
        vision.encode(vision.placed(images))[:, 1:], "mean"
    )
)
for name, why, at, when in (
    (
        "the head reads a patch",
        "Position 0 is the class token's; position 1 is the first patch.",
        1,
        _by_token,
    ),
    (
        "the first patch in place of the mean",
        'With pooling="mean" the head reads the mean of all patches: MeanHead.',
        0,
        _by_mean,
    ),
    (
        LAST,
        "Position 0 is the class token's; the last is the patch at the lower right.",
        -1,
        _by_token,
    ),
    (LAST, 'With pooling="mean" the head reads the mean: MeanHead.', -1, _by_mean),
):
    model.mistake(name, why, when=when)(
        lambda images, vision, at=at: vision.logits(vision.placed(images), at)
    )
model.mistake(
    "no positions",
    "Without positions the encoder sees a bag of patches. Call position.",
)(lambda images, vision: vision.logits(vision.sequence(images)))
POST_NORM = (
    "post-norm in place of pre-norm",
    "The encoder is pre-norm: norm_first=True.",
)
for mistake, options in (
    (
        (
            "ReLU in place of GELU",
            'Vision Transformers use GELU: hand activation="gelu" on to the encoder.',
        ),
        {"activation": torch.relu},
    ),
    (
        (
            "no final norm",
            "In pre-norm nothing normalises the stream itself; the norm after the last "
            "layer does. Call the encoder as a whole, not only its layers.",
        ),
        {"last": False},
    ),
    (POST_NORM, {"pre": False}),
    (POST_NORM, {"pre": False, "last": False}),
):
    model.mistake(*mistake)(
        lambda images, vision, options=options: vision.logits(
            vision.placed(images), **options
        )
    )
model.mistake(
    "the head reads the encoder's input",
    "Between the positions and the head comes the encoder.",
)(lambda images, vision: vision.read(vision.placed(images)))
model.mistake(
    "the positions are added twice",
    "LearnedPositionalEncoding adds the table itself.",
)(lambda images, vision: vision.logits(vision.place(vision.placed(images))))
model.mistake(
    "embeddings scaled by the root of d_model",
    "The embeddings of patches stay as they are.",
)(
    lambda images, vision: vision.logits(
        vision.place(vision.sequence(images) * vision.d**0.5)
    )
)
PASSED_ON = "Both the positions and the encoder have a dropout: hand it on to both."


def _dropping(images, vision):
    return vision.dropping


dropped.mistake("dropout not passed on", PASSED_ON, when=_dropping)(
    lambda images, vision: vision.logits(vision.placed(images))
)
dropped.mistake("dropout not passed to the positions", PASSED_ON, when=_dropping)(
    lambda images, vision: vision.read(vision.norm(vision.placed(images)))
)
dropped.mistake("dropout not passed to the encoder", PASSED_ON, when=_dropping)(
    lambda images, vision: vision.logits(torch.zeros_like(vision.placed(images)))
)


# --- the check ------------------------------------------------------------------------


@chapter.check(section="vision-model")
def vision_transformer(
    student: StudentModule, embedding_student: StudentModule, seed: int = 0
) -> None:
    """Submodules, PyTorch's encoder on the same input, both poolings, dropout."""
    with expect.relying_on(embedding_alone, embedding_student):
        _check(student, seed)


def _check(student: StudentModule, seed: int) -> None:
    generator = seeded(seed)
    for pooling, channels in (("class", 3), ("mean", 1)):
        images, p, grid = draw_images(generator, channels)
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
        with model.accidents_named():
            built = student.build(*sizes, 0.0, pooling)
        shapes = _shapes(p, channels, classes, d, layers, d_ff, n, pooling)
        own = functools.partial(_own, pooling, grid, layers)
        expect_parameters(built, shapes, on, own)
        state = draw_state(generator, shapes)
        built.load_state_dict(state)
        say = {"what": "the logits", "tolerance": 1e-4}
        vision = Vision(state, p, heads, layers)
        where = f"{on}, images {tuple(images.shape)}"
        model.judge(built, Case(where, (images,), given=(vision,), **say))
        training = student.build(*sizes, 1.0, pooling)
        training.load_state_dict(state)
        training.train(True)
        vision = Vision(state, p, heads, layers, dropping=True)
        where = f"{where}, dropout=1 in training"
        dropped.judge(training, Case(where, (images,), given=(vision,), **say))
        found = built.gradients(images)
        expect_gradients({"images": found.inputs[0], **found.parameters}, on)
    _expect_square(student, generator)
    _expect_refusals(student, sizes)


def _shapes(p, channels, classes, d, layers, d_ff, n, pooling) -> Shapes:
    shapes = {"patches.weight": (p * p * channels, d), "patches.bias": (d,)}
    if pooling == "class":
        shapes["class_token.token"] = (1, d)
    shapes["position.table"] = (n + (pooling == "class"), d)
    for name, shape in encoder_shapes(layers, d, d_ff, True).items():
        shapes[f"encoder.{name}"] = shape
    return shapes | {"head.weight": (d, classes), "head.bias": (classes,)}


def _own(
    pooling: str,
    grid: tuple[int, int],
    layers: int,
    state: State,
    missing: list,
    extra: list,
) -> Iterator[tuple[bool, str, str]]:
    table, n = state.get("position.table", torch.empty(0, 0)), grid[0] * grid[1]
    if pooling == "class":
        why = 'With pooling="class" a class token comes first: ClassToken(d_model).'
        token = all(name.startswith("class_token") for name in missing)
        yield missing and token and not extra, "no class token", why
        why = (
            f"{n} patches and one class token make {n + 1} positions; row 0 of the "
            "table is the class token's."
        )
        yield table.shape[0] == n, "class token without a position", why
    else:
        why = (
            'With pooling="mean" there is no class token, and the mean is over patches '
            "only. Nothing of it may stay, not even its position."
        )
        more = any(name.startswith("class_token") for name in extra)
        yield more, "mean over the class token", why
        yield table.shape[0] == n + 1, "a position too many", why
    if grid[0] != grid[1]:
        counts = {side * side + more for side in grid for more in (0, 1)}
        why = (
            f"The grid has {grid[0]} rows and {grid[1]} columns: count by "
            "patch_count(height, width, patch_size), with both sizes."
        )
        yield len(table) in counts, "the grid taken for a square", why
    yield (
        "position.table" in missing and not any("position" in name for name in extra),
        "no learned positions",
        "Positions are learned: LearnedPositionalEncoding, whose parameter is "
        "position.table.",
    )
    final = {"encoder.norm.gamma", "encoder.norm.beta"}
    why = "The encoder is pre-norm, with a norm at its end: norm_first=True."
    yield final == set(missing) and not extra, POST_NORM[0], why
    numbers = {name.split(".")[2] for name in state if ".layers." in name}
    why = f"{layers} layers were asked for, and {len(numbers)} are there."
    yield len(numbers) not in (0, layers), "another number of layers", why
    why = f"The model lacks {' and '.join(sorted({n.split('.')[0] for n in missing}))}."
    yield missing and not extra, "a submodule is missing", why


def _expect_square(student: StudentModule, generator: torch.Generator) -> None:
    built = student.build(6, 2, 1, 4, 8, 2, 1, 12)
    on = "VisionTransformer(6, 2, 1, 4, 8, 2, 1, 12), images (3, 1, 6, 6)"
    got = built(normal(generator, 3, 1, 6, 6))
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
    built = student.build(*sizes)
    for size in ((width, height), (height, width - p)):
        expect.raises(
            "ValueError",
            lambda size=size: built(torch.zeros(2, channels, *size)),
            on=f"a model for {(height, width)}, images of {size}",
            why=(
                "The table of positions belongs to one grid. The stub's given lines "
                "refuse other images: keep them."
            ),
            mistake="images of another size are accepted",
        )
