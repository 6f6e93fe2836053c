"""What the "size mismatch" lines of an error have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from inspector.checkpoint.types import Shape
from inspector.error_messages.heads import is_head
from inspector.error_messages.report import Cause
from inspector.units import counted, human_shape

Mismatch = tuple[str, Shape, Shape]
_MOST_HEADS = 3
# Parts of names that transformers' and timm's models give these tensors.
_POSITIONS = ("pos_embed", "position_embed", "positional_embedding", "relative_position", "wpe.")
# Names of tables of tokens, and of what turns features into tokens: the last module's.
_TABLES = ("wte", "lm_head", "shared", "emb", "lut")
# Outputs. Few data sets have so many classes; the largest of ImageNet have 21,843.
_MANY = 5_000
_LARGE = (
    Cause("vocabulary", "Another vocabulary: the outputs are its words.", "it is a language model"),
    Cause("head-size", "Another number of classes.", "it is a classifier"),
)
_MIDDLE = (
    Cause("other-size", "Another width, or another variant of the network.", "it is a layer in the middle"),
    Cause("head-size", "Another number of classes.", "it is the last layer"),
)


# (index of the side, kind, says, step) for the shape [0], which no tensor of a network has.
_PLACEHOLDERS = (
    (
        1,
        "empty-in-file",
        "The file has no numbers for {names}: {name} is [0] in it and {other} in the model. DeepSpeed's ZeRO-3 leaves "
        "such placeholders where the numbers lie in its own files, one per process, and FSDP where another process "
        "has them.",
        "Put the pieces together: zero_to_fp32.py in the checkpoint's folder (DeepSpeed), or a full state dict (FSDP); "
        "when training again, save with stage3_gather_16bit_weights_on_model_save.",
    ),
    (
        2,
        "empty-in-model",
        "The model has no numbers of its own for {names} at this time: {name} is [0] in it and {other} in the file. "
        "Under DeepSpeed's ZeRO-3 (or FSDP) each process holds a part of every parameter.",
        "Load before the model is partitioned, or inside deepspeed.zero.GatheredParameters(..., modifier_rank=0).",
    ),
)
# The same for one column of bytes, with two numbers in each.
_PACKINGS = (
    (
        1,
        "packed-in-file",
        "half as many bytes as numbers, so the file has them packed at four bits, as bitsandbytes does.",
        "Build the model with the same quantisation (load_in_4bit), or take the weights from before it.",
    ),
    (
        2,
        "packed-in-model",
        "half as many bytes as numbers, so the model has them packed at four bits, as bitsandbytes does.",
        "Load into the model before it is quantised, or let the library quantise while it loads.",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeCause:
    """One cause of mismatches. kind: kebab-case; names: those it explains; says and step: a sentence each.

    causes: those that fit when the shapes do not tell which it is.
    """

    kind: str
    names: tuple[str, ...]
    says: str
    step: str
    causes: tuple[Cause, ...] = ()


def explain_shapes(mismatches: Sequence[Mismatch]) -> tuple[ShapeCause, ...]:
    """The causes, each mismatch under one of them; what fits nothing is another size."""
    left = list(mismatches)
    causes: list[ShapeCause] = []
    for find in _FINDERS:
        for cause in find(left, mismatches):
            causes.append(cause)
            left = [mismatch for mismatch in left if mismatch[0] not in cause.names]
    return tuple(causes)


def _names(mismatches: Sequence[Mismatch]) -> tuple[str, ...]:
    return tuple(name for name, _, _ in mismatches)


def _scalars(left: Sequence[Mismatch], every: Sequence[Mismatch]) -> Iterator[ShapeCause]:
    if old := [m for m in left if {m[1], m[2]} == {(), (1,)}]:
        yield ShapeCause(
            kind="scalar-shape",
            names=_names(old),
            says=f"{counted(len(old), 'tensor')} hold one number, with shape [] on one side and [1] on the other.",
            step="Give it the other shape with .reshape(()) or .reshape(1).",
        )


def _placeholders(left: Sequence[Mismatch], every: Sequence[Mismatch]) -> Iterator[ShapeCause]:
    for side, kind, says, step in _PLACEHOLDERS:
        if empty := [m for m in left if _side(m, side) == (0,) and 0 not in _side(m, 3 - side)]:
            name, other = empty[0][0], human_shape(_side(empty[0], 3 - side))
            says = says.format(name=name, other=other, names=counted(len(empty), "tensor"))
            yield ShapeCause(kind=kind, names=_names(empty), says=says, step=step)


def _packed(left: Sequence[Mismatch], every: Sequence[Mismatch]) -> Iterator[ShapeCause]:
    for side, kind, says, step in _PACKINGS:
        if packed := [m for m in left if _is_packed(_side(m, side), _side(m, 3 - side))]:
            yield ShapeCause(kind=kind, names=_names(packed), says=f"{_first(packed)}: {says}", step=step)


def _transposed(left: Sequence[Mismatch], every: Sequence[Mismatch]) -> Iterator[ShapeCause]:
    if turned := [m for m in left if len(m[1]) == 2 and m[1] == m[2][::-1] and m[1] != m[2]]:
        yield ShapeCause(
            kind="transposed",
            names=_names(turned),
            says=f"{_first(turned)}: the file has it transposed, as another framework or Conv1D writes it.",
            step="Transpose these tensors, and the square ones beside them, whose shape does not show it.",
        )


def _positions(left: Sequence[Mismatch], every: Sequence[Mismatch]) -> Iterator[ShapeCause]:
    # Another width is no other picture.
    places = [
        m for m in left if any(part in m[0] for part in _POSITIONS) and _differ_at(m) not in ([-1], [len(m[1]) - 1])
    ]
    if places and not any(m not in places and _is_wider(m) for m in left):
        yield ShapeCause(
            kind="position-embedding",
            names=_names(places),
            says=f"{_first(places)}: the position embeddings are for another picture size or sequence length.",
            step="Build the model for the file's size, or interpolate the embeddings, which changes the weights.",
        )


def _vocabulary(left: Sequence[Mismatch], every: Sequence[Mismatch]) -> Iterator[ShapeCause]:
    tables = {(m[1][0], m[2][0]) for m in left if _is_table(m)}
    if tokens := [m for m in left if _differ_at(m) == [0] and (m[1][0], m[2][0]) in tables]:
        yield ShapeCause(
            kind="vocabulary",
            names=_names(tokens),
            says=f"{_first(tokens)}: the vocabulary has {tokens[0][1][0]:,} entries in the file and "
            f"{tokens[0][2][0]:,} in the model.",
            step="Build the model with the file's vocabulary size; with added tokens, resize the embedding before "
            "loading.",
        )


def _classes(left: Sequence[Mismatch], every: Sequence[Mismatch]) -> Iterator[ShapeCause]:
    if heads := _heads(left):
        ours, theirs = heads[0][1][0], heads[0][2][0]
        yield ShapeCause(
            kind="head-size",
            names=_names(heads),
            says=f"{_first(heads)}: the last layer has {ours:,} outputs in the file and {theirs:,} in the model.",
            step=f"Build the model with {ours:,} outputs to use the file's head, or leave the head out and train a new "
            "one.",
            causes=_LARGE if max(ours, theirs) >= _MANY else (),
        )


def _one_layer(left: Sequence[Mismatch], every: Sequence[Mismatch]) -> Iterator[ShapeCause]:
    """One layer and nothing else, by whose name it may be the last or one in the middle."""
    if len(left) == len(every) <= 2 and _rows(left) and not any(_is_normalised(m, left) for m in left):
        ours, theirs = left[0][1][0], left[0][2][0]
        yield ShapeCause(
            kind="other-size",
            names=_names(left),
            says=f"{_first(left)}: this layer has {ours:,} outputs in the file and {theirs:,} in the model.",
            step="Build the model with the arguments that the file was trained with.",
            causes=_LARGE if max(ours, theirs) >= _MANY else _MIDDLE,
        )


def _channels(left: Sequence[Mismatch], every: Sequence[Mismatch]) -> Iterator[ShapeCause]:
    if len(left) == 1 and len(left[0][1]) in (4, 5) and _differ_at(left[0]) == [1]:
        ours, theirs = left[0][1][1], left[0][2][1]
        yield ShapeCause(
            kind="input-channels",
            names=_names(left),
            says=f"{_first(left)}: this convolution takes {counted(ours, 'channel')} in the file and {theirs:,} in "
            "the model.",
            step=f"Build the model for {counted(ours, 'input channel')}, or adapt this one tensor, which changes it.",
        )


def _layout(left: Sequence[Mismatch], every: Sequence[Mismatch]) -> Iterator[ShapeCause]:
    if left and all(prod(ours) == prod(theirs) for _, ours, theirs in left):
        yield ShapeCause(
            kind="layout",
            names=_names(left),
            says=f"{_first(left)}: as many numbers in another shape, so one side writes this layer differently.",
            step="A reshape is right for a 1x1 convolution against a linear layer, and wrong for a permuted tensor: "
            "compare outputs.",
        )


def _other_size(left: Sequence[Mismatch], every: Sequence[Mismatch]) -> Iterator[ShapeCause]:
    if left:
        yield ShapeCause(
            kind="other-size",
            names=_names(left),
            says=f"{_first(left)}: {counted(len(left), 'tensor')} of another size, so this is another size or another "
            "network.",
            step="Build the model with the arguments that the file was trained with.",
        )


# In order: each is asked about what those before it left of every mismatch.
_FINDERS: tuple[Callable[[Sequence[Mismatch], Sequence[Mismatch]], Iterator[ShapeCause]], ...] = (
    _scalars,
    _placeholders,
    _packed,
    _transposed,
    _positions,
    _vocabulary,
    _classes,
    _one_layer,
    _channels,
    _layout,
    _other_size,
)


def _side(mismatch: Mismatch, side: int) -> Shape:
    """The shape in the file (1) or in the model (2)."""
    return mismatch[1] if side == 1 else mismatch[2]


def _is_packed(packed: Shape, plain: Shape) -> bool:
    """Whether the first holds the second at four bits a number, two of them in a byte: one column of bytes."""
    return len(packed) == 2 and packed[1] == 1 and len(plain) >= 2 and 2 * packed[0] == prod(plain) > 2


def _heads(left: Sequence[Mismatch]) -> list[Mismatch]:
    """Few modules whose rows alone differ, all from the same old to the same new count, and nothing else left."""
    rows = [m for m in left if _rows([m])]
    counts = {(m[1][0], m[2][0]) for m in rows}
    modules = {m[0].rpartition(".")[0] for m in rows}
    matrices = any(len(m[1]) >= 2 for m in rows)
    alone = len(left) - len(rows) <= 1
    named = all(is_head(m[0]) for m in rows)
    return rows if len(counts) == 1 and len(modules) <= _MOST_HEADS and matrices and alone and named else []


def _rows(mismatches: Sequence[Mismatch]) -> bool:
    """Whether the first dimension of all of them differs, and nothing else."""
    return bool(mismatches) and all(m[1] and m[2] and _differ_at(m) == [0] for m in mismatches)


def _is_normalised(mismatch: Mismatch, others: Sequence[Mismatch]) -> bool:
    """Whether running statistics of the same count are among the mismatches, as behind a convolution in the middle."""
    return any(
        name.endswith(("running_mean", "running_var")) and ours[:1] == mismatch[1][:1] for name, ours, _ in others
    )


def _is_table(mismatch: Mismatch) -> bool:
    """Whether this is a table of tokens with another number of rows."""
    last = mismatch[0].rpartition(".")[0].rpartition(".")[2]
    named = last in _TABLES or ("embed" in last and not any(part in mismatch[0] for part in _POSITIONS))
    return named and len(mismatch[1]) == 2 and _differ_at(mismatch) == [0]


def _is_wider(mismatch: Mismatch) -> bool:
    """Whether a vector has another length, or a matrix differs both ways: the network itself is wider."""
    at = _differ_at(mismatch)
    return (at == [0] and len(mismatch[1]) == 1) or len(at) > 1


def _differ_at(mismatch: Mismatch) -> list[int]:
    _, ours, theirs = mismatch
    if len(ours) != len(theirs):
        return [-1]
    return [i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b]


def _first(mismatches: Sequence[Mismatch]) -> str:
    name, ours, theirs = mismatches[0]
    return f"{name} is {human_shape(ours)} in the file and {human_shape(theirs)} in the model"
