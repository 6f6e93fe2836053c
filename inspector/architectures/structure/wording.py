"""Layers one after the other in words: "3x3 convolutions 1-16-32-16-8, linear layer 8-10; a batch norm after each"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby, pairwise

from inspector.architectures.structure.flat import flat_text
from inspector.architectures.structure.types import (
    BLOCK_NOTATION,
    BY_PLACES,
    CHAIN_NOTATION,
    CONVOLUTIONS,
    EITHER_WAY,
    LIKELY_TABLE,
    LINEAR_NOTATION,
    MAYBE_TABLE,
    MAYBE_TABLES,
    NORMS,
    RECURRENT,
    SCALES,
    Claim,
    Layer,
    LayerKind,
    Topic,
)

_MOST_SEGMENTS, _MOST_WIDTHS, _MOST_NAMED, _MOST_COLUMNS = 8, 12, 8, 12
_MOST_OWN = 4
_LEAST_REPEATED = 3
_MOST_UNCOUNTED = 5
_MOST_FOLDED = 40
_MOST_NORMS = 3
_NORM_WORDS = {
    LayerKind.BATCH_NORM: ("batch norm", "batch norms"),
    LayerKind.NORM: ("norm", "norms"),
    LayerKind.SLOPE: ("scale or PReLU slope", "scales or PReLU slopes"),
    LayerKind.PRELU: ("PReLU", "PReLUs"),
}
_CHAIN, _BLOCKS = re.compile(r"\d-[\d,]+-[\d,]*\d"), re.compile(r"\d / \d")
_MATRICES = frozenset({LayerKind.LINEAR, LayerKind.MATRIX})
_CHAINED = CONVOLUTIONS | _MATRICES
_UNSAID = NORMS | {LayerKind.TENSOR, LayerKind.FOURIER}
# Said in another way than behind the kind.
_INNER = ("", BY_PLACES, EITHER_WAY, *MAYBE_TABLES)
_WORDS = {LayerKind.MATRIX: "matrix without bias", LayerKind.EMBEDDING: "table"}
_PLURALS = {LayerKind.MATRIX: "matrices without bias"}


def layers_text(layers: Sequence[Layer], root: str = "") -> str:
    """root: the module that they are all in, whose name is left out. What is between two layers is not said: their
    widths stand side by side where they agree."""
    wide = [layer for layer in layers if layer.kind not in _UNSAID]
    groups = [list(group) for _, group in groupby(wide, key=_sort)]
    said = _segments(wide, root)
    folded = flat_text(wide, layers, lambda some: _segments(some, root)) if len(said) > _MOST_SEGMENTS else []
    if folded and len(folded) <= min(_MOST_FOLDED, len(said) - 1):
        said = folded
    elif len(said) > _MOST_SEGMENTS:
        left = len(said) - _MOST_SEGMENTS
        half = _MOST_SEGMENTS // 2
        said = [*said[:half], f"... {sum(map(len, groups[half : half + left])):,} more ...", *said[half + left :]]
    text = ", ".join(said)
    own = [layer for layer in layers if layer.kind is LayerKind.TENSOR]
    notes = [note for note in (norms_text(layers, wide, root), _biases(wide), _own(own, root)) if note]
    return "; ".join([text, *notes] if text else notes)


def _segments(layers: Sequence[Layer], root: str) -> list[str]:
    return [
        _segment(one, root) + _open_squares(one) for one in (list(group) for _, group in groupby(layers, key=_sort))
    ]


def _sort(layer: Layer) -> tuple[object, ...]:
    """Layers of one sort are said together."""
    kind = LayerKind.CONVOLUTION if layer.is_square else layer.kind
    return kind, layer.kernel, "" if layer.more in _INNER and layer.more not in MAYBE_TABLES else layer.more


def _open_squares(group: Sequence[Layer]) -> str:
    """Which of them may run the other way, where others of the network do."""
    squares = [layer for layer in group if layer.more == EITHER_WAY]
    if not squares:
        return ""
    widths = sorted({f"{layer.inputs:,}-{layer.outputs:,}" for layer in squares})
    which = "" if len(squares) == len(group) else f"{widths[0]} " if len(widths) == 1 else "the square ones "
    return f" ({which}{EITHER_WAY})"


def _segment(group: Sequence[Layer], root: str) -> str:
    first = group[0]
    what = kind_text(first, len(group))
    if first.kind is LayerKind.EMBEDDING:
        return f"{what} " + ", ".join(f"{layer.inputs:,} x {layer.outputs:,}" for layer in group[:_MOST_NAMED])
    if first.kind not in _CHAINED:
        return f"{what} " + ", ".join(ends_text(layer) for layer in group[:_MOST_NAMED])
    if _is_chain(group):
        widths = [group[0].inputs, *(layer.outputs for layer in group)]
        if len(group) > _LEAST_REPEATED:
            what = f"{len(group):,} {what}"
        alike = len(set(widths)) == 1 and len(group) > _LEAST_REPEATED
        if len(set(widths)) == 1 and not alike:
            return f"{what} {'-'.join(f'{width:,}' for width in widths)}"
        return f"{what}, all {widths[0]:,} wide" if alike else f"{what} {widths_text(widths)}"
    runs = _runs(group)
    if len(group) > _MOST_NAMED and len(runs) <= _MOST_NAMED // 2:
        return f"{what} " + ", ".join(_run_text(run) for run in runs)
    if len(runs) > 1 and all(len(run) > 1 for run in runs) and len({_run_text(run) for run in runs}) == 1:
        names = ", ".join(f"{_name(run[0], root)} to {_name(run[-1], root)}" for run in runs[:_MOST_NAMED])
        return f"{len(runs):,} equal chains of {what} {_run_text(runs[0])} ({names})"
    if len(group) > 1 or first.kind is LayerKind.MATRIX:
        number = f"{len(group):,} " if len(group) > _MOST_UNCOUNTED else ""
        return f"{number}{what} {_named(group, root)}"
    return f"{what} {ends_text(first)}"


def kind_text(layer: Layer, number: int) -> str:
    """ "3x3 convolutions", "1-wide 1-d convolution (either way)"."""
    kind = LayerKind.CONVOLUTION if layer.is_square else layer.kind
    open_ = kind is LayerKind.EITHER_CONVOLUTION
    word = "convolution" if open_ else _WORDS.get(kind, kind.value)
    if number > 1:
        word = "convolutions" if open_ else _PLURALS.get(kind, f"{word}s")
    if layer.more == LIKELY_TABLE:
        return LIKELY_TABLE
    more = f", {layer.more}" if layer.more not in _INNER else ""
    which = f" ({'either way' if open_ else ''}{more})".replace("(, ", "(") if open_ or more else ""
    size = f"{layer.kernel[0]}-wide 1-d" if len(layer.kernel) == 1 else "x".join(map(str, layer.kernel))
    return f"{size} {word}{which}".strip()


def ends_text(layer: Layer) -> str:
    """ "64-128"; of a depthwise convolution its filters."""
    if layer.kind is LayerKind.DEPTHWISE:
        return f"{layer.outputs:,}"
    if layer.more == LIKELY_TABLE:
        return f"{layer.outputs:,} x {layer.inputs:,} (or a matrix without bias {layer.inputs:,}-{layer.outputs:,})"
    if layer.more == MAYBE_TABLE:
        return f"{layer.inputs:,}-{layer.outputs:,} (or a table of {layer.outputs:,} x {layer.inputs:,})"
    if layer.inputs is None or layer.outputs is None:
        return f"{layer.outputs or layer.inputs or 0:,}"
    return f"{layer.inputs:,}-{layer.outputs:,}"


def _is_chain(group: Sequence[Layer]) -> bool:
    return (
        len(group) > 1
        and group[0].kind not in {LayerKind.DEPTHWISE}
        and all(a.more not in (BY_PLACES, *MAYBE_TABLES) and a.outputs == b.inputs for a, b in pairwise(group))
        # Three projections side by side are as wide as deep, and no chain.
        and not (group[0].kind is LayerKind.MATRIX and all(layer.inputs == layer.outputs for layer in group))
    )


def widths_text(widths: Sequence[int | None]) -> str:
    """ "1-64 (16 times)-1"; of very many the middle is left out with a count."""
    said = []
    for width, group in groupby(widths):
        times = len(list(group))
        text = f"{width:,}" if width is not None else "?"
        said += [f"{text} ({times:,} times)"] if times > _LEAST_REPEATED else [text] * times
    return _shortened(said, "-")


def _run_text(run: Sequence[Layer]) -> str:
    """ "64-128-256"; of several as wide as deep, which need be no chain, how many: "4 of 8-8"."""
    widths = [run[0].inputs, *(one.outputs for one in run)]
    if len(set(widths)) == 1 and len(run) > 1:
        return f"{len(run):,} of {ends_text(run[0])}"
    return widths_text(widths)


def _runs(group: Sequence[Layer]) -> list[list[Layer]]:
    runs = [[group[0]]]
    for before, layer in pairwise(group):
        if before.outputs != layer.inputs or layer.more == BY_PLACES:
            runs.append([])
        runs[-1].append(layer)
    return runs


def _named(group: Sequence[Layer], root: str) -> str:
    """Each by its name, equal neighbours together: "wq, wk, wv 192-192". Of very many in one list only the widths."""
    said = []
    if len(group) > _MOST_NAMED and all(_name(layer, root).partition(".")[0].isdecimal() for layer in group):
        for ends, run in groupby(group, key=ends_text):
            times = len(list(run))
            said.append(f"{ends} ({times:,} times)" if times > 1 else ends)
        return _shortened(said, ", ")
    for ends, run in groupby(group[:_MOST_NAMED], key=ends_text):
        names = [_name(layer, root) for layer in run]
        # A number of a Sequential says nothing.
        if not all(name.isdecimal() for name in names):
            said.append(f"{', '.join(names)} {ends}")
        else:
            said.append(f"{ends} ({len(names):,} times)" if len(names) > 1 else ends)
    more = len(group) - _MOST_NAMED
    return ", ".join(said) + (f" and {more:,} more" if more > 0 else "")


def _name(layer: Layer, root: str) -> str:
    return layer.path.removeprefix(f"{root}.") if root else layer.path


def norms_text(layers: Sequence[Layer], wide: Sequence[Layer] = (), root: str = "") -> str:
    """After which layers something as wide stands in the file; else how many norms there are."""
    norms = [layer for layer in layers if layer.kind in NORMS]
    own = [layer for layer in layers if layer.kind is not LayerKind.TENSOR]
    paths = {layer.path for layer in wide}
    after = [
        a for a, b in pairwise(own) if b.kind is LayerKind.BATCH_NORM and a.outputs == b.outputs and a.path in paths
    ]
    slopes = [layer for layer in norms if layer.kind in SCALES]
    said = []
    if after and len(after) == len(norms) - len(slopes):
        norms = slopes
        if len(after) == len(wide):
            said = ["a batch norm after each" if len(wide) > 1 else "a batch norm after it"]
        else:
            names = [_name(layer, root) for layer in after]
            named = "" if len(names) > _MOST_OWN or all(map(str.isdecimal, names)) else f" ({', '.join(names)})"
            said = [f"a batch norm after {len(after):,} of {len(wide):,}{named}"]
    groups = [list(group) for _, group in groupby(norms, key=lambda layer: layer.kind)]
    if len(groups) > _MOST_NORMS:
        groups = [[one for one in norms if one.kind is kind] for kind in dict.fromkeys(one.kind for one in norms)]
    first = _first_text(layers) if groups and list(layers[: len(groups[0])]) == groups[0] else ""
    return ", ".join([*said, *(f"{first if n == 0 else ''}{_norms_alike(one)}" for n, one in enumerate(groups))])


def _norm_kinds(layers: Sequence[Layer]) -> str:
    """Of blocks of several widths: "each with a batch norm, a PReLU, a batch norm"."""
    said: list[str] = []
    more: list[str] = []
    for kind, group in groupby(layer.kind for layer in layers if layer.kind in NORMS):
        one, many = _NORM_WORDS.get(kind, ("scale", "scales"))
        times = len(list(group))
        (said if len(said) < _MOST_OWN else more).append(f"{times:,} {many}" if times > 1 else f"a {one}")
    more = [f"{len(more):,} more"] if more else []
    return f"each with {_first_text(layers)}{', '.join([*said, *more])}" if said else ""


def _first_text(layers: Sequence[Layer]) -> str:
    """Whether a norm comes before all weights."""
    parent, _, number = layers[0].path.rpartition(".")
    behind = next((layer for layer in layers if layer.kind in _CHAINED), None)
    # Numbers of one Sequential are the order of calls; other modules may be made in any order.
    in_order = behind is not None and number.isdecimal() and behind.path.rpartition(".")[0] == parent
    return "first " if in_order and layers[0].kind in (LayerKind.BATCH_NORM, LayerKind.NORM) else ""


def _norms_alike(found: Sequence[Layer]) -> str:
    """ "2 batch norms of 64, 128" """
    one, many = _NORM_WORDS.get(found[0].kind, ("scale", "scales"))
    widths = list(dict.fromkeys(layer.outputs for layer in found)) if _is_one(found) else [x.outputs for x in found]
    said = [f"{width:,}" for width in widths[:_MOST_NAMED] if width] + ["..."] * (len(widths) > _MOST_NAMED)
    return f"{f'{len(found):,} {many}' if len(found) > 1 else f'a {one}'} of {', '.join(said)}"


def _is_one(norms: Sequence[Layer]) -> bool:
    return len({layer.outputs for layer in norms}) == 1


def _biases(wide: Sequence[Layer]) -> str:
    told = [layer.biased for layer in wide if layer.kind in CONVOLUTIONS | {LayerKind.LINEAR}]
    if not told or None in told:
        return ""
    if not any(told):
        return "without biases" if len(told) > 1 else "without a bias"
    if sum(bool(one) for one in told) == 1 < len(told) and (told[0] or told[-1]):
        return f"a bias only in the {'first' if told[0] else 'last'}"
    return ""


def _own(own: Sequence[Layer], root: str) -> str:
    """Parameters that are in no layer, by their names."""
    if not own:
        return ""
    said = [f"{_name(layer, root)} {layer.more}".strip() for layer in own[:_MOST_OWN]]
    more = f" and {len(own) - _MOST_OWN:,} more" if len(own) > _MOST_OWN else ""
    return f"own {'tensor' if len(own) == 1 else 'tensors'} {', '.join(said)}{more}"


def is_weighty(layer: Layer) -> bool:
    """Whether a sentence of it has a width: no norm, and no tensor of its own."""
    return layer.kind in _CHAINED | RECURRENT | {LayerKind.ATTENTION, LayerKind.BILINEAR, LayerKind.EMBEDDING}


def columns_text(blocks: Sequence[Sequence[Layer]], roots: Sequence[str]) -> str:
    """Blocks of the same kinds and kernels: each layer of theirs with its widths in all of them."""
    wide = [[layer for layer in block if layer.kind not in _UNSAID] for block in blocks]
    columns = list(zip(*wide, strict=False))
    said = _folded([_column(column) for column in columns])
    first, last = ([layer for layer in block if layer.kind is LayerKind.TENSOR] for block in (blocks[0], blocks[-1]))
    own = _own(first, roots[0])
    if own and [layer.more for layer in first] != [layer.more for layer in last]:
        own = f"{own} in the first, {_own(last, roots[-1])} in the last"
    norms = {norms_text(block, layers, root) for block, layers, root in zip(blocks, wide, roots, strict=True)}
    return "; ".join(
        note
        for note in (", ".join(said), norms.pop() if len(norms) == 1 else _norm_kinds(blocks[0]), _biases(wide[0]), own)
        if note
    )


def _folded(texts: Sequence[str]) -> list[str]:
    """Equal neighbours once; of very many, what stands once before what repeats."""
    runs = [(text, len(list(group))) for text, group in groupby(texts)]
    kept = runs
    if len(runs) > _MOST_COLUMNS:
        often = Counter(text for text, _ in runs)
        # sorted keeps the order among those of one count.
        places = sorted(range(len(runs)), key=lambda place: often[runs[place][0]])[:_MOST_COLUMNS]
        kept = [runs[place] for place in sorted(places)]
    said = [f"{times:,} times {text}" if times > 1 else text for text, times in kept]
    left = len(texts) - sum(times for _, times in kept)
    return [*said, f"and {left:,} more layers in each"] if left else said


def _column(column: Sequence[Layer]) -> str:
    what = kind_text(column[0], 1) + _open_squares(column)
    if _is_chain(column) and len({layer.outputs for layer in column}) > 1:
        return f"{what} {widths_text([column[0].inputs, *(layer.outputs for layer in column)])} from block to block"
    return f"{what} {_shortened([text for text, _ in groupby(column, key=ends_text)], ' / ')}"


def _shortened(said: Sequence[str], between: str) -> str:
    if len(said) > _MOST_WIDTHS:
        half = _MOST_WIDTHS // 2
        said = [*said[:half], f"... {len(said) - 2 * half:,} more ...", *said[-half:]]
    return between.join(said)


def notation(claims: Sequence[Claim]) -> str:
    """How widths are written, of what stands in the claims; "" where nothing of it does."""
    said = [claim.says for claim in claims if claim.topic in {Topic.LAYERS, Topic.REPEATS}]
    chains = [text for text in said if _CHAIN.search(text)]
    parts = [CHAIN_NOTATION if any("convolution" in text for text in chains) else LINEAR_NOTATION] if chains else []
    parts += [BLOCK_NOTATION] if any(_BLOCKS.search(text) for text in said) else []
    return f"{'; '.join(parts)}." if parts else ""
