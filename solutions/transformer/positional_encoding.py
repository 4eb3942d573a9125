"""Positional encoding: the answers to the exercises of chapter 3.

Generated from solutions/03_positional_encoding.md by `make exercises`; change that file.
"""

import math

import torch
from torch import nn


def order_behaviour(
    outputs: torch.Tensor, outputs_of_permuted: torch.Tensor, permutation: torch.Tensor
) -> dict[str, bool]:
    """Tell how a model's output follows a permutation of its input.

    Args:
        outputs: f(X); (T, d), a row per token, or (d,) for a pooled output.
        outputs_of_permuted: f(X[permutation]), of the same shape.
        permutation: the numbers 0 ... T-1 in a new order, (T,), integers.

    Returns:
        {"equivariant": whether f(RX) = R f(X), "invariant": whether f(RX) = f(X)},
        both up to rounding (1e-5). For a pooled output "equivariant" is False.

    The two words as in Zaheer et al. 2017, "Deep Sets".

    Defined in Exercise 3.1 · Equivariant or invariant.
    """
    # 1. invariant: the same values at the same places
    # 2. equivariant: one row per token, and the same rows in the new order
    # 3. both answers, by name
    invariant = torch.allclose(outputs_of_permuted, outputs, atol=1e-5)
    equivariant = outputs.ndim == 2 and torch.allclose(
        outputs_of_permuted, outputs[permutation], atol=1e-5
    )
    return {"equivariant": equivariant, "invariant": invariant}


def sinusoidal_positional_encoding(
    length: int, d_model: int, base: float = 10_000.0
) -> torch.Tensor:
    """Return the sinusoidal encoding of the positions 0 ... length-1.

    Args:
        length: the number of positions, T.
        d_model: the width, even.
        base: the longest wavelength approaches 2π · base positions.

    Returns:
        (length, d_model), float32: column 2i is sin(p / base^(2i/d_model)), column
        2i+1 the cosine of the same angle (in radians).

    Raises:
        ValueError: if d_model is odd.

    Vaswani et al. 2017, section 3.5.

    Defined in Exercise 3.2 · The sinusoidal encoding.
    """
    # 1. refuse an odd d_model
    # 2. positions as a column, divisors as a row
    # 3. angles (T, d/2)
    # 4. sines in even columns, cosines in odd ones
    if d_model % 2:
        raise ValueError(f"d_model must be even, got {d_model}")
    position = torch.arange(length, dtype=torch.float64).unsqueeze(1)  # (T, 1)
    exponent = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model  # (d/2,)
    angle = position / base**exponent  # (T, d/2)
    pairs = torch.stack((angle.sin(), angle.cos()), dim=-1)  # (T, d/2, 2)
    return pairs.flatten(-2).float()  # (T, d)


def wavelengths(d_model: int, base: float = 10_000.0) -> torch.Tensor:
    """Return the wavelength of each pair of columns of the sinusoidal encoding.

    Args:
        d_model: the width, even.
        base: as in sinusoidal_positional_encoding.

    Returns:
        (d_model/2,), float32, in positions: from 2π to 2π · base^((d_model-2)/d_model).

    Raises:
        ValueError: if d_model is odd.

    Vaswani et al. 2017, section 3.5, which rounds the last one to 2π · base.

    Defined in Exercise 3.3 · How far each pair can count.
    """
    # 1. refuse an odd d_model
    # 2. the exponents 2i/d
    # 3. positions in a full turn
    if d_model % 2:
        raise ValueError(f"d_model must be even, got {d_model}")
    exponent = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model  # (d/2,)
    return (2 * math.pi * base**exponent).float()  # (d/2,)


def shift_matrix(offset: int, d_model: int, base: float = 10_000.0) -> torch.Tensor:
    """Return the matrix that shifts the sinusoidal encoding by an offset.

    Args:
        offset: by how many positions, k; negative shifts back.
        d_model: the width, even.
        base: as in sinusoidal_positional_encoding.

    Returns:
        M_k, (d_model, d_model), float32, with PE[p + k] = PE[p] @ M_k for every p:
        2 × 2 rotations along the diagonal.

    Raises:
        ValueError: if d_model is odd.

    Vaswani et al. 2017, section 3.5, says that such a linear function exists.

    Defined in Exercise 3.4 · A shift is a rotation.
    """
    # 1. refuse an odd d_model
    # 2. the angle of each pair (d/2,)
    # 3. the blocks (d/2, 2, 2)
    # 4. along the diagonal (d, d)
    if d_model % 2:
        raise ValueError(f"d_model must be even, got {d_model}")
    exponent = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model  # (d/2,)
    angle = offset / base**exponent  # (d/2,)
    cos, sin = angle.cos(), angle.sin()
    blocks = torch.stack((cos, -sin, sin, cos), dim=-1).view(-1, 2, 2)  # (d/2, 2, 2)
    return torch.block_diag(*blocks).float()  # (d, d)


class SinusoidalPositionalEncoding(nn.Module):
    """Add the sinusoidal encoding to embeddings; then dropout on the sum.

    Args:
        d_model: the width, even.
        max_length: the largest number of positions.
        dropout: the probability of dropping an entry of the sum, in training.

    The module has no parameters, and its table is not saved: one buffer, of any name,
    not persistent.

    Vaswani et al. 2017, section 3.5; the dropout: section 5.4.

    Defined in Exercise 3.6 · The module that adds it.
    """

    def __init__(self, d_model: int, max_length: int = 5_000, dropout: float = 0.0):
        super().__init__()
        # 1. the table, a buffer that is not saved
        # 2. the dropout layer
        table = sinusoidal_positional_encoding(max_length, d_model)  # (max_length, d)
        self.register_buffer("table", table, persistent=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return dropout(x + table[:T]) for x of shape (..., T, d_model).

        Raises:
            ValueError: if T is larger than max_length.
        """
        # 3. T, from the last but one axis
        # 4. refuse what is longer than the table
        # 5. the sum, after dropout
        length = x.shape[-2]
        if length > self.table.shape[0]:
            raise ValueError(f"{length} tokens, but {self.table.shape[0]} positions")
        return self.dropout(x + self.table[:length])  # (..., T, d)


class LearnedPositionalEncoding(nn.Module):
    """Add a trained row to each position's embedding; then dropout on the sum.

    Args:
        max_length: the number of rows: the largest number of positions.
        d_model: the width.
        dropout: the probability of dropping an entry of the sum, in training.

    Its one parameter is table, (max_length, d_model), at first normal with mean 0 and
    standard deviation 0.02.

    Gehring et al. 2017 add learned position embeddings; Vaswani et al. 2017, section
    3.5, compare them with sinusoids and find nearly identical results.

    Defined in Exercise 3.7 · A learned table.
    """

    def __init__(self, max_length: int, d_model: int, dropout: float = 0.0):
        super().__init__()
        # 1. the table, a parameter
        # 2. the dropout layer
        self.table = nn.Parameter(0.02 * torch.randn(max_length, d_model))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return dropout(x + table[:T]) for x of shape (..., T, d_model).

        Raises:
            ValueError: if T is larger than max_length.
        """
        # 3. T, the refusal, and the sum after dropout
        length = x.shape[-2]
        if length > self.table.shape[0]:
            raise ValueError(f"{length} tokens, but {self.table.shape[0]} positions")
        return self.dropout(x + self.table[:length])  # (..., T, d)


def apply_rotary(x: torch.Tensor, base: float = 10_000.0) -> torch.Tensor:
    """Rotate each pair of entries by an angle proportional to the position.

    Args:
        x: queries or keys, (..., T, d_k), d_k even; position p is row p, from 0.
        base: pair i turns by p / base^(2i/d_k) radians.

    Returns:
        (..., T, d_k), of the same type as x. Entries 2i and 2i+1 form pair i.

    Raises:
        ValueError: if d_k is odd.

    Su et al. 2021 (RoFormer), section 3.2.2.

    Defined in Exercise 3.8 · Rotary encoding.
    """
    # 1. refuse an odd d_k
    # 2. angles (T, d_k/2)
    # 3. even and odd columns (..., T, d_k/2)
    # 4. rotate
    # 5. interleave (..., T, d_k)
    length, width = x.shape[-2:]
    if width % 2:
        raise ValueError(f"d_k must be even, got {width}")
    position = torch.arange(length, device=x.device).unsqueeze(1)  # (T, 1)
    exponent = torch.arange(0, width, 2, device=x.device) / width  # (d_k/2,)
    angle = position / base**exponent  # (T, d_k/2)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    even, odd = x[..., 0::2], x[..., 1::2]  # (..., T, d_k/2) each
    pairs = torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1)
    return pairs.flatten(-2)  # (..., T, d_k/2, 2) -> (..., T, d_k)
