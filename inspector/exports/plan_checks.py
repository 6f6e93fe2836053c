"""What `verify_plan` proves, for a repair that is not to be held in memory: on the written file, tensor by tensor.

Only what needs a model is left out, and said to be.
"""

from __future__ import annotations

from inspector.architectures.types import Target, TargetKind
from inspector.checkpoint.raw_tensor import RawTensor
from inspector.checkpoint.types import Checkpoint
from inspector.exports.stream import Stream
from inspector.installed import is_installed
from inspector.keys.certificate.of_plan import certificate_of_plan
from inspector.keys.proofs.answers_heard import judge_answers
from inspector.keys.proofs.places import judge_places
from inspector.keys.proofs.stored import BytesTally, prove_bijection, prove_names
from inspector.keys.proofs.twins import prove_which
from inspector.keys.proofs.values import ValueTally
from inspector.keys.report import Proof, RepairPlan
from inspector.keys.verify import not_run, without_torch
from inspector.keys.witnesses.hearing import hear
from inspector.units import human_bytes

# A model and the tensors to fill it with take twice their size, and a forward pass more.
MODEL_NBYTES = 2_000_000_000


def model_is_built(target: Target, stream: Stream, most_nbytes: int) -> bool:
    """Whether the target is one that a model is made of, torch is here, and it is small enough to be held."""
    return (
        is_installed("torch")
        and target.kind in (TargetKind.ARCHITECTURE, TargetKind.CODE)
        and stream.nbytes <= most_nbytes
    )


class PlanChecks:
    """The proofs of one plan over a stream. before: those that need no numbers; `done` has all of them.

    cast: the type is changed on purpose, so that bytes are compared after the same cast.
    """

    def __init__(
        self, checkpoint: Checkpoint, plan: RepairPlan, target: Target, stream: Stream, *, most_nbytes: int
    ) -> None:
        self._checkpoint, self._plan, self._target = checkpoint, plan, target
        self._steps = {step.target: step for step in plan.steps if step.target is not None}
        self._bytes = BytesTally(checkpoint, plan)
        self._values = ValueTally(plan.steps)
        self._right = True
        names = prove_names(stream.shapes, target, plan.missing if plan.partial else ())
        loads: tuple[Proof, ...] = (names,)
        self._after: tuple[Proof, ...] = (_too_large(target, stream, most_nbytes),)
        if not is_installed("torch"):
            loads, which = without_torch(names, target), prove_which(checkpoint, target)
            self._after = (not_run(target), which) if which is not None else (not_run(target),)
        self.before = (prove_bijection(checkpoint, plan, target), *loads)

    def look(self, name: str, tensor: RawTensor) -> None:
        self._right = self._right and self._bytes.look(self._steps[name], tensor)
        self._values.look(name, tensor)

    def done(self) -> tuple[Proof, ...]:
        # By numbers alone, a kernel at a time: what needs no model is proved of a file's names as of an architecture.
        places = judge_places(certificate_of_plan(self._checkpoint, self._plan, self._target))
        heard = judge_answers(hear(self._checkpoint, self._plan, self._target))
        asked = [proof for proof in (places, heard) if proof is not None]
        return (*self.before, self._bytes.proof(), self._values.proof(), *asked, *self._after)


def _too_large(target: Target, stream: Stream, most_nbytes: int) -> Proof:
    if target.kind not in (TargetKind.ARCHITECTURE, TargetKind.CODE):
        return not_run(target)
    size, most = human_bytes(stream.nbytes), human_bytes(most_nbytes)
    says = f"The model would take {size}; above {most} none is built, so nothing was loaded or run."
    return Proof(id="forward", says=says, passed=None)
