"""Segments that training tools put into parameter names, seen without knowing the model.

Only segments that a tool adds by itself are known here, and only whole segments count: "my_module.weight" has none.
Whether they have to go depends on the target, which is for the repair to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from inspector.checkpoint.bookkeeping import COUNTERS
from inspector.checkpoint.types import StateDict, StateRole
from inspector.checkpoint.wrappers import WRAPPER_SEGMENTS, WRAPPERS
from inspector.findings import Finding, FindingKind, Severity
from inspector.units import counted

WRAPPER_NAMES = FindingKind("wrapper-names", Severity.NOTICE, "Names carry the segments of wrappers")

# "module" is also a name that people choose, so it counts only where every name begins with it, but for a counter
# such as torch's AveragedModel puts beside its wrapped module.
_BESIDE = frozenset(COUNTERS)
_LONGEST = 4096
_AVERAGED = "AveragedModel (torch.optim.swa_utils), whose counter n_averaged lies beside it"


def observe_wrappers(states: Iterable[StateDict]) -> list[Finding]:
    """One finding per set of weights whose names carry segments of a known tool."""
    found = (_wrapped(s) for s in states if s.role is not StateRole.OPTIMIZER and not s.is_module)
    return [finding for finding in found if finding is not None]


def _wrapped(state: StateDict) -> Finding | None:
    counts = dict.fromkeys(WRAPPERS, 0)
    for name in _names(state):
        if not WRAPPER_SEGMENTS.isdisjoint(name):
            for segment in WRAPPER_SEGMENTS.intersection(name[:-1]):
                counts[segment] += 1
    if not any(counts.values()):
        return None
    names = list(_names(state))
    leading = _leading(names)
    kept = {s: n for s, n in counts.items() if n and (s != "module" or s in leading)}
    if not kept:
        return None
    if leading and all(n == len(names) for n in kept.values()):
        says = f'All {counted(len(names), "name")} of {state.label[:200]} begin with "{".".join(leading)}."'
    else:
        each = ", ".join(
            f'"{segment}" in {count:,} of {counted(len(names), "name")}' for segment, count in kept.items()
        )
        says = f"Names of {state.label[:200]} carry {each}"
    # torch's AveragedModel wraps as DataParallel does, and keeps its counter beside what it wraps.
    averaged = any(tensor.name == "n_averaged" for tensor in state.tensors)
    tools = "; ".join(f'"{s}" comes from {_AVERAGED if averaged and s == "module" else WRAPPERS[s]}' for s in kept)
    return WRAPPER_NAMES.found(
        f"{says}: {tools}.",
        subjects=tuple(".".join(name) for name in names[:3]),
        evidence=tuple(kept.items()),
        remedy="A model that is not wrapped the same way does not load them: repair takes the segments out, also "
        "without a known target.",
    )


def _names(state: StateDict) -> Iterator[list[str]]:
    """The segments of each name; lists of all of them at once take as much memory as all the tensors."""
    return (t.name.split(".") for t in state.tensors if t.name not in _BESIDE and len(t.name) <= _LONGEST)


def _leading(names: list[list[str]]) -> list[str]:
    """The known segments that every name begins with, in order: ["_orig_mod", "module"]."""
    leading: list[str] = []
    while True:
        at = len(leading)
        first = {name[at] if len(name) > at + 1 else "" for name in names}
        if len(first) != 1 or next(iter(first)) not in WRAPPERS:
            return leading
        leading.append(first.pop())
