"""Names that show where a file is from, and what that means for a repair: Caffe2, old ESRGAN, floats for counts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from inspector.checkpoint.dtypes import find_dtype
from inspector.findings import Finding, Severity
from inspector.keys.operations import fill_statistics, operation_of
from inspector.keys.remarks.entry import Remark, Seen, told
from inspector.units import counted

_CAFFE2 = re.compile(
    r"^(res[0-9]+_[0-9]+_branch[12][abc]?|conv1|res_conv1|pred|fc1000)(_bn)?_(w|b|s|beta|gamma|rm|riv)$"
)
_ESRGAN = (
    ("2018's", re.compile(r"^model\.1\.sub\.[0-9]+\.RDB[123]\.")),
    ("BasicSR's first", re.compile(r"^RRDB_trunk\.[0-9]+\.RDB[123]\.")),
    ("BasicSR's present", re.compile(r"^body\.[0-9]+\.rdb[123]\.")),
)
_STATISTICS = ("running_mean", "running_var")


def _caffe2(seen: Seen) -> str:
    found = [name for name in seen.tensors if _CAFFE2.match(name) and name not in seen.places]
    if not seen.refusal or 2 * len(found) < len(seen.tensors):
        return ""
    return (
        f"{counted(len(found), 'tensor')} have Caffe2's names ({found[0]} first), of a ResNet with scale and "
        "shift folded "
        f"into _s and _b. {seen.target.label} needs its own blocks, and which is which these names say only to a "
        "converter "
        "that knows the model, such as detectron2's."
    )


def _esrgan(seen: Seen) -> Iterator[Finding]:
    ours = [label for label, kind in _ESRGAN if any(kind.match(name) for name in seen.tensors)]
    theirs = [label for label, kind in _ESRGAN if any(kind.match(name) for name in seen.places)]
    if len(ours) == len(theirs) == 1 and ours != theirs:
        yield told(
            "esrgan-names",
            Severity.NOTICE,
            f"The file has {ours[0]} names of ESRGAN's blocks and {seen.target.label} {theirs[0]}: the layers are "
            "the same "
            "and come in the same order.",
            remedy="Where the format keeps the order, accept same-order; a wrong order shows in the shapes.",
        )


def _statistics(seen: Seen) -> Iterator[Finding]:
    if seen.plan is None or seen.plan.ambiguities:
        return
    there = {to.rpartition(".")[0] for to in seen.goes.values()}
    gone = [t.name for t in seen.unused if _is_statistic(t.name) and _norm_is_used(t.name, seen)]
    if gone:
        yield told(
            "unused-statistics",
            Severity.NOTICE,
            f"{counted(len(gone), 'running statistic')} of the file ({gone[0]} first) have no place in "
            f"{seen.target.label}: "
            "its norms compute them anew for each input, as InstanceNorm does by default since torch 0.4.",
            subjects=gone,
            remedy="For the old behaviour build the norms with track_running_stats=True.",
        )
    # Of a norm that the file lacks whole, statistics are the least that is missing.
    lacking = [n for n in seen.lacking if _is_statistic(n) and n.rpartition(".")[0] in there]
    filled = [s.target or "" for s in seen.made.steps if operation_of(s) is fill_statistics.OPERATION]
    if lacking or filled:
        first = [*lacking, *filled]
        norms = {name.rpartition(".")[0] for name in first}
        yield told(
            "no-statistics",
            Severity.WARNING,
            f"The file was saved without the running statistics of {counted(len(norms), 'batch norm')} "
            f"({first[0]} first). Mean 0 and variance 1 load, and are not what the network was trained with.",
            subjects=first,
            remedy="Measure them: one pass over training pictures in train mode, without gradients.",
        )


def _is_statistic(name: str) -> bool:
    return name.rpartition(".")[2] in _STATISTICS


def _norm_is_used(name: str, seen: Seen) -> bool:
    """Whether the statistic's norm has a place in the target, by its weight; one without weight, by its neighbours."""
    module = name.rpartition(".")[0]
    weight = f"{module}.weight" if module else "weight"
    if weight in seen.tensors:
        return weight in seen.used
    first = name.partition(".")[0]
    return any(used.partition(".")[0] == first for used in seen.used)


def _counters(seen: Seen) -> Iterator[Finding]:
    found = []
    for tensor in seen.state.tensors:
        known = find_dtype(tensor.dtype)
        counts = tensor.name.rpartition(".")[2] == "num_batches_tracked" and tensor.name in seen.used
        if counts and known is not None and known.floating:
            found.append(tensor)
    if found and any(t.dtype == "int64" for t in seen.target.tensors if t.name.endswith("num_batches_tracked")):
        yield told(
            "counter-dtype",
            Severity.NOTICE,
            f"{counted(len(found), 'batch counter')} ({found[0].name} first) are {found[0].dtype} where torch "
            "keeps int64: "
            "somebody cast the whole state dict. Loading casts them back.",
            subjects=[t.name for t in found],
            remedy="Counts above 2,048 in float16 (256 in bfloat16) are rounded; evaluation does not use them.",
        )


CAFFE2 = Remark(id="no-fit", says="Caffe2's names: refused, with what converts them.", reason=_caffe2)
ESRGAN = Remark(id="esrgan-names", says="Old and new names of ESRGAN.", find=_esrgan)
STATISTICS = Remark(id="no-statistics", says="Running statistics on one side only.", find=_statistics)
COUNTERS = Remark(id="counter-dtype", says="Batch counters as real numbers.", find=_counters)
