"""torch's `_metadata` (which version of each module class wrote the file), carried through a renaming.

Load hooks depend on it: a BatchNorm of version 2 must have its batch counter, one without a version gets it filled in.
Renamed tensors with metadata under old names would make torch treat a new file as an old one.
"""

from __future__ import annotations

from collections import OrderedDict

from inspector.keys.report import RepairPlan, StepKind

# torchvision's MNASNets raise for a state dict without a version, as every safetensors file is one
# (torchvision/models/mnasnet.py); the builders' own names and shapes are those of the second.
NEEDED = {"torchvision/mnasnet": 2}

_APART = (StepKind.MERGE, StepKind.SPLIT, StepKind.TIE)


def renamed_versions(plan: RepairPlan) -> tuple[tuple[str, int], ...]:
    """(module path, version) as the target spells the paths; modules without a place in it are left out."""
    places: dict[str, str] = {}
    for step in plan.steps:
        # A module that became a part of another, or several, has no version of its own there.
        if step.source is None or step.target is None or step.kind in _APART:
            continue
        ours, theirs = step.source.split("."), step.target.split(".")
        while ours and theirs and ours[-1] == theirs[-1]:
            ours, theirs = ours[:-1], theirs[:-1]
            places.setdefault(".".join(ours), ".".join(theirs))
        # A leaf alias (gamma, weight) hides the shared end: the module is still the tensor's own.
        places.setdefault(step.source.rpartition(".")[0], step.target.rpartition(".")[0])
    found: OrderedDict[str, int] = OrderedDict()
    for path, version in plan.versions:
        place = places.get(path)
        if place is None:
            # Modules without tensors (ReLU, Dropout) go where their parent goes.
            parent, _, name = path.rpartition(".")
            above = places.get(parent)
            if above is None or not name:
                continue
            place = f"{above}.{name}" if above else name
        # Of a wrapper and what it wraps, both at one place now, the inner one (later in the file) is the module itself.
        found[place] = version
    needed = needed_version(plan)
    if needed is not None:
        found.setdefault("", needed)
    return tuple(found.items())


def needed_version(plan: RepairPlan) -> int | None:
    """The version without which the target's class refuses any state dict; None for nearly all."""
    return next((version for start, version in NEEDED.items() if plan.target.startswith(start)), None)
