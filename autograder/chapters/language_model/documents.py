"""Documents packed into blocks, and the mask that keeps them apart."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch

from autograder.chapters.attention.masks import (
    ADDITIVE,
    NUMBERS,
    expect_boolean,
    lower,
)
from autograder.chapters.language_model.chapter import chapter
from autograder.exercise.inputs import draw_sizes, draw_whole, seeded
from autograder.exercise.spec import Case, Function, expect_several, judge_parts
from autograder.expect import refuse_if
from autograder.forms import several
from autograder.interface import StudentFunction

Documents = list[list[int]]
Rows = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Stream:
    """Documents one behind the other: for each token its id, document and place."""

    ids: list[int]
    documents: list[int]
    positions: list[int]

    @classmethod
    def of(cls, documents: Documents) -> "Stream":
        """Put documents together, as they are."""
        rows = [
            (token, number, place)
            for number, document in enumerate(documents)
            for place, token in enumerate(document)
        ]
        return cls(*(list(column) for column in zip(*rows, strict=True)))

    def cut(
        self, length: int, shift: int = 1, step: int | None = None, most: int = 10**9
    ) -> Rows:
        """Cut into inputs, labels, documents and positions, each (blocks, length).

        Args:
            length: of a block.
            shift: how far the labels are ahead.
            step: from the beginning of a block to that of the next.
            most: blocks.
        """
        step = step or length
        starts = range(0, len(self.ids) - length, step)[:most]

        def rows(values: list[int], ahead: int = 0) -> torch.Tensor:
            cut = [values[at + ahead : at + ahead + length] for at in starts]
            return torch.tensor(cut, dtype=torch.int64).reshape(-1, length)

        inputs, labels = rows(self.ids), rows(self.ids, shift)
        return inputs, labels, rows(self.documents), rows(self.positions)


def ended(documents: Documents, end_id: int) -> Documents:
    """Put an end id behind each document."""
    return [[*document, end_id] for document in documents]


def _right(documents: Documents, end_id: int, length: int) -> Rows:
    return Stream.of(ended(documents, end_id)).cut(length)


packing = Function("pack-documents", "pack_documents", _right)

# --- packing: what goes wrong ---------------------------------------------------------


def in_stream(name: str, why: str, *answers: Callable) -> None:
    """State a mistake by what becomes of the right stream and the length."""
    for answer in answers:
        packing.mistake(name, why)(
            lambda documents, end_id, length, answer=answer: answer(
                Stream.of(ended(documents, end_id)), length
            )
        )


def in_rows(name: str, why: str, *answers: Callable) -> None:
    """State a mistake by what becomes of the four right results."""
    for answer in answers:
        packing.mistake(name, why)(
            lambda *given, answer=answer: answer(*_right(*given))
        )


NO_END = (
    "no end id between the documents",
    "Two documents run into one, and a model that never sees the end id as a label "
    "never learns to stop. Put end_id behind every document.",
)


@packing.mistake(*NO_END)
def _(documents, end_id, length):
    return Stream.of(documents).cut(length)


@packing.mistake(
    "the end id in front of the documents",
    "end_id says that a document is over: it follows each of them, the last one too.",
)
def _(documents, end_id, length):
    return Stream.of([[end_id, *document] for document in documents]).cut(length)


OWNER = (
    "The end id belongs to the document that it ends: it has its number, and the "
    "place after its last token."
)


@packing.mistake("the end id is a document of its own", OWNER)
def _(documents, end_id, length):
    return Stream.of([p for each in documents for p in (each, [end_id])]).cut(length)


@packing.mistake("the end id belongs to the next document", OWNER)
def _(documents, end_id, length):
    first, *others = documents
    moved = Stream.of([first, *([end_id, *each] for each in others), [end_id]])
    return moved.cut(length)


@packing.mistake("the end ids have no document and no position", OWNER)
def _(documents, end_id, length):
    inputs, labels, *_ = _right(documents, end_id, length)
    stream, end = Stream.of(documents), inputs.numel()
    owners, places = (
        torch.tensor(each[:end]).view(-1, length)
        for each in (stream.documents, stream.positions)
    )
    return inputs, labels, owners, places


NEXT = "The label of a place is the token that follows in the stream: one step ahead."
in_rows(
    "the labels are the inputs",
    f"{NEXT} With labels = inputs a model learns to copy.",
    lambda inputs, labels, *rest: (inputs, inputs, *rest),
)
in_stream(
    "the labels are shifted twice", NEXT, lambda stream, length: stream.cut(length, 2)
)


for made_up in (
    lambda end_id, first: end_id,
    lambda end_id, first: first,  # rolled round
    lambda end_id, first: 0,
    lambda end_id, first: -100,
):

    @packing.mistake(
        "the very last label is made up",
        f"{NEXT} That holds for the last input, too: its label is in the stream. Shift "
        "the stream before you cut it.",
    )
    def _(documents, end_id, length, made_up=made_up):
        inputs, labels, *rest = _right(documents, end_id, length)
        labels[-1, -1] = made_up(end_id, int(inputs[0, 0]))
        return inputs, labels, *rest


in_rows(
    "inputs and labels exchanged",
    "inputs first, labels second.",
    lambda inputs, labels, *rest: (labels, inputs, *rest),
)
in_rows(
    "the stream runs down the columns",
    "A block is a row of neighbours in the stream: .view(-1, T), which counts along "
    "the rows.",
    lambda *rows: tuple(each.reshape(each.shape[1], -1).T for each in rows),
)
LAST = (
    "the last label of a block is taken from the block",
    "What follows the last token of a block is the first token of the next block, "
    "not the first of the same. Shift the stream before you cut it.",
)
in_rows(*LAST, lambda inputs, labels, *rest: (inputs, inputs.roll(-1, dims=1), *rest))
in_stream(
    "a token is lost between two blocks",
    "Blocks of T + 1 tokens that share none leave out the last of each: it is never an "
    "input. A block begins T tokens after the one before it, and its last label is the "
    "first input of the next.",
    lambda stream, length: stream.cut(length, step=length + 1),
)
in_stream(
    "too few blocks",
    "With N tokens, N − 1 of them have a label, so (N − 1) // T blocks fit. The last "
    "label may be the end id behind the last document: is it in your stream?",
    lambda stream, length: stream.cut(length, most=(len(stream.ids) - 2) // length),
    lambda stream, length: stream.cut(length, most=len(stream.ids) // length - 1),
    lambda stream, length: stream.cut(length, most=len(stream.ids) // (length + 1)),
)
PLACE = (
    "A position says which token of its document this is, from 0. A document that is "
    "cut goes on counting in the next block."
)
in_rows(
    "the position in the block in place of the document",
    PLACE,
    lambda *rows: (*rows[:3], torch.arange(rows[0].shape[1]).expand_as(rows[0])),
)
in_stream(
    "the position in the stream in place of the document",
    PLACE,
    lambda stream, length: replace(stream, positions=[*range(len(stream.ids))]).cut(
        length
    ),
)


@packing.mistake("positions begin anew in each block", PLACE)
def _(documents, end_id, length):
    inputs, labels, numbers, positions = _right(documents, end_id, length)
    for row, owners in zip(positions, numbers, strict=True):
        row[owners == owners[0]] -= int(row[0])
    return inputs, labels, numbers, positions


in_rows(
    "positions from 1",
    "The first token of a document has position 0.",
    lambda *rows: (*rows[:3], rows[3] + 1),
)
in_rows(
    "documents counted from 1",
    "Counting begins at 0, as everywhere in Python: enumerate(documents).",
    lambda *rows: (*rows[:2], rows[2] + 1, rows[3]),
)
EMPTY = (
    "an empty document is left out",
    "An empty document is a document as the others are: it has a number, and its end "
    "id is in the stream.",
)


def _has_empty(documents: Documents, end_id: int, length: int) -> bool:
    return [] in documents


@packing.mistake(*EMPTY, when=_has_empty)
def _(documents, end_id, length):
    return _right([each for each in documents if each], end_id, length)


@packing.mistake(*EMPTY, when=_has_empty)
def _(documents, end_id, length):
    full = [number for number, each in enumerate(documents) if each]
    rows = _right([documents[number] for number in full], end_id, length)
    return *rows[:2], torch.tensor(full)[rows[2]], rows[3]


in_rows(
    "documents counted anew in each block",
    "A document that is cut keeps its number, so numbers go on through all blocks.",
    lambda *rows: (*rows[:2], rows[2] - rows[2][:, :1], rows[3]),
)


@packing.mistake(
    "documents and positions of the labels",
    "Documents and positions are those of the inputs: attention reads these.",
)
def _(documents, end_id, length):
    stream = Stream.of(ended(documents, end_id))
    ahead = Stream(stream.ids[1:], stream.documents[1:], stream.positions[1:])
    count = (len(stream.ids) - 1) // length * length
    later = (
        torch.tensor(each[:count], dtype=torch.int64).reshape(-1, length)
        for each in (ahead.documents, ahead.positions)
    )
    return *stream.cut(length)[:2], *later


in_rows(
    "documents and positions exchanged",
    "Inputs, labels, documents, positions: return them in this order.",
    lambda inputs, labels, numbers, positions: (inputs, labels, positions, numbers),
)


@packing.mistake(
    "each document is cut by itself",
    "Short documents are lost like that, and the rest of every long one. Put all "
    "documents into one stream first, then cut it.",
)
def _(documents, end_id, length):
    parts = [_right([each], end_id, length) for each in documents]
    for number, part in enumerate(parts):
        part[2].fill_(number)
    return tuple(map(torch.cat, zip(*parts, strict=True)))


@packing.mistake(
    "each document is padded",
    "Nothing is padded: the next document begins right behind the end id, also in the "
    "middle of a block.",
)
def _(documents, end_id, length):
    whole = [[*each, *[end_id] * (-len(each) % length or length)] for each in documents]
    return Stream.of(whole).cut(length)


LEFT_OVER = (
    "what is left over makes a block",
    "A block has T inputs and T labels. What does not fill one at the end is left out: "
    "nothing is padded. With N tokens there are (N − 1) // T blocks.",
)

# --- packing: the check ---------------------------------------------------------------

RESULTS = ("inputs", "labels", "documents", "positions")


def _draw(generator: torch.Generator, tokens: int, *lengths: int) -> Documents:
    """Draw documents of these lengths, and one more, so that the stream is so long."""
    last = tokens - sum(lengths) - len(lengths) - 1
    return [
        torch.randint(10, 60, (each,), generator=generator).tolist()
        for each in (*lengths, last)
    ]


def _packings(seed: int) -> Iterator[Case]:
    """By hand, cut twice, with exactly enough tokens, with one too few, too short."""
    hand = [[5, 6, 7], [8], [9, 4]], 0, 3
    found = (
        [[5, 6, 7], [0, 8, 0]],
        [[6, 7, 0], [8, 0, 9]],
        [[0, 0, 0], [0, 1, 1]],
        [[0, 1, 2], [3, 0, 1]],
    )
    right = tuple(map(torch.tensor, found))
    yield Case("the example by hand", hand, right)
    generator = seeded(seed)
    more = draw_whole(generator, 3)
    for documents, end_id, length in (
        (_draw(generator, 7, 1 + more), 3, 3),  # every token is needed
        (_draw(generator, 8, 1, more), 7, 4),  # the last has no label
        (_draw(generator, 33, 4, 0, 2, 6 + more), 2, 7),  # one of them is empty
        (_draw(generator, 31 + more, 27), 1, 6),  # most of it one document
        (_draw(generator, 9, 2, 1), 4, 1),
        (_draw(generator, 5 + more, 1), 9, 8),  # no block at all
    ):
        given = documents, end_id, length
        yield Case(_said(*given), given)


def _said(documents: Documents, end_id: int, length: int) -> str:
    lengths = ", ".join(str(len(each)) for each in documents)
    return f"documents of {lengths} tokens, end_id {end_id}, length {length}"


@chapter.check(section="language-model-documents")
def pack_documents(student: StudentFunction, seed: int = 0) -> None:
    """By hand, documents cut in two, exactly enough tokens, an empty document."""
    for case in _packings(seed):
        got = several(student(*case.inputs))
        got, right = expect_several(got, RESULTS, case.on), packing.right(case)
        _expect_whole_blocks(got, right, case.on)
        none = not right[0].numel()  # torch.tensor([]) has no rows either, and floats
        if none and not any(torch.is_tensor(each) and each.numel() for each in got):
            continue
        judge_parts(packing, got, case, (f"the {name}" for name in RESULTS))


def _expect_whole_blocks(got: tuple, right: Rows, on: str) -> None:
    """Name a block of what is left over, whatever it is filled up with."""
    inputs, wanted = got[0], right[0]
    more = torch.is_tensor(inputs) and inputs.dim() == 2
    more = more and inputs.shape == (len(wanted) + 1, wanted.shape[1])
    more = more and torch.equal(inputs[:-1].long(), wanted)
    say = {"got": f"{len(wanted) + 1} blocks", "expected": f"{len(wanted)}"}
    refuse_if(more, *LEFT_OVER, on=on, **say)


# --- the mask -------------------------------------------------------------------------


def _blocks(documents: torch.Tensor) -> torch.Tensor:
    """Lay a triangle for each document along the diagonal: (B, 1, T, T)."""
    rows = []
    for row in documents:
        lengths = row.unique_consecutive(return_counts=True)[1].tolist()
        rows.append(torch.block_diag(*(lower(length) for length in lengths)))
    return torch.stack(rows).unsqueeze(1).bool()


masks = Function("document-mask", "document_mask", _blocks)


def _same(documents: torch.Tensor) -> torch.Tensor:
    return (documents.unsqueeze(-1) == documents.unsqueeze(-2)).unsqueeze(1)


def _not_smaller(documents: torch.Tensor) -> torch.Tensor:
    return (documents.unsqueeze(-1) >= documents.unsqueeze(-2)).unsqueeze(1)


def _begin(documents: torch.Tensor) -> torch.Tensor:
    """Count the tokens of smaller documents, for each query: (B, 1, T, 1)."""
    smaller = _not_smaller(documents) & ~_same(documents)
    return smaller.sum(-1, keepdim=True)


def _causal(documents: torch.Tensor) -> torch.Tensor:
    return lower(documents.shape[-1])


masks.mistake(*NUMBERS)(lambda documents: _blocks(documents).float())
masks.mistake(*ADDITIVE)(lambda documents: _blocks(documents).float().log())
for name, why, answer in (
    (
        "the future is not hidden",
        "Inside a document each position still sees the later ones. A key must be of "
        "the same document, and not after the query.",
        _same,
    ),
    (
        "documents see each other",
        "This is the causal mask alone: each document reads all those before it in "
        "its block. A key must be of the query's own document, too.",
        lambda documents: _causal(documents).expand_as(_same(documents)),
    ),
    (
        "documents see each other",
        "A larger number is another document, too: compare numbers with ==.",
        lambda documents: _not_smaller(documents) & _causal(documents),
    ),
    (
        "documents see each other, and the future is not hidden",
        "A larger number is another document, too: compare numbers with ==. And a key "
        "must not be after the query.",
        _not_smaller,
    ),
    (
        "documents in the order of their numbers",
        "A triangle lies where the tokens of its document stand, whatever number it "
        "has. unique sorts the numbers: a later document may have a smaller one.",
        lambda documents: _blocks(documents.sort(dim=-1).values),
    ),
    (
        "documents in the order of their numbers",
        "How many tokens have a smaller number says where a document begins only if "
        "the numbers rise. Compare the numbers of query and key themselves.",
        lambda documents: (
            _causal(documents) & (torch.arange(documents.shape[1]) >= _begin(documents))
        ),
    ),
    (
        "one condition is enough (or)",
        "A key has to pass both: the same document, and not later. With | the one "
        "opens what the other closes.",
        lambda documents: _same(documents) | _causal(documents),
    ),
    (
        "other documents in place of one's own",
        "A query may attend to the keys of its own document: compare with ==.",
        lambda documents: ~_same(documents) & _causal(documents),
    ),
    (
        "mask inverted",
        "True marks what is forbidden. In this course True means 'may attend'.",
        lambda documents: ~_blocks(documents),
    ),
    (
        "mask inverted, and the diagonal is blocked",
        "In this course True means 'may attend', and each position may attend to "
        "itself.",
        lambda documents: ~_blocks(documents).tril(-1),
    ),
    (
        "document 0 taken for padding",
        "Documents are counted from 0, so number 0 is a document as the others are. "
        "Nothing is padded here.",
        lambda documents: _blocks(documents) & (documents != 0)[:, None, None],
    ),
    (
        "upper triangle",
        "Row i is the query, column j the key: query i may see the keys j ≤ i of its "
        "document, below and on the diagonal.",
        lambda documents: _blocks(documents).mT,
    ),
    (
        "off by one: the diagonal is blocked",
        "Each position may attend to itself. Without the diagonal the first token of a "
        "document has no key at all.",
        lambda documents: _blocks(documents).tril(-1),
    ),
    (
        "no axis for the heads",
        "Scores are (B, heads, T, T). A mask (B, T, T) would lay the batch over the "
        "heads: give it an axis of size 1 between batch and queries, (B, 1, T, T).",
        lambda documents: _blocks(documents).squeeze(1),
    ),
    (
        "the documents of the first row for all",
        "Each row of the batch has documents of its own, so it has a mask of its own.",
        lambda documents: _blocks(documents[:1]).expand_as(_same(documents)),
    ),
):
    masks.mistake(name, why)(answer)
for axis in (0, 2, 3):
    masks.mistake(
        "the axis for the heads in another place",
        "The axes are batch, heads, queries, keys, and the one for the heads has size "
        "1: (B, 1, T, T), that is unsqueeze(1) of (B, T, T).",
    )(lambda documents, axis=axis: _blocks(documents).squeeze(1).unsqueeze(axis))


def _masks(seed: int) -> Iterator[Case]:
    """By hand; one, some and many documents; falling numbers; a single position."""
    hand = torch.tensor([[0, 0, 1, 1, 1]])
    rows = [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 1, 1, 0]]
    right = torch.tensor([*rows, [0, 0, 1, 1, 1]]).bool()[None, None]
    yield Case(
        f"the example by hand, documents {hand.tolist()}",
        (hand,),
        right,
        what="the mask",
    )
    generator = seeded(seed)
    batch, length = draw_sizes(generator, 2)
    length += 3
    begins = torch.rand(batch + 2, length, generator=generator) < 0.4
    begins[0], begins[1] = False, True  # one document; each token is one
    begins[2, 1:4] = torch.tensor([False, True, False])
    many = begins.cumsum(dim=1) + draw_whole(generator, 5)
    falling = torch.tensor([[4, 4, 4, 1, 1], [3, 2, 2, 2, 0]])
    for documents in (many[2:], many, many[:1], falling, falling[:, :1]):
        yield Case(f"documents {documents.tolist()}", (documents,), what="the mask")


@chapter.check(section="language-model-documents")
def document_mask(student: StudentFunction, seed: int = 0) -> None:
    """By hand, triangles along the diagonal, one document, one for each token."""
    for case in _masks(seed):
        got = student(*case.inputs)
        expect_boolean(got, case.on)
        masks.compare(got, case)
