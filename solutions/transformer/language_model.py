"""Language model: the answers to the exercises of chapter 11.

Generated from solutions/11_language_model.md by `make exercises`; change that file.
"""

import math

import torch
from torch import nn


from transformer.attention import causal_mask, scaled_dot_product_attention
from transformer.encoder import FeedForward, LayerNorm, RMSNorm, SwiGLU
from transformer.multi_head_attention import (
    GroupedQueryAttention,
    merge_heads,
    repeat_heads,
    split_heads,
)
from transformer.positional_encoding import apply_rotary


def bits_per_byte(losses: torch.Tensor, text: str) -> float:
    """Say what a text costs a model, in a unit that no tokenizer changes.

    Args:
        losses: (T,), the cross-entropy of each token in nats.
        text: all that the tokens stand for, at least one character.

    Returns:
        Bits per byte of UTF-8.

    Defined in Exercise 11.1 · Bits per byte.
    """
    # 1. The whole text, in bits. 2. Per byte.
    return losses.sum().item() / math.log(2) / len(text.encode())


def pack_documents(
    documents: list[list[int]], end_id: int, length: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Put documents one behind the other, and cut them into blocks of one length.

    Args:
        documents: the ids of each, at least one document; some may be empty.
        end_id: put behind each document; it belongs to the document.
        length: T, of a block.

    Returns:
        Inputs and labels, the document of each input (from 0) and its position in that
        document (from 0), integers (N, T). N = (number of tokens - 1) // T.

    Defined in Exercise 11.2 · Documents into blocks.
    """
    # 1. A stream of ids, documents and positions. 2. How many have a label and fill
    # blocks. 3. Cut; the labels are one ahead.
    ids, owners, positions = [], [], []
    for number, document in enumerate(documents):
        ids += [*document, end_id]
        owners += [number] * (len(document) + 1)
        positions += range(len(document) + 1)
    blocks = (len(ids) - 1) // length
    end = blocks * length
    rows = (ids[:end], ids[1 : end + 1], owners[:end], positions[:end])
    return tuple(torch.tensor(row).long().view(blocks, length) for row in rows)


def document_mask(documents: torch.Tensor) -> torch.Tensor:
    """Let each position attend to those of its own document that are not after it.

    Args:
        documents: (B, T), the number of each position's document. A document's tokens
            stand side by side.

    Returns:
        Boolean (B, 1, T, T), True where query i (row) may attend to key j (column).

    Defined in Exercise 11.3 · A mask between documents.
    """
    # 1. The same document. 2. And not later. 3. An axis for the heads.
    same = documents.unsqueeze(2) == documents.unsqueeze(1)  # (B, T, T)
    causal = causal_mask(documents.shape[1]).to(documents.device)  # (T, T)
    return (same & causal).unsqueeze(1)


def causal_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rotary: bool = False
) -> torch.Tensor:
    """Attend from each position to itself and to those before it.

    Args:
        q: (B, heads, T, d_k).
        k: (B, kv_heads, T, d_k); neighbouring query heads share one.
        v: (B, kv_heads, T, d_k).
        rotary: rotate queries and keys by their positions, 0 to T - 1.

    Returns:
        (B, heads, T, d_k).

    Defined in Exercise 11.4 · One attention for all choices.
    """
    # 1. Rotate. 2. Repeat. 3. Attend, with a causal mask.
    if rotary:
        q, k = apply_rotary(q), apply_rotary(k)
    times = q.shape[1] // k.shape[1]
    k, v = repeat_heads(k, times), repeat_heads(v, times)  # (B, heads, T, d_k)
    mask = causal_mask(q.shape[-2]).to(q.device)  # (T, T)
    return scaled_dot_product_attention(q, k, v, mask)[0]


class DecoderBlock(nn.Module):
    """Causal self-attention and a feed-forward network, each after its norm.

    Submodules: attention (GroupedQueryAttention), feed_forward, norm_1, norm_2, norm_q,
    norm_k, dropout.

    Defined in Exercise 11.5 · The block, from a configuration.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        kv_heads: int,
        d_ff: int,
        norm: str = "rms",
        feed_forward: str = "swiglu",
        positions: str = "rotary",
        qk_norm: bool = True,
        dropout: float = 0.0,
    ) -> None:
        """Choose and build the parts.

        Args:
            d_model: the width of the tokens.
            heads: of queries.
            kv_heads: of keys and values.
            d_ff: the width inside the network.
            norm: of both halves, "layer" or "rms".
            feed_forward: "relu", "gelu" or "swiglu".
            positions: "rotary", or "learned": then nothing is rotated.
            qk_norm: whether norm_q and norm_k are RMS norms of each head.
            dropout: of what each half adds.
        """
        super().__init__()
        self.heads, self.kv_heads = heads, kv_heads
        self.rotary = positions == "rotary"
        # 1. Attention, the network, two norms, two more for queries and keys, dropout.
        self.attention = GroupedQueryAttention(d_model, heads, kv_heads)
        if feed_forward == "swiglu":
            self.feed_forward = SwiGLU(d_model, d_ff)
        else:
            self.feed_forward = FeedForward(d_model, d_ff, feed_forward)
        kind = RMSNorm if norm == "rms" else LayerNorm
        self.norm_1, self.norm_2 = kind(d_model), kind(d_model)
        d_k = d_model // heads
        self.norm_q = RMSNorm(d_k) if qk_norm else nn.Identity()
        self.norm_k = RMSNorm(d_k) if qk_norm else nn.Identity()
        self.dropout = nn.Dropout(dropout)

    def project(
        self, x: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Make queries, keys and values; nothing is rotated yet.

        Args:
            x: (B, T, d_model), before its norm.

        Returns:
            q (B, heads, T, d_k), k and v (B, kv_heads, T, d_k).
        """
        # 2. Normalise. 3. Project and split. 4. Normalise queries and keys.
        normalised, weights = self.norm_1(x), self.attention
        q = self.norm_q(split_heads(normalised @ weights.w_q, self.heads))
        k = self.norm_k(split_heads(normalised @ weights.w_k, self.kv_heads))
        v = split_heads(normalised @ weights.w_v, self.kv_heads)
        return q, k, v

    def finish(self, x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        """Add what attention has found, then what the network makes of it.

        Args:
            x: (B, T, d_model), as it came in.
            z: (B, heads, T, d_k), what causal_attention has returned.

        Returns:
            (B, T, d_model).
        """
        # 5. Merge, mix, add. 6. Normalise, feed forward, add.
        x = x + self.dropout(merge_heads(z) @ self.attention.w_o)  # (B, T, d_model)
        return x + self.dropout(self.feed_forward(self.norm_2(x)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run both halves; x and result (B, T, d_model)."""
        q, k, v = self.project(x)
        return self.finish(x, causal_attention(q, k, v, self.rotary))


@torch.no_grad()
def write_with_cache(model: nn.Module, prompt: list[int], length: int) -> list[int]:
    """Write the most probable token again and again, and read each token once.

    Args:
        model: called as model(ids, start, cache): new ids (1, T), the position of the
            first, and the cache that it returned before, None at the beginning. Returns
            logits (1, T, V) and the new cache.
        prompt: ids to begin with, at least one.
        length: how many tokens to write, from 0.

    Returns:
        The ids, prompt included.

    Raises:
        ValueError: the prompt is empty.

    Defined in Exercise 11.6 · Write with a cache.
    """
    # 1. Refuse. 2. Read what is new, where it stands. 3. Append the most probable.
    if not prompt:
        raise ValueError("the prompt is empty")
    ids, read, cache = list(prompt), 0, None
    for _ in range(length):
        logits, cache = model(torch.tensor([ids[read:]]), read, cache)
        read = len(ids)
        ids.append(int(logits[0, -1].argmax()))
    return ids
