"""Ratios of the language model: a training step, and writing with a cache.

Run by `make bench BENCH=language-model`. Cases take turns, as in `bench_models`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from tools.measure import bench_models
from tools.measure.bench_models import Group, step_case
from tools.measure.bench_peers import TorchLanguageModel
from workbench.model import models
from workbench.model.models import LanguageModelConfig, Parts
from workbench.training import records
from workbench.training.language_model import next_token_loss
from workbench.training.presets import LANGUAGE_MODELS
from workbench.use import writing

CHARACTERS = 65  # of tiny Shakespeare


@dataclass(frozen=True)
class Sizes:
    """What is measured, and how often."""

    config: LanguageModelConfig
    writers: tuple[LanguageModelConfig, ...]
    d_ff: int  # of the ReLU network with as many weights as the SwiGLU
    rows: int  # blocks in a batch
    length: int  # tokens written
    repeats: int


def sizes_of(quick: bool) -> Sizes:
    """Return tiny Shakespeare's preset; quick: smaller batches, fewer repeats."""
    preset = LANGUAGE_MODELS["shakespeare"]
    config = LanguageModelConfig(
        CHARACTERS,
        preset.d_model,
        preset.heads,
        preset.kv_heads,
        preset.layers,
        preset.d_ff,
        preset.context,
    )
    larger = replace(config, d_model=256, heads=8, layers=6, d_ff=704)
    rows = 8 if quick else preset.tokens // preset.context
    repeats = 3 if quick else 7
    return Sizes(config, (config, larger), 3 * preset.d_ff // 2, rows, 256, repeats)


def groups(
    sizes: Sizes, device: torch.device, parts: Parts, compiled: bool
) -> list[Group]:
    """Describe what is measured; nothing is built yet."""
    return [
        step_group(sizes, device, parts, compiled),
        *(writing_group(config, sizes, device, parts) for config in sizes.writers),
    ]


def step_group(
    sizes: Sizes, device: torch.device, parts: Parts, compiled: bool
) -> Group:
    """A training step: PyTorch's layers, ours of that shape, and today's choices."""
    today = sizes.config
    old = replace(
        today,
        kv_heads=today.heads,
        d_ff=sizes.d_ff,
        norm="layer",
        feed_forward="relu",
        positions="learned",
        qk_norm=False,
    )
    shape = (sizes.rows, today.max_length)
    about = (
        f"{today.layers} layers, d_model {today.d_model}, {shape[0]} blocks of "
        f"{shape[1]}, {bench_models.precision(device)}"
    )

    def batch() -> tuple[torch.Tensor, ...]:
        return tuple(torch.randint(CHARACTERS, shape).to(device) for _ in range(2))

    def ours(config: LanguageModelConfig, fused: bool = True) -> Callable:
        def build() -> torch.nn.Module:
            model = models.build(config, parts)
            model.fused = fused
            return model

        return build

    case, loss = step_case(batch, device), next_token_loss()
    cases = {
        "nn.TransformerEncoderLayer, causal": case(
            lambda: TorchLanguageModel(old), loss
        ),
        "ours of 2017, attention written": case(ours(old, False), loss),
        "ours of 2017, attention fused": case(ours(old), loss),
        "ours of today, attention fused": case(ours(today), loss),
    }
    if compiled:
        for name, config in (("2017", old), ("today", today)):
            cases[f"ours of {name}, attention fused, compiled"] = case(
                ours(config), loss, compiled=True
            )
    return Group("training step, language model", about, sizes.repeats, cases)


def writing_group(
    config: LanguageModelConfig, sizes: Sizes, device: torch.device, parts: Parts
) -> Group:
    """Write, keys and values remembered or not."""
    config = replace(config, max_length=sizes.length + 1)

    def case(use_cache: bool) -> Callable:
        def make() -> Callable[[], Any]:
            torch.manual_seed(0)
            model = models.build(config, parts).to(device).eval()
            model.fused = True

            def step() -> None:
                ids = writing.write(
                    model, [0], sizes.length, parts, 0.8, 0.95, use_cache=use_cache
                )
                if len(list(ids)) != sizes.length:
                    raise RuntimeError(f"not {sizes.length} tokens were written")

            return step

        return make

    cases = {"with cache": case(True), "without cache": case(False)}
    name = f"writing, {sizes.length} tokens, d_model {config.d_model}"
    about = f"one text, {config.layers} layers, top-p"
    return Group(name, about, sizes.repeats, cases)


def main(arguments: argparse.Namespace) -> dict[str, Any]:
    """Print a table for each group; return the figures by group and case."""
    device, _ = bench_models.prepare(arguments)
    failure = bench_models.compiler_fails(device)
    print(f"{records.describe_device(device)}, torch {torch.__version__}")
    print("medians of cases that take turns; ratio: time over that of the first case")
    if failure:
        print(f"torch.compile is left out, for it does not work here: {failure}")
    found, sizes = {}, sizes_of(arguments.quick)
    for group in groups(sizes, device, models.load_parts(), failure is None):
        figures = bench_models.measure(group, device)
        bench_models.show(group, figures)
        found[group.name] = figures
    return found
