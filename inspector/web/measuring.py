"""Statistics of the file in hand for the pages: measured once, shown as figures, tables and downloads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from inspector.checkpoint.types import StateDict, TensorInfo
from inspector.health.report import HealthReport
from inspector.jobs.job import Job
from inspector.jobs.kinds.table import sized
from inspector.kept_with import KeptWith
from inspector.render import figures as plots
from inspector.render.spreadsheet import csv_text
from inspector.units import counted, human_shape, human_share
from inspector.web import jobs, reports
from inspector.web.components import Figure
from inspector.web.session import Hand
from inspector.web.text import visible
from inspector.weights.fingerprint import fingerprint
from inspector.weights.histogram import histogram
from inspector.weights.look import TensorLook
from inspector.weights.report import Fingerprint, TensorStatistics, WeightsReport

BINS = 96
# 2,048 x 2,048: some seconds.
_SPECTRUM, _QUICK_NUMEL = "spectrum", 1 << 22


def tensor_statistics(hand: Hand, tensor: TensorInfo) -> TensorStatistics:
    """One read over one tensor. Raises ReadError when its bytes are not in the file."""
    job = Job(kind="tensor", arguments=(reports.file_of(hand), tensor.path), near=hand.sha256)
    found: TensorStatistics = jobs.ask(job, says="Reading the tensor")
    return found


def tensor_look(hand: Hand, tensor: TensorInfo) -> TensorLook:
    """The first numbers of a tensor, a corner of it, its filters. Raises ReadError as above."""
    job = Job(kind="tensor-look", arguments=(reports.file_of(hand), tensor.path), near=hand.sha256)
    found: TensorLook = jobs.ask(job, says="Reading the tensor")
    return found


def spectrum_job(hand: Hand, state: StateDict | None, tensor: TensorInfo) -> Job:
    """The singular values of one tensor: a `SpectrumReport` of it alone."""
    kind = f"long-{_SPECTRUM}" if tensor.numel > _QUICK_NUMEL else _SPECTRUM
    return Job(kind=kind, arguments=(reports.file_of(hand, state), tensor.path), near=hand.sha256)


def health_job(hand: Hand, state: StateDict | None) -> Job:
    """Numbers and checks of a state dict: a `HealthReport`."""
    nbytes = sum(t.nbytes for t in reports.checkpoint_of(hand).tensors)
    return Job(kind=sized("health", nbytes), arguments=(reports.file_of(hand, state),), near=hand.sha256)


def health_if_read(hand: Hand, state: StateDict | None) -> HealthReport | None:
    """The report where somebody has had the numbers read already, else None; nothing is begun and nothing drawn."""
    job = health_job(hand, state)
    found: HealthReport | None = jobs.begin(job, patience=0) if jobs.is_known(job) else None
    return found


def health_report(hand: Hand, state: StateDict | None, *, draw: bool = True) -> HealthReport | None:
    """Numbers and checks of a state dict: the report when it is done, else None, and progress is drawn if `draw`."""
    job = health_job(hand, state)
    found: HealthReport | None = jobs.await_job(job, title="Reading every tensor once") if draw else jobs.begin(job)
    return found


def number(value: float) -> str:
    """Four digits, as a person reads them."""
    return "none" if math.isnan(value) else f"{value:.4g}"


def statistics_figures(found: TensorStatistics) -> list[Figure]:
    """The row above the histogram."""
    row = [
        Figure(label=label, says=number(value), exact=repr(value))
        for label, value in (
            ("minimum", found.minimum),
            ("mean", found.mean),
            ("maximum", found.maximum),
            ("deviation", found.std),
        )
    ]
    row.append(
        Figure(label="exactly zero", says=human_share(found.zero / max(1, found.numel)), exact=f"{found.zero:,}")
    )
    if found.nan or found.infinite:
        row.append(Figure(label="NaN, infinite", says=f"{found.nan:,}, {found.infinite:,}"))
    return row


def decoding_says(found: TensorStatistics) -> str:
    """What the numbers are where they are not the elements as they are stored, else ""."""
    if found.decoding is None:
        return ""
    return f"Measured: {counted(found.numel, 'number')}, {found.decoding.says}."


def histogram_figure(found: TensorStatistics, *, logarithmic: bool) -> Any:
    """Counts over values."""
    return plots.histogram_figure(histogram(found, bins=BINS), logarithmic=logarithmic)


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """drawn: the heat strip, neighbours bundled to rows that a page shows. tensors: how many it is of."""

    drawn: Fingerprint
    tensors: int


def strip_of(report: WeightsReport, *, only: Sequence[str] | None = None, without: Sequence[str] = ()) -> Strip:
    """As `fingerprint`, counted once while the report is there: a page asks at each of its runs."""
    kept, key = _STRIPS.of(report), (None if only is None else tuple(only), tuple(without))
    if key not in kept:
        strip = fingerprint(report, only=only, without=without)
        kept[key] = Strip(drawn=plots.bundled(strip), tensors=len(strip.names))
    return kept[key]


_STRIPS: KeptWith[WeightsReport, dict[tuple[tuple[str, ...] | None, tuple[str, ...]], Strip]] = KeptWith(lambda _: {})


def small_fingerprint(report: WeightsReport) -> Any | None:
    """The heat strip in half a page's width, with the names of some rows: what a file looks like at a glance. None when
    no tensor makes a row of it."""
    strip = strip_of(report)
    return plots.fingerprint_figure(strip.drawn, labels=12, width=22) if strip.tensors else None


def statistics_csv(health: HealthReport) -> str:
    """The same rows to take along."""
    frame = statistics_frame(health)
    return csv_text(list(frame.columns), frame.itertuples(index=False, name=None))


def statistics_frame(health: HealthReport) -> pd.DataFrame:
    """One row per tensor, not to be written to; made once while the report is there."""
    return _FRAMES.of(health)


def _frame(health: HealthReport) -> pd.DataFrame:
    report, roles = health.weights, dict(health.roles)
    return pd.DataFrame(
        {
            "Tensor": [visible(t.name) for t in report.tensors],
            "Shape": [human_shape(t.shape) for t in report.tensors],
            "Type": [t.dtype for t in report.tensors],
            "Role": [roles[t.name].value if t.name in roles else "" for t in report.tensors],
            "Minimum": [t.minimum for t in report.tensors],
            "Mean": [t.mean for t in report.tensors],
            "Maximum": [t.maximum for t in report.tensors],
            "Deviation": [t.std for t in report.tensors],
            "RMS": [t.rms for t in report.tensors],
            "Zero": [t.zero for t in report.tensors],
            "NaN": [t.nan for t in report.tensors],
            "Infinite": [t.infinite for t in report.tensors],
            "Measured as": [t.decoding.says if t.decoding else "" for t in report.tensors],
        }
    )


_FRAMES: KeptWith[HealthReport, pd.DataFrame] = KeptWith(_frame)
