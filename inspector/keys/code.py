"""The plan as Python lines for the user's own script: plain torch, no import of this package.

Each rule knows ways to write itself. The plainest combination that reproduces the plan's every renaming is taken, by
trying it on the plan's own names; names that no rule explains are listed one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

from inspector.architectures.building_lines import building_lines, can_build
from inspector.architectures.types import ArchitectureSpec
from inspector.errors import ExportError
from inspector.keys.loading import exported_lines, loading_ending, loading_lines, model_lines
from inspector.keys.operations import by_operation, operation_of
from inspector.keys.operations.entry import Moment
from inspector.keys.phrases import plainest_phrases
from inspector.keys.report import RepairPlan, Step, StepKind
from inspector.keys.rules import RULES
from inspector.keys.rules.entry import Rule
from inspector.units import counted

_MOST_COMBINATIONS = 2000


def python_code(
    plan: RepairPlan, *, file_name: str, rules: Sequence[Rule] = RULES, spec: ArchitectureSpec | None = None
) -> str:
    """Lines that load `file_name`, do what the plan does, and load `model` strictly.

    spec: the target's; where torchvision or timm has it, the lines build it. Else `model` is the reader's own.

    The file is opened with weights_only=True. Where no plain loader reads what was opened (an archive of files, GGUF, a
    DeepSpeed folder, names that weights_only refuses), they say to export it first. Raises ExportError for a file that
    has not all numbers: no lines would load it.
    """
    if plan.lost:
        raise ExportError(
            f"No lines load this file: {counted(plan.lost, 'tensor')} of it {'has' if plan.lost == 1 else 'have'} not "
            "all their numbers.",
            hint="Get it again; what is whole can be written without the rest.",
        )
    built = building_lines(spec) if spec is not None else None
    # What is built here has zeros where a part has nothing to say, and a new network has its initial values.
    own = spec.label if spec is not None and can_build(spec) and not plan.stays_initial else ""
    library = [f"import {built.module}"] if built else []
    if not plan.format:
        ending = [*model_lines(built, own), *loading_ending(plan)]
        opening = [
            *_standard(ending),
            "import torch",
            *library,
            "",
            *exported_lines(file_name, plan, _accepted(plan, rules)),
        ]
        return "\n".join([*opening, *ending]) + "\n"
    lines = _renaming(plan, rules)
    more, opening = loading_lines(plan, file_name)
    before, after = _joining(plan)
    body = [
        *opening,
        "",
        *before,
        *lines,
        *after,
        *model_lines(built, own),
        *_lines_of(plan, Moment.TARGET),
        *_ending(plan),
    ]
    imports = [*(m for m in more if m == "import numpy"), "import torch", *(m for m in more if m != "import numpy")]
    imports = [*_standard(body), *imports, *library]
    if plan.is_module and plan.format != "torchscript":
        body.insert(
            0, "# The file is a pickled module: loading it runs the code it names. The repaired file needs none."
        )
    return "\n".join([*imports, "", *body]) + "\n"


def _accepted(plan: RepairPlan, rules: Sequence[Rule]) -> list[str]:
    """The rules that were applied because somebody said so."""
    asking = {rule.id for rule in rules if rule.can_be_accepted}
    return [use.id for use in plan.rules if use.accepted and use.id in asking]


def _standard(lines: Sequence[str]) -> list[str]:
    """Imports of the standard library that the lines need, with an empty line after them."""
    found = [f"import {name}" for name in ("collections", "re") if any(f"{name}." in line for line in lines)]
    return [*found, ""] if found else []


def _renaming(plan: RepairPlan, rules: Sequence[Rule]) -> list[str]:
    steps = [s for s in plan.steps if not _is_apart(s)]
    placed = {s.source: s.target for s in steps if s.source is not None and s.target is not None}
    dropped = [s.source for s in steps if s.kind is StepKind.DROP and s.source is not None]
    phrases, exceptions = plainest_phrases(plan.rules, placed, rules=rules, most=_MOST_COMBINATIONS)
    lines = []
    modules = _modules(exceptions, placed)
    if phrases or exceptions:
        lines += ["def rename(key):"]
        if modules:
            lines += ['    module, _, leaf = key.rpartition(".")', "    if module in renamed:"]
            lines += ['        return f"{renamed[module]}.{leaf}"']
        elif exceptions:
            lines += ["    if key in renamed:", "        return renamed[key]"]
        lines += [f"    {phrase.line}" for phrase in phrases]
        lines += ["    return key", "", ""]
    if exceptions:
        table = [f"    {old!r}: {new!r}," for old, new in (modules or exceptions).items()]
        lines = ["renamed = {", *table, "}", "", "", *lines]
    unwanted = _unwanted(dropped, list(placed))
    conditions = [unwanted] if unwanted else []
    if plan.others:
        conditions.insert(0, "isinstance(tensor, torch.Tensor)")
    if plan.odd_keys:
        conditions.insert(0, "isinstance(key, str)")
    condition = f" if {' and '.join(conditions)}" if conditions else ""
    name = "rename(key)" if phrases or exceptions else "key"
    if name != "key" or condition:
        lines.append(f"state = {{{name}: tensor for key, tensor in state.items(){condition}}}")
    return lines


def _joining(plan: RepairPlan) -> tuple[list[str], list[str]]:
    """Lines before the renaming, which speak of the file's names, and after it."""
    lines = _lines_of(plan, Moment.FILE)
    if not lines:
        return [], []
    gone = dict.fromkeys(name for step in plan.steps if _is_apart(step) for name in step.takes)
    if not any(step.target is not None and _is_apart(step) for step in plan.steps):
        return [*lines, ""], []
    lines = ["made = {}", *lines]
    if gone:
        lines += [f"for key in {list(gone)!r}:", "    del state[key]"]
    return [*lines, ""], ["state.update(made)"]


def _is_apart(step: Step) -> bool:
    """Whether it is done under the file's names, so that no renaming speaks of it."""
    return operation_of(step).moment is Moment.FILE


def _modules(exceptions: dict[str, str], placed: dict[str, str]) -> dict[str, str]:
    """The same renaming by whole modules, {} where it is not one: a leaf that changes, or a module that is split."""
    made: dict[str, str] = {}
    for old, new in exceptions.items():
        (ours, _, leaf), (theirs, _, last) = old.rpartition("."), new.rpartition(".")
        if leaf != last or not (ours and theirs) or made.setdefault(ours, theirs) != theirs:
            return {}
    for old, new in placed.items():
        ours, _, leaf = old.rpartition(".")
        if ours in made and f"{made[ours]}.{leaf}" != new:
            return {}
    return made


def _unwanted(dropped: Sequence[str], kept: Sequence[str]) -> str:
    """A condition on `key` that keeps what is kept and leaves out what is dropped; "" when nothing is dropped."""
    if not dropped:
        return ""
    ends = {name.rpartition(".")[2] for name in dropped}
    if len(ends) <= 3 and not any(name.rpartition(".")[2] in ends for name in kept):
        return f'key.rpartition(".")[2] not in {_as_set(ends)}'
    starts = {name.partition(".")[0] + "." for name in dropped if "." in name}
    if len(starts) <= 3 and all("." in name for name in dropped) and not any(k.startswith(tuple(starts)) for k in kept):
        return f"not key.startswith({tuple(sorted(starts))!r})"
    return f"key not in {_as_set(dropped)}"


def _as_set(names: Sequence[str] | set[str]) -> str:
    return "{" + ", ".join(repr(name) for name in sorted(names)) + "}"


def _lines_of(plan: RepairPlan, moment: Moment) -> list[str]:
    """What the plan's operations have to say at that moment."""
    lines = []
    for operation, steps in by_operation(plan.steps):
        if operation.moment is moment and operation.lines is not None:
            lines += operation.lines(steps)
    return lines


def _ending(plan: RepairPlan) -> list[str]:
    return [*_lines_of(plan, Moment.MODEL), *loading_ending(plan)]
