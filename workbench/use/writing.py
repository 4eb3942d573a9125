"""Let a language model write, a token at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch

from workbench.errors import WorkbenchError
from workbench.model.language_model import LanguageModel
from workbench.model.next_token import NextToken, can_be_packed

if TYPE_CHECKING:
    from workbench.model.models import Parts


def window(count: int, most: int) -> int:
    """Return how many of the last tokens are looked at when there are so many.

    All of them while they fit into the model's context. Then its last half, which grows
    until the context is full again: so keys and values are computed anew only once for
    every half of the context.
    """
    if count <= most:
        return count
    half = max(1, most // 2)
    return half + (count - most - 1) % (most - half + 1)


class Reading:
    """The logits of what follows everything that was read."""

    def __init__(
        self, model: LanguageModel, parts: Parts, use_cache: bool = True
    ) -> None:
        """Begin with nothing; the parts are the model's."""
        self.model, self.use_cache = model, use_cache
        self.ids: list[int] = []
        self.caches, self.cached = model.new_caches(), 0
        can = use_cache and model.fused and can_be_packed(model, parts)
        self.next_token = NextToken(model) if can else None

    @torch.inference_mode()
    def read(self, ids: list[int]) -> torch.Tensor:
        """Read ids, and return the logits (V,) of the next."""
        self.ids += ids
        looked_at = window(len(self.ids), self.model.max_length)
        new = looked_at
        if self.use_cache and looked_at == self.cached + len(ids):
            new = len(ids)
        elif self.use_cache:
            self.caches = self.model.new_caches()
        goes_on, self.cached = new < looked_at, looked_at
        if self.next_token and goes_on and new == 1:
            return self.next_token.read(ids[0])
        device = self.model.embedding.weight.device
        last = torch.tensor([self.ids[-new:]], device=device)
        caches = self.caches if self.use_cache else None
        logits: torch.Tensor = self.model(last, caches)[0, -1]
        if self.next_token:
            self.next_token.begin(self.caches)
        return logits


def write(
    model: LanguageModel,
    prompt: list[int],
    length: int,
    parts: Parts,
    temperature: float = 1.0,
    top_p: float | None = None,
    seed: int = 0,
    use_cache: bool = True,
) -> Iterator[int]:
    """Yield the ids that the model writes after a prompt.

    Args:
        model: in evaluation mode.
        prompt: ids, at least one.
        length: how many to write.
        parts: filter_logits and sample_next are theirs.
        temperature: 0 takes the most probable token each time.
        top_p: as ``filter_logits`` has it.
        seed: of what is drawn.
        use_cache: remember keys and values; the same ids, sooner.

    Raises:
        WorkbenchError: the prompt is empty, or longer than the model's context.
    """
    if not prompt:
        raise WorkbenchError("the prompt is empty: give the model a word to begin with")
    if len(prompt) > model.max_length:
        raise WorkbenchError(
            f"the prompt has {len(prompt)} tokens, and this model reads "
            f"{model.max_length}: shorten it"
        )
    generator = torch.Generator().manual_seed(seed)
    reading, newest = Reading(model, parts, use_cache), list(prompt)
    for _ in range(length):
        logits = reading.read(newest)
        newest = [choose(logits, parts, temperature, top_p, generator)]
        yield newest[0]


@torch.inference_mode()
def choose(
    logits: torch.Tensor,
    parts: Parts,
    temperature: float,
    top_p: float | None,
    generator: torch.Generator,
) -> int:
    """Return the next id, from logits (V,); the rest is as in ``write``."""
    logits = logits.float().cpu()
    if temperature == 0:
        return int(logits.argmax())
    kept = parts.filter_logits(logits, temperature, None, top_p)
    uniform = torch.rand((), generator=generator)
    return int(parts.sample_next(kept.softmax(dim=-1), uniform))
