"""Outputs and inputs of a layer whose weights are zero, or a thousandth of their neighbours'.

The mean magnitude of a filter ranks it (Li et al. 2016, arXiv:1608.08710): a row of almost nothing puts nothing out, a
column of it reads nothing. Weights that decay under a norm get there by themselves (Liu et al. 2017, arXiv:1708.06519).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inspector.checkpoint.data import is_contiguous
from inspector.checkpoint.dtypes import DTYPES
from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.axes import VOCABULARY, is_pruned, is_sparse_file, output_axis
from inspector.health.phrases import also, shown
from inspector.health.roles import LAYERS, Role
from inspector.health.screens import screens_of
from inspector.health.subject import Examined, Subject
from inspector.units import human_share
from inspector.weights.medians import median
from inspector.weights.report import TensorStatistics
from inspector.weights.rows import column_means, row_means

DEAD_OUTPUTS = FindingKind(
    "dead-outputs", Severity.WARNING, "Filters without weights", also=(Severity.ERROR, Severity.NOTICE)
)
DEAD_INPUTS = FindingKind("dead-inputs", Severity.NOTICE, "Inputs that a layer does not read")

# What goes on with the sentence says why they are zero on purpose.
_PRUNED, _SPARSE = "; the layer is pruned", ", in a file whose layers are pruned"
_BASIS = ", where the basis of a Fourier transform has the sine of frequency 0"
_REMEDIES = {
    _PRUNED: "Structured pruning leaves filters like this on purpose: taking them out makes the network smaller.",
    _SPARSE: "Pruning by magnitude leaves filters like this on purpose: taking them out makes the network smaller. "
    "Where more than half of a layer went, it hardly passes anything on.",
    _BASIS: "The sines of frequency 0 and of half the sampling rate are zero by construction, and fixed: nothing is to "
    "be done.",
    "": "Weight decay under a norm ends like this, and pruning; the outputs are then constant, and could be left out. "
    "Filters that all lie side by side were rather lost in writing or copying: compare an earlier checkpoint.",
}
# Bytes that a disk or a file system loses at once.
_SECTOR, _MOST_LOST = 512, 1 << 16
# Of fewer no share can be told.
_LEAST = 4
# From so many layers on, filters that are exactly zero were taken out; from so many on where each lost the same share,
# as torch.nn.utils.prune.ln_structured takes it, of so many filters at least.
_PRUNED_LAYERS, _ALIKE_LAYERS, _ALIKE_LEAST = 3, 2, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dead:
    """Rows or columns of one layer. zero: those that are exactly zero. tail: they are the last ones. block: they lie
    side by side. nbytes: of one of them where it lies in one run, else 0. why: they are, of `_REMEDIES`."""

    name: str
    count: int
    dead: int
    zero: int
    first: int
    nbytes: int
    tail: bool
    block: bool
    why: str

    @property
    def share(self) -> float:
        return self.dead / self.count


def _find(subject: Subject) -> Iterator[Finding]:
    outputs: list[_Dead] = []
    inputs: list[_Dead] = []
    # A tensor of one number only is said to be that, and of what is no number no median row can be told.
    layers = subject.among(*LAYERS) & subject.columns.varied
    for one, t in subject.those(layers & subject.columns.whole & ~screens_of(subject).alive):
        axis = output_axis(subject, one)
        if t.rows is None or axis is None:
            continue
        outputs += _dead(subject, one, t, axis)
        # What few outputs do not read is a few weights of zero.
        if one.role is not Role.DEPTHWISE and t.shape[axis] >= _LEAST:
            inputs += _dead(subject, one, t, 1 - axis)
    if outputs:
        fit = subject.those(layers)
        count = sum(t.rows is not None and output_axis(subject, one) is not None for one, t in fit)
        yield from _outputs(subject, outputs, count)
    if inputs:
        inputs.sort(key=lambda each: -each.share)
        yield _inputs(subject, inputs)


def _dead(subject: Subject, one: Examined, t: TensorStatistics, axis: int) -> Iterator[_Dead]:
    assert t.rows is not None
    means = row_means(t.rows) if axis == 0 else column_means(t.rows)
    # Rows of a number or two are small by chance.
    if len(means) < _LEAST or t.numel < _LEAST * len(means):
        return
    alive = means[means > 0]
    places = dead_places(means, alive, subject.thresholds.dead)
    if len(places) and not (axis == 0 and _is_padding(subject, one, means)):
        yield _Dead(
            name=one.name,
            count=len(means),
            dead=len(places),
            zero=int((means == 0).sum()),
            first=int(places[0]),
            nbytes=t.rows.length * DTYPES[t.dtype].itemsize if axis == 0 and is_contiguous(one.tensor) else 0,
            tail=bool(places[0] == len(means) - len(places)),
            block=bool(places[-1] - places[0] == len(places) - 1),
            why=_PRUNED if is_pruned(subject, one) else _BASIS if _is_basis(t, places.tolist()) else "",
        )


def _is_padding(subject: Subject, one: Examined, means: NDArray[np.float64]) -> bool:
    """Whether it may be a table, whatever its name, whose first or last row stands for padding: nn.Embedding keeps that
    one at exactly zero, and no bias goes with it."""
    shape = one.tensor.shape
    table = len(shape) == 2 and shape[0] >= shape[1] and subject.beside(one, "bias") is None
    return table and np.flatnonzero(means == 0).tolist() in ([0], [len(means) - 1])


def _is_basis(t: TensorStatistics, places: list[int]) -> bool:
    """Whether they are the sines of frequency 0 and of half the sampling rate, where a convolution computes a Fourier
    transform: (frequencies, 1, window), the sines behind the cosines or alone."""
    if len(t.shape) != 3 or t.shape[1] != 1:
        return False
    frequencies = t.shape[2] // 2 + 1
    return (t.shape[0], places) in (
        (2 * frequencies, [frequencies, 2 * frequencies - 1]),
        (frequencies, [0, frequencies - 1]),
    )


def dead_places(means: NDArray[np.float64], alive: NDArray[np.float64], share: float) -> NDArray[np.intp]:
    """Places of the rows of almost nothing. means: the mean magnitude of each. alive: of those that are not zero.
    share: of their median."""
    limit = share * median(alive) if len(alive) else 0.0
    return np.flatnonzero(means <= limit) if limit else np.flatnonzero(means == 0)


def _outputs(subject: Subject, found: Sequence[_Dead], layers: int) -> Iterator[Finding]:
    exact = [each for each in found if each.zero == each.dead]
    everywhere = len(exact) >= _PRUNED_LAYERS and len(exact) * 2 >= layers
    alike = _share_of_all(exact)
    sparse = is_sparse_file(subject)
    groups: dict[tuple[Severity, str], list[_Dead]] = defaultdict(list)
    for each in found:
        # The last rows of a vocabulary's head fill it up.
        if each.tail and each.count >= VOCABULARY:
            continue
        why = each.why
        if not why and each.zero == each.dead:
            pruned = everywhere or (alike is not None and each.dead == round(alike * each.count) and not each.block)
            why = _PRUNED if pruned else _SPARSE if sparse else ""
        groups[_severity(subject, each, why), why].append(each)
    for (severity, why), layer in groups.items():
        layer.sort(key=lambda each: -each.share)
        yield _finding(subject, severity, layer, why)


def _share_of_all(found: Sequence[_Dead]) -> float | None:
    """The share of outputs that every one of several layers has lost, here and there, to the filter; else None."""
    scattered = [each for each in found if not each.block and each.dead >= _ALIKE_LEAST]
    if len(scattered) < _ALIKE_LAYERS:
        return None
    share = max(scattered, key=lambda each: each.count).share
    return share if all(each.dead == round(share * each.count) for each in scattered) else None


def _severity(subject: Subject, each: _Dead, why: str) -> Severity:
    limits = subject.thresholds
    if (why and why != _SPARSE) or each.share <= limits.dead_warning:
        return Severity.NOTICE
    if each.share > limits.dead_error:
        return Severity.WARNING if why else Severity.ERROR
    return Severity.NOTICE if why else Severity.WARNING


def _finding(subject: Subject, severity: Severity, layers: Sequence[_Dead], why: str) -> Finding:
    worst = layers[0]
    names = [each.name for each in layers]
    exactly = worst.zero == worst.dead
    how = "exactly" if exactly else "almost"
    where = _page(worst) if exactly else ""
    return DEAD_OUTPUTS.found(
        f"{worst.dead:,} of {worst.count:,} outputs of {shown(worst.name)} ({human_share(worst.share)}) are {how} "
        f"zero, the first at {worst.first:,}{where}{why}{also(names)}.",
        severity=severity,
        subjects=names,
        evidence=(
            *(("dead", sum(each.dead for each in layers)), ("outputs", sum(each.count for each in layers))),
            *(("exactly_zero", sum(each.zero for each in layers)), ("worst_share", worst.share)),
            *(("tensors", len(layers)), ("threshold", subject.thresholds.dead)),
            ("threshold_share", subject.thresholds.dead_warning),
        ),
        remedy=_REMEDIES[why],
    )


def _page(each: _Dead) -> str:
    """ ", side by side: 4,096 bytes from byte 12,288 ..." of rows that begin and end where sectors of a disk do."""
    begin, nbytes = each.first * each.nbytes, each.dead * each.nbytes
    if not each.block or each.dead < 2 or not 0 < nbytes <= _MOST_LOST or begin % _SECTOR or nbytes % _SECTOR:
        return ""
    return f", side by side: {nbytes:,} bytes from byte {begin:,} of the tensor on, whole sectors of a disk"


def _inputs(subject: Subject, layers: Sequence[_Dead]) -> Finding:
    worst = layers[0]
    names = [each.name for each in layers]
    return DEAD_INPUTS.found(
        f"{shown(worst.name)} does not read {worst.dead:,} of its {worst.count:,} inputs ({human_share(worst.share)}), "
        f"the first at {worst.first:,}{also(names)}.",
        subjects=names,
        evidence=(
            *(("dead", sum(each.dead for each in layers)), ("inputs", sum(each.count for each in layers))),
            *(("tensors", len(layers)), ("threshold", subject.thresholds.dead)),
        ),
        remedy="Where the layer before it puts nothing out there, or was pruned, weight decay does this: both could be "
        "made narrower. Inputs that were always zero in training (empty border pixels) look so too.",
    )


CHECK = Check(kinds=(DEAD_OUTPUTS, DEAD_INPUTS), find=_find)
