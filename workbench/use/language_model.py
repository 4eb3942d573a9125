"""``train lm``, ``evaluate lm`` and ``write``: what is typed, and what is printed."""

from __future__ import annotations

import argparse

import torch

from workbench.data import corpora
from workbench.data.text_tokenizer import TextTokenizer
from workbench.data.tokenizer import TOKENIZER_FILE
from workbench.errors import WorkbenchError
from workbench.model import models
from workbench.model.language_model import LanguageModel
from workbench.model.models import FEED_FORWARDS, NORMS, POSITIONS
from workbench.training import language_model, options, records
from workbench.training.devices import choose_device
from workbench.training.runs import train_each
from workbench.use import counting, scoring, writing

WRITE_HELP = (
    "Let a language model go on with a text. What it writes is printed as it comes."
)


# --- What is typed --------------------------------------------------------------------


def add_train(kinds: argparse._SubParsersAction, description: str) -> None:
    """Describe ``train lm``."""
    command = kinds.add_parser("lm", help="a language model", description=description)
    command.set_defaults(run=run_train)
    options.add_training(command, "tales", corpora.NAMES, "tokens")
    text = "tokens that the model looks back on; also the length of a block"
    command.add_argument(
        "--context", type=options.positive, metavar="TOKENS", help=text
    )
    text = "byte pairs to join by exercise 1.5; 0: characters"
    command.add_argument("--merges", type=not_negative, metavar="N", help=text)
    text = "heads of keys and values; with --heads alone, as many as those"
    command.add_argument("--kv-heads", type=options.positive, metavar="N", help=text)
    command.add_argument("--norm", choices=NORMS, help="exercise 6.1 or 6.3")
    command.add_argument("--feed-forward", choices=FEED_FORWARDS, help="6.5 or 6.6")
    command.add_argument("--positions", choices=POSITIONS, help="exercise 3.7 or 3.8")
    command.add_argument(
        "--qk-norm",
        action=argparse.BooleanOptionalAction,
        help="RMS norm of queries and keys",
    )


def add_write(commands: argparse._SubParsersAction) -> None:
    """Describe ``write``."""
    command = commands.add_parser(
        "write", help="let a language model write", description=WRITE_HELP
    )
    command.set_defaults(run=run_write)
    options.add_folder(command)
    command.add_argument("prompt", metavar="TEXT", help="what it is to go on with")
    text = "tokens to write (256)"
    command.add_argument(
        "--length", type=options.positive, default=256, metavar="N", help=text
    )
    text = "0: always the most probable token; 1: as the model has it (0.8)"
    command.add_argument("--temperature", type=float, default=0.8, help=text)
    text = "draw from the smallest set of tokens that has this probability (0.95)"
    command.add_argument("--top-p", type=float, default=0.95, help=text)
    command.add_argument("--seed", type=int, default=0, help="(0)")
    text = "compute all keys and values anew for each token: the same text, later"
    command.add_argument("--no-cache", action="store_true", help=text)
    options.add_place(command)


def not_negative(text: str) -> int:
    """Read a whole number from 0 upwards."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"must be at least 0, not {number}")
    return number


# --- What is done ---------------------------------------------------------------------


def load(
    arguments: argparse.Namespace, device: torch.device
) -> tuple[LanguageModel, TextTokenizer, models.Parts]:
    """Load a trained language model.

    Raises:
        WorkbenchError: the folder holds none, or the tokenizer of another one.
    """
    folder = arguments.folder
    found = models.kind_of(models.load_config(folder))
    if found != "lm":
        raise WorkbenchError(f"{folder} holds a {found} and no language model (lm)")
    parts = models.load_parts(arguments.parts)
    model, config = models.load(folder, parts)
    tokenizer = TextTokenizer.load(folder, parts)
    assert isinstance(config, models.LanguageModelConfig)
    if tokenizer.name != config.tokenizer:
        raise WorkbenchError(
            f"{folder / TOKENIZER_FILE} is not the tokenizer that this model was "
            "trained with: they are of different runs"
        )
    model.fused = True
    return model.to(device), tokenizer, parts


def run_train(arguments: argparse.Namespace) -> int:
    """Train a language model."""
    return train_each(arguments, language_model.train_language_model)


def run_write(arguments: argparse.Namespace) -> int:
    """Print the prompt, and what the model writes, as it comes."""
    if arguments.temperature < 0 or not 0 < arguments.top_p <= 1:
        raise WorkbenchError(
            "--temperature must be at least 0, and --top-p above 0 and at most 1"
        )
    model, tokenizer, parts = load(arguments, choose_device(arguments.device))
    prompt = tokenizer.encode(arguments.prompt)
    written = writing.write(
        model,
        prompt,
        arguments.length,
        parts,
        arguments.temperature,
        arguments.top_p,
        arguments.seed,
        use_cache=not arguments.no_cache,
    )
    begun = False
    for number in written:
        text = tokenizer.decode([number])
        print(text if begun else arguments.prompt + text, end="", flush=True)
        begun = True
    print()
    return 0


def run_evaluate(arguments: argparse.Namespace, device: torch.device) -> int:
    """Print a model's scores on the test text, and what counting and packing reach."""
    model, tokenizer, parts = load(arguments, device)
    if arguments.data is None:
        arguments.data = records.read(arguments.folder / records.FILE)["data"]["name"]
    texts = corpora.load_texts(arguments.data, arguments.data_dir)
    material = language_model.Material(texts, tokenizer, parts, device)
    scores = language_model.score(model, material, "test")
    print(f"{len(texts.test):,} characters of {arguments.data} that were not trained")
    print(f"{'':28} {'nats a character':>18} {'bits a byte':>14}")
    show("this model", scores)
    for order, nats in counting.counted(texts.train, texts.test, texts.alphabet):
        name = f"counting {order} character{'s' * (order > 1)}"
        show(name, scoring.text_scores(nats, texts.test))
    nats = counting.packed(texts.train, texts.test)
    show("xz", scoring.text_scores(nats, texts.test))
    for name, value in scores.items():
        if name.startswith("agreement_"):
            kind = name.removeprefix("agreement_")
            print(f"{'agreement: ' + kind:28} {value:16.1f} %")
        if name == "copied":
            print(f"{name:28} {value:16.1f} %")
        if name == "induction":
            print(f"{'its best head copies':28} {value:18.3f}")
    return 0


def show(name: str, scores: dict[str, float]) -> None:
    """Print a row of the table."""
    nats, bits = scores["nats_per_character"], scores["bits_per_byte"]
    print(f"{name:28} {nats:18.3f} {bits:14.3f}")
