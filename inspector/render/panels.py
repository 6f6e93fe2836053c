"""Results as they are drawn: numbers as text, tables, curves, files. Plain values, which any process can hold."""

from __future__ import annotations

from dataclasses import dataclass

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One table. numeric: columns that hold numbers. more: what stands below it, "" for nothing."""

    key: str
    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[int, ...] = ()
    more: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """Curves of one kind. lines: (of what, points). limited: whether values are shares."""

    key: str
    title: str
    x: str
    y: str
    limited: bool
    lines: tuple[tuple[str, Points], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureLine:
    """One measure of trust. cells: (value, spread) of each map as text, the explained one first; "" for none."""

    title: str
    says: str
    cells: tuple[tuple[str, str], ...]
    verdict: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustPanel:
    """Whether one map can be trusted. heads: of the columns of `lines`. refused: why measures are left out. void: why
    the randomisation test says nothing, "" where it was taken. forgetting: what it says. forgotten: (modules replaced,
    rank correlation). agreement: (methods, their rank correlations) at `layer`, None where that was not measured.
    csv, json: the numbers to take home."""

    summary: str
    heads: tuple[str, ...]
    lines: tuple[MeasureLine, ...]
    refused: tuple[str, ...]
    curves: tuple[Curves, ...]
    void: str
    forgetting: str
    forgotten: Points
    layer: str
    agreement: tuple[tuple[str, ...], tuple[tuple[float, ...], ...]] | None
    csv: str
    json: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PicturesPanel:
    """The same over several pictures. sentences: the answer first."""

    sentences: tuple[str, ...]
    listings: tuple[Listing, ...]
    csv: str
    json: str
