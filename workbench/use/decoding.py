"""Write a translation: greedy or with a beam, many sentences at once.

The search is that of chapter 7 (``greedy_decode``, ``beam_search``), for a batch: the
same hypotheses, in the same order. What has been computed for the tokens already
written is remembered by chapter 7's own ``attend_cached``; keys and values of the
source are computed once, and shared by all hypotheses of a sentence.

Padding and the start token are never written: no training text has them.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from workbench.model.models import Parts, load_parts, unwrap
from workbench.model.variants import output_matrix

STEPS_BETWEEN_LOOKS = 8  # on an accelerator, looking whether all is done makes it wait


@torch.inference_mode()
def translate_batch(
    model: nn.Module,
    source: torch.Tensor,
    sos: int,
    eos: int,
    max_length: int,
    beam: int = 1,
    alpha: float = 0.6,
    use_cache: bool = True,
    parts: Parts | None = None,
) -> list[list[int]]:
    """Translate a batch of sentences.

    Args:
        model: a Transformer of the parts; dropout is off while it writes.
        source: (B, T_src), ids, padded with the model's pad_id, on its device.
        sos: the id to begin with.
        eos: the id that ends a sentence.
        max_length: the largest number of ids of a translation, sos included.
        beam: how many hypotheses of a sentence are kept; 1 is greedy.
        alpha: at least 0; log-probabilities are divided by (new ids)**alpha.
        use_cache: False computes everything anew for each token, to compare.
        parts: what the model is made of; None: the reference.

    Returns:
        B lists of ids, without sos and eos.

    Raises:
        ValueError: beam below 1, alpha negative, max_length below 2.
    """
    if beam < 1 or alpha < 0 or max_length < 2:
        raise ValueError(
            f"beam {beam} must be at least 1, alpha {alpha} at least 0, "
            f"max_length {max_length} at least 2"
        )
    if not len(source):
        return []
    parts = load_parts() if parts is None else parts
    built: Any = unwrap(model)  # of somebody's parts
    was_training = built.training
    built.eval()
    try:
        kind = Remembering if use_cache else Recomputing
        writer = kind(built, source, beam, max_length, parts)
        search = Search(source, eos, beam, alpha, max_length)
        return _run(search, writer, sos, (built.pad_id, sos))
    finally:
        built.train(was_training)


def _run(
    search: Search, writer: Remembering | Recomputing, sos: int, never: tuple[int, ...]
) -> list[list[int]]:
    newest = torch.full_like(search.parents.flatten(), sos)  # (B·beam,)
    for count in range(1, search.most + 1):
        logits = writer.next_logits(newest).float()  # (B·beam, V)
        for token in never:
            logits.select(1, token).fill_(-math.inf)
        newest = search.extend(logits, count)
        if search.all_done(count):
            break
        if search.beam > 1:
            writer.reorder(search.parents.flatten())
    return search.best()


class Search:
    """The hypotheses of B sentences, and the best that has ended of each.

    Nothing here waits for the device, but ``all_done`` and ``best``.
    """

    def __init__(
        self,
        source: torch.Tensor,
        eos: int,
        beam: int,
        alpha: float,
        max_length: int,
    ) -> None:
        """Start with one hypothesis a sentence: nothing written, probability 1."""
        size, device = len(source), source.device
        self.eos, self.beam, self.alpha = eos, beam, alpha
        self.most = max_length - 1  # new ids
        # Sums as exact as chapter 7's; Apple's devices have no float64.
        exact = torch.float32 if device.type == "mps" else torch.float64
        self.totals = torch.full((size, beam), -math.inf, dtype=exact, device=device)
        self.totals[:, 0] = 0.0
        self.written = torch.full(
            (size, beam, self.most), eos, dtype=torch.long, device=device
        )
        self.best_score = torch.full((size,), -math.inf, dtype=exact, device=device)
        self.best_written = self.written[:, 0].clone()  # (B, most)
        self.first_row = beam * torch.arange(size, device=device).unsqueeze(1)  # (B, 1)
        self.parents = self.first_row + torch.arange(beam, device=device)  # (B, beam)

    def extend(self, logits: torch.Tensor, count: int) -> torch.Tensor:
        """Append the `count`-th id to the best hypotheses; set aside what has ended.

        Args:
            logits: (B·beam, V), of the next id.
            count: how many ids are written then.

        Returns:
            (B·beam,), the new ids; ``parents`` says which row each of them continues.
        """
        if self.beam == 1:  # the largest logit is the most probable id
            gains, ids = logits.max(dim=-1, keepdim=True)  # (B, 1)
        else:  # no more than `beam` of one hypothesis can be among the best of all
            width = min(self.beam, logits.shape[-1])
            gains, ids = logits.log_softmax(dim=-1).topk(width, dim=-1)
        gains = gains.unflatten(0, self.totals.shape).to(
            self.totals.dtype
        )  # (B, beam, width)
        grown = (self.totals.unsqueeze(-1) + gains).flatten(1)  # (B, beam·width)
        self.totals, places = grown.topk(self.beam, dim=-1)  # (B, beam)
        newest = ids.reshape(grown.shape).gather(1, places)  # (B, beam)
        slots = places // ids.shape[-1]  # (B, beam)
        self.parents = self.first_row + slots
        if self.beam > 1:
            index = slots.unsqueeze(-1).expand_as(self.written)
            self.written = self.written.gather(1, index)
        self.written[:, :, count - 1] = newest
        ended = newest == self.eos  # (B, beam)
        self._keep_best(self.totals.masked_fill(~ended, -math.inf), count)
        self.totals = self.totals.masked_fill(ended, -math.inf)
        # A sum can only fall: once none can overtake, even at full length, a sentence
        # is done. Giving up single hypotheses would let others in, unlike chapter 7.
        hope = self.totals / self.most**self.alpha
        hopeless = (hope <= self.best_score.unsqueeze(1)).all(dim=1, keepdim=True)
        self.totals = self.totals.masked_fill(hopeless, -math.inf)
        return newest.flatten()

    def _keep_best(self, totals: torch.Tensor, count: int) -> None:
        """Remember the best of these hypotheses, if it is better than the last one."""
        score, slot = (totals / count**self.alpha).max(dim=1)  # (B,)
        rows = torch.arange(len(slot), device=slot.device)
        better = score > self.best_score
        candidate = self.written[rows, slot]  # (B, most)
        self.best_written = candidate.where(better.unsqueeze(1), self.best_written)
        self.best_score = score.where(better, self.best_score)

    def all_done(self, count: int) -> bool:
        """Whether nothing is left to extend; on an accelerator, seldom looked at."""
        if self.totals.device.type != "cpu" and count % STEPS_BETWEEN_LOOKS:
            return False
        return not bool(self.totals.isfinite().any())

    def best(self) -> list[list[int]]:
        """The best of what has ended and of what has reached the largest length."""
        self._keep_best(self.totals, self.most)
        rows = self.best_written.tolist()
        return [row[: row.index(self.eos)] if self.eos in row else row for row in rows]


class Recomputing:
    """The logits of the next ids, from everything written so far, each time anew."""

    def __init__(
        self,
        model: Any,
        source: torch.Tensor,
        beam: int,
        max_length: int,
        parts: Parts,
    ) -> None:
        """Read the source, once."""
        self.model, self.parts = model, parts
        self.source = source.repeat_interleave(beam, dim=0)  # (B·beam, T_src)
        self.memory = model.encode(source).repeat_interleave(beam, dim=0)
        self.written = self.source[:, :0]  # (B·beam, t)

    def next_logits(self, newest: torch.Tensor) -> torch.Tensor:
        """Append ids (B·beam,), and return the logits (B·beam, V) of what follows."""
        self.written = torch.cat((self.written, newest.unsqueeze(1)), dim=1)
        hidden = self.model.decode(self.written, self.memory, self.source)
        return self.parts.tied_logits(hidden[:, -1], output_matrix(self.model))

    def reorder(self, rows: torch.Tensor) -> None:
        """Let each row continue another one: rows (B·beam,)."""
        self.written = self.written[rows]


class Remembering:
    """The same logits, with keys and values of all layers remembered."""

    def __init__(
        self,
        model: Any,
        source: torch.Tensor,
        beam: int,
        max_length: int,
        parts: Parts,
    ) -> None:
        """Read the source, and project it for the cross-attention of each layer."""
        self.model, self.parts, self.beam = model, parts, beam
        self.layers = model.decoder.layers
        memory = model.encode(source)  # (B, T_src, d)
        self.source_mask = (source != model.pad_id).unsqueeze(1)  # (B, 1, T_src)
        self.across = [
            layer.cross_attention.project(memory[:, :1], memory)[1:]
            for layer in self.layers
        ]
        self.caches: list[dict[str, torch.Tensor] | None] = [None] * len(self.layers)
        # What the module adds to a zero is its table, whatever it is called in there.
        nothing = memory.new_zeros(max_length - 1, memory.shape[-1])
        self.positions = model.position(nothing)  # (max_length - 1, d)
        self.count = 0

    def next_logits(self, newest: torch.Tensor) -> torch.Tensor:
        """Read ids (B·beam,), and return the logits (B·beam, V) of what follows."""
        x = self.model.embedding(newest.unsqueeze(1)) + self.positions[self.count]
        for number, layer in enumerate(self.layers):
            x = self._step(number, layer, x)  # (B·beam, 1, d)
        self.count += 1
        hidden = self.model.decoder.norm(x[:, 0])  # (B·beam, d)
        return self.parts.tied_logits(hidden, output_matrix(self.model))

    def reorder(self, rows: torch.Tensor) -> None:
        """Let each row continue another one; only rows of one sentence change places.

        So the source's keys and values stay where they are.
        """
        self.caches = [
            {name: kept.index_select(0, rows) for name, kept in (cache or {}).items()}
            for cache in self.caches
        ]

    def _step(self, number: int, layer: Any, x: torch.Tensor) -> torch.Tensor:
        """One decoder layer, for the newest position only: (B·beam, 1, d)."""
        if layer.norm_first:
            x = x + self._look_back(number, layer, layer.norm_1(x))
            x = x + self._look_across(number, layer, layer.norm_2(x))
            return x + layer.feed_forward(layer.norm_3(x))
        x = layer.norm_1(x + self._look_back(number, layer, x))
        x = layer.norm_2(x + self._look_across(number, layer, x))
        return layer.norm_3(x + layer.feed_forward(x))

    def _look_back(self, number: int, layer: Any, x: torch.Tensor) -> torch.Tensor:
        attention = layer.self_attention
        q, k, v = attention.project(x, x)  # (B·beam, heads, 1, d_k)
        z, self.caches[number] = self.parts.attend_cached(q, k, v, self.caches[number])
        return self.parts.merge_heads(z) @ attention.w_o + attention.b_o

    def _look_across(self, number: int, layer: Any, x: torch.Tensor) -> torch.Tensor:
        """The hypotheses of a sentence are the queries of one attention."""
        attention = layer.cross_attention
        beams = x.unflatten(0, (-1, self.beam)).squeeze(2)  # (B, beam, d)
        q = self.parts.split_heads(
            beams @ attention.w_q + attention.b_q, attention.heads
        )
        output, _ = attention.attend(q, *self.across[number], self.source_mask)
        return output.flatten(0, 1).unsqueeze(1)  # (B·beam, 1, d)
