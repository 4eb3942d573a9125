"""The same models from PyTorch's own layers, to measure ours against."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from workbench.model.models import (
    LanguageModelConfig,
    Parts,
    TranslatorConfig,
    VisionConfig,
)

PAD = 0


class TorchTranslator(nn.Module):
    """An encoder-decoder around nn.Transformer, with the course's embedding.

    Args:
        config: its shape; nn.Transformer is told the same dropout.
        parts: for the table of positions alone.
        alike: drop only where the course's layers do. As it comes, nn.Transformer drops
            attention weights and hidden features of the network, too.
    """

    def __init__(
        self, config: TranslatorConfig, parts: Parts, alike: bool = False
    ) -> None:
        super().__init__()
        width, dropout = config.d_model, config.dropout
        self.embedding = nn.Embedding(config.vocab_size, width, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        table = parts.sinusoidal_positional_encoding(config.max_length, width)
        self.register_buffer("positions", table)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.Transformer(
            width,
            config.heads,
            config.layers,
            config.layers,
            config.d_ff,
            dropout,
            activation=config.activation,
            batch_first=True,
            norm_first=config.norm_first,
        )
        if alike:
            drop_in_branches_only(self.layers)

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        """Look tokens up and add their positions: (B, T) -> (B, T, d_model)."""
        x = self.embedding(ids) * math.sqrt(self.embedding.embedding_dim)
        return self.dropout(x + self.positions[: ids.shape[1]])

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Score the next token at each position: logits (B, T_tgt, vocab_size)."""
        length, padding = target.shape[1], source == PAD
        future = torch.ones(length, length, dtype=torch.bool, device=target.device)
        hidden = self.layers(
            self.embed(source),
            self.embed(target),
            tgt_mask=future.triu(1),
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_key_padding_mask=target == PAD,
            tgt_is_causal=False,  # the mask is to be used, not recognised
        )
        return F.linear(hidden, self.embedding.weight)


class TorchVision(nn.Module):
    """A Vision Transformer around nn.TransformerEncoderLayer."""

    def __init__(self, config: VisionConfig, alike: bool = False) -> None:
        super().__init__()
        width, patch = config.d_model, config.patch_size
        height, across = config.sides
        count = (height // patch) * (across // patch)
        self.patches = nn.Conv2d(config.channels, width, patch, patch)
        self.class_token = nn.Parameter(0.02 * torch.randn(1, 1, width))
        self.positions = nn.Parameter(0.02 * torch.randn(count + 1, width))
        self.dropout = nn.Dropout(config.dropout)
        layer = nn.TransformerEncoderLayer(
            width,
            config.heads,
            config.d_ff,
            config.dropout,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.encoder = nn.TransformerEncoder(
            layer, config.layers, nn.LayerNorm(width), enable_nested_tensor=False
        )
        self.head = nn.Linear(width, config.classes)
        if alike:
            drop_in_branches_only(self.encoder)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Classify images (B, channels, H, W): logits (B, classes)."""
        x = self.patches(images).flatten(2).transpose(1, 2)  # (B, N, d)
        first = self.class_token.expand(len(x), -1, -1)  # (B, 1, d)
        x = self.dropout(torch.cat((first, x), dim=1) + self.positions)
        return self.head(self.encoder(x)[:, 0])


class TorchLanguageModel(nn.Module):
    """A language model of nn.TransformerEncoderLayer with a causal mask."""

    def __init__(self, config: LanguageModelConfig) -> None:
        super().__init__()
        width = config.d_model
        self.embedding = nn.Embedding(config.vocab_size, width)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        self.positions = nn.Parameter(0.02 * torch.randn(config.max_length, width))
        layer = nn.TransformerEncoderLayer(
            width,
            config.heads,
            config.d_ff,
            config.dropout,
            batch_first=True,
            norm_first=True,
        )
        self.encoder = nn.TransformerEncoder(
            layer, config.layers, nn.LayerNorm(width), enable_nested_tensor=False
        )

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Score the next token at each position: logits (B, T, vocab_size)."""
        length = ids.shape[1]
        x = self.embedding(ids) * math.sqrt(self.embedding.embedding_dim)
        mask = nn.Transformer.generate_square_subsequent_mask(length, ids.device)
        hidden = self.encoder(x + self.positions[:length], mask, is_causal=True)
        return F.linear(hidden, self.embedding.weight)


def drop_in_branches_only(model: nn.Module) -> None:
    """Take away the dropout that the course's layers do not have."""
    for module in model.modules():
        if isinstance(module, nn.MultiheadAttention):
            module.dropout = 0.0
        if isinstance(module, (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)):
            module.dropout = nn.Identity()  # between the two matrices


def translation_loss(smoothing: float):
    """Return PyTorch's own loss of a batch of sentences."""

    def loss_of(model: nn.Module, batch: tuple) -> torch.Tensor:
        source, inputs, labels = batch
        return F.cross_entropy(
            model(source, inputs).flatten(0, 1),
            labels.flatten(),
            ignore_index=PAD,
            label_smoothing=smoothing,
        )

    return loss_of
