"""Ratios of training and decoding: ours against PyTorch's layers, side by side.

Run by `make bench`. The cases of a group take turns in one process, and the median of
each is divided by that of the first. The peak of memory is measured for each case in a
process of its own.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tools.measure.bench_peers import (
    PAD,
    TorchTranslator,
    TorchVision,
    translation_loss,
)
from tools.steps import ROOT
from workbench.model import models
from workbench.model.dropout import drop_by_bytes
from workbench.model.models import Parts, TranslatorConfig, VisionConfig
from workbench.training import devices, loop, records, steps
from workbench.training.memory import keep_memory
from workbench.training.translator import translation_loss as our_loss
from workbench.training.vision import image_loss
from workbench.use.decoding import translate_batch

MIB = 2**20
SOS, NEVER = 2, -1  # no token has the second id: decoding never ends early
SMOOTHING = 0.1


@dataclass(frozen=True)
class Sizes:
    """What is measured, and how often."""

    translator: TranslatorConfig
    pairs: int  # in a batch
    width: int  # tokens of the longest sentence of a batch
    vision: VisionConfig
    images: int  # in a batch
    sentences: int  # translated at once
    lengths: tuple[int, ...]  # new tokens
    repeats: int
    decodings: int  # repeats of the decoding


MULTI30K = TranslatorConfig(vocab_size=10_000, max_length=260)
CIFAR10 = VisionConfig(32, 4, 3, 10, 192, 12, 9, 384)
FULL = Sizes(MULTI30K, 64, 24, CIFAR10, 64, 16, (16, 64, 256), 7, 3)
QUICK = Sizes(MULTI30K, 16, 24, CIFAR10, 8, 4, (16, 64, 256), 3, 1)


@dataclass(frozen=True)
class Group:
    """Cases that do the same work; each is made by a function and called again."""

    name: str
    about: str
    repeats: int
    cases: dict[str, Callable[[], Callable[[], Any]]] = field(default_factory=dict)
    warm_up: int = 1  # calls that are not measured: the first one compiles


# --- What is compared -----------------------------------------------------------------


def groups(sizes: Sizes, device: torch.device, compiled: bool) -> list[Group]:
    """Describe everything that is measured; nothing is built yet."""
    parts = models.load_parts()
    decoding = [decoding_group(n, sizes, device, parts) for n in sizes.lengths]
    return [
        translator_group(sizes, device, parts, compiled),
        vision_group(sizes, device, parts, compiled),
        *decoding,
    ]


def translator_group(
    sizes: Sizes, device: torch.device, parts: Parts, compiled: bool
) -> Group:
    """A training step of the encoder-decoder: forward, loss, backward, AdamW."""
    config = sizes.translator
    about = (
        f"{config.layers} + {config.layers} layers, d_model {config.d_model}, "
        f"{config.vocab_size} tokens, {sizes.pairs} pairs of up to {sizes.width}, "
        f"dropout {config.dropout}, {precision(device)}"
    )
    theirs = translation_loss(SMOOTHING)
    ours = our_loss(parts, SMOOTHING)

    case = step_case(lambda: pair_batch(sizes, device), device)

    def alike():
        return TorchTranslator(config, parts, alike=True)

    cases = {
        "nn.Transformer": case(lambda: TorchTranslator(config, parts), theirs),
        "nn.Transformer, dropout only where ours is": case(alike, theirs),
    }
    cases |= variants(lambda: models.build(config, parts), ours, case, compiled)
    return Group("training step, translator", about, sizes.repeats, cases)


def vision_group(
    sizes: Sizes, device: torch.device, parts: Parts, compiled: bool
) -> Group:
    """A training step of the Vision Transformer."""
    config = sizes.vision
    about = (
        f"{config.layers} layers, d_model {config.d_model}, {config.heads} heads, "
        f"{sizes.images} images of {config.image_size} x {config.image_size}, "
        f"dropout {config.dropout}, {precision(device)}"
    )
    loss = image_loss(SMOOTHING)

    case = step_case(lambda: image_batch(sizes, device), device)
    cases = {"nn.TransformerEncoderLayer": case(lambda: TorchVision(config), loss)}
    cases |= variants(lambda: models.build(config, parts), loss, case, compiled)
    return Group("training step, Vision Transformer", about, sizes.repeats, cases)


def step_case(batch_of: Callable[[], tuple], device: torch.device) -> Callable:
    """Return what makes a case of a training step, on a batch that is drawn for it."""

    def case(build, loss_of, attention="written", compiled=False):
        def make():
            torch.manual_seed(0)
            batch = batch_of()
            return training_step(build(), loss_of, batch, device, attention, compiled)

        return make

    return case


def variants(build, loss_of, case, compiled: bool) -> dict[str, Callable]:
    """Our model, with both kinds of attention, as it is and compiled."""
    cases = {
        f"ours, attention {attention}": case(build, loss_of, attention)
        for attention in ("written", "fused")
    }
    if compiled:
        cases |= {
            f"{name}, compiled": case(build, loss_of, name.rsplit(" ", 1)[1], True)
            for name in list(cases)
        }
    return cases


def decoding_group(
    length: int, sizes: Sizes, device: torch.device, parts: Parts
) -> Group:
    """Greedy decoding of some tokens, keys and values remembered or not."""
    config = sizes.translator
    about = f"{sizes.sentences} sentences at once, greedy, {config.layers} layers"

    def case(use_cache: bool):
        def make():
            torch.manual_seed(0)
            model = models.build(config, parts).to(device).eval()
            source = torch.randint(4, config.vocab_size, (sizes.sentences, 20))
            source = source.to(device)

            def write():
                found = translate_batch(
                    model, source, SOS, NEVER, length + 1, 1, 0.0, use_cache, parts
                )
                if {len(row) for row in found} != {length}:
                    raise RuntimeError(f"not all sentences have {length} tokens")

            return write

        return make

    cases = {"with cache": case(True), "without cache": case(False)}
    name = f"decoding, {length} tokens"
    return Group(name, about, sizes.decodings, cases, warm_up=0)


def training_step(
    model: nn.Module,
    loss_of: Callable,
    batch: tuple,
    device: torch.device,
    attention: str,
    compiled: bool,
) -> Callable[[], Any]:
    """Return what takes one of the workbench's own steps with a model."""
    config = loop.TrainingConfig(
        compile=compiled, precision=precision(device), steps=1_000_000
    )
    run = loop.start(model.to(device).train(), config, 1, device)
    taken = steps.Steps(run, loss_of, lambda batch: (batch, None), config, device)
    parts = models.load_parts()
    if attention == "fused" and device.type == "cpu" and not compiled:
        drop_by_bytes(model)  # as fit does

    def step():
        with models.use_fast(attention, model, parts), models.use_masks(device):
            taken.take(batch, config.peak_rate)

    return step


def precision(device: torch.device) -> str:
    """Name the precision that training uses on a device."""
    return "bfloat16" if device.type == "cuda" else "float32"


def pair_batch(sizes: Sizes, device: torch.device) -> tuple[torch.Tensor, ...]:
    """Draw sentences of differing lengths: source, inputs, labels, each (B, T)."""
    shape, width = (sizes.pairs, sizes.width), sizes.width
    lengths = torch.randint(2 * width // 3, width + 1, (sizes.pairs, 1))
    lengths[0] = width
    real = torch.arange(width) < lengths  # (B, T)
    rows = [
        torch.randint(4, sizes.translator.vocab_size, shape).where(real, PAD)
        for _ in range(3)
    ]
    return tuple(each.to(device) for each in rows)


def image_batch(sizes: Sizes, device: torch.device) -> tuple[torch.Tensor, ...]:
    """Draw images (B, channels, H, W) and their classes (B,)."""
    config = sizes.vision
    images = torch.randn(sizes.images, config.channels, *config.sides)
    classes = torch.randint(config.classes, (sizes.images,))
    return images.to(device), classes.to(device)


# --- Time -----------------------------------------------------------------------------


def measure(group: Group, device: torch.device) -> dict[str, dict[str, Any]]:
    """Let the cases of a group take turns; return figures for each."""
    steps, found = {}, {}
    for name, make in group.cases.items():
        steps[name] = make()
        begun = [seconds(steps[name], device) for _ in range(group.warm_up)]
        found[name] = {"warm_up_seconds": begun, "all_seconds": []}
    for _ in range(group.repeats):
        for name, step in steps.items():
            found[name]["all_seconds"].append(seconds(step, device))
    for figures in found.values():
        figures["seconds"] = statistics.median(figures["all_seconds"])
    base = found[next(iter(found))]["seconds"]
    for figures in found.values():
        figures["ratio"] = figures["seconds"] / base
    return found


def seconds(step: Callable[[], Any], device: torch.device) -> float:
    """Time a call: by the clock, or on one thread of a CPU by its processor time.

    The latter does not count what other programs do meanwhile.
    """
    alone = device.type == "cpu" and torch.get_num_threads() == 1
    clock = time.process_time if alone else time.perf_counter
    devices.wait(device)
    begin = clock()
    step()
    devices.wait(device)
    return clock() - begin


def compiler_fails(device: torch.device) -> str | None:
    """Try torch.compile on something small; return why it cannot be used, or None."""
    try:
        x = torch.ones(3, device=device)
        torch.compile(lambda x: x.sin() + 1)(x)
    except Exception as error:  # a missing C++ compiler, header, driver, ...
        lines = str(error).strip().splitlines() or [""]
        return f"{type(error).__name__}: {lines[0][:120]}"
    return None


# --- Memory ---------------------------------------------------------------------------


def peak_of(group: Group, case: str, device: torch.device) -> int:
    """Return the most bytes that a case needs beyond the imported packages.

    Weights, gradients, the optimiser's state and everything between are counted; for a
    compiled case on a CPU also the compiler. Call it in a process that has done
    nothing else.
    """
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    before = memory_peak(device)
    step = group.cases[case]()
    for _ in range(group.warm_up + 1):  # the optimiser's state comes with a first step
        step()
    devices.wait(device)
    return memory_peak(device) - before


def memory_peak(device: torch.device) -> int:
    """Return the largest number of bytes this process has held so far."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    try:  # getrusage would begin with the size of the process that started this one
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(1024 * int(x.split()[1]) for x in lines if x.startswith("VmHWM"))
    except (OSError, StopIteration):
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def peak_in_child(group: Group, case: str, arguments: argparse.Namespace) -> int | None:
    """Measure a case's memory in a new process; None if that fails."""
    command = [sys.executable, "-m", "tools.measure.bench"]
    command += ["--memory-of", group.name, case, "--device", arguments.device]
    command += ["--threads", str(arguments.threads)]
    command += ["--quick"] * arguments.quick
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    lines = done.stdout.split()
    return int(lines[-1]) if done.returncode == 0 and lines else None


# --- Both -----------------------------------------------------------------------------


def prepare(arguments: argparse.Namespace) -> tuple[torch.device, Sizes]:
    """Choose device and sizes; set what training sets."""
    warnings.filterwarnings("ignore", message="enable_nested_tensor")
    torch.set_num_threads(arguments.threads)
    device = devices.choose_device(arguments.device)
    if device.type == "cpu":
        keep_memory()
    return device, QUICK if arguments.quick else FULL


def memory_main(arguments: argparse.Namespace) -> None:
    """Print the peak of one case, in bytes."""
    device, sizes = prepare(arguments)
    wanted, case = arguments.memory_of
    for group in groups(sizes, device, compiled=True):
        if group.name == wanted:
            print(peak_of(group, case, device))


def main(arguments: argparse.Namespace) -> dict[str, Any]:
    """Print a table for each group; return all figures."""
    device, sizes = prepare(arguments)
    result = {
        "device": records.describe_device(device),
        "versions": records.versions(),
        "commit": records.commit(),
        "threads": torch.get_num_threads(),
        "quick": arguments.quick,
        "groups": {},
    }
    failure = compiler_fails(device)
    result["compiler"] = failure or "used"
    print(f"{result['device']}, torch {torch.__version__}")
    print("medians of cases that take turns; ratio: time over that of the first case")
    if failure:
        print(f"torch.compile is left out, for it does not work here: {failure}")
    for group in groups(sizes, device, compiled=failure is None):
        figures = measure(group, device)
        for case, values in figures.items():
            values["peak_bytes"] = peak_in_child(group, case, arguments)
        result["groups"][group.name] = {"about": group.about, "cases": figures}
        show(group, figures)
    return result


def show(group: Group, figures: dict[str, dict[str, Any]]) -> None:
    """Print the table of a group."""
    print(f"\n{group.name}: {group.about}")
    print(f"{'':<44}{'ms':>9}{'ratio':>8}{'fastest – slowest':>20}{'peak MiB':>10}")
    for name, values in figures.items():
        times = [1000 * each for each in values["all_seconds"]]
        spread = f"{min(times):.0f} – {max(times):.0f}"
        peak = values.get("peak_bytes")
        memory = "?" if peak is None else f"{peak / MIB:.0f}"
        print(
            f"{name:<44}{1000 * values['seconds']:>9.0f}{values['ratio']:>8.2f}"
            f"{spread:>20}{memory:>10}",
            flush=True,
        )
    for name, values in figures.items():
        if name.endswith("compiled"):
            print(f"{name}: first step {values['warm_up_seconds'][0]:.0f} s")


def write(path: Path, result: dict[str, Any]) -> None:
    """Write all figures as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
