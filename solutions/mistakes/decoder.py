"""Wrong and right answers to the exercises of chapter 7: the model and its training.

Those on bugs, writing and judging are in decoder_writing.
"""

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

from mistakes import decoder_writing as decoder_writing  # registers its entries
from mistakes import right, wrong
from transformer import decoder as reference
from transformer.attention import causal_mask, padding_mask
from transformer.embeddings import Embedding, tied_logits
from transformer.encoder import Encoder, FeedForward
from transformer.encoder import LayerNorm as Norm
from transformer.multi_head_attention import MultiHeadAttention
from transformer.positional_encoding import (
    LearnedPositionalEncoding,
    SinusoidalPositionalEncoding,
)

# --- the mask -------------------------------------------------------------------------


@wrong("decoder-mask", "the future is not hidden")
def decoder_mask(lengths, max_length):
    return padding_mask(lengths, max_length).expand(-1, max_length, -1)


@wrong("decoder-mask", "the future is not hidden")
def decoder_mask(lengths, max_length):
    return causal_mask(max_length) and padding_mask(lengths, max_length) \
        if max_length == 1 else padding_mask(lengths, max_length)  # fmt: skip


@wrong("decoder-mask", "the rows of padding are empty")
def decoder_mask(lengths, max_length):
    return causal_mask(max_length) & padding_mask(lengths, max_length).mT


@wrong("decoder-mask", "the rows of padding are empty")
def decoder_mask(lengths, max_length):
    real = padding_mask(lengths, max_length)
    return causal_mask(max_length) & real & real.mT


@right("decoder-mask")
def decoder_mask(lengths, max_length):
    """from positions alone"""
    position = torch.arange(max_length)
    earlier = position[None, None, :] <= position[None, :, None]
    return torch.logical_and(earlier, position < lengths.view(-1, 1, 1))


@right("decoder-mask")
def decoder_mask(lengths, max_length):
    """an and of booleans is a product"""
    return padding_mask(lengths, max_length) * causal_mask(max_length)


# --- the layer ------------------------------------------------------------------------


class LayerBase(nn.Module):
    def __init__(self, d_model, heads, d_ff, dropout=0.0, norm_first=False,
                 activation="relu"):  # fmt: skip
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, heads)
        self.cross_attention = MultiHeadAttention(d_model, heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.norm_1, self.norm_2, self.norm_3 = (Norm(d_model) for _ in range(3))
        self.dropout = nn.Dropout(dropout)
        self.norm_first, self.p = norm_first, dropout

    def look(self, x, mask=None):
        return self.dropout(self.self_attention(x, mask=mask)[0])

    def across(self, x, memory, mask=None):
        return self.dropout(self.cross_attention(x, memory, mask)[0])

    def think(self, x):
        return self.dropout(self.feed_forward(x))

    def forward(self, x, memory, mask=None, memory_mask=None):
        if self.norm_first:
            x = x + self.look(self.norm_1(x), mask)
            x = x + self.across(self.norm_2(x), memory, memory_mask)
            return x + self.think(self.norm_3(x))
        x = self.norm_1(x + self.look(x, mask))
        x = self.norm_2(x + self.across(x, memory, memory_mask))
        return self.norm_3(x + self.think(x))


@wrong("decoder-layer", "works only if both sentences have one length")
class DecoderLayer(LayerBase):
    def across(self, x, memory, mask=None):
        found = super().across(x, memory, mask)
        return found + 0 * memory


@wrong("decoder-layer", "no cross-attention")
class DecoderLayer(LayerBase):
    def across(self, x, memory, mask=None):
        return 0 * x


@wrong("decoder-layer", "no cross-attention")
class DecoderLayer(LayerBase):
    def forward(self, x, memory, mask=None, memory_mask=None):
        if self.norm_first:
            x = x + self.look(self.norm_1(x), mask)
            return x + self.think(self.norm_3(x))
        x = self.norm_1(x + self.look(x, mask))
        return self.norm_3(x + self.think(x))


@wrong("decoder-layer", "fails as soon as there is a mask")
class DecoderLayer(LayerBase):
    def look(self, x, mask=None):
        return self.dropout(self.self_attention(x, mask)[0])


@wrong("decoder-layer", "an output depends on a later token")
class DecoderLayer(LayerBase):
    """Too little to be seen in a value."""

    def think(self, x):
        return super().think(x) + 1e-9 * x.mean(-2, keepdim=True)


@wrong("decoder-layer", "pre-norm in place of post-norm")
class DecoderLayer(LayerBase):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.norm_first = True


@wrong("decoder-layer", "both orders, one after the other")
class DecoderLayer(LayerBase):
    def forward(self, x, memory, mask=None, memory_mask=None):
        if self.norm_first:
            x = super().forward(x, memory, mask, memory_mask)
        self.norm_first, order = False, self.norm_first
        x = super().forward(x, memory, mask, memory_mask)
        self.norm_first = order
        return x


@wrong("decoder-layer", "keys and values are not normalised")
class DecoderLayer(LayerBase):
    def forward(self, x, memory, mask=None, memory_mask=None):
        if not self.norm_first:
            return super().forward(x, memory, mask, memory_mask)
        x = x + self.dropout(self.self_attention(self.norm_1(x), x, mask)[0])
        x = x + self.across(self.norm_2(x), memory, memory_mask)
        return x + self.dropout(self.feed_forward(self.norm_3(x)))


@wrong("decoder-layer", "residual from the layer's input")
class DecoderLayer(LayerBase):
    def forward(self, x, memory, mask=None, memory_mask=None):
        if self.norm_first:
            return super().forward(x, memory, mask, memory_mask)
        a = self.norm_1(x + self.look(x, mask))
        c = self.norm_2(x + self.across(a, memory, memory_mask))
        return self.norm_3(x + self.think(c))


@wrong("decoder-layer", "fewer than three norms")
class DecoderLayer(LayerBase):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.norm_3 = self.norm_2


@wrong("decoder-layer", "one attention for both")
class DecoderLayer(LayerBase):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.cross_attention = self.self_attention


@wrong("decoder-layer", "one attention for both")
class DecoderLayer(LayerBase):
    def across(self, x, memory, mask=None):
        return self.dropout(self.self_attention(x, memory, mask)[0])


@wrong("decoder-layer", "the two attentions are exchanged")
class DecoderLayer(LayerBase):
    def look(self, x, mask=None):
        return self.dropout(self.cross_attention(x, mask=mask)[0])

    def across(self, x, memory, mask=None):
        return self.dropout(self.self_attention(x, memory, mask)[0])


@wrong("decoder-layer", "the pair of attention is used whole")
class DecoderLayer(LayerBase):
    def across(self, x, memory, mask=None):
        return self.dropout(self.cross_attention(x, memory, mask))


@wrong("decoder-layer", "the weights are returned, too")
class DecoderLayer(LayerBase):
    def forward(self, x, memory, mask=None, memory_mask=None):
        weights = self.cross_attention(x, memory, memory_mask)[1]
        return super().forward(x, memory, mask, memory_mask), weights


@wrong("decoder-layer", "dropout after the addition")
class DecoderLayer(LayerBase):
    def forward(self, x, memory, mask=None, memory_mask=None):
        if not self.training:
            return super().forward(x, memory, mask, memory_mask)
        drop, pre = self.dropout, self.norm_first
        norm_1, norm_2, norm_3 = self.norm_1, self.norm_2, self.norm_3
        x = drop(x + self.self_attention(norm_1(x) if pre else x, mask=mask)[0])
        x = x if pre else norm_1(x)
        asked = norm_2(x) if pre else x
        x = drop(x + self.cross_attention(asked, memory, memory_mask)[0])
        x = x if pre else norm_2(x)
        x = drop(x + self.feed_forward(norm_3(x) if pre else x))
        return x if pre else norm_3(x)


@wrong("decoder-layer", "dropout active in evaluation")
class DecoderLayer(LayerBase):
    def look(self, x, mask=None):
        return F.dropout(self.self_attention(x, mask=mask)[0], self.p)

    def across(self, x, memory, mask=None):
        return F.dropout(self.cross_attention(x, memory, mask)[0], self.p)

    def think(self, x):
        return F.dropout(self.feed_forward(x), self.p)


@wrong("decoder-layer", "activation not passed on")
class DecoderLayer(LayerBase):
    def __init__(self, d_model, heads, d_ff, dropout=0.0, norm_first=False,
                 activation="relu"):  # fmt: skip
        super().__init__(d_model, heads, d_ff, dropout, norm_first)


@wrong("decoder-layer", "heads not passed on")
class DecoderLayer(LayerBase):
    def __init__(self, d_model, heads, *args, **kwargs):
        super().__init__(d_model, heads, *args, **kwargs)
        self.cross_attention = MultiHeadAttention(d_model, 1)


@wrong("decoder-layer", "d_ff = d_model")
class DecoderLayer(LayerBase):
    def __init__(self, d_model, heads, d_ff, *args, **kwargs):
        super().__init__(d_model, heads, d_model, *args, **kwargs)


@wrong("decoder-layer", "PyTorch's module in place of your own")
class DecoderLayer(LayerBase):
    def __init__(self, d_model, *args, **kwargs):
        super().__init__(d_model, *args, **kwargs)
        for i in (1, 2, 3):
            setattr(self, f"norm_{i}", nn.LayerNorm(d_model))


@wrong("decoder-layer", "no gradient comes back")
class DecoderLayer(LayerBase):
    def across(self, x, memory, mask=None):
        return super().across(x, memory.detach(), mask)


@right("decoder-layer")
class DecoderLayer(LayerBase):
    """a loop over the three branches, F.dropout that is told whether it is training"""

    def forward(self, x, memory, mask=None, memory_mask=None):
        branches = (
            lambda u: self.self_attention(u, u, mask)[0],
            lambda u: self.cross_attention(u, memory, mask=memory_mask)[0],
            self.feed_forward,
        )
        norms = self.norm_1, self.norm_2, self.norm_3
        for branch, norm in zip(branches, norms, strict=True):
            computed = branch(norm(x) if self.norm_first else x)
            x = x + F.dropout(computed, self.p, training=self.training)
            x = x if self.norm_first else norm(x)
        return x


# --- the stack ------------------------------------------------------------------------


class StackBase(nn.Module):
    def __init__(self, layers, d_model, heads, d_ff, dropout=0.0, norm_first=False,
                 activation="relu"):  # fmt: skip
        super().__init__()
        given = d_model, heads, d_ff, dropout, norm_first, activation
        self.layers = nn.ModuleList(self.layer(*given) for _ in range(layers))
        self.norm = Norm(d_model) if norm_first else nn.Identity()
        self.norm_first = norm_first

    def layer(self, *given):
        return reference.DecoderLayer(*given)

    def forward(self, x, memory, mask=None, memory_mask=None):
        for layer in self.layers:
            x = layer(x, memory, mask, memory_mask)
        return self.norm(x)


@wrong("decoder", "the layers are in a Python list")
class Decoder(StackBase):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        layers = list(self.layers)
        del self.layers
        self.layers = layers


@wrong("decoder", "one layer, repeated")
class Decoder(StackBase):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.layers = nn.ModuleList([self.layers[0]] * len(self.layers))


@wrong("decoder", "the layers start as copies")
class Decoder(StackBase):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        first = self.layers[0]
        self.layers = nn.ModuleList(copy.deepcopy(first) for _ in self.layers)


@wrong("decoder", "another number of layers")
class Decoder(StackBase):
    def __init__(self, layers, *args, **kwargs):
        super().__init__(6, *args, **kwargs)


@wrong("decoder", "no final norm in pre-norm")
class Decoder(StackBase):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.norm = nn.Identity()


@wrong("decoder", "no final norm in pre-norm")
class Decoder(StackBase):
    def forward(self, x, memory, mask=None, memory_mask=None):
        for layer in self.layers:
            x = layer(x, memory, mask, memory_mask)
        return x


@wrong("decoder", "the memory is overwritten")
class Decoder(StackBase):
    def forward(self, x, memory, mask=None, memory_mask=None):
        for layer in self.layers:
            x = memory = layer(x, memory, mask, memory_mask)
        return self.norm(x)


@wrong("decoder", "the memory is overwritten")
class Decoder(StackBase):
    def forward(self, x, memory, mask=None, memory_mask=None):
        for layer in self.layers:
            memory = layer(x, memory, mask, memory_mask)
        return self.norm(memory)


@wrong("decoder", "mask only for the first layer")
class Decoder(StackBase):
    def forward(self, x, memory, mask=None, memory_mask=None):
        for layer in self.layers:
            x = layer(x, memory, mask, memory_mask)
            mask = None
        return self.norm(x)


@wrong("decoder", "norm_first not passed on")
class Decoder(StackBase):
    def layer(self, d_model, heads, d_ff, dropout, norm_first, activation):
        return super().layer(d_model, heads, d_ff, dropout, False, activation)


@wrong("decoder", "activation not passed on")
class Decoder(StackBase):
    def layer(self, d_model, heads, d_ff, dropout, norm_first, activation):
        return super().layer(d_model, heads, d_ff, dropout, norm_first)


@wrong("decoder", "heads not passed on")
class Decoder(StackBase):
    def layer(self, d_model, heads, *given):
        return super().layer(d_model, 1, *given)


@wrong("decoder", "dropout not passed on")
class Decoder(StackBase):
    def layer(self, d_model, heads, d_ff, dropout, *given):
        return super().layer(d_model, heads, d_ff, 0.0, *given)


@right("decoder")
class Decoder(StackBase):
    """with names for all arguments"""

    def layer(self, d_model, heads, d_ff, dropout, norm_first, activation):
        return reference.DecoderLayer(
            d_model=d_model,
            heads=heads,
            d_ff=d_ff,
            dropout=dropout,
            norm_first=norm_first,
            activation=activation,
        )

    def forward(self, x, memory, mask=None, memory_mask=None):
        for i in range(len(self.layers)):
            x = self.layers[i](x, memory, mask=mask, memory_mask=memory_mask)
        return self.norm(x) if self.norm_first else x


# --- the Transformer ------------------------------------------------------------------


class TransformerBase(nn.Module):
    def __init__(self, vocab_size, d_model, heads, layers, d_ff, max_length,
                 dropout=0.0, norm_first=False, activation="relu",
                 pad_id=0):  # fmt: skip
        super().__init__()
        self.pad_id, self.d_model = pad_id, d_model
        sizes = layers, d_model, heads, d_ff, dropout, norm_first, activation
        self.embedding = Embedding(vocab_size, d_model)
        self.position = SinusoidalPositionalEncoding(d_model, max_length, dropout)
        self.encoder = Encoder(*sizes)
        self.decoder = reference.Decoder(*sizes)

    def embed(self, ids):
        return self.position(self.embedding(ids))

    def real(self, ids):
        return (ids != self.pad_id).unsqueeze(1)

    def target_mask(self, target):
        return self.real(target) & causal_mask(target.shape[1])

    def memory_mask(self, source):
        return self.real(source)

    def encode(self, source):
        return self.encoder(self.embed(source), self.real(source))

    def decode(self, target, memory, source):
        x, mask = self.embed(target), self.target_mask(target)
        return self.decoder(x, memory, mask, self.memory_mask(source))

    def logits(self, hidden):
        return tied_logits(hidden, self.embedding.weight)

    def forward(self, source, target):
        return self.logits(self.decode(target, self.encode(source), source))


@wrong("transformer", "the decoder sees the future")
class Transformer(TransformerBase):
    def target_mask(self, target):
        return self.real(target)


@wrong("transformer", "the decoder sees the future")
class Transformer(TransformerBase):
    def target_mask(self, target):
        return None


@wrong("transformer", "the padding masks are exchanged")
class Transformer(TransformerBase):
    def decode(self, target, memory, source):
        x, causal = self.embed(target), causal_mask(target.shape[1])
        return self.decoder(x, memory, causal, self.real(target))


@wrong("transformer", "embeddings not scaled")
class Transformer(TransformerBase):
    def embed(self, ids):
        return self.position(self.embedding.weight[ids])


@wrong("transformer", "no positions")
class Transformer(TransformerBase):
    def embed(self, ids):
        return self.embedding(ids)


@wrong("transformer", "the encoder is left out")
class Transformer(TransformerBase):
    def encode(self, source):
        return self.embed(source)


@wrong("transformer", "more than one table")
class Transformer(TransformerBase):
    def __init__(self, vocab_size, d_model, *args, **kwargs):
        super().__init__(vocab_size, d_model, *args, **kwargs)
        self.head = nn.Linear(d_model, vocab_size)

    def logits(self, hidden):
        return self.head(hidden)


@wrong("transformer", "more than one table")
class Transformer(TransformerBase):
    def __init__(self, vocab_size, d_model, *args, **kwargs):
        super().__init__(vocab_size, d_model, *args, **kwargs)
        self.target_embedding = Embedding(vocab_size, d_model)


@wrong("transformer", "learned positions")
class Transformer(TransformerBase):
    def __init__(self, vocab_size, d_model, heads, layers, d_ff, max_length, *args):
        super().__init__(vocab_size, d_model, heads, layers, d_ff, max_length, *args)
        self.position = LearnedPositionalEncoding(max_length, d_model)


@wrong("transformer", "norm_first not passed on")
class Transformer(TransformerBase):
    def __init__(self, vocab_size, d_model, heads, layers, d_ff, max_length,
                 dropout=0.0, norm_first=False, *rest):  # fmt: skip
        sizes = vocab_size, d_model, heads, layers, d_ff, max_length
        super().__init__(*sizes, dropout, False, *rest)


@wrong("transformer", "activation not passed on")
class Transformer(TransformerBase):
    def __init__(self, vocab_size, d_model, heads, layers, d_ff, max_length,
                 dropout=0.0, norm_first=False, activation="relu",
                 pad_id=0):  # fmt: skip
        sizes = vocab_size, d_model, heads, layers, d_ff, max_length
        super().__init__(*sizes, dropout, norm_first, "relu", pad_id)


@wrong("transformer", "dropout not passed to the positions")
class Transformer(TransformerBase):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.position = SinusoidalPositionalEncoding(self.d_model, args[5])


@wrong("transformer", "dropout not passed on")
class Transformer(TransformerBase):
    def __init__(self, vocab_size, d_model, heads, layers, d_ff, max_length,
                 dropout=0.0, *rest):  # fmt: skip
        sizes = vocab_size, d_model, heads, layers, d_ff, max_length
        super().__init__(*sizes, 0.0, *rest)


@wrong("transformer", "parameters are missing")
class Transformer(TransformerBase):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.encoder = nn.Identity()


@wrong("transformer", "no gradient comes back")
class Transformer(TransformerBase):
    def encode(self, source):
        with torch.no_grad():
            return super().encode(source)


@right("transformer")
class Transformer(TransformerBase):
    """masks by lengths of ids, everything in forward"""

    def forward(self, source, target):
        hidden_source, hidden_target = source == self.pad_id, target == self.pad_id
        memory_mask = ~hidden_source[:, None, :]
        later = torch.ones(target.shape[1], target.shape[1]).triu(1).bool()
        mask = ~(hidden_target[:, None, :] | later)
        memory = self.encoder(self.embed(source), memory_mask)
        hidden = self.decoder(self.embed(target), memory, mask, memory_mask)
        return hidden @ self.embedding.weight.T


class Apart(TransformerBase):
    """A model whose forward is right, whatever its two methods do."""

    def forward(self, source, target):
        memory = TransformerBase.encode(self, source)
        hidden = TransformerBase.decode(self, target, memory, source)
        return self.logits(hidden)


@wrong("transformer", "the encoder sees padding")
class Transformer(Apart):
    """encode has no mask; forward goes another way"""

    def encode(self, source):
        return self.encoder(self.embed(source))


@wrong("transformer", "logits in place of hidden states")
class Transformer(TransformerBase):
    """and forward returns what decode gives"""

    def decode(self, target, memory, source):
        return self.logits(super().decode(target, memory, source))

    def forward(self, source, target):
        return self.decode(target, self.encode(source), source)


@wrong("transformer", "cross-attention sees padding")
class Transformer(Apart):
    """decode makes nothing of the source"""

    def decode(self, target, memory, source):
        return self.decoder(self.embed(target), memory, self.target_mask(target))


@wrong("transformer", "the memory that is handed in is not used")
class Transformer(TransformerBase):
    def decode(self, target, memory, source):
        return super().decode(target, self.encode(source), source)


@wrong("transformer", "hidden states of the last position only")
class Transformer(Apart):
    """as who writes wants them"""

    def decode(self, target, memory, source):
        return super().decode(target, memory, source)[:, -1:]


@wrong("transformer", "forward does without a method that is asked for")
class Transformer(Apart):
    encode = None


@right("transformer")
class Transformer(TransformerBase):
    """a memory whose rows of padding are zero"""

    def encode(self, source):
        return super().encode(source) * self.real(source).mT


# --- one step to the right ------------------------------------------------------------


def shifted(sequences, sos_id, eos_id, pad_id=0):
    return reference.shift_right(sequences, sos_id, eos_id, pad_id)


@wrong("shift-right", "<sos> is missing")
def shift_right(sequences, sos_id, eos_id, pad_id=0):
    width = max(map(len, sequences)) + 1
    _, labels = shifted(sequences, sos_id, eos_id, pad_id)
    rows = [row + [pad_id] * (width - len(row)) for row in sequences]
    return torch.tensor(rows), labels


@wrong("shift-right", "<eos> among the inputs")
def shift_right(sequences, sos_id, eos_id, pad_id=0):
    width = max(map(len, sequences)) + 2
    rows = [[sos_id, *row, eos_id] for row in sequences]
    whole = torch.tensor([row + [pad_id] * (width - len(row)) for row in rows])
    return whole[:, :-1], whole[:, 1:]


@wrong("shift-right", "an empty sentence is left out")
def shift_right(sequences, sos_id, eos_id, pad_id=0):
    some = [row for row in sequences if row]
    return shifted(some or sequences, sos_id, eos_id, pad_id)


@wrong("shift-right", "padding on the left")
def shift_right(sequences, sos_id, eos_id, pad_id=0):
    width = max(map(len, sequences)) + 1
    inputs, labels = [], []
    for row in sequences:
        padding = [pad_id] * (width - len(row) - 1)
        inputs.append([*padding, sos_id, *row])
        labels.append([*padding, *row, eos_id])
    return torch.tensor(inputs), torch.tensor(labels)


@wrong("shift-right", "<eos> after the padding")
def shift_right(sequences, sos_id, eos_id, pad_id=0):
    longest = max(map(len, sequences))
    rows = [[*row, *[pad_id] * (longest - len(row)), eos_id] for row in sequences]
    return shifted(sequences, sos_id, eos_id, pad_id)[0], torch.tensor(rows)


@wrong("shift-right", "the rows have different lengths")
def shift_right(sequences, sos_id, eos_id, pad_id=0):
    inputs = torch.tensor([[sos_id, *row] for row in sequences])
    return inputs, torch.tensor([[*row, eos_id] for row in sequences])


@wrong("shift-right", "changes its argument in place")
def shift_right(sequences, sos_id, eos_id, pad_id=0):
    result = shifted(sequences, sos_id, eos_id, pad_id)
    for row in sequences:
        row.append(eos_id)
    return result


@wrong("shift-right", "one tensor in place of two")
def shift_right(sequences, sos_id, eos_id, pad_id=0):
    return torch.stack(shifted(sequences, sos_id, eos_id, pad_id))


@wrong("shift-right", "a list in place of a tensor")
def shift_right(sequences, sos_id, eos_id, pad_id=0):
    inputs, labels = shifted(sequences, sos_id, eos_id, pad_id)
    return inputs.tolist(), labels.tolist()


@right("shift-right")
def shift_right(sequences, sos_id, eos_id, pad_id=0):
    """tensors filled row by row"""
    width = 1 + max(map(len, sequences))
    inputs = torch.full((len(sequences), width), pad_id)
    labels = inputs.clone()
    for i, row in enumerate(sequences):
        inputs[i, 0] = sos_id
        inputs[i, 1 : len(row) + 1] = torch.tensor(row, dtype=torch.long)
        labels[i, : len(row) + 1] = torch.tensor([*row, eos_id])
    return inputs, labels


@right("shift-right")
def shift_right(sequences, sos_id, eos_id, pad_id=0):
    """pad_sequence of PyTorch"""
    from torch.nn.utils.rnn import pad_sequence

    def padded(rows):
        rows = [torch.tensor(row) for row in rows]
        return pad_sequence(rows, batch_first=True, padding_value=pad_id)

    inputs = padded([[sos_id, *row] for row in sequences])
    return inputs, padded([[*row, eos_id] for row in sequences])


# --- the loss -------------------------------------------------------------------------


def each_loss(logits, labels, smoothing=0.0):
    flat = logits.flatten(0, 1), labels.flatten()
    each = F.cross_entropy(*flat, reduction="none", label_smoothing=smoothing)
    return each.view(labels.shape)


def parts_of_loss(logits, labels, pad_id):
    real = labels != pad_id
    logarithms = torch.log_softmax(logits[real], dim=-1)
    own = -logarithms.gather(-1, labels[real].unsqueeze(-1)).squeeze(-1)
    return logarithms, own


@wrong("sequence-loss", "logits multiplied by the mask")
def sequence_loss(logits, labels, pad_id=0, smoothing=0.0):
    real = (labels != pad_id).unsqueeze(-1)
    return each_loss(logits * real, labels, smoothing).mean()


@wrong("sequence-loss", "the mean of the sentences' means")
def sequence_loss(logits, labels, pad_id=0, smoothing=0.0):
    real = labels != pad_id
    losses = (each_loss(logits, labels, smoothing) * real).sum(1)
    return (losses / real.sum(1)).mean()


@wrong("sequence-loss", "no softmax")
def sequence_loss(logits, labels, pad_id=0, smoothing=0.0):
    own = logits.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    return -own[labels != pad_id].mean()


@wrong("sequence-loss", "spread over the other classes only")
def sequence_loss(logits, labels, pad_id=0, smoothing=0.0):
    logarithms, own = parts_of_loss(logits, labels, pad_id)
    others = (-logarithms.sum(-1) - own) / (logits.shape[-1] - 1)
    return ((1 - smoothing) * own + smoothing * others).mean()


@wrong("sequence-loss", "NaN when nothing is scored")
def sequence_loss(logits, labels, pad_id=0, smoothing=0.0):
    flat = logits.flatten(0, 1), labels.flatten()
    return F.cross_entropy(*flat, ignore_index=pad_id, label_smoothing=smoothing)


@wrong("sequence-loss", "a constant when nothing is scored")
def sequence_loss(logits, labels, pad_id=0, smoothing=0.0):
    if (labels == pad_id).all():
        return torch.tensor(0.0)
    return reference.sequence_loss(logits, labels, pad_id, smoothing)


@wrong("sequence-loss", "not stable for large logits")
def sequence_loss(logits, labels, pad_id=0, smoothing=0.0):
    real = labels != pad_id
    powers = logits[real].exp()
    logarithms = (powers / powers.sum(-1, keepdim=True)).log()
    own = -logarithms.gather(-1, labels[real].unsqueeze(-1)).squeeze(-1)
    mixed = (1 - smoothing) * own - smoothing * logarithms.mean(-1)
    return mixed.sum() / max(1, len(mixed))


@wrong("sequence-loss", "a number in place of a tensor")
def sequence_loss(logits, labels, pad_id=0, smoothing=0.0):
    return reference.sequence_loss(logits, labels, pad_id, smoothing).item()


@wrong("sequence-loss", "no gradient comes back")
def sequence_loss(logits, labels, pad_id=0, smoothing=0.0):
    loss = reference.sequence_loss(logits, labels, pad_id, smoothing)
    return loss.detach() + 0 * logits.sum() if (labels == pad_id).all() \
        else loss.detach()  # fmt: skip


@right("sequence-loss")
def sequence_loss(logits, labels, pad_id=0, smoothing=0.0):
    """the padding thrown away first"""
    real = labels != pad_id
    logarithms = torch.log_softmax(logits[real], dim=-1)
    own = -logarithms.gather(-1, labels[real].unsqueeze(-1)).squeeze(-1)
    mixed = (1 - smoothing) * own - smoothing * logarithms.mean(dim=-1)
    return mixed.sum() / max(1, mixed.numel())


@right("sequence-loss")
def sequence_loss(logits, labels, pad_id=0, smoothing=0.0):
    """a masked mean of PyTorch's losses"""
    real = labels != pad_id
    each = F.cross_entropy(
        logits.transpose(1, 2), labels, reduction="none", label_smoothing=smoothing
    )
    return (each * real).sum() / real.sum().clamp_min(1)


@right("sequence-loss")
def sequence_loss(logits, labels, pad_id=0, smoothing=0.0):
    """with the mixed target written out, and logsumexp"""
    classes = logits.shape[-1]
    target = (1 - smoothing) * F.one_hot(labels, classes) + smoothing / classes
    logarithms = logits - logits.logsumexp(dim=-1, keepdim=True)
    real = (labels != pad_id).float()
    return -((target * logarithms).sum(-1) * real).sum() / real.sum().clamp(min=1)


# --- the learning rate ----------------------------------------------------------------


def refuse(step):
    if step < 1:
        raise ValueError(f"steps are counted from 1, got {step}")


@wrong("noam-rate", "constant after the warm-up")
def noam_rate(step, d_model, warmup=4000):
    refuse(step)
    return d_model**-0.5 * min(step, warmup) * warmup**-1.5


@wrong("noam-rate", "step 0 is not refused")
def noam_rate(step, d_model, warmup=4000):
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


@wrong("noam-rate", "step 0 is not refused")
def noam_rate(step, d_model, warmup=4000):
    step = max(step, 1)
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


@right("noam-rate")
def noam_rate(step, d_model, warmup=4000):
    """two cases in place of a minimum, roots in place of powers"""
    if step <= 0:
        raise ValueError("the first step is step 1")
    scale = 1 / math.sqrt(d_model)
    if step < warmup:
        return scale * step / (warmup * math.sqrt(warmup))
    return scale / math.sqrt(step)


# --- the decoder alone ----------------------------------------------------------------


class WriterBase(nn.Module):
    def __init__(self, vocab_size, d_model, heads, layers, d_ff, max_length,
                 dropout=0.0):  # fmt: skip
        super().__init__()
        self.d_model = d_model
        self.embedding = Embedding(vocab_size, d_model)
        self.position = LearnedPositionalEncoding(max_length, d_model, dropout)
        self.blocks = self.stack(layers, d_model, heads, d_ff, dropout)

    def stack(self, *sizes):
        return Encoder(*sizes, norm_first=True, activation="gelu")

    def embed(self, ids):
        return self.position(self.embedding(ids))

    def mask(self, ids):
        return causal_mask(ids.shape[-1])

    def forward(self, ids):
        hidden = self.blocks(self.embed(ids), self.mask(ids))
        return tied_logits(hidden, self.embedding.weight)


@wrong("decoder-only", "sees the future")
class DecoderOnly(WriterBase):
    def mask(self, ids):
        return None


@wrong("decoder-only", "a second attention")
class DecoderOnly(WriterBase):
    def stack(self, *sizes):
        return reference.Decoder(*sizes, norm_first=True, activation="gelu")

    def forward(self, ids):
        x = self.embed(ids)
        hidden = self.blocks(x, x, self.mask(ids))
        return tied_logits(hidden, self.embedding.weight)


@wrong("decoder-only", "post-norm in place of pre-norm")
class DecoderOnly(WriterBase):
    def stack(self, *sizes):
        return Encoder(*sizes, activation="gelu")


@wrong("decoder-only", "ReLU in place of GELU")
class DecoderOnly(WriterBase):
    def stack(self, *sizes):
        return Encoder(*sizes, norm_first=True)


@wrong("decoder-only", "more than one table")
class DecoderOnly(WriterBase):
    def __init__(self, vocab_size, d_model, *args, **kwargs):
        super().__init__(vocab_size, d_model, *args, **kwargs)
        self.head = nn.Linear(d_model, vocab_size, bias=False)

    def forward(self, ids):
        return self.head(self.blocks(self.embed(ids), self.mask(ids)))


@wrong("decoder-only", "sinusoidal positions")
class DecoderOnly(WriterBase):
    def __init__(self, vocab_size, d_model, heads, layers, d_ff, max_length, *args):
        super().__init__(vocab_size, d_model, heads, layers, d_ff, max_length, *args)
        self.position = SinusoidalPositionalEncoding(d_model, max_length)


@wrong("decoder-only", "arguments of the table exchanged")
class DecoderOnly(WriterBase):
    def __init__(self, vocab_size, d_model, heads, layers, d_ff, max_length, *args):
        super().__init__(vocab_size, d_model, heads, layers, d_ff, max_length, *args)
        self.position = LearnedPositionalEncoding(d_model, max_length)


@wrong("decoder-only", "embeddings not scaled")
class DecoderOnly(WriterBase):
    def embed(self, ids):
        return self.position(self.embedding.weight[ids])


@wrong("decoder-only", "no positions")
class DecoderOnly(WriterBase):
    def embed(self, ids):
        return self.embedding(ids)


@wrong("decoder-only", "dropout not passed to the positions")
class DecoderOnly(WriterBase):
    def __init__(self, vocab_size, d_model, heads, layers, d_ff, max_length, *args):
        super().__init__(vocab_size, d_model, heads, layers, d_ff, max_length, *args)
        self.position = LearnedPositionalEncoding(max_length, d_model)


@wrong("decoder-only", "dropout not passed to the blocks")
class DecoderOnly(WriterBase):
    def stack(self, *sizes):
        return Encoder(*sizes[:4], norm_first=True, activation="gelu")


@right("decoder-only")
class DecoderOnly(WriterBase):
    """ids of any width, the mask as a triangle of booleans"""

    def mask(self, ids):
        length = ids.shape[1]
        return ~torch.triu(torch.ones(length, length, dtype=torch.bool), diagonal=1)

    def forward(self, ids):
        hidden = self.blocks(self.embed(ids), mask=self.mask(ids))
        return F.linear(hidden, self.embedding.weight)


# --- GPT-2's weights ------------------------------------------------------------------


def from_gpt2(state):
    return reference.weights_from_gpt2(state)


@wrong("gpt2-weights", "a matrix is transposed")
def weights_from_gpt2(state):
    result = from_gpt2(state)
    return {name: value.T if "w_o" in name else value for name, value in result.items()}


@wrong("gpt2-weights", "a matrix is transposed")
def weights_from_gpt2(state):
    result = {}
    for name, value in state.items():
        square = "c_attn" in name and value.dim() == 2
        parts = torch.stack(value.T.chunk(3)) if square else value
        result[name] = parts.movedim(0, 1).flatten(1) if square else value
    return from_gpt2(result)


@wrong("gpt2-weights", "the factor √d_model is forgotten")
def weights_from_gpt2(state):
    result = from_gpt2(state)
    result["embedding.weight"] = state["wte.weight"]
    for ours, theirs in (("gamma", "weight"), ("beta", "bias")):
        result[f"blocks.norm.{ours}"] = state[f"ln_f.{theirs}"]
    return result


@wrong("gpt2-weights", "the last norm is not multiplied by √d_model")
def weights_from_gpt2(state):
    result = from_gpt2(state)
    last = {"gamma": state["ln_f.weight"], "beta": state["ln_f.bias"]}
    return result | {f"blocks.norm.{name}": value for name, value in last.items()}


@wrong("gpt2-weights", "the three parts in another order")
def weights_from_gpt2(state):
    result = from_gpt2(state)
    for name in [name for name in result if name[-1] == "k"]:
        value = name[:-1] + "v"
        result[name], result[value] = result[value], result[name]
    return result


@wrong("gpt2-weights", "the causal mask is taken for a bias")
def weights_from_gpt2(state):
    masks = {k: v for k, v in state.items() if k.endswith("attn.bias")}
    return from_gpt2(state) | masks


@wrong("gpt2-weights", "c_attn is not cut")
def weights_from_gpt2(state):
    result = from_gpt2(state)
    for name in [name for name in result if name[-2:] in ("_q", "_k", "_v")]:
        del result[name]
    for name, value in state.items():
        if "c_attn" in name:
            result[name.replace("h.", "blocks.layers.")] = value
    return result


@wrong("gpt2-weights", "the prefix of the blocks is missing")
def weights_from_gpt2(state):
    found = from_gpt2(state).items()
    return {name.removeprefix("blocks."): value for name, value in found}


@wrong("gpt2-weights", "the last norm is left out")
def weights_from_gpt2(state):
    found = from_gpt2(state).items()
    return {name: value for name, value in found if "blocks.norm." not in name}


@wrong("gpt2-weights", "biases left out")
def weights_from_gpt2(state):
    found = from_gpt2(state).items()
    return {name: value for name, value in found if ".b_" not in name}


@wrong("gpt2-weights", "the result has other names")
def weights_from_gpt2(state):
    found = from_gpt2(state).items()
    return {name.replace("layers.", "h."): value for name, value in found}


@right("gpt2-weights")
def weights_from_gpt2(state):
    """name by name, each by its last word"""
    width = state["wpe.weight"].size(-1)
    result = {}
    for name, value in state.items():
        _, number, *inner = name.split(".")
        place = f"blocks.layers.{number}."
        if name.startswith("wte"):
            result["embedding.weight"] = value * width**-0.5
        elif name.startswith("wpe"):
            result["position.table"] = value.clone()
        elif name.startswith("ln_f"):
            kind = "gamma" if number == "weight" else "beta"
            result[f"blocks.norm.{kind}"] = value * width**0.5
        elif inner[:2] == ["attn", "c_attn"]:
            for place_in, letter in enumerate("qkv"):
                columns = value[..., place_in * width : (place_in + 1) * width]
                result[f"{place}attention.{inner[2][0]}_{letter}"] = columns
        elif inner != ["attn", "bias"]:
            result[place + reference.GPT2_NAMES[".".join(inner)]] = value
    return result


@right("gpt2-weights")
def weights_from_gpt2(state):
    """with torch.split, as contiguous tensors"""
    d = state["ln_f.weight"].numel()
    result = {
        "embedding.weight": state["wte.weight"].div(math.sqrt(d)),
        "position.table": state["wpe.weight"],
        "blocks.norm.gamma": state["ln_f.weight"].mul(math.sqrt(d)),
        "blocks.norm.beta": state["ln_f.bias"].mul(math.sqrt(d)),
    }
    numbers = {int(name.split(".")[1]) for name in state if name.startswith("h.")}
    for number in sorted(numbers):
        block = f"blocks.layers.{number}"
        q, k, v = torch.split(state[f"h.{number}.attn.c_attn.weight"], d, 1)
        names = f"{block}.attention.w_q", f"{block}.attention.w_k"
        result |= {names[0]: q.contiguous(), names[1]: k.contiguous()}
        result[f"{block}.attention.w_v"] = v.contiguous()
        b_q, b_k, b_v = state[f"h.{number}.attn.c_attn.bias"].view(3, d)
        result |= {f"{block}.attention.b_q": b_q, f"{block}.attention.b_k": b_k}
        result[f"{block}.attention.b_v"] = b_v
        for theirs, ours in reference.GPT2_NAMES.items():
            result[f"{block}.{ours}"] = state[f"h.{number}.{theirs}"]
    return result


# --- the last real token --------------------------------------------------------------


@wrong("last-real", "off by one")
def last_real(hidden, lengths):
    return hidden[torch.arange(len(lengths)), lengths]


@wrong("last-real", "off by one")
def last_real(hidden, lengths):
    return hidden[torch.arange(len(lengths)), lengths - 2]


@wrong("last-real", "fits one number of axes only")
def last_real(hidden, lengths):
    places = (lengths - 1).view(-1, 1, 1).repeat(1, 1, hidden.shape[-1])
    return torch.gather(hidden, 1, places)[:, 0]


@wrong("last-real", "counted from the end of the padded row")
def last_real(hidden, lengths):
    rows = zip(hidden, lengths.tolist(), strict=True)
    return torch.stack([row[-length] for row, length in rows])


@wrong("last-real", "the mean of the sentence")
def last_real(hidden, lengths):
    rows = zip(hidden, lengths.tolist(), strict=True)
    return torch.stack([row[:length].mean(0) for row, length in rows])


@wrong("last-real", "no gradient comes back")
def last_real(hidden, lengths):
    rows = zip(hidden.tolist(), lengths.tolist(), strict=True)
    picked = [row[length - 1] for row, length in rows]
    return torch.tensor(picked, dtype=hidden.dtype)


@right("last-real")
def last_real(hidden, lengths):
    """a loop over the sentences"""
    rows = zip(hidden, lengths.tolist(), strict=True)
    return torch.stack([row[length - 1] for row, length in rows])


@right("last-real")
def last_real(hidden, lengths):
    """with gather"""
    index = (lengths - 1).view(-1, *[1] * (hidden.dim() - 1))
    index = index.expand(-1, 1, *hidden.shape[2:])
    return hidden.gather(1, index).squeeze(1)
