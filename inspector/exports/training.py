"""A training checkpoint repaired as a whole: weights, optimizer and plain values under their own keys, proved.

Only what is known to be plain is copied (`plain.py`), so the new file loads with weights_only=True whatever the old one
held. Weights and moments are in memory together here: about three times the weights for Adam.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from inspector.architectures.types import Target
from inspector.checkpoint.data import is_stored_as
from inspector.checkpoint.digest import digest_of
from inspector.checkpoint.raw_tensor import same_bits
from inspector.checkpoint.source import PathSource
from inspector.checkpoint.torch_bridge import raw_of
from inspector.checkpoint.types import Checkpoint
from inspector.checkpoint.values import Value, ValueKind
from inspector.errors import ExportError, InspectorError, KeysDoNotFit
from inspector.exports.left_behind import why_dropped
from inspector.exports.optimizer import GROUPS_BY_KIND, find_staying, plan_optimizers, state_dict_of
from inspector.exports.plain import NotPlain, plain_of, text_key
from inspector.exports.report import ExportReport, WrittenFile
from inspector.exports.write import check, check_destination, new_export
from inspector.keys.apply import apply_plan, check_complete, check_whole, state_of
from inspector.keys.optimizer.map import map_optimizers
from inspector.keys.optimizer.remap import OptimizerPlan
from inspector.keys.report import Proof, RepairPlan, StepKind, Verification
from inspector.keys.verify import Compared, verify_plan
from inspector.progress import Progress, silent
from inspector.readers import open_checkpoint
from inspector.units import counted

Path_ = tuple[str, ...]


def export_training(
    checkpoint: Checkpoint,
    plan: RepairPlan,
    target: Target,
    destination: Path,
    *,
    by_kind: bool = False,
    compared: Compared | None = None,
    overwrite: bool = True,
    progress: Progress = silent,
) -> ExportReport:
    """Write a .pth with the repaired weights, the optimizers' state for them, and the plain values beside them.

    by_kind: groups go by kind of parameter where the file leaves that open. compared: what the user gave to hold the
    weights against.
    Raises ExportError, and leaves no file behind, when the plan is open, no optimizer of the file can travel, one of
    several in a list cannot, a proof fails, or the disk refuses.
    """
    check_destination(checkpoint, destination, overwrite=overwrite)
    if plan.gathered:
        raise ExportError(
            "Nothing was written. The parts of the model lie apart in the file, and no optimizer says in which order "
            "it was given them.",
            hint="Write the weights without the optimizer.",
        )
    try:
        check_complete(plan)
        check_whole(checkpoint, plan)
        goings = plan_optimizers(checkpoint, plan, target, by_kind=by_kind)
        _check_travels(checkpoint, goings)
        progress(0, 4, "verifying the plan")
        verification = verify_plan(checkpoint, plan, target, compared=compared)
        check(verification)
        progress(1, 4, "applying the plan")
        weights = apply_plan(checkpoint, plan, spec=target.spec)
    except KeysDoNotFit as error:
        raise ExportError(f"Nothing was written. {error.says}", hint=error.hint) from error
    made = _rebuild(checkpoint, plan, weights, goings)
    lost = [*made.lost, *(says for going in goings for says in going.dropped)]
    lost += [f"{s.source}: {why_dropped(s)}" for s in plan.steps if s.kind is StepKind.DROP]
    if not destination.parent.is_dir():
        raise ExportError(f"The folder of {destination.name} does not exist.", hint="Make it first.")
    with new_export(destination, ".pth", overwrite=overwrite) as temporary:
        progress(2, 4, f"writing {destination.name}")
        torch.save(made.root, temporary)
        progress(3, 4, "reading it back")
        proofs = _prove(temporary, made, weights, goings, by_kind)
        verification = Verification(proofs=verification.proofs + proofs)
        check(verification)
        nbytes, digest = temporary.stat().st_size, digest_of(temporary)
    progress(4, 4, "done")
    return ExportReport(
        name=destination.name,
        writer="pth",
        nbytes=nbytes,
        sha256=digest,
        tensors=len(weights),
        lost=tuple(dict.fromkeys(lost)),
        verification=verification,
        stays_initial=plan.missing if plan.partial else (),
        files=(WrittenFile(name=destination.name, nbytes=nbytes, sha256=digest),),
        optimizers=tuple(going.says for going in goings),
    )


def _check_travels(checkpoint: Checkpoint, goings: tuple[OptimizerPlan, ...]) -> None:
    if not goings:
        raise ExportError(
            f"{checkpoint.origin.name} holds no optimizer state.", hint="Write the weights without the optimizer."
        )
    first = find_staying(goings)
    if first is not None:
        hint = "Write the weights without the optimizer."
        if first.map.asks:
            hint = f"If the groups are these, pass --accept {GROUPS_BY_KIND}; else export without the optimizer."
        raise ExportError(f"Nothing was written. {first.says}", hint=hint)


@dataclass(slots=True)
class _Made:
    """The object to be written, where its weights are, and what of the file is not in it."""

    root: object
    weights: Path_
    optimizers: Mapping[Path_, object]
    lost: list[str] = field(default_factory=list)


def _rebuild(
    checkpoint: Checkpoint, plan: RepairPlan, weights: Mapping[str, Tensor], goings: tuple[OptimizerPlan, ...]
) -> _Made:
    moved = {going.map.path: state_dict_of(checkpoint, going) for going in goings if not going.refusal}
    staying = {going.map.path: going.says for going in goings if going.refusal}
    made = _Made(root=None, weights=plan.state_dict, optimizers=moved)
    state = state_of(checkpoint, plan)
    if state.is_module:
        made.lost.append(f"the module object itself ({state.kind}); its tensors are kept")
    going_on = {path[len(plan.state_dict)] for path in moved if path[: len(plan.state_dict)] == plan.state_dict}
    made.lost += [f"{name}: not a tensor" for name in state.others if name not in going_on]
    made.lost += [f"{key}: a key that is no text" for key, _ in state.odd_keys]
    if not plan.state_dict:
        # The weights are the file, and the optimizer lies somewhere in it or beside it.
        made.weights = ("state_dict",)
        made.optimizers = {("optimizer", *(path if len(moved) > 1 else ())): value for path, value in moved.items()}
        root: dict[str, object] = {"state_dict": weights}
        for path, value in made.optimizers.items():
            _put(root, path, value)
        made.root = root
        return made
    placed: dict[Path_, object] = {plan.state_dict: weights, **moved}

    def build(value: Value, path: Path_) -> object:
        if path in placed:
            return placed[path]
        if path in staying:
            made.lost.append(staying[path])
            raise NotPlain(".".join(path))
        if not any(other[: len(path)] == path for other in placed):
            return plain_of(value)
        if value.kind is ValueKind.MAPPING and not value.inert:
            found: dict[str, object] = {}
            for label, child in value.children:
                try:
                    found[text_key(label)] = build(child, (*path, label))
                except NotPlain:
                    if (*path, label) not in staying:
                        made.lost.append(f"{'.'.join((*path, label))[:120]}: not plain values")
            return found
        if value.kind is ValueKind.SEQUENCE and len(value.children) == value.size:
            return [build(child, (*path, label)) for label, child in value.children]
        raise NotPlain(".".join(path))

    try:
        made.root = build(checkpoint.root, ())
    except NotPlain as error:
        raise ExportError(
            f"{error} cannot be written again around the optimizer, since it is no plain value.",
            hint="Write the weights without the optimizer.",
        ) from error
    return made


def _put(root: dict[str, object], path: Path_, value: object) -> None:
    for key in path[:-1]:
        below = root.setdefault(key, {})
        assert isinstance(below, dict)
        root = below
    root[path[-1]] = value


def _prove(
    path: Path, made: _Made, weights: Mapping[str, Tensor], goings: tuple[OptimizerPlan, ...], by_kind: bool
) -> tuple[Proof, ...]:
    """Our own reader and torch's restricted one on the written file."""
    source = PathSource(path)
    try:
        written = open_checkpoint(source)
        reread = _prove_reread(written, made, weights)
        mapped = _prove_mapped(written, made, goings, by_kind)
    except InspectorError as error:
        return (Proof(id="reread", says=f"The written file does not read back: {error.says}", passed=False),)
    finally:
        source.close()
    again = torch.load(path, map_location="cpu", weights_only=True)
    same = _equal(made.root, again)
    says = "torch.load(weights_only=True) gives back every tensor and value as it was written."
    if not same:
        says = "torch.load(weights_only=True) gives back something else than was written."
    return reread, mapped, Proof(id="library", says=says, passed=same)


def _prove_reread(written: Checkpoint, made: _Made, weights: Mapping[str, Tensor]) -> Proof:
    expected: dict[Path_, Tensor] = {(*made.weights, name): tensor for name, tensor in weights.items()}
    for path, value in made.optimizers.items():
        expected.update(_tensors(value, path))
    infos = {info.path: info for info in written.tensors}
    if set(infos) != set(expected):
        return Proof(id="reread", says="The written file has other tensors than were to be written.", passed=False)
    for path, tensor in expected.items():
        info = infos[path]
        if info.shape != tuple(tensor.shape) or not is_stored_as(written, info, raw_of(tensor).raw_bytes):
            return Proof(id="reread", says=f"{'.'.join(path)} reads back otherwise than it was written.", passed=False)
    says = f"Read back without executing anything: {counted(len(expected), 'tensor')} bit for bit equal."
    return Proof(id="reread", says=says, passed=True)


def _tensors(value: object, path: Path_) -> dict[Path_, Tensor]:
    found: dict[Path_, Tensor] = {}
    pending: list[tuple[Path_, object]] = [(path, value)]
    while pending:
        where, item = pending.pop()
        if isinstance(item, Tensor):
            found[where] = item
        elif isinstance(item, dict):
            pending += [((*where, str(key)), child) for key, child in item.items()]
        elif isinstance(item, list | tuple):
            pending += [((*where, str(key)), child) for key, child in enumerate(item)]
    return found


def _prove_mapped(written: Checkpoint, made: _Made, goings: tuple[OptimizerPlan, ...], by_kind: bool) -> Proof:
    """The indices of the new file, mapped anew from nothing but the new file."""
    state = next((s for s in written.state_dicts if s.path == made.weights), None)
    found = {m.path: m for m in map_optimizers(written, state, by_kind=by_kind)} if state is not None else {}
    wanted = [going for going in goings if not going.refusal]
    for going, path in zip(wanted, made.optimizers, strict=True):
        other = found.get(path)
        if other is None or other.refusal:
            # Where the old file's names decided, shapes alone may leave it open; nothing contradicts.
            continue
        if tuple(group.names for group in other.groups) != going.groups:
            says = f"{'.'.join(path)}: the new indices read as other parameters than they were written for."
            return Proof(id="optimizer", says=says, passed=False)
    count = sum(len(going.steps) for going in wanted)
    says = f"The state of {counted(count, 'parameter')} is under the index of the target's parameter."
    sure = all((m := found.get(path)) is not None and not m.refusal for path in made.optimizers)
    return Proof(id="optimizer", says=says, passed=True if sure else None)


def _equal(one: object, other: object) -> bool:
    if isinstance(one, Tensor) or isinstance(other, Tensor):
        return isinstance(one, Tensor) and isinstance(other, Tensor) and same_bits(raw_of(one), raw_of(other))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(_equal, one, other))
    return type(one) is type(other) and (one == other or one != one)
