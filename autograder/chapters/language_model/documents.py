"""Documents packed into blocks, and the mask that keeps them apart."""

from collections.abc import Callable, Iterator
from functools import partial

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
Token = tuple[int, int, int]  # an id, the number of its document, its place in it


def ended(document: list[int], number: int, end_id: int, length: int) -> list[Token]:
    """Put an end id behind a document."""
    whole = [*document, end_id]
    return [(token, number, place) for place, token in enumerate(whole)]


def pack(
    documents: Documents,
    end_id: int,
    length: int,
    *,
    chosen: Callable = enumerate,
    write: Callable = ended,
    beside: Callable | None = None,
    shift: int = 1,
    late: int = 0,
    most: Callable = lambda n, length: (n - 1) // length,
    step: int | None = None,
    more: int = 0,
    labelled: Callable = lambda labels, inputs, end_id: labels,
    numbered: Callable = lambda numbers: numbers,
    placed: Callable = lambda places, numbers, at: places,
    laid: Callable = lambda rows: rows,
    order: tuple[int, int, int, int] = (0, 1, 2, 3),
) -> Rows:
    """Pack by rules that can be varied.

    Args:
        documents: the ids of each.
        end_id: put behind each.
        length: of a block.
        chosen: gives documents with their numbers.
        write: makes the tokens of a document and its end.
        beside: makes those whose numbers and places are taken; None: the same.
        shift: how far the labels are ahead.
        late: how far numbers and places are.
        most: blocks of n tokens.
        step: from the beginning of a block to that of the next; None: its length.
        more: added to it.
        labelled: makes labels of labels and inputs.
        numbered: makes documents of them.
        placed: makes positions of them, of the documents and of places in the stream.
        laid: makes the rows of each result.
        order: of the results.
    """
    step, blocks = (step or length) + more, []
    for how in (write, beside or write):
        tokens = [how(each, n, end_id, length) for n, each in chosen(documents)]
        blocks.append([token for document in tokens for token in document])
    stream, others = blocks
    starts = range(0, len(stream) - length, step)[: most(len(stream), length)]

    def rows(values: list[int], ahead: int = 0) -> torch.Tensor:
        cut = [values[at + ahead : at + ahead + length] for at in starts]
        return torch.tensor(cut, dtype=torch.int64).reshape(-1, length)

    ids, *_ = zip(*stream, strict=True)
    _, owners, where = zip(*others, strict=True)
    inputs, numbers, at = rows(ids), rows(owners, late), rows(range(len(ids)))
    labels = labelled(rows(ids, shift), inputs, end_id)
    places = placed(rows(where, late), numbers, at)
    found = inputs, labels, numbered(numbers), places
    return tuple(laid(found[place]) for place in order)


packing = Function("pack-documents", "pack_documents", pack)

# --- packing: what goes wrong ---------------------------------------------------------


def _around(before: int, behind: int) -> Callable:
    """Put so many end ids before a document and behind it."""

    def write(document, number, end_id, length):
        whole = [*before * [end_id], *document, *behind * [end_id]]
        return [(token, number, place) for place, token in enumerate(whole)]

    return write


def _apart(document, number, end_id, length):
    own = [(token, 2 * number, place) for place, token in enumerate(document)]
    return [*own, (end_id, 2 * number + 1, 0)]


def _for_the_next(document, number, end_id, length):
    first = int(number > 0)  # behind the end id of the document before
    own = [(token, number, place + first) for place, token in enumerate(document)]
    return [*own, (end_id, number + 1, 0)]


def _counted_on(document, number, end_id, length):
    *own, (_, _, place) = ended(document, number, end_id, length)
    return [*own, (end_id, number + 1, place)]


def _at_0(document, number, end_id, length):
    return [*ended(document, number, end_id, length)[:-1], (end_id, number, 0)]


def _padded(document, number, end_id, length):
    return _around(0, -len(document) % length or length)(document, number, end_id, 0)


def _anew(places, numbers, at):
    first = numbers == numbers[:, :1]  # the rest of a document that is cut
    return places - first * places[:, :1]


def _hidden(labels, inputs, end_id, label):
    return labels.masked_fill(inputs == end_id, end_id if label is None else label)


def _made_up(labels, inputs, end_id, label):
    last = {None: int(inputs[0, 0]), "end": end_id}  # None: rolled round
    labels[-1, -1] = last.get(label, label)
    return labels


NO_END = (
    "no end id between the documents",
    "Two documents run into one, and a model that never sees the end id as a label "
    "never learns to stop. Put end_id behind every document.",
)
OWNER = (
    "The end id belongs to the document that it ends: it has its number, and the "
    "place after its last token."
)
OF_THE_NEXT = "the end id belongs to the next document", OWNER
NEXT = "The label of a place is the token that follows in the stream: one step ahead."
MADE_UP = (
    "the very last label is made up",
    f"{NEXT} That holds for the last input, too: its label is in the stream. Shift "
    "the stream before you cut it.",
)
HIDDEN = (
    "no label behind an end id",
    "What follows an end id is the first token of the next document, and that is its "
    "label: the stream has no other. Only attention keeps documents apart.",
)
FEW = (
    "too few blocks",
    "With N tokens, N − 1 of them have a label, so (N − 1) // T blocks fit. The last "
    "label may be the end id behind the last document: is it in your stream?",
)
PLACE = (
    "A position says which token of its document this is, from 0. A document that is "
    "cut goes on counting in the next block."
)
EMPTY = (
    "an empty document is left out",
    "An empty document is a document as the others are: it has a number, and its end "
    "id is in the stream.",
)


def _has_empty(documents: Documents, end_id: int, length: int) -> bool:
    return [] in documents


packing.slips(
    pack,
    (*NO_END, {"write": _around(0, 0)}),
    (
        "the end id in front of the documents",
        "end_id says that a document is over: it follows each of them, the last one "
        "too.",
        {"write": _around(1, 0)},
    ),
    (
        "an end id on both sides",
        "Each document has one end id, behind it. A second one in front says that a "
        "document without any token is over.",
        {"write": _around(1, 1)},
    ),
    ("the end id is a document of its own", OWNER, {"write": _apart}),
    (*OF_THE_NEXT, {"write": _for_the_next}),
    (*OF_THE_NEXT, {"write": _counted_on}),
    ("the end id has position 0", OWNER, {"write": _at_0}),
    (
        "the end ids have no document and no position",
        OWNER,
        {"beside": _around(0, 0)},
    ),
    (
        "each document is padded",
        "Nothing is padded: the next document begins right behind the end id, also in "
        "the middle of a block.",
        {"write": _padded},
    ),
    (
        "the labels are the inputs",
        f"{NEXT} With labels = inputs a model learns to copy.",
        {"shift": 0},
    ),
    ("the labels are shifted twice", NEXT, {"shift": 2}),
    *(
        (*MADE_UP, {"labelled": partial(_made_up, label=label)})
        for label in (None, "end", 0, -100)
    ),
    *(
        (*HIDDEN, {"labelled": partial(_hidden, label=label)})
        for label in (None, 0, -100)
    ),
    (
        "the last label of a block is taken from the block",
        "What follows the last token of a block is the first token of the next block, "
        "not the first of the same. Shift the stream before you cut it.",
        {"labelled": lambda labels, inputs, end_id: inputs.roll(-1, dims=1)},
    ),
    (
        "inputs and labels exchanged",
        "inputs first, labels second.",
        {"order": (1, 0, 2, 3)},
    ),
    (
        "documents and positions exchanged",
        "Inputs, labels, documents, positions: return them in this order.",
        {"order": (0, 1, 3, 2)},
    ),
    (
        "the stream runs down the columns",
        "A block is a row of neighbours in the stream: .view(-1, T), which counts "
        "along the rows.",
        {"laid": lambda rows: rows.reshape(rows.shape[1], -1).T},
    ),
    (
        "a token is lost between two blocks",
        "Blocks of T + 1 tokens that share none leave out the last of each: it is "
        "never an input. A block begins T tokens after the one before it, and its last "
        "label is the first input of the next.",
        {"more": 1},
    ),
    (
        "the blocks overlap",
        "A block begins T tokens after the one before it: each token is an input once.",
        {"step": 1, "most": lambda n, length: n},
    ),
    (*FEW, {"most": lambda n, length: (n - 2) // length}),
    (*FEW, {"most": lambda n, length: n // length - 1}),
    (*FEW, {"most": lambda n, length: n // (length + 1)}),
    (
        "the position in the block in place of the document",
        PLACE,
        {"placed": lambda places, numbers, at: at % max(1, at.shape[1])},
    ),
    (
        "the position in the stream in place of the document",
        PLACE,
        {"placed": lambda places, numbers, at: at},
    ),
    ("positions begin anew in each block", PLACE, {"placed": _anew}),
    (
        "positions from 1",
        "The first token of a document has position 0.",
        {"placed": lambda places, numbers, at: places + 1},
    ),
    (
        "documents counted from 1",
        "Counting begins at 0, as everywhere in Python: enumerate(documents).",
        {"numbered": lambda numbers: numbers + 1},
    ),
    (
        "documents counted anew in each block",
        "A document that is cut keeps its number, so numbers go on through all blocks.",
        {"numbered": lambda numbers: numbers - numbers[:, :1]},
    ),
    (
        "documents and positions of the labels",
        "Documents and positions are those of the inputs: attention reads these.",
        {"late": 1},
    ),
)
for chosen in (
    lambda documents: enumerate(each for each in documents if each),
    lambda documents: ((n, each) for n, each in enumerate(documents) if each),
):
    packing.mistake(*EMPTY, when=_has_empty)(partial(pack, chosen=chosen))


@packing.mistake(
    "each document is cut by itself",
    "Short documents are lost like that, and the rest of every long one. Put all "
    "documents into one stream first, then cut it.",
)
def _(documents, end_id, length):
    parts = [pack([each], end_id, length) for each in documents]
    for number, part in enumerate(parts):
        part[2].fill_(number)
    return tuple(map(torch.cat, zip(*parts, strict=True)))


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


def mask_by(
    documents: torch.Tensor,
    *,
    alike: Callable = torch.eq,
    numbers: Callable = lambda documents: documents,
    seen: Callable | None = None,
    hide: Callable = torch.tril,
    join: Callable = torch.logical_and,
    finish: Callable = lambda mask: mask,
    heads: Callable = lambda mask: mask.unsqueeze(1),
) -> torch.Tensor:
    """Make the mask by rules that can be varied.

    Args:
        documents: (B, T).
        alike: compares the numbers of queries and keys.
        numbers: what is compared, made of the documents.
        seen: which keys are real besides, (B, T), made of the documents.
        hide: makes a mask (T, T) of one that is all True.
        join: of both conditions.
        finish: makes the result of the mask (B, T, T).
        heads: gives it their axis.
    """
    compared = numbers(documents)
    same = alike(compared.unsqueeze(-1), compared.unsqueeze(-2))
    length = documents.shape[-1]
    order = hide(torch.ones(length, length)).bool()
    mask = join(same, order)
    if seen:
        mask = mask & seen(documents).unsqueeze(-2)
    return heads(finish(mask))


masks = Function("document-mask", "document_mask", _blocks)
MEETING = (
    "documents see each other",
    "A larger number is another document, too: compare numbers with ==.",
)
SORTED = "documents in the order of their numbers"
RISING = (
    "a new document only where the number rises",
    "The numbers need not rise: a document of a smaller number begins where the number "
    "falls. Compare the numbers of query and key themselves.",
)
HEADS = (
    "the axis for the heads in another place",
    "The axes are batch, heads, queries, keys, and the one for the heads has size 1: "
    "(B, 1, T, T), that is unsqueeze(1) of (B, T, T).",
)


def _begins(documents: torch.Tensor, new: Callable) -> torch.Tensor:
    """Number documents by where one begins, by the step from one number to the next."""
    return torch.nn.functional.pad(new(documents.diff(dim=1)), (1, 0)).cumsum(dim=1)


def _after_smaller(documents: torch.Tensor) -> torch.Tensor:
    """Mark keys that as many tokens stand before as have smaller numbers: (B, T, T)."""
    smaller = documents.unsqueeze(-1) > documents.unsqueeze(-2)
    return torch.arange(documents.shape[1]) >= smaller.sum(-1, keepdim=True)


masks.slips(
    mask_by,
    (*NUMBERS, {"finish": lambda mask: mask.float()}),
    (*ADDITIVE, {"finish": lambda mask: mask.float().log()}),
    (
        "the future is not hidden",
        "Inside a document each position still sees the later ones. A key must be of "
        "the same document, and not after the query.",
        {"hide": lambda ones: ones},
    ),
    (
        MEETING[0],
        "This is the causal mask alone: each document reads all those before it in "
        "its block. A key must be of the query's own document, too.",
        {"alike": lambda query, key: (query == key) | True},
    ),
    (*MEETING, {"alike": torch.ge}),
    (*MEETING, {"alike": torch.le}),
    (
        SORTED,
        "A triangle lies where the tokens of its document stand, whatever number it "
        "has. unique sorts the numbers: a later document may have a smaller one.",
        {"numbers": lambda documents: documents.sort(dim=-1).values},
    ),
    (*RISING, {"numbers": partial(_begins, new=lambda step: step > 0)}),
    (*RISING, {"numbers": partial(_begins, new=lambda step: step == 1)}),
    (
        "one condition is enough (or)",
        "A key has to pass both: the same document, and not later. With | the one "
        "opens what the other closes.",
        {"join": torch.logical_or},
    ),
    (
        "other documents in place of one's own",
        "A query may attend to the keys of its own document: compare with ==.",
        {"alike": torch.ne},
    ),
    (
        "mask inverted",
        "True marks what is forbidden. In this course True means 'may attend'.",
        {"finish": torch.logical_not},
    ),
    (
        "document 0 taken for padding",
        "Documents are counted from 0, so number 0 is a document as the others are. "
        "Nothing is padded here.",
        {"seen": lambda documents: documents != 0},
    ),
    (
        "upper triangle",
        "Row i is the query, column j the key: query i may see the keys j ≤ i of its "
        "document, below and on the diagonal.",
        {"hide": torch.triu},
    ),
    (
        "off by one: the diagonal is blocked",
        "Each position may attend to itself. Without the diagonal the first token of a "
        "document has no key at all.",
        {"hide": lambda ones: ones.tril(-1)},
    ),
    (
        "off by one: the next token is seen",
        "A query sees itself and what came before it, not the key after it.",
        {"hide": lambda ones: ones.tril(1)},
    ),
    (
        "no axis for the heads",
        "Scores are (B, heads, T, T). A mask (B, T, T) would lay the batch over the "
        "heads: give it an axis of size 1 between batch and queries, (B, 1, T, T).",
        {"heads": lambda mask: mask},
    ),
    *((*HEADS, {"heads": lambda mask, at=at: mask.unsqueeze(at)}) for at in (0, 2, 3)),
    (
        "the documents of the first row for all",
        "Each row of the batch has documents of its own, so it has a mask of its own.",
        {"numbers": lambda documents: documents[:1].expand_as(documents)},
    ),
)
masks.mistake(
    SORTED,
    "How many tokens have a smaller number says where a document begins only if the "
    "numbers rise. Compare the numbers of query and key themselves.",
)(
    lambda documents: (
        lower(documents.shape[-1]).bool() & _after_smaller(documents)
    ).unsqueeze(1)
)


def _masks(seed: int) -> Iterator[Case]:
    """By hand; one, some and many documents; numbers that fall; a single position."""
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
    falling = torch.tensor([[4, 4, 4, 1, 1], [2, 3, 3, 3, 0], [0, 2, 2, 5, 1]])
    for documents in (many[2:], many, many[:1], falling, falling[:, :1]):
        yield Case(f"documents {documents.tolist()}", (documents,), what="the mask")


@chapter.check(section="language-model-documents")
def document_mask(student: StudentFunction, seed: int = 0) -> None:
    """By hand, triangles along the diagonal, one document, one for each token."""
    for case in _masks(seed):
        got = student(*case.inputs)
        expect_boolean(got, case.on)
        masks.compare(got, case)
