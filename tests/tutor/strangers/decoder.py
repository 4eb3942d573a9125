"""Wrong answers to chapter 7, written from its notebook alone."""

# ruff: noqa: B905, E501, F811, F821, RUF005

import math
from collections import Counter

import torch
from torch import nn

from tests.tutor.bank import stranger


@stranger(
    "decoder-mask",
    "the queries of padding are hidden, not its keys",
    kind="subtle",
    first="named",
    verdict="named",
    says="the rows of padding are empty",
)
def decoder_mask(lengths, max_length):
    earlier = causal_mask(max_length)
    real = padding_mask(lengths, max_length)
    return earlier & real.transpose(1, 2)


@stranger(
    "decoder-mask",
    "the causal mask is turned round AND padding counts one token too few",
    kind="double",
    first="shown",
    verdict="named",
    says="upper triangle, and the lengths are off by one",
)
def decoder_mask(lengths, max_length):
    position = torch.arange(max_length)
    causal = position[:, None] <= position[None, :]
    real = position[None, None, :] < (lengths - 1)[:, None, None]
    return causal & real


@stranger(
    "decoder-layer",
    "the memory is normalised as well in pre-norm",
    kind="subtle",
    first="named",
    verdict="named",
    says="the memory is normalised again",
)
class DecoderLayer(nn.Module):
    def __init__(
        self, d_model, heads, d_ff, dropout=0.0, norm_first=False, activation="relu"
    ):
        super().__init__()
        self.norm_first = norm_first
        self.self_attention = MultiHeadAttention(d_model, heads)
        self.cross_attention = MultiHeadAttention(d_model, heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.norm_1 = LayerNorm(d_model)
        self.norm_2 = LayerNorm(d_model)
        self.norm_3 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, memory, mask=None, memory_mask=None):
        if self.norm_first:
            x = x + self.dropout(self.self_attention(self.norm_1(x), mask=mask)[0])
            across, _ = self.cross_attention(
                self.norm_2(x), self.norm_2(memory), memory_mask
            )
            x = x + self.dropout(across)
            return x + self.dropout(self.feed_forward(self.norm_3(x)))
        x = self.norm_1(x + self.dropout(self.self_attention(x, mask=mask)[0]))
        across, _ = self.cross_attention(x, memory, memory_mask)
        x = self.norm_2(x + self.dropout(across))
        return self.norm_3(x + self.dropout(self.feed_forward(x)))


@stranger(
    "decoder-layer",
    "post-norm: the second residual starts from the input of the layer",
    kind="subtle",
    first="named",
    verdict="named",
    says="residual from the layer's input",
)
class DecoderLayer(nn.Module):
    def __init__(
        self, d_model, heads, d_ff, dropout=0.0, norm_first=False, activation="relu"
    ):
        super().__init__()
        self.norm_first = norm_first
        self.self_attention = MultiHeadAttention(d_model, heads)
        self.cross_attention = MultiHeadAttention(d_model, heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.norm_1, self.norm_2, self.norm_3 = (LayerNorm(d_model) for _ in range(3))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, memory, mask=None, memory_mask=None):
        if self.norm_first:
            a = x + self.dropout(self.self_attention(self.norm_1(x), mask=mask)[0])
            c = a + self.dropout(
                self.cross_attention(self.norm_2(a), memory, memory_mask)[0]
            )
            return c + self.dropout(self.feed_forward(self.norm_3(c)))
        a = self.norm_1(x + self.dropout(self.self_attention(x, mask=mask)[0]))
        c = self.norm_2(
            x + self.dropout(self.cross_attention(a, memory, memory_mask)[0])
        )
        return self.norm_3(c + self.dropout(self.feed_forward(c)))


@stranger(
    "decoder-layer",
    "dropout is missing after cross-attention AND activation is not handed on",
    kind="double",
    first="named",
    verdict="named",
    says="dropout not on all branches",
)
class DecoderLayer(nn.Module):
    def __init__(
        self, d_model, heads, d_ff, dropout=0.0, norm_first=False, activation="relu"
    ):
        super().__init__()
        self.norm_first = norm_first
        self.self_attention = MultiHeadAttention(d_model, heads)
        self.cross_attention = MultiHeadAttention(d_model, heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm_1 = LayerNorm(d_model)
        self.norm_2 = LayerNorm(d_model)
        self.norm_3 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, memory, mask=None, memory_mask=None):
        if self.norm_first:
            x = x + self.dropout(self.self_attention(self.norm_1(x), mask=mask)[0])
            x = x + self.cross_attention(self.norm_2(x), memory, memory_mask)[0]
            x = x + self.dropout(self.feed_forward(self.norm_3(x)))
            return x
        x = self.norm_1(x + self.dropout(self.self_attention(x, mask=mask)[0]))
        x = self.norm_2(x + self.cross_attention(x, memory, memory_mask)[0])
        x = self.norm_3(x + self.dropout(self.feed_forward(x)))
        return x


@stranger(
    "decoder-layer",
    "no memory mask in the pre-norm branch",
    kind="subtle",
    first="named",
    verdict="named",
    says="memory_mask not passed on",
)
class DecoderLayer(nn.Module):
    def __init__(
        self, d_model, heads, d_ff, dropout=0.0, norm_first=False, activation="relu"
    ):
        super().__init__()
        self.norm_first = norm_first
        self.self_attention = MultiHeadAttention(d_model, heads)
        self.cross_attention = MultiHeadAttention(d_model, heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.norm_1 = LayerNorm(d_model)
        self.norm_2 = LayerNorm(d_model)
        self.norm_3 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, memory, mask=None, memory_mask=None):
        if self.norm_first:
            x = x + self.dropout(self.self_attention(self.norm_1(x), mask=mask)[0])
            x = x + self.dropout(self.cross_attention(self.norm_2(x), memory)[0])
            x = x + self.dropout(self.feed_forward(self.norm_3(x)))
        else:
            x = self.norm_1(x + self.dropout(self.self_attention(x, mask=mask)[0]))
            cross = self.cross_attention(x, memory, memory_mask)[0]
            x = self.norm_2(x + self.dropout(cross))
            x = self.norm_3(x + self.dropout(self.feed_forward(x)))
        return x


@stranger(
    "decoder",
    "dropout is not handed on to the layers",
    kind="subtle",
    first="named",
    verdict="named",
    says="dropout not passed on",
)
class Decoder(nn.Module):
    def __init__(
        self,
        layers,
        d_model,
        heads,
        d_ff,
        dropout=0.0,
        norm_first=False,
        activation="relu",
    ):
        super().__init__()
        self.layers = nn.ModuleList(
            [
                DecoderLayer(
                    d_model, heads, d_ff, norm_first=norm_first, activation=activation
                )
                for _ in range(layers)
            ]
        )
        self.norm = LayerNorm(d_model) if norm_first else nn.Identity()

    def forward(self, x, memory, mask=None, memory_mask=None):
        for layer in self.layers:
            x = layer(x, memory, mask, memory_mask)
        return self.norm(x)


@stranger(
    "decoder",
    "only the first layer gets the causal mask",
    kind="subtle",
    first="named",
    verdict="named",
    says="mask only for the first layer",
)
class Decoder(nn.Module):
    def __init__(
        self,
        layers,
        d_model,
        heads,
        d_ff,
        dropout=0.0,
        norm_first=False,
        activation="relu",
    ):
        super().__init__()
        self.layers = nn.ModuleList(
            DecoderLayer(d_model, heads, d_ff, dropout, norm_first, activation)
            for _ in range(layers)
        )
        self.norm = LayerNorm(d_model) if norm_first else nn.Identity()

    def forward(self, x, memory, mask=None, memory_mask=None):
        for i, layer in enumerate(self.layers):
            x = layer(x, memory, mask if i == 0 else None, memory_mask)
        return self.norm(x)


@stranger(
    "decoder",
    "norm applied after every layer AND the masks exchanged",
    kind="double",
    first="named",
    verdict="named",
    says="the masks are exchanged",
)
class Decoder(nn.Module):
    def __init__(
        self,
        layers,
        d_model,
        heads,
        d_ff,
        dropout=0.0,
        norm_first=False,
        activation="relu",
    ):
        super().__init__()
        self.layers = nn.ModuleList(
            DecoderLayer(d_model, heads, d_ff, dropout, norm_first, activation)
            for _ in range(layers)
        )
        self.norm = LayerNorm(d_model) if norm_first else nn.Identity()

    def forward(self, x, memory, mask=None, memory_mask=None):
        for layer in self.layers:
            x = self.norm(layer(x, memory, memory_mask, mask))
        return x


@stranger(
    "transformer",
    "pad_id is ignored: padding is where an id is 0",
    kind="subtle",
    first="named",
    verdict="named",
    says="pad_id is ignored",
)
class Transformer(nn.Module):
    def __init__(
        self,
        vocab_size,
        d_model,
        heads,
        layers,
        d_ff,
        max_length,
        dropout=0.0,
        norm_first=False,
        activation="relu",
        pad_id=0,
    ):
        super().__init__()
        self.pad_id = pad_id
        sizes = (layers, d_model, heads, d_ff, dropout, norm_first, activation)
        self.embedding = Embedding(vocab_size, d_model)
        self.position = SinusoidalPositionalEncoding(d_model, max_length, dropout)
        self.encoder = Encoder(*sizes)
        self.decoder = Decoder(*sizes)

    def encode(self, source):
        mask = (source != 0).unsqueeze(1)
        return self.encoder(self.position(self.embedding(source)), mask)

    def decode(self, target, memory, source):
        mask = causal_mask(target.shape[1]) & (target != 0).unsqueeze(1)
        memory_mask = (source != 0).unsqueeze(1)
        x = self.position(self.embedding(target))
        return self.decoder(x, memory, mask, memory_mask)

    def forward(self, source, target):
        hidden = self.decode(target, self.encode(source), source)
        return tied_logits(hidden, self.embedding.weight)


@stranger(
    "transformer",
    "the target's padding is not hidden (only causal)",
    kind="subtle",
    first="named",
    verdict="named",
    says="padding of the target is not hidden",
)
class Transformer(nn.Module):
    def __init__(
        self,
        vocab_size,
        d_model,
        heads,
        layers,
        d_ff,
        max_length,
        dropout=0.0,
        norm_first=False,
        activation="relu",
        pad_id=0,
    ):
        super().__init__()
        self.pad_id = pad_id
        sizes = (layers, d_model, heads, d_ff, dropout, norm_first, activation)
        self.embedding = Embedding(vocab_size, d_model)
        self.position = SinusoidalPositionalEncoding(d_model, max_length, dropout)
        self.encoder = Encoder(*sizes)
        self.decoder = Decoder(*sizes)

    def real(self, ids):
        return (ids != self.pad_id).unsqueeze(1)

    def encode(self, source):
        x = self.position(self.embedding(source))
        return self.encoder(x, self.real(source))

    def decode(self, target, memory, source):
        x = self.position(self.embedding(target))
        return self.decoder(x, memory, causal_mask(target.shape[1]), self.real(source))

    def forward(self, source, target):
        memory = self.encode(source)
        return tied_logits(self.decode(target, memory, source), self.embedding.weight)


@stranger(
    "transformer",
    "the target gets no positions AND dropout not handed to the positions",
    kind="double",
    first="named",
    verdict="named",
    says="no positions in the decoder",
)
class Transformer(nn.Module):
    def __init__(
        self,
        vocab_size,
        d_model,
        heads,
        layers,
        d_ff,
        max_length,
        dropout=0.0,
        norm_first=False,
        activation="relu",
        pad_id=0,
    ):
        super().__init__()
        self.pad_id = pad_id
        sizes = (layers, d_model, heads, d_ff, dropout, norm_first, activation)
        self.embedding = Embedding(vocab_size, d_model)
        self.position = SinusoidalPositionalEncoding(d_model, max_length)
        self.encoder = Encoder(*sizes)
        self.decoder = Decoder(*sizes)

    def encode(self, source):
        mask = (source != self.pad_id)[:, None]
        return self.encoder(self.position(self.embedding(source)), mask)

    def decode(self, target, memory, source):
        length = target.shape[1]
        mask = causal_mask(length) & (target != self.pad_id)[:, None]
        memory_mask = (source != self.pad_id)[:, None]
        return self.decoder(self.embedding(target), memory, mask, memory_mask)

    def forward(self, source, target):
        hidden = self.decode(target, self.encode(source), source)
        return tied_logits(hidden, self.embedding.weight)


@stranger(
    "shift-right",
    "the labels lose <eos> for the longest sentence",
    kind="subtle",
    first="shown",
    verdict="named",
    says="<eos> is missing in the longest sentence",
)
def shift_right(sequences, sos_id, eos_id, pad_id=0):
    width = max(len(sequence) for sequence in sequences) + 1
    inputs = torch.full((len(sequences), width), pad_id)
    labels = torch.full((len(sequences), width), pad_id)
    for row, sequence in enumerate(sequences):
        inputs[row, 0] = sos_id
        for column, token in enumerate(sequence):
            inputs[row, column + 1] = token
            labels[row, column] = token
        if len(sequence) + 1 < width:
            labels[row, len(sequence)] = eos_id
    return inputs, labels


@stranger(
    "shift-right",
    "pad_id is ignored, zeros fill up",
    kind="subtle",
    first="named",
    verdict="named",
    says="padded with another id",
)
def shift_right(sequences, sos_id, eos_id, pad_id=0):
    width = max(map(len, sequences)) + 1
    inputs = torch.zeros(len(sequences), width, dtype=torch.long)
    labels = torch.zeros(len(sequences), width, dtype=torch.long)
    for i, sequence in enumerate(sequences):
        inputs[i, : len(sequence) + 1] = torch.tensor([sos_id, *sequence])
        labels[i, : len(sequence) + 1] = torch.tensor([*sequence, eos_id])
    return inputs, labels


@stranger(
    "shift-right",
    "padding stands on the left AND an empty sentence is left out",
    kind="double",
    first="shown",
    verdict="named",
    says="padding on the left, and an empty sentence is left out",
)
def shift_right(sequences, sos_id, eos_id, pad_id=0):
    sequences = [sequence for sequence in sequences if sequence]
    width = max(len(sequence) for sequence in sequences) + 1
    inputs, labels = [], []
    for sequence in sequences:
        padding = [pad_id] * (width - len(sequence) - 1)
        inputs.append([*padding, sos_id, *sequence])
        labels.append([*padding, *sequence, eos_id])
    return torch.tensor(inputs), torch.tensor(labels)


@stranger(
    "shift-right",
    "<eos> also stands in the inputs",
    kind="plain",
    first="named",
    verdict="named",
    says="<eos> among the inputs",
)
def shift_right(sequences, sos_id, eos_id, pad_id=0):
    full = [[sos_id] + sequence + [eos_id] for sequence in sequences]
    width = max(len(each) for each in full)
    full = torch.tensor([each + [pad_id] * (width - len(each)) for each in full])
    return full[:, :-1], full[:, 1:]


@stranger(
    "sequence-loss",
    "the mean of each sentence, then over sentences",
    kind="subtle",
    first="named",
    verdict="named",
    says="the mean of the sentences' means",
)
def sequence_loss(logits, labels, pad_id=0, smoothing=0.0):
    real = labels != pad_id
    logarithms = torch.log_softmax(logits, dim=-1)
    own = -logarithms.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    even = -logarithms.mean(-1)
    mixed = (1 - smoothing) * own + smoothing * even
    mixed = mixed.masked_fill(~real, 0)
    each = mixed.sum(dim=1) / real.sum(dim=1).clamp(min=1)
    return each.mean()


@stranger(
    "sequence-loss",
    "smoothing is spread over the other V - 1 classes",
    kind="subtle",
    first="named",
    verdict="named",
    says="spread over the other classes only",
)
def sequence_loss(logits, labels, pad_id=0, smoothing=0.0):
    real = labels != pad_id
    logarithms = torch.log_softmax(logits, dim=-1)
    own = -logarithms.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    others = (-logarithms.sum(-1) - own) / (logits.shape[-1] - 1)
    mixed = (1 - smoothing) * own + smoothing * others
    mixed = torch.where(real, mixed, 0.0)
    return mixed.sum() / real.sum().clamp(min=1)


@stranger(
    "sequence-loss",
    "the even part is summed, not averaged, over the classes AND not masked",
    kind="double",
    first="told",
    verdict="named",
    says="the sum over the classes in place of their mean, and padding counted in the even part",
)
def sequence_loss(logits, labels, pad_id=0, smoothing=0.0):
    real = labels != pad_id
    logarithms = torch.log_softmax(logits, dim=-1)
    own = -logarithms.gather(-1, labels.unsqueeze(-1)).squeeze(-1) * real
    even = -logarithms.sum(dim=-1)
    mixed = (1 - smoothing) * own + smoothing * even
    return mixed.sum() / real.sum().clamp(min=1)


@stranger(
    "sequence-loss",
    "ignore_index makes NaN if nothing is real",
    kind="subtle",
    first="named",
    verdict="named",
    says="NaN when nothing is scored",
)
def sequence_loss(logits, labels, pad_id=0, smoothing=0.0):
    return nn.functional.cross_entropy(
        logits.flatten(0, 1),
        labels.flatten(),
        ignore_index=pad_id,
        label_smoothing=smoothing,
    )


@stranger(
    "noam-rate",
    "the exponent of the warm-up is -1/2",
    kind="plain",
    first="named",
    verdict="named",
    says="another power of warmup",
)
def noam_rate(step, d_model, warmup=4000):
    if step < 1:
        raise ValueError("step must be at least 1")
    return d_model**-0.5 * min(step**-0.5, step * warmup**-0.5)


@stranger(
    "noam-rate",
    "step 0 is taken for step 1",
    kind="subtle",
    first="named",
    verdict="named",
    says="step 0 is not refused",
)
def noam_rate(step, d_model, warmup=4000):
    step = max(step, 1)
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


@stranger(
    "noam-rate",
    "the root of d is multiplied AND negative steps are not refused",
    kind="double",
    first="named",
    verdict="named",
    says="another power of d_model",
)
def noam_rate(step, d_model, warmup=4000):
    if step == 0:
        raise ValueError("step counts from 1")
    scale = math.sqrt(d_model)
    if step < warmup:
        return scale * step * warmup**-1.5
    return scale * step**-0.5


@stranger(
    "bug-hunt",
    "lines 14 and 15 exchanged AND line 10 and 12 exchanged",
    kind="double",
    first="named",
    verdict="named",
    says="two lines have each other's names",
)
def find_bugs():
    return {
        3: "no <eos>",
        5: "pointless empty leaf",
        6: "starts from the source",
        7: "counts the source",
        8: "the source never gets in",
        9: "a name never assigned",
        10: "argmax over positions",
        11: "all positions appended again",
        12: "softmax before the loss",
        13: "own predictions as input",
        14: "labels not shifted",
        15: "multiplied by the mask",
        16: "classes on the wrong axis",
        17: "a tab among spaces",
        18: "gradients never cleared",
    }


@stranger(
    "bug-hunt",
    "the mask hides the past, at line 9",
    kind="plain",
    first="named",
    verdict="named",
    says="a name that fits nowhere",
)
def find_bugs():
    return {
        3: "no <eos>",
        5: "pointless empty leaf",
        6: "starts from the source",
        7: "counts the source",
        8: "the source never gets in",
        9: "the mask hides the past",
        10: "softmax before the loss",
        11: "all positions appended again",
        12: "argmax over positions",
        13: "own predictions as input",
        14: "multiplied by the mask",
        15: "labels not shifted",
        16: "classes on the wrong axis",
        17: "a tab among spaces",
        18: "gradients never cleared",
    }


@stranger(
    "bug-hunt",
    "the gradients are cleared only once, before the loop",
    kind="subtle",
    first="named",
    verdict="named",
    says="gradients never cleared",
)
def repaired_epoch(model, batches, learning_rate):
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    optimizer.zero_grad()
    losses = []
    for source, inputs, labels in batches:
        loss = sequence_loss(model(source, inputs), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@stranger(
    "bug-hunt",
    "zero_grad stands between backward and step",
    kind="subtle",
    first="named",
    verdict="named",
    says="the weights never change",
)
def repaired_epoch(model, batches, learning_rate):
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    losses = []
    for source, inputs, labels in batches:
        logits = model(source, inputs)
        loss = sequence_loss(logits, labels)
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()
        losses.append(loss.item())
    return losses


@stranger(
    "bug-hunt",
    "the loss after the step is remembered AND momentum is used",
    kind="double",
    first="shown",
    verdict="named",
    says="momentum in place of plain gradient descent, and the loss after the step",
)
def repaired_epoch(model, batches, learning_rate):
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate, momentum=0.9)
    losses = []
    for source, inputs, labels in batches:
        optimizer.zero_grad()
        loss = sequence_loss(model(source, inputs), labels)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            losses.append(sequence_loss(model(source, inputs), labels).item())
    return losses


@stranger(
    "greedy-decode",
    "max_length counts only the new tokens",
    kind="subtle",
    first="named",
    verdict="named",
    says="max_length counts the new tokens alone",
)
@torch.no_grad()
def greedy_decode(model, prefix, eos_id, max_length):
    ids = list(prefix)
    for _ in range(max_length):
        logits = model(torch.tensor([ids]))
        best = int(logits[0, -1].argmax())
        ids.append(best)
        if best == eos_id:
            break
    return ids


@stranger(
    "greedy-decode",
    "only the last token is given to the model",
    kind="subtle",
    first="named",
    verdict="named",
    says="only the last token is read",
)
@torch.no_grad()
def greedy_decode(model, prefix, eos_id, max_length):
    ids = prefix.copy()
    while len(ids) < max_length:
        logits = model(torch.tensor([[ids[-1]]]))
        ids.append(logits[0, -1].argmax().item())
        if ids[-1] == eos_id:
            break
    return ids


@stranger(
    "greedy-decode",
    "the end token is left out AND a prefix with an end token is not continued",
    kind="double",
    first="named",
    verdict="named",
    says="the end token is left out",
)
@torch.no_grad()
def greedy_decode(model, prefix, eos_id, max_length):
    ids = list(prefix)
    while len(ids) < max_length and eos_id not in ids:
        best = model(torch.tensor([ids]))[0, -1].argmax().item()
        if best == eos_id:
            break
        ids.append(best)
    return ids


@stranger(
    "filter-logits",
    "exactly k are kept, ties are broken",
    kind="subtle",
    first="named",
    verdict="named",
    says="ties are cut",
)
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    if temperature <= 0:
        raise ValueError("temperature must be above 0")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k must be at least 1")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError("top_p must be in (0, 1]")
    logits = logits / temperature
    if top_k is not None:
        k = min(top_k, logits.shape[-1])
        values, indices = logits.topk(k, dim=-1)
        logits = torch.full_like(logits, -math.inf).scatter(-1, indices, values)
    if top_p is not None:
        probabilities, order = logits.softmax(-1).sort(dim=-1, descending=True)
        before = probabilities.cumsum(-1) - probabilities
        drop = (before >= top_p).gather(-1, order.argsort(-1))
        logits = logits.masked_fill(drop, -math.inf)
    return logits


@stranger(
    "filter-logits",
    "top-p looks at the logits before top-k",
    kind="subtle",
    first="named",
    verdict="named",
    says="top-p before top-k",
)
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    if temperature <= 0:
        raise ValueError("temperature")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k")
    if top_p is not None and (top_p <= 0 or top_p > 1):
        raise ValueError("top_p")
    scaled = logits / temperature
    result = scaled
    if top_k is not None:
        smallest = scaled.topk(min(top_k, scaled.shape[-1])).values[..., -1:]
        result = result.masked_fill(scaled < smallest, float("-inf"))
    if top_p is not None:
        p, order = scaled.softmax(-1).sort(descending=True)
        drop = p.cumsum(-1) - p >= top_p
        drop = drop.gather(-1, order.argsort(-1))
        result = result.masked_fill(drop, float("-inf"))
    return result


@stranger(
    "filter-logits",
    "top-p applied before the temperature",
    kind="subtle",
    first="named",
    verdict="named",
    says="top-p without the temperature",
)
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    if temperature <= 0:
        raise ValueError("temperature")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k")
    if top_p is not None and (top_p <= 0 or top_p > 1):
        raise ValueError("top_p")
    if top_k is not None:
        k = min(top_k, logits.shape[-1])
        smallest = logits.topk(k).values[..., -1:]
        logits = logits.masked_fill(logits < smallest, float("-inf"))
    if top_p is not None:
        p, order = logits.softmax(-1).sort(descending=True)
        drop = p.cumsum(-1) - p >= top_p
        drop = drop.gather(-1, order.argsort(-1))
        logits = logits.masked_fill(drop, float("-inf"))
    return logits / temperature


@stranger(
    "filter-logits",
    "the order is undone by the order itself AND top_p of 1 is refused",
    kind="double",
    first="named",
    verdict="named",
    says="the sorting is done twice, not undone",
)
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    if temperature <= 0:
        raise ValueError("temperature")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k")
    if top_p is not None and not 0 < top_p < 1:
        raise ValueError("top_p")
    logits = logits / temperature
    if top_k:
        smallest = logits.topk(min(top_k, logits.shape[-1])).values[..., -1:]
        logits = logits.masked_fill(logits < smallest, -math.inf)
    if top_p:
        p, order = logits.softmax(-1).sort(descending=True)
        drop = (p.cumsum(-1) - p >= top_p).gather(-1, order)
        logits = logits.masked_fill(drop, -math.inf)
    return logits


@stranger(
    "filter-logits",
    "zero settings are not refused (if top_k:)",
    kind="subtle",
    first="named",
    verdict="named",
    says="bad settings are accepted",
)
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    if temperature <= 0:
        raise ValueError("temperature must be above 0")
    if top_k and top_k < 1:
        raise ValueError("top_k must be at least 1")
    if top_p and (top_p < 0 or top_p > 1):
        raise ValueError("top_p must be in (0, 1]")
    logits = logits / temperature
    if top_k:
        smallest = logits.topk(min(top_k, logits.shape[-1])).values[..., -1:]
        logits = logits.masked_fill(logits < smallest, -math.inf)
    if top_p:
        p, order = logits.softmax(-1).sort(descending=True)
        drop = (p.cumsum(-1) - p >= top_p).gather(-1, order.argsort(-1))
        logits = logits.masked_fill(drop, -math.inf)
    return logits


@stranger(
    "sample-next",
    "not scaled by the last sum but clamped",
    kind="subtle",
    first="named",
    verdict="named",
    says="clamped to the last id",
)
def sample_next(probabilities, uniform):
    sums = probabilities.cumsum(-1)
    ids = (sums <= uniform.unsqueeze(-1)).sum(-1)
    return ids.clamp(max=probabilities.shape[-1] - 1)


@stranger(
    "sample-next",
    "searchsorted from the left: < in place of <=",
    kind="subtle",
    first="named",
    verdict="named",
    says="a token of probability 0 is drawn",
)
def sample_next(probabilities, uniform):
    sums = probabilities.cumsum(-1)
    number = uniform.unsqueeze(-1) * sums[..., -1:]
    return torch.searchsorted(sums, number).squeeze(-1)


@stranger(
    "sample-next",
    "multinomial ignores the number AND the result has an axis too many",
    kind="double",
    first="named",
    verdict="named",
    says="the number is not used",
)
def sample_next(probabilities, uniform):
    flat = probabilities.reshape(-1, probabilities.shape[-1])
    ids = torch.multinomial(flat, 1)
    return ids.reshape(*uniform.shape, 1)


@stranger(
    "beam-search",
    "finished hypotheses take no place of the beam",
    kind="subtle",
    first="useless",
    verdict="named",
    says="finished ones take no place in the beam",
)
@torch.no_grad()
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    alive, finished = [(0.0, list(prefix))], []
    while alive and len(alive[0][1]) < max_length:
        candidates = []
        for total, ids in alive:
            row = model(torch.tensor([ids]))[0, -1].log_softmax(-1).tolist()
            for token, score in enumerate(row):
                if token == eos_id:
                    finished.append((total + score, [*ids, token]))
                else:
                    candidates.append((total + score, [*ids, token]))
        candidates.sort(key=lambda pair: pair[0], reverse=True)
        alive = candidates[:beam_width]

    def score_of(pair):
        return pair[0] / (len(pair[1]) - len(prefix)) ** alpha

    best = max(finished + alive, key=score_of)
    return best[1], score_of(best)


@stranger(
    "beam-search",
    "only finished ones compete if there are any",
    kind="subtle",
    first="named",
    verdict="named",
    says="those alive are forgotten",
)
@torch.no_grad()
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    alive, finished = [(0.0, list(prefix))], []
    while alive and len(alive[0][1]) < max_length:
        candidates = []
        for total, ids in alive:
            row = model(torch.tensor([ids]))[0, -1].log_softmax(-1).tolist()
            candidates += [(total + s, [*ids, i]) for i, s in enumerate(row)]
        kept = sorted(candidates, key=lambda pair: -pair[0])[:beam_width]
        finished += [pair for pair in kept if pair[1][-1] == eos_id]
        alive = [pair for pair in kept if pair[1][-1] != eos_id]

    def score_of(pair):
        return pair[0] / (len(pair[1]) - len(prefix)) ** alpha

    best = max(finished or alive, key=score_of)
    return best[1], score_of(best)


@stranger(
    "beam-search",
    "once one ends, those behind it in the beam are dropped (break)",
    kind="subtle",
    first="useless",
    verdict="named",
    says="what ranks below a finished one is dropped",
)
@torch.no_grad()
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    def score_of(pair):
        return pair[0] / (len(pair[1]) - len(prefix)) ** alpha

    alive, finished = [(0.0, list(prefix))], []
    while alive and len(alive[0][1]) < max_length:
        candidates = []
        for total, ids in alive:
            row = model(torch.tensor([ids]))[0, -1].log_softmax(-1).tolist()
            candidates += [(total + s, [*ids, i]) for i, s in enumerate(row)]
        kept = sorted(candidates, key=score_of, reverse=True)[:beam_width]
        alive = []
        for pair in kept:
            if pair[1][-1] == eos_id:
                finished.append(pair)
                break
            alive.append(pair)
    best = max(finished + alive, key=score_of)
    return best[1], score_of(best)


@stranger(
    "beam-search",
    "the sum is returned in place of the score AND the length counts the prefix",
    kind="double",
    first="named",
    verdict="named",
    says="alpha is not used",
)
@torch.no_grad()
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    alive, finished = [(0.0, list(prefix))], []
    while alive and len(alive[0][1]) < max_length:
        candidates = []
        for total, ids in alive:
            row = model(torch.tensor([ids]))[0, -1].log_softmax(-1).tolist()
            candidates += [(total + s, [*ids, i]) for i, s in enumerate(row)]
        kept = sorted(candidates, key=lambda pair: -pair[0])[:beam_width]
        finished += [pair for pair in kept if pair[1][-1] == eos_id]
        alive = [pair for pair in kept if pair[1][-1] != eos_id]
    best = max(finished + alive, key=lambda pair: pair[0] / len(pair[1]) ** alpha)
    return best[1], best[0]


@stranger(
    "attend-cached",
    "the mask is causal among the new tokens only at first call",
    kind="subtle",
    first="shown",
    verdict="named",
    says="no mask among the new tokens",
)
def attend_cached(q, k_new, v_new, cache):
    if cache is None:
        mask = causal_mask(q.shape[-2])
        output, _ = scaled_dot_product_attention(q, k_new, v_new, mask)
        return output, {"k": k_new, "v": v_new}
    k = torch.cat((cache["k"], k_new), dim=-2)
    v = torch.cat((cache["v"], v_new), dim=-2)
    output, _ = scaled_dot_product_attention(q, k, v)
    return output, {"k": k, "v": v}


@stranger(
    "attend-cached",
    "the old cache is changed",
    kind="subtle",
    first="named",
    verdict="named",
    says="changes its argument in place",
)
def attend_cached(q, k_new, v_new, cache):
    if cache is None:
        cache = {"k": k_new, "v": v_new}
    else:
        cache["k"] = torch.cat((cache["k"], k_new), dim=2)
        cache["v"] = torch.cat((cache["v"], v_new), dim=2)
    total = cache["k"].shape[2]
    mask = causal_mask(total)[-q.shape[2] :]
    output, _ = scaled_dot_product_attention(q, cache["k"], cache["v"], mask)
    return output, cache


@stranger(
    "attend-cached",
    "new keys stand before the old ones AND the values of the new are not kept",
    kind="double",
    first="named",
    verdict="named",
    says="the new ones in front",
)
def attend_cached(q, k_new, v_new, cache):
    k, v = k_new, v_new
    if cache is not None:
        k = torch.cat((k_new, cache["k"]), dim=-2)
        v = torch.cat((v_new, cache["v"]), dim=-2)
    mask = causal_mask(k.shape[-2])[-q.shape[-2] :]
    output = scaled_dot_product_attention(q, k, v, mask)[0]
    return output, {"k": k, "v": v_new}


@stranger(
    "decoder-only",
    "post-norm blocks (norm_first forgotten)",
    kind="plain",
    first="named",
    verdict="named",
    says="post-norm in place of pre-norm",
)
class DecoderOnly(nn.Module):
    def __init__(
        self, vocab_size, d_model, heads, layers, d_ff, max_length, dropout=0.0
    ):
        super().__init__()
        self.embedding = Embedding(vocab_size, d_model)
        self.position = LearnedPositionalEncoding(max_length, d_model, dropout)
        self.blocks = Encoder(layers, d_model, heads, d_ff, dropout, activation="gelu")

    def forward(self, ids):
        x = self.position(self.embedding(ids))
        x = self.blocks(x, causal_mask(ids.shape[1]))
        return tied_logits(x, self.embedding.weight)


@stranger(
    "decoder-only",
    "id 0 is hidden as padding as well",
    kind="subtle",
    first="named",
    verdict="named",
    says="id 0 is hidden",
)
class DecoderOnly(nn.Module):
    def __init__(
        self, vocab_size, d_model, heads, layers, d_ff, max_length, dropout=0.0
    ):
        super().__init__()
        self.embedding = Embedding(vocab_size, d_model)
        self.position = LearnedPositionalEncoding(max_length, d_model, dropout)
        self.blocks = Encoder(
            layers,
            d_model,
            heads,
            d_ff,
            dropout,
            norm_first=True,
            activation="gelu",
        )

    def forward(self, ids):
        x = self.position(self.embedding(ids))
        mask = causal_mask(ids.shape[1]) & (ids != 0).unsqueeze(1)
        x = self.blocks(x, mask)
        return tied_logits(x, self.embedding.weight)


@stranger(
    "decoder-only",
    "the activation is relu AND the positions get no dropout",
    kind="double",
    first="named",
    verdict="named",
    says="ReLU in place of GELU",
)
class DecoderOnly(nn.Module):
    def __init__(
        self, vocab_size, d_model, heads, layers, d_ff, max_length, dropout=0.0
    ):
        super().__init__()
        self.embedding = Embedding(vocab_size, d_model)
        self.position = LearnedPositionalEncoding(max_length, d_model)
        self.blocks = Encoder(layers, d_model, heads, d_ff, dropout, norm_first=True)

    def forward(self, ids):
        x = self.position(self.embedding(ids))
        x = self.blocks(x, causal_mask(ids.shape[1]))
        return tied_logits(x, self.embedding.weight)


@stranger(
    "last-real",
    "position lengths, clamped at the end",
    kind="subtle",
    first="named",
    verdict="named",
    says="off by one",
)
def last_real(hidden, lengths):
    rows = torch.arange(hidden.shape[0])
    last = lengths.clamp(max=hidden.shape[1] - 1)
    return hidden[rows, last]


@stranger(
    "last-real",
    "gather works only for three axes",
    kind="subtle",
    first="told",
    verdict="named",
    says="fits one number of axes only",
)
def last_real(hidden, lengths):
    index = (lengths - 1)[:, None, None].expand(-1, 1, hidden.shape[-1])
    return hidden.gather(1, index).squeeze(1)


@stranger(
    "last-real",
    "the length of the first sentence for all",
    kind="subtle",
    first="named",
    verdict="named",
    says="one length for all sentences",
)
def last_real(hidden, lengths):
    return hidden[:, lengths[0] - 1]


@stranger(
    "bleu",
    "not clipped",
    kind="plain",
    first="named",
    verdict="named",
    says="counts are not clipped",
)
def bleu(hypotheses, references, maximum=4):
    mean = 0.0
    for n in range(1, maximum + 1):
        matches = total = 0
        for ours, theirs in zip(hypotheses, references):
            a = list(zip(*(ours[i:] for i in range(n))))
            b = set(zip(*(theirs[i:] for i in range(n))))
            matches += sum(gram in b for gram in a)
            total += len(a)
        if matches == 0:
            return 0.0
        mean += math.log(matches / total) / maximum
    c = sum(len(each) for each in hypotheses)
    r = sum(len(each) for each in references)
    penalty = 1.0 if c > r else math.exp(1 - r / c)
    return 100 * penalty * math.exp(mean)


@stranger(
    "bleu",
    "the n-grams of the length maximum are left out",
    kind="subtle",
    first="shown",
    verdict="named",
    says="one length too few",
)
def bleu(hypotheses, references, maximum=4):
    logs = []
    for n in range(1, maximum):
        matches, total = 0, 0
        for ours, theirs in zip(hypotheses, references):
            a = Counter(zip(*(ours[i:] for i in range(n))))
            b = Counter(zip(*(theirs[i:] for i in range(n))))
            matches += sum((a & b).values())
            total += sum(a.values())
        if not matches:
            return 0.0
        logs.append(math.log(matches / total))
    c = sum(map(len, hypotheses))
    r = sum(map(len, references))
    penalty = 1 if c > r else math.exp(1 - r / c)
    return 100 * penalty * math.exp(sum(logs) / maximum)


@stranger(
    "bleu",
    "the brevity penalty is taken for each sentence and averaged",
    kind="subtle",
    first="useless",
    verdict="named",
    says="a brevity penalty for each sentence",
)
def bleu(hypotheses, references, maximum=4):
    mean = 0.0
    for n in range(1, maximum + 1):
        matches, total = 0, 0
        for ours, theirs in zip(hypotheses, references):
            a = Counter(zip(*(ours[i:] for i in range(n))))
            b = Counter(zip(*(theirs[i:] for i in range(n))))
            matches += (a & b).total()
            total += a.total()
        if matches == 0:
            return 0.0
        mean += math.log(matches / total) / maximum
    penalties = [
        1.0 if len(a) > len(b) else math.exp(1 - len(b) / max(len(a), 1))
        for a, b in zip(hypotheses, references)
    ]
    return 100 * math.exp(mean) * sum(penalties) / len(penalties)


@stranger(
    "bleu",
    "an arithmetic mean of the precisions AND divided by the reference's n-grams",
    kind="double",
    first="wrong",
    verdict="named",
    says="recall in place of precision, and the arithmetic mean of the precisions",
)
def bleu(hypotheses, references, maximum=4):
    precisions = []
    for n in range(1, maximum + 1):
        matches, total = 0, 0
        for ours, theirs in zip(hypotheses, references):
            a = Counter(zip(*(ours[i:] for i in range(n))))
            b = Counter(zip(*(theirs[i:] for i in range(n))))
            matches += sum((a & b).values())
            total += sum(b.values())
        if matches == 0 or total == 0:
            return 0.0
        precisions.append(matches / total)
    c = sum(len(each) for each in hypotheses)
    r = sum(len(each) for each in references)
    penalty = 1 if c > r else math.exp(1 - r / c)
    return 100 * penalty * sum(precisions) / maximum


# --- a second round, after the checks were mended from the first ---


@stranger(
    "decoder-mask",
    "the rows of padding are emptied, too",
    kind="subtle",
    first="named",
    verdict="named",
    says="the rows of padding are empty",
    round=2,
)
def decoder_mask(lengths, max_length):
    real = padding_mask(lengths, max_length)
    return causal_mask(max_length) & real & real.transpose(1, 2)


@stranger(
    "decoder-layer",
    "in both orders cross-attention's result is added to the x of the beginning"
    " AND in pre-norm the mask is not handed on",
    kind="double",
    first="named",
    verdict="named",
    says="residual from the layer's input",
    round=2,
)
class DecoderLayer(nn.Module):
    def __init__(
        self, d_model, heads, d_ff, dropout=0.0, norm_first=False, activation="relu"
    ):
        super().__init__()
        self.norm_first = norm_first
        self.self_attention = MultiHeadAttention(d_model, heads)
        self.cross_attention = MultiHeadAttention(d_model, heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.norm_1 = LayerNorm(d_model)
        self.norm_2 = LayerNorm(d_model)
        self.norm_3 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, memory, mask=None, memory_mask=None):
        residual = x
        if self.norm_first:
            a = residual + self.dropout(self.self_attention(self.norm_1(x))[0])
            crossed = self.cross_attention(self.norm_2(a), memory, mask=memory_mask)[0]
            c = residual + self.dropout(crossed)
            return c + self.dropout(self.feed_forward(self.norm_3(c)))
        a = self.norm_1(residual + self.dropout(self.self_attention(x, mask=mask)[0]))
        crossed = self.cross_attention(a, memory, mask=memory_mask)[0]
        c = self.norm_2(residual + self.dropout(crossed))
        return self.norm_3(c + self.dropout(self.feed_forward(c)))


@stranger(
    "decoder",
    "the norm at the end stands in post-norm and not in pre-norm"
    " AND the layers do not get memory_mask",
    kind="double",
    first="named",
    verdict="named",
    says="final norm in post-norm",
    round=2,
)
class Decoder(nn.Module):
    def __init__(
        self,
        layers,
        d_model,
        heads,
        d_ff,
        dropout=0.0,
        norm_first=False,
        activation="relu",
    ):
        super().__init__()
        self.layers = nn.ModuleList(
            DecoderLayer(d_model, heads, d_ff, dropout, norm_first, activation)
            for _ in range(layers)
        )
        self.norm = nn.Identity() if norm_first else LayerNorm(d_model)

    def forward(self, x, memory, mask=None, memory_mask=None):
        for layer in self.layers:
            x = layer(x, memory, mask)
        return self.norm(x)


@stranger(
    "transformer",
    "decode takes 0 for padding in the source, not pad_id",
    kind="subtle",
    first="useless",
    verdict="named",
    says="pad_id is ignored",
    round=2,
)
class Transformer(nn.Module):
    def __init__(
        self,
        vocab_size,
        d_model,
        heads,
        layers,
        d_ff,
        max_length,
        dropout=0.0,
        norm_first=False,
        activation="relu",
        pad_id=0,
    ):
        super().__init__()
        self.pad_id = pad_id
        sizes = (layers, d_model, heads, d_ff, dropout, norm_first, activation)
        self.embedding = Embedding(vocab_size, d_model)
        self.position = SinusoidalPositionalEncoding(d_model, max_length, dropout)
        self.encoder = Encoder(*sizes)
        self.decoder = Decoder(*sizes)

    def encode(self, source):
        mask = (source != self.pad_id).unsqueeze(1)
        return self.encoder(self.position(self.embedding(source)), mask)

    def decode(self, target, memory, source):
        length = target.shape[1]
        mask = causal_mask(length) & (target != self.pad_id).unsqueeze(1)
        memory_mask = (source != 0).unsqueeze(1)
        x = self.position(self.embedding(target))
        return self.decoder(x, memory, mask, memory_mask)

    def forward(self, source, target):
        hidden = self.decode(target, self.encode(source), source)
        return tied_logits(hidden, self.embedding.weight)


@stranger(
    "shift-right",
    "an empty sentence is left out",
    kind="subtle",
    first="named",
    verdict="named",
    says="an empty sentence is left out",
    round=2,
)
def shift_right(sequences, sos_id, eos_id, pad_id=0):
    width = max(len(sequence) for sequence in sequences) + 1
    inputs, labels = [], []
    for sequence in sequences:
        if not sequence:
            continue
        padding = [pad_id] * (width - len(sequence) - 1)
        inputs.append([sos_id, *sequence, *padding])
        labels.append([*sequence, eos_id, *padding])
    return torch.tensor(inputs), torch.tensor(labels)


@stranger(
    "sequence-loss",
    "smoothing is spread over the V - 1 other classes, the label left out"
    " AND the loss is NaN when no label is real",
    kind="double",
    first="named",
    verdict="named",
    says="spread over the other classes only",
    round=2,
)
def sequence_loss(logits, labels, pad_id=0, smoothing=0.0):
    real = labels != pad_id
    logs = torch.log_softmax(logits, dim=-1)
    own = -logs.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    others = (-logs.sum(dim=-1) - own) / (logits.shape[-1] - 1)
    loss = (1 - smoothing) * own + smoothing * others
    return loss[real].mean()


@stranger(
    "noam-rate",
    "the rate is multiplied by the root of d_model AND negative steps are not refused",
    kind="double",
    first="named",
    verdict="named",
    says="another power of d_model",
    round=2,
)
def noam_rate(step, d_model, warmup=4000):
    if step == 0:
        raise ValueError("steps are counted from 1")
    rising = step * warmup ** (-1.5)
    if step < warmup:
        return d_model**0.5 * rising
    return d_model**0.5 * step**-0.5


@stranger(
    "bug-hunt",
    "the gradients are cleared between backward and step, so nothing is learned",
    first="told",
    verdict="told",
    says="the weights never change",
    round=2,
)
def repaired_epoch(model, batches, learning_rate):
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    losses = []
    for source, inputs, labels in batches:
        logits = model(source, inputs)
        loss = sequence_loss(logits, labels)
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()
        losses.append(loss.item())
    return losses


@stranger(
    "greedy-decode",
    "the length is looked at after a token is appended: a full prefix gets one more",
    kind="subtle",
    first="named",
    verdict="named",
    says="one token too many",
    round=2,
)
@torch.no_grad()
def greedy_decode(model, prefix, eos_id, max_length):
    ids = list(prefix)
    while True:
        logits = model(torch.tensor([ids]))
        following = int(logits[0, -1].argmax())
        ids.append(following)
        if following == eos_id or len(ids) >= max_length:
            return ids


@stranger(
    "filter-logits",
    "top-p adds up the probabilities from before top-k",
    kind="subtle",
    first="named",
    verdict="named",
    says="top-p before top-k",
    round=2,
)
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k must be at least 1")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError("top_p must be in (0, 1]")
    logits = logits / temperature
    result = logits
    if top_k is not None:
        k = min(top_k, logits.shape[-1])
        smallest = logits.topk(k, dim=-1).values[..., -1:]
        result = result.masked_fill(logits < smallest, -math.inf)
    if top_p is not None:
        chances, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
        before = chances.cumsum(dim=-1) - chances
        drop = (before >= top_p).gather(-1, order.argsort(-1))
        result = result.masked_fill(drop, -math.inf)
    return result


@stranger(
    "filter-logits",
    "the temperature divides last, after top-p has chosen"
    " AND a top_k above V raises an error",
    kind="double",
    first="named",
    verdict="named",
    says="top-p without the temperature",
    round=2,
)
def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    if temperature <= 0 or (top_k is not None and top_k < 1):
        raise ValueError("temperature and top_k must be positive")
    if top_p is not None and (top_p <= 0 or top_p > 1):
        raise ValueError("top_p must be above 0 and at most 1")
    if top_k is not None:
        smallest = torch.topk(logits, top_k, dim=-1).values[..., -1:]
        logits = torch.where(logits < smallest, -math.inf, logits)
    if top_p is not None:
        ordered, order = torch.sort(logits, dim=-1, descending=True)
        chances = torch.softmax(ordered, dim=-1)
        before = torch.cumsum(chances, dim=-1) - chances
        drop = torch.gather(before >= top_p, -1, order.argsort(-1))
        logits = torch.where(drop, -math.inf, logits)
    return logits / temperature


@stranger(
    "sample-next",
    "the number is not scaled by the last sum; what finds no id gets the last one,"
    " even if its probability is 0",
    kind="subtle",
    first="named",
    verdict="named",
    says="clamped to the last id",
    round=2,
)
def sample_next(probabilities, uniform):
    sums = probabilities.cumsum(dim=-1)
    passed = (sums <= uniform.unsqueeze(-1)).sum(dim=-1)
    return passed.clamp(max=probabilities.shape[-1] - 1)


@stranger(
    "beam-search",
    "what is still alive is only looked at when nothing has finished",
    kind="subtle",
    first="named",
    verdict="named",
    says="those alive are forgotten",
    round=2,
)
@torch.no_grad()
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    alive = [(0.0, list(prefix))]
    finished = []
    while alive and len(alive[0][1]) < max_length:
        candidates = []
        for total, ids in alive:
            row = model(torch.tensor([ids]))[0, -1].log_softmax(dim=-1).tolist()
            for token, value in enumerate(row):
                candidates.append((total + value, ids + [token]))
        candidates.sort(key=lambda pair: pair[0], reverse=True)
        kept = candidates[:beam_width]
        finished += [pair for pair in kept if pair[1][-1] == eos_id]
        alive = [pair for pair in kept if pair[1][-1] != eos_id]
    if not finished:
        finished = alive
    scored = [(s / (len(ids) - len(prefix)) ** alpha, ids) for s, ids in finished]
    score, ids = max(scored, key=lambda pair: pair[0])
    return ids, score


@stranger(
    "attend-cached",
    "there is only a mask when there is no cache",
    kind="subtle",
    first="named",
    verdict="named",
    says="no mask among the new tokens",
    round=2,
)
def attend_cached(q, k_new, v_new, cache):
    if cache is None:
        k, v = k_new, v_new
        mask = causal_mask(q.shape[-2])
    else:
        k = torch.cat((cache["k"], k_new), dim=-2)
        v = torch.cat((cache["v"], v_new), dim=-2)
        mask = None
    output, _ = scaled_dot_product_attention(q, k, v, mask)
    return output, {"k": k, "v": v}


@stranger(
    "decoder-only",
    "the blocks have ReLU, not GELU AND the positions have no dropout",
    kind="double",
    first="named",
    verdict="named",
    says="ReLU in place of GELU",
    round=2,
)
class DecoderOnly(nn.Module):
    def __init__(
        self, vocab_size, d_model, heads, layers, d_ff, max_length, dropout=0.0
    ):
        super().__init__()
        self.embedding = Embedding(vocab_size, d_model)
        self.position = LearnedPositionalEncoding(max_length, d_model)
        self.blocks = Encoder(layers, d_model, heads, d_ff, dropout, norm_first=True)

    def forward(self, ids):
        x = self.position(self.embedding(ids))
        x = self.blocks(x, causal_mask(ids.shape[1]))
        return tied_logits(x, self.embedding.weight)


@stranger(
    "last-real",
    "gather works for (B, T, d) only; nothing or more axes after T raise an error",
    kind="subtle",
    first="told",
    verdict="named",
    says="fits one number of axes only",
    round=2,
)
def last_real(hidden, lengths):
    batch, _, width = hidden.shape
    index = (lengths - 1).view(batch, 1, 1).expand(batch, 1, width)
    return hidden.gather(1, index).squeeze(1)


@stranger(
    "bleu",
    "a hypothesis that is shorter than n makes the number of n-grams smaller",
    kind="subtle",
    first="shown",
    verdict="named",
    says="fewer than no n-grams",
    round=2,
)
def bleu(hypotheses, references, maximum=4):
    total = 0.0
    for n in range(1, maximum + 1):
        matches, count = 0, 0
        for hypothesis, reference in zip(hypotheses, references, strict=True):
            ours = Counter(zip(*(hypothesis[i:] for i in range(n))))
            theirs = Counter(zip(*(reference[i:] for i in range(n))))
            matches += sum((ours & theirs).values())
            count += len(hypothesis) - n + 1
        if matches == 0:
            return 0.0
        total += math.log(matches / count) / maximum
    c = sum(len(hypothesis) for hypothesis in hypotheses)
    r = sum(len(reference) for reference in references)
    penalty = 1.0 if c > r else math.exp(1 - r / c)
    return 100 * penalty * math.exp(total)


# --- a third round, of what came later ---


@stranger(
    "beam-search",
    "the best of the finished is returned as soon as there is one: the search stops early",
    kind="subtle",
    first="named",
    verdict="named",
    says="stops at the first that ends",
    round=3,
)
@torch.no_grad()
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    alive, finished = [(0.0, list(prefix))], []
    while alive and len(alive[0][1]) < max_length and not finished:
        candidates = []
        for total, ids in alive:
            row = torch.log_softmax(model(torch.tensor([ids]))[0, -1], dim=-1).tolist()
            candidates += [(total + p, ids + [i]) for i, p in enumerate(row)]
        kept = sorted(candidates, key=lambda c: c[0], reverse=True)[:beam_width]
        finished += [c for c in kept if c[1][-1] == eos_id]
        alive = [c for c in kept if c[1][-1] != eos_id]

    def score(c):
        return c[0] / (len(c[1]) - len(prefix)) ** alpha

    best = max(finished + alive, key=score)
    return best[1], score(best)


@stranger(
    "beam-search",
    "candidates are cut by their normalised score AND the best is chosen among the finished "
    "only, if there are any",
    kind="double",
    first="named",
    verdict="named",
    says="those alive are forgotten",
    round=3,
)
@torch.no_grad()
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    def score(hypothesis):
        log_p, ids = hypothesis
        return log_p * (1 / (len(ids) - len(prefix)) ** alpha)

    beams = [(0.0, prefix)]
    done = []
    for _ in range(max_length - len(prefix)):
        new = []
        for log_p, ids in beams:
            logits = model(torch.tensor([ids]))[0, -1]
            logs = logits.log_softmax(-1)
            for token in range(len(logs)):
                h = (log_p + logs[token].item(), ids + [token])
                if token == eos_id:
                    new.append((*h, True))
                else:
                    new.append((*h, False))
        new.sort(key=lambda h: score(h[:2]), reverse=True)
        new = new[:beam_width]
        done.extend(h[:2] for h in new if h[2])
        beams = [h[:2] for h in new if not h[2]]
        if not beams:
            break
    best = max(done or beams, key=score)
    return best[1], score(best)


@stranger(
    "beam-search",
    "a finished hypothesis frees its place: as many living ones are kept as the beam is "
    "wide, whatever has ended",
    kind="subtle",
    first="named",
    verdict="named",
    says="finished ones take no place in the beam",
    round=3,
)
@torch.no_grad()
def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    alive = [(0.0, list(prefix))]
    finished = []
    while alive and len(alive[0][1]) < max_length:
        candidates = []
        for s, ids in alive:
            logs = torch.log_softmax(model(torch.tensor([ids]))[0, -1], dim=-1)
            for token, value in enumerate(logs.tolist()):
                candidates.append((s + value, ids + [token]))
        candidates.sort(key=lambda pair: -pair[0])
        alive = []
        for candidate in candidates:
            if candidate[1][-1] == eos_id:
                finished.append(candidate)
            else:
                alive.append(candidate)
            if len(alive) == beam_width:
                break
    n = len(prefix)
    results = [(s / (len(ids) - n) ** alpha, ids) for s, ids in finished + alive]
    s, ids = max(results, key=lambda pair: pair[0])
    return ids, s


@stranger(
    "bleu",
    "an n-gram counts for every time it occurs in the hypothesis: the counts are not clipped",
    kind="subtle",
    first="named",
    verdict="named",
    says="counts are not clipped",
    round=3,
)
def bleu(hypotheses, references, maximum=4):
    logs = 0.0
    for n in range(1, maximum + 1):
        hit = total = 0
        for h, r in zip(hypotheses, references):
            known = set(zip(*(r[i:] for i in range(n))))
            grams = list(zip(*(h[i:] for i in range(n))))
            hit += sum(g in known for g in grams)
            total += len(grams)
        if hit == 0:
            return 0.0
        logs += math.log(hit / total) / maximum
    c, r = sum(map(len, hypotheses)), sum(map(len, references))
    bp = 1.0 if c > r else math.exp(1 - r / c)
    return 100 * bp * math.exp(logs)


@stranger(
    "bleu",
    "the brevity penalty is worked out for each sentence and averaged AND the mean of the "
    "precisions is arithmetic",
    kind="double",
    first="useless",
    verdict="named",
    round=3,
    says="a brevity penalty for each sentence, and the arithmetic mean of the precisions",
)
def bleu(hypotheses, references, maximum=4):
    precisions = []
    for n in range(1, maximum + 1):
        matches, count = 0, 0
        for hyp, ref in zip(hypotheses, references):
            ours = Counter(tuple(hyp[i : i + n]) for i in range(len(hyp) - n + 1))
            theirs = Counter(tuple(ref[i : i + n]) for i in range(len(ref) - n + 1))
            matches += sum((ours & theirs).values())
            count += sum(ours.values())
        if matches == 0:
            return 0.0
        precisions.append(matches / count)
    penalties = []
    for hyp, ref in zip(hypotheses, references):
        if len(hyp) > len(ref):
            penalties.append(1.0)
        else:
            penalties.append(math.exp(1 - len(ref) / max(1, len(hyp))))
    penalty = sum(penalties) / len(penalties)
    return 100 * penalty * sum(precisions) / maximum


@stranger(
    "bleu",
    "an order without any match is left out of the mean in place of making the result 0",
    kind="subtle",
    first="named",
    verdict="named",
    says="lengths without a match are skipped",
    round=3,
)
def bleu(hypotheses, references, maximum=4):
    def grams(tokens, n):
        return Counter(zip(*(tokens[i:] for i in range(n))))

    logs = []
    for n in range(1, maximum + 1):
        matches = total = 0
        for ours, theirs in zip(hypotheses, references):
            a, b = grams(ours, n), grams(theirs, n)
            matches += (a & b).total()
            total += a.total()
        if matches > 0:
            logs.append(math.log(matches / total))
    if not logs:
        return 0.0
    c = sum(len(h) for h in hypotheses)
    r = sum(len(h) for h in references)
    penalty = 1.0 if c > r else math.exp(1 - r / c)
    return 100 * penalty * math.exp(sum(logs) / len(logs))
