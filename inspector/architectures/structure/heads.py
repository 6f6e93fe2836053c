"""Several outputs: layers called heads, or beside the last layer on the same widths, whose output nothing takes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from inspector.architectures.structure.attention import is_joint
from inspector.architectures.structure.paths import above
from inspector.architectures.structure.projections import role_of
from inspector.architectures.structure.types import CONVOLUTIONS, NORMS, Claim, Layer, LayerKind, Topic

_WEIGHTED = CONVOLUTIONS | {LayerKind.LINEAR, LayerKind.MATRIX}
_WORDS = (
    "heads?|policy|value|actor|critic|pi|vf|advantage|logits?|class(?:es|ifier|if|_embed)?|cls|heatmaps?|hm|pafs?|"
    "reg(?:ression)?|box(?:es)?|bbox|masks?|mu|mean|log_?var|log_?std|std|sigma|alpha|density|rgb|colou?r|pred(?:iction)?s?|"
    "out(?:put)?s?|final|side|wh|offset|score|start|end|age|gender|depth|normals?|flow|centerness|keypoints?|"
    "objectness|obj"
)
_CALLED = re.compile(rf"(?:^|_)(?:{_WORDS})\d*(?:_|$)|_?(?:head|policy|classifier|predictor)$", re.I)
_WHOLE = re.compile(rf"(?:{_WORDS})\d*", re.I)
_MODULATES = re.compile(r"ada_?ln|modulation|gate|attn|attention", re.I)
_MOST, _MOST_DEEP = 12, 3
# Each is held against all layers behind it.
_MOST_ASKED = 64
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def taken_widths(layers: Sequence[Layer], *, ordered: bool) -> Counter[int]:
    """What layers take. The network's first layer takes what comes from outside, and no other layer's output."""
    taken = Counter(one.inputs for one in layers if one.inputs and one.kind is not LayerKind.EMBEDDING)
    first = next((one for one in layers if one.kind in _WEIGHTED and one.inputs), None) if ordered else None
    if first is not None and first.inputs:
        taken[first.inputs] -= 1
    return Counter({width: number for width, number in taken.items() if width and number > 0})


def heads(layers: Sequence[Layer], *, ordered: bool) -> Claim | None:
    """One claim for two or more; None elsewhere."""
    weighted = [layer for layer in layers if layer.kind in _WEIGHTED and layer.outputs and layer.inputs]
    if len(weighted) < 3:
        return None
    taken = taken_widths(layers, ordered=ordered)
    # A map of one channel goes into no linear layer of one input but pooled.
    taken_by_maps = taken_widths([one for one in layers if one.kind in CONVOLUTIONS], ordered=False)
    weighty = [layer for layer in layers if layer.kind not in NORMS | {LayerKind.TENSOR}]
    last = weighted[-1] if ordered and weighty[-1] is weighted[-1] else None
    parallel = _parallel(weighted, last) if last is not None else frozenset[str]()
    found = [
        layer
        for layer in weighted
        if not (taken_by_maps if layer.kind in CONVOLUTIONS and layer.outputs == 1 else taken)[layer.outputs or 0]
        and not is_joint(layer)
        and role_of(layer) is None
        and layer.kind is not LayerKind.TRANSPOSED
        and _MODULATES.search(layer.path) is None
        and (layer.path in parallel or is_called_head(layer))
    ]
    # What is halved, or joined with others, on its way to a layer behind it is no output of its own.
    found = found[-_MOST_ASKED:]
    found = [layer for layer in found if layer.path in parallel or not _goes_on(layer, weighted, taken)]
    if len(found) < 2:
        return None
    shapes = {(one.kind, one.kernel, one.inputs, one.outputs, one.path.rpartition(".")[2]) for one in found}
    paths = {one.path for one in found}
    found = [
        one
        for one in weighted
        if one.path in paths or (one.kind, one.kernel, one.inputs, one.outputs, one.path.rpartition(".")[2]) in shapes
    ]
    named = "; ".join(_said(list(group)) for _, group in groupby(found[:_MOST], key=_output))
    more = f" and {len(found) - _MOST:,} more" if len(found) > _MOST else ""
    first = any(layer.outputs == weighted[0].inputs for layer in found)
    also = next((one for one in weighted[1:] if one.inputs == 1 and any(x.outputs == 1 for x in found)), None)
    beside = f"; {also.name} takes one value as well" if also is not None else ""
    return Claim(
        topic=Topic.ENDS_IN,
        says=f"{len(found):,} layers put out widths that no {'layer but the first' if first else 'other layer'} takes "
        f"alone: {named}{more}{beside}.",
        evidence="; ".join(layer.evidence for layer in found[:4]),
        value=found[-1].outputs,
        path=found[-1].path,
    )


def _output(layer: Layer) -> tuple[int, bool]:
    return layer.outputs or 0, layer.kind in CONVOLUTIONS


def _said(group: Sequence[Layer]) -> str:
    """ "side1, side2, out 1 value each at every place"."""
    width, places = _output(group[0])
    names = ", ".join(layer.name for layer in group)
    each = " each" if len(group) > 1 else ""
    return f"{names} {width:,} {'value' if width == 1 else 'values'}{each}{' at every place' if places else ''}"


def is_head_name(name: str) -> bool:
    """Whether a module's own name says nothing else: "outs", not "merge_outs"."""
    return _WHOLE.fullmatch(name) is not None


def is_called_head(layer: Layer) -> bool:
    """By one of its last names, "policy_head.linear_pass", "valueHead", "heatmaps.1.0"."""
    names = [_CAMEL.sub("_", name) for name in layer.path.split(".") if not name.isdecimal()]
    return any(_CALLED.search(name) for name in names[-_MOST_DEEP:])


def _parallel(weighted: Sequence[Layer], last: Layer) -> frozenset[str]:
    """Paths of the last layer and of the ends of modules beside its own that begin with the same width."""
    found: set[str] = set()
    path = last.path
    for parent in list(above(path))[:_MOST_DEEP]:
        depth = parent.count(".") + 1 if parent else 0
        children: dict[str, list[Layer]] = {}
        for layer in weighted:
            if not parent or layer.path.startswith(f"{parent}."):
                children.setdefault(layer.path.split(".")[depth], []).append(layer)
        own = children[last.path.split(".")[depth]]
        if last.path.split(".")[depth].isdecimal():
            continue
        beside = [
            group[-1]
            for name, group in children.items()
            if group is not own and group[0].inputs == own[0].inputs and len(group) == len(own)
        ]
        # Heads end in layers of one kind.
        found.update(one.path for one in beside if one.kind is last.kind and one.kernel == last.kernel)
        if found:
            return frozenset({*found, last.path})
    return frozenset({last.path})


def _goes_on(layer: Layer, weighted: Sequence[Layer], taken: Counter[int]) -> bool:
    width = layer.outputs or 0
    if any(taken[width // n] for n in (2, 3, 4) if width % n == 0 and width > n):
        return True
    given = {one.outputs for one in weighted}
    place = next(n for n, one in enumerate(weighted) if one is layer)
    module = layer.path.partition(".")[0]
    return any(
        one.inputs not in given and (one.inputs or 0) > width and one.path.partition(".")[0] == module
        for one in weighted[place + 1 :]
    )
