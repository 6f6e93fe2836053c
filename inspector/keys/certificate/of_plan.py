"""The certificate of a plan before anything of it is done: also of one that still waits for an answer or consent."""

from __future__ import annotations

from inspector.architectures.types import Target
from inspector.checkpoint.raw_tensor import RawTensor, read_raw
from inspector.checkpoint.types import Checkpoint
from inspector.errors import InspectorError
from inspector.keys.apply import make_one, state_of
from inspector.keys.certificate.numbers import certificate_of
from inspector.keys.certificate.types import Certificate
from inspector.keys.report import RepairPlan


def certificate_of_plan(checkpoint: Checkpoint, plan: RepairPlan, target: Target) -> Certificate | None:
    """One tensor at a time. What cannot be read or made is left open; None for a target without batch norms."""
    infos = {t.name: t for t in state_of(checkpoint, plan).tensors}
    steps = {step.target: step for step in plan.steps if step.target is not None}

    def read(name: str) -> RawTensor | None:
        if name not in steps:
            return None
        try:
            return make_one(steps[name], lambda source: read_raw(checkpoint, infos[source]))
        except InspectorError:
            return None

    return certificate_of(target, read)
