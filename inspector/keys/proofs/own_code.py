"""What can be proven about a target that a person's own code builds, where that code may be run.

The model lives in another process (`architectures/code_trial.py`): what comes back is what load_state_dict said, a
digest of every tensor that the model then held, and its answers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from inspector.architectures.code_trial import Trial, try_code
from inspector.architectures.types import Target
from inspector.checkpoint.types import Shape
from inspector.errors import ModelError
from inspector.keys.proofs.answers import Pair, Reference, compare_tensors, differ, say_equality
from inspector.keys.proofs.forward import judge_answer, noise
from inspector.keys.report import Proof
from inspector.units import counted, human_shape

_SIDE = 224


def prove_in_code(
    state: Mapping[str, Tensor],
    target: Target,
    *,
    folder: Path | None = None,
    shape: Shape | None = None,
    pair: Pair | None = None,
    reference: Reference | None = None,
) -> list[Proof]:
    """Strict load, bytes held, forward, and what the user gave to compare with. Runs the person's code.

    folder: where it runs. shape: of the whole noise with its batch; None tries one picture of 224x224 where the file
    has a first convolution.
    """
    given = shape or _picture(target)
    inputs = {"noise": noise(given)} if given else {}
    if pair is not None:
        inputs["pair"] = pair.input
    try:
        found = try_code(
            target.label, state, inputs=inputs, reference=reference.state if reference else None, folder=folder
        )
    except ModelError as error:
        return [Proof(id="strict-load", says=_brief(error.says), passed=False)]
    if not found.kind:
        return []
    if found.strict:
        return [Proof(id="strict-load", says=found.strict, passed=False)]
    says = f"{found.kind}.load_state_dict(strict=True) accepts all {counted(len(state), 'tensor')}, in its own process."
    proofs = [Proof(id="strict-load", says=says, passed=True), _prove_held(state, found)]
    proofs.append(_prove_forward(state, found, given, asked=shape is not None))
    if pair is not None:
        proofs.append(_prove_pair(found, pair))
    if reference is not None:
        proofs.append(_prove_reference(state, found, reference))
    return proofs


def _brief(says: str) -> str:
    """A traceback in it shortened to its ends."""
    first, *rest = says.strip().splitlines()
    return f"{first} … {rest[-1].strip()}" if rest else first


def _picture(target: Target) -> Shape | None:
    first = next((t.shape for t in target.tensors if t.shape is not None and len(t.shape) == 4), None)
    return (1, first[1], _SIDE, _SIDE) if first and 0 < first[1] <= 16 else None


def _prove_held(state: Mapping[str, Tensor], found: Trial) -> Proof:
    """The model's own tensors, by digest: a hook that renames or computes while loading shows here."""
    for name, tensor in state.items():
        dtype, digest = found.held.get(name, ("", ""))
        kind = getattr(torch, dtype, None)
        if not isinstance(kind, torch.dtype) or _digest(tensor.to(kind)) != digest:
            says = f"{name} is not what the model holds after loading."
            return Proof(id="held", says=says, passed=False)
    return Proof(id="held", says=f"The model holds all {counted(len(state), 'tensor')} bit for bit.", passed=True)


def _digest(tensor: Tensor) -> str:
    flat = tensor.detach().contiguous().reshape(-1)
    return hashlib.sha256(flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b"").hexdigest()


def _prove_forward(state: Mapping[str, Tensor], found: Trial, given: Shape | None, *, asked: bool) -> Proof:
    if given is None:
        return Proof(id="forward", says="Nobody said what the model takes, so nothing was run.", passed=None)
    answer = found.outputs.get("noise")
    if answer is None:
        why = found.failed.get("noise", "it gave no answer")
        says = f"A forward pass on {human_shape(given)} failed: {why}"
        # A shape that was only tried proves nothing by failing.
        return Proof(id="forward", says=says, passed=False if asked else None)
    values = answer.float()
    spread = float(values.std()) if values.numel() > 1 else 1.0
    return judge_answer(given, tuple(values.shape), bool(torch.isfinite(values).all()), spread, state)


def _prove_pair(found: Trial, pair: Pair) -> Proof:
    answer = found.outputs.get("pair")
    if answer is None:
        says = f"The model fails on the input of {pair.name}: {found.failed.get('pair', 'it gave no answer')}"
        return Proof(id="pair", says=says, passed=False)
    return say_equality("pair", pair.name, *differ(answer, pair.output))


def _prove_reference(state: Mapping[str, Tensor], found: Trial, reference: Reference) -> Proof:
    ours, theirs = found.outputs.get("noise"), found.outputs.get("reference")
    if ours is None or theirs is None:
        return compare_tensors(state, reference)
    return say_equality("reference", reference.name, *differ(ours, theirs))
