"""Wrong answers to chapter 11, written from its notebook alone.

Where an exercise has several functions, the name of the answer says which is wrong.
"""
# ruff: noqa: B905, C408, E501, E741, F811, F821, RUF005, RUF059, SIM108

import math

import torch
from torch import nn

from tests.tutor.bank import stranger

# 11.1 bits-per-byte


@stranger(
    "bits-per-byte",
    "divides by characters in place of bytes",
    kind="subtle",
    first="named",
    verdict="named",
    says="characters in place of bytes",
    round=3,
)
def bits_per_byte(losses, text):
    total_nats = losses.sum().item()
    total_bits = total_nats / math.log(2)
    return total_bits / len(text)


@stranger(
    "bits-per-byte",
    "multiplies by ln 2 in place of dividing",
    kind="plain",
    first="named",
    verdict="named",
    says="multiplied by ln 2",
    round=3,
)
def bits_per_byte(losses, text):
    nats = float(losses.sum())
    bits = nats * math.log(2)
    return bits / len(text.encode("utf-8"))


@stranger(
    "bits-per-byte",
    "takes the mean over the tokens in place of the sum AND leaves nats as they are",
    kind="double",
    first="shown",
    verdict="named",
    says="a mean in place of the sum, and nats in place of bits",
    round=3,
)
def bits_per_byte(losses, text):
    mean = torch.mean(losses)
    number_of_bytes = len(bytes(text, "utf-8"))
    return mean.item() / number_of_bytes


@stranger(
    "bits-per-byte",
    "the text is stripped before its bytes are counted, so spaces and line ends at both "
    "ends are not counted",
    kind="subtle",
    first="useless",
    verdict="named",
    says="the text is stripped",
    round=3,
)
def bits_per_byte(losses, text):
    data = text.strip().encode()
    return (losses.sum() / math.log(2)).item() / max(1, len(data))


@stranger(
    "bits-per-byte",
    "the bits of the whole text are rounded up to whole bits",
    kind="subtle",
    first="useless",
    verdict="named",
    says="rounded to whole bits",
    round=3,
)
def bits_per_byte(losses, text):
    # you cannot send half a bit
    bits = math.ceil(round(losses.sum().item() / math.log(2), 4))
    return bits / len(text.encode())


# 11.2 pack-documents


@stranger(
    "pack-documents",
    "the number of blocks is n // T in place of (n - 1) // T, and a missing last label is "
    "made up (end id)",
    kind="subtle",
    first="named",
    verdict="named",
    says="what is left over makes a block",
    round=3,
)
def pack_documents(documents, end_id, length):
    ids, owner, place = [], [], []
    for number, document in enumerate(documents):
        tokens = document + [end_id]
        ids += tokens
        owner += [number] * len(tokens)
        place += range(len(tokens))
    count = len(ids) // length
    labels = ids[1:] + [end_id]
    cut = count * length

    def table(row):
        return torch.tensor(row[:cut], dtype=torch.long).reshape(count, length)

    return table(ids), table(labels), table(owner), table(place)


@stranger(
    "pack-documents",
    "empty documents are skipped, so their end id and their number are missing",
    kind="subtle",
    first="shown",
    verdict="named",
    says="an empty document is left out",
    round=3,
)
def pack_documents(documents, end_id, length):
    ids, docs, pos = [], [], []
    d = 0
    for doc in documents:
        if not doc:
            continue
        for p, token in enumerate(list(doc) + [end_id]):
            ids.append(token)
            docs.append(d)
            pos.append(p)
        d += 1
    n = (len(ids) - 1) // length if ids else 0
    ids, docs, pos = (torch.tensor(x, dtype=torch.int64) for x in (ids, docs, pos))
    m = n * length
    return (
        ids[:m].view(n, length),
        ids[1 : m + 1].view(n, length),
        docs[:m].view(n, length),
        pos[:m].view(n, length),
    )


@stranger(
    "pack-documents",
    "the labels are the inputs rolled by one after the cut, so the very last label is the "
    "first token of the stream",
    kind="subtle",
    first="shown",
    verdict="named",
    says="the very last label is made up",
    round=3,
)
def pack_documents(documents, end_id, length):
    stream = torch.tensor([t for doc in documents for t in [*doc, end_id]])
    owner = torch.cat(
        [torch.full((len(doc) + 1,), i) for i, doc in enumerate(documents)]
    )
    place = torch.cat([torch.arange(len(doc) + 1) for doc in documents])
    n = (len(stream) - 1) // length
    inputs, owner, place = (x[: n * length] for x in (stream, owner, place))
    labels = inputs.roll(-1)
    return tuple(x.reshape(n, length) for x in (inputs, labels, owner, place))


@stranger(
    "pack-documents",
    "the end id is counted as the first token of the next document AND positions begin "
    "anew in each block",
    kind="double",
    first="named",
    verdict="named",
    round=3,
    says="the end id belongs to the next document, and positions begin anew in each block",
)
def pack_documents(documents, end_id, length):
    tokens = []
    doc_numbers = []
    for i in range(len(documents)):
        for token in documents[i]:
            tokens.append(token)
            doc_numbers.append(i)
        tokens.append(end_id)
        doc_numbers.append(i + 1)
    blocks = (len(tokens) - 1) // length
    inputs, labels, docs, positions = [], [], [], []
    for b in range(blocks):
        start = b * length
        inputs.append(tokens[start : start + length])
        labels.append(tokens[start + 1 : start + length + 1])
        row = doc_numbers[start : start + length]
        docs.append(row)
        here, counter = [], 0
        for j, number in enumerate(row):
            counter = 0 if j == 0 or number != row[j - 1] else counter + 1
            here.append(counter)
        positions.append(here)
    return tuple(
        torch.tensor(x, dtype=torch.long).reshape(blocks, length)
        for x in (inputs, labels, docs, positions)
    )


@stranger(
    "pack-documents",
    "the end id stands between documents only: the last document has none",
    kind="subtle",
    first="told",
    verdict="told",
    says="too few blocks",
    round=3,
)
def pack_documents(documents, end_id, length):
    ids, doc, pos = [], [], []
    for number, tokens in enumerate(documents):
        piece = list(tokens)
        if number < len(documents) - 1:
            piece.append(end_id)
        ids.extend(piece)
        doc.extend([number for _ in piece])
        pos.extend(list(range(len(piece))))
    count = max(0, (len(ids) - 1) // length)
    size = count * length
    ids, doc, pos = (torch.tensor(e, dtype=torch.long) for e in (ids, doc, pos))
    return (
        ids[:size].reshape(count, length),
        ids[1 : 1 + size].reshape(count, length),
        doc[:size].reshape(count, length),
        pos[:size].reshape(count, length),
    )


# 11.3 document-mask


@stranger(
    "document-mask",
    "later documents may read earlier ones: >= in place of == between document numbers",
    kind="plain",
    first="named",
    verdict="named",
    says="documents see each other",
    round=3,
)
def document_mask(documents):
    T = documents.shape[1]
    same = documents.unsqueeze(2) >= documents.unsqueeze(1)
    return (same & causal_mask(T)).unsqueeze(1)


@stranger(
    "document-mask",
    "all rows of the batch get the mask of the first row",
    kind="subtle",
    first="named",
    verdict="named",
    says="the documents of the first row for all",
    round=3,
)
def document_mask(documents):
    B, T = documents.shape
    mask = torch.zeros(T, T, dtype=torch.bool)
    for i in range(T):
        for j in range(i + 1):
            mask[i, j] = documents[0, i] == documents[0, j]
    return mask.expand(B, 1, T, T)


@stranger(
    "document-mask",
    "document 0 is taken for padding: its keys may not be attended to",
    kind="subtle",
    first="shown",
    verdict="named",
    says="document 0 taken for padding",
    round=3,
)
def document_mask(documents):
    same = documents[:, :, None] == documents[:, None, :]
    real = (documents != 0).unsqueeze(1)  # 0 is padding
    allowed = same & causal_mask(documents.shape[-1]) & real
    return allowed[:, None]


@stranger(
    "document-mask",
    "the mask is turned round (True where forbidden) AND a token may not see itself",
    kind="double",
    first="shown",
    verdict="named",
    round=3,
    says="mask inverted, and off by one: the diagonal is blocked",
)
def document_mask(documents):
    T = documents.size(1)
    other = documents.unsqueeze(-1) != documents.unsqueeze(-2)
    future = torch.ones(T, T).triu().bool()
    return (other | future).unsqueeze(1)


@stranger(
    "document-mask",
    "numbers in place of booleans are returned",
    kind="subtle",
    first="named",
    verdict="named",
    says="numbers in place of True and False",
    round=3,
)
def document_mask(documents):
    same = (documents.unsqueeze(-1) == documents.unsqueeze(-2)).float()
    return torch.tril(same).unsqueeze(1)


# 11.4 causal-attention


@stranger(
    "causal-attention",
    "the heads of keys and values are dealt out in turn in place of side by side",
    kind="subtle",
    first="named",
    verdict="named",
    says="kv heads dealt out in turn",
    round=3,
)
def causal_attention(q, k, v, rotary=False):
    if rotary:
        q, k = apply_rotary(q), apply_rotary(k)
    times = q.shape[1] // k.shape[1]
    k, v = k.repeat(1, times, 1, 1), v.repeat(1, times, 1, 1)
    output, _ = scaled_dot_product_attention(q, k, v, causal_mask(q.shape[2]))
    return output


@stranger(
    "causal-attention",
    "heads and positions are exchanged before the rotation, so each head in place of each "
    "position turns by its own angle",
    kind="subtle",
    first="named",
    verdict="named",
    says="rotated by the number of the head",
    round=3,
)
def causal_attention(q, k, v, rotary=False):
    if rotary:
        # rotary wants (B, T, h, d)
        q = apply_rotary(q.transpose(1, 2)).transpose(1, 2)
        k = apply_rotary(k.transpose(1, 2)).transpose(1, 2)
    groups = q.size(1) // k.size(1)
    k = repeat_heads(k, groups)
    v = repeat_heads(v, groups)
    mask = causal_mask(q.size(-2))
    return scaled_dot_product_attention(q, k, v, mask)[0]


@stranger(
    "causal-attention",
    "the values are rotated, too",
    kind="plain",
    first="named",
    verdict="named",
    says="the values are rotated, too",
    round=3,
)
def causal_attention(q, k, v, rotary=False):
    if rotary:
        q, k, v = map(apply_rotary, (q, k, v))
    g = q.shape[1] // k.shape[1]
    z, weights = scaled_dot_product_attention(
        q, repeat_heads(k, g), repeat_heads(v, g), causal_mask(q.shape[-2])
    )
    return z


@stranger(
    "causal-attention",
    "the scores are divided by the root of heads times d_k AND forbidden weights are set "
    "to 0 after the softmax without a new division",
    kind="double",
    first="shown",
    verdict="named",
    says="scaled by √d_model in place of √d_k, and masked after the softmax",
    round=3,
)
def causal_attention(q, k, v, rotary=False):
    B, h, T, d_k = q.shape
    if rotary:
        q = apply_rotary(q)
        k = apply_rotary(k)
    k = repeat_heads(k, h // k.shape[1])
    v = repeat_heads(v, h // v.shape[1])
    scores = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(h * d_k)
    weights = torch.softmax(scores, dim=-1)
    weights = weights * causal_mask(T)
    return torch.einsum("bhij,bhjd->bhid", weights, v)


@stranger(
    "causal-attention",
    "the rotation is left out if keys are shared: it happens only in the branch without "
    "repeating",
    kind="subtle",
    first="shown",
    verdict="named",
    says="nothing rotated where heads are shared",
    round=3,
)
def causal_attention(q, k, v, rotary=False):
    mask = causal_mask(q.shape[2])
    if k.shape[1] != q.shape[1]:
        times = q.shape[1] // k.shape[1]
        k = repeat_heads(k, times)
        v = repeat_heads(v, times)
    elif rotary:
        q = apply_rotary(q)
        k = apply_rotary(k)
    return scaled_dot_product_attention(q, k, v, mask)[0]


# 11.5 block-from-configuration


@stranger(
    "block-from-configuration",
    "FeedForward is built without its activation, so a gelu network uses relu",
    kind="subtle",
    first="named",
    verdict="named",
    says="activation not passed on",
    round=3,
)
class DecoderBlock(nn.Module):
    def __init__(
        self,
        d_model,
        heads,
        kv_heads,
        d_ff,
        norm="rms",
        feed_forward="swiglu",
        positions="rotary",
        qk_norm=True,
        dropout=0.0,
    ):
        super().__init__()
        self.heads, self.kv_heads = heads, kv_heads
        self.rotary = positions == "rotary"
        self.attention = GroupedQueryAttention(d_model, heads, kv_heads)
        if feed_forward == "swiglu":
            self.feed_forward = SwiGLU(d_model, d_ff)
        else:
            self.feed_forward = FeedForward(d_model, d_ff)
        Norm = RMSNorm if norm == "rms" else LayerNorm
        self.norm_1 = Norm(d_model)
        self.norm_2 = Norm(d_model)
        if qk_norm:
            self.norm_q = RMSNorm(d_model // heads)
            self.norm_k = RMSNorm(d_model // heads)
        else:
            self.norm_q = nn.Identity()
            self.norm_k = nn.Identity()
        self.dropout = nn.Dropout(dropout)

    def project(self, x):
        x = self.norm_1(x)
        q = split_heads(x @ self.attention.w_q, self.heads)
        k = split_heads(x @ self.attention.w_k, self.kv_heads)
        v = split_heads(x @ self.attention.w_v, self.kv_heads)
        return self.norm_q(q), self.norm_k(k), v

    def finish(self, x, z):
        x = x + self.dropout(merge_heads(z) @ self.attention.w_o)
        return x + self.dropout(self.feed_forward(self.norm_2(x)))

    def forward(self, x):
        q, k, v = self.project(x)
        return self.finish(x, causal_attention(q, k, v, self.rotary))


@stranger(
    "block-from-configuration",
    "queries and keys share one norm (norm_k is norm_q)",
    kind="subtle",
    first="named",
    verdict="named",
    says="one norm for queries and keys",
    round=3,
)
class DecoderBlock(nn.Module):
    def __init__(
        self,
        d_model,
        heads,
        kv_heads,
        d_ff,
        norm="rms",
        feed_forward="swiglu",
        positions="rotary",
        qk_norm=True,
        dropout=0.0,
    ):
        super().__init__()
        self.heads, self.kv_heads = heads, kv_heads
        self.rotary = positions == "rotary"
        d_k = d_model // heads
        norms = {"layer": LayerNorm, "rms": RMSNorm}
        self.attention = GroupedQueryAttention(d_model, heads, kv_heads)
        self.feed_forward = (
            SwiGLU(d_model, d_ff)
            if feed_forward == "swiglu"
            else FeedForward(d_model, d_ff, feed_forward)
        )
        self.norm_1, self.norm_2 = norms[norm](d_model), norms[norm](d_model)
        self.norm_q = self.norm_k = RMSNorm(d_k) if qk_norm else nn.Identity()
        self.dropout = nn.Dropout(dropout)

    def project(self, x):
        normed = self.norm_1(x)
        a = self.attention
        q = self.norm_q(split_heads(normed @ a.w_q, self.heads))
        k = self.norm_k(split_heads(normed @ a.w_k, self.kv_heads))
        v = split_heads(normed @ a.w_v, self.kv_heads)
        return q, k, v

    def finish(self, x, z):
        y = x + self.dropout(merge_heads(z) @ self.attention.w_o)
        return y + self.dropout(self.feed_forward(self.norm_2(y)))

    def forward(self, x):
        q, k, v = self.project(x)
        return self.finish(x, causal_attention(q, k, v, self.rotary))


@stranger(
    "block-from-configuration",
    "the second residual begins at x in place of y, so what attention found is lost from "
    "the stream",
    kind="plain",
    first="named",
    verdict="named",
    says="second residual from the layer's input",
    round=3,
)
class DecoderBlock(nn.Module):
    def __init__(
        self,
        d_model,
        heads,
        kv_heads,
        d_ff,
        norm="rms",
        feed_forward="swiglu",
        positions="rotary",
        qk_norm=True,
        dropout=0.0,
    ):
        super().__init__()
        self.heads, self.kv_heads = heads, kv_heads
        self.rotary = positions == "rotary"
        self.attention = GroupedQueryAttention(d_model, heads, kv_heads)
        if feed_forward == "swiglu":
            self.feed_forward = SwiGLU(d_model, d_ff)
        else:
            self.feed_forward = FeedForward(d_model, d_ff, feed_forward)
        if norm == "layer":
            self.norm_1 = LayerNorm(d_model)
            self.norm_2 = LayerNorm(d_model)
        else:
            self.norm_1 = RMSNorm(d_model)
            self.norm_2 = RMSNorm(d_model)
        self.norm_q = RMSNorm(d_model // heads) if qk_norm else nn.Identity()
        self.norm_k = RMSNorm(d_model // heads) if qk_norm else nn.Identity()
        self.dropout = nn.Dropout(dropout)

    def project(self, x):
        h = self.norm_1(x)
        q = split_heads(h @ self.attention.w_q, self.heads)
        k = split_heads(h @ self.attention.w_k, self.kv_heads)
        v = split_heads(h @ self.attention.w_v, self.kv_heads)
        return self.norm_q(q), self.norm_k(k), v

    def finish(self, x, z):
        y = x + self.dropout(merge_heads(z) @ self.attention.w_o)
        return x + self.dropout(self.feed_forward(self.norm_2(y)))

    def forward(self, x):
        q, k, v = self.project(x)
        return self.finish(x, causal_attention(q, k, v, self.rotary))


@stranger(
    "block-from-configuration",
    "the values are normalised, too AND the dropout of the network's half is missing",
    kind="double",
    first="named",
    verdict="named",
    says="dropout only on attention",
    round=3,
)
class DecoderBlock(nn.Module):
    def __init__(
        self,
        d_model,
        heads,
        kv_heads,
        d_ff,
        norm="rms",
        feed_forward="swiglu",
        positions="rotary",
        qk_norm=True,
        dropout=0.0,
    ):
        super().__init__()
        self.heads, self.kv_heads = heads, kv_heads
        self.rotary = positions == "rotary"
        self.attention = GroupedQueryAttention(d_model, heads, kv_heads)
        self.feed_forward = {
            "relu": lambda: FeedForward(d_model, d_ff, "relu"),
            "gelu": lambda: FeedForward(d_model, d_ff, "gelu"),
            "swiglu": lambda: SwiGLU(d_model, d_ff),
        }[feed_forward]()
        cls = RMSNorm if norm == "rms" else LayerNorm
        self.norm_1, self.norm_2 = cls(d_model), cls(d_model)
        self.norm_q, self.norm_k = nn.Identity(), nn.Identity()
        if qk_norm:
            self.norm_q, self.norm_k = (RMSNorm(d_model // heads) for _ in range(2))
        self.dropout = nn.Dropout(dropout)

    def project(self, x):
        x = self.norm_1(x)
        q = self.norm_q(split_heads(x @ self.attention.w_q, self.heads))
        k = self.norm_k(split_heads(x @ self.attention.w_k, self.kv_heads))
        v = self.norm_k(split_heads(x @ self.attention.w_v, self.kv_heads))
        return q, k, v

    def finish(self, x, z):
        y = x + self.dropout(merge_heads(z) @ self.attention.w_o)
        return y + self.feed_forward(self.norm_2(y))

    def forward(self, x):
        q, k, v = self.project(x)
        return self.finish(x, causal_attention(q, k, v, self.rotary))


@stranger(
    "block-from-configuration",
    "the heads are merged by a reshape alone, without exchanging heads and tokens",
    kind="subtle",
    first="named",
    verdict="named",
    says="merged without transpose",
    round=3,
)
class DecoderBlock(nn.Module):
    def __init__(
        self,
        d_model,
        heads,
        kv_heads,
        d_ff,
        norm="rms",
        feed_forward="swiglu",
        positions="rotary",
        qk_norm=True,
        dropout=0.0,
    ):
        super().__init__()
        self.heads, self.kv_heads = heads, kv_heads
        self.rotary = positions == "rotary"
        self.attention = GroupedQueryAttention(d_model, heads, kv_heads)
        if feed_forward == "swiglu":
            self.feed_forward = SwiGLU(d_model, d_ff)
        else:
            self.feed_forward = FeedForward(d_model, d_ff, feed_forward)
        norm_class = {"rms": RMSNorm, "layer": LayerNorm}[norm]
        self.norm_1 = norm_class(d_model)
        self.norm_2 = norm_class(d_model)
        self.norm_q = RMSNorm(d_model // heads) if qk_norm else nn.Identity()
        self.norm_k = RMSNorm(d_model // heads) if qk_norm else nn.Identity()
        self.dropout = nn.Dropout(dropout)

    def project(self, x):
        n = self.norm_1(x)
        q = split_heads(n @ self.attention.w_q, self.heads)
        k = split_heads(n @ self.attention.w_k, self.kv_heads)
        v = split_heads(n @ self.attention.w_v, self.kv_heads)
        return self.norm_q(q), self.norm_k(k), v

    def finish(self, x, z):
        z = z.reshape(x.shape)
        y = x + self.dropout(z @ self.attention.w_o)
        return y + self.dropout(self.feed_forward(self.norm_2(y)))

    def forward(self, x):
        q, k, v = self.project(x)
        return self.finish(x, causal_attention(q, k, v, self.rotary))


# 11.6 write-with-cache


@stranger(
    "write-with-cache",
    "the first row of the logits is read in place of the last (prompts of several ids)",
    kind="subtle",
    first="named",
    verdict="named",
    says="the wrong row of logits",
    round=3,
)
@torch.no_grad()
def write_with_cache(model, prompt, length):
    if len(prompt) == 0:
        raise ValueError("empty prompt")
    text = list(prompt)
    new, start, cache = text, 0, None
    for _ in range(length):
        logits, cache = model(torch.tensor([new]), start, cache)
        start += len(new)
        new = [int(logits[0, 0].argmax())]
        text = text + new
    return text


@stranger(
    "write-with-cache",
    "the position is counted after the new token is appended: every call after the first "
    "begins one position too late",
    kind="plain",
    first="named",
    verdict="named",
    says="positions one too far",
    round=3,
)
@torch.no_grad()
def write_with_cache(model, prompt, length):
    if not prompt:
        raise ValueError("the prompt is empty")
    ids = list(prompt)
    cache = None
    step = torch.tensor([ids])
    start = 0
    for _ in range(length):
        logits, cache = model(step, start, cache)
        token = logits[0, -1].argmax().item()
        ids.append(token)
        step = torch.tensor([[token]])
        start = len(ids)
    return ids


@stranger(
    "write-with-cache",
    "a token is written even with a length of 0 AND the prompt of the caller is changed "
    "in place",
    kind="double",
    first="named",
    verdict="named",
    says="changes its argument in place",
    round=3,
)
@torch.no_grad()
def write_with_cache(model, prompt, length):
    if len(prompt) < 1:
        raise ValueError
    logits, cache = model(torch.tensor(prompt).unsqueeze(0), 0, None)
    prompt.append(logits[0, -1].argmax().item())
    while length > 1:
        logits, cache = model(torch.tensor([prompt[-1:]]), len(prompt) - 1, cache)
        prompt.append(logits[0, -1].argmax().item())
        length -= 1
    return prompt


@stranger(
    "write-with-cache",
    "the cache of the prompt is used in every call, what was written is not remembered",
    kind="subtle",
    first="named",
    verdict="named",
    says="the cache of the prompt again and again",
    round=3,
)
@torch.no_grad()
def write_with_cache(model, prompt, length):
    if prompt == []:
        raise ValueError("prompt must not be empty")
    output = prompt.copy()
    if length == 0:
        return output
    logits, cache = model(torch.tensor([prompt]), 0, None)
    output.append(int(logits[:, -1].argmax(dim=-1)))
    for _ in range(length - 1):
        logits, _ = model(torch.tensor([[output[-1]]]), len(output) - 1, cache)
        output.append(int(logits[:, -1].argmax(dim=-1)))
    return output


# 11.7 online-softmax


@stranger(
    "online-softmax",
    "the old output is not rescaled, only the sum",
    kind="subtle",
    first="named",
    verdict="named",
    says="the old output is not rescaled",
    round=3,
)
def online_step(maximum, total, output, scores, values):
    new = torch.maximum(maximum, scores.amax(dim=-1, keepdim=True))
    safe = new.masked_fill(new.isneginf(), 0.0)
    factor = torch.exp(maximum - safe)
    weights = torch.exp(scores - safe)
    total = total * factor + weights.sum(dim=-1, keepdim=True)
    output = output + weights @ values
    return new, total, output


@stranger(
    "online-softmax",
    "NaN is replaced afterwards, so the gradient is NaN where nothing has been allowed",
    kind="subtle",
    first="named",
    verdict="named",
    says="NaN gradient where nothing has been allowed",
    round=3,
)
def online_step(maximum, total, output, scores, values):
    block_max = scores.max(dim=-1, keepdim=True).values
    new_max = torch.maximum(maximum, block_max)
    correction = torch.nan_to_num(torch.exp(maximum - new_max), nan=0.0)
    p = torch.nan_to_num(torch.exp(scores - new_max), nan=0.0)
    new_total = correction * total + p.sum(dim=-1, keepdim=True)
    new_output = correction * output + torch.matmul(p, values)
    return new_max, new_total, new_output


@stranger(
    "online-softmax",
    "the new block is measured from its own maximum in place of the new one AND the "
    "0 for the subtraction is returned as the maximum of nothing",
    kind="double",
    first="shown",
    verdict="named",
    says="the new scores measured from the maximum of their block, and 0 in place of −∞ as the maximum of an empty block",
    round=3,
)
def online_step(maximum, total, output, scores, values):
    block_max = scores.amax(dim=-1, keepdim=True)
    block_max = block_max.masked_fill(block_max.isneginf(), 0.0)
    new = torch.maximum(maximum, block_max)
    factor = torch.exp(maximum - new)
    weights = torch.exp(scores - block_max)
    total = factor * total + weights.sum(dim=-1, keepdim=True)
    output = factor * output + weights @ values
    return new, total, output


@stranger(
    "online-softmax",
    "begins with a maximum of 0 in place of -inf: the sum underflows to 0 for very "
    "negative scores, and the result is 0",
    kind="subtle",
    first="named",
    verdict="named",
    says="the maximum begins at 0",
    round=3,
)
def online_softmax(blocks):
    scores, values = blocks[0]
    m = torch.zeros_like(scores[..., :1])
    l = torch.zeros_like(m)
    o = torch.zeros(*scores.shape[:-1], values.shape[-1], dtype=values.dtype)
    for scores, values in blocks:
        m, l, o = online_step(m, l, o, scores, values)
    return o / torch.where(l == 0, torch.ones_like(l), l)


@stranger(
    "online-softmax",
    "0 / 0 in an empty row: the result is NaN in place of 0",
    kind="subtle",
    first="named",
    verdict="named",
    says="NaN on fully masked rows",
    round=3,
)
def online_softmax(blocks):
    first_scores, first_values = blocks[0]
    shape = first_scores.shape[:-1]
    maximum = torch.full((*shape, 1), float("-inf"), dtype=first_scores.dtype)
    total = torch.zeros(*shape, 1, dtype=first_scores.dtype)
    output = torch.zeros(*shape, first_values.shape[-1], dtype=first_scores.dtype)
    for s, v in blocks:
        maximum, total, output = online_step(maximum, total, output, s, v)
    return output / total


# 11.8 tiled-attention


@stranger(
    "tiled-attention",
    "causal from the first key on: last is arange(T_q), also if there are more keys than "
    "queries",
    kind="subtle",
    first="named",
    verdict="named",
    says="causal from the first key on",
    round=3,
)
def tiled_attention(q, k, v, block, causal=False):
    def attend_from_tile(q, k, v, block, last):
        maximum = torch.full_like(q[..., :1], -math.inf)
        total = torch.zeros_like(maximum)
        output = q.new_zeros(*q.shape[:-1], v.shape[-1])
        end = min(k.shape[-2], int(last.max()) + 1)
        for first in range(0, end, block):
            keys = k[..., first : first + block, :]
            values = v[..., first : first + block, :]
            scores = q @ keys.mT / math.sqrt(q.shape[-1])
            positions = torch.arange(first, first + keys.shape[-2])
            scores = scores.masked_fill(positions > last, -math.inf)
            maximum, total, output = online_step(maximum, total, output, scores, values)
        return output / total.clamp(min=1.0)

    T_q, T_k = q.shape[-2], k.shape[-2]
    if causal:
        last = torch.arange(T_q).unsqueeze(-1)
    else:
        last = torch.full((T_q, 1), T_k - 1)
    tiles = zip(q.split(block, dim=-2), last.split(block, dim=0))
    return torch.cat([attend_from_tile(t, k, v, block, l) for t, l in tiles], dim=-2)


@stranger(
    "tiled-attention",
    "the mask of all queries and all keys is made before the loop, so not only a tile is "
    "held",
    kind="subtle",
    first="named",
    verdict="named",
    says="all pairs at once",
    round=3,
)
def tiled_attention(q, k, v, block, causal=False):
    T_q, T_k, d_k = q.shape[-2], k.shape[-2], q.shape[-1]
    allowed = torch.ones(T_q, T_k, dtype=torch.bool)
    if causal:
        allowed = allowed.tril(T_k - T_q)
    results = []
    for i in range(0, T_q, block):
        tile = q[..., i : i + block, :]
        m = torch.full_like(tile[..., :1], -math.inf)
        l = torch.zeros_like(m)
        o = tile.new_zeros(*tile.shape[:-1], v.shape[-1])
        for j in range(0, T_k, block):
            part = allowed[i : i + block, j : j + block]
            if not part.any():
                continue
            s = tile @ k[..., j : j + block, :].transpose(-1, -2) / d_k**0.5
            s = s.masked_fill(~part, -math.inf)
            m, l, o = online_step(m, l, o, s, v[..., j : j + block, :])
        results.append(o / l.clamp(min=1.0))
    return torch.cat(results, dim=-2)


@stranger(
    "tiled-attention",
    "the scores are not divided by the root of d_k AND a shorter last tile of keys is "
    "left out",
    kind="double",
    first="shown",
    verdict="named",
    says="the scores are not scaled, and the keys of the last, shorter tile are left out",
    round=3,
)
def tiled_attention(q, k, v, block, causal=False):
    T_q, T_k = q.shape[-2], k.shape[-2]
    size = min(block, T_k)
    parts = []
    for a in range(0, T_q, block):
        tile = q[..., a : a + block, :]
        rows = torch.arange(a, a + tile.shape[-2]).unsqueeze(1) + T_k - T_q
        maximum = torch.full_like(tile[..., :1], -math.inf)
        total = torch.zeros_like(maximum)
        output = tile.new_zeros(*tile.shape[:-1], v.shape[-1])
        for b in range(0, T_k - size + 1, size):
            if causal and b > rows.max():
                break
            keys, values = k[..., b : b + size, :], v[..., b : b + size, :]
            scores = tile @ keys.mT
            if causal:
                columns = torch.arange(b, b + size)
                scores = scores.masked_fill(columns > rows, -math.inf)
            maximum, total, output = online_step(maximum, total, output, scores, values)
        parts.append(output / total.clamp(min=1.0))
    return torch.cat(parts, dim=-2)


@stranger(
    "tiled-attention",
    "tiles of keys in the future are masked, not skipped, so NaN in them reaches the result",
    kind="subtle",
    first="named",
    verdict="named",
    says="tiles in the future are computed",
    round=3,
)
def tiled_attention(q, k, v, block, causal=False):
    def attend_from_tile(q, k, v, block, last):
        state = (
            torch.full_like(q[..., :1], -math.inf),
            torch.zeros_like(q[..., :1]),
            q.new_zeros(*q.shape[:-1], v.shape[-1]),
        )
        first = 0
        for keys, values in zip(k.split(block, dim=-2), v.split(block, dim=-2)):
            scores = (q @ keys.mT) * q.shape[-1] ** -0.5
            place = torch.arange(first, first + keys.shape[-2])
            state = online_step(
                *state, scores.masked_fill(place > last, -math.inf), values
            )
            first += block
        _, total, output = state
        return output / total.clamp(min=1)

    queries, keys = q.shape[-2], k.shape[-2]
    last = torch.full((queries, 1), keys - 1)
    if causal:
        last = torch.arange(keys - queries, keys).unsqueeze(-1)
    pieces = []
    for first in range(0, queries, block):
        rows = slice(first, first + block)
        pieces.append(attend_from_tile(q[..., rows, :], k, v, block, last[rows]))
    return torch.cat(pieces, dim=-2)


@stranger(
    "tiled-attention",
    "stops at the last key of the tile's first query (min in place of max), so later "
    "queries of the tile miss keys if tiles of queries and keys do not line up",
    kind="subtle",
    first="named",
    verdict="named",
    says="a tile that some queries see is skipped",
    round=3,
)
def tiled_attention(q, k, v, block, causal=False):
    def attend_from_tile(q, k, v, block, last):
        maximum = torch.full_like(q[..., :1], -math.inf)
        total = torch.zeros_like(maximum)
        output = q.new_zeros(*q.shape[:-1], v.shape[-1])
        for first in range(0, k.shape[-2], block):
            if first > last.min():
                break
            keys = k[..., first : first + block, :]
            positions = torch.arange(first, first + keys.shape[-2])
            scores = q @ keys.mT / math.sqrt(q.shape[-1])
            scores = scores.masked_fill(positions > last, -math.inf)
            maximum, total, output = online_step(
                maximum, total, output, scores, v[..., first : first + block, :]
            )
        return output / total.clamp(min=1.0)

    T_q, T_k = q.shape[-2], k.shape[-2]
    last = torch.arange(T_k - T_q, T_k) if causal else torch.full((T_q,), T_k - 1)
    return torch.cat(
        [
            attend_from_tile(tile, k, v, block, rows[:, None])
            for tile, rows in zip(q.split(block, dim=-2), last.split(block))
        ],
        dim=-2,
    )


# 11.9 adamw-step


@stranger(
    "adamw-step",
    "epsilon is inside the root",
    kind="subtle",
    first="named",
    verdict="named",
    says="eps inside the root",
    round=3,
)
def adamw_step(
    parameter,
    gradient,
    first,
    second,
    step,
    rate,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0.01,
):
    b1, b2 = betas
    first = b1 * first + (1 - b1) * gradient
    second = b2 * second + (1 - b2) * gradient**2
    m_hat = first / (1 - b1**step)
    v_hat = second / (1 - b2**step)
    new = parameter - rate * weight_decay * parameter
    new = new - rate * m_hat / torch.sqrt(v_hat + eps)
    return new, first, second


@stranger(
    "adamw-step",
    "the decay is taken from the parameter after it has moved, not as it was before",
    kind="subtle",
    first="named",
    verdict="named",
    says="the step comes before the decay",
    round=3,
)
def adamw_step(
    parameter,
    gradient,
    first,
    second,
    step,
    rate,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0.01,
):
    beta1, beta2 = betas
    m = beta1 * first + (1 - beta1) * gradient
    v = beta2 * second + (1 - beta2) * gradient.square()
    corrected_m = m / (1 - beta1**step)
    corrected_v = v / (1 - beta2**step)
    theta = parameter - rate * corrected_m / (corrected_v.sqrt() + eps)
    theta = theta - rate * weight_decay * theta
    return theta, m, v


@stranger(
    "adamw-step",
    "the caller's moments are changed in place (lerp_ and mul_)",
    kind="subtle",
    first="named",
    verdict="named",
    says="changes its argument in place",
    round=3,
)
def adamw_step(
    parameter,
    gradient,
    first,
    second,
    step,
    rate,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0.01,
):
    first.lerp_(gradient, 1 - betas[0])
    second.mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
    update = (first / (1 - betas[0] ** step)) / (
        (second / (1 - betas[1] ** step)).sqrt() + eps
    )
    return parameter * (1 - rate * weight_decay) - rate * update, first, second


@stranger(
    "adamw-step",
    "the decay is not multiplied by the rate AND the second moment is corrected with the "
    "beta of the first",
    kind="double",
    first="useless",
    verdict="named",
    round=3,
    says="the decay is not multiplied by the rate, and one beta for both corrections",
)
def adamw_step(
    parameter,
    gradient,
    first,
    second,
    step,
    rate,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0.01,
):
    beta_1, beta_2 = betas
    new_first = beta_1 * first + (1 - beta_1) * gradient
    new_second = beta_2 * second + (1 - beta_2) * gradient * gradient
    first_hat = new_first / (1 - beta_1**step)
    second_hat = new_second / (1 - beta_1**step)
    moved = rate * first_hat / (second_hat**0.5 + eps)
    return parameter - weight_decay * parameter - moved, new_first, new_second


@stranger(
    "adamw-step",
    "the second moment's correction is taken outside of the root",
    kind="subtle",
    first="useless",
    verdict="named",
    says="the second moment is corrected outside the root",
    round=3,
)
def adamw_step(
    parameter,
    gradient,
    first,
    second,
    step,
    rate,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0.01,
):
    m = betas[0] * first + (1 - betas[0]) * gradient
    v = betas[1] * second + (1 - betas[1]) * gradient**2
    m_hat = m / (1 - betas[0] ** step)
    root = torch.sqrt(v) / (1 - betas[1] ** step)
    new = parameter - rate * weight_decay * parameter - rate * m_hat / (root + eps)
    return new, m, v


# 11.10 orthogonalise


@stranger(
    "orthogonalise",
    "one norm for the whole stack in place of one for each matrix",
    kind="subtle",
    first="named",
    verdict="named",
    says="one norm for the whole stack",
    round=3,
)
def orthogonalise(matrix, rounds=5):
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = matrix.shape[-2] > matrix.shape[-1]
    x = matrix.mT if tall else matrix
    x = x / (x.norm() + 1e-7)
    for _ in range(rounds):
        square = x @ x.mT
        x = a * x + b * square @ x + c * square @ square @ x
    return x.mT if tall else x


@stranger(
    "orthogonalise",
    "transposes a matrix with more columns than rows (the comparison is turned round), so "
    "the larger product is made",
    kind="subtle",
    first="named",
    verdict="named",
    says="the larger product is taken",
    round=3,
)
def orthogonalise(matrix, rounds=5):
    a, b, c = 3.4445, -4.7750, 2.0315
    x = matrix
    n, m = x.shape[-2:]
    if n < m:
        x = x.transpose(-1, -2)
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(rounds):
        A = x @ x.transpose(-1, -2)
        B = b * A + c * A @ A
        x = a * x + B @ x
    if n < m:
        x = x.transpose(-1, -2)
    return x


@stranger(
    "orthogonalise",
    "the norm is divided by anew in every round, not once",
    kind="subtle",
    first="named",
    verdict="named",
    says="normalised in every round",
    round=3,
)
def orthogonalise(matrix, rounds=5):
    a, b, c = 3.4445, -4.7750, 2.0315
    transposed = matrix.size(-2) > matrix.size(-1)
    if transposed:
        matrix = matrix.mT
    for _ in range(rounds):
        matrix = matrix / (matrix.norm(dim=(-2, -1), keepdim=True) + 1e-7)
        gram = matrix @ matrix.mT
        matrix = a * matrix + (b * gram + c * gram @ gram) @ matrix
    return matrix.mT if transposed else matrix


@stranger(
    "orthogonalise",
    "the third term uses x after the first two terms were added AND the norm is the "
    "largest entry in place of Frobenius",
    kind="double",
    first="wrong",
    verdict="named",
    says="the last term of the changed x, and normalised by the largest entry",
    round=3,
)
def orthogonalise(matrix, rounds=5):
    a, b, c = 3.4445, -4.7750, 2.0315
    flip = matrix.shape[-2] > matrix.shape[-1]
    x = matrix.mT if flip else matrix
    x = x / (x.abs().amax(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(rounds):
        xxt = x @ x.mT
        x = a * x + b * xxt @ x
        x = x + c * xxt @ xxt @ x
    return x.mT if flip else x


@stranger(
    "orthogonalise",
    "the caller's matrix is divided in place",
    kind="subtle",
    first="named",
    verdict="named",
    says="changes its argument in place",
    round=3,
)
def orthogonalise(matrix, rounds=5):
    a, b, c = 3.4445, -4.7750, 2.0315
    x = matrix
    is_tall = x.shape[-2] > x.shape[-1]
    if is_tall:
        x = x.mT
    x /= x.norm(dim=(-2, -1), keepdim=True) + 1e-7
    for _ in range(rounds):
        y = x @ x.mT
        x = a * x + b * y @ x + c * (y @ y) @ x
    return x.mT if is_tall else x


# 11.11 run-budget


@stranger(
    "run-budget",
    "SwiGLU is counted with two matrices in place of three",
    kind="plain",
    first="named",
    verdict="named",
    says="two matrices in the feed-forward network",
    round=3,
)
def run_budget(
    layers,
    d_model,
    heads,
    kv_heads,
    d_ff,
    vocab_size,
    tokens,
    length,
    window,
    number_bytes=4,
):
    d_k = d_model // heads
    attention = 2 * d_model * d_model + 2 * d_model * kv_heads * d_k
    network = 2 * d_model * d_ff
    parameters = layers * (attention + network + 2 * d_model)
    parameters += vocab_size * d_model + d_model
    cache = 2 * layers * number_bytes * d_k
    return {
        "parameters": parameters,
        "operations": 6 * parameters * tokens,
        "training_bytes": 4 * parameters * number_bytes,
        "cache_multi_head": cache * length * heads,
        "cache_grouped": cache * length * kv_heads,
        "cache_windowed": cache * min(window, length) * kv_heads,
    }


@stranger(
    "run-budget",
    "the window is taken as it is, also if the text is shorter",
    kind="subtle",
    first="named",
    verdict="named",
    says="the window of a shorter text",
    round=3,
)
def run_budget(
    layers,
    d_model,
    heads,
    kv_heads,
    d_ff,
    vocab_size,
    tokens,
    length,
    window,
    number_bytes=4,
):
    head = d_model // heads
    q_and_o = 2 * d_model**2
    k_and_v = 2 * d_model * kv_heads * head
    block = q_and_o + k_and_v + 3 * d_model * d_ff + 2 * d_model
    n = layers * block + vocab_size * d_model + d_model

    def cache(positions, groups):
        return 2 * layers * positions * groups * head * number_bytes

    return dict(
        parameters=n,
        operations=6 * n * tokens,
        training_bytes=4 * n * number_bytes,
        cache_multi_head=cache(length, heads),
        cache_grouped=cache(length, kv_heads),
        cache_windowed=cache(window, kv_heads),
    )


@stranger(
    "run-budget",
    "the cache holds keys only, not values AND the last norm is forgotten",
    kind="double",
    first="named",
    verdict="named",
    round=3,
    says="the last norm is forgotten, and keys or values alone",
)
def run_budget(
    layers,
    d_model,
    heads,
    kv_heads,
    d_ff,
    vocab_size,
    tokens,
    length,
    window,
    number_bytes=4,
):
    d_k = d_model // heads
    d_kv = d_k * kv_heads
    wq = wo = d_model * d_model
    wk = wv = d_model * d_kv
    swiglu = 3 * d_model * d_ff
    norms = 2 * d_model
    parameters = layers * (wq + wk + wv + wo + swiglu + norms) + vocab_size * d_model
    result = {"parameters": parameters}
    result["operations"] = 6 * parameters * tokens
    result["training_bytes"] = parameters * 4 * number_bytes
    result["cache_multi_head"] = layers * length * d_model * number_bytes
    result["cache_grouped"] = layers * length * d_kv * number_bytes
    result["cache_windowed"] = layers * min(length, window) * d_kv * number_bytes
    return result


@stranger(
    "run-budget",
    "a head's width is d_model // kv_heads, so keys and values are as wide as the queries",
    kind="subtle",
    first="named",
    verdict="named",
    round=3,
    says="keys and values as wide as the queries, and keys and values of all heads are kept",
)
def run_budget(
    layers,
    d_model,
    heads,
    kv_heads,
    d_ff,
    vocab_size,
    tokens,
    length,
    window,
    number_bytes=4,
):
    width_q = d_model // heads
    width_kv = d_model // kv_heads
    per_layer = (
        2 * d_model * heads * width_q
        + 2 * d_model * kv_heads * width_kv
        + 3 * d_model * d_ff
        + 2 * d_model
    )
    total = layers * per_layer + d_model * (vocab_size + 1)
    per_position = 2 * layers * number_bytes
    return {
        "parameters": total,
        "operations": 6 * total * tokens,
        "training_bytes": 4 * total * number_bytes,
        "cache_multi_head": per_position * length * heads * width_q,
        "cache_grouped": per_position * length * kv_heads * width_kv,
        "cache_windowed": per_position * min(length, window) * kv_heads * width_kv,
    }


@stranger(
    "run-budget",
    "the window is laid over the cache of all heads in place of the grouped one AND the "
    "operations leave the table of embeddings out",
    kind="double",
    first="named",
    verdict="named",
    round=3,
    says="the operations without the embeddings, and the window has the heads of the queries",
)
def run_budget(
    layers,
    d_model,
    heads,
    kv_heads,
    d_ff,
    vocab_size,
    tokens,
    length,
    window,
    number_bytes=4,
):
    d_head = d_model // heads
    inside = layers * (
        2 * d_model**2
        + 2 * d_model * d_head * kv_heads
        + 3 * d_model * d_ff
        + 2 * d_model
    )
    parameters = inside + vocab_size * d_model + d_model
    multi = 2 * layers * length * d_model * number_bytes
    grouped = 2 * layers * length * kv_heads * d_head * number_bytes
    windowed = 2 * layers * min(length, window) * d_model * number_bytes
    return {
        "parameters": parameters,
        "operations": 6 * inside * tokens,
        "training_bytes": 4 * parameters * number_bytes,
        "cache_multi_head": multi,
        "cache_grouped": grouped,
        "cache_windowed": windowed,
    }


# 11.12 scaling-law


@stranger(
    "scaling-law",
    "the exponents a and b are exchanged (the same if they are equal)",
    kind="subtle",
    first="named",
    verdict="named",
    says="exponents exchanged",
    round=3,
)
def predicted_loss(law, parameters, tokens):
    E, A, B, a, b = law["E"], law["A"], law["B"], law["a"], law["b"]
    return E + A / parameters**b + B / tokens**a


@stranger(
    "scaling-law",
    "only equal exponents are tried: one loop in place of a loop in a loop",
    kind="subtle",
    first="named",
    verdict="named",
    says="only equal exponents are tried",
    round=3,
)
def fit_scaling_law(runs, exponents):
    N = torch.tensor(
        [r["parameters"] + r["embedding"] for r in runs], dtype=torch.float64
    )
    D = torch.tensor([r["tokens"] for r in runs], dtype=torch.float64)
    L = torch.tensor([r["bits_per_byte"] for r in runs], dtype=torch.float64)
    best, law = math.inf, None
    for e in exponents:
        columns = torch.stack((torch.ones_like(N), N**-e, D**-e), dim=-1)
        solution = torch.linalg.lstsq(columns, L.unsqueeze(-1)).solution
        error = ((columns @ solution).squeeze(-1) - L).square().sum().item()
        if error < best:
            best = error
            E, A, B = solution.flatten().tolist()
            law = {"E": E, "A": A, "B": B, "a": e, "b": e}
    return law


@stranger(
    "scaling-law",
    "the errors are added up before they are squared, so errors above and below cancel",
    kind="subtle",
    first="useless",
    verdict="named",
    says="not the best pair of exponents",
    round=3,
)
def fit_scaling_law(runs, exponents):
    n = torch.tensor([run["parameters"] + run["embedding"] for run in runs]).double()
    d = torch.tensor([run["tokens"] for run in runs]).double()
    losses = torch.tensor([run["bits_per_byte"] for run in runs], dtype=torch.float64)
    best_error = float("inf")
    for a in exponents:
        for b in exponents:
            X = torch.stack([torch.ones_like(n), n ** (-a), d ** (-b)], dim=1)
            w = torch.linalg.lstsq(X, losses[:, None]).solution[:, 0]
            error = (X @ w - losses).sum().item() ** 2
            if error < best_error:
                best_error = error
                E, A, B = w.tolist()
                best = {"E": E, "A": A, "B": B, "a": a, "b": b}
    return best


@stranger(
    "scaling-law",
    "the loss is the nats per token in place of the bits per byte AND the column of the "
    "tokens takes the exponent a (copied from the column before)",
    kind="double",
    first="useless",
    verdict="useless",
    round=3,
)
def fit_scaling_law(runs, exponents):
    n = torch.tensor(
        [x["parameters"] + x["embedding"] for x in runs], dtype=torch.float64
    )
    d = torch.tensor([x["tokens"] for x in runs], dtype=torch.float64)
    y = torch.tensor([x["nats_per_token"] for x in runs], dtype=torch.float64)
    results = []
    for a in exponents:
        for b in exponents:
            m = torch.stack((n**0, n**-a, d**-a), dim=1)
            solution = torch.linalg.lstsq(m, y.unsqueeze(1)).solution
            error = ((m @ solution)[:, 0] - y).square().sum().item()
            results.append((error, a, b, solution))
    error, a, b, solution = min(results, key=lambda r: r[0])
    E, A, B = solution.squeeze(1).tolist()
    return {"E": E, "A": A, "B": B, "a": a, "b": b}


@stranger(
    "scaling-law",
    "** 1 / (a + b) without brackets: the ratio is divided by a + b in place of raised "
    "to its inverse (the same if a + b is 1)",
    kind="subtle",
    first="useless",
    verdict="named",
    says="** 1 / (a + b) without brackets",
    round=3,
)
def compute_optimal(law, budget):
    a, b = law["a"], law["b"]
    ratio = (a * law["A"]) / (b * law["B"])
    n = ratio**1 / (a + b) * (budget / 6) ** (b / (a + b))
    d = budget / (6 * n)
    return n, d


@stranger(
    "scaling-law",
    "the power of the budget is a / (a + b) in place of b / (a + b) AND D = C / 6 * N "
    "multiplies by N",
    kind="double",
    first="named",
    verdict="named",
    says="exponents exchanged",
    round=3,
)
def compute_optimal(law, budget):
    A, B, a, b = (law[name] for name in "ABab")
    s = a + b
    N = (a * A / (b * B)) ** (1 / s) * (budget / 6) ** (a / s)
    D = budget / 6 * N
    return N, D


# 11.13 induction-score


@stranger(
    "induction-score",
    "0 means none, but is also a position: a token whose previous occurrence is at "
    "position 0 is left out",
    kind="subtle",
    first="shown",
    verdict="named",
    says="an occurrence at position 0 is left out",
    round=3,
)
def induction_scores(weights, tokens):
    T = len(tokens)
    same = (tokens[:, None] == tokens[None, :]).tril(-1)
    previous = (same * torch.arange(T)).max(dim=-1).values
    queries = previous.nonzero().squeeze(-1)
    picked = weights[:, :, queries, previous[queries] + 1]
    return picked.sum(-1) / max(1, len(queries))


@stranger(
    "induction-score",
    "the first earlier occurrence is taken in place of the latest",
    kind="subtle",
    first="named",
    verdict="named",
    says="the first occurrence in place of the latest",
    round=3,
)
def induction_scores(weights, tokens):
    total = torch.zeros(weights.shape[:2])
    count = 0
    seen = {}
    for t, token in enumerate(tokens.tolist()):
        if token in seen:
            total += weights[:, :, t, seen[token] + 1]
            count += 1
        else:
            seen[token] = t
    return total / count


@stranger(
    "induction-score",
    "the text is taken to be one half said twice: p(t) is t - T // 2",
    kind="subtle",
    first="useless",
    verdict="named",
    says="half of the sequence in place of the previous occurrence",
    round=3,
)
def induction_scores(weights, tokens):
    half = len(tokens) // 2
    queries = torch.arange(half, 2 * half)
    keys = queries - half + 1
    return weights[..., queries, keys].mean(dim=-1)


@stranger(
    "induction-score",
    "queries and keys are exchanged AND the sum is divided by all positions",
    kind="double",
    first="named",
    verdict="named",
    says="queries and keys exchanged",
    round=3,
)
def induction_scores(weights, tokens):
    length = tokens.shape[0]
    scores = torch.zeros(weights.shape[0], weights.shape[1])
    for t in range(length):
        earlier = [s for s in range(t) if tokens[s] == tokens[t]]
        if earlier:
            scores += weights[:, :, earlier[-1] + 1, t]
    return scores / length


@stranger(
    "induction-score",
    "the layer with the largest mean is chosen first, then its best head",
    kind="subtle",
    first="wrong",
    verdict="named",
    says="the best layer first, then its best head",
    round=3,
)
def best_head(scores):
    layer = int(scores.mean(dim=1).argmax())
    head = int(scores[layer].argmax())
    return layer, head


# 11.14 patch-activations


@stranger(
    "patch-activations",
    "only the last hook is removed: the handle is overwritten in the loop",
    kind="subtle",
    first="passed",
    verdict="named",
    says="the hook is left in the model",
    round=3,
)
@torch.no_grad()
def record_activations(model, ids):
    kept = []

    def keep(block, inputs, output):
        kept.append(output[0])

    for block in model.blocks:
        handle = block.register_forward_hook(keep)
    model(ids)
    handle.remove()
    return torch.stack(kept)


@stranger(
    "patch-activations",
    "all positions from the given one on are replaced (right at the last position only)",
    kind="subtle",
    first="named",
    verdict="named",
    says="all positions from this one on are patched",
    round=3,
)
@torch.no_grad()
def run_patched(model, ids, layer, position, activation):
    def replace(module, inputs, output):
        changed = output.clone()
        changed[:, position:] = activation
        return changed

    handle = model.blocks[layer].register_forward_hook(replace)
    logits = model(ids)
    handle.remove()
    return logits


@stranger(
    "patch-activations",
    "the stream is changed before the block in place of after it AND the hook stays in "
    "the model",
    kind="double",
    first="named",
    verdict="named",
    says="the input of the block in place of its output",
    round=3,
)
@torch.no_grad()
def run_patched(model, ids, layer, position, activation):
    def hook(module, inputs):
        x = inputs[0].clone()
        x[0, position, :] = activation
        return (x,)

    model.blocks[layer].register_forward_pre_hook(hook)
    return model(ids)


@stranger(
    "patch-activations",
    "the logits are read at the patched position in place of the last one",
    kind="subtle",
    first="told",
    verdict="named",
    says="the logits of the patched position",
    round=3,
)
@torch.no_grad()
def patching_effect(model, clean, corrupted, right, wrong):
    stored = record_activations(model, clean)
    layers, T, _ = stored.shape

    def delta(logits, t):
        return logits[0, t, right] - logits[0, t, wrong]

    good, bad = delta(model(clean), -1), delta(model(corrupted), -1)
    effect = torch.zeros(layers, T)
    for l in range(layers):
        for t in range(T):
            logits = run_patched(model, corrupted, l, t, stored[l, t])
            effect[l, t] = (delta(logits, t) - bad) / (good - bad)
    return effect


@stranger(
    "patch-activations",
    "the differences are taken between probabilities in place of logits",
    kind="subtle",
    first="named",
    verdict="named",
    says="probabilities in place of logits",
    round=3,
)
@torch.no_grad()
def patching_effect(model, clean, corrupted, right, wrong):
    def difference(logits):
        p = torch.softmax(logits[0, -1], dim=-1)
        return (p[right] - p[wrong]).item()

    activations = record_activations(model, clean)
    d_clean = difference(model(clean))
    d_corrupted = difference(model(corrupted))
    table = []
    for layer in range(len(model.blocks)):
        row = []
        for position in range(clean.shape[1]):
            logits = run_patched(
                model, corrupted, layer, position, activations[layer, position]
            )
            row.append((difference(logits) - d_corrupted) / (d_clean - d_corrupted))
        table.append(row)
    return torch.tensor(table)


@stranger(
    "patch-activations",
    "corrupted activations are put into the clean run AND the share is without brackets "
    "above the line (patched - corrupted / ...)",
    kind="double",
    first="useless",
    verdict="named",
    says="the corrupted activation in the clean run, and no brackets above the line",
    round=3,
)
@torch.no_grad()
def patching_effect(model, clean, corrupted, right, wrong):
    acts = record_activations(model, corrupted)
    dc = model(clean)[0, -1, right] - model(clean)[0, -1, wrong]
    dk = model(corrupted)[0, -1, right] - model(corrupted)[0, -1, wrong]
    out = torch.empty(acts.shape[0], acts.shape[1])
    for l in range(acts.shape[0]):
        for t in range(acts.shape[1]):
            z = run_patched(model, clean, l, t, acts[l, t])[0, -1]
            out[l, t] = z[right] - z[wrong] - dk / (dc - dk)
    return out


# 11.15 logit-lens


@stranger(
    "logit-lens",
    "argsort is read as if it were the rank: it says which token has a rank, not which "
    "rank a token has",
    kind="subtle",
    first="shown",
    verdict="named",
    says="the token of a rank in place of the rank of a token",
    round=3,
)
def logit_lens(stream, gamma, table, targets):
    rms = (stream.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()
    logits = (stream / rms * gamma) @ table.T
    T = torch.arange(len(targets))
    probability = logits.softmax(-1)[:, T, targets]
    order = logits.argsort(dim=-1, descending=True)
    return probability, order[:, T, targets] + 1


@stranger(
    "logit-lens",
    "larger-or-equal is counted for the rank, so equal logits make it too large",
    kind="subtle",
    first="passed",
    verdict="named",
    says="equal logits counted as larger",
    round=3,
)
def logit_lens(stream, gamma, table, targets):
    normed = stream * torch.rsqrt(stream.square().mean(dim=-1, keepdim=True) + 1e-5)
    logits = torch.einsum("ltd,vd->ltv", normed * gamma, table)
    index = targets.expand(stream.shape[0], -1).unsqueeze(-1)
    own = logits.gather(-1, index)
    probability = torch.softmax(logits, dim=-1).gather(-1, index).squeeze(-1)
    rank = (logits >= own).sum(dim=-1)
    return probability, rank


@stranger(
    "logit-lens",
    "a layer norm (the mean is subtracted) in place of an RMS norm AND ranks from 0",
    kind="double",
    first="named",
    verdict="named",
    round=3,
    says="layer norm in place of RMS norm, and ranks counted from 0",
)
def logit_lens(stream, gamma, table, targets):
    mean = stream.mean(-1, keepdim=True)
    var = stream.var(-1, keepdim=True, unbiased=False)
    x = (stream - mean) / torch.sqrt(var + 1e-5) * gamma
    logits = x @ table.T
    positions = torch.arange(targets.shape[0])
    probabilities = torch.softmax(logits, dim=-1)[:, positions, targets]
    own = logits[:, positions, targets].unsqueeze(-1)
    return probabilities, (logits > own).sum(-1)


@stranger(
    "logit-lens",
    "the logarithm is taken of the mean probability in place of the mean of the "
    "logarithms",
    kind="subtle",
    first="named",
    verdict="named",
    says="the logarithm of the mean",
    round=3,
)
def lens_gain(stream, gamma, table, targets, order):
    right, _ = logit_lens(stream, gamma, table, targets)
    control, _ = logit_lens(stream, gamma, table, targets[order])
    return torch.log(right.mean(dim=-1)) - torch.log(control.mean(dim=-1))


@stranger(
    "logit-lens",
    "the positions of the stream are shuffled in place of the targets AND the sum is "
    "taken in place of the mean",
    kind="double",
    first="named",
    verdict="named",
    says="the sum in place of the mean",
    round=3,
)
def lens_gain(stream, gamma, table, targets, order):
    p_right, _ = logit_lens(stream, gamma, table, targets)
    p_control, _ = logit_lens(stream[:, order], gamma, table, targets)
    gains = torch.log(p_right) - torch.log(p_control)
    return gains.sum(dim=-1)


@stranger(
    "logit-lens",
    "the order is undone: the control is targets[argsort(order)], right only for an order "
    "that is its own inverse",
    kind="subtle",
    first="wrong",
    verdict="told",
    says="the positions are shuffled in place of the tokens",
    round=3,
)
def lens_gain(stream, gamma, table, targets, order):
    control = targets.clone()
    control[order] = targets
    a = logit_lens(stream, gamma, table, targets)[0].log()
    b = logit_lens(stream, gamma, table, control)[0].log()
    return (a - b).mean(-1)
