"""What the result is to be held against: the architecture that it is or is a part of, else its own names and shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from inspector.architectures.targets import target_of
from inspector.architectures.types import Candidate, Target, TargetKind, TargetTensor
from inspector.surgery.outline import modules_line
from inspector.surgery.tensors import Table
from inspector.units import counted

OWN = "the names that the steps leave"
# torch's own batch norms; those that write one are of version 2 (torch/nn/modules/batchnorm.py).
_COUNTER, _COUNTING = ".num_batches_tracked", 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """missing: what the architecture has and the result has not, () for all of it. says: a sentence."""

    target: Target
    says: str
    missing: tuple[str, ...] = ()


def find_goal(table: Table, *, versions: Sequence[tuple[str, int]], whole: bool = False) -> Goal:
    """versions: of the result's modules, under the file's paths. whole: of an architecture only all of it will do."""
    best = table.recognised()
    own = _own_target(table)
    if best is None:
        says = "No known architecture has these names: names and shapes are proved, and nothing can be loaded or run."
        return Goal(target=own, says=says)
    label = best.spec.label
    if best.wrapper:
        every = all(item.name.startswith(best.wrapper) for item in table.kept)
        hint = f" Extract {best.wrapper.rstrip('.')} to take it off." if every else ""
        says = f'{label} takes these without "{best.wrapper}" in the names, so none is built here.{hint}'
        return Goal(target=own, says=says)
    target = _without_counters(target_of(best.spec), table, dict(versions))
    missing = _missing(target, {item.name: item.info.shape for item in table.kept})
    if missing is None:
        return Goal(target=own, says=f"{_near(best, table)} None is built: names and shapes are proved alone.")
    if not missing:
        return Goal(target=target, says=f"{label} takes all of it with a strict load.")
    if whole:
        return Goal(target=own, says=f"{_near(best, table)} With its optimizer, names and shapes are proved alone.")
    says = f"{label} takes it with strict=False; {counted(len(missing), 'tensor')} it has beyond that: "
    return Goal(
        target=target, says=f"{says}{modules_line(missing, [t.name for t in target.tensors])}.", missing=missing
    )


def _without_counters(target: Target, table: Table, versions: dict[str, int]) -> Target:
    """The target without the counters of batches that torch fills in by itself: those that are not there, of batch
    norms that the result has no version of."""
    there = {item.name for item in table.kept}
    sources = {item.name.rpartition(".")[0]: (item.source or "").rpartition(".")[0] for item in table.kept}

    def is_filled(name: str) -> bool:
        old = sources.get(name.removesuffix(_COUNTER))
        return name.endswith(_COUNTER) and name not in there and versions.get(old or "", 0) < _COUNTING

    return replace(target, tensors=tuple(tensor for tensor in target.tensors if not is_filled(tensor.name)))


def _missing(target: Target, shapes: dict[str, tuple[int, ...]]) -> tuple[str, ...] | None:
    """Names of the target that are not there; None where something of what is there does not fit."""
    wanted = {tensor.name: tensor.shape for tensor in target.tensors}
    if any(wanted.get(name) != shape for name, shape in shapes.items()):
        return None
    return tuple(name for name in wanted if name not in shapes)


def _near(best: Candidate, table: Table) -> str:
    matched = counted(len(best.matched), "tensor")
    lacking = modules_line(best.missing, (*best.matched, *best.missing)) if best.missing else ""
    missing = f" It has {lacking} beyond that." if lacking else ""
    left = modules_line(best.extra, [item.name for item in table.kept]) if best.extra else ""
    extra = f" It does not have {left}." if left else ""
    return f"{matched} fit {best.spec.label} by name and shape.{missing}{extra}"


def _own_target(table: Table) -> Target:
    return Target(
        label=OWN,
        kind=TargetKind.KEYS,
        tensors=tuple(
            TargetTensor(
                name=item.name,
                shape=item.info.shape,
                dtype=item.info.dtype,
                is_buffer=None if item.info.is_parameter is None else not item.info.is_parameter,
            )
            for item in table.kept
        ),
        ordered=table.state.ordered,
    )
