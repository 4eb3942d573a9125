"""Chapter 4's checks: whose fault it is, and what a message must not give away."""

import pytest
import torch

from autograder.chapters import attention as check
from autograder.expect import CheckFailure
from tests import chapters

CHAPTER = "04_attention"
UNWRITTEN = "def softmax(scores):\n    raise NotImplementedError()"
COLUMNS = "def softmax(scores):\n    return torch.softmax(scores, -2)"
LATER = {  # what calls softmax, directly or not, and how its check is called
    "masked_softmax": "check.masked_softmax(masked_softmax, softmax)",
    "scaled_dot_product_attention": "check.scaled_dot_product_attention("
    "scaled_dot_product_attention, masked_softmax)",
    "attention_module": "check.attention_module("
    "Attention, scaled_dot_product_attention, project_qkv)",
    "additive_attention": "check.additive_attention(AdditiveAttention, masked_softmax)",
}


def fail_with(softmax: str, call: str) -> CheckFailure:
    """Run a later check in a notebook whose softmax is this one."""
    names: dict = {"__name__": "__main__", "torch": torch}
    for cell in chapters.source(CHAPTER).cells:
        wanted = cell.kind == "answer" or cell.options.get("module")
        if cell.node.cell_type == "code" and wanted:
            exec(chapters.without_markers(cell.text), names)
            if cell.options.get("exercise") == "softmax":
                exec(softmax, names)
    with pytest.raises(CheckFailure) as caught:
        exec(call, {**names, "check": check})
    return caught.value


@pytest.mark.parametrize("name", LATER)
def test_an_unwritten_earlier_exercise_is_named(name: str) -> None:
    failure = fail_with(UNWRITTEN, LATER[name])
    assert "calls softmax, which is not written yet" in str(failure)


@pytest.mark.parametrize("name", LATER)
def test_a_wrong_earlier_exercise_is_named(name: str) -> None:
    failure = fail_with(COLUMNS, LATER[name])
    assert "fails its own check" in failure.first
    assert "softmax over the wrong axis" in failure.first


def test_an_unwritten_exercise_blames_no_other() -> None:
    def masked_softmax(scores, mask=None):
        raise NotImplementedError()

    with pytest.raises(CheckFailure) as caught:
        check.masked_softmax(masked_softmax, masked_softmax)
    assert (caught.value.what, caught.value.first) == ("not written yet", "")


def test_messages_do_not_tell_the_numbers_of_the_exercise_done_by_hand() -> None:
    answer = chapters.solved(CHAPTER)["worked_context"]()
    for key, value in answer.items():
        wrong = {**answer, key: torch.zeros_like(torch.as_tensor(value)) - 7}
        with pytest.raises(CheckFailure) as caught:
            check.worked_context(lambda wrong=wrong: wrong)
        assert not caught.value.expected, str(caught.value)
