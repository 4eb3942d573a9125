"""``evaluate``, ``translate`` and ``write``: what is typed, and what is printed."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from workbench.command_line.options import (
    add_beam,
    add_data_folder,
    add_folder,
    add_place,
    add_score,
    positive,
)
from workbench.errors import WorkbenchError
from workbench.model import models
from workbench.training.devices import choose_device
from workbench.use import comparison, doubts, language_model
from workbench.use.evaluation import Evaluation, answer, compare
from workbench.use.language_model import Writer
from workbench.use.translator import Translator, search_of

EVALUATE_HELP = "Print the scores of a trained model; nothing is written."
TRANSLATE_HELP = (
    "Print the translation of each sentence on a line of its own; without sentences, "
    "of each line of the standard input. What speaks against a translation is said on "
    "the standard error: that it did not come to an end, and, of a model that has "
    "learned from a grammar of the course, which words it has never read."
)
WRITE_HELP = (
    "Let a language model go on with a text. What it writes is printed as it comes."
)
AS_SCORED = "as in its own record, metrics.json"  # a translator searches so


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Describe ``evaluate``, ``translate`` and ``write``."""
    add_evaluate(commands)
    add_translate(commands)
    add_write(commands)


# --- evaluate -------------------------------------------------------------------------


def add_evaluate(commands: argparse._SubParsersAction) -> None:
    """Describe ``evaluate``."""
    text = "score what was trained, on its test data"
    command = commands.add_parser("evaluate", help=text, description=EVALUATE_HELP)
    command.set_defaults(run=run_evaluate)
    command.add_argument("task", choices=list(models.KINDS))
    add_folder(command)
    command.add_argument("--data", metavar="NAME", help="default: what it learnt from")
    command.add_argument(
        "--form",
        choices=["raw", "lowercased"],
        help="of multi30k's text (default: what it learnt from)",
    )
    add_score(command, "on what; beam and alpha are chosen on validation")
    command.add_argument(
        "--against",
        metavar="DIR",
        help="another trained model, or the name of a record that keeps its model or "
        "what this said of the test set: how much better this one is on the same "
        "examples, by the paired bootstrap",
    )
    add_data_folder(command)
    add_beam(command, beam=AS_SCORED, alpha=AS_SCORED)
    add_place(command)


def run_evaluate(arguments: argparse.Namespace) -> int:
    """Print the scores of a trained model."""
    if arguments.task == "lm":
        return run_evaluate_language_model(arguments)
    asked = Evaluation(
        kind=arguments.task,
        folder=arguments.folder,
        device=choose_device(arguments.device),
        parts=arguments.parts,
        data=arguments.data,
        data_dir=arguments.data_dir,
        form=arguments.form,
        split=arguments.score,
        beam=arguments.beam,
        alpha=arguments.alpha,
    )
    answers = answer(asked)
    for name, value in answers.scores().items():
        print(f"{name:28} {value:.2f}")
    if arguments.against is not None:
        print(f"against {arguments.against}:")
        for name, found in compare(asked, answers, arguments.against).items():
            print(comparison.told(name, found))
    return 0


def run_evaluate_language_model(arguments: argparse.Namespace) -> int:
    """Print a model's scores on the test text, and what counting and packing reach."""
    if arguments.against is not None:
        raise WorkbenchError("--against compares translators or classifiers")
    if arguments.score != "test":
        raise WorkbenchError("--score is for translators or classifiers")
    writer = load_writer(arguments.folder, arguments.device, arguments.parts)
    evaluated = language_model.evaluate(
        writer, arguments.folder, arguments.data, arguments.data_dir
    )
    print(f"{evaluated.characters:,} characters of {evaluated.data} ", end="")
    print("that were not trained")
    print(f"{'':28} {'nats a character':>18} {'bits a byte':>14}")
    for name, (nats, bits) in evaluated.table.items():
        print(f"{name:28} {nats:18.3f} {bits:14.3f}")
    for name, value in evaluated.scores.items():
        if name.startswith("agreement_"):
            kind = name.removeprefix("agreement_")
            print(f"{'agreement: ' + kind:28} {value:16.1f} %")
        if name == "copied":
            print(f"{name:28} {value:16.1f} %")
        if name == "induction":
            print(f"{'its best head copies':28} {value:18.3f}")
    return 0


# --- translate ------------------------------------------------------------------------


def add_translate(commands: argparse._SubParsersAction) -> None:
    """Describe ``translate``."""
    text = "translate sentences with what was trained"
    command = commands.add_parser("translate", help=text, description=TRANSLATE_HELP)
    command.set_defaults(run=run_translate)
    add_folder(command)
    command.add_argument("sentences", nargs="*", metavar="SENTENCE")
    text = "say on the standard error how probable the model finds each translation"
    command.add_argument("--probability", action="store_true", help=text)
    add_beam(command, beam=AS_SCORED, alpha=AS_SCORED)
    add_place(command)


def run_translate(arguments: argparse.Namespace) -> int:
    """Translate the sentences of the command line, or of the standard input."""
    device = choose_device(arguments.device)
    parts = models.load_parts(arguments.parts)
    translator = Translator.load(arguments.folder, device, parts)
    sentences = arguments.sentences or sys.stdin.read().splitlines()
    search = search_of(arguments.folder, arguments.beam, arguments.alpha)
    written = translator.translations(sentences, *search)
    language = translator.config.source
    unread = doubts.unread_words(arguments.folder, language, sentences)
    for number, (sentence, each) in enumerate(zip(sentences, written, strict=True)):
        print(each.text)
        notes = doubts.notes(each, unread[number])
        if arguments.probability and sentence.strip():
            notes.append(doubts.belief(translator.probability(sentence, each)))
        for note in notes:
            print(f"sentence {number + 1}: {note}", file=sys.stderr)
    return 0


# --- write ----------------------------------------------------------------------------


def add_write(commands: argparse._SubParsersAction) -> None:
    """Describe ``write``."""
    command = commands.add_parser(
        "write", help="let a language model write", description=WRITE_HELP
    )
    command.set_defaults(run=run_write)
    add_folder(command)
    command.add_argument("prompt", metavar="TEXT", help="what it is to go on with")
    text = "tokens to write (256)"
    command.add_argument("--length", type=positive, default=256, metavar="N", help=text)
    text = "0: always the most probable token; 1: as the model has it (0.8)"
    command.add_argument("--temperature", type=float, default=0.8, help=text)
    text = "draw from the smallest set of tokens that has this probability (0.95)"
    command.add_argument("--top-p", type=float, default=0.95, help=text)
    command.add_argument("--seed", type=int, default=0, help="(0)")
    text = "compute all keys and values anew for each token: the same text, later"
    command.add_argument("--no-cache", action="store_true", help=text)
    add_place(command)


def run_write(arguments: argparse.Namespace) -> int:
    """Print the prompt, and what the model writes, as it comes."""
    if arguments.temperature < 0 or not 0 < arguments.top_p <= 1:
        raise WorkbenchError(
            "--temperature must be at least 0, and --top-p above 0 and at most 1"
        )
    writer = load_writer(arguments.folder, arguments.device, arguments.parts)
    written = writer.write(
        arguments.prompt,
        arguments.length,
        arguments.temperature,
        arguments.top_p,
        arguments.seed,
        use_cache=not arguments.no_cache,
    )
    begun = False
    for text in written:
        print(text if begun else arguments.prompt + text, end="", flush=True)
        begun = True
    print()
    return 0


def load_writer(folder: Path, device: str, parts: Path | None) -> Writer:
    """Load a trained language model by the names that were typed."""
    return Writer.load(folder, choose_device(device), models.load_parts(parts))
