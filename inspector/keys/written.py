"""The lines that load a file which was written here: names and order are the target's already, nothing is renamed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from inspector.architectures.types import ArchitectureSpec
from inspector.checkpoint.types import Access
from inspector.keys.code import python_code
from inspector.keys.report import RepairPlan, StepKind

# For what was written without a plan, under the names that it had.
_AS_IT_IS = RepairPlan(
    target="", state_dict=(), steps=(), rules=(), ambiguities=(), needs_accept=(), missing=(), complete=True
)


def written_code(
    files: Sequence[str],
    plan: RepairPlan = _AS_IT_IS,
    *,
    spec: ArchitectureSpec | None = None,
    access: Access = (),
    left_out: Sequence[str] = (),
) -> str:
    """Lines that load these files, which were written by the plan, strictly. files: an index among them is left out.

    spec: the target's, as for `python_code`. access: where in the file the weights are, of a training checkpoint.
    left_out: names that the model has and the files lack; the lines say so, and load the rest.
    """
    if left_out:
        plan = replace(plan, missing=tuple(dict.fromkeys((*plan.missing, *left_out))), partial=True)
    shards = [name for name in files if not name.endswith(".json")]
    return python_code(plan_of_written(plan, shards, access=access), file_name=shards[0], spec=spec)


def plan_of_written(plan: RepairPlan, files: Sequence[str], *, access: Access = ()) -> RepairPlan:
    """The plan for what was made by it: everything is in its place."""
    steps = [
        replace(step, kind=StepKind.KEEP, source=step.target, value="", rule="")
        for step in plan.steps
        if step.target is not None
    ]
    return replace(
        plan,
        steps=tuple(steps),
        rules=(),
        format="safetensors" if files[0].endswith(".safetensors") else "torch-zip",
        files=tuple(files),
        access=access,
        gathered=(),
        is_module=False,
        others=(),
        odd_keys=(),
        # What the file lacked is not in the written one at all.
        lost=0,
    )
