"""AdamW, and Muon, which moves a matrix equally far in all its directions."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

if TYPE_CHECKING:
    from workbench.training.loop import TrainingConfig

OPTIMIZERS = ("adamw", "muon")
ADAM_STATE = ("step", "exp_avg", "exp_avg_sq")
MUON_STATE = ("momentum",)
OF_A_LAYER = re.compile(r"\.\d+\.")  # a name in a list of layers or blocks
# Jordan et al. 2024: these raise small singular values soonest, and end near 1
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ROUNDS = 5
MOMENTUM = 0.95
LIKE_ADAM = 0.2  # the root mean square of AdamW's steps (Liu et al. 2025)


def make_optimizer(
    model: nn.Module, config: TrainingConfig, device: torch.device
) -> torch.optim.AdamW:
    """Make the optimizer, fused where it can be; only matrices decay.

    Muon takes the matrices of the layers; tables, heads and vectors are left to AdamW.
    """
    named = [(n, w) for n, w in model.named_parameters() if w.requires_grad]
    by_muon = set()
    if config.optimizer == "muon":
        by_muon = {n for n, w in named if w.ndim == 2 and OF_A_LAYER.search(n)}
    rest = [(n, w) for n, w in named if n not in by_muon]
    groups: list[dict[str, Any]] = [
        {"params": [w for n, w in named if n in by_muon], "muon": True},
        {"params": [w for _, w in rest if w.ndim > 1]},
        {"params": [w for _, w in rest if w.ndim <= 1], "weight_decay": 0.0},
    ]
    on_gpu, rate = device.type == "cuda", config.peak_rate
    kind = Muon if by_muon else torch.optim.AdamW
    optimizer = kind(
        [group for group in groups if group["params"]],
        # a graph reads the rate where it was when it was recorded
        lr=torch.tensor(rate, device=device) if config.capture else rate,
        betas=config.betas,
        eps=config.eps,
        weight_decay=config.weight_decay,
        fused=device.type in ("cpu", "cuda", "mps"),
        capturable=config.capture and on_gpu,
    )
    if isinstance(optimizer, Muon) and config.precision == "bfloat16":
        optimizer.rounds_in = torch.bfloat16
    return optimizer


def state_names(optimizer: torch.optim.Optimizer, weight: torch.Tensor) -> tuple:
    """Name the tensors that an optimizer keeps for a weight."""
    for group in optimizer.param_groups:
        if group.get("muon") and any(weight is each for each in group["params"]):
            return MUON_STATE
    return ADAM_STATE


class Muon(torch.optim.AdamW):
    """AdamW, but the groups with ``muon`` are matrices that Muon moves.

    Jordan et al. 2024. The step is the momentum, made orthogonal, and so large that
    AdamW's learning rate suits it (Liu et al. 2025). The rounds that make it so may be
    in bfloat16, as they were published: they end near 1, not at it, in any precision.
    """

    rounds_in = torch.float32

    @torch.no_grad()
    def step(  # type: ignore[override]  # nobody here has a closure
        self, closure: None = None
    ) -> None:
        """Take a step with the gradients."""
        groups = self.param_groups
        self.param_groups = [each for each in groups if not each.get("muon")]
        try:
            if self.param_groups:
                super().step()
        finally:
            self.param_groups = groups
        for group in groups:
            if group.get("muon"):
                self.move(group)

    def move(self, group: dict[str, Any]) -> None:
        """Move the matrices of a group, those of one shape together."""
        alike = defaultdict(list)
        for weight in group["params"]:
            if weight.grad is not None:
                alike[weight.shape].append(weight)
        for shape, weights in alike.items():
            gradients = [weight.grad for weight in weights]
            memory = [self.momentum(weight) for weight in weights]
            torch._foreach_lerp_(memory, gradients, 1 - MOMENTUM)
            ahead = torch._foreach_lerp(gradients, memory, MOMENTUM)  # Nesterov
            steps = orthogonal(torch.stack(ahead).to(self.rounds_in)).float()
            rate = group["lr"]
            torch._foreach_mul_(weights, 1 - rate * group["weight_decay"])
            scaled = steps * (-rate * LIKE_ADAM * math.sqrt(max(shape)))
            torch._foreach_add_(weights, list(scaled.to(weights[0].dtype)))

    def momentum(self, weight: torch.Tensor) -> torch.Tensor:
        """Return the running mean of a matrix's gradients; it begins with zeros."""
        state = self.state[weight]
        if not state:
            (name,) = MUON_STATE
            state[name] = torch.zeros_like(weight)
        return state[MUON_STATE[0]]


def orthogonal(matrices: torch.Tensor, rounds: int = ROUNDS) -> torch.Tensor:
    """Bring all singular values near 1, and keep the singular vectors.

    Newton and Schulz's iteration: an odd polynomial of a matrix is the polynomial of
    its singular values, so that no decomposition is needed.

    Args:
        matrices: (..., rows, columns).
        rounds: of the iteration.

    Returns:
        Matrices of the same shape; after 5 rounds singular values that were at least a
        hundredth of the matrix's norm are from 0.6 to 1.3.
    """
    a, b, c = COEFFICIENTS
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if tall else matrices
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(rounds):
        square = x @ x.mT
        x = a * x + (b * square + c * square @ square) @ x
    return x.mT if tall else x
