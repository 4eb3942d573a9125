"""Whether a model is the course's own in disguise, or was trained on from it.

Weights alone do not tell: hidden units can stand in another order, be scaled or be
joined by idle ones, and the model computes the same. So what two models *compute* is
compared, on inputs that are the same for all and that no training has seen: noise for
images, words in any order for sentences and texts. What a model makes of those is a
matter of its weights and hardly of its task. There are three similarities, each at
most 1:

- outputs: the correlation of the scores of all classes or tokens; of a language model,
  of what the last token alone does not explain: that *Once* is followed by *upon* every
  model learns that reads the stories;
- hidden: which hidden units of the feed-forward networks one model shares with the
  other, whatever their order, scale or layer;
- weights: the cosine of a matrix with the one of the same name and shape.

How alike models are that were trained apart is measured by
``tools/measure/own_models.py`` and recorded in ``results/grader/own_models.json``; the
limits follow from that. A model that was taught by the other's answers alone
(distillation) cannot be told from one that was taught by the data: what is compared
here is then as far away as any other.
"""

from __future__ import annotations

import functools
import json
import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import nn

from workbench.data.tokenizer import TOKENIZER_FILE, Tokenizer
from workbench.model import models
from workbench.use import results as recorded

if TYPE_CHECKING:
    from workbench.data.text_tokenizer import TextTokenizer

    AnyTokenizer = Tokenizer | TextTokenizer

DISGUISE, TRAINED_ON, OWN = "disguise", "trained on", "own"
RECORD = recorded.FOLDER / "grader" / "own_models.json"

SEED = 1706
IMAGES = 256
SENTENCES = 48
SALAD = 32  # tokens of a text for language models
LENGTH = 6  # words of a sentence; even a model of bytes reads so many
ENGLISH = (
    "the a my your our one two old new red small happy tired black woman man child dog "
    "cat house garden book letter car river sees reads buys likes has finds is are not "
    "today often here in on with and because but where why always never they we she"
)
GERMAN = (
    "der die das ein eine mein dein viele zwei alte neue rote kleine müde schwarze "
    "Frau Mann Kind Hund Katze Haus Garten Buch Brief Auto Fluss sieht liest kauft mag "
    "hat findet ist sind nicht heute oft hier im auf mit und weil aber wo warum immer"
)

QUARTILE = 0.75  # of the hidden units of a layer, the quarter most alike speaks
IDLE = 1e-5  # a unit that moves by less than this share of its size says nothing
FEW = 8  # units of a layer that say too little
SMALL = 1024  # matrices with fewer numbers are alike by chance
# As shares of the distance that the nearest of the independent runs keeps
NEAR, VERY_NEAR = 2 / 3, 1 / 5


@dataclass(frozen=True)
class Likeness:
    """How alike two models are, each from 0, nothing in common, to 1, the same."""

    outputs: float
    hidden: float
    weights: float

    @property
    def words(self) -> str:
        """Say it in a line."""
        return ", ".join(f"{name} {value:.2f}" for name, value in asdict(self).items())


@dataclass(frozen=True)
class Shipped:
    """A model that the course ships, and what it computes."""

    model: nn.Module
    config: models.Config
    tokenizer: AnyTokenizer | None

    @property
    def vocabulary(self) -> set[str]:
        """The tokens of a translator."""
        return set(self.tokenizer.inner.get_vocab())


def load_tokenizer(folder: Path, config: models.Config) -> AnyTokenizer:
    """Load the tokenizer of a translator or a language model.

    Raises:
        WorkbenchError: it is not there, or damaged.
    """
    if models.kind_of(config) != "lm":
        return Tokenizer.load(folder / TOKENIZER_FILE)
    # not on top: what a grade of chapter 9 or 10 needs does not go with it
    from workbench.data.text_tokenizer import TextTokenizer

    return TextTokenizer.load(folder)


@functools.cache
def shipped(name: str) -> Shipped:
    """Load a model of results/models/.

    Raises:
        WorkbenchError: it is not there, or damaged.
    """
    folder = recorded.model_folder(name)
    model, config = models.load(folder)
    there = (folder / TOKENIZER_FILE).is_file()
    tokenizer = load_tokenizer(folder, config) if there else None
    return Shipped(model, config, tokenizer)


def judge(found: Likeness, limits: dict[str, dict[str, float]]) -> str:
    """Say what a model is, by how alike it is to the shipped one.

    Returns:
        DISGUISE if it computes the same, TRAINED_ON if it is more like it than models
        that were trained apart, or gives no numbers to compare, otherwise OWN.
    """
    if found.outputs >= limits["outputs"]["disguise"]:
        return DISGUISE
    # not "near": NaN is neither above a limit nor below it
    far = [value < limits[name]["trained on"] for name, value in asdict(found).items()]
    return OWN if all(far) else TRAINED_ON


@functools.cache
def limits(name: str, record: Path = RECORD) -> dict[str, dict[str, float]]:
    """Return the limits of each similarity to a shipped model, from the record."""
    runs = json.loads(record.read_text("utf-8"))["models"][name]["apart"]
    return limits_of([Likeness(**run["likeness"]) for run in runs])


def limits_of(apart: list[Likeness]) -> dict[str, dict[str, float]]:
    """Work the limits out from models that were trained apart."""
    found = {}
    for name in Likeness.__dataclass_fields__:
        nearest = 1 - max(getattr(each, name) for each in apart)
        found[name] = {
            "trained on": 1 - NEAR * nearest,
            "disguise": 1 - VERY_NEAR * nearest,
        }
    return found


def likeness(
    model: nn.Module,
    config: models.Config,
    tokenizer: AnyTokenizer | None,
    other: Shipped,
) -> Likeness | None:
    """Compare a model with a shipped one; None if they do not take the same inputs.

    A similarity is NaN if the model does not give numbers on the inputs.
    """
    if isinstance(config, models.VisionConfig):
        pair = _see(model, config, other)
    elif isinstance(config, models.LanguageModelConfig):
        pair = _go_on(model, tokenizer, other)
    else:
        pair = _read(model, config, tokenizer, other)
    if pair is None:
        return None
    ours, theirs = pair
    return Likeness(
        _outputs(ours.outputs, theirs.outputs),
        _hidden(ours.hidden, theirs.hidden),
        _weights(model, other.model),
    )


# --- what a model computes ------------------------------------------------------------


@dataclass(frozen=True)
class _Trace:
    """What a model computes: outputs (N, K), and hidden units (N, d_ff) by layer."""

    outputs: torch.Tensor
    hidden: dict[str, torch.Tensor]


@contextmanager
def _listening(model: nn.Module) -> Iterator[dict[str, torch.Tensor]]:
    """Keep what the hidden units of the feed-forward networks say."""
    said, handles = {}, []
    for name, module in model.named_modules():
        if name.endswith(".feed_forward"):

            def hear(module: nn.Module, inputs: tuple, name: str = name) -> None:
                said[name] = _units(module, *inputs)

            handles.append(module.register_forward_pre_hook(hear))
    try:
        yield said
    finally:
        for handle in handles:
            handle.remove()


def _units(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Compute the hidden units of a feed-forward network, gated or not."""
    if hasattr(module, "w_gate"):
        return F.silu(x @ module.w_gate) * (x @ module.w_up)
    return module.activation(x @ module.w_1 + module.b_1)


def _see(
    model: nn.Module, config: models.VisionConfig, other: Shipped
) -> tuple[_Trace, _Trace] | None:
    """Show both models images of noise, fine and coarse."""
    own = other.config
    if (config.sides, config.channels) != (own.sides, own.channels):
        return None
    images, seen = _images(own.channels, *own.sides), []
    for each, shape in ((model, config), (other.model, own)):
        with torch.inference_mode(), _listening(each) as said:
            outputs = each(images)
        first = int(shape.pooling == "class")  # that token has no patch
        seen.append((outputs, {name: x[:, first:] for name, x in said.items()}))
    counts = {x.shape[1] for _, said in seen for x in said.values()}
    whole = len(counts) > 1  # patches of other sizes: images are compared as a whole
    ours, theirs = (
        _Trace(
            outputs,
            {
                name: x.mean(dim=1) if whole else x.flatten(0, 1)
                for name, x in said.items()
            },
        )
        for outputs, said in seen
    )
    return ours, theirs


def _images(channels: int, height: int, width: int) -> torch.Tensor:
    """Draw normalised images of noise, half of them coarse."""
    generator = torch.Generator().manual_seed(SEED)
    half = IMAGES // 2
    fine = torch.rand(half, channels, height, width, generator=generator)
    coarse = torch.rand(half, channels, height // 2, width // 2, generator=generator)
    coarse = F.interpolate(coarse, size=(height, width), mode="bilinear")
    return (torch.cat((fine, coarse)) - 0.3) / 0.37  # about as digits are normalised


def _go_on(
    model: nn.Module, tokenizer: TextTokenizer, other: Shipped
) -> tuple[_Trace, _Trace] | None:
    """Let two language models read tokens that both know, in any order."""
    common = sorted(tokenizer.numbers.keys() & other.tokenizer.numbers)
    longest = min(model.max_length, other.model.max_length, SALAD)
    if len(common) < FEW:
        return None
    draw = random.Random(SEED)
    last = draw.choices(range(len(common)), k=SENTENCES * longest)
    chosen, rows = [common[number] for number in last], torch.tensor(last)
    traces = []
    for each, own in ((model, tokenizer), (other.model, other.tokenizer)):
        ids = torch.tensor([own.numbers[token] for token in chosen])
        with torch.inference_mode(), _listening(each) as said:
            logits = each(ids.view(SENTENCES, longest))  # (B, T, V)
        places = [own.numbers[token] for token in common]
        hidden = {name: x.flatten(0, 1) for name, x in said.items()}
        outputs = _unexplained(logits[..., places].flatten(0, 1), rows)
        traces.append(_Trace(outputs, hidden))
    return tuple(traces)


def _unexplained(scores: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
    """Take from scores (N, K) the mean over all places with the same last token (N)."""
    count = last.bincount().clamp(min=1)
    total = torch.zeros(len(count), scores.shape[1]).index_add(0, last, scores)
    return scores - (total / count.unsqueeze(1))[last]


def _read(
    model: nn.Module,
    config: models.TranslatorConfig,
    tokenizer: Tokenizer,
    other: Shipped,
) -> tuple[_Trace, _Trace] | None:
    """Let both models read words in any order; they are compared at ends of words."""
    ours, theirs = _Salad.of(tokenizer), _Salad.of(other.tokenizer)
    fits = [
        row
        for row in range(SENTENCES)
        if ours.longest(row) <= config.max_length
        and theirs.longest(row) <= other.config.max_length
    ]
    if not fits:
        return None
    common = sorted(tokenizer.inner.get_vocab().keys() & other.vocabulary)
    return (
        _reading(model, tokenizer, ours, fits, common),
        _reading(other.model, other.tokenizer, theirs, fits, common),
    )


@dataclass(frozen=True)
class _Salad:
    """Sentences without sense as ids, and at which ids their words end."""

    sources: list[list[int]]
    targets: list[list[int]]
    source_ends: list[list[int]]
    target_ends: list[list[int]]

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> _Salad:
        """Cut the sentences, word by word, as the tokenizer does."""
        words = sorted({*ENGLISH.split(), *GERMAN.split()})
        ids = dict(zip(words, tokenizer.encode_all(words), strict=True))
        sources, source_ends, targets, target_ends = [], [], [], []
        for english, german in _sentences():
            sources.append([each for word in english for each in ids[word]])
            source_ends.append(_ends([ids[word] for word in english]))
            rest = [each for word in german for each in ids[word]]
            targets.append([Tokenizer.SOS, *rest])
            target_ends.append([1 + end for end in _ends([ids[w] for w in german])])
        return cls(sources, targets, source_ends, target_ends)

    def longest(self, row: int) -> int:
        """Count the ids of the longer side of a sentence."""
        return max(len(self.sources[row]), len(self.targets[row]))


def _sentences() -> list[tuple[list[str], list[str]]]:
    """Draw words of both languages, in any order."""
    generator = random.Random(SEED)
    draw = generator.choices
    return [
        (draw(ENGLISH.split(), k=LENGTH), draw(GERMAN.split(), k=LENGTH))
        for _ in range(SENTENCES)
    ]


def _ends(words: list[list[int]]) -> list[int]:
    """Return the place of the last id of each word."""
    return [total - 1 for total in accumulate(map(len, words))]


def _reading(
    model: nn.Module,
    tokenizer: Tokenizer,
    salad: _Salad,
    rows: list[int],
    common: list[str],
) -> _Trace:
    """Trace a translator at the ends of words, on tokens that both models have."""
    source = padded([salad.sources[row] for row in rows])
    target = padded([salad.targets[row] for row in rows])
    with torch.inference_mode(), _listening(model) as said:
        logits = model(source, target)
    ends = {
        "encoder": torch.tensor([salad.source_ends[row] for row in rows]),
        "decoder": torch.tensor([salad.target_ends[row] for row in rows]),
    }
    hidden = {
        name: _at(x, ends[name.partition(".")[0]]).flatten(0, 1)
        for name, x in said.items()
    }
    ids = [tokenizer.inner.token_to_id(token) for token in common]
    return _Trace(_at(logits, ends["decoder"])[..., ids].flatten(0, 1), hidden)


def padded(rows: list[list[int]]) -> torch.Tensor:
    """Make one tensor of rows of ids, filled up on the right."""
    width = max(map(len, rows))
    return torch.tensor([row + [Tokenizer.PAD] * (width - len(row)) for row in rows])


def _at(values: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Take values (B, T, K) at places (B, n): (B, n, K)."""
    return values[torch.arange(len(places)).unsqueeze(1), places]


# --- how alike it is ------------------------------------------------------------------


def _outputs(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    """Correlate scores (N, K), whatever is common to all rows or to all columns."""
    if ours.shape != theirs.shape:
        return 0.0  # of other classes
    ours, theirs = (x - x.mean(dim=1, keepdim=True) for x in (ours, theirs))
    ours, theirs = (x - x.mean(dim=0) for x in (ours, theirs))
    return float((ours * theirs).sum() / (ours.norm() * theirs.norm()))


def _hidden(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> float:
    """Say how well the units of any layer of one are found again in the other.

    Either way round: there may be units beside the known ones, or known ones missing.
    """
    found = [0.0]
    stacks = [{n: _standard(x) for n, x in said.items()} for said in (ours, theirs)]
    for own_name, own in stacks[0].items():
        for name, known in stacks[1].items():
            if name.partition(".")[0] != own_name.partition(".")[0]:
                continue  # encoder and decoder read other texts
            alike = known.T @ own  # (known units, own units)
            if min(alike.shape) >= FEW:
                best = alike.amax(dim=0), alike.amax(dim=1)
                found += [float(each.quantile(QUARTILE)) for each in best]
    return _largest(found)


def _standard(x: torch.Tensor) -> torch.Tensor:
    """Bring units (N, d_ff) to mean 0 and length 1; leave the idle ones out."""
    centred = x - x.mean(dim=0)
    length = centred.norm(dim=0)
    moves = length > IDLE * x.norm(dim=0)
    return centred[:, moves] / length[moves]


def _weights(model: nn.Module, other: nn.Module) -> float:
    """Return the largest cosine of two matrices of a name, in whatever direction."""
    known, found = dict(other.named_parameters()), [0.0]
    for name, own in model.named_parameters():
        same = known.get(name)
        if same is None or same.shape != own.shape or own.numel() < SMALL:
            continue
        cosine = F.cosine_similarity(own.flatten(), same.flatten(), dim=0)
        found.append(abs(float(cosine.detach())))
    return _largest(found)


def _largest(values: list[float]) -> float:
    """Return the largest, or NaN if there is one."""
    return math.nan if any(map(math.isnan, values)) else max(values)
