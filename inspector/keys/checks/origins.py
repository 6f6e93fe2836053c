"""Names that show where a file is from, and what that means for a repair: Caffe2, old ESRGAN, floats for counts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from inspector.checkpoint.bookkeeping import is_bookkeeping
from inspector.checkpoint.dtypes import find_dtype
from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.keys.checks.entry import MOST_SUBJECTS, Context, refusing
from inspector.keys.operations import fill_statistics, operation_of
from inspector.keys.placing.other_numbers import Says, lost_level
from inspector.keys.placing.roles import is_other_quantity, roles_of, split_name
from inspector.keys.placing.tree import Leaf
from inspector.units import counted

ESRGAN_NAMES = FindingKind("esrgan-names", Severity.NOTICE, "Old and new names of ESRGAN")
UNUSED_STATISTICS = FindingKind("unused-statistics", Severity.NOTICE, "Running statistics that the target leaves out")
NO_STATISTICS = FindingKind("no-statistics", Severity.WARNING, "Batch norms without their running statistics")
COUNTER_DTYPE = FindingKind("counter-dtype", Severity.NOTICE, "Batch counters as real numbers")

_CAFFE2 = re.compile(
    r"^(res[0-9]+_[0-9]+_branch[12][abc]?|conv1|res_conv1|pred|fc1000)(_bn)?_(w|b|s|beta|gamma|rm|riv)$"
)
_ESRGAN = (
    ("2018's", re.compile(r"^model\.1\.sub\.[0-9]+\.RDB[123]\.")),
    ("BasicSR's first", re.compile(r"^RRDB_trunk\.[0-9]+\.RDB[123]\.")),
    ("BasicSR's present", re.compile(r"^body\.[0-9]+\.rdb[123]\.")),
)
ANOTHER_MOMENT = FindingKind("another-moment", Severity.NOTICE, "Weights of another moment, or averaged")
_STATISTICS = ("running_mean", "running_var")


def _caffe2(context: Context) -> str:
    found = [name for name in context.tensors if _CAFFE2.match(name) and name not in context.places]
    if not context.misfit or 2 * len(found) < len(context.tensors):
        return ""
    return (
        f"{counted(len(found), 'tensor')} have Caffe2's names ({found[0]} first), of a ResNet with scale and shift "
        f"folded into _s and _b. {context.target.label} needs its own blocks, and which is which these names say only "
        "to a converter that knows the model, such as detectron2's."
    )


def _esrgan(context: Context) -> Iterator[Finding]:
    # Most files end here.
    if not any("RDB" in form or "rdb" in form for form in context.forms):
        return
    ours = [label for label, kind in _ESRGAN if any(kind.match(name) for name in context.tensors)]
    theirs = [label for label, kind in _ESRGAN if any(kind.match(name) for name in context.places)]
    if len(ours) == len(theirs) == 1 and ours != theirs:
        yield ESRGAN_NAMES.found(
            f"The file has {ours[0]} names of ESRGAN's blocks and {context.target.label} {theirs[0]}: the layers are "
            "the same and come in the same order.",
            remedy="Where the format keeps the order, accept same-order; a wrong order shows in the shapes.",
        )


def _statistics(context: Context) -> Iterator[Finding]:
    if context.plan is None or context.plan.ambiguities:
        return
    there = {to.rpartition(".")[0] for to in context.goes.values()}
    gone = [t.name for t in context.unused if _is_statistic(t.name) and _norm_is_used(t.name, context)]
    if gone:
        yield UNUSED_STATISTICS.found(
            f"{counted(len(gone), 'running statistic')} of the file ({gone[0]} first) have no place in "
            f"{context.target.label}: its norms compute them anew for each input, as InstanceNorm does by default "
            "since torch 0.4.",
            subjects=gone[:MOST_SUBJECTS],
            remedy="For the old behaviour build the norms with track_running_stats=True.",
        )
    # Of a norm that the file lacks whole, statistics are the least that is missing.
    lacking = [n for n in context.lacking if _is_statistic(n) and n.rpartition(".")[0] in there]
    filled = [s.target or "" for s in context.draft.steps if operation_of(s) is fill_statistics.OPERATION]
    if lacking or filled:
        first = [*lacking, *filled]
        norms = {name.rpartition(".")[0] for name in first}
        yield NO_STATISTICS.found(
            f"The file was saved without the running statistics of {counted(len(norms), 'batch norm')} "
            f"({first[0]} first). Mean 0 and variance 1 load, and are not what the network was trained with.",
            subjects=first[:MOST_SUBJECTS],
            remedy="Measure them: one pass over training pictures in train mode, without gradients.",
        )


def _is_statistic(name: str) -> bool:
    return name.rpartition(".")[2] in _STATISTICS


def _norm_is_used(name: str, context: Context) -> bool:
    """Whether the statistic's norm has a place in the target, by its weight; one without weight, by its neighbours."""
    module = name.rpartition(".")[0]
    weight = f"{module}.weight" if module else "weight"
    if weight in context.tensors:
        return weight in context.used
    first = name.partition(".")[0]
    return any(used.partition(".")[0] == first for used in context.used)


def _counters(context: Context) -> Iterator[Finding]:
    found = []
    for tensor in context.state.tensors:
        known = find_dtype(tensor.dtype)
        counts = tensor.name.rpartition(".")[2] == "num_batches_tracked" and tensor.name in context.used
        if counts and known is not None and known.floating:
            found.append(tensor)
    if found and any(t.dtype == "int64" for t in context.target.tensors if t.name.endswith("num_batches_tracked")):
        yield COUNTER_DTYPE.found(
            f"{counted(len(found), 'batch counter')} ({found[0].name} first) are {found[0].dtype} where torch keeps "
            "int64: somebody cast the whole state dict. Loading casts them back.",
            subjects=[t.name for t in found[:MOST_SUBJECTS]],
            remedy="Counts above 2,048 in float16 (256 in bfloat16) are rounded; evaluation does not use them.",
        )


_CALLED = {"logarithm": "a logarithm", "inverse": "an inverse", "deviation": "a deviation", "mean": "a mean"}


def _other_quantity(context: Context) -> str:
    """What would fit by its shape and is another quantity than its place: no copy is right."""
    lacking = context.draft.missing
    left = {tensor.name for tensor in context.unused}
    if not lacking or not left:
        return ""
    roles = dict(zip((x.name for x in context.leaves), roles_of(context.leaves), strict=True))
    there = [Leaf(t.name, t.shape) for t in context.target.tensors]
    wanted = dict(zip((x.name for x in there), roles_of(there), strict=True))
    others: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for leaf in context.leaves:
        own, last = split_name(leaf.name)
        if leaf.name in left and leaf.shape and last not in _STATISTICS and roles[leaf.name] in _CALLED:
            others.setdefault((split_name(own)[1], leaf.shape), []).append(leaf.name)
    # Of a mean and a variance that are both missing, the variance is what a deviation was meant for.
    for place in sorted(lacking, key=lambda one: wanted.get(one.name) != "variance"):
        module = split_name(split_name(place.name)[0])[1]
        if module.isdecimal():
            continue  # everybody's name
        for name in others.get((module, tuple(place.shape or ())), ()):
            ours, theirs = roles[name], wanted[place.name]
            if is_other_quantity(ours, theirs):
                return (
                    f"{name} has the shape of {place.name}, for which the file has nothing, and is "
                    f"{_CALLED[ours or '']} by its name, the place none: it is no copy of it. Work out "
                    f"{split_name(place.name)[1]} from it as the code does that saved it, and save it under that name."
                )
    return ""


def _moment(context: Context) -> Iterator[Finding]:
    """What is an average or another epoch's by its name, and was taken without a choice of the user."""
    if context.questions.used:
        return
    lost: set[tuple[Says, str]] = set()
    for ours, theirs in context.goes.items():
        if not is_bookkeeping(ours):
            found = lost_level(".".join((*context.state.path, ours)), theirs)
            if found is None:
                return
            lost.add(found)
    level = next((found[1] for found in lost if found[0] is Says.MOMENT), "")
    if level:
        yield ANOTHER_MOMENT.found(
            f'All names have "{level}", which says that these are the weights of another moment, or an average. The '
            "file has no others that fit: these are taken.",
            remedy="Take another file if the weights of the last step are wanted.",
        )


REFUSALS = (refusing(_caffe2), refusing(_other_quantity))
CHECKS = (
    Check(kinds=(UNUSED_STATISTICS, NO_STATISTICS), find=_statistics),
    Check(kinds=(COUNTER_DTYPE,), find=_counters),
    Check(kinds=(ESRGAN_NAMES,), find=_esrgan),
    Check(kinds=(ANOTHER_MOMENT,), find=_moment),
)
