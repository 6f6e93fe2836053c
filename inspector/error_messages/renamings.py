"""Which rule turns the unexpected names into the missing ones? By names alone, with the rules of the repair.

Shapes are not in these lists, so only rules that are about names are asked. A shifted numbering is not: with names
alone it cannot be told from another depth, and following it could put every tensor one layer off.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from inspector.architectures.types import Target, TargetKind, TargetTensor
from inspector.checkpoint.bookkeeping import is_bookkeeping
from inspector.checkpoint.source import BufferSource
from inspector.checkpoint.types import Checkpoint, ModuleNode, Origin, StateDict, StateRole, TensorInfo
from inspector.checkpoint.values import Value, ValueKind
from inspector.checkpoint.wrappers import WRAPPER_SEGMENTS
from inspector.error_messages.halves import HOLDERS
from inspector.error_messages.report import KeyLists, Renaming
from inspector.keys.diagnose import diagnose
from inspector.keys.phrases import plainest_phrases
from inspector.keys.report import RepairPlan, RuleUse
from inspector.keys.rules import RULES, norm_aliases, wrapper_segment

_BY_NAME = tuple(rule for rule in RULES if rule.names_suffice)
_MOST_COMBINATIONS = 500
_NORMS = {".gamma": ".weight", ".beta": ".bias"}


@dataclass(frozen=True, slots=True)
class Level:
    """A level of the names that one side has and the other has not. added: the model has it."""

    segment: str
    added: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Renamed:
    """What turns the unexpected names into the missing ones, as far as names tell."""

    # The rules.
    renamings: tuple[Renaming, ...] = ()
    # What they drop and add of whole levels.
    levels: tuple[Level, ...] = ()
    # Unexpected name -> missing name.
    pairs: tuple[tuple[str, str], ...] = ()
    # The body of `rename(key)` that does it; () when no short way was found.
    lines: tuple[str, ...] = ()
    # Only wrapper segments of torch were dropped or added, or one prefix on all names.
    certain: bool = False
    # Where two names of the file fit one place, "" otherwise.
    question: str = ""


def find_renamings(lists: KeyLists) -> Renamed:
    """The rules that explain both lists, and the Python for them."""
    if not lists.missing or not lists.unexpected:
        return Renamed()
    unexpected = tuple(n for n in lists.unexpected if not is_bookkeeping(n))
    missing = tuple(n for n in lists.missing if not is_bookkeeping(n))
    if not unexpected or not missing:
        return Renamed()
    report = diagnose(_file_of(unexpected), _model_of(missing), rules=_BY_NAME)
    plan = report.plan
    if (norms := _by_norms(unexpected, missing)) is not None:
        return norms
    if plan is None:
        return _by_prefix(unexpected, missing) if lists.cut else Renamed()
    if plan.ambiguities:
        return Renamed(question=plan.ambiguities[0].question if _are_several(unexpected, missing) else "")
    pairs = tuple(
        (step.source, step.target) for step in plan.steps if step.source is not None and step.target is not None
    )
    uses = [use for use in plan.rules if use.count]
    if not pairs or not uses:
        return _by_prefix(unexpected, missing) if lists.cut else Renamed()
    return Renamed(
        renamings=tuple(Renaming(rule=u.id, says=u.says, count=u.count, examples=u.examples) for u in uses),
        levels=_levels(uses),
        pairs=pairs,
        lines=_lines(plan, dict(pairs)),
        certain=_is_certain(plan, pairs, unexpected, missing, cut="unexpected" in lists.cut),
    )


def _by_norms(unexpected: Sequence[str], missing: Sequence[str]) -> Renamed | None:
    """Of normalisations alone whose weight and bias one side calls gamma and beta; None when something else differs."""
    for source in ("file", "model"):
        old, new = (unexpected, missing) if source == "file" else (missing, unexpected)
        pairs = {name: name.removesuffix(end) + _NORMS[end] for name in old for end in _NORMS if name.endswith(end)}
        if len(pairs) == len(old) and set(pairs.values()) == set(new):
            endings = sorted(_NORMS.items()) if source == "file" else sorted((b, a) for a, b in _NORMS.items())
            used = [(a, b) for a, b in endings if any(name.endswith(a) for name in unexpected)]
            couples = tuple(pairs.items()) if source == "file" else tuple((b, a) for a, b in pairs.items())
            says = " and ".join(f'"{a[1:]}" to "{b[1:]}"' for a, b in used)
            renaming = Renaming(
                rule=norm_aliases.RULE.id, says=f"rename {says}", count=len(couples), examples=couples[:3]
            )
            if source == "file":
                lines = tuple(f'key = re.sub(r"{re.escape(a)}$", {b!r}, key)' for a, b in used)
                return Renamed(renamings=(renaming,), pairs=couples, lines=lines, certain=True)
            return Renamed(renamings=(renaming,), pairs=couples)  # "weight" is not only a norm's.
    return None


def _by_prefix(unexpected: Sequence[str], missing: Sequence[str]) -> Renamed:
    """Of lists that break off: whether all names of one side, and none of the other, begin with a wrapper's segment."""
    for wrapper in sorted(WRAPPER_SEGMENTS):
        text = f"{wrapper}."
        for what, ours, theirs in (("add", missing, unexpected), ("drop", unexpected, missing)):
            if all(name.startswith(text) for name in ours) and not any(name.startswith(text) for name in theirs):
                short = ours[0].removeprefix(text)
                example = (short, ours[0]) if what == "add" else (ours[0], short)
                line = f"key = {text!r} + key" if what == "add" else f"key = key.removeprefix({text!r})"
                says = f'{what} the segment "{wrapper}"'
                return Renamed(
                    renamings=(
                        Renaming(rule=wrapper_segment.RULE.id, says=says, count=len(ours), examples=(example,)),
                    ),
                    lines=(line,),
                    levels=(Level(wrapper, what == "add"),),
                    certain=True,
                )
    return Renamed()


def _are_several(unexpected: Sequence[str], missing: Sequence[str]) -> bool:
    """Whether all missing names are there twice and more, under one prefix each time."""
    names = set(unexpected)
    prefixes = {name.removesuffix(missing[0]) for name in names if name.endswith(missing[0])}
    return sum(all(prefix + name in names for name in missing) for prefix in prefixes) > 1


def _levels(uses: Sequence[RuleUse]) -> tuple[Level, ...]:
    changes = ((name, value) for use in uses for name, value in use.parameters)
    return tuple(Level(value, name == "add") for name, value in changes if name in ("drop", "add"))


def _is_certain(
    plan: RepairPlan,
    pairs: Sequence[tuple[str, str]],
    unexpected: Sequence[str],
    missing: Sequence[str],
    *,
    cut: bool,
) -> bool:
    """Whether names alone carry this: wrappers of torch's own, or one prefix that all names of both sides agree on."""
    levels = _levels(plan.rules)
    segments = {level.segment for level in levels}
    if any(use.id != wrapper_segment.RULE.id for use in plan.rules):
        return False
    if segments <= WRAPPER_SEGMENTS:
        return True
    if cut and not segments <= {*WRAPPER_SEGMENTS, *HOLDERS}:
        return False  # The rest of the list may hold a second network: encoder_q and encoder_k, student and teacher.
    # Taking one name off and putting another on is exchanging an encoder for a decoder.
    return len({level.added for level in levels}) == 1 and len(pairs) == len(unexpected) == len(missing)


def _lines(plan: RepairPlan, pairs: dict[str, str]) -> tuple[str, ...]:
    """The shortest lines that rename exactly these pairs; () when there are none."""
    prefix = one_prefix(pairs)
    if prefix is not None:
        dropped, text = prefix
        return (f"key = key.removeprefix({text!r})" if dropped else f"key = {text!r} + key",)
    phrases, wrong = plainest_phrases(plan.rules, pairs, rules=_BY_NAME, most=_MOST_COMBINATIONS)
    return () if wrong else tuple(phrase.line for phrase in phrases)


def one_prefix(pairs: Mapping[str, str]) -> tuple[bool, str] | None:
    """(dropped or else added, the prefix) when that alone renames every pair, None otherwise."""
    old, new = next(iter(pairs.items()))
    for dropped, longer, shorter in ((True, old, new), (False, new, old)):
        text = longer.removesuffix(shorter)
        if text != longer and text and all((text + b == a) if dropped else (text + a == b) for a, b in pairs.items()):
            return dropped, text
    return None


def _file_of(names: Sequence[str]) -> Checkpoint:
    """A checkpoint that has these names and nothing else."""
    tensors = tuple(TensorInfo(name=n, path=(n,), shape=(), dtype="float32", nbytes=0, storage_id=None) for n in names)
    state = StateDict(
        path=(),
        role=StateRole.WEIGHTS,
        why="the names in the error",
        kind="dict",
        tensors=tensors,
        modules=ModuleNode(name="", path=""),
    )
    return Checkpoint(
        origin=Origin(name="the file in the error", nbytes=0),
        format="",
        format_says="",
        root=Value(kind=ValueKind.MAPPING, type_name="dict", says=""),
        tensors=tensors,
        state_dicts=(state,),
        source=BufferSource(b""),
    )


def _model_of(names: Sequence[str]) -> Target:
    return Target(
        label="the model in the error",
        kind=TargetKind.KEYS,
        tensors=tuple(TargetTensor(name=name, shape=None) for name in names),
    )
