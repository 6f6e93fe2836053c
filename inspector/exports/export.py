"""Write the repaired state dict, read it back, compare it bit for bit, and only then give it its name.

The numbers go from file to file one tensor at a time: memory does not grow with the checkpoint. Only a target that is
built and run is held, where it is small enough.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from inspector.architectures.types import Target
from inspector.checkpoint.types import Checkpoint
from inspector.errors import ExportError, KeysDoNotFit, ReadError, UsageError
from inspector.exports.cast import Cast
from inspector.exports.left_behind import left_behind, provenance, unshown, why_dropped
from inspector.exports.plan_checks import MODEL_NBYTES, PlanChecks, model_is_built
from inspector.exports.report import ExportReport
from inspector.exports.sources import stream_of_plan
from inspector.exports.write import check, check_destination, find_writer, write_proved
from inspector.exports.writers import WRITERS
from inspector.exports.writers.entry import Writer
from inspector.installed import require
from inspector.keys.apply import check_complete, check_installed, check_whole, state_of
from inspector.keys.report import RepairPlan, StepKind, Verification
from inspector.keys.verify import Compared, check_comparable, verify_plan
from inspector.progress import Progress, silent

_FOLDERS = re.compile(r".*[/\\]", re.DOTALL)


def export_repaired(
    checkpoint: Checkpoint,
    plan: RepairPlan,
    target: Target,
    destination: Path,
    *,
    writer: str = "pth",
    dtype: str | None = None,
    shard_nbytes: int | None = None,
    model_nbytes: int = MODEL_NBYTES,
    compared: Compared | None = None,
    optimizer: bool = False,
    groups_by_kind: bool = False,
    overwrite: bool = True,
    progress: Progress = silent,
    writers: Sequence[Writer] = WRITERS,
) -> ExportReport:
    """Apply the plan and write the result to destination, verified.

    dtype: None keeps every tensor's type; one of DTYPE_CHOICES casts the floating ones, which may lose digits.
    shard_nbytes: write a folder of shards of about that size. model_nbytes: up to which size the target is built, held
    in memory and run. compared: what the user gave to hold it against, which is then always done. optimizer: write a
    training checkpoint, in which the optimizer's state follows its parameters (`training.py`); groups_by_kind: its
    groups go by kind of parameter, where the file leaves that open. progress: in tensors, each written and read back;
    raising from it stops the work.
    Raises ExportError, and leaves no file behind, when the plan is open or incomplete, a proof fails, the destination
    is the source, or the disk refuses. Raises UsageError for a writer or dtype that does not exist.
    """
    entry = find_writer(writer, writers)
    destination = Path(destination)
    if optimizer:
        if entry.id != "pth" or dtype is not None or shard_nbytes is not None:
            raise UsageError(
                "With its optimizer, a checkpoint is written as one .pth in the types that it has.",
                hint="Leave out the other format, type or shard size.",
            )
        require("torch", "Nothing was written: an optimizer's state")
        from inspector.exports.training import export_training

        return export_training(
            checkpoint,
            plan,
            target,
            destination,
            by_kind=groups_by_kind,
            compared=compared,
            overwrite=overwrite,
            progress=progress,
        )
    check_destination(checkpoint, destination, folder=shard_nbytes is not None, overwrite=overwrite)
    try:
        check_complete(plan)
        check_whole(checkpoint, plan)
        check_installed(plan)
        check_comparable(compared or Compared())
        stream = stream_of_plan(checkpoint, plan, spec=target.spec)
        cast = Cast(stream, dtype) if dtype is not None else None
        checks = PlanChecks(checkpoint, plan, target, stream, most_nbytes=model_nbytes)
        check(Verification(proofs=checks.before))
        built: Verification | None = None
        held_against = compared is not None and (compared.reference is not None or compared.pair is not None)
        if held_against or model_is_built(target, stream, model_nbytes):
            progress(0, None, "verifying the plan")
            built = verify_plan(checkpoint, plan, target, compared=compared)
            check(built)
    except KeysDoNotFit as error:
        raise ExportError(f"Nothing was written. {error.says}", hint=error.hint) from error
    try:
        report = write_proved(
            cast.stream if cast is not None else stream,
            destination,
            entry,
            provenance(
                checkpoint,
                entry,
                repaired_from=checkpoint.origin.name,
                repaired_for=named_alone(plan.target),
                repaired_by="; ".join(use.says for use in plan.rules) or "no change of names",
                **_share(plan, target),
            ),
            checks=checks if built is None else None,
            shard_nbytes=shard_nbytes,
            overwrite=overwrite,
            progress=progress,
        )
    except ReadError as error:
        raise ExportError(f"Nothing was written. {error.says}", hint=error.hint) from error
    if built is not None:
        proofs = built.proofs
        if cast is not None and cast.report is not None:
            # The model held and ran the file's own numbers.
            proofs = tuple(replace(p, says=f"Before the cast to {dtype}: {p.says}") for p in proofs)
        report = replace(report, verification=Verification(proofs=proofs + report.verification.proofs))
    state = state_of(checkpoint, plan)
    used = {name for step in plan.steps if step.target is not None for name in step.sources}
    lost = left_behind(checkpoint, state, entry)
    lost += tuple(f"{s.source}: {why_dropped(s)}" for s in plan.steps if s.kind is StepKind.DROP)
    lost += unshown(checkpoint, [t for t in state.tensors if t.name in used])
    return replace(
        report,
        lost=lost + report.lost,
        stays_initial=plan.missing if plan.partial else (),
        cast=cast.report if cast is not None else None,
    )


def named_alone(target: str) -> str:
    """ "file:/home/me/other.pth" as "file:other.pth": where it lay is nothing for whoever is given the new file."""
    form, colon, rest = target.partition(":")
    return f"{form}:{_FOLDERS.sub('', rest)}" if colon and form in ("file", "keys", "code") else target


def _share(plan: RepairPlan, target: Target) -> dict[str, str]:
    """What a part says of itself in the written file."""
    if not plan.partial:
        return {}
    return {"partial": f"{len(target.tensors) - len(plan.missing)} of {len(target.tensors)} tensors"}
