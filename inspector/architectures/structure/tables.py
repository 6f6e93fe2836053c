"""Which matrices without a bias are tables that are looked up: Embedding and Linear keep the same one tensor."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from inspector.architectures.structure.paths import above
from inspector.architectures.structure.types import CONVOLUTIONS, MAYBE_TABLE, RECURRENT, Claim, Layer, LayerKind, Topic

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
_TOKENS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_WEIGHTED = CONVOLUTIONS | RECURRENT | {LayerKind.LINEAR, LayerKind.MATRIX, LayerKind.ATTENTION}
_MOST_NAMED = 6
# Alone they are the name of a table; in "token_mixer" or "pos_proj" they are not.
_ALONE = frozenset(
    {"tok", "toks", "token", "tokens", "vocab", "vocabulary", "pos", "position", "positions", "codebook"}
)
# Hours, days, kinds of a bond: fewer than what a layer puts out of itself.
_FEWEST_FEATURES = 32


def with_tables(layers: Sequence[Layer], *, ordered: bool) -> tuple[Layer, ...]:
    """A table where its name says so and no width speaks against it: nothing takes as many as it has rows, and it
    stands before all other weights of its module or has more rows than columns. Several beside each other that are all
    called so and are equally deep are all tables: a layer that takes as many rows takes them from elsewhere."""
    weighted = [layer for layer in layers if layer.kind in _WEIGHTED]
    taken = Counter(layer.inputs for layer in weighted)
    alike = _siblings(layers)
    given = {layer.outputs for layer in weighted if layer.path not in alike}
    started: set[str] = set()
    made: list[Layer] = []
    for layer in layers:
        parent = layer.path.rpartition(".")[0]
        if layer.kind is LayerKind.MATRIX and is_called_table(layer.path):
            rows, columns = layer.outputs, layer.inputs
            first = ordered and parent not in started
            # As a matrix it is among those that take as many as it has columns.
            others = taken[rows] - (rows == columns)
            evidence = ""
            if rows and columns and not others and (first or rows > columns):
                evidence = f"{layer.evidence}, its name, and no layer takes {rows:,}"
            elif layer.path in alike and (
                not others or (taken[columns] > alike[layer.path] and (rows in given or (rows or 0) < _FEWEST_FEATURES))
            ):
                evidence = f"{layer.evidence}, its name and those of the {alike[layer.path]:,} beside each other"
            if evidence:
                layer = replace(
                    layer, kind=LayerKind.EMBEDDING, inputs=rows, outputs=columns, evidence=evidence, biased=None
                )
            else:
                layer = replace(layer, more=MAYBE_TABLE)
        if layer.kind in _WEIGHTED:
            started.update(above(layer.path))
        made.append(layer)
    return tuple(made)


def _siblings(layers: Sequence[Layer]) -> dict[str, int]:
    """How many matrices called tables stand beside each other, all as deep and not all as long; those of layers that
    bring several widths to one differ in depth."""
    beside: dict[str, list[Layer]] = {}
    for layer in layers:
        if layer.kind is LayerKind.MATRIX and is_called_table(layer.path):
            beside.setdefault(layer.path.rpartition(".")[0], []).append(layer)
    return {
        layer.path: len(group)
        for group in beside.values()
        if len(group) > 1
        and len({layer.inputs for layer in group}) == 1
        and all(layer.inputs != layer.outputs for layer in group)
        for layer in group
    }


def is_called_table(path: str) -> bool:
    """By the words of its last name: "tok_embeddings", "embed_tokens", "wte", "tok", "field_embs.3"; not "unembed", not
    "to_embed"."""
    parent, _, last = path.rpartition(".")
    if last.isdecimal():
        last = parent.rpartition(".")[2]
    words = [word.lower() for word in _TOKENS.findall(last)]
    if words and all(word in _ALONE for word in words):
        return True
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
