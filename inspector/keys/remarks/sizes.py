"""Another size, another depth, another count of classes: named, where the file is a network that is known."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.architectures.recognise import recognise
from inspector.architectures.types import Candidate
from inspector.findings import Finding, Severity
from inspector.keys.blocks import is_block, stacks
from inspector.keys.remarks.entry import Remark, Seen, told
from inspector.keys.report import StepKind
from inspector.units import counted

# What is named must be nearly whole: a guess would send the user after another network.
_NEAR = 0.9


def named(seen: Seen) -> Candidate | None:
    """The known network that the file is, where it is another than the target; None when that is not certain."""
    if not seen.checkpoint.format:
        return None  # names out of an error message
    best = recognise(seen.checkpoint, seen.state).best
    if best is None or best.score < _NEAR:
        return None
    own = (f"{best.spec.library}/{best.spec.name}", *best.twins)
    spec = seen.target.spec
    theirs = f"{spec.library}/{spec.name}" if spec is not None else seen.target.label
    return None if theirs in own else best


def _variant(seen: Seen) -> str:
    if not seen.refusal:
        return ""
    best = named(seen)
    if best is None:
        return ""
    text = f"{seen.refusal} By its names and shapes this is {best.spec.library}/{best.spec.name}"
    return f"{text}, not {seen.target.label}: build that one, or take another file."


def _other(seen: Seen) -> Iterator[Finding]:
    dropped = seen.made.unplaced
    if seen.plan is None or seen.plan.ambiguities or not (seen.plan.missing or dropped):
        return
    best = named(seen)
    if best is None or not best.exact:
        return
    name, lacking, without = f"{best.spec.library}/{best.spec.name}", len(seen.plan.missing), len(dropped)
    faults = []
    if lacking:
        faults.append(f"{seen.target.label} has {counted(lacking, 'tensor')} that it lacks")
    if without:
        # Under the target's names all would load, and compute something else.
        place = "no place for" if lacking else f"{seen.target.label} has no place for"
        faults.append(f"{place} {without:,} of its tensors, and what is left computes something else")
    yield told(
        "other-architecture",
        Severity.WARNING,
        f"By its names and shapes the file is {name}, whole; {', and '.join(faults)}.",
        subjects=dropped,
        remedy=f"Take {name} as the target.",
    )


def _depth(seen: Seen) -> Iterator[Finding]:
    """Blocks of the target that the file lacks whole, while it has others of the same form."""
    if not seen.lacking:
        return
    missing = set(seen.lacking)
    for stack in stacks(seen.made.target):
        blocks = list(stack.blocks.values())
        lacking = [b for b in blocks if is_block(b) and all(x.name in missing for _, x in b.walk())]
        there = [b for b in blocks if b not in lacking]
        forms = {b.forms for b in there}
        if lacking and any(b.forms in forms for b in lacking):
            yield told(
                "other-depth",
                Severity.WARNING,
                f"{stack.place or 'the network'} has {len(there)} blocks in the file and {len(blocks)} in "
                f"{seen.target.label}: the file is of a shallower network, and no renaming makes up for the rest.",
                remedy="Build the model with as many blocks as the file has.",
            )


def _background(seen: Seen) -> Iterator[Finding]:
    steps = seen.made.steps_by(lambda rule: rule.replaces_head)
    dropped = [step for step in steps if step.kind is StepKind.DROP]
    filled = [step for step in steps if step.kind is StepKind.FILL]
    ours = {(seen.tensors[s.source].shape or (0,))[0] for s in dropped if s.source in seen.tensors}
    theirs = {(s.shape or (0,))[0] for s in filled}
    if len(ours) == len(theirs) == 1 and abs(min(ours) - min(theirs)) == 1:
        here, there = ours.pop(), theirs.pop()
        more = "more" if here > there else "fewer"
        yield told(
            "background-class",
            Severity.NOTICE,
            f"The head has {here:,} classes in the file and {there:,} in {seen.target.label}, one {more}: perhaps a "
            "background class, first in TensorFlow's files and last in others. The file does not say which row it is.",
            subjects=[s.source for s in dropped if s.source],
            remedy="Where you know the row, take it out yourself; it is never cut here.",
        )


VARIANT = Remark(id="no-fit", says="Another size or depth of a known network: refused, and named.", reason=_variant)
OTHER = Remark(id="other-architecture", says="The file is another known network, whole.", find=_other)
DEPTH = Remark(id="other-depth", says="The target has more blocks than the file.", find=_depth)
BACKGROUND = Remark(id="background-class", says="One class more or fewer.", find=_background)
