"""Which matrices without a bias are tables that are looked up: Embedding and Linear keep the same one tensor."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from inspector.architectures.structure.paths import above
from inspector.architectures.structure.types import (
    CONVOLUTIONS,
    LIKELY_TABLE,
    MAYBE_TABLE,
    RECURRENT,
    Claim,
    Layer,
    LayerKind,
    Topic,
)
from inspector.checkpoint.types import TensorInfo

_WORDS = re.compile(
    r"(?:wte|wpe|lookup|vocab|table|(?:tok|tokens?|words?|char|pos|type|seg|src|tgt|class|label|item|user)?"
    r"(?:embed(?:ding|dings|der|s)?|embs?))"
)
# What is called an embedding and made by a linear layer, or takes one apart again.
_AGAINST = frozenset(
    {
        *(
            "un",
            "to",
            "out",
            "output",
            "outputs",
            "de",
            "inverse",
            "proj",
            "projection",
            "linear",
            "fc",
            "dense",
            "head",
        ),
        *("patch", "patches", "image", "images", "pixel", "pixels", "time", "timestep", "timesteps", "sigma", "noise"),
        *("up", "down", "mlp"),
    }
)
_EMBEDDED = frozenset({"time", "timestep", "timesteps", "noise", "mlp"})
_MULTIPLIED = _AGAINST | {"weight", "query", "key", "value", "q", "k", "v", "qkv", "gate", "attn", "conv", "merge"}
_TOKENS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_WEIGHTED = CONVOLUTIONS | RECURRENT | {LayerKind.LINEAR, LayerKind.MATRIX, LayerKind.ATTENTION}
_MOST_NAMED = 6
EDGES = re.compile(r"bins?$|boundar|edges?$", re.I)
# Alone they are the name of a table; in "token_mixer" or "pos_proj" they are not.
_ALONE = frozenset(
    {"tok", "toks", "token", "tokens", "vocab", "vocabulary", "pos", "position", "positions", "codebook"}
)
# Hours, days, kinds of a bond: fewer than what a layer puts out of itself.
_FEWEST_FEATURES = 32
_FEWEST_TOKENS = 8


def with_tables(layers: Sequence[Layer], *, ordered: bool) -> tuple[Layer, ...]:
    """A table where its name says so and no width speaks against it: nothing takes as many as it has rows, and it
    stands before all other weights of its module or has more rows than columns. What stands beside such a one, is
    called so and as deep is one too if it is short, or called so by nothing else."""
    taken_rows = {layer.inputs for layer in layers if layer.kind in _WEIGHTED}
    called = [
        layer
        for layer in layers
        if layer.kind is LayerKind.MATRIX and (is_called_table(layer.path) or _is_long(layer, taken_rows))
    ]
    certain = _certain(layers, called, ordered=ordered)
    edges = {_edges(layer.path, layer.more) for layer in layers if layer.kind is LayerKind.TENSOR}
    taken = Counter(layer.inputs for layer in layers if layer.kind in _WEIGHTED)
    beside: dict[tuple[str, int | None], list[Layer]] = {}
    for layer in called:
        beside.setdefault((layer.path.rpartition(".")[0], layer.inputs), []).append(layer)
    why: dict[str, str] = {}
    for (parent, columns), group in beside.items():
        several = len({layer.outputs for layer in group}) > 1 and all(layer.outputs != columns for layer in group)
        some = any(layer.path in certain for layer in group)
        for layer in group:
            rows, last = layer.outputs or 0, layer.path.rpartition(".")[2]
            if layer.path in certain:
                why[layer.path] = f"its name, and no layer takes {rows:,}"
            elif several and (not taken[rows] or (some and (rows < _FEWEST_FEATURES or _is_alone(last)))):
                why[layer.path] = f"its name and those of the {len(group):,} beside each other"
            elif (parent, _first_word(last), rows) in edges:
                why[layer.path] = f"its name, and {rows - 1:,} edges between its rows"
    paths = {layer.path for layer in called}
    return tuple(_told(layer, why.get(layer.path, "")) if layer.path in paths else layer for layer in layers)


def with_open_matrices(layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    """A matrix without a bias whose rows nothing takes may be a table as well, unless its name says otherwise: a row
    for each of so many, as wide as what others take."""
    taken = {layer.inputs for layer in layers if layer.kind in _WEIGHTED}
    return tuple(
        replace(layer, more=MAYBE_TABLE)
        if layer.kind is LayerKind.MATRIX
        and not layer.more
        and layer.inputs in taken
        and layer.outputs not in taken
        and not is_called_linear(layer.path)
        else layer
        for layer in layers
    )


def with_tied(layers: tuple[Layer, ...], tensors: Sequence[TensorInfo]) -> tuple[Layer, ...]:
    """A matrix that a later layer has as its own weights is a table: what is looked up is what gets a score (Press
    2017, section 3)."""
    keys: dict[tuple[object, ...], str] = {}
    tied: dict[str, str] = {}
    for tensor in tensors:
        parent, _, last = tensor.name.rpartition(".")
        if last != "weight" or tensor.storage_id is None or not tensor.nbytes:
            continue
        owner = keys.setdefault((tensor.storage_id, tensor.offset, tensor.shape, tensor.stride), parent)
        if owner != parent:
            tied.setdefault(owner, parent)
    weights = {layer.path for layer in layers if layer.kind in {LayerKind.LINEAR, LayerKind.MATRIX}}
    return tuple(
        _told(layer, f"the same tensor as {tied[layer.path]}.weight, which is tied to it")
        if layer.kind is LayerKind.MATRIX and tied.get(layer.path) in weights
        else layer
        for layer in layers
    )


def is_called_linear(path: str) -> bool:
    """A number of a Sequential or a word of what is multiplied."""
    last = path.rpartition(".")[2]
    words = {word.lower() for word in _TOKENS.findall(last)}
    table = any(_WORDS.fullmatch(word) for word in words) and not words & (_AGAINST - _EMBEDDED)
    return last.isdecimal() or (bool(words & _MULTIPLIED) and not table)


def _is_long(layer: Layer, taken: Collection[int | None]) -> bool:
    """Called an embedding of what a linear layer embeds as well (a time), with more rows than columns, which
    nothing takes: a linear layer's would be taken."""
    words = {word.lower() for word in _TOKENS.findall(layer.path.rpartition(".")[2])}
    called = any(_WORDS.fullmatch(word) for word in words) and not words & (_AGAINST - _EMBEDDED)
    return called and (layer.outputs or 0) > (layer.inputs or 0) and layer.outputs not in taken


def _told(layer: Layer, why: str) -> Layer:
    if not why:
        return replace(layer, more=MAYBE_TABLE)
    return replace(
        layer,
        kind=LayerKind.EMBEDDING,
        inputs=layer.outputs,
        outputs=layer.inputs,
        evidence=f"{layer.evidence}, {why}",
        more="",
        biased=None,
    )


def _certain(layers: Sequence[Layer], called: Sequence[Layer], *, ordered: bool) -> frozenset[str]:
    """Paths of those against which no width speaks."""
    open_ = {layer.path for layer in called}
    taken = Counter(layer.inputs for layer in layers if layer.kind in _WEIGHTED)
    started: set[str] = set()
    found: set[str] = set()
    for layer in layers:
        parent, _, last = layer.path.rpartition(".")
        if last.isdecimal():
            # One of a list stands where the list does.
            parent = parent.rpartition(".")[0]
        rows, columns = layer.outputs, layer.inputs
        if layer.path in open_ and rows and columns:
            # As a matrix it is among those that take as many as it has columns.
            others = taken[rows] - (rows == columns)
            if not others and ((ordered and parent not in started) or rows > columns):
                found.add(layer.path)
                continue
        if layer.kind in _WEIGHTED:
            started.update(above(layer.path))
    return frozenset(found)


def _first_word(name: str) -> str:
    return next((word.lower() for word in _TOKENS.findall(name)), "")


def _edges(path: str, more: str) -> tuple[str, str, int]:
    """(module, first word, rows) of a table between whose rows a tensor called bins would hold the edges."""
    parent, _, last = path.rpartition(".")
    return (parent, _first_word(last), int(more) + 1) if more.isdecimal() and EDGES.search(last) else ("", "", 0)


def _is_alone(name: str) -> bool:
    words = [word.lower() for word in _TOKENS.findall(name)]
    return bool(words) and all(word in _ALONE for word in words)


def is_called_table(path: str) -> bool:
    """By the words of its last name: "tok_embeddings", "embed_tokens", "wte", "tok", "field_embs.3"; not "unembed", not
    "to_embed"."""
    parent, _, last = path.rpartition(".")
    if last.isdecimal():
        last = parent.rpartition(".")[2]
    if _is_alone(last):
        return True
    words = [word.lower() for word in _TOKENS.findall(last)]
    return any(_WORDS.fullmatch(word) for word in words) and not _AGAINST & set(words)


def first_matrices(layers: Sequence[Layer]) -> tuple[Layer, ...]:
    """Matrices without bias that begin the file, of which nothing takes the rows and nothing puts out the columns."""
    begins: list[Layer] = []
    for layer in layers:
        if layer.kind is LayerKind.MATRIX:
            begins.append(layer)
        elif layer.kind not in {LayerKind.EMBEDDING, LayerKind.TENSOR}:
            break
    own = {layer.path for layer in begins}
    rest = [layer for layer in layers if layer.path not in own and layer.kind in _WEIGHTED]
    if not rest:
        return ()
    taken = {layer.inputs for layer in rest}
    given = {layer.outputs for layer in rest}
    # What follows on another is a chain of linear layers.
    before = [None, *(layer.outputs for layer in begins)]
    return tuple(
        layer
        for width, layer in zip(before, begins, strict=False)
        if layer.outputs not in taken and layer.inputs not in given and layer.inputs != width
    )


def maybe_tables(layers: Sequence[Layer]) -> Iterator[Claim]:
    """The same as one claim, which leaves both readings open."""
    found = first_matrices(layers)
    yield from _as_many_as_come_out(layers, {layer.path for layer in found})
    if found:
        named = [f"{layer.name} {layer.outputs:,} x {layer.inputs:,}" for layer in found[:_MOST_NAMED]]
        more = f" and {len(found) - _MOST_NAMED:,} more" if len(found) > _MOST_NAMED else ""
        what = "tables of vectors, or linear layers" if len(found) > 1 else "a table of vectors, or a linear layer"
        yield Claim(
            topic=Topic.FED,
            says=f"{', '.join(named)}{more}: {what} without bias.",
            evidence="the first of the file; nothing puts out their columns or takes their rows",
            value=found[0].outputs,
            path=found[0].path,
        )


def with_tokens(layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
    """The first matrix that may be a table and has as many rows as the last layer puts out likely is one."""
    last = _last_linear(layers)
    told = {layer.path for layer in first_matrices(layers)}
    likely = next(
        (
            one
            for one in layers
            if one.more == MAYBE_TABLE
            and last is not None
            and one.outputs == last.outputs
            and (one.outputs or 0) >= _FEWEST_TOKENS
            and one.path not in told
        ),
        None,
    )
    return tuple(replace(one, more=LIKELY_TABLE) if one is likely else one for one in layers)


def _last_linear(layers: Sequence[Layer]) -> Layer | None:
    return next((one for one in reversed(layers) if one.kind is LayerKind.LINEAR), None)


def _as_many_as_come_out(layers: Sequence[Layer], told: Collection[str]) -> Iterator[Claim]:
    """A matrix that may be a table, with as many rows as the last layer puts out."""
    last = _last_linear(layers)
    layer = next((one for one in layers if one.more == LIKELY_TABLE), None)
    if layer is not None and last is not None and layer.path not in told:
        yield Claim(
            topic=Topic.FED,
            says=f"{layer.name} {layer.outputs:,} x {layer.inputs:,} has a row for each of the {last.outputs:,} "
            f"that {last.name} puts out: likely a table of as many tokens.",
            evidence=f"{layer.evidence}; {last.evidence}",
            value=layer.outputs,
            path=layer.path,
        )
