"""Another size, another depth, another count of classes: named, where the file is a network that is known."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.architectures.recognise import recognise
from inspector.architectures.types import Candidate
from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.keys.checks.entry import MOST_SUBJECTS, Context, refusing
from inspector.keys.placing.stacks import is_block, side_by_side, stacks
from inspector.keys.report import StepKind
from inspector.units import counted

OTHER_ARCHITECTURE = FindingKind("other-architecture", Severity.WARNING, "Another known network, whole")
OTHER_DEPTH = FindingKind("other-depth", Severity.WARNING, "The target has more blocks than the file")
SIDE_BY_SIDE = FindingKind("side-by-side", Severity.NOTICE, "Some of several copies side by side")
BACKGROUND_CLASS = FindingKind("background-class", Severity.NOTICE, "One class more or fewer than the target")

# What is named must be nearly whole: a guess would send the user after another network.
_NEAR = 0.9


def named(context: Context) -> Candidate | None:
    """The known network that the file is, where it is another than the target; None when that is not certain."""
    if not context.checkpoint.format:
        return None  # names out of an error message
    best = recognise(context.checkpoint, context.state, describe=False).best
    if best is None or best.score < _NEAR:
        return None
    own = (f"{best.spec.library}/{best.spec.name}", *best.twins)
    spec = context.target.spec
    theirs = f"{spec.library}/{spec.name}" if spec is not None else context.target.label
    return None if theirs in own else best


def _variant(context: Context) -> str:
    """Another size or depth of a known network, which is named."""
    if not context.misfit:
        return ""
    best = named(context)
    if best is None:
        return ""
    text = f"{context.misfit} By its names and shapes this is {best.spec.library}/{best.spec.name}"
    return f"{text}, not {context.target.label}: build that one, or take another file."


def _other(context: Context) -> Iterator[Finding]:
    dropped = context.draft.unplaced
    if context.plan is None or context.plan.ambiguities or not (context.plan.missing or dropped):
        return
    best = named(context)
    if best is None or not best.exact:
        return
    name, lacking, without = f"{best.spec.library}/{best.spec.name}", len(context.plan.missing), len(dropped)
    faults = []
    if lacking:
        faults.append(f"{context.target.label} has {counted(lacking, 'tensor')} that it lacks")
    if without:
        # Under the target's names all would load, and compute something else.
        place = "no place for" if lacking else f"{context.target.label} has no place for"
        faults.append(f"{place} {without:,} of its tensors, and what is left computes something else")
    yield OTHER_ARCHITECTURE.found(
        f"By its names and shapes the file is {name}, whole; {', and '.join(faults)}.",
        subjects=dropped[:MOST_SUBJECTS],
        remedy=f"Take {name} as the target.",
    )


def _depth(context: Context) -> Iterator[Finding]:
    """Blocks of the target that the file lacks whole, while it has others of the same form."""
    if not context.lacking:
        return
    missing = set(context.lacking)
    for stack in stacks(context.draft.target):
        blocks = list(stack.blocks.values())
        lacking = [b for b in blocks if is_block(b) and all(x.name in missing for _, x in b.walk())]
        if not lacking:
            continue
        gone = {id(b) for b in lacking}
        there = [b for b in blocks if id(b) not in gone]
        forms = {b.forms for b in there}
        if any(b.forms in forms for b in lacking):
            yield OTHER_DEPTH.found(
                f"{stack.place or 'the network'} has {len(there)} blocks in the file and {len(blocks)} in "
                f"{context.target.label}: the file is of a shallower network, and no renaming makes up for the rest.",
                remedy="Build the model with as many blocks as the file has.",
            )


def _beside(context: Context) -> Iterator[Finding]:
    """Copies side by side, such as twin critics, of which the target has some."""
    dropped = set(context.draft.unplaced)
    for stack in stacks(context.draft.source) if dropped else ():
        away = [b for b in stack.blocks.values() if is_block(b) and all(x.name in dropped for _, x in b.walk())]
        if away and len(away) < len(stack.blocks) and side_by_side(stack):
            taken = [".".join(b.path) for b in stack.blocks.values() if b not in away]
            yield SIDE_BY_SIDE.found(
                f"{stack.place or 'The file'} has {len(stack.blocks)} copies side by side, none of which follows "
                f"another (twin critics, an ensemble): {', '.join(taken)} {'is' if len(taken) == 1 else 'are'} the "
                f"target's, {', '.join('.'.join(b.path) for b in away)} left out.",
                subjects=sorted(dropped)[:MOST_SUBJECTS],
            )


def _background(context: Context) -> Iterator[Finding]:
    steps = context.draft.steps_by(lambda rule: rule.replaces_head)
    dropped = [step for step in steps if step.kind is StepKind.DROP]
    filled = [step for step in steps if step.kind is StepKind.FILL]
    ours = {(context.tensors[s.source].shape or (0,))[0] for s in dropped if s.source in context.tensors}
    theirs = {(s.shape or (0,))[0] for s in filled}
    if len(ours) == len(theirs) == 1 and abs(min(ours) - min(theirs)) == 1:
        here, there = ours.pop(), theirs.pop()
        more = "more" if here > there else "fewer"
        yield BACKGROUND_CLASS.found(
            f"The head has {here:,} classes in the file and {there:,} in {context.target.label}, one {more}: perhaps a "
            "background class, first in TensorFlow's files and last in others. The file does not say which row it is.",
            subjects=[s.source for s in dropped if s.source][:MOST_SUBJECTS],
            remedy="Where you know the row, take it out yourself; it is never cut here.",
        )


REFUSALS = (refusing(_variant),)
CHECKS = (
    Check(kinds=(OTHER_ARCHITECTURE,), find=_other),
    Check(kinds=(OTHER_DEPTH,), find=_depth),
    Check(kinds=(SIDE_BY_SIDE,), find=_beside),
    Check(kinds=(BACKGROUND_CLASS,), find=_background),
)
