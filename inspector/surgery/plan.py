"""Steps that a person asks for, one after the other, as one plan that the exports apply, prove and write.

Each step speaks of the names as the steps before it left them. Nothing happens to a tensor that is not in the preview;
what cannot be told is refused in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import assert_never

from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.layout import span_of
from inspector.checkpoint.types import Checkpoint, StateDict, TensorInfo
from inspector.errors import UsageError
from inspector.keys.loading import access_of, loader_of
from inspector.keys.optimizer.map import map_optimizers
from inspector.keys.plain_load import partly_lost
from inspector.keys.report import Cost, Evidence, RepairPlan, RuleUse, Step, StepKind
from inspector.surgery.goal import find_goal
from inspector.surgery.heads import Heads, check_whole, heads_of, new_head
from inspector.surgery.outline import by_module
from inspector.surgery.report import Drop, Extract, Fate, NewHead, Operation, PreviewRow, Size, SurgeryReport
from inspector.surgery.rules import DROP, EXTRACT, HEAD
from inspector.surgery.tensors import Item, Table, share_memory, table_of
from inspector.units import counted

_EXAMPLES = 3


def plan_surgery(
    checkpoint: Checkpoint, steps: Sequence[Operation], *, state: StateDict | None = None, whole: bool = False
) -> SurgeryReport:
    """What the steps make of a state dict of the file, the likeliest if None.

    whole: the result is held against names and shapes alone and not against an architecture that it is a part of, as an
    optimizer's state needs it.
    Raises UsageError for a path that is none, ExportError where it cannot be told what a step would do.
    """
    state = state or checkpoint.weights
    if state is None or not state.tensors:
        raise UsageError(f"{checkpoint.origin.name} holds no named tensors.", hint="There is nothing to cut.")
    table, uses = table_of(checkpoint, state), []
    heads: Heads | None = None
    for step in steps:
        before = [(item, item.name) for item in table.kept]
        match step:
            case Drop():
                _drop(table, step)
                uses.append(_use(DROP.id, step, before))
            case Extract():
                prefix = _extract(table, step)
                uses.append(_use(EXTRACT.id, step, before, prefix="" if step.keep_prefix else prefix))
            case NewHead():
                heads = heads or heads_of(table)
                new_head(table, step, heads)
                uses.append(_use(HEAD.id, step, before))
            case _:
                assert_never(step)
    if heads is not None:
        check_whole(table, heads)
    if not any(item.source is not None for item in table.kept):
        raise UsageError("Nothing of the file would be left.", hint="Leave out less of it.")
    made = tuple(_steps(table))
    versions = _versions(table)
    goal = find_goal(table, versions=versions, whole=whole)
    kind, files = loader_of(checkpoint, state)
    plan = RepairPlan(
        target=goal.target.label,
        state_dict=state.path,
        steps=made,
        rules=tuple(uses),
        ambiguities=(),
        needs_accept=(),
        missing=goal.missing,
        complete=True,
        format=kind,
        files=files,
        access=access_of(checkpoint, state),
        is_module=state.is_module,
        versions=versions,
        others=() if state.is_module else state.others,
        odd_keys=tuple(key for key, _ in state.odd_keys),
        partial=bool(goal.missing),
        lost=len(partly_lost(checkpoint, [i.info for i in table.kept if i.source is not None])),
    )
    return SurgeryReport(
        plan=plan,
        target=goal.target,
        steps=tuple(step.says for step in steps),
        before=_size(state.tensors),
        after=_size(table.tensors()),
        rows=tuple(_rows(table)),
        goes_into=goal.says,
        notes=(*table.notes, *_shared(table), *_optimizers(table)),
    )


def _drop(table: Table, step: Drop) -> None:
    module = table.find(step.module)
    for item in table.below(module):
        item.gone, item.rule = f"Asked for: drop {module}.", DROP.id


def _extract(table: Table, step: Extract) -> str:
    """Returns the prefix that is taken off."""
    module = table.find(step.module)
    prefix = f"{module}."
    for item in table.kept:
        if not item.name.startswith(prefix):
            item.gone, item.rule = f"Asked for: only {module} is kept.", EXTRACT.id
        elif not step.keep_prefix:
            item.name = item.name[len(prefix) :]
    return prefix


def _use(rule: str, step: Operation, before: Iterable[tuple[Item, str]], *, prefix: str = "") -> RuleUse:
    """What one step did, by comparing with how the tensors stood before it."""
    changed = [(item.source or old, "" if item.gone else item.name) for item, old in before if _changed(item, old)]
    return RuleUse(
        id=rule,
        says=step.says,
        cost=Cost.LOSSY,
        count=len(changed),
        examples=tuple(changed[:_EXAMPLES]),
        accepted=True,
        parameters=(("prefix", prefix),) if prefix else (),
    )


def _changed(item: Item, old: str) -> bool:
    return bool(item.gone) or item.name != old


def _steps(table: Table) -> Iterable[Step]:
    """One step per tensor: what stays and what is new in the order of the state dict, then what is left out."""
    for item in table.kept:
        if item.fill is not None:
            yield replace(item.fill, target=item.name)
            continue
        same = item.name == item.source
        yield Step(
            kind=StepKind.KEEP if same else StepKind.RENAME,
            source=item.source,
            target=item.name,
            rule="" if same else EXTRACT.id,
            reason="It stays as it is." if same else "Under the name it has in the module that is taken out.",
            cost=Cost.LOSSLESS,
            evidence=Evidence.EXACT_NAME if same else Evidence.CHOSEN,
        )
    for item in table.items:
        if item.gone and item.source is not None:
            yield Step(
                kind=StepKind.DROP,
                source=item.source,
                target=None,
                rule=item.rule,
                reason=item.gone,
                cost=Cost.LOSSY,
                evidence=Evidence.CHOSEN,
            )


def _versions(table: Table) -> tuple[tuple[str, int], ...]:
    """torch's `_metadata` without modules that nothing is left of: of these, with a version, torch misses counters."""
    modules = {item.source.rpartition(".")[0] for item in table.items if item.source is not None}
    left = {item.source.rpartition(".")[0] for item in table.kept if item.source is not None}
    return tuple((path, version) for path, version in table.state.versions if path in left or path not in modules)


def _rows(table: Table) -> Iterable[PreviewRow]:
    """What is left out, new and renamed, folded; what stays as it is in the end, in as few rows."""
    groups: dict[Fate, dict[str, Item]] = {fate: {} for fate in (Fate.DROPPED, Fate.NEW, Fate.RENAMED, Fate.KEPT)}
    for item in table.items:
        if item.gone:
            if item.source is not None:
                groups[Fate.DROPPED][item.source] = item
        elif item.source is None:
            groups[Fate.NEW][item.name] = item
        else:
            groups[Fate.KEPT if item.name == item.source else Fate.RENAMED][item.source] = item
    for fate, items in groups.items():
        for pattern, names in by_module(items, [item.source or item.name for item in table.items]):
            members = [items[name] for name in names]
            yield PreviewRow(
                fate=fate,
                pattern=pattern,
                tensors=len(members),
                nbytes=sum(item.info.nbytes for item in members),
                becomes=members[0].name if fate is Fate.RENAMED else "",
            )


def _size(tensors: Sequence[TensorInfo]) -> Size:
    """Places that several tensors show are counted once."""
    spans: dict[tuple[str, str], list[tuple[int, int]]] = {}
    total = 0
    for tensor in tensors:
        if tensor.storage_id is None or tensor.stride is None or tensor.dtype not in DTYPES:
            total += tensor.nbytes
        elif tensor.numel:
            spans.setdefault((tensor.storage_id, tensor.dtype), []).append(span_of(tensor))
    for (_, dtype), found in spans.items():
        reached = 0
        for first, end in sorted(found):
            total += max(0, end - max(first, reached)) * DTYPES[dtype].itemsize
            reached = max(reached, end)
    return Size(tensors=len(tensors), nbytes=total)


def _shared(table: Table) -> Iterable[str]:
    """Memory of several names: what stays one, and what loses a name."""
    by_storage: dict[str, list[Item]] = {}
    for item in table.items:
        if item.source is not None and item.info.storage_id is not None:
            by_storage.setdefault(item.info.storage_id, []).append(item)
    for members in by_storage.values():
        for number, one in enumerate(members):
            for other in members[number + 1 :]:
                if (one.gone and other.gone) or not share_memory(one.info, other.info):
                    continue
                if one.gone or other.gone:
                    gone, stays = (one, other) if one.gone else (other, one)
                    yield f"{stays.name} stays; {gone.source}, which is the same memory, is left out."
                else:
                    yield f"{one.name} and {other.name} are one memory and stay so."


def _optimizers(table: Table) -> Iterable[str]:
    """How much of each optimizer's state belongs to what is left out."""
    gone = {item.source for item in table.items if item.gone}
    if not gone:
        return
    for found in map_optimizers(table.checkpoint, table.state):
        if found.refusal:
            yield f"{found.label}: which of its state belongs to what is left out is not told: {found.refusal}."
            continue
        held = [name for name in found.names if found.state.get(name)]
        lost = [name for name in held if name in gone]
        if lost:
            whose = f"{len(lost):,} of {counted(len(held), 'parameter')}"
            yield f"{found.label}: {found.kind} state of {whose} is left out with them."
