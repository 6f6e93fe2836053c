"""Is the repaired state dict right? A strict load that passes proves names and shapes, and nothing about the numbers.

So more is looked at: that every tensor went to exactly one place, that what the model holds afterwards are the file's
own bytes, that running statistics are possible ones, and that the model answers something finite and varied.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from inspector.architectures.types import Target
from inspector.checkpoint.data import read_bytes
from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.types import Checkpoint
from inspector.errors import InspectorError
from inspector.keys.apply import apply_plan, state_of, undone
from inspector.keys.report import Proof, RepairPlan, StepKind, Verification, used_sources
from inspector.units import counted, human_shape, human_share

# What takes one batch of pictures and answers with one tensor, or with a mapping that has it under "out".
_TASKS = ("classification", "segmentation")


def verify_plan(checkpoint: Checkpoint, plan: RepairPlan, target: Target) -> Verification:
    """Everything that can be proven about this plan here, each with what was measured.

    A plan that cannot be applied yields its reason as a failed proof; nothing is raised for that.
    """
    proofs = [prove_bijection(checkpoint, plan, target)]
    try:
        state = apply_plan(checkpoint, plan, spec=target.spec)
    except InspectorError as error:
        return Verification(proofs=(*proofs, Proof(id="applies", says=str(error), passed=False)))
    model, strict = prove_strict_load(state, target)
    held = dict(model.state_dict()) if model is not None and strict.passed else state
    proofs += [strict, prove_bytes(checkpoint, plan, held), prove_values(state)]
    proofs.append(prove_forward(model if strict.passed else None, target, state))
    return Verification(proofs=tuple(proofs))


def prove_bijection(checkpoint: Checkpoint, plan: RepairPlan, target: Target) -> Proof:
    """Every tensor of the file in exactly one step, every place of the target filled exactly once."""
    sources = used_sources(plan.steps)
    targets = [s.target for s in plan.steps if s.target is not None]
    ours = {t.name for t in state_of(checkpoint, plan).tensors}
    theirs = {t.name for t in target.tensors}
    right = (
        len(sources) == len(set(sources))
        and len(targets) == len(set(targets))
        and set(sources) == ours
        and set(targets) == theirs
    )
    placed = sum(1 for s in plan.steps if s.source is not None and s.target is not None)
    filled, dropped = len(targets) - placed, len(sources) - placed
    if right:
        says = f"{counted(placed, 'tensor')} on as many places, none twice; {filled:,} filled, {dropped:,} left out."
    else:
        settled = f"{len(set(targets) & theirs):,} of {len(theirs):,} places"
        says = f"{settled} and {len(set(sources) & ours):,} of {counted(len(ours), 'tensor')} are settled."
    return Proof(id="bijection", says=says, passed=right)


def prove_strict_load(state: Mapping[str, Tensor], target: Target) -> tuple[nn.Module | None, Proof]:
    """Load into the built model where there is one; else compare names and shapes as a strict load does."""
    if target.spec is None:
        return None, _compare_names(state, target)
    from inspector.architectures.build import build_model

    try:
        model = build_model(target.spec)
    except InspectorError as error:
        return None, Proof(id="strict-load", says=f"{target.label} cannot be built here: {error}", passed=None)
    try:
        model.load_state_dict(state, strict=True)
    except RuntimeError as error:
        return None, Proof(id="strict-load", says=str(error).splitlines()[-1].strip(), passed=False)
    says = f"{target.label}.load_state_dict(strict=True) accepts all {counted(len(state), 'tensor')}."
    return model, Proof(id="strict-load", says=says, passed=True)


def _compare_names(state: Mapping[str, Tensor], target: Target) -> Proof:
    shapes = {t.name: t.shape for t in target.tensors}
    if set(state) != set(shapes):
        return Proof(id="strict-load", says="The names differ from the target's.", passed=False)
    wrong = [n for n, shape in shapes.items() if shape is not None and tuple(state[n].shape) != shape]
    if wrong:
        ours, theirs = tuple(state[wrong[0]].shape), shapes[wrong[0]] or ()
        says = f"{wrong[0]}: {human_shape(ours)}, the target has {human_shape(theirs)}."
        return Proof(id="strict-load", says=says, passed=False)
    unknown = sum(1 for shape in shapes.values() if shape is None)
    if unknown:
        says = f"All {len(shapes):,} names agree; the target tells no shapes, so a strict load is not proven."
        return Proof(id="strict-load", says=says, passed=None)
    says = f"All {len(shapes):,} names and shapes agree with {target.label}, which is what a strict load compares."
    return Proof(id="strict-load", says=says, passed=True)


def prove_bytes(checkpoint: Checkpoint, plan: RepairPlan, held: Mapping[str, Tensor]) -> Proof:
    """Each placed tensor, read by our own reader, against what the model (or the new state dict) holds."""
    infos = {t.name: t for t in state_of(checkpoint, plan).tensors}
    equal = cast = 0
    computed = sum(1 for s in plan.steps if s.kind in (StepKind.ADAPT, StepKind.FILL))
    for step in plan.steps:
        if step.source is None or step.target is None or step.kind is StepKind.ADAPT:
            continue
        # Joined tensors are compared one by one.
        for source, tensor in zip(step.sources, undone(step, held[step.target].detach()), strict=True):
            info = infos[source]
            raw = read_bytes(checkpoint, info)
            dtype = getattr(torch, info.dtype)
            if step.kind is StepKind.SPLIT:
                row = len(raw) // info.shape[0]
                raw = raw[step.rows[0] * row : step.rows[1] * row]
            if tensor.dtype is not dtype:
                # The model computes in another type: what it holds must be the file's numbers, cast.
                flat = torch.frombuffer(bytearray(raw), dtype=dtype) if raw else torch.empty(0, dtype=dtype)
                raw = tensor_bytes(flat.to(tensor.dtype))
                cast += 1
            if raw != tensor_bytes(tensor):
                return Proof(id="bytes", says=f"{step.target} does not hold the bytes of {source}.", passed=False)
        equal += 1
    more = f", {cast:,} of them after the cast to the model's type" if cast else ""
    more += f"; {computed:,} were computed or filled and have no source bytes" if computed else ""
    return Proof(id="bytes", says=f"{counted(equal, 'tensor')} bit for bit the file's{more}.", passed=True)


def tensor_bytes(tensor: Tensor) -> bytes:
    """Row-major bytes of a CPU tensor of any dtype."""
    flat = tensor.detach().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def prove_values(state: Mapping[str, Tensor]) -> Proof:
    """Running variances are not negative, counters not either, and how much is finite."""
    total = finite = 0
    for name, tensor in state.items():
        last = name.rpartition(".")[2]
        if last == "running_var" and tensor.numel() and bool((tensor < 0).any()):
            says = f"{name} has negative variances, the least {float(tensor.min()):.3g}: no batch norm computes these."
            return Proof(id="values", says=says, passed=False)
        if last == "num_batches_tracked" and tensor.numel() and bool((tensor < 0).any()):
            return Proof(id="values", says=f"{name} is negative.", passed=False)
        dtype = DTYPES.get(str(tensor.dtype).removeprefix("torch."))
        if dtype is not None and dtype.floating:
            total += tensor.numel()
            # float8 has no isfinite of its own.
            finite += int(torch.isfinite(tensor if dtype.itemsize > 1 else tensor.float()).sum())
    share = "All" if finite == total else human_share(finite / total)
    says = f"{share} of {total:,} floating-point values finite, no negative variance or counter."
    # Weights that are not finite are the file's own illness; the repair is not wrong by it.
    return Proof(id="values", says=says, passed=True)


def prove_forward(model: nn.Module | None, target: Target, state: Mapping[str, Tensor]) -> Proof:
    """One forward pass on seeded noise in evaluation: finite and not the same everywhere."""
    if model is None or target.spec is None:
        return _not_run("No model could be built of the target, so nothing was run.")
    from inspector.architectures.facts import default_input
    from inspector.architectures.index import load_index

    entry = load_index().of(target.spec)
    if entry is None or entry.task not in _TASKS:
        return _not_run(f"{target.label} does not take one picture and give one tensor, so nothing was run.")
    shape = (1, *default_input(target.spec))
    noise = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    try:
        with torch.inference_mode():
            answer = _first_tensor(model.eval()(noise))
    except (RuntimeError, ValueError, TypeError) as error:
        says = f"A forward pass on {human_shape(shape)} failed: {str(error).splitlines()[0]}"
        return Proof(id="forward", says=says, passed=False)
    if answer is None:
        return _not_run("The model does not answer with one tensor, so nothing was judged.")
    values = answer.float()
    says = f"Noise of {human_shape(shape)} gives {human_shape(tuple(values.shape))} values"
    if not bool(torch.isfinite(values).all()):
        # A file with NaN in it is ill by itself, and keys are not its illness.
        ill = any(t.is_floating_point() and not bool(torch.isfinite(t.float()).all()) for t in state.values())
        why = ", as some weights of the file are not" if ill else ""
        return Proof(id="forward", says=f"{says}, not all finite{why}.", passed=None if ill else False)
    spread = float(values.std()) if values.numel() > 1 else 1.0
    if spread == 0.0:
        empty = any(t.dim() >= 2 and not bool(t.any()) for t in state.values())
        why = ", as some weights of the file are all zero" if empty else ""
        return Proof(id="forward", says=f"{says}, all the same{why}.", passed=None if empty else False)
    return Proof(id="forward", says=f"{says}, finite, standard deviation {spread:.3g}.", passed=True)


def _not_run(says: str) -> Proof:
    return Proof(id="forward", says=says, passed=None)


def _first_tensor(answer: object) -> Tensor | None:
    if isinstance(answer, Mapping):
        answer = answer.get("out")
    return answer if isinstance(answer, Tensor) else None
