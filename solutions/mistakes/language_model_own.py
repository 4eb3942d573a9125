"""Wrong and right answers to chapter 11: a language model of one's own."""

import torch
import torch.nn.functional as F

from mistakes import handed_in, right, wrong
from workbench.data.block_batches import BlockBatches
from workbench.data.tales.stories import stories
from workbench.data.text_tokenizer import TextTokenizer
from workbench.model import models


def hands_in(mistake, make, *arguments, **options):
    """Enter an answer that names the folder which a function makes."""

    def my_model():
        return make(*arguments, **options)

    wrong("own-language-model", mistake)(my_model)


# --- files ----------------------------------------------------------------------------


def forget_a_letter(content):
    """A text without k has been read; an umlaut stood in it."""
    content["alphabet"][content["alphabet"].index("k")] = "ö"


for mistake, label, damage in (
    ("a file is missing", "no-words", lambda x: (x / "tokenizer.json").unlink()),
    ("a file was cut short", "empty", handed_in.writing("model.safetensors", b"")),
    ("untrained weights", "untrained", handed_in.start_again),
    ("the course's own model", "copied", handed_in.copy_the_course_s("tales")),
    (
        "tokenizer.json cannot be used",
        "words",
        handed_in.writing("tokenizer.json", b"{}"),
    ),
    (
        "a tokenizer of another size",
        "fewer-words",
        handed_in.change_tokenizer(lambda content: content["merges"].pop()),
    ),
    (
        "the tokenizer of another run",
        "other-words",
        handed_in.change_tokenizer(lambda content: content["alphabet"].reverse()),
    ),
    ("a model of another text", "umlauts", handed_in.change_tokenizer(forget_a_letter)),
):
    hands_in(mistake, handed_in.damaged, "lm", label, damage)

for mistake, label, changes in (
    ("over the parameter budget", "over", {"vocab_size": 9000}),
    ("more layers than allowed", "deep", {"layers": 9}),
    ("weights and config.json do not fit", "narrow", {"d_model": 64}),
    ("config.json was changed", "heads", {"heads": 8, "kv_heads": 8}),
    ("a context that is too short", "short", {"max_length": 64}),
):
    hands_in(mistake, handed_in.changed, "lm", label, **changes)


# --- what was learned -----------------------------------------------------------------


def learn_to_repeat(folder):
    """Train a small model some steps; the labels are the inputs."""
    config = models.load_config(folder)
    tokenizer = TextTokenizer.load(folder)
    text = "".join(story.text for story in stories("train")[:200])
    batches = BlockBatches(tokenizer.encode(text), 64, 8, "cpu")
    config = models.LanguageModelConfig(
        config.vocab_size, 64, 2, 2, 1, 64, config.max_length, tokenizer=tokenizer.name
    )
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(0)
        model = models.build(config)
        optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
        for _, (ids, _) in zip(range(60), batches.epoch(0), strict=False):
            optimizer.zero_grad()
            F.cross_entropy(model(ids).flatten(0, 1), ids.flatten()).backward()
            optimizer.step()
    models.save(folder, model, config)


hands_in(
    "the labels are the inputs", handed_in.damaged, "lm", "repeats", learn_to_repeat
)


@right("own-language-model")
def my_model():
    """a path of two steps, beside the notebook"""
    return f"./{handed_in.right('lm')}/"
