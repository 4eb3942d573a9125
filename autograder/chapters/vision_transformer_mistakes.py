"""The known mistakes of chapter 8: what each gives on an input, and why it is wrong.

Each function whose name ends in ``_candidates`` yields (name, what it gives, why) for
the inputs of one exercise. The checks compare a wrong answer with them, in this order.
"""

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from autograder.chapters.encoder.parts import Parts, stack, under
from autograder.exercise.naming import Candidate

State = dict[str, torch.Tensor]
Grid = tuple[int, int]

CHANNELS_FIRST = "channels first inside a patch"
WHY_CHANNELS = (
    "Inside a patch the order is (row, column, channel): the channels of one pixel "
    "stand side by side. Images keep channels first, so the channel's axis has to move "
    "to the end before the axes are joined."
)
WHY_RESHAPE = (
    "reshape and view never move a number, they only cut the line of numbers at other "
    "places. A patch takes a few numbers from each of several rows, so split the axes, "
    "permute them, and only then join."
)
WHY_READING = (
    "Patches come in reading order: along the first row of patches from left to right, "
    "then the next row. The row of patches stands before the column of patches."
)
WHY_PIXELS = "Inside a patch, the row of pixels stands before the column of pixels."
WHY_SIDES = (
    "The height, H, is the last but one axis and belongs to the rows, the width, W, is "
    "the last and belongs to the columns. On square images the difference cannot be "
    "seen."
)
WHY_STRIDED = (
    "These are pixels taken at equal distances all over the image, not pixels that lie "
    "together. Split H into (H/P, P), in this order: first which patch, then where in "
    "the patch."
)


# --- patches --------------------------------------------------------------------------


def _cut(images: torch.Tensor, p: int, order: str = "brcijk") -> torch.Tensor:
    """Split images into six named axes and put them in an order.

    b: image; r, c: row and column of patches; i, j: of pixels; k: channel
    """
    b, k, h, w = images.shape
    x = images.reshape(b, k, h // p, p, w // p, p)
    return x.permute(*("bkricj".index(axis) for axis in order))


def patchify_candidates(images: torch.Tensor, p: int) -> Iterator[Candidate]:
    """Cut images into patches in a wrong way."""
    b, k, h, w = images.shape
    n, length = (h // p) * (w // p), p * p * k

    def rows(x: torch.Tensor) -> torch.Tensor:
        return x.reshape(b, n, length)

    yield CHANNELS_FIRST, lambda: rows(_cut(images, p, "brckij")), WHY_CHANNELS
    between = "the channel between row and column of a patch"
    yield between, lambda: rows(_cut(images, p, "brcikj")), WHY_CHANNELS
    name = "a reshape without a permutation"
    yield name, lambda: rows(images), WHY_RESHAPE
    yield name, lambda: rows(images.permute(0, 2, 3, 1)), WHY_RESHAPE
    name = "patches in column order"
    yield name, lambda: rows(_cut(images, p, "bcrijk")), WHY_READING
    yield name, lambda: rows(_cut(images, p, "bcrkij")), WHY_READING
    name = "rows and columns of pixels exchanged"
    yield name, lambda: rows(_cut(images, p, "brcjik")), WHY_PIXELS
    name = "height and width exchanged"
    turned = images.transpose(2, 3)
    yield name, lambda: rows(_cut(turned, p)), WHY_SIDES
    yield name, lambda: rows(_cut(images.reshape(b, k, w, h), p)), WHY_SIDES
    strided = images.reshape(b, k, p, h // p, p, w // p)  # b k i r j c
    name = "strided slices in place of patches"
    yield name, lambda: rows(strided.permute(0, 3, 5, 2, 4, 1)), WHY_STRIDED
    yield name, lambda: rows(strided.permute(0, 3, 5, 1, 2, 4)), WHY_STRIDED
    slices = [images[..., i::p, j::p] for i in range(p) for j in range(p)]
    last = torch.stack([each.permute(0, 2, 3, 1).flatten(1) for each in slices], 1)
    yield name, lambda: last, WHY_STRIDED
    why = "One patch, one row: (B, N, P·P·C). The encoder reads along the second axis."
    name = "patches in columns"
    yield name, lambda: F.unfold(images, p, stride=p), why
    yield name, lambda: rows(_cut(images, p)).mT, why
    why = "Join the axes of the grid, and the three axes inside a patch: (B, N, P·P·C)."
    yield "not flattened", lambda: _cut(images, p), why
    yield "not flattened", lambda: _cut(images, p).reshape(b, n, p, p, k), why
    yield "not flattened", lambda: _cut(images, p).flatten(3), why


def unpatchify_candidates(
    patches: torch.Tensor, p: int, height: int, width: int
) -> Iterator[Candidate]:
    """Put patches together in a wrong way."""
    b, _, length = patches.shape
    h, w, k = height // p, width // p, length // (p * p)

    def image(x: torch.Tensor) -> torch.Tensor:
        return x.reshape(b, k, height, width)

    split = patches.reshape(b, h, w, p, p, k)  # b r c i j k
    name = "a reshape without a permutation"
    yield name, lambda: image(patches), WHY_RESHAPE
    pixels_last = patches.reshape(b, height, width, k).permute(0, 3, 1, 2)
    yield name, lambda: image(pixels_last), WHY_RESHAPE
    channels = patches.reshape(b, h, w, k, p, p)  # b r c k i j
    yield (
        CHANNELS_FIRST,
        lambda: image(channels.permute(0, 3, 1, 4, 2, 5)),
        (WHY_CHANNELS),
    )
    name = "patches in column order"
    columns = patches.reshape(b, w, h, p, p, k)  # b c r i j k
    yield name, lambda: image(columns.permute(0, 5, 2, 3, 1, 4)), WHY_READING
    name = "rows and columns of pixels exchanged"
    yield name, lambda: image(split.permute(0, 5, 1, 4, 2, 3)), WHY_PIXELS
    name = "height and width exchanged"
    yield name, lambda: image(columns.permute(0, 5, 1, 3, 2, 4)), WHY_SIDES
    turned = columns.permute(0, 5, 1, 3, 2, 4).reshape(b, k, width, height)
    yield name, lambda: turned, WHY_SIDES
    yield name, lambda: image(columns.permute(0, 5, 2, 4, 1, 3)), WHY_SIDES
    name = "strided slices in place of patches"
    yield name, lambda: image(split.permute(0, 5, 3, 1, 4, 2)), WHY_STRIDED
    why = "Images are (B, C, H, W): the channels stand before the pixels."
    right = split.permute(0, 1, 3, 2, 4, 5).reshape(b, height, width, k)
    yield "channels last in the image", lambda: right, why


def patch_embedding_candidates(
    images: torch.Tensor, p: int, weight: torch.Tensor, bias: torch.Tensor
) -> Iterator[Candidate]:
    """Embed patches in a wrong way."""
    right = _cut(images, p).flatten(3).flatten(1, 2)  # (B, N, P·P·C)
    why = "Add the bias: x E + b."
    yield "the bias is left out", lambda: right @ weight, why
    yield (
        "embeddings scaled by the root of d_model",
        lambda: (right @ weight + bias) * weight.shape[1] ** 0.5,
        "The paper scales the embeddings of words; those of patches stay as they are.",
    )
    for name, answer, why in patchify_candidates(images, p):
        yield name, lambda answer=answer: answer() @ weight + bias, why
    yield (
        "patches in columns",
        lambda: (right @ weight + bias).mT,
        "One patch, one row: the features stand in the last axis, (B, N, d_model).",
    )
    yield (
        "an activation after the embedding",
        lambda: torch.relu(right @ weight + bias),
        "The embedding is linear; the first activation comes in the encoder.",
    )


# --- the model ------------------------------------------------------------------------


class Vision:
    """A Vision Transformer with given parameters, taken apart so that it varies."""

    def __init__(self, state: State, p: int, heads: int, layers: int) -> None:
        self.state, self.p = state, p
        inner = under("encoder.", state)
        parts = [under(f"layers.{i}.", inner) for i in range(layers)]
        self.layers = [Parts(each, heads, F.gelu) for each in parts]
        self.relu = [Parts(each, heads, torch.relu) for each in parts]
        self.gamma, self.beta = inner["norm.gamma"], inner["norm.beta"]
        self.token = state.get("class_token.token")
        self.d = len(self.gamma)

    def embed(self, images: torch.Tensor) -> torch.Tensor:
        """Embed the patches by a convolution, as PyTorch has it."""
        weight, p = self.state["patches.weight"], self.p
        kernel = weight.reshape(p, p, images.shape[1], self.d).permute(3, 2, 0, 1)
        x = F.conv2d(images, kernel, self.state["patches.bias"], stride=p)
        return x.flatten(2).mT

    def sequence(self, images: torch.Tensor, *, behind: bool = False) -> torch.Tensor:
        """Join the class token, if there is one."""
        x = self.embed(images)
        if self.token is None:
            return x
        token = self.token.expand(len(x), 1, self.d)
        return torch.cat((x, token) if behind else (token, x), 1)

    def place(self, x: torch.Tensor) -> torch.Tensor:
        """Add the positions."""
        return x + self.state["position.table"][: x.shape[1]]

    def norm(self, x: torch.Tensor) -> torch.Tensor:
        """Normalise as after the last layer."""
        return F.layer_norm(x, (self.d,), self.gamma, self.beta)

    def encode(
        self, x: torch.Tensor, *, relu=False, pre=True, last=True
    ) -> torch.Tensor:
        """Run the encoder, or a variation of it."""
        layers = self.relu if relu else self.layers
        return stack(x, layers, self.norm if last else lambda x: x, None, pre)

    def read(self, hidden: torch.Tensor, at: int | str | None = None) -> torch.Tensor:
        """Read a position, or the mean, and classify."""
        if at is None:
            at = "mean" if self.token is None else 0
        vector = hidden.mean(1) if at == "mean" else hidden[:, at]
        return vector @ self.state["head.weight"] + self.state["head.bias"]


def vision_candidates(vision: Vision, images: torch.Tensor) -> Iterator[Candidate]:
    """Assemble the model in a wrong way."""
    by_token = vision.token is not None
    bare = vision.sequence(images)
    x = vision.place(bare)

    def logits(x=x, at=None, **options):
        return vision.read(vision.encode(x, **options), at)

    if by_token:
        token = bare[:, :1]
        late = torch.cat((token, vision.place(bare[:, 1:])), 1)
        why = (
            "First the class token, then the positions: the class token has position 0 "
            "and the first patch position 1."
        )
        yield "positions before the class token", lambda: logits(late), why
        after = torch.cat((token, x[:, 1:]), 1)
        why = "The class token has a position, too: row 0 of the table."
        yield "class token without a position", lambda: logits(after), why
        behind = vision.place(vision.sequence(images, behind=True))
        why = (
            "The class token stands before the patches, and the head reads position 0."
        )
        yield "the class token behind the patches", lambda: logits(behind), why
        yield "the class token behind the patches", lambda: logits(behind, -1), why
        hidden = vision.encode(x)
        yield (
            "the mean in place of the class token",
            lambda: vision.read(hidden, "mean"),
            'With pooling="class" the head reads position 0: ClassHead.',
        )
        yield (
            "the mean in place of the class token",
            lambda: vision.read(hidden[:, 1:], "mean"),
            'With pooling="class" the head reads position 0: ClassHead.',
        )
        yield (
            "the head reads a patch",
            lambda: vision.read(hidden, 1),
            "Position 0 is the class token's; position 1 is the first patch.",
        )
    else:
        why = 'With pooling="mean" the head reads the mean of all patches: MeanHead.'
        yield "the first patch in place of the mean", lambda: logits(at=0), why
    why = "Position 0 is the class token's; the last is the patch at the lower right."
    yield "the head reads the last token", lambda: logits(at=-1), why
    why = "Without positions the encoder sees a bag of patches. Call position."
    yield "no positions", lambda: logits(bare), why
    why = 'Vision Transformers use GELU: hand activation="gelu" on to the encoder.'
    yield "ReLU in place of GELU", lambda: logits(relu=True), why
    yield (
        "no final norm",
        lambda: logits(last=False),
        "In pre-norm nothing normalises the stream itself; the norm after the last "
        "layer does. Call the encoder as a whole, not only its layers.",
    )
    why = "The encoder is pre-norm: norm_first=True."
    name = "post-norm in place of pre-norm"
    yield name, lambda: logits(pre=False), why
    yield name, lambda: logits(pre=False, last=False), why
    why = "Between the positions and the head stands the encoder."
    yield "the head reads the encoder's input", lambda: vision.read(x), why
    yield (
        "the positions are added twice",
        lambda: logits(vision.place(x)),
        "LearnedPositionalEncoding adds the table itself.",
    )
    yield (
        "embeddings scaled by the root of d_model",
        lambda: logits(vision.place(bare * vision.d**0.5)),
        "The embeddings of patches stay as they are.",
    )


# --- positions ------------------------------------------------------------------------


def interpolate_candidates(
    table: torch.Tensor, old: Grid, new: Grid, class_tokens: int
) -> Iterator[Candidate]:
    """Resize a table of positions in a wrong way."""
    special, grid = table[:class_tokens], table[class_tokens:]
    d, n = table.shape[1], new[0] * new[1]

    def resized(size=new, shape=old, **options):
        image = grid.reshape(1, *shape, d).permute(0, 3, 1, 2)
        options = {"mode": "bilinear"} | options
        return F.interpolate(image, size=size, **options)[0]

    def rows(image):
        return torch.cat((special, image.flatten(1).T))

    name = "the corners are aligned"
    why = (
        "align_corners=True puts the middles of the outermost patches upon each other. "
        "A patch is an area: align_corners=False keeps the edges of the image together."
    )
    yield name, lambda: rows(resized(align_corners=True)), why
    why = "Interpolate between the four nearest patches: mode='bilinear'."
    yield "the nearest row is copied", lambda: rows(resized(mode="nearest")), why
    name = "another interpolation"
    yield name, lambda: rows(resized(mode="nearest-exact")), why
    yield name, lambda: rows(resized(mode="bicubic")), why
    yield name, lambda: rows(resized(mode="area")), why
    yield (
        "smoothed before it is made smaller",
        lambda: rows(resized(antialias=True)),
        "Here the plain bilinear formula is wanted: leave antialias at False.",
    )
    name = "the grid is transposed"
    why = (
        "Grids are (rows, columns), and the rows of the table are in reading order, "
        "before and after. On square grids the difference cannot be seen."
    )
    yield name, lambda: rows(resized(shape=old[::-1])), why
    yield name, lambda: rows(resized(size=new[::-1])), why
    yield name, lambda: rows(resized(size=new[::-1], shape=old[::-1])), why
    yield name, lambda: rows(resized().mT), why
    name = "one scale for rows and columns"
    why = (
        "The grid may grow by another factor in height than in width. Hand both sizes "
        "over: size=new_grid."
    )
    for axis in (0, 1):
        scaled = {"size": None, "scale_factor": new[axis] / old[axis]}
        yield name, lambda scaled=scaled: rows(resized(**scaled)), why
    name = "features and places mixed up"
    why = (
        "A row of the table holds the d features of one place. Lay it out as (h, w, d) "
        "first, then permute to (d, h, w); a reshape alone mixes them, and so does one "
        "at the end without permuting back."
    )
    mixed = F.interpolate(grid.reshape(1, d, *old), size=new, mode="bilinear")
    yield name, lambda: torch.cat((special, mixed[0].flatten(1).T)), why
    yield name, lambda: torch.cat((special, mixed[0].reshape(n, d))), why
    yield name, lambda: torch.cat((special, resized().reshape(n, d))), why
    why = (
        "The table is a list, but what it describes is a plane: the last patch of a "
        "row and the first of the next are no neighbours."
    )

    def along(rows, count):
        return F.interpolate(rows.T[None], size=count, mode="linear")[0].T

    if class_tokens:
        yield (
            "the class token's row is interpolated, too",
            lambda: along(table, class_tokens + n),
            "The class token stands for no place in the image: its row stays as it is, "
            "and only the others are interpolated, on their grid.",
        )
    yield (
        "interpolated along the list",
        lambda: torch.cat((special, along(grid, n))),
        why,
    )
    if class_tokens:
        right = resized().flatten(1).T
        why = "The rows of class tokens come back unchanged, before the others."
        yield "the class token's row is lost", lambda: right, why
        yield (
            "the class token's row at the end",
            lambda: torch.cat((right, special)),
            why,
        )
        last = table[: len(grid)].reshape(1, *old, d).permute(0, 3, 1, 2)
        last = F.interpolate(last, size=new, mode="bilinear")[0].flatten(1).T
        yield (
            "the last rows taken for class tokens",
            lambda: torch.cat((table[len(grid) :], last)),
            "The rows of class tokens stand at the front of the table.",
        )
        zeros = torch.zeros_like(special)
        yield "the class token's row is lost", lambda: torch.cat((zeros, right)), why
    why = "Interpolate; rows that are cut off or repeated belong to other places."
    name = "rows cut off or repeated"
    yield name, lambda: table[: class_tokens + n], why
    many = grid.repeat(n // len(grid) + 1, 1)[:n]
    yield name, lambda: torch.cat((special, many)), why


# --- attention and convolution --------------------------------------------------------


def shift_brute(h: int, w: int, down: int, right: int) -> torch.Tensor:
    """Shift the rows of an identity on a grid that is continued by zeros."""
    margin = max(abs(down), abs(right))
    eye = torch.eye(h * w).view(1, h, w, h * w).permute(0, 3, 1, 2)
    padded = F.pad(eye, (margin,) * 4)
    top, left = margin + down, margin + right
    return padded[0, :, top : top + h, left : left + w].flatten(1).T.contiguous()


def shift_candidates(h: int, w: int, down: int, right: int) -> Iterator[Candidate]:
    """Look at another place."""
    n = h * w
    eye = torch.eye(n)
    grid = eye.view(h, w, n)
    good = shift_brute(h, w, down, right)
    outside = good.sum(1) == 0
    why = (
        "The step has the wrong sign. Row i of the weights belongs to the token that "
        "looks, column j to the one that is looked at: a 1 at "
        "[r · W + c, (r + row_offset) · W + (c + column_offset)]."
    )
    yield "looks the other way", lambda: shift_brute(h, w, -down, -right), why
    why = "row_offset goes down, column_offset to the right."
    yield "row and column exchanged", lambda: shift_brute(h, w, right, down), why
    why = (
        "Tokens are in reading order: token (r, c) is number r · width + c. On square "
        "grids height and width are the same."
    )
    name = "height and width exchanged"
    yield name, lambda: shift_brute(w, h, down, right), why
    order = torch.arange(n).view(w, h).T.flatten()
    by_columns = torch.zeros(n, n)
    by_columns[order.unsqueeze(1), order] = good
    yield name, lambda: by_columns, why
    i = torch.arange(n)
    row, column = i // h + down, i % h + right
    seen = (row >= 0) & (row < h) & (column >= 0) & (column < w)
    misread = torch.zeros(n, n)
    misread[i[seen], (row * w + column)[seen]] = 1.0
    yield name, lambda: misread, why
    rolled = grid.roll((-down, -right), (0, 1)).reshape(n, n)
    why = (
        "An image ends at its border. A place outside is not the one on the opposite "
        "side: leave this row at zeros."
    )
    yield "wraps around the border", lambda: rolled, why
    target = torch.arange(n) + down * w + right
    inside = (target >= 0) & (target < n)
    flat = torch.zeros(n, n)
    flat[inside] = eye[target[inside]]
    why = (
        "After the last token of a row comes, in the sequence, the first of the next "
        "row, which is no neighbour. Test the row and the column by themselves; the "
        "number of the token alone does not show that a row has ended."
    )
    yield "runs on into the next row", lambda: flat, why
    r, c = torch.arange(n) // w + down, torch.arange(n) % w + right
    upper = (r < h) & (c < w) & (target >= -n)
    negative = torch.zeros(n, n)
    negative[upper] = eye[target[upper]]
    why = (
        "A negative index counts from the end, in Python and in PyTorch, without an "
        "error. Test 0 <= row as well as row < height, and the columns likewise."
    )
    yield "negative places wrap around", lambda: negative, why
    positive = good * ((r > 0) & (c > 0)).unsqueeze(1)
    why = "Row 0 and column 0 lie in the grid, too: 0 <= row, not 0 < row."
    yield "row 0 and column 0 are left out", lambda: positive, why
    clamped = r.clamp(0, h - 1) * w + c.clamp(0, w - 1)
    yield (
        "the border is repeated",
        lambda: eye[clamped],
        "A place outside the image is not its nearest one inside: the row stays zero.",
    )
    stay = good.clone()
    stay[outside] = eye[outside]
    why = "Where there is nothing to look at, the row stays zero."
    yield "a token at the border looks at itself", lambda: stay, why
    even = good.clone()
    even[outside] = 1 / n
    yield "a token at the border looks everywhere", lambda: even, why
    yield "the step is ignored", lambda: eye, "Token (r, c) looks one step further."


def convolution_candidates(
    tokens: torch.Tensor, kernel: torch.Tensor, h: int, w: int
) -> Iterator[Candidate]:
    """Convolve in a wrong way."""
    c_out, c_in, k, _ = kernel.shape
    half = k // 2

    def heads(shift=shift_brute, kernel=kernel, middle=half):
        result = torch.zeros(*tokens.shape[:-1], kernel.shape[0])
        for i in range(k):
            for j in range(k):
                weights = shift(h, w, i - middle, j - middle)
                result = result + weights @ tokens @ kernel[:, :, i, j].T
        return result

    def misread(name):
        def shift(*step):
            known = {key: answer for key, answer, _ in shift_candidates(*step)}
            return known[name]()

        return shift

    right = heads()
    why = (
        "Head (i, j) looks by (i − k//2, j − k//2), with the kernel as it is. "
        "PyTorch's conv2d does not flip it."
    )
    yield "the kernel is flipped", lambda: heads(kernel=kernel.flip(-1, -2)), why
    why = "Index i of the kernel goes down, index j to the right."
    yield (
        "rows and columns of the kernel exchanged",
        lambda: heads(kernel=kernel.mT),
        (why),
    )
    why = "Outside the image there are zeros."
    name = "wraps around the border"
    yield name, lambda: heads(misread(name)), why
    other = "runs on into the next row"
    yield other, lambda: heads(misread(other)), why
    border = "the border is repeated"
    yield border, lambda: heads(misread(border)), why
    why = "The middle of the kernel is the step (0, 0): i − k//2 and j − k//2."
    yield "the kernel has no middle", lambda: heads(middle=0), why
    name = "the middle of the kernel is off by one"
    yield name, lambda: heads(middle=half + 1), why
    if half != 1:
        why = "Steps of i − 1 and j − 1 fit 3 × 3 only. In general: i − k//2, j − k//2."
        yield "the middle of a 3 × 3 kernel", lambda: heads(middle=1), why
    if c_in == c_out:
        yield (
            "the kernel's matrix is not transposed",
            lambda: heads(kernel=kernel.transpose(0, 1)),
            "kernel[:, :, i, j] is (C_out, C_in). Tokens are rows, so they are "
            "multiplied by its transpose; with as many channels out as in, nothing "
            "complains.",
        )
    why = "The heads are added up, one for each of the k · k places of the kernel."
    yield "the mean of the heads", lambda: right / (k * k), why
    middle = kernel[:, :, half, half]
    yield "only the middle of the kernel", lambda: tokens @ middle.T, why
    total = kernel.sum((-2, -1))
    yield "every head looks at its own token", lambda: tokens @ total.T, why
    last = kernel[:, :, -1, -1]
    weights = shift_brute(h, w, k - 1 - half, k - 1 - half)
    yield "only the last head", lambda: weights @ tokens @ last.T, why
    name = "tokens in columns"
    why = "One token, one row: the channels stand in the last axis."
    yield name, lambda: right.mT, why


def receptive_candidates(gradient: torch.Tensor) -> Iterator[Candidate]:
    """Measure another box."""

    def box(seen: torch.Tensor) -> tuple[int, int]:
        if not seen.any():
            return 0, 0
        places = seen.nonzero()
        extent = places.max(0).values - places.min(0).values + 1
        return tuple(extent.tolist())

    seen = (gradient != 0).any(0)
    rows, columns = box(seen)
    why = "Rows first: the height of the box, then its width."
    yield "rows and columns exchanged", lambda: (columns, rows), why
    why = "From row 1 to row 2 there are two rows: last minus first, plus 1."
    yield "one too few", lambda: (rows - 1, columns - 1), why
    yield (
        "channels added up before the test",
        lambda: box(gradient.sum(0) != 0),
        "In a sum, channels of opposite sign cancel. Test first, then join: "
        "(gradient != 0).any(0).",
    )
    why = "A negative gradient is a dependence, too: ask for != 0, not for > 0."
    yield "only positive entries", lambda: box((gradient > 0).any(0)), why
    why = "A pixel counts if any of its channels does."
    yield "only the first channel", lambda: box(gradient[0] != 0), why
    yield (
        "a pixel counts only with all channels",
        lambda: box((gradient != 0).all(0)),
        (why),
    )
    small = (gradient.abs() > 1e-6).any(0)
    why = "Every entry that is not zero counts, however small: compare with 0 exactly."
    yield "small entries left out", lambda: box(small), why
    counted = int(seen.any(1).sum()), int(seen.any(0).sum())
    why = (
        "Within the box there may be rows and columns of zeros, as between the taps of "
        "a dilated convolution. The extent is last minus first plus 1."
    )
    yield "rows and columns counted, not the box", lambda: counted, why
    if seen.any():
        corner = tuple((seen.nonzero().max(0).values + 1).tolist())
        why = "The box begins at the first row and column that are seen, not at 0."
        yield "measured from the corner of the image", lambda: corner, why
    why = "This is the size of the image; the box holds only what the output sees."
    yield "the size of the image", lambda: tuple(gradient.shape[1:]), why
    why = "Two numbers are asked for, the extents; their product is the area."
    yield "the area", lambda: rows * columns, why
    yield "the number of pixels", lambda: int(seen.sum()), why


# --- filters --------------------------------------------------------------------------


def principal_candidates(
    weight: torch.Tensor, count: int, p: int, channels: int
) -> Iterator[Candidate]:
    """Analyse something else, or lay it out in another way; signs are free."""
    shape = (count, p, p, channels)

    def decompose(samples):
        return torch.linalg.svd(samples, full_matrices=False)

    def answer(samples):
        _, s, directions = decompose(samples)
        share = s.square() / s.square().sum()
        return directions[:count].reshape(shape), share[:count]

    filters = weight.T
    centred = filters - filters.mean(0)
    _, s, directions = decompose(centred)
    share, right = s.square() / s.square().sum(), directions[:count].reshape(shape)
    why = (
        "Subtract the mean filter first. Otherwise the first component is mostly this "
        "mean, and the shares are not shares of a variance."
    )
    yield "not centred", lambda: answer(filters), why
    why = (
        "The mean is taken over the filters, for every pixel by itself: it is a "
        "filter, too. Here each filter has lost its own brightness."
    )
    name = "centred along the wrong axis"
    yield name, lambda: answer(filters - filters.mean(1, keepdim=True)), why
    yield (
        "centred by one number",
        lambda: answer(filters - filters.mean()),
        "The mean is a filter, too: one number for every pixel, taken over the d "
        "filters, not one for all.",
    )
    yield (
        "every pixel divided by its spread",
        lambda: answer(centred / centred.std(0)),
        "Subtract the mean, and nothing else: how much a pixel varies is part of what "
        "the components show.",
    )
    why = (
        "The columns of weight are the filters, and the samples: start from weight.T. "
        "Components of the rows have d_model entries and are no pictures."
    )
    name = "rows in place of columns"
    yield name, lambda: answer(weight - weight.mean(0)), why
    yield name, lambda: answer(weight), why
    why = "A row of weight belongs to (row, column, channel), in this order."
    first = directions[:count].reshape(count, channels, p, p)
    yield CHANNELS_FIRST, lambda: (first, share[:count]), why
    yield CHANNELS_FIRST, lambda: (first.permute(0, 2, 3, 1), share[:count]), why
    why = "Components are pictures: (count, P, P, C)."
    yield "not laid out as pictures", lambda: (directions[:count], share[:count]), why
    why = "The variance along a component goes with the square of its singular value."
    name = "shares without squares"
    yield name, lambda: (right, (s / s.sum())[:count]), why
    part = s[:count].square()
    yield (
        "shares of the first components only",
        lambda: (right, part / part.sum()),
        "The sum in the denominator runs over all singular values, not only over the "
        "first ones: it is the whole variance.",
    )
    why = "Divide by the sum over all components; the shares of all of them sum to 1."
    name = "variances in place of shares"
    for scale in (1, len(filters), len(filters) - 1):
        yield name, lambda scale=scale: (right, part / scale), why
    yield "singular values in place of shares", lambda: (right, s[:count]), why
    yield (
        "shares added up",
        lambda: (right, share.cumsum(0)[:count]),
        ("Each component has its own share; do not add them up."),
    )
    why = "The largest comes first. eigh sorts upwards, svd downwards."
    smallest = directions.flip(0)[:count].reshape(shape)
    yield "smallest first", lambda: (smallest, share.flip(0)[:count]), why
    turned = right.flip(0), share[:count].flip(0)
    yield "smallest first", lambda: turned, why
    why = (
        "torch.linalg.svd gives Vᵀ as its third result: its rows are the components. "
        "Nothing is left to transpose."
    )
    name = "columns in place of rows of Vᵀ"
    yield name, lambda: (directions.T[:count].reshape(shape), share[:count]), why
    scaled = directions[:count] * s[:count, None]
    yield (
        "components scaled by singular values",
        lambda: (scaled.reshape(shape), share[:count]),
        "Each component is a direction of length 1.",
    )
    why = "Return the components first, then the shares."
    yield "components and shares exchanged", lambda: (share[:count], right), why


# --- rollout --------------------------------------------------------------------------


def rollout_candidates(weights: list[torch.Tensor]) -> Iterator[Candidate]:
    """Combine the layers in a wrong way."""
    identity = torch.eye(weights[0].shape[-1])
    means = [layer.mean(0) for layer in weights]

    def product(matrices, *, backwards=False):
        result = identity
        for matrix in matrices:
            result = result @ matrix if backwards else matrix @ result
        return result

    def mixed(matrices):
        return [0.5 * matrix + 0.5 * identity for matrix in matrices]

    why = (
        "In every layer half of what a token carries comes past attention, by the "
        "residual connection: ½ A + ½ I. Without it, a dozen layers leave all rows "
        "alike. Source 3 leaves it out, Abnar and Zuidema do not."
    )
    yield "no residual connection", lambda: product(means), why
    yield "no residual connection", lambda: product(means, backwards=True), why
    why = "Every layer has a residual connection, the first one, too."
    for bare in (0, -1):
        part = mixed(means)
        part[bare] = means[bare]
        name = "one layer without the residual connection"
        yield name, lambda part=part: product(part), why
    yield (
        "multiplied in the wrong order",
        lambda: product(mixed(means), backwards=True),
        "Going backwards from the output, the last layer comes first: it stands "
        "leftmost. rollout = mixed @ rollout, from the first layer on.",
    )
    why = (
        "A + I has rows that sum to 2, so the product's rows sum to 2 to the number of "
        "layers. Halve both, or divide each row by its sum."
    )
    name = "rows not normalised"
    yield name, lambda: product([matrix + identity for matrix in means]), why
    halves = [matrix + 0.5 * identity for matrix in means]
    yield name, lambda: product(halves), why
    columns = [matrix / matrix.sum(0) for matrix in mixed(means)]
    yield (
        "columns made to sum to 1, not rows",
        lambda: product(columns),
        "Row i holds the shares of output i, and these sum to 1: divide by "
        ".sum(-1, keepdim=True), or take halves of A and I.",
    )
    why = "The heads are averaged; a maximum or a minimum is no longer a mixture."
    name = "the maximum over the heads in place of the mean"
    largest = [layer.amax(0) for layer in weights]
    yield name, lambda: product(mixed(largest)), why

    def normalised(matrices):
        return [matrix / matrix.sum(-1, keepdim=True) for matrix in matrices]

    yield name, lambda: product(mixed(normalised(largest))), why
    yield name, lambda: product(normalised(mixed(largest))), why
    name = "the minimum over the heads in place of the mean"
    smallest = [layer.amin(0) for layer in weights]
    yield name, lambda: product(mixed(smallest)), why
    yield name, lambda: product(normalised(mixed(smallest))), why
    by_head = [product(mixed(each)) for each in zip(*weights, strict=False)]
    yield (
        "the heads averaged at the end",
        lambda: torch.stack(by_head).mean(0),
        "Each layer's heads are averaged before the layers are multiplied: head 1 of "
        "one layer reads what all heads of the layer below have written.",
    )
    why = "All heads have a say, each with the same weight."
    first = [layer[0] for layer in weights]
    yield "only the first head", lambda: product(mixed(first)), why
    yield (
        "heads added, not averaged",
        lambda: product(mixed([layer.sum(0) for layer in weights])),
        "Divide by the number of heads: .mean(0).",
    )
    right = product(mixed(means))
    yield (
        "rows and columns exchanged",
        lambda: right.T.contiguous(),
        "Row i belongs to output i, column j to input j.",
    )
    why = "Paths through several layers multiply: a matrix product, not a mean."
    average = torch.stack(mixed(means)).mean(0)
    yield "the mean of the layers in place of their product", lambda: average, why
    plain = torch.stack(means).mean(0)
    yield "the mean of the layers in place of their product", lambda: plain, why
    why = "Layers are combined by @; * multiplies entry by entry."
    entries = torch.stack(mixed(means)).prod(0)
    yield "multiplied entry by entry", lambda: entries, why
    yield "multiplied entry by entry", lambda: torch.stack(means).prod(0), why
    why = "Rollout goes through all layers, from the first to the last."
    yield "only the last layer", lambda: mixed(means)[-1], why
    yield "only the last layer", lambda: means[-1], why
    yield "only the first layer", lambda: mixed(means)[0], why
    yield "a layer is left out", lambda: product(mixed(means[1:])), why
    yield "a layer is left out", lambda: product(mixed(means[:-1])), why
    once = 0.5 * product(means) + 0.5 * identity
    yield (
        "the identity only once",
        lambda: once,
        "Every layer has a residual connection: mix before you multiply.",
    )


# --- mixed images ---------------------------------------------------------------------


def mixup_candidates(
    images: torch.Tensor,
    targets: torch.Tensor,
    share: float,
    permutation: torch.Tensor,
) -> Iterator[Candidate]:
    """Mix images or labels in a wrong way."""

    def mix(x, partner=permutation, share=share):
        return share * x + (1 - share) * x[partner]

    both = mix(images), mix(targets)
    why = "The image holds two things, and its target has to say so: mix both."
    yield "labels not mixed", lambda: (both[0], targets), why
    yield "images not mixed", lambda: (images, both[1]), why
    why = "share belongs to the image itself, 1 − share to its partner, in both sums."
    name = "labels mixed by the wrong share"
    yield name, lambda: (both[0], mix(targets, share=1 - share)), why
    half = mix(targets, share=0.5)
    yield name, lambda: (both[0], half), why
    turned = mix(images, share=1 - share), mix(targets, share=1 - share)
    yield "the share of image and partner exchanged", lambda: turned, why
    yield "images mixed by the wrong share", lambda: (turned[0], both[1]), why
    why = "The partner of image i is image permutation[i]: images[permutation]."
    for partner in (
        permutation.argsort(),
        torch.arange(len(images)).flip(0),
        torch.arange(len(images)).roll(1),
        torch.arange(len(images)).roll(-1),
    ):
        other = mix(images, partner), mix(targets, partner)
        yield "another partner", lambda other=other: other, why
        name = "labels of another partner"
        yield (
            name,
            lambda other=other: (both[0], other[1]),
            ("The partners of the targets are those of the images: one permutation."),
        )
    why = "The target keeps both labels, each with its share."
    hard = F.one_hot(both[1].argmax(-1), targets.shape[1]).to(targets)
    yield "labels not mixed", lambda: (both[0], hard), why
    yield "only the partner's label", lambda: (both[0], targets[permutation]), why
    added = share * images + images[permutation], both[1]
    yield (
        "weights that do not sum to 1",
        lambda: added,
        ("The partner has the weight 1 − share."),
    )
    yield (
        "images and targets exchanged",
        lambda: both[::-1],
        ("Return the images first, then the targets."),
    )


def pasted(
    images: torch.Tensor, box: tuple[int, int, int, int], permutation: torch.Tensor
) -> torch.Tensor:
    """Paste a box, choosing for each pixel whose it is."""
    top, left, height, width = box
    row = torch.arange(images.shape[2]).unsqueeze(1)
    column = torch.arange(images.shape[3])
    inside = (row >= top) & (row < top + height)
    inside = inside & (column >= left) & (column < left + width)
    return torch.where(inside, images[permutation], images)


def cutmix_candidates(
    images: torch.Tensor,
    targets: torch.Tensor,
    box: tuple[int, int, int, int],
    permutation: torch.Tensor,
) -> Iterator[Candidate]:
    """Paste another box, or mix the labels by another share."""
    top, left, height, width = box
    h, w = images.shape[2:]
    area = height * width / (h * w)

    def mix(inside, partner=permutation):
        return (1 - inside) * targets + inside * targets[partner]

    right = pasted(images, box, permutation)
    why = "A part of the image is the partner's, and the target has to say so."
    yield "labels not mixed", lambda: (right, targets), why
    yield "images not mixed", lambda: (images, mix(area)), why
    why = "The partner's label has the share of the box, the own one the rest."
    yield "labels mixed by the wrong share", lambda: (right, mix(1 - area)), why
    yield "only the partner's label", lambda: (right, targets[permutation]), why
    why = (
        "The share is an area over an area: height · width of the box over H · W of "
        "the image, in pixels."
    )
    name = "the area is wrong"
    corner = max(0, (height - top) * (width - left)) / (h * w)
    others = (
        (height + width) / (h + w),
        height / h,
        width / w,
        corner,
        (height - 1) * (width - 1) / (h * w),
        (height + 1) * (width + 1) / (h * w),
        height * width / (h * h),
        height * width / (w * w),
        (top + height) * (left + width) / (h * w),
        height * width / images[0].numel(),
        0.5,
    )
    for share in others:
        yield name, lambda share=share: (right, mix(share)), why
    for other, name, why in (
        (
            (top, left, height - top, width - left),
            "the box read as two corners",
            "The last two numbers of the box are its height and its width, not its "
            "lower right corner.",
        ),
        (
            (left, top, width, height),
            "rows and columns of the box exchanged",
            "The box is (top, left, height, width): rows come first.",
        ),
        (
            (left, top, height, width),
            "rows and columns of the box exchanged",
            "The box is (top, left, height, width): rows come first.",
        ),
        (
            (top, left, width, height),
            "rows and columns of the box exchanged",
            "The box is (top, left, height, width): rows come first.",
        ),
        (
            (top, left, height + 1, width + 1),
            "the box is one too large",
            "Rows from top to top + height, without the last; slices leave it out.",
        ),
        (
            (0, 0, height, width),
            "the box in the corner",
            "The box begins at row top and column left.",
        ),
    ):
        image = pasted(images, other, permutation)
        inside = (image != images).any(1).any(0).sum().item() / (h * w)
        for share in (area, inside):
            yield name, lambda image=image, share=share: (image, mix(share)), why
    outside = torch.where(right == images, images[permutation], images)
    why = "Inside the box is the partner, around it the image itself."
    name = "inside and outside exchanged"
    yield name, lambda: (outside, mix(area)), why
    yield name, lambda: (outside, mix(1 - area)), why
    first = images.clone()
    first[:, 0] = right[:, 0]
    why = "All channels are pasted: mixed[..., rows, columns]."
    yield "only the first channel is pasted", lambda: (first, mix(area)), why
    why = "The partner of image i is image permutation[i]: images[permutation]."
    for partner in (
        permutation.argsort(),
        torch.arange(len(images)).flip(0),
        torch.arange(len(images)).roll(1),
        torch.arange(len(images)).roll(-1),
    ):
        image = pasted(images, box, partner)
        yield (
            "another partner",
            lambda image=image, partner=partner: (image, mix(area, partner)),
            why,
        )
        yield (
            "labels of another partner",
            lambda partner=partner: (right, mix(area, partner)),
            "The partners of the targets are those of the images: one permutation.",
        )
    moved = images.clone()
    here = slice(top, top + height), slice(left, left + width)
    moved[(..., *here)] = images[permutation][..., :height, :width]
    why = "The box is taken from the same place in the partner, with the same slices."
    yield "the partner's upper left corner", lambda: (moved, mix(area)), why
    blank = torch.where(right == images, images, torch.zeros(()))
    why = "The box is filled with the partner's pixels from the same place."
    yield "the box is empty", lambda: (blank, mix(area)), why
    again = images.clone()
    for i in range(len(images)):
        again[i : i + 1] = pasted(
            torch.cat((again[i : i + 1], again[permutation[i]][None])),
            box,
            torch.tensor([1, 0]),
        )[:1]
    why = (
        "Here some partners already had a box pasted in. Take all partners from the "
        "images as they were given."
    )
    yield "partners that are mixed already", lambda: (again, mix(area)), why
    yield (
        "images and targets exchanged",
        lambda: (mix(area), right),
        ("Return the images first, then the targets."),
    )
