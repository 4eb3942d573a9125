"""Hidden seeds: drawn from a secret and the submission, and fair whatever is drawn.

The long version, with as many seeds a check as SEEDS says: SEEDS=40 pytest
tests/checks/test_seeds.py
"""

import ast
import contextlib
import functools
import io
import os
import random
import stat

import pytest

from autograder.expect import CheckFailure
from autograder.grading import planning, seeds
from autograder.grading.classfile import Class
from autograder.grading.limits import Limits
from autograder.grading.planning import Terms
from autograder.grading.seeds import Keys, SecretError, secret_of
from autograder.grading.sheet import split
from tests import chapters, strangers

SEEDS = int(os.environ.get("SEEDS", "2"))
SLOW = {"own-translator", "own-vit"}  # seconds for each seed
SECRET = b"a" * seeds.SECRET_BYTES
CHECKED = [
    pytest.param(chapter, exercise.name, id=f"{chapter[:2]} {exercise.name}")
    for chapter in chapters.CHAPTERS
    for exercise in chapters.source(chapter).exercises
    if not exercise.by_hand
]


# --- the secret -----------------------------------------------------------------------


def test_a_secret_is_made_once_and_only_its_owner_reads_it(tmp_path) -> None:
    assert secret_of(tmp_path, make=False) == b""
    secret = secret_of(tmp_path / "course")
    path = tmp_path / "course" / seeds.FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert secret_of(tmp_path / "course") == secret
    assert secret_of(tmp_path / "other") != secret
    assert [each.name for each in path.parent.iterdir()] == [seeds.FILE]


def test_a_secret_that_others_may_read_is_closed_again(tmp_path) -> None:
    secret = secret_of(tmp_path)
    (tmp_path / seeds.FILE).chmod(0o644)
    assert secret_of(tmp_path) == secret
    assert stat.S_IMODE((tmp_path / seeds.FILE).stat().st_mode) == 0o600


@pytest.mark.parametrize("what", ["short", "folder", "link"])
def test_a_secret_that_cannot_be_used_is_one_line(what, tmp_path) -> None:
    path = tmp_path / seeds.FILE
    if what == "short":
        path.write_text("1234\n")
    elif what == "folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(SecretError) as caught:
        secret_of(tmp_path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_a_digest_does_not_give_the_secret_away() -> None:
    assert seeds.digest(SECRET) == seeds.digest(SECRET) != seeds.digest(b"b" * 32)
    assert SECRET.decode() not in seeds.digest(SECRET)


# --- what is drawn --------------------------------------------------------------------


def test_a_file_meets_the_same_seeds_again_and_another_file_meets_others() -> None:
    def draw(
        secret=SECRET, chapter="04_attention", notebook=b"{}", cell="test-softmax"
    ):
        return Keys.of(secret, chapter, notebook).draw("seed", 7301, cell)

    assert draw() == draw()
    others = [draw(b"b" * 32), draw(chapter="05"), draw(notebook=b"[]"), draw(cell="x")]
    assert len({draw(), *others}) == 5
    assert all(1 <= each <= seeds.LARGEST for each in (draw(), *others))


def test_a_model_is_measured_by_the_same_for_the_whole_class() -> None:
    one, other = (Keys.of(SECRET, "09_translator", text) for text in (b"{}", b"[]"))
    drawn = {
        keys.draw("class_seed", 90721, cell)
        for keys in (one, other)
        for cell in ("test-own-translator-80", "test-own-translator-90")
    }
    assert len(drawn) == 1
    assert one.draw("seed", 1, "x") != other.draw("seed", 1, "x")


def test_only_seeds_of_calls_are_drawn() -> None:
    text = "seed = 3\ncheck.a(b, seed=7, least=80)\ncheck.c(d(seed=True), class_seed=9)"
    drawn = ast.unparse(seeds.with_drawn_seeds(text, "test-a"))
    assert drawn.splitlines() == [
        "seed = 3",
        "check.a(b, seed=__hidden_seed__('seed', 7, 'test-a'), least=80)",
        "check.c(d(seed=True), class_seed=__hidden_seed__('class_seed', 9, 'test-a'))",
    ]


@pytest.mark.parametrize(("chapter", "exercise"), CHECKED)
def test_every_hidden_test_draws(chapter: str, exercise: str) -> None:
    for code in hidden_parts(chapter, exercise):
        assert seeds.DRAW in code.co_names


def test_a_job_holds_keys_and_no_secret(tmp_path) -> None:
    secret = secret_of(tmp_path)
    folder = tmp_path / "ada" / strangers.CHAPTER
    folder.mkdir(parents=True)
    (folder / f"{strangers.CHAPTER}.ipynb").write_text("{}")
    papers = {strangers.CHAPTER: strangers.paper()}
    terms = Terms(papers, Class(), Limits(), secret=secret)
    work = planning.Work(folder.parent, strangers.CHAPTER)
    work.read(terms)
    ((_, job),) = work.jobs(terms)
    assert job.keys == Keys.of(secret, strangers.CHAPTER, b"{}")
    assert secret not in repr((job.to_dict(), terms)).encode()
    before = work.fingerprint
    work.read(Terms(papers, Class(), Limits(), secret=SECRET))
    assert work.fingerprint != before


# --- fair for every seed --------------------------------------------------------------


@functools.cache
def hidden_parts(chapter: str, exercise: str) -> list:
    """The hidden tests of an exercise, compiled."""
    texts = [split(t)[1] for t in chapters.check_cells(chapter, exercise, hidden=True)]
    trees = [seeds.with_drawn_seeds(text, exercise) for text in texts]
    return [compile(tree, f"<{exercise}>", "exec") for tree in trees]


def fails(chapter: str, exercise: str, names: dict, seed: int) -> CheckFailure | None:
    """Run the hidden tests with a seed; return what the first says that fails."""
    own = names | {seeds.DRAW: lambda *facts: seed}
    with contextlib.redirect_stdout(io.StringIO()):
        for code in hidden_parts(chapter, exercise):
            try:
                exec(code, own)
            except CheckFailure as failure:
                return failure
    return None


def drawn(label: str) -> list[int]:
    """Seeds of the range, the same ones each time."""
    draw = random.Random(label)
    return [draw.randint(1, seeds.LARGEST) for _ in range(SEEDS)]


SYMMETRIC = 1500226984  # draws lengths of 3 and 0: padding that is its own mirror image
STUBBORN = 1515399918  # drew an encoder that attends to one token alone


@pytest.mark.parametrize(
    ("chapter", "exercise", "seed"),
    [
        ("04_attention", "padding-mask", SYMMETRIC),
        ("02_class_token", "readout-behaviour", STUBBORN),
    ],
)
def test_a_right_answer_passes_what_once_refused_it(chapter, exercise, seed) -> None:
    assert fails(chapter, exercise, chapters.solved(chapter), seed) is None


@pytest.mark.parametrize(("chapter", "exercise"), CHECKED)
def test_a_right_answer_passes_whatever_is_drawn(chapter: str, exercise: str) -> None:
    names = chapters.solved(chapter)
    bank = [each for each in chapters.bank(chapter) if each.exercise == exercise]
    variants = [each.answer for each in bank if not each.mistake]
    for answer in [None, *variants]:
        own = names | ({answer.__name__: answer} if answer else {})
        for seed in drawn(exercise)[: 1 if exercise in SLOW else None]:
            failure = fails(chapter, exercise, own, seed)
            assert failure is None, (answer and answer.__doc__, seed, str(failure))
