"""Element types that cost without giving: float64, two kinds of half precision in one block, whole numbers as int64."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.phrases import listed
from inspector.health.roles import Role
from inspector.health.subject import Examined, Subject
from inspector.units import counted, human_bytes

DOUBLE = FindingKind("double-precision", Severity.NOTICE, "Weights are stored in double precision")
MIXED = FindingKind("mixed-half-types", Severity.NOTICE, "Blocks mix two types of half precision")
INTEGERS = FindingKind("integer-weights", Severity.NOTICE, "Weights are stored as wide integers")

_HALVES = ("float16", "bfloat16")
# A block is the last numbered segment of a name and what is before it: "model.layers.3" of "model.layers.3.mlp.weight".
_NUMBERED = re.compile(r"^(?:.*\.)?\d+(?=\.)")
_NO_WEIGHTS = (Role.COUNTER, Role.BUFFER, Role.QUANTISED, Role.SCALE, Role.MASK, Role.MOMENT)


def _find(subject: Subject) -> Iterator[Finding]:
    yield from _double(subject)
    yield from _mixed(subject)
    yield from _integers(subject)


def _double(subject: Subject) -> Iterator[Finding]:
    wide = [one for one in subject.tensors if one.tensor.dtype == "float64" and _is_trained(one)]
    if not wide:
        return
    nbytes = sum(one.tensor.nbytes for one in wide)
    exact = [one for one in wide if one.statistics is not None and one.statistics.fits]
    also = f" {counted(len(exact), 'tensor')} of them would not lose a digit." if exact else ""
    yield DOUBLE.found(
        f"{counted(len(wide), 'tensor')} ({listed([one.name for one in wide])}) "
        f"{'is' if len(wide) == 1 else 'are'} float64, {human_bytes(nbytes)} in all; float32 takes half.{also}",
        subjects=[one.name for one in wide],
        evidence=(("tensors", len(wide)), ("nbytes", nbytes), ("fit in float32", len(exact))),
        remedy="Networks are trained and run in float32 or less; numpy's arrays are float64 unless told otherwise. "
        "Meant where a simulation or a physical model needs the digits.",
    )


def _mixed(subject: Subject) -> Iterator[Finding]:
    blocks: dict[str, dict[str, list[Examined]]] = defaultdict(lambda: defaultdict(list))
    for one in subject.tensors:
        if one.tensor.dtype in _HALVES and len(one.tensor.shape) >= 2 and _is_trained(one):
            match = _NUMBERED.match(one.name)
            blocks[match.group() if match else ""][one.tensor.dtype].append(one)
    mixed = {name: block for name, block in blocks.items() if len(block) == 2}
    if not mixed:
        return
    # The rarer type of each block is what differs.
    odd = [one for block in mixed.values() for one in min(block.values(), key=len)]
    counts = tuple((dtype, sum(len(block[dtype]) for block in mixed.values())) for dtype in _HALVES)
    yield MIXED.found(
        f"{counted(len(mixed), 'block')} ({listed([name or 'the file' for name in mixed])}) "
        f"{'mixes' if len(mixed) == 1 else 'mix'} weights in float16 and bfloat16 ({counts[0][1]:,} and "
        f"{counts[1][1]:,}).",
        subjects=[one.name for one in odd],
        evidence=(("blocks", len(mixed)), *counts),
        remedy="Two layers of different types cannot be multiplied with the same input: cast the file to one of them. "
        "Merged files look like this.",
    )


def _integers(subject: Subject) -> Iterator[Finding]:
    """Whole numbers of four or eight bytes under a weight's name, with no scale beside them that gives them meaning."""
    wide = [
        one
        for one in subject.tensors
        if one.tensor.dtype in ("int32", "int64") and one.last == "weight" and len(one.tensor.shape) >= 2
        if one.role not in (Role.QUANTISED, Role.SCALE, Role.MASK)
        if all(o is one or o.last == "bias" for o in subject.by_module[one.module])
    ]
    if not wide:
        return
    yield INTEGERS.found(
        f"{counted(len(wide), 'weight')} ({listed([one.name for one in wide])}) "
        f"{'is' if len(wide) == 1 else 'are'} stored as {wide[0].tensor.dtype}.",
        subjects=[one.name for one in wide],
        evidence=(("tensors", len(wide)), ("type", wide[0].tensor.dtype)),
        remedy="A layer's weight is a float: a cast to whole numbers loses everything below 1. Right for a table of "
        "indices that is called weight.",
    )


def _is_trained(one: Examined) -> bool:
    return one.tensor.numel > 1 and one.role not in _NO_WEIGHTS


CHECK = Check(kinds=(DOUBLE, MIXED, INTEGERS), find=_find)
