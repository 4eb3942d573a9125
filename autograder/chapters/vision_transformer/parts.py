"""The Vision Transformer, taken apart."""

import torch
import torch.nn.functional as F

from autograder.chapters.encoder.oracles import torch_encoder
from autograder.chapters.encoder.parts import Parts, stack, under
from autograder.chapters.vision_transformer.embedding import convolved
from autograder.exercise.parameters import State


class Vision:
    """A Vision Transformer with given parameters, taken apart so that it varies.

    Args:
        state: the parameters.
        p: the patch size.
        heads: of each layer.
        layers: how many.
        dropping: whether dropout lets nothing pass.
    """

    def __init__(
        self, state: State, p: int, heads: int, layers: int, *, dropping: bool = False
    ) -> None:
        self.state, self.p, self.heads, self.dropping = state, p, heads, dropping
        self.encoder = under("encoder.", state)
        self.parts = [under(f"layers.{i}.", self.encoder) for i in range(layers)]
        self.gamma, self.beta = self.encoder["norm.gamma"], self.encoder["norm.beta"]
        self.token = state.get("class_token.token")
        self.d = len(self.gamma)

    def sequence(self, images: torch.Tensor) -> torch.Tensor:
        """Embed the patches and join the class token, if there is one."""
        weight, bias = self.state["patches.weight"], self.state["patches.bias"]
        x = convolved(images, weight, bias, self.p)
        if self.token is None:
            return x
        return torch.cat((self.token.expand(len(x), 1, self.d), x), 1)

    def place(self, x: torch.Tensor) -> torch.Tensor:
        """Add the positions."""
        return x + self.state["position.table"][: x.shape[1]]

    def placed(self, images: torch.Tensor) -> torch.Tensor:
        """Give what the encoder reads."""
        return self.place(self.sequence(images))

    def norm(self, x: torch.Tensor) -> torch.Tensor:
        """Normalise as after the last layer."""
        return F.layer_norm(x, (self.d,), self.gamma, self.beta)

    def encode(
        self, x: torch.Tensor, *, activation=F.gelu, pre=True, last=True
    ) -> torch.Tensor:
        """Run the encoder, or a variation of it."""
        layers = [Parts(each, self.heads, activation) for each in self.parts]
        return stack(x, layers, self.norm if last else lambda x: x, None, pre)

    def read(self, hidden: torch.Tensor, at: int | str | None = None) -> torch.Tensor:
        """Read a position, or the mean, and classify."""
        if at is None:
            at = "mean" if self.token is None else 0
        vector = hidden.mean(1) if at == "mean" else hidden[:, at]
        return vector @ self.state["head.weight"] + self.state["head.bias"]

    def logits(self, x: torch.Tensor, at: int | str | None = None, **options):
        """Encode what has its positions, and classify."""
        return self.read(self.encode(x, **options), at)


def right(images: torch.Tensor, vision: Vision) -> torch.Tensor:
    """Classify by PyTorch's encoder; if everything is dropped, by norm and head."""
    x = vision.placed(images)
    if vision.dropping:
        return vision.read(vision.norm(torch.zeros_like(x)))
    d_ff = vision.parts[0]["feed_forward.w_1"].shape[1]
    sizes = len(vision.parts), vision.d, vision.heads, d_ff
    with torch.no_grad():
        return vision.read(torch_encoder(vision.encoder, *sizes, True, "gelu")(x))
