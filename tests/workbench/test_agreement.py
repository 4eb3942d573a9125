"""R-Drop: how far two passes are apart, and what it adds to the loss."""

import pytest
import torch
from torch import nn
from torch.distributions import Categorical, kl_divergence

from transformer.decoder import sequence_loss
from workbench.data.tokenizer import Tokenizer
from workbench.errors import WorkbenchError
from workbench.training.agreement import agreeing_loss, divergence

SHAPE = (3, 5, 7)  # B, T, V


@pytest.fixture
def logits():
    torch.manual_seed(0)
    return torch.randn(SHAPE), torch.randn(SHAPE)


@pytest.fixture
def labels():
    found = torch.randint(1, SHAPE[-1], SHAPE[:2], generator=torch.manual_seed(1))
    found[0, 3:], found[2, 1:] = Tokenizer.PAD, Tokenizer.PAD
    return found


class Passes(nn.Module):
    """Gives other logits in the second half of a batch, as dropout would."""

    def __init__(self, first: torch.Tensor, second: torch.Tensor) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.cat([first, second]))

    def forward(self, source: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        assert torch.equal(*source.chunk(2)) and torch.equal(*inputs.chunk(2))
        return self.logits


def test_it_is_the_mean_of_both_directions_over_the_words(logits, labels):
    real = labels != Tokenizer.PAD
    p, q = (Categorical(logits=each[real]) for each in logits)
    wanted = (kl_divergence(p, q) + kl_divergence(q, p)).mean() / 2
    torch.testing.assert_close(divergence(*logits, real), wanted)


def test_what_is_at_padding_has_no_part_in_it(logits, labels):
    real = labels != Tokenizer.PAD
    other = logits[0].masked_fill(~real[..., None], 30.0)
    other[~real] *= torch.arange(SHAPE[-1])
    torch.testing.assert_close(
        divergence(other, logits[1], real), divergence(*logits, real)
    )
    nothing = torch.zeros_like(real)
    assert divergence(*logits, nothing) == 0


def test_the_loss_is_that_of_both_and_their_divergence(logits, labels):
    loss_of = agreeing_loss(sequence_loss, 0.0, 5.0)
    batch = labels, labels, labels
    losses = [sequence_loss(each, labels) for each in logits]
    wanted = sum(losses) / 2 + 5.0 / 2 * divergence(*logits, labels != Tokenizer.PAD)
    torch.testing.assert_close(loss_of(Passes(*logits), batch), wanted)
    alike = loss_of(Passes(logits[0], logits[0]), batch)
    torch.testing.assert_close(alike, losses[0])


def test_a_step_against_the_gradient_brings_the_passes_together(logits, labels):
    model = Passes(*logits)
    loss = agreeing_loss(lambda logits, *_: logits.sum() * 0, 0.0, 1.0)
    loss(model, (labels, labels, labels)).backward()
    with torch.no_grad():
        model.logits -= model.logits.grad
    real = labels != Tokenizer.PAD
    assert divergence(*model.logits.chunk(2), real) < divergence(*logits, real)


def test_a_negative_weight_is_refused():
    with pytest.raises(WorkbenchError, match="--r-drop -1"):
        agreeing_loss(sequence_loss, 0.0, -1.0)
