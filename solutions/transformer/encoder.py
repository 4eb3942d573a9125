"""Encoder: the answers to the exercises of chapter 6.

Generated from solutions/06_encoder.md by `make exercises`; change that file.
"""

import math

import torch
from torch import nn


from transformer.attention import padding_mask
from transformer.class_token import ClassHead, ClassToken, mask_with_class_token
from transformer.embeddings import Embedding
from transformer.multi_head_attention import MultiHeadAttention, attention_from_torch
from transformer.positional_encoding import SinusoidalPositionalEncoding


class LayerNorm(nn.Module):
    """Normalise each token over its features, then scale and shift each feature.

    Parameters: gamma (d_model,), beta (d_model,). Ba, Kiros and Hinton 2016.

    Defined in Exercise 6.1 · Layer normalisation.
    """

    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        """Start as the plain normalisation: gamma is all ones, beta all zeros."""
        super().__init__()
        self.epsilon = epsilon
        # 1. The two parameters.
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the normalised tokens, x and result (..., d_model)."""
        # 2. The mean of each token. 3. Its biased variance.
        # 4. Normalise, epsilon inside the root. 5. Scale and shift.
        centred = x - x.mean(dim=-1, keepdim=True)  # (..., d)
        variance = centred.square().mean(dim=-1, keepdim=True)  # (..., 1)
        normalised = centred / torch.sqrt(variance + self.epsilon)  # (..., d)
        return self.gamma * normalised + self.beta


class RMSNorm(nn.Module):
    """Scale each token to a root mean square of 1, then scale each feature.

    Parameter: gamma (d_model,). Zhang and Sennrich 2019.

    Defined in Exercise 6.3 · RMS normalisation.
    """

    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        """Start with a gamma of ones."""
        super().__init__()
        self.epsilon = epsilon
        # 1. The parameter.
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the scaled tokens, x and result (..., d_model)."""
        # 2. The mean square of each token. 3. Divide by its root, scale.
        mean_square = x.square().mean(dim=-1, keepdim=True)  # (..., 1)
        return self.gamma * x / torch.sqrt(mean_square + self.epsilon)


def gelu(x: torch.Tensor) -> torch.Tensor:
    """Multiply each entry by the normal distribution function at this entry.

    Args:
        x: any shape.

    Returns:
        x · Φ(x), exact, of the same shape. Hendrycks and Gimpel 2016.

    Defined in Exercise 6.4 · GELU, and dead units.
    """
    # 1. The gate Φ(x). 2. x times its gate.
    gate = 0.5 * (1 + torch.erf(x / math.sqrt(2)))
    return x * gate


def dead_units(x: torch.Tensor, activation: str) -> torch.Tensor:
    """Find the units through which no gradient comes, for any token.

    Args:
        x: (..., T, d_ff), what the units get, before the activation.
        activation: "relu" or "gelu".

    Returns:
        Boolean (d_ff,), True where the slope is exactly 0 for all tokens.

    Defined in Exercise 6.4 · GELU, and dead units.
    """
    # 2. The slopes. 3. All of a unit's are 0.
    x = x.detach().requires_grad_()
    y = torch.relu(x) if activation == "relu" else gelu(x)
    (slopes,) = torch.autograd.grad(y.sum(), x)
    return (slopes == 0).flatten(0, -2).all(dim=0)


class FeedForward(nn.Module):
    """Two matrices with a non-linearity between them, for each token by itself.

    Parameters: w_1 (d_model, d_ff), b_1 (d_ff,), w_2 (d_ff, d_model), b_2 (d_model,).
    Vaswani et al. 2017, section 3.3.

    Defined in Exercise 6.5 · The feed-forward network.
    """

    def __init__(self, d_model: int, d_ff: int, activation: str = "relu") -> None:
        """Draw w_1 with spread 1/√d_model and w_2 with 1/√d_ff; biases are zero.

        Raises:
            ValueError: if activation is neither "relu" nor "gelu".
        """
        super().__init__()
        # 1. Refuse other activations. 2. The four parameters.
        if activation not in ("relu", "gelu"):
            raise ValueError(f"activation must be 'relu' or 'gelu', not {activation!r}")
        self.activation = torch.relu if activation == "relu" else gelu
        self.w_1 = nn.Parameter(torch.randn(d_model, d_ff) / math.sqrt(d_model))
        self.b_1 = nn.Parameter(torch.zeros(d_ff))
        self.w_2 = nn.Parameter(torch.randn(d_ff, d_model) / math.sqrt(d_ff))
        self.b_2 = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Expand, activate, contract; x and result (..., T, d_model)."""
        # 3. The hidden layer (..., T, d_ff). 4. Back to the width d_model.
        hidden = self.activation(x @ self.w_1 + self.b_1)  # (..., T, d_ff)
        return hidden @ self.w_2 + self.b_2  # (..., T, d)


class SwiGLU(nn.Module):
    """A feed-forward network whose hidden features are gated.

    Parameters: w_gate and w_up (d_model, d_ff), w_down (d_ff, d_model); no bias.
    Shazeer 2020, "GLU Variants Improve Transformer".

    Defined in Exercise 6.6 · SwiGLU.
    """

    def __init__(self, d_model: int, d_ff: int) -> None:
        """Draw each matrix with a spread of one over the root of its rows."""
        super().__init__()
        # 1. The three parameters.
        self.w_gate = nn.Parameter(torch.randn(d_model, d_ff) / math.sqrt(d_model))
        self.w_up = nn.Parameter(torch.randn(d_model, d_ff) / math.sqrt(d_model))
        self.w_down = nn.Parameter(torch.randn(d_ff, d_model) / math.sqrt(d_ff))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Gate, multiply, contract; x and result (..., T, d_model)."""
        # 2. The gate: SiLU of the first projection. 3. Times the second. 4. Contract.
        gate = x @ self.w_gate  # (..., T, d_ff)
        hidden = gate * torch.sigmoid(gate) * (x @ self.w_up)  # (..., T, d_ff)
        return hidden @ self.w_down  # (..., T, d)


class EncoderLayer(nn.Module):
    """Self-attention and a feed-forward network, each with a residual connection.

    Submodules: attention, feed_forward, norm_1, norm_2, dropout.
    Vaswani et al. 2017, sections 3.1 and 5.4; pre-norm: Xiong et al. 2020.

    Defined in Exercise 6.7 · The encoder layer.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        dropout: float = 0.0,
        norm_first: bool = False,
        activation: str = "relu",
    ) -> None:
        """Build the two sub-layers, a norm for each, and dropout."""
        super().__init__()
        self.norm_first = norm_first
        # 1. Attention, feed-forward network, two norms, dropout.
        self.attention = MultiHeadAttention(d_model, heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.norm_1 = LayerNorm(d_model)
        self.norm_2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Run both halves.

        Args:
            x: (..., T, d_model).
            mask: boolean (T, T) or (B, 1 or T, T); True = may attend.

        Returns:
            (..., T, d_model).
        """
        # 2. Pre-norm, if norm_first. 3. Post-norm otherwise.
        if self.norm_first:
            attended, _ = self.attention(self.norm_1(x), mask=mask)
            x = x + self.dropout(attended)
            return x + self.dropout(self.feed_forward(self.norm_2(x)))
        attended, _ = self.attention(x, mask=mask)
        x = self.norm_1(x + self.dropout(attended))
        return self.norm_2(x + self.dropout(self.feed_forward(x)))


def encoder_layer_from_torch(state: dict) -> dict:
    """Translate the weights of PyTorch's encoder layer.

    Args:
        state: state dict of an nn.TransformerEncoderLayer.

    Returns:
        State dict of an EncoderLayer that computes the same function.

    Defined in Exercise 6.8 · PyTorch's weights in your layer.
    """
    # 1. The part of attention, without its prefix. 2. Translated, with the new prefix.
    # 3. Feed-forward network and norms.
    start = "self_attn."
    inner = {k.removeprefix(start): v for k, v in state.items() if k.startswith(start)}
    translated = attention_from_torch(inner)
    result = {f"attention.{name}": value for name, value in translated.items()}
    for i in (1, 2):
        result[f"feed_forward.w_{i}"] = state[f"linear{i}.weight"].T
        result[f"feed_forward.b_{i}"] = state[f"linear{i}.bias"]
        result[f"norm_{i}.gamma"] = state[f"norm{i}.weight"]
        result[f"norm_{i}.beta"] = state[f"norm{i}.bias"]
    return result


class Encoder(nn.Module):
    """A stack of encoder layers, each with its own parameters.

    Submodules: layers (nn.ModuleList of EncoderLayer), norm.

    Defined in Exercise 6.9 · The stack.
    """

    def __init__(
        self,
        layers: int,
        d_model: int,
        heads: int,
        d_ff: int,
        dropout: float = 0.0,
        norm_first: bool = False,
        activation: str = "relu",
    ) -> None:
        """Build the layers; norm is a LayerNorm in pre-norm, nn.Identity otherwise."""
        super().__init__()
        # 1. The layers. 2. The norm at the end.
        self.layers = nn.ModuleList(
            EncoderLayer(d_model, heads, d_ff, dropout, norm_first, activation)
            for _ in range(layers)
        )
        self.norm = LayerNorm(d_model) if norm_first else nn.Identity()

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Run the layers in order, all with one mask; x, result (..., T, d_model)."""
        # 3. One layer after the other. 4. The norm.
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)


def mask_tokens(
    ids: torch.Tensor,
    uniform: torch.Tensor,
    kind: torch.Tensor,
    random_ids: torch.Tensor,
    mask_id: int,
    special_ids: list[int],
    probability: float = 0.15,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Hide some tokens of a batch and keep what they were as labels.

    Args:
        ids: (B, T), integers.
        uniform: (B, T) in [0, 1); a position is chosen where it is below probability.
        kind: (B, T) in [0, 1); below 0.8 mask, below 0.9 random token, else unchanged.
        random_ids: (B, T), what a chosen token is replaced by in the second case.
        mask_id: the id of the mask token.
        special_ids: ids that are never chosen.
        probability: the share of tokens that are chosen.

    Returns:
        Inputs (B, T), and labels (B, T) with -100 where a token was not chosen.
        Devlin et al. 2018, section 3.1.

    Defined in Exercise 6.10 · Hide some words.
    """
    # 1. What is chosen. 2. The inputs. 3. The labels.
    special = torch.isin(ids, torch.tensor(special_ids, dtype=ids.dtype))  # (B, T)
    chosen = (uniform < probability) & ~special
    hidden = chosen & (kind < 0.8)
    replaced = chosen & (kind >= 0.8) & (kind < 0.9)
    inputs = torch.where(hidden, mask_id, ids)
    inputs = torch.where(replaced, random_ids, inputs)
    labels = torch.where(chosen, ids, -100)
    return inputs, labels


def masked_language_model_loss(
    logits: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    """Average the cross-entropy over the scored positions.

    Args:
        logits: (B, T, V).
        labels: (B, T), integers in 0 ... V-1, or -100 where nothing is scored.

    Returns:
        The mean in nats, shape (); 0 if no position is scored.

    Defined in Exercise 6.11 · The loss of a masked language model.
    """
    # 1. Keep what is scored. 2. Log-softmax. 3. Minus the mean at the labels.
    scored = labels != -100  # (B, T)
    logarithms = torch.log_softmax(logits[scored], dim=-1)  # (n, V)
    own = logarithms.gather(-1, labels[scored].unsqueeze(-1))  # (n, 1)
    return -own.sum() / max(1, own.numel())


class EncoderClassifier(nn.Module):
    """Encode a sentence with a class token before it and classify what comes out there.

    Submodules: embedding, class_token, position, encoder (pre-norm), head.

    Defined in Exercise 6.12 · An encoder that classifies sentences.
    """

    def __init__(
        self,
        vocab_size: int,
        classes: int,
        d_model: int,
        heads: int,
        layers: int,
        d_ff: int,
        max_length: int,
        dropout: float = 0.0,
    ) -> None:
        """Build the five parts; max_length counts words, without the class token."""
        super().__init__()
        # 1. The five submodules.
        self.embedding = Embedding(vocab_size, d_model)
        self.class_token = ClassToken(d_model)
        self.position = SinusoidalPositionalEncoding(d_model, max_length + 1, dropout)
        self.encoder = Encoder(layers, d_model, heads, d_ff, dropout, norm_first=True)
        self.head = ClassHead(d_model, classes)

    def forward(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Classify padded sentences.

        Args:
            ids: (B, T), integers; what stands after a sentence's end does not matter.
            lengths: (B,), how many tokens each sentence has.

        Returns:
            Logits (B, classes).
        """
        # 2. Embed, class token, positions. 3. The mask. 4. Encode, read the head.
        x = self.position(self.class_token(self.embedding(ids)))  # (B, T+1, d)
        mask = mask_with_class_token(padding_mask(lengths, ids.shape[1]))  # (B, 1, T+1)
        return self.head(self.encoder(x, mask))  # (B, classes)
