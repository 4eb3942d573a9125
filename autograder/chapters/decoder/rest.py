"""Checks of chapter 7, the decoder.

The oracles are PyTorch's own layers, stacks and losses with the same weights, values
worked out by hand, and properties. A known mistake is found by computing what it would
give on the same input. How a model writes is checked in decoder_writing.
"""

import contextlib
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F

from autograder import expect, forbidden
from autograder.chapters.decoder.chapter import chapter
from autograder.chapters.decoder.inputs import draw_ids, draw_kinds, draw_sizes
from autograder.chapters.decoder.oracles import (
    decoder_layer_shapes,
    decoder_shapes,
    layer_to_torch,
    torch_decoder,
    torch_layer,
    torch_transformer,
    transformer_shapes,
)
from autograder.chapters.decoder.rest_mistakes import (
    DecoderParts,
    LanguageModel,
    Model,
    decoder_candidates,
    decoder_layer_candidates,
    decoder_only_candidates,
    dropped_layer_candidates,
    final_norm,
    run_stack,
    transformer_candidates,
)
from autograder.chapters.encoder.layer import expect_no_pair, pair_named
from autograder.chapters.encoder.oracles import (
    draw_state,
    encoder_shapes,
    network_keeps_width,
    torch_encoder,
    torch_mask,
)
from autograder.chapters.encoder.parts import ACTIVATIONS, State, under
from autograder.exercise.inputs import normal, seeded
from autograder.exercise.naming import Mistake, known_mistakes
from autograder.exercise.parameters import Shapes, expect_parameters
from autograder.exercise.showing import first_few
from autograder.exercise.spec import expect_gradients
from autograder.exercise.state_dicts import expect_state_dict
from autograder.expect import describe_error, refuse, refuse_if, show
from autograder.interface import (
    Data,
    StudentError,
    StudentFunction,
    StudentInstance,
    StudentModule,
)

DEEP = 3e-5  # tolerance of what has gone through several matrices in float32
DEEPER = 2e-4  # and through several layers


def _expect_parameters(
    student: StudentInstance, shapes: Shapes, on: str, special: Callable
) -> None:
    """Expect parameters; ``special`` is told the names missing and those too many."""

    def own(state: State, missing: list[str], extra: list[str]) -> Iterator[tuple]:
        yield from special(set(missing), set(extra))
        yield from network_keeps_width(shapes)(state, missing, extra)

    expect_parameters(student, shapes, on, own)


# --- the layer ------------------------------------------------------------------------


def _torch_masks(mask, memory_mask, x: torch.Tensor, heads: int) -> dict:
    """Write both masks as PyTorch's decoder takes them: True hides."""
    hidden = None if memory_mask is None else ~memory_mask[:, 0]
    return {
        "tgt_mask": torch_mask(mask, x, heads),
        "memory_key_padding_mask": hidden,
    }


def _call(layer, x, memory, mask, memory_mask) -> Data:
    """Call a layer or a stack; name no mask where there is none."""
    if mask is None and memory_mask is None:
        return layer(x, memory)
    return layer(x, memory, mask, memory_mask)


@contextlib.contextmanager
def _lengths_named(
    layer: StudentInstance, x, memory, masks, candidates: Callable, say: str
) -> Iterator[None]:
    """Name the mistake behind a call that fails where T_src is not T_tgt.

    The call is repeated with as many source tokens as target tokens; ``candidates``
    are computed on that.
    """
    try:
        yield
    except StudentError as error:
        if error.kind not in ("RuntimeError", "IndexError", "ValueError"):
            raise
        t = x.shape[1]
        mask, memory_mask = masks
        repeated = torch.arange(t) % memory.shape[1]
        square = memory[:, repeated]
        if memory_mask is not None:
            memory_mask = memory_mask[..., repeated]
        try:
            got = _call(layer, x, square, mask, memory_mask)
        except StudentError:
            raise error from None
        said = f"{error.kind}: {describe_error(error)}"
        found = known_mistakes(candidates(square, mask, memory_mask))
        for mistake in found:
            if expect.close(got, mistake.value, DEEPER):
                refuse(mistake.name, mistake.why, on=say, got=said)
        why = (
            "With as many source tokens as target tokens the same call succeeds. Both "
            "sentences have their own length: cross-attention gives a row for each "
            "query, so its result always fits the stream it is added to."
        )
        name = "works only if both sentences have one length"
        refuse(name, why, on=say, got=said)


@contextlib.contextmanager
def _masks_named(mask, memory_mask) -> Iterator[None]:
    """Name the mistake behind a call that fails only when there is a mask."""
    try:
        yield
    except StudentError as error:
        given = mask is not None or memory_mask is not None
        if given and error.kind in ("RuntimeError", "TypeError"):
            why = (
                "Without masks the same call succeeds. Probably a mask stands in the "
                "second place of attention, which belongs to x_kv: write mask=mask."
            )
            said = f"{error.kind}: {describe_error(error)}"
            refuse("fails as soon as there is a mask", why, on=error.call, got=said)
        raise


def _special_of_layer(missing: set, extra: set) -> Iterator[tuple[bool, str, str]]:
    parts = {name.partition(".")[0] for name in missing}
    alone = bool(missing) and not extra
    why = (
        "A decoder layer has two attentions, self_attention and cross_attention, each "
        "with its own parameters."
    )
    one = alone and parts in ({"cross_attention"}, {"self_attention"})
    yield one, "one attention for both", why
    why = "Each of the three branches has a norm of its own: norm_1, norm_2, norm_3."
    norms = alone and all(part.startswith("norm_") for part in parts)
    yield norms, "fewer than three norms", why
    why = "Build the norms from your own LayerNorm."
    torchs = {"norm_1.weight", "norm_2.weight", "norm_3.weight"}
    yield torchs <= extra, "nn.LayerNorm in place of LayerNorm", why
    why = "Build both attentions from your own MultiHeadAttention."
    names = {"self_attention.in_proj_weight", "cross_attention.in_proj_weight"}
    yield bool(names & extra), "PyTorch's attention in place of your own", why
    why = f"The layer lacks {' and '.join(sorted(parts))}."
    yield alone, "a submodule is missing", why


@chapter.check(section="decoder-layer", forbidden=(forbidden.DECODER_LAYER,))
def decoder_layer(student: StudentModule, seed: int = 0) -> None:
    """PyTorch's values with the same weights, both orders, masks, dropout."""
    generator = seeded(seed)
    b, t, s, heads, d, d_ff, _ = draw_sizes(generator)
    shapes = decoder_layer_shapes(d, d_ff)
    on = f"DecoderLayer(d_model={d}, heads={heads}, d_ff={d_ff})"
    _expect_parameters(student.build(d, heads, d_ff), shapes, on, _special_of_layer)
    x = normal(generator, b, t, d) + 0.3
    memory = 2 * normal(generator, b, s, d) - 0.2
    for pre, activation in ((False, "relu"), (True, "relu"), (True, "gelu")):
        where = f"{on}, norm_first={pre}, activation={activation!r}"
        layer = student.build(d, heads, d_ff, 0.0, pre, activation)
        state = draw_state(generator, shapes)
        layer.load_state_dict(state)
        right = torch_layer(d, heads, d_ff, pre, activation)
        right.load_state_dict(layer_to_torch(state))
        parts = DecoderParts(state, heads, ACTIVATIONS[activation])

        def known(memory, mask, memory_mask, parts=parts, pre=pre):
            return decoder_layer_candidates(x, memory, parts, mask, memory_mask, pre)

        for masks in draw_kinds(generator, b, t, s):
            say = _say_masks(f"{where}, x {(b, t, d)}, memory {(b, s, d)}", *masks)
            with (
                pair_named(),
                _masks_named(*masks),
                _lengths_named(layer, x, memory, masks, known, say),
            ):
                got = _call(layer, x, memory, *masks)
            expect_no_pair(got, say)
            with torch.no_grad():
                expected = right(x, memory, **_torch_masks(*masks, x, heads))
            found = known_mistakes(known(memory, *masks))
            expect.equal(got, expected, on=say, mistakes=found, tolerance=DEEP)
        one = right(x[0], memory[0]).detach()
        say = f"{where}, x {(t, d)}, memory {(s, d)}"
        expect.equal(layer(x[0], memory[0]), one, on=say, tolerance=DEEP)
        dropping = student.build(d, heads, d_ff, 1.0, pre, activation)
        dropping.load_state_dict(state)
        undropped = right(x, memory).detach()
        _expect_dropout_in_branches(dropping, parts, x, memory, pre, undropped, where)
        _expect_blind_to_the_future(layer, x, memory, where)
    _expect_layer_gradient(layer, right, x, memory, where)


def _say_masks(on: str, mask, memory_mask) -> str:
    if mask is not None:
        on += f", mask {tuple(mask.shape)}"
    if memory_mask is not None:
        on += f", memory_mask {tuple(memory_mask.shape)}"
    return on


def _expect_blind_to_the_future(layer, x, memory, on: str) -> None:
    """Expect derivatives by later inputs that are exactly 0, not only small."""
    t = x.shape[1]
    causal = torch.ones(t, t).tril().bool()
    cotangent = torch.zeros_like(x)
    cotangent[:, t // 2] = x[:, 0]
    found = layer.gradients(x, memory, causal, cotangent=cotangent).inputs[0]
    expect_gradients({"x": found}, on)
    later = found[:, t // 2 + 1 :].abs().max().item()
    expect.true(
        later == 0,
        "an output depends on a later token",
        on=f"{on}, causal mask {(t, t)}; the derivative of output {t // 2} by inputs "
        "after it",
        got=f"up to {later:.3g}",
        expected="exactly 0",
        why="Only self-attention mixes rows, and its mask is triangular. Does another "
        "step mix them, such as a mean over the sentence?",
        mistake="an output depends on a later token",
        section="decoder-causality",
    )


def _expect_layer_gradient(layer, right, x, memory, on: str) -> None:
    cotangent = x.flip(0).contiguous()
    found = layer.gradients(x, memory, wrt=(0, 1), cotangent=cotangent)
    inputs = {"x": found.inputs[0], "the memory": found.inputs[1]}
    expect_gradients({**inputs, **found.parameters}, on)
    sources = [value.clone().requires_grad_() for value in (x, memory)]
    value = (right(*sources) * cotangent).sum()
    for name, wanted in zip(inputs, torch.autograd.grad(value, sources), strict=True):
        what = f"the gradient with respect to {name}"
        expect.equal(inputs[name], wanted, on=on, what=what, tolerance=1e-4)


def _expect_dropout_in_branches(
    layer, parts, x, memory, pre, undropped: torch.Tensor, on: str
) -> None:
    """With a probability of 1, dropout shows where it stands, without any chance."""
    layer.train(True)
    where = f"{on}, dropout=1 in training: all branches give zeros"
    dropped = x
    for i in () if pre else (1, 2, 3):
        dropped = parts.norm(i, dropped)
    found = known_mistakes(dropped_layer_candidates(x, memory, parts, pre))
    got = layer(x, memory)
    expect.equal(got, dropped, on=where, mistakes=found, tolerance=DEEP)
    layer.train(False)
    got, where = layer(x, memory), f"{on}, dropout=1 in evaluation: nothing is dropped"
    why = (
        "After model.eval() nothing may be dropped. nn.Dropout knows; F.dropout has to "
        "be told: training=self.training."
    )
    still = Mistake("dropout active in evaluation", dropped, why)
    expect.equal(got, undropped, on=where, mistakes=[still], tolerance=DEEP)


@chapter.check(section="decoder-torch")
def decoder_layer_from_torch(student: StudentFunction, seed: int = 0) -> None:
    """Twenty-six names, each with the tensor that belongs there."""
    generator = seeded(seed)
    *_, d, d_ff, _ = draw_sizes(generator)
    expected = draw_state(generator, decoder_layer_shapes(d, d_ff))
    theirs = layer_to_torch(expected)
    theirs = {name: value.contiguous() for name, value in theirs.items()}
    on = f"the state dict of an nn.TransformerDecoderLayer with d={d}, d_ff={d_ff}"
    try:
        got = student(theirs)
    except StudentError as error:
        if error.kind == "KeyError" and "in_proj" in error.text:
            why = (
                "attention_from_torch wants the names of nn.MultiheadAttention, "
                "without the prefix: 'in_proj_weight', not 'self_attn.in_proj_weight'."
            )
            said = describe_error(error)
            refuse("a prefix is not cut off", why, on=on, got=said)
        raise
    expect.true(
        isinstance(got, dict),
        "the result is not a dict",
        on=on,
        got=show(got),
        expected="a dict of 26 tensors",
        why="The function ends without `return`." if got is None else "",
    )
    missing = [name for name in expected if name not in got]
    extra = [str(name) for name in got if name not in expected]
    say = {
        "on": on,
        "got": f"{len(got)} names, among them {first_few(extra, 4) or '…'}",
        "expected": f"26 names, among them {first_few(missing, 4) or 'no others'}",
    }
    cross = bool(missing) and all(name.startswith("cross_") for name in missing)
    why = "multihead_attn is PyTorch's name of the cross-attention: translate it, too."
    refuse_if(cross and not extra, "cross-attention is left out", why, **say)
    third = bool(missing) and all(name.startswith("norm_3.") for name in missing)
    why = "A decoder layer has three norms: norm1, norm2, norm3."
    refuse_if(third and not extra, "norm_3 is left out", why, **say)
    why = "Names of submodules and parameters are joined by a dot: self_attention.w_q."
    refuse_if("w_q" in extra, "a new prefix is missing", why, **say)
    why = "Copy the biases as well: b_1 and b_2 of the network, beta of the norms."
    biases = bool(missing) and not extra
    biases = biases and all(".b_" in name or "beta" in name for name in missing)
    refuse_if(biases, "biases left out", why, **say)
    if missing or extra:
        why = "Compare the names with those of DecoderLayer(...).state_dict()."
        refuse("the result has other names", why, **say)
    for name in ("w_q", "w_k", "w_v", "w_o"):
        one, other = f"self_attention.{name}", f"cross_attention.{name}"
        why = "self_attn is self_attention, multihead_attn is cross_attention."
        swapped = expect.close(got[one], expected[other])
        say = {"on": on, "got": f"{one} holds what belongs to {other}"}
        refuse_if(swapped, "the two attentions are exchanged", why, **say)
    expect_state_dict(got, expected, on)


# --- the stack ------------------------------------------------------------------------


def _expect_stack_parameters(built: StudentInstance, shapes, n, pre, on) -> None:
    state = built.state_dict()

    def special(missing: set, extra: set) -> Iterator[tuple[bool, str, str]]:
        final = {"norm.gamma", "norm.beta"}
        kept = not any(name.startswith("layers.") for name in state)
        why = (
            "PyTorch looks for modules in attributes, and does not look into Python "
            "lists: nn.ModuleList([...]). An optimiser would train nothing here."
        )
        yield kept, "the layers are in a Python list", why
        repeated = {
            name
            for name in shapes
            if name.startswith("layers.") and not name.startswith("layers.0.")
        }
        why = (
            "All layers are one and the same object, with one set of parameters. Build "
            "a new DecoderLayer for each number of range(layers)."
        )
        shared = repeated <= missing and repeated <= set(state)
        yield shared, "one layer, repeated", why
        why = (
            "In pre-norm nothing normalises the stream itself, so it leaves the last "
            "layer unnormalised: self.norm is a LayerNorm if norm_first."
        )
        yield pre and final <= missing, "no final norm in pre-norm", why
        why = "In post-norm each layer ends with a norm already: nn.Identity()."
        yield not pre and final <= extra, "final norm in post-norm", why
        numbers = {name.split(".")[1] for name in state if name.startswith("layers.")}
        why = f"{n} layers were asked for, and {len(numbers)} are there."
        yield len(numbers) != n, "another number of layers", why
        cross = bool(missing) and all(".cross_attention." in name for name in missing)
        why = "The layers are DecoderLayers, with an attention to the memory."
        yield cross, "layers without cross-attention", why

    _expect_parameters(built, shapes, on, special)
    first, second = (state[f"layers.{i}.self_attention.w_q"] for i in (0, 1))
    why = (
        "The layers are copies of one, with equal numbers. Draw each for itself: call "
        "DecoderLayer once for each layer instead of copying one."
    )
    say = {"on": f"{on}, freshly built", "got": "equal self_attention.w_q in two"}
    refuse_if(torch.equal(first, second), "the layers start as copies", why, **say)


@chapter.check(section="decoder-stack", forbidden=(forbidden.DECODER_LAYER,))
def decoder(
    student: StudentModule, layer_student: StudentModule, seed: int = 0
) -> None:
    """PyTorch's stack with the same weights, both orders, masks, dropout."""
    with expect.relying_on(decoder_layer, layer_student):
        _check_decoder(student, seed)


@chapter.check(section="decoder-stack")
def _decoder_alone(student: StudentModule, seed: int = 0) -> None:
    _check_decoder(student, seed)


def _check_decoder(student: StudentModule, seed: int) -> None:
    generator = seeded(seed)
    b, t, s, heads, d, d_ff, n = draw_sizes(generator)
    x, memory = normal(generator, b, t, d), 2 * normal(generator, b, s, d)
    for pre, activation in ((False, "relu"), (True, "gelu")):
        sizes = n, d, heads, d_ff
        on = (
            f"Decoder(layers={n}, d_model={d}, heads={heads}, d_ff={d_ff}, "
            f"norm_first={pre}, activation={activation!r})"
        )
        built = student.build(*sizes, 0.0, pre, activation)
        shapes = decoder_shapes(n, d, d_ff, pre)
        _expect_stack_parameters(built, shapes, n, pre, on)
        state = draw_state(generator, shapes)
        built.load_state_dict(state)
        right = torch_decoder(state, n, d, heads, d_ff, pre, activation)
        function = ACTIVATIONS[activation]
        layers = [
            DecoderParts(under(f"layers.{i}.", state), heads, function)
            for i in range(n)
        ]
        norm = final_norm(state, pre)

        def known(memory, mask, memory_mask, layers=layers, norm=norm, pre=pre):
            return decoder_candidates(x, memory, layers, norm, mask, memory_mask, pre)

        for masks in draw_kinds(generator, b, t, s):
            say = _say_masks(f"{on}, x {(b, t, d)}, memory {(b, s, d)}", *masks)
            with _lengths_named(built, x, memory, masks, known, say):
                got = _call(built, x, memory, *masks)
            with torch.no_grad():
                expected = right(x, memory, **_torch_masks(*masks, x, heads))
            found = known_mistakes(known(memory, *masks))
            expect.equal(got, expected, on=say, mistakes=found, tolerance=DEEPER)
        dropping = student.build(*sizes, 1.0, pre, activation)
        dropping.load_state_dict(state)
        dropping.train(True)
        why = "Hand dropout on to DecoderLayer(d_model, heads, d_ff, dropout, ...)."
        undropped = run_stack(x, memory, layers, norm, None, None, pre)
        lost = [Mistake("dropout not passed on", undropped, why)]
        say = f"{on}, dropout=1 in training"
        dropped = _dropped(x, layers, norm, pre)
        got = dropping(x, memory)
        expect.equal(got, dropped, on=say, mistakes=lost, tolerance=DEEPER)
    found = built.gradients(x, memory, wrt=(0, 1))
    inputs = {"x": found.inputs[0], "the memory": found.inputs[1]}
    expect_gradients({**inputs, **found.parameters}, on)


def _dropped(x, layers: list[DecoderParts], norm: Callable, pre: bool) -> torch.Tensor:
    """What a stack gives when dropout takes all that its branches compute."""
    for parts in () if pre else layers:
        for i in (1, 2, 3):
            x = parts.norm(i, x)
    return norm(x)


# --- the Transformer ------------------------------------------------------------------


def _special_of_transformer(state: State, vocabulary: int, pre: bool) -> Callable:
    def special(missing: set, extra: set) -> Iterator[tuple[bool, str, str]]:
        learned = any(name.startswith("position") for name in extra)
        why = (
            "Positions are sinusoidal: SinusoidalPositionalEncoding has no parameters."
        )
        yield learned, "learned positions", why
        alone = any(vocabulary in state[name].shape for name in extra)
        why = (
            "Source, target and output share one table, embedding.weight: embed both "
            "with self.embedding, and compute the logits by tied_logits."
        )
        yield alone, "more than one table", why
        final = {f"{part}.norm.{name}" for part in ("encoder", "decoder")
                 for name in ("gamma", "beta")}  # fmt: skip
        lost = bool(missing) and missing <= final and not extra
        why = "Hand norm_first on to Encoder and Decoder."
        yield pre and lost, "norm_first not passed on", why
        yield (
            not pre and bool(extra) and extra <= final,
            "norm_first not passed on",
            why,
        )
        part = {name.partition(".")[0] for name in missing}
        why = f"The model lacks {' and '.join(sorted(part))}."
        yield bool(missing) and not extra, "a submodule is missing", why

    return special


@chapter.check(
    section="decoder-transformer",
    forbidden=(forbidden.TRANSFORMER, forbidden.ENCODER_LAYER, forbidden.DECODER_LAYER),
)
def transformer(
    student: StudentModule, decoder_student: StudentModule, seed: int = 0
) -> None:
    """PyTorch's whole model with the same weights, padding, the future, dropout."""
    with expect.relying_on(_decoder_alone, decoder_student):
        _check_transformer(student, seed)


@chapter.check(section="decoder-transformer")
def _transformer_alone(student: StudentModule, seed: int = 0) -> None:
    _check_transformer(student, seed)


def _check_transformer(student: StudentModule, seed: int) -> None:
    generator = seeded(seed)
    b, t, s, heads, d, d_ff, n = draw_sizes(generator)
    vocabulary = 11
    for pre, activation, pad in ((False, "relu", 0), (True, "gelu", 3)):
        sizes = vocabulary, d, heads, n, d_ff, 9
        on = (
            f"Transformer(vocab_size={vocabulary}, d_model={d}, heads={heads}, "
            f"layers={n}, d_ff={d_ff}, max_length=9, norm_first={pre}, "
            f"activation={activation!r}, pad_id={pad})"
        )
        model = student.build(*sizes, 0.0, pre, activation, pad)
        shapes = transformer_shapes(vocabulary, n, d, d_ff, pre)
        special = _special_of_transformer(model.state_dict(), vocabulary, pre)
        _expect_parameters(model, shapes, on, special)
        state = draw_state(generator, shapes)
        state["embedding.weight"] *= (vocabulary / d) ** 0.5
        model.load_state_dict(state)
        right = torch_transformer(n, d, heads, d_ff, pre, activation, pad)
        own = Model(state, n, heads, ACTIVATIONS[activation], pre, pad)
        for width, length in ((s, t), (t, t), (s + 1, 1)):
            source = draw_ids(generator, b, width, vocabulary, pad)
            target = draw_ids(generator, b, max(3, length), vocabulary, pad)
            target = target[:, :length].contiguous()
            say = f"{on}, source {(b, width)}, target {(b, length)}"
            with _wrong_mask_named(width, length):
                got = model(source, target)
            with torch.no_grad():
                expected = right(state, source, target)
            found = known_mistakes(transformer_candidates(own, source, target))
            asked = {"on": say, "what": "the logits", "mistakes": found}
            expect.equal(got, expected, tolerance=DEEPER, **asked)
        _expect_dropout_of_model(student, sizes, own, state, source, target, on,
                                 (pre, activation, pad))  # fmt: skip
    found = model.gradients(source, target, wrt=())
    expect_gradients(found.parameters, on)


@contextlib.contextmanager
def _wrong_mask_named(width: int, length: int) -> Iterator[None]:
    """Name the mistake behind sizes of both sentences that meet in an error."""
    try:
        yield
    except StudentError as error:
        sizes = f"({width})", f"({length})"
        clash = "must match the size" in error.text
        if width != length and clash and all(each in error.text for each in sizes):
            why = (
                "The padding mask of one sentence stands where that of the other "
                "belongs. In decode, mask is T_tgt by T_tgt, from the target; "
                "memory_mask has a column for each source token, from the source."
            )
            said = f"{error.kind}: {describe_error(error)}"
            name = "the padding masks are exchanged"
            refuse(name, why, on=error.call, got=said)
        raise


def _expect_dropout_of_model(student, sizes, own, state, source, target, on, kind):
    """With a probability of 1, nothing but the norms is left of the decoder."""
    model = student.build(*sizes, 1.0, *kind)
    model.load_state_dict(state)
    model.train(True)
    x = own.embed(target)

    def read(x, layers):
        return F.linear(_dropped(x, layers, own.norms[1], own.pre), own.table)

    expected = read(torch.zeros_like(x), own.decoder)
    why = "Positions, encoder and decoder have a dropout: hand it on to all of them."
    undropped = own.logits(source, target)
    known = [
        Mistake("dropout not passed on", undropped, why),
        Mistake("dropout not passed to the positions", read(x, own.decoder), why),
    ]
    got = model(source, target)
    say = {"on": f"{on}, dropout=1 in training", "what": "the logits"}
    expect.equal(got, expected, mistakes=known, tolerance=DEEPER, **say)


# --- the decoder alone ----------------------------------------------------------------


def _special_of_decoder_only(state: State, sizes: tuple) -> Callable:
    vocabulary, d, length = sizes

    def special(missing: set, extra: set) -> Iterator[tuple[bool, str, str]]:
        why = (
            "There is no memory to attend to. A decoder layer without cross-attention "
            "is an encoder layer, so the blocks are chapter 6's Encoder. A second "
            "attention without a mask would show every position the future."
        )
        second = any("cross_attention" in name for name in extra)
        yield second, "a second attention", why
        why = (
            "Input and output share one table: tied_logits(hidden, "
            "self.embedding.weight), no matrix of its own at the end."
        )
        alone = any(vocabulary in state[name].shape for name in extra)
        yield alone, "more than one table", why
        why = "The blocks are pre-norm: Encoder(..., norm_first=True)."
        final = missing == {"blocks.norm.gamma", "blocks.norm.beta"} and not extra
        yield final, "post-norm in place of pre-norm", why
        why = "The positions are learned: LearnedPositionalEncoding, a trained table."
        yield missing == {"position.table"} and not extra, "sinusoidal positions", why
        turned = "position.table" in state and state["position.table"].shape == (
            d,
            length,
        )
        why = (
            "LearnedPositionalEncoding(max_length, d_model, dropout): the length first."
        )
        yield turned, "arguments of the table exchanged", why
        part = {name.partition(".")[0] for name in missing}
        why = f"The model lacks {' and '.join(sorted(part))}."
        yield bool(missing) and not extra, "a submodule is missing", why

    return special


@chapter.check(section="decoder-only")
def decoder_only(student: StudentModule, seed: int = 0) -> None:
    """Parameters, PyTorch's blocks, the future unseen, dropout."""
    generator = seeded(seed)
    b, t, _, heads, d, d_ff, n = draw_sizes(generator)
    longest, vocabulary = d - 1, 13 + 4 * heads
    sizes = vocabulary, d, heads, n, d_ff, longest
    on = (
        f"DecoderOnly(vocab_size={vocabulary}, d_model={d}, heads={heads}, "
        f"layers={n}, d_ff={d_ff}, max_length={longest})"
    )
    shapes = {"embedding.weight": (vocabulary, d), "position.table": (longest, d)}
    inner = encoder_shapes(n, d, d_ff, True)
    shapes |= {f"blocks.{name}": shape for name, shape in inner.items()}
    model = student.build(*sizes)
    special = _special_of_decoder_only(model.state_dict(), (vocabulary, d, longest))
    _expect_parameters(model, shapes, on, special)
    state = draw_state(generator, shapes)
    state["embedding.weight"] *= (vocabulary / d) ** 0.5
    state["position.table"] *= longest**0.5
    model.load_state_dict(state)
    right = torch_encoder(under("blocks.", state), n, d, heads, d_ff, True, "gelu")
    own = LanguageModel(state, n, heads)
    for width in (t, longest, 1):
        ids = torch.randint(vocabulary, (b, width), generator=generator)
        ids[0, width // 2] = 0
        say = f"{on}, ids {(b, width)}"
        with _masks_named(ids, None):
            got = model(ids)
        hidden = torch.ones(width, width).triu(1).bool()
        with torch.no_grad():
            expected = F.linear(right(own.embed(ids), mask=hidden), own.table)
        found = known_mistakes(decoder_only_candidates(own, ids))
        asked = {"on": say, "what": "the logits", "mistakes": found}
        expect.equal(got, expected, tolerance=DEEPER, **asked)
    _expect_dropout_of_writer(student, sizes, own, state, ids, on)
    ids = torch.randint(vocabulary, (b, t), generator=generator)
    expect_gradients(model.gradients(ids, wrt=()).parameters, on)


def _expect_dropout_of_writer(student, sizes, own, state, ids, on: str) -> None:
    model = student.build(*sizes, 1.0)
    model.load_state_dict(state)
    model.train(True)
    x = own.embed(ids)
    zero = torch.zeros_like(x)
    causal = torch.ones(ids.shape[1], ids.shape[1]).tril().bool()
    why = "Both the positions and the blocks have a dropout: hand it on to both."

    def read(x):
        return F.linear(own.norm(x), own.table)

    known = [
        Mistake("dropout not passed on", own.run(x, causal), why),
        Mistake("dropout not passed to the positions", read(x), why),
        Mistake("dropout not passed to the blocks", own.run(zero, causal), why),
    ]
    say = {"on": f"{on}, dropout=1 in training", "what": "the logits"}
    got = model(ids)
    expect.equal(got, read(zero), mistakes=known, tolerance=DEEPER, **say)
