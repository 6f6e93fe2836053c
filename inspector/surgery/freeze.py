"""Lines that freeze a part of a network for training: plain torch, to be pasted behind the lines that load the file.

Frozen means three things: no gradient; batch norms that stay in eval, or their running statistics would go on moving
with every batch; and no place in the optimizer. `model.train()` at the start of each epoch would set the batch norms
back, so `train` is overridden.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from inspector.checkpoint.types import Checkpoint, StateDict
from inspector.errors import ExportError, UsageError
from inspector.keys.code import python_code
from inspector.keys.loading import WRITTEN
from inspector.keys.report import StepKind
from inspector.keys.written import plan_of_written
from inspector.surgery.report import SurgeryReport
from inspector.surgery.rules import RULES
from inspector.surgery.tensors import leading_wrapper, share_memory, table_of
from inspector.units import counted

LEARNING_RATE = 1e-3
# Buffers that move in training without any gradient: of batch norms, and of both kinds of spectral norm.
_MOVING = ("running_mean", "weight_u", "_u")


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeCode:
    """modules: what is frozen, as the model has the paths. text: the lines, with those that load the file.

    tensors, counting: how many names lie in it, and how many of its modules keep running statistics. new: modules that
    train at the whole learning rate. notes: what freezing does beyond that, each a sentence.
    """

    modules: tuple[str, ...]
    text: str
    tensors: int
    counting: int
    new: tuple[str, ...]
    notes: tuple[str, ...] = ()


def freeze_code(
    checkpoint: Checkpoint, report: SurgeryReport, frozen: Sequence[str], *, factor: float = 0.1, written: str = ""
) -> FreezeCode:
    """The lines for these modules of what a surgery leaves (`plan_surgery` without steps leaves all of it).

    frozen: their paths, as the result has them. factor: of the learning rate of what is neither frozen nor new.
    written: name of the file that the surgery was written to, for the lines to load; "" to do it on the file itself.
    Raises UsageError for a path that is none or a factor that is no share, ExportError for a file that has not all its
    numbers.
    """
    if not 0 < factor <= 1:
        raise UsageError(f"{factor:g} is no factor of a learning rate.", hint="Give a number above 0, up to 1.")
    if not frozen:
        raise UsageError("Nothing is named to be frozen.", hint="Name modules, such as conv1,layer1.")
    plan = report.plan
    state = next(s for s in checkpoint.state_dicts if s.path == plan.state_dict)
    table = table_of(checkpoint, _result(state, report))
    around = leading_wrapper([item.name for item in table.items])
    paths = list(dict.fromkeys(table.find(path) for path in frozen))
    notes = [says for says in table.notes if around]
    inside = list({item.name: item for path in paths for item in table.below(path)}.values())
    names = {item.name for item in inside}
    if len(names) == len(table.items):
        raise UsageError("That is the whole network: nothing would be left to train.", hint="Freeze less of it.")
    new = [s.target for s in plan.steps if s.kind is StepKind.FILL and s.target is not None]
    cut = [name for name in new if name in names]
    if cut:
        raise UsageError(f"{cut[0]} is new, and frozen it would never be trained.", hint="Freeze what is not new.")
    others = [item for item in table.items if item.name not in names]
    notes += [
        f"{other.name} is the same tensor as {one.name}, so it is frozen too."
        for one in inside
        for other in others
        if share_memory(one.info, other.info)
    ]
    heads = tuple(dict.fromkeys(name.rpartition(".")[0].removeprefix(around) for name in new))
    heads += _modules_without([item.name for item in table.items], plan.missing)
    own = tuple(path.removeprefix(around) for path in paths)
    moving = [item.name for item in inside if item.name.rpartition(".")[2] in _MOVING]
    loading = _loading(report, checkpoint.origin.name, around, written)
    return FreezeCode(
        modules=own,
        text=loading + "\n".join(["", *_lines(own, heads, factor, moving, notes)]) + "\n",
        tensors=len(names),
        counting=len(moving),
        new=heads,
        notes=tuple(notes),
    )


def _result(state: StateDict, report: SurgeryReport) -> StateDict:
    """The state dict as the surgery leaves it. New tensors stand with the shape of their step."""
    infos = {tensor.name: tensor for tensor in state.tensors}
    tensors = []
    for step in report.plan.steps:
        if step.target is None:
            continue
        if step.source is not None:
            tensors.append(replace(infos[step.source], name=step.target))
        else:
            like = next(iter(infos.values()))
            tensors.append(replace(like, name=step.target, shape=step.shape or (), storage_id=None))
    return replace(state, tensors=tuple(tensors))


def _modules_without(there: Sequence[str], missing: Sequence[str]) -> tuple[str, ...]:
    """The outermost modules of an architecture that the file has nothing of: they are new as well."""
    held = {name[:at] for name in there for at, sign in enumerate(name) if sign == "."}
    found = {}
    for name in missing:
        segments = name.split(".")
        prefixes = [".".join(segments[:count]) for count in range(1, len(segments))]
        outermost = next((prefix for prefix in prefixes if prefix not in held), "")
        if outermost:
            found[outermost] = True
    return tuple(found)


def _loading(report: SurgeryReport, file_name: str, around: str, written: str) -> str:
    """The lines that do the surgery on the file itself and load it; where it is written already, or no plain loader
    reads the file, those that load what was or will be written."""
    plan = report.plan
    if plan.lost:
        raise ExportError(
            f"No lines load this file: {counted(plan.lost, 'tensor')} of it {'has' if plan.lost == 1 else 'have'} not "
            "all their numbers.",
            hint="Get it again.",
        )
    opening = ""
    if written or not plan.format or plan.is_module:
        opening = (
            "" if written else f"# Write the result first, as {WRITTEN}: these lines load it, not the file itself.\n"
        )
        plan = plan_of_written(plan, (written or WRITTEN,))
    code = python_code(plan, file_name=file_name, rules=RULES, spec=report.target.spec)
    if around and report.target.spec is None:
        line = f"state = {{key.removeprefix({around!r}): tensor for key, tensor in state.items()}}\n"
        at = code.index("\n# `model` is yours")
        code = code[:at] + line + code[at:]
    return opening + code


def _lines(
    frozen: Sequence[str], new: Sequence[str], factor: float, moving: Sequence[str], notes: Sequence[str]
) -> list[str]:
    whole = "of what is new" if new else "of the whole; what is not frozen trains at a share of it"
    rest = [
        f"FROZEN = {tuple(frozen)!r}",
        *([f"NEW = {tuple(new)!r}"] if new else []),
        f"LEARNING_RATE = {LEARNING_RATE:g}  # {whole}",
        f"FACTOR = {factor:g}  # of it, for what is neither frozen nor new" if new else f"FACTOR = {factor:g}",
        *(f"# {note}" for note in notes),
        "",
        "",
        "def lies_in(name, modules):",
        '    return any(name == module or name.startswith(module + ".") for module in modules)',
        "",
        "",
        "for name, parameter in model.named_parameters(remove_duplicate=False):",
        "    if lies_in(name, FROZEN):",
        "        parameter.requires_grad_(False)",
        "",
        "",
    ]
    held = [name for name in _MOVING if any(one.rpartition(".")[2] == name for one in moving)] or ["running_mean"]
    keeps = " or ".join(f'hasattr(module, "{name}")' for name in held)
    condition = keeps if len(held) == 1 else f"({keeps})"
    move = "moves" if len(moving) == 1 else "move"
    what = f"{counted(len(moving), 'buffer')} of it {move} in training, gradients or not."
    rest += [
        f"# {what}" if moving else "# By its names nothing of it moves without gradients; what does is held still.",
        "class PartlyFrozen(type(model)):",
        "    def train(self, mode=True):",
        "        super().train(mode)",
        "        for name, module in self.named_modules():",
        f"            if lies_in(name, FROZEN) and {condition}:",
        "                module.eval()",
        "        return self",
        "",
        "",
        "model.__class__ = PartlyFrozen",
        "model.train()",
        "",
    ]
    if new:
        return [
            *rest,
            "learning = [(name, p) for name, p in model.named_parameters() if p.requires_grad]",
            "groups = [",
            '    {"params": [p for name, p in learning if lies_in(name, NEW)], "lr": LEARNING_RATE},',
            '    {"params": [p for name, p in learning if not lies_in(name, NEW)], "lr": LEARNING_RATE * FACTOR},',
            "]",
            'optimizer = torch.optim.AdamW([group for group in groups if group["params"]])',
        ]
    return [
        *rest,
        'groups = [{"params": [p for p in model.parameters() if p.requires_grad], "lr": LEARNING_RATE * FACTOR}]',
        "optimizer = torch.optim.AdamW(groups)",
    ]
