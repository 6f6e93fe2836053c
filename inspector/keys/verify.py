"""Is the repaired state dict right? A strict load that passes proves names and shapes, and nothing about the numbers.

So more is looked at: that every tensor went to exactly one place, that what the model holds afterwards are the file's
own bytes, that running statistics are possible ones, and that the model answers something finite and varied. Without
torch there is no model: what needs one is said to be not tried.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.architectures.types import Target, TargetKind
from inspector.checkpoint.raw_tensor import read_raw
from inspector.checkpoint.types import Checkpoint, Shape
from inspector.errors import InspectorError
from inspector.installed import is_installed, require
from inspector.keys.apply import (
    apply_plan,
    check_complete,
    check_installed,
    check_one,
    check_whole,
    make_one,
    state_of,
)
from inspector.keys.certificate.numbers import certificate_of
from inspector.keys.certificate.of_plan import certificate_of_plan
from inspector.keys.proofs.answers_heard import judge_answers
from inspector.keys.proofs.places import judge_places
from inspector.keys.proofs.stored import BytesTally, prove_bijection, prove_bytes, prove_names
from inspector.keys.proofs.twins import prove_which
from inspector.keys.proofs.values import ValueTally, prove_values
from inspector.keys.report import Proof, RepairPlan, Verification
from inspector.keys.witnesses.hearing import hear
from inspector.units import counted

if TYPE_CHECKING:
    from torch import Tensor, nn

_NOT_TRIED = "not tried: torch is not installed."


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What a user gives to hold a repair against, and how to run it.

    reference: another file that loads into the target. pair: a file with an input and the output that belongs to it.
    shape: of the noise for a forward pass, with its batch; None for what the architecture is usually run at.
    folder: where a `code:` target runs, the current one if None.
    """

    reference: Checkpoint | None = None
    pair: Checkpoint | None = None
    shape: Shape | None = None
    folder: Path | None = None


def verify_plan(
    checkpoint: Checkpoint, plan: RepairPlan, target: Target, *, compared: Compared | None = None
) -> Verification:
    """Everything that can be proven about this plan here, each with what was measured.

    A plan that cannot be applied yields its reason as a failed proof; nothing is raised for that. A target that is code
    runs again, in its own process. compared: raises UsageError for files that are no reference or no pair.
    """
    given = compared or Compared()
    check_comparable(given)
    if not is_installed("torch"):
        return _verify_plainly(checkpoint, plan, target)
    from inspector.checkpoint.torch_bridge import raw_of
    from inspector.keys.proofs.answers import pair_of, prove_pair, prove_reference, reference_of
    from inspector.keys.proofs.forward import prove_forward
    from inspector.keys.proofs.own_code import prove_in_code

    pair = pair_of(given.pair) if given.pair is not None else None
    reference = reference_of(given.reference, target) if given.reference is not None else None
    proofs = [prove_bijection(checkpoint, plan, target)]
    try:
        state = apply_plan(checkpoint, plan, spec=target.spec)
    except InspectorError as error:
        return Verification(proofs=(*proofs, Proof(id="applies", says=str(error), passed=False)))
    own = (
        prove_in_code(state, target, folder=given.folder, shape=given.shape, pair=pair, reference=reference)
        if target.kind is TargetKind.CODE and not plan.partial
        else []
    )
    made = {name: raw_of(tensor) for name, tensor in state.items()}
    asked = (judge_places(certificate_of(target, made.get)), judge_answers(hear(checkpoint, plan, target)))
    judged = [prove_values(made, plan.steps), *(proof for proof in asked if proof is not None)]
    if own:
        checked = [prove_bytes(checkpoint, plan, made), *judged]
        return Verification(proofs=(*proofs, own[0], *checked, *own[1:]))
    model, strict = prove_strict_load(state, target, plan.missing if plan.partial else ())
    held = made
    if model is not None and strict.passed:
        held = {name: raw_of(tensor) for name, tensor in model.state_dict().items()}
    proofs += [strict, prove_bytes(checkpoint, plan, held), *judged]
    ready = model if strict.passed and not plan.partial else None
    proofs.append(_not_whole(plan) if plan.partial else prove_forward(ready, target, state, shape=given.shape))
    proofs += [prove_pair(ready, pair)] if pair is not None else []
    # Last, since the model then holds the reference's tensors.
    proofs += [prove_reference(ready, target, state, reference, shape=given.shape)] if reference is not None else []
    which = prove_which(checkpoint, target)
    proofs += [which] if which is not None else []
    return Verification(proofs=tuple(proofs))


def check_comparable(compared: Compared) -> None:
    """Raise MissingLibrary where answers are to be compared and no model can run, for want of torch."""
    given = compared.reference or compared.pair
    if given is not None:
        require("torch", f"Comparing answers with {given.origin.name}")


def _verify_plainly(checkpoint: Checkpoint, plan: RepairPlan, target: Target) -> Verification:
    """The same without torch, one tensor at a time: everything but what a model is needed for."""
    infos = {t.name: t for t in state_of(checkpoint, plan).tensors}
    placed, values = BytesTally(checkpoint, plan), ValueTally(plan.steps)
    shapes: dict[str, Shape] = {}
    before = prove_bijection(checkpoint, plan, target)
    try:
        check_complete(plan)
        check_whole(checkpoint, plan)
        check_installed(plan)
        for step in plan.steps:
            check_one(step, lambda name: read_raw(checkpoint, infos[name]))
            if step.target is not None:
                made = make_one(step, lambda name: read_raw(checkpoint, infos[name]))
                shapes[step.target] = made.shape
                placed.look(step, made)
                values.look(step.target, made)
    except InspectorError as error:
        return Verification(proofs=(before, Proof(id="applies", says=str(error), passed=False)))
    names = prove_names(shapes, target, plan.missing if plan.partial else ())
    which, places = prove_which(checkpoint, target), judge_places(certificate_of_plan(checkpoint, plan, target))
    heard = judge_answers(hear(checkpoint, plan, target))
    stored = (placed.proof(), values.proof(), places, heard)
    proofs = (before, *without_torch(names, target), *stored, not_run(target), which)
    return Verification(proofs=tuple(proof for proof in proofs if proof is not None))


def without_torch(names: Proof, target: Target) -> tuple[Proof, ...]:
    """What `prove_names` found, under its own name where there is a model and torch would have loaded into it."""
    if target.kind not in (TargetKind.ARCHITECTURE, TargetKind.CODE):
        return (names,)
    return (replace(names, id="names"), Proof(id="strict-load", says=f"The strict load was {_NOT_TRIED}", passed=None))


def not_run(target: Target) -> Proof:
    """The forward pass that there was none, for want of torch or of a model."""
    if target.kind in (TargetKind.ARCHITECTURE, TargetKind.CODE):
        return Proof(id="forward", says=f"A forward pass was {_NOT_TRIED}", passed=None)
    return Proof(id="forward", says="No model could be built of the target, so nothing was run.", passed=None)


def _not_whole(plan: RepairPlan) -> Proof:
    says = f"{counted(len(plan.missing), 'place')} stay untrained: an answer of the model would mean nothing yet."
    return Proof(id="forward", says=says, passed=None)


def prove_strict_load(
    state: Mapping[str, Tensor], target: Target, missing: Collection[str] = ()
) -> tuple[nn.Module | None, Proof]:
    """Load into the built model where there is one; else compare names and shapes as a strict load does.

    missing: of a part, exactly what a load with strict=False has to report, and nothing else.
    """
    if target.spec is None:
        return None, prove_names({name: tuple(tensor.shape) for name, tensor in state.items()}, target, missing)
    from inspector.architectures.build import build_model

    try:
        model = build_model(target.spec)
    except InspectorError as error:
        # What the index lists of the model is what a strict load compares, whether or not its library is here.
        proof = prove_names({name: tuple(tensor.shape) for name, tensor in state.items()}, target, missing)
        return None, replace(proof, says=f"{proof.says} It could not be built here: {error.says}")
    try:
        found = model.load_state_dict(state, strict=not missing)
    except (RuntimeError, ValueError) as error:
        return None, Proof(id="strict-load", says=str(error).splitlines()[-1].strip(), passed=False)
    if missing:
        return model, _prove_part(found.missing_keys, found.unexpected_keys, missing, state, target)
    says = f"{target.label}.load_state_dict(strict=True) accepts all {counted(len(state), 'tensor')}."
    return model, Proof(id="strict-load", says=says, passed=True)


def _prove_part(
    lacks: Collection[str],
    unexpected: Collection[str],
    missing: Collection[str],
    state: Mapping[str, Tensor],
    target: Target,
) -> Proof:
    """What load_state_dict(strict=False) reports, against the list that the plan gives."""
    if set(lacks) != set(missing) or unexpected:
        others = sorted({*unexpected, *set(lacks) ^ set(missing)})
        says = f"strict=False reports another list than the plan: {others[0]} and {len(others) - 1:,} more differ."
        return Proof(id="strict-load", says=says, passed=False)
    says = (
        f"{target.label}.load_state_dict(strict=False) loads {counted(len(state), 'tensor')}, reports nothing "
        f"unexpected and exactly the {counted(len(missing), 'tensor')} that the plan lists as missing."
    )
    return Proof(id="strict-load", says=says, passed=True)
