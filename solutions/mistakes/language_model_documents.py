"""Wrong and right answers to chapter 11: documents, packed and kept apart."""

import itertools

import torch

from mistakes import right, wrong
from transformer.attention import causal_mask

# --- packed ---------------------------------------------------------------------------


def _stream(documents, end_id):
    for number, document in enumerate(documents):
        for position, token in enumerate(itertools.chain(document, [end_id])):
            yield token, number, position


@wrong("pack-documents", "what is left over makes a block")
def pack_documents(documents, end_id, length):
    """filled up with the end id"""
    columns = torch.tensor(list(_stream(documents, end_id))).T
    lost = -(columns.shape[1] - 1) % length
    ids, numbers, positions = torch.nn.functional.pad(columns, (0, lost), value=end_id)
    fit = len(ids) - 1
    found = ids[:-1], ids[1:], numbers[:fit], positions[:fit]
    return tuple(each[: fit // length * length].view(-1, length) for each in found)


@wrong("pack-documents", "a token is lost between two blocks")
def pack_documents(documents, end_id, length):
    """by chunks of T + 1"""
    columns = torch.tensor(list(_stream(documents, end_id))).T
    count = columns.shape[1] // (length + 1)
    cut = columns[:, : count * (length + 1)].reshape(3, count, length + 1)
    return cut[0, :, :-1], cut[0, :, 1:], cut[1, :, :-1], cut[2, :, :-1]


@wrong("pack-documents", "too few blocks")
def pack_documents(documents, end_id, length):
    """stops before the last block is whole"""
    rows, stream = [], list(_stream(documents, end_id))
    begin = 0
    while begin + length + 1 < len(stream):
        rows.append(stream[begin : begin + length + 1])
        begin += length
    block = torch.tensor(rows).view(-1, length + 1, 3)
    return block[:, :-1, 0], block[:, 1:, 0], block[:, :-1, 1], block[:, :-1, 2]


@wrong("pack-documents", "positions begin anew in each block")
def pack_documents(documents, end_id, length):
    """counted while the blocks are filled"""
    stream = list(_stream(documents, end_id))
    inputs, labels, numbers, positions = [], [], [], []
    for begin in range(0, len(stream) - length, length):
        block = stream[begin : begin + length]
        inputs.append([token for token, _, _ in block])
        after = stream[begin + 1 : begin + length + 1]
        labels.append([token for token, _, _ in after])
        numbers.append([number for _, number, _ in block])
        places = []
        for place, number in enumerate(numbers[-1]):
            new = place == 0 or number != numbers[-1][place - 1]
            places.append(0 if new else places[-1] + 1)
        positions.append(places)
    return tuple(map(torch.tensor, (inputs, labels, numbers, positions)))


@wrong("pack-documents", "only one of 4 results")
def pack_documents(documents, end_id, length):
    ids = torch.tensor([token for token, _, _ in _stream(documents, end_id)])
    return ids[: (len(ids) - 1) // length * length].view(-1, length)


@wrong("pack-documents", "changes its argument in place")
def pack_documents(documents, end_id, length):
    for document in documents:
        document.append(end_id)
    ids = torch.tensor([token for document in documents for token in document])
    return ids, ids, ids, ids


@right("pack-documents")
def pack_documents(documents, end_id, length):
    """windows that overlap by one, with unfold"""
    stream = torch.tensor(list(_stream(documents, end_id)))
    if len(stream) <= length:
        return [torch.zeros(0, length, dtype=torch.int64)] * 4
    windows = stream.unfold(0, length + 1, length)  # (N, 3, T + 1)
    ids, numbers, positions = windows.unbind(1)
    return ids[:, :-1], ids[:, 1:], numbers[:, :-1], positions[:, :-1]


@right("pack-documents")
def pack_documents(documents, end_id, length):
    """block by block, in int32, and of no block a tensor of floats"""
    stream = list(_stream(documents, end_id))
    found = [], [], [], []
    for block in range((len(stream) - 1) // length):
        for rows in found:
            rows.append([])
        for place in range(block * length, (block + 1) * length):
            token, number, position = stream[place]
            following = stream[place + 1][0]
            for rows, each in zip(
                found, (token, following, number, position), strict=True
            ):
                rows[-1].append(each)
    if not found[0]:
        return (torch.tensor([]).view(0, length),) * 4
    return tuple(torch.tensor(rows, dtype=torch.int32) for rows in found)


# --- kept apart -----------------------------------------------------------------------


@wrong("document-mask", "the future is not hidden")
def document_mask(documents):
    """squares along the diagonal"""
    masks = []
    for row in documents:
        counts = row.unique_consecutive(return_counts=True)[1]
        squares = [torch.ones(n, n, dtype=torch.bool) for n in counts]
        masks.append(torch.block_diag(*squares))
    return torch.stack(masks)[:, None]


@wrong("document-mask", "no axis for the heads")
def document_mask(documents):
    same = (documents[:, None, :] - documents[:, :, None]) == 0
    return torch.tril(same)


@wrong("document-mask", "the axis for the heads in another place")
def document_mask(documents):
    same = documents[..., None] == documents[:, None]
    return (same & causal_mask(documents.shape[1]))[None]


@wrong("document-mask", "numbers in place of True and False")
def document_mask(documents):
    batch, length = documents.shape
    mask = torch.zeros(batch, 1, length, length)
    for b, i, j in itertools.product(range(batch), range(length), range(length)):
        if j <= i and documents[b, i] == documents[b, j]:
            mask[b, 0, i, j] = 1
    return mask


@wrong("document-mask", "documents see each other")
def document_mask(documents):
    """documents that are not later"""
    asks, asked = documents[:, None, :, None], documents[:, None, None, :]
    return (asked <= asks).tril()


@right("document-mask")
def document_mask(documents):
    """entry by entry"""
    batch, length = documents.shape
    mask = torch.zeros(batch, 1, length, length, dtype=torch.bool)
    for b in range(batch):
        for i in range(length):
            for j in range(i + 1):
                mask[b, 0, i, j] = bool(documents[b, i] == documents[b, j])
    return mask


@right("document-mask")
def document_mask(documents):
    """nothing has changed between key and query"""
    changes = (documents.diff(dim=1, prepend=documents[:, :1]) != 0).cumsum(1)
    return (changes[:, None, :, None] == changes[:, None, None, :]).tril()
