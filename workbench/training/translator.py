"""Train a translator, score it, and write its folder."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from workbench.data.batches import FEW_LENGTHS, PairBatches
from workbench.data.segmentations import RedrawnBatches, Segmentations
from workbench.data.texts import test_name
from workbench.data.tokenizer import TOKENIZER_FILE, Tokenizer
from workbench.model import models
from workbench.model.tied_loss import tied_loss
from workbench.training.agreement import agreeing_loss
from workbench.training.devices import world
from workbench.training.loop import fit
from workbench.training.presets import TranslatorPreset
from workbench.training.runs import Trained, TrainingRun, finish, prepare_folder
from workbench.use.evaluation import corpus_of, score_translator
from workbench.use.translator import Translator


@dataclass(frozen=True, kw_only=True)
class TranslatorRun(TrainingRun):
    """A translator that is to be trained.

    Args:
        preset: its shape, vocabulary and batches; how it is trained says ``training``.
        source: the language that it reads, as "en".
        target: the language that it writes.
        form: of multi30k's text, "raw" or "lowercased".
        tied: the logits have the embeddings' matrix.
        scaled: embeddings are multiplied by the root of d_model.
        few_shapes: batches have few fixed shapes.
        bpe_dropout: the probability that a pair of a word is not joined, in training.
        r_drop: how much two passes with other dropout are to agree; 0: one pass.
        alpha: length penalty of the beam that scores it.
    """

    preset: TranslatorPreset
    source: str = "en"
    target: str = "de"
    form: str = "raw"
    tied: bool = True
    scaled: bool = True
    few_shapes: bool = False
    bpe_dropout: float = 0.0
    r_drop: float = 0.0
    alpha: float = 0.6

    @property
    def texts(self) -> tuple[str, Path | None, str, str, str]:
        """The arguments of ``load_corpus``."""
        return self.data, self.data_dir, self.source, self.target, self.form


def train_translator(run: TranslatorRun, device: torch.device) -> None:
    """Train a translator on a device, score it, and write its folder."""
    begun = time.perf_counter()
    preset, training = run.preset, run.training
    prepare_folder(run.out, run.resume)
    corpus, tokenizer = corpus_of(*run.texts), tokenizer_of(run)
    parts = models.load_parts(run.parts)
    config = config_of(run, tokenizer)
    torch.manual_seed(training.seed)
    model = models.build(config, parts)
    batches_of = functools.partial(pair_batches, run, device, parts)
    batches = training_batches(corpus.train, tokenizer, run, batches_of)
    held = batches_of(0, *encoded(corpus.validation, tokenizer))
    chunked = makes_few_logits(run, device)
    fast = models.use_fast(training.attention, model, parts)
    hidden = models.use_hidden(parts) if chunked else contextlib.nullcontext()
    with fast, hidden, models.use_masks(device, parts):
        history = fit(
            model,
            training_loss(run, parts, chunked),
            batches,
            lambda model: {"loss": mean_loss(model, held, parts, chunked)},
            training,
            run.out,
            device,
            resume=run.resume,
            weight_of=count_words,
        )
    if world()[0] > 0:
        return
    models.save(run.out, model, config)  # whatever becomes of the scores
    translator = Translator(model, config, tokenizer, parts, device)
    pairs = getattr(corpus, run.split)
    search = preset.beam, run.alpha
    scores, signatures = score_translator(translator, pairs, run.form, *search)
    data = {"name": run.data, "form": run.form}
    data |= {"source": run.source, "target": run.target}
    data |= {"test": test_name(run.data, run.split)}
    finish(
        "translator",
        run.out,
        Trained(model, config, training, history, device, begun),
        data,
        scores,
        signatures=signatures,
        decoding={"beam": preset.beam, "alpha": run.alpha},
        batch=preset.tokens,
    )


def config_of(run: TranslatorRun, tokenizer: Tokenizer) -> models.TranslatorConfig:
    """Shape a translator for a tokenizer."""
    preset = run.preset
    return models.TranslatorConfig(
        vocab_size=len(tokenizer),
        d_model=preset.d_model,
        heads=preset.heads,
        layers=preset.layers,
        d_ff=preset.d_ff,
        dropout=preset.dropout,
        norm_first=preset.norm_first,
        source=run.source,
        target=run.target,
        tied=run.tied,
        scaled=run.scaled,
    )


@functools.lru_cache(maxsize=1)
def trained_tokenizer(texts: tuple, vocab_size: int) -> Tokenizer:
    """Train the tokenizer of both languages; ``texts``: arguments of load_corpus."""
    both = [text for pair in corpus_of(*texts).train for text in pair]
    return Tokenizer.train(both, vocab_size)


def tokenizer_of(run: TranslatorRun) -> Tokenizer:
    """Train the tokenizer and keep it in the run's folder; to resume, take that one."""
    path = run.out / TOKENIZER_FILE
    if run.resume:
        return Tokenizer.load(path)
    tokenizer = trained_tokenizer(run.texts, run.preset.vocab_size)
    if world()[0] == 0:
        tokenizer.save(path)
    return tokenizer


def training_batches(
    pairs: list[tuple[str, str]],
    tokenizer: Tokenizer,
    run: TranslatorRun,
    batches_of: Callable[..., PairBatches],
) -> PairBatches | RedrawnBatches:
    """Batch what is trained on, each epoch cut anew where a run has BPE dropout."""
    seed = run.training.seed
    if not run.bpe_dropout:
        return batches_of(seed, *encoded(pairs, tokenizer))
    sources, targets = (
        Segmentations(tokenizer, texts, run.bpe_dropout, seed)
        for texts in zip(*pairs, strict=True)
    )
    return RedrawnBatches(sources, targets, functools.partial(batches_of, seed), seed)


def encoded(
    pairs: list[tuple[str, str]], tokenizer: Tokenizer
) -> tuple[list[list[int]], list[list[int]]]:
    """Return the ids of a split's sources, and of its targets."""
    return (
        tokenizer.encode_all(source for source, _ in pairs),
        tokenizer.encode_all(target for _, target in pairs),
    )


def pair_batches(
    run: TranslatorRun,
    device: torch.device,
    parts: models.Parts,
    seed: int,
    sources: list[list[int]],
    targets: list[list[int]],
) -> PairBatches:
    """Put pairs on the device, in batches as the run has them."""
    few: dict[str, Any] = {"lengths": FEW_LENGTHS, "even": False}
    return PairBatches(
        sources,
        targets,
        run.preset.tokens,
        device,
        seed,
        shift_right=parts.shift_right,
        **(few if run.few_shapes else {}),
    )


def makes_few_logits(run: TranslatorRun, device: torch.device) -> bool:
    """Tell whether ``tied_loss`` is what is faster: on a CPU, in half precision."""
    training = run.training
    fast = training.attention == "fused" and training.precision == "bfloat16"
    return fast and run.tied and not training.compile and device.type == "cpu"


def training_loss(
    run: TranslatorRun, parts: models.Parts, chunked: bool
) -> Callable[[nn.Module, tuple], torch.Tensor]:
    """Return the loss that a run makes small."""
    smoothing = run.training.smoothing
    if not run.r_drop:
        return translation_loss(parts, smoothing, chunked)
    of_all_logits = agreeing_loss(parts.sequence_loss, smoothing, run.r_drop)
    return loss_of_hidden(smoothing, run.r_drop) if chunked else of_all_logits


def translation_loss(
    parts: models.Parts, smoothing: float, chunked: bool = False
) -> Callable[[nn.Module, tuple], torch.Tensor]:
    """Return chapter 7's loss of a batch.

    Args:
        parts: what the model is made of.
        smoothing: of the labels.
        chunked: the model returns hidden states, see ``models.use_hidden``.
    """
    sequence_loss = parts.sequence_loss
    if chunked:
        return loss_of_hidden(smoothing)

    def loss_of(model: nn.Module, batch: tuple) -> torch.Tensor:
        source, inputs, labels = batch
        logits = model(source, inputs)  # (B, T, V)
        return sequence_loss(logits, labels, Tokenizer.PAD, smoothing)

    return loss_of


def loss_of_hidden(
    smoothing: float, agreement: float = 0.0
) -> Callable[[nn.Module, tuple], torch.Tensor]:
    """Return the same loss for a model that returns hidden states.

    Args:
        smoothing: of the labels.
        agreement: R-Drop's weight; if there is one, the batch is read twice.
    """
    passes = 2 if agreement else 1

    def loss_of(model: nn.Module, batch: tuple) -> torch.Tensor:
        source, inputs, labels = batch
        hidden = model(source.repeat(passes, 1), inputs.repeat(passes, 1))
        table: Any = models.unwrap(model).embedding
        return tied_loss(
            hidden, table.weight, labels, Tokenizer.PAD, smoothing, agreement
        )

    return loss_of


def count_words(batch: tuple) -> torch.Tensor:
    """Count the labels that are scored, shape ()."""
    return (batch[2] != Tokenizer.PAD).sum()


def mean_loss(
    model: nn.Module, batches: PairBatches, parts: models.Parts, chunked: bool = False
) -> float:
    """Return the mean over all words of the loss without smoothing, in nats."""
    loss_of = translation_loss(parts, 0.0, chunked)
    total = torch.zeros((), device=batches.device)
    words = torch.zeros((), device=batches.device, dtype=torch.long)
    for batch in batches.epoch(0):
        count = count_words(batch)
        total, words = total + loss_of(model, batch) * count, words + count
    return float(total / words)
