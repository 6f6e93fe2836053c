"""In which forms two sides are read against each other by words: as they are, or with what only hides the words undone.

Five things hide them. Separators, counters and misspelt words are put right by `hidden_words.py`. torchvision numbers
the layers of some families where timm names them (`features.1.0.block.5`): one table (`rules/other_library.py`) says
what each number is, and a third author's words are compared with those. Where one side stores its matrices (in, out),
no module of it holds what its counterpart holds: then matrices count either way round, and the biases say of each layer
which size is its output's. Layers may be counted in groups on one side only (`ungrouped.py`). And CLIP's projections
are parameters, (in, out), where others have a layer.

Only a reading that is sure counts: what is asked about is asked in the file's and the target's own names and shapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from inspector.keys.placing.by_words import Worded, by_words
from inspector.keys.placing.hidden_words import against_the_count, unhidden
from inspector.keys.placing.provenance import is_projection, written_by
from inspector.keys.placing.roles import split_name, squeezed
from inspector.keys.placing.tree import Leaf
from inspector.keys.placing.ungrouped import ungrouped

Both = tuple[Sequence[Leaf], Sequence[Leaf]]


def read_both(
    leaves: Sequence[Leaf],
    places: Sequence[Leaf],
    *,
    computed: frozenset[str],
    ordered: bool,
    by_table_only: bool = False,
) -> Worded | None:
    """The reading of both sides as they are, or a sure one of another form of them.

    by_table_only: only one in which a table names what has numbers.
    """
    plain = None if by_table_only else by_words(leaves, places, computed=computed, ordered=ordered)
    if plain is not None and against_the_count(plain.links):
        plain = replace(plain, loose=True)
    if plain is not None and plain.sure:
        return plain
    for ours, theirs, first in _forms(leaves, places, by_table_only, ordered):
        found = by_words(ours, theirs, computed=computed, ordered=ordered)
        if found is not None and found.sure and not against_the_count(found.links):
            links = _given_back(found, (ours, theirs), (leaves, places))
            if links is not None:
                said = {one.name: leaf.name for one, leaf in zip(ours, leaves, strict=True)}
                return replace(found, links=links, said=frozenset(said[name] for name in found.said), first=first)
    return plain


def _forms(
    leaves: Sequence[Leaf], places: Sequence[Leaf], by_table_only: bool, ordered: bool
) -> Iterator[tuple[Sequence[Leaf], Sequence[Leaf], str]]:
    """Both sides in another form, and what was done to them."""
    spelled = _spelled(leaves), _spelled(places)
    ours, theirs = spelled[0] or leaves, spelled[1] or places
    first = ""
    if any(spelled):
        first = f"name the numbers of the {'file' if spelled[0] else 'target'} as timm does"
        yield ours, theirs, first
    elif by_table_only:
        return
    shown = unhidden(ours, theirs, ordered=ordered)
    if shown[2]:
        ours, theirs = shown[0] or ours, shown[1] or theirs
        first = f"{first}, {shown[2]}" if first else shown[2]
        yield ours, theirs, first
    flat = ungrouped(ours), ungrouped(theirs)
    if (flat[0] is None) is not (flat[1] is None):
        ours, theirs = flat[0] or ours, flat[1] or theirs
        counted = f"count the layers of the {'file' if flat[0] else 'target'} through their groups"
        first = f"{first}, {counted}" if first else counted
        yield ours, theirs, first
    layers = _projections_as_layers(ours), _projections_as_layers(theirs)
    if (layers[0] is None) is not (layers[1] is None):
        ours, theirs = layers[0] or ours, layers[1] or theirs
        yield ours, theirs, first
    if _lie_otherwise(ours, theirs):
        yield [_either_way(leaf) for leaf in ours], [_either_way(place) for place in theirs], first


def _given_back(found: Worded, read: Both, own: Both) -> tuple[tuple[Leaf, Leaf], ...] | None:
    """The links between the sides' own tensors; None where matrices that count either way round are of other sizes."""
    ours = {one.name: leaf for one, leaf in zip(read[0], own[0], strict=True)}
    theirs = {one.name: place for one, place in zip(read[1], own[1], strict=True)}
    links = tuple((ours[leaf.name], theirs[place.name]) for leaf, place in found.links)
    alike = all(squeezed(leaf.shape) == squeezed(place.shape) for leaf, place in found.links)
    as_they_are = all(
        one.shape == leaf.shape for one, leaf in zip((*read[0], *read[1]), (*own[0], *own[1]), strict=True)
    )
    return links if alike or as_they_are else None


def _spelled(side: Sequence[Leaf]) -> list[Leaf] | None:
    """With the names that timm has for them, where all are torchvision's of one family; else None."""
    from inspector.keys.rules.other_library import spelled_out

    names = spelled_out(side)
    return [Leaf(name, leaf.shape) for name, leaf in zip(names, side, strict=True)] if names else None


def _projections_as_layers(side: Sequence[Leaf]) -> list[Leaf] | None:
    """With CLIP's projections as linear layers' weights, where the names prove its code; else None."""
    library = written_by(leaf.name for leaf in side)
    if library is None or not library.projections:
        return None
    return [
        Leaf(f"{leaf.name}.weight", leaf.shape[::-1]) if leaf.shape and is_projection(leaf.name, library) else leaf
        for leaf in side
    ]


def _either_way(leaf: Leaf) -> Leaf:
    shape = squeezed(leaf.shape)
    return Leaf(leaf.name, tuple(sorted(shape))) if shape is not None and len(shape) >= 2 else leaf


def _lie_otherwise(leaves: Sequence[Leaf], places: Sequence[Leaf]) -> bool:
    """Whether the biases of one side say that its matrices are (in, out), and those of the other (out, in)."""
    return {_lies_in_out(leaves), _lies_in_out(places)} == {True, False}


def _lies_in_out(side: Sequence[Leaf]) -> bool:
    """Where no bias shows it, as its names have it: what is asked of each tensor after that is another matter."""
    shown = _shown_by_biases(side)
    return any(split_name(leaf.name)[1] == "kernel" for leaf in side) if shown is None else shown


def _shown_by_biases(side: Sequence[Leaf]) -> bool | None:
    """Whether matrices and kernels of some name beside a bias have their outputs last; None where none tells, or one
    name is of two minds."""
    there = {leaf.name: leaf.shape for leaf in side}
    ways: dict[str, set[bool]] = {}
    for leaf in side:
        shape = leaf.shape or ()
        module, last = split_name(leaf.name)
        if len(shape) < 2 or shape[0] == shape[-1] or not (last in ("w", "W") or last.endswith(("weight", "kernel"))):
            continue
        own = "b" if last in ("w", "W") else f"{last.removesuffix('weight').removesuffix('kernel')}bias"
        bias = there.get(f"{module}.{own}")
        if bias in (shape[:1], shape[-1:]):
            ways.setdefault(last, set()).add(bias == shape[-1:])
    # BERT's own code has kernels and, in its head, weights: each name lies in its own way.
    if not ways or any(len(found) > 1 for found in ways.values()):
        return None
    return any(True in found for found in ways.values())
