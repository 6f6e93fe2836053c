"""Moments of another shape than their parameter: torch loads them without a word, and fails at the first step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from inspector.checkpoint.types import Shape, StateRole
from inspector.checkpoint.values import ValueKind
from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.subject import Subject
from inspector.health.training.optimizers import Entry, Optimizer
from inspector.keys.optimizer.map import ELEMENTWISE, parameters_of
from inspector.units import counted, human_shape

MOMENT_SHAPE = FindingKind("moment-shape", Severity.ERROR, "An optimizer's state has another shape than its parameter")
MOMENT_ORDER = FindingKind("moments-out-of-order", Severity.WARNING, "An optimizer's state is in another order")
# By number alone, so much must agree before the rest is called wrong.
_AGREE = 0.75
_FEW = 4
# Parts of a network whose parameters were listed one behind the other by hand.
_PARTS = 4
_MOST = 2000


def _find(subject: Subject) -> Iterator[Finding]:
    for optimizer in subject.training.optimizers:
        wrong = [*_within(optimizer)] or [*_beside(subject, optimizer)]
        if wrong:
            names = [name for name, _ in wrong]
            shown = "; ".join(says for _, says in wrong[:3]) + (f" and {len(wrong) - 3:,} more" if wrong[3:] else "")
            yield MOMENT_SHAPE.found(
                f"{optimizer.called} has state of another shape than its parameter for "
                f"{counted(len(wrong), 'entry', 'entries')}: {shown}.",
                subjects=names,
                evidence=(("entries", len(wrong)), ("listed", optimizer.listed)),
                remedy="load_state_dict takes it, and the first step then fails. It was saved for another model, often "
                "before a layer was replaced: drop the state of these entries, or resume with a new optimizer.",
            )
        else:
            yield from _reordered(subject, optimizer)


def _shapes(entry: Entry) -> dict[str, Shape]:
    return {name: tensor.shape for name, tensor in entry.tensors.items() if ELEMENTWISE.fullmatch(name)}


def _within(optimizer: Optimizer) -> Iterator[tuple[str, str]]:
    """Moments of one parameter that differ from each other: one of them cannot be right."""
    for entry in optimizer.entries.values():
        shapes = _shapes(entry)
        if len(set(shapes.values())) > 1:
            parts = ", ".join(f"{name} is {human_shape(shape)}" for name, shape in list(shapes.items())[:3])
            yield entry.label, f"of {entry.label} {parts}"


def _beside(subject: Subject, optimizer: Optimizer) -> Iterator[tuple[str, str]]:
    state = subject.state
    if state is None or state.role is not StateRole.WEIGHTS or not optimizer.whole or optimizer.names:
        return
    shapes = {name: tensor.shape for name, tensor in parameters_of(state).items()}
    for key, name in _named(optimizer).items() or _numbered(optimizer, shapes, ordered=state.ordered).items():
        entry = optimizer.entries.get(key)
        own = set(_shapes(entry).values()) if entry is not None else set()
        if name in shapes and own and own != {shapes[name]}:
            yield name, f"{name} is {human_shape(shapes[name])}, its state {human_shape(next(iter(own)))}"


def _reordered(subject: Subject, optimizer: Optimizer) -> Iterator[Finding]:
    """By number: as many entries as parameters and of the same shapes, in an order that nobody lists them in."""
    state = subject.state
    if state is None or state.role is not StateRole.WEIGHTS or not optimizer.whole or optimizer.names:
        return
    tensors = parameters_of(state)
    keys = [key for group in optimizer.groups for key in group.keys]
    if not state.ordered or _named(optimizer) or len(optimizer.groups) != 1 or len(keys) != len(tensors) <= _MOST:
        return
    held = [next(iter(_shapes(optimizer.entries[key]).values()), None) for key in keys if key in optimizer.entries]
    shapes = {name: tensor.shape for name, tensor in tensors.items()}
    needed = list(shapes.values())
    if len(held) != len(needed) or Counter(held) != Counter(needed) or _is_usual(held, shapes):
        return
    wrong = [(key, name) for key, name, one in zip(keys, shapes, held, strict=True) if one != shapes[name]]
    key, name = wrong[0]
    first = held[keys.index(key)] or ()
    backwards = ", and read from its end all of them agree" if held == needed[::-1] else ""
    yield MOMENT_ORDER.found(
        f"{optimizer.called} has the shapes of the parameters in another order: {len(wrong):,} of {len(keys):,} "
        f"entries do not fit, the first entry {key}, {human_shape(first)} beside {name}, {human_shape(shapes[name])}"
        f"{backwards}.",
        subjects=[name for _, name in wrong],
        evidence=(("entries", len(wrong)), ("of", len(keys)), ("backwards", bool(backwards))),
        remedy="torch matches them by number and loads them without a word: the first step fails, or trains parameters "
        "with the moments of others. Harmless only where the optimizer was given its parameters in this order, and is "
        "again.",
    )


def _is_usual(held: Sequence[Shape | None], shapes: Mapping[str, Shape]) -> bool:
    """Whether they are in an order that scripts make: parts of a network one behind the other, matrices before vectors
    or behind them, the alphabet's."""
    names = list(shapes)
    orders = [
        sorted(names),
        sorted(names, key=lambda name: len(shapes[name]) > 1),
        sorted(names, key=lambda name: len(shapes[name]) < 2),
        sorted(names, key=lambda name: name.rpartition(".")[2]),
    ]
    if any(held == [shapes[name] for name in order] for order in orders):
        return True
    left: list[Shape | None] = list(shapes.values())
    at = parts = 0
    while at < len(held) and parts < _PARTS:
        length, place = max((_run(held[at:], left[i:]), -i) for i in range(len(left)))
        if not length:
            return False
        left[-place : -place + length] = [None] * length
        at, parts = at + length, parts + 1
    return at == len(held)


def _run(one: Sequence[Shape | None], other: Sequence[Shape | None]) -> int:
    """How many of them agree from the first on."""
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b or b is None), min(len(one), len(other)))


def _named(optimizer: Optimizer) -> dict[str, str]:
    """key -> name, where the file keeps names."""
    found: dict[str, str] = {}
    for group in optimizer.groups:
        params, names = group.settings.get("params"), group.settings.get("param_names")
        if names is not None and len(names.children) == len(group.keys):
            found |= {key: name.says for key, (_, name) in zip(group.keys, names.children, strict=True)}
        elif params is not None and all(child.kind is ValueKind.TEXT for _, child in params.children):
            found |= {key: key for key in group.keys}
    return found


def _numbered(optimizer: Optimizer, shapes: dict[str, Shape], *, ordered: bool) -> dict[str, str]:
    """key -> name by number, where as many parameters are there and nearly all agree; a reordering does not count."""
    keys = [key for group in optimizer.groups for key in group.keys]
    if not ordered or len(optimizer.groups) != 1 or len(keys) != len(shapes):
        return {}
    own = {key: set(_shapes(optimizer.entries[key]).values()) for key in keys if key in optimizer.entries}
    pairs = [(key, name) for key, name in zip(keys, shapes, strict=True) if own.get(key)]
    wrong = [(key, name) for key, name in pairs if own[key] != {shapes[name]}]
    agree = len(pairs) - len(wrong)
    if agree < _FEW or agree < _AGREE * len(pairs):
        return {}
    held = Counter(next(iter(own[key])) for key, _ in wrong)
    needed = Counter(shapes[name] for _, name in wrong)
    return dict(pairs) if held != needed else {}


CHECK = Check(kinds=(MOMENT_SHAPE, MOMENT_ORDER), find=_find)
