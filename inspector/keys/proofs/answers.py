"""Does the repaired model answer as it should? Against another file of the same network, or a known pair.

The strongest proof there is: wrong places that shapes, order and sanity let pass change the answers. Equal bit for bit
is said as that; within 1e-5 of the largest expected value is said as that, too; anything further off fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from inspector.architectures.types import Target
from inspector.checkpoint.torch_bridge import to_torch
from inspector.checkpoint.types import Checkpoint, Shape
from inspector.errors import UsageError
from inspector.keys.apply import apply_plan
from inspector.keys.diagnose import diagnose
from inspector.keys.proofs.forward import inputs_for, run
from inspector.keys.report import Evidence, Proof
from inspector.keys.runnable import WITHOUT_CONSENT
from inspector.units import counted, human_shape

TOLERANCE = 1e-5
_CLEAN = (Evidence.EXACT_NAME, Evidence.RULE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """An input and what the right model answers to it. name: the file they came from."""

    name: str
    input: Tensor
    output: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A state dict that loads into the target by its names. name: the file it came from."""

    name: str
    state: Mapping[str, Tensor]


def pair_of(checkpoint: Checkpoint) -> Pair:
    """The tensors called input and output of an opened npz, pth or safetensors file. Raises UsageError without them."""
    found = {t.name.rpartition(".")[2]: t for t in checkpoint.tensors}
    if "input" not in found or "output" not in found:
        names = ", ".join(list(found)[:6]) or "nothing"
        raise UsageError(
            f"{checkpoint.origin.name} is no pair: it holds {names}.",
            hint='Save one with numpy.savez("pair.npz", input=..., output=...) or torch.save({"input": ..., ...}).',
        )
    given, expected = (to_torch(checkpoint, found[name]) for name in ("input", "output"))
    return Pair(name=checkpoint.origin.name, input=given, output=expected)


def reference_of(checkpoint: Checkpoint, target: Target) -> Reference:
    """The state dict of another file for the same target. Raises UsageError unless its names alone place everything.

    What has to be guessed itself proves nothing, so nothing is accepted or chosen here.
    """
    report = diagnose(checkpoint, target, accept=WITHOUT_CONSENT)
    plan = report.plan
    placed = [s for s in plan.steps if s.source is not None and s.target is not None] if plan else []
    if plan is None or not plan.complete or any(s.evidence not in _CLEAN for s in placed):
        raise UsageError(
            f"{checkpoint.origin.name} is no reference: it does not load into {target.label} by its names. "
            f"{report.refusal or report.says}",
            hint="A reference is a file of this network that loads.",
        )
    return Reference(name=checkpoint.origin.name, state=apply_plan(checkpoint, plan, spec=target.spec))


def prove_pair(model: nn.Module | None, pair: Pair) -> Proof:
    """The model's answer to the pair's input against the pair's output."""
    if model is None:
        return Proof(id="pair", says=f"No model could be built, so {pair.name} was not run.", passed=None)
    try:
        answer = run(model, {"": pair.input})
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        says = f"The model fails on the input of {pair.name} ({human_shape(tuple(pair.input.shape))}): "
        return Proof(id="pair", says=says + str(error).splitlines()[0], passed=False)
    if answer is None:
        return Proof(id="pair", says="The model does not answer with one tensor to compare.", passed=None)
    return say_equality("pair", pair.name, *differ(answer, pair.output))


def prove_reference(
    model: nn.Module | None,
    target: Target,
    state: Mapping[str, Tensor],
    reference: Reference,
    *,
    shape: Shape | None = None,
) -> Proof:
    """The same noise through the model with the repaired and with the reference's tensors.

    The model holds the reference's afterwards. Where nothing can be run, the tensors themselves are compared.
    """
    given = inputs_for(target, shape=shape, batch=2)
    if model is None or given is None:
        return compare_tensors(state, reference)
    try:
        ours = run(model, given)
        model.load_state_dict(reference.state, strict=True)
        theirs = run(model, given)
    except (RuntimeError, ValueError, TypeError) as error:
        return Proof(id="reference", says=f"The comparison failed: {str(error).splitlines()[0]}", passed=False)
    if ours is None or theirs is None:
        return compare_tensors(state, reference)
    return say_equality("reference", reference.name, *differ(ours, theirs))


def compare_tensors(state: Mapping[str, Tensor], reference: Reference) -> Proof:
    """Tensor by tensor; counters aside, which no answer depends on."""
    wanted = [n for n in state if n.rpartition(".")[2] != "num_batches_tracked"]
    other = [n for n in wanted if n not in reference.state or not _same(state[n], reference.state[n])]
    if other:
        says = f"{len(other):,} of {len(wanted):,} tensors differ from {reference.name}, {other[0]} first."
        return Proof(id="reference", says=says, passed=False)
    says = f"All {counted(len(wanted), 'tensor')} equal those of {reference.name} bit for bit; nothing was run."
    return Proof(id="reference", says=says, passed=True)


def _same(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or one.dtype is not other.dtype:
        return False
    raw = [t.detach().contiguous().reshape(-1).view(torch.uint8) if t.numel() else t for t in (one, other)]
    return bool(torch.equal(raw[0], raw[1]))


def differ(answer: Tensor, expected: Tensor) -> tuple[float, float, bool, str]:
    """(largest difference, largest expected value, equal bit for bit, why the two cannot be compared)."""
    if answer.shape != expected.shape:
        shapes = f"{human_shape(tuple(answer.shape))} instead of {human_shape(tuple(expected.shape))}"
        return 0.0, 0.0, False, f"the model answers {shapes}"
    ours, theirs = answer.double(), expected.double()
    if not bool(torch.isfinite(theirs).all()) or not bool(torch.isfinite(ours).all()):
        return 0.0, 0.0, False, "not every value is finite, and equality of these proves nothing"
    if not theirs.numel():
        return 0.0, 0.0, False, "there are no values to compare"
    return float((ours - theirs).abs().max()), float(theirs.abs().max()), _same(answer, expected), ""


def say_equality(proof_id: str, name: str, largest: float, scale: float, equal: bool, why: str) -> Proof:
    """The proof that two answers' difference is, with the tolerance it was held to."""
    if why:
        return Proof(id=proof_id, says=f"Against {name}: {why}.", passed=False)
    if equal:
        return Proof(id=proof_id, says=f"Answers as {name} does, bit for bit.", passed=True)
    share = largest / scale if scale else float("inf")
    if largest == 0.0:
        return Proof(id=proof_id, says=f"Answers as {name} does, value for value, in another type.", passed=True)
    measured = f"the largest difference is {largest:.3g}, {share:.2g} of the largest value"
    if share <= TOLERANCE:
        return Proof(id=proof_id, says=f"Answers as {name} does within {TOLERANCE:g}: {measured}.", passed=True)
    return Proof(id=proof_id, says=f"Does not answer as {name} does: {measured} ({scale:.3g}).", passed=False)
