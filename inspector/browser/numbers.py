"""A first look at the numbers: NaN, infinity, zero, least and largest of each tensor, counted by typed arrays in one
pass. Which bytes are which elements is told by `checkpoint/data.py`; what it means by the health check."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from inspector.browser.first_values import all_values
from inspector.browser.pieces import finding_cards
from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.layout import is_plain_float
from inspector.errors import InspectorError, MissingLibrary, ReadError
from inspector.inspection import CountedNumbers
from inspector.progress import Progress, silent
from inspector.render.html_text import escaped
from inspector.render.page_report.words import folded, mono, section, table
from inspector.units import counted, human_count
from inspector.weights.report import TensorStatistics, ValueTable, WeightsReport

if TYPE_CHECKING:
    from inspector.checkpoint.types import Checkpoint, TensorInfo
    from inspector.findings import Finding
    from inspector.health.subject import Subject

#: Of elements in row-major order, little-endian, of a type: how many are NaN, infinite and zero, the least and the
#: largest of the finite ones (NaN without any), and the place of the first that is not finite, -1 without one.
Count: TypeAlias = Callable[[memoryview, str], Sequence[float]]
_CHUNK_NBYTES = 4 << 20
_ROWS = 500
# Plain counters and masks, which can be neither NaN nor infinite. Those of 8 bits may be what a quantiser packed.
_INTEGERS = frozenset({"int16", "int32", "int64", "bool"})


def no_count(_: memoryview, dtype: str) -> Sequence[float]:
    """Where there is no page. Raises ReadError."""
    raise ReadError(f"Nobody is here who counts numbers of type {dtype}.")


def check_numbers(
    checkpoint: Checkpoint, count: Count, progress: Progress = silent
) -> tuple[CountedNumbers, dict[str, Any]]:
    """Of the weights, or of all tensors of a file that has none: for its other views, and what the page shows. Raises
    only what progress raises."""
    state = checkpoint.weights
    tensors = (state or checkpoint).tensors
    measured, skipped = measure(checkpoint, tensors, count, progress)
    findings, unsure = _findings(checkpoint, measured, skipped)
    whole = {tensor.name for tensor in tensors if tensor.dtype in _INTEGERS and tensor.encoding is None}
    left = {name for name, _ in [*skipped, *unsure]} - whole
    told = CountedNumbers(tensors=len(measured) - len(unsure), left=len(left), findings=findings)
    numbers = sum(one.numel for one in measured)
    says = f"{human_count(numbers)} numbers of {counted(len(measured), 'tensor')} were counted."
    if measured and not any(one.nan + one.infinite for one in measured):
        says += " None of them is NaN or infinite."
    if skipped:
        says += f" {counted(len(skipped), 'tensor')} not counted."
    return told, {
        "says": says,
        "findings": finding_cards(findings, checkpoint),
        "html": _table(measured) + _not_counted([*skipped, *unsure]),
        "counts": [
            [one.name, one.numel, one.nan, one.infinite, one.zero, _finite(one.minimum), _finite(one.maximum),
             one.first_non_finite]
            for one in measured
        ],
    }  # fmt: skip


def measure(
    checkpoint: Checkpoint, tensors: Sequence[TensorInfo], count: Count, progress: Progress = silent
) -> tuple[list[TensorStatistics], list[tuple[str, str]]]:
    """Counts of those that hold plain floats; moments and tables are not measured. And (name, why) of the others."""
    measured: list[TensorStatistics] = []
    skipped: list[tuple[str, str]] = []
    whole = sum(tensor.nbytes for tensor in tensors if is_plain_float(tensor))
    done = 0
    for tensor in tensors:
        if not is_plain_float(tensor):
            skipped.append((tensor.name, f"Elements of type {tensor.dtype} are counted in the app alone."))
            continue
        progress(done, whole, tensor.name)
        begun = done
        try:
            tally = _Tally()
            for chunk in _chunks(checkpoint, tensor):
                tally.add(count(chunk, tensor.dtype), len(chunk) // DTYPES[tensor.dtype].itemsize)
                done += len(chunk)
                progress(done, whole, tensor.name)
            measured.append(tally.statistics(tensor))
        except InspectorError as error:
            skipped.append((tensor.name, error.says))
        done = begun + tensor.nbytes
    return measured, skipped


def _chunks(checkpoint: Checkpoint, tensor: TensorInfo) -> Iterator[memoryview]:
    from inspector.checkpoint.data import iter_chunks

    storage = checkpoint.storages.get(tensor.storage_id or "")
    if tensor.numel and storage is not None and storage.offset is None and storage.inline is None:
        raise ReadError(f"The file declares {tensor.name} but holds no data for it.")
    for chunk in iter_chunks(checkpoint, tensor, chunk_nbytes=_CHUNK_NBYTES):
        yield memoryview(chunk.tobytes())


class _Tally:
    """What the chunks of one tensor add up to."""

    def __init__(self) -> None:
        self._seen = self._nan = self._infinite = self._zero = 0
        self._minimum = self._maximum = math.nan
        self._first: int | None = None

    def add(self, told: Sequence[float], numel: int) -> None:
        nan, infinite, zero, low, high, first = told
        self._nan, self._infinite = self._nan + int(nan), self._infinite + int(infinite)
        self._zero += int(zero)
        if not math.isnan(low):
            self._minimum = low if math.isnan(self._minimum) else min(self._minimum, low)
            self._maximum = high if math.isnan(self._maximum) else max(self._maximum, high)
        if self._first is None and first >= 0:
            self._first = self._seen + int(first)
        self._seen += numel

    def statistics(self, tensor: TensorInfo) -> TensorStatistics:
        return TensorStatistics(
            name=tensor.name, path=tensor.path, shape=tensor.shape, dtype=tensor.dtype, numel=self._seen,
            minimum=self._minimum, maximum=self._maximum, mean=math.nan, std=math.nan, rms=math.nan,
            nan=self._nan, infinite=self._infinite, zero=self._zero, first_non_finite=self._first, table=ValueTable(),
        )  # fmt: skip


def _findings(
    checkpoint: Checkpoint, measured: Sequence[TensorStatistics], skipped: Sequence[tuple[str, str]]
) -> tuple[tuple[Finding, ...], list[tuple[str, str]]]:
    """What the health check says of NaN, infinity and negative variances; and of which tensors it is not sure here."""
    from inspector.health.checks.non_finite import CHECK
    from inspector.health.masks import may_be_mask, with_masks
    from inspector.health.phrases import reported
    from inspector.health.subject import Subject, examined

    state = checkpoint.weights
    report = WeightsReport(
        state_dict=state.path if state else (), tensors=tuple(measured), skipped=tuple(skipped), seconds=0
    )
    tensors = examined((state or checkpoint).tensors, {one.path: one for one in measured})
    subject = Subject(checkpoint=checkpoint, state=state, tensors=tensors, report=report, others={})
    unsure: list[str] = []
    try:
        subject = with_masks(subject)
    except MissingLibrary:  # Whether squares of zeros and infinities are masks takes NumPy.
        unsure = [one.name for one in subject.tensors if may_be_mask(one)]
        subject = subject.without(frozenset(unsure))
    why = "It may be a mask, which holds infinity on purpose: the app looks closer."
    found = (*CHECK.find(subject), *_negative_variances(subject))
    return reported(found), [(name, why) for name in unsure]


def _negative_variances(subject: Subject) -> Iterator[Finding]:
    """As the check of batch norms has it, which measures more of them than can be had here."""
    from inspector.health.checks.norm_variance import NegativeVariance, negative_variances
    from inspector.health.roles import Role

    hits: list[NegativeVariance] = []
    for _, tensors in subject.modules_with(Role.RUNNING_VAR):
        parts = {one.role: one for one in tensors}
        mean, var = parts.get(Role.RUNNING_MEAN), parts[Role.RUNNING_VAR]
        told = var.statistics
        if mean is None or mean.statistics is None or mean.tensor.shape != var.tensor.shape:
            continue
        if told is None or len(var.tensor.shape) != 1 or told.nan + told.infinite or not told.minimum < 0:
            continue
        negative = sum(value < 0 for value in all_values(subject.checkpoint, var.tensor))
        hits.append(NegativeVariance(name=var.name, negative=negative, channels=told.numel, lowest=told.minimum))
    if hits:
        yield negative_variances(hits)


def _table(measured: Sequence[TensorStatistics]) -> str:
    """Those with NaN or infinity first."""
    rows = [
        (
            mono(one.name, 60), f"{one.nan:,}", f"{one.infinite:,}", f"{one.zero:,}",
            escaped(_number(one.minimum)), escaped(_number(one.maximum)),
        )
        for one in sorted(measured, key=lambda one: not one.nan + one.infinite)[:_ROWS]
    ]  # fmt: skip
    heads = ("Tensor", "NaN", "Infinite", "Zero", "Least", "Largest")
    left = len(measured) - _ROWS
    rest = f'<p class="soft">{counted(left, "further tensor")}.</p>' if left > 0 else ""
    listed = table(heads, rows, numeric=(1, 2, 3, 4, 5)) if rows else ""
    return section("Counted", listed + rest)


def _not_counted(skipped: Sequence[tuple[str, str]]) -> str:
    rows = [(mono(name, 60), escaped(why)) for name, why in skipped[:_ROWS]]
    left = len(skipped) - _ROWS
    rest = f'<p class="soft">{counted(left, "further tensor")}.</p>' if left > 0 else ""
    if not rows:
        return ""
    return folded(
        f"{counted(len(skipped), 'tensor')} not counted, or not judged", table(("Tensor", "Why"), rows) + rest
    )


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"


def _finite(value: float) -> float | None:
    """JSON knows no NaN."""
    return None if math.isnan(value) else value
