"""Gathers the values of events into series, by TensorBoard's rules.

A tag is shown by the plugin that its first value names. A value at a step takes the place of all earlier ones at the
same or a later step: a training that was stopped and went on from an older checkpoint wrote those steps twice. So does
TensorBoard's data server, of every series by itself; that a training says where it begins anew changes nothing there.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

from inspector.events.messages import Event, Metadata, SummaryValue, read_hyperparameters, read_values
from inspector.events.points import MAKERS, AnyPoint, Place, cost_of
from inspector.events.report import CurvePoint, HistogramPoint, ImagePoint, OtherValues, ScalarSeries, Series, TextPoint
from inspector.events.tensors import numbers_of, read_tensor
from inspector.limits import Limits

_SCALARS, _HISTOGRAMS, _HPARAMS = "scalars", "histograms", "hparams"
# Values of before plugins, by their field in Summary.Value.
_OLDER = {2: _SCALARS, 3: _HISTOGRAMS, 4: "images", 5: _HISTOGRAMS, 6: "audio"}
_NUMBER, _TENSOR = 2, 8
_MOST_HPARAMS = 10_000
_TAG_COST, _SCALAR_COST = 900, 48
Kind = TypeVar("Kind", HistogramPoint, CurvePoint, ImagePoint, TextPoint)


@dataclass(slots=True)
class _Tag:
    """What is known of one tag so far. The arrays are a scalar's, points the others'."""

    plugin: str
    title: str
    description: str
    values: int = 0
    replaced: int = 0
    steps: array[int] = field(default_factory=lambda: array("q"))
    numbers: array[float] = field(default_factory=lambda: array("d"))
    times: array[float] = field(default_factory=lambda: array("d"))
    points: list[AnyPoint] = field(default_factory=list)


class Collector:
    """left_out: values that there was no room for. unread: values that could not be decoded. first_unread: the tag of
    the first of them. replaced_from: the first step at which a value took the place of earlier ones."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.tags: dict[str, _Tag] = {}
        self.hyperparameters: dict[str, str | float | bool] = {}
        self.left_out = 0
        self.unread = 0
        self.first_unread = ""
        self.replaced_from: int | None = None

    def add(self, event: Event, data: bytes, file: int, offset: int) -> None:
        """The values of one event. data: its record, which lies at offset of that file. Raises BadWire."""
        if event.summary is None:
            return
        for value in read_values(data, event.summary):
            self._add(value, event, data, Place(file, offset))

    def _add(self, value: SummaryValue, event: Event, data: bytes, place: Place) -> None:
        if value.tag is None:
            self._cannot("a tag that is too long")
            return
        tag = self.tags.get(value.tag) or self._new(value.tag, value.kind, value.metadata)
        if tag is None:
            self.left_out += 1
            return
        tag.values += 1
        if tag.plugin == _SCALARS:
            self._scalar(tag, value, event, data)
        elif tag.plugin == _HPARAMS:
            if value.metadata is not None:
                found = read_hyperparameters(data, value.metadata.content)
                self.hyperparameters.update(islice(found, _MOST_HPARAMS - len(self.hyperparameters)))
        elif tag.plugin in MAKERS:
            point = MAKERS[tag.plugin](value, event, data, place)
            if point is None:
                self._cannot(value.tag)
            else:
                self._point(tag, point)

    def _new(self, name: str, kind: int, metadata: Metadata | None) -> _Tag | None:
        if not self._room(_TAG_COST + 2 * len(name)):
            return None
        told = metadata or Metadata()
        tag = _Tag(told.plugin or _OLDER.get(kind, ""), told.title, told.description)
        self.tags[name] = tag
        return tag

    def _scalar(self, tag: _Tag, value: SummaryValue, event: Event, data: bytes) -> None:
        number = value.number
        if value.kind == _TENSOR:
            numbers = numbers_of(data, read_tensor(data, *value.span))
            if numbers is None or numbers.size != 1:
                self._cannot(value.tag or "")
                return
            number = float(numbers.reshape(-1)[0])
        elif value.kind != _NUMBER:
            self._cannot(value.tag or "")
            return
        steps = tag.steps
        while steps and steps[-1] >= event.step:
            steps.pop()
            tag.numbers.pop()
            tag.times.pop()
            self._replaced(tag, event.step, _SCALAR_COST)
        if not self._room(_SCALAR_COST):
            self.left_out += 1
            return
        steps.append(event.step)
        tag.numbers.append(number)
        tag.times.append(event.wall_time)

    def _point(self, tag: _Tag, point: AnyPoint) -> None:
        points = tag.points
        while points and points[-1].step >= point.step:
            self._replaced(tag, point.step, cost_of(points.pop()))
        if not self._room(cost_of(point)):
            self.left_out += 1
            return
        points.append(point)

    def _replaced(self, tag: _Tag, step: int, cost: int) -> None:
        self.limits.spend(-cost)
        tag.replaced += 1
        if self.replaced_from is None:
            self.replaced_from = step

    def _room(self, nbytes: int) -> bool:
        if nbytes > self.limits.room:
            return False
        self.limits.spend(nbytes)
        return True

    def _cannot(self, name: str) -> None:
        self.unread += 1
        self.first_unread = self.first_unread or name

    def scalars(self) -> tuple[ScalarSeries, ...]:
        """By tag. What is handed out is let go of here."""
        return tuple(
            ScalarSeries(
                tag=name,
                title=tag.title,
                description=tag.description,
                steps=tag.steps.tobytes(),
                values=tag.numbers.tobytes(),
                wall_times=tag.times.tobytes(),
                replaced=tag.replaced,
            )
            for name, tag in self._of(_SCALARS)
            if tag.steps
        )

    def series(self, plugin: str, kind: type[Kind]) -> tuple[Series[Kind], ...]:
        """Of a plugin whose points are of that kind, by tag."""
        return tuple(
            Series(
                tag=name,
                title=tag.title,
                description=tag.description,
                points=tuple(point for point in tag.points if isinstance(point, kind)),
                replaced=tag.replaced,
            )
            for name, tag in self._of(plugin)
            if tag.points
        )

    def others(self) -> tuple[OtherValues, ...]:
        """What is only counted, by plugin."""
        counts: dict[str, list[int]] = {}
        for tag in self.tags.values():
            if tag.plugin != _SCALARS and tag.plugin not in MAKERS:
                counts.setdefault(tag.plugin, []).append(tag.values)
        return tuple(OtherValues(plugin=p, tags=len(n), values=sum(n)) for p, n in sorted(counts.items()))

    def replaced(self) -> tuple[int, int]:
        """(points, series) that were written over."""
        counts = [tag.replaced for tag in self.tags.values() if tag.replaced]
        return sum(counts), len(counts)

    def _of(self, plugin: str) -> Iterable[tuple[str, _Tag]]:
        return sorted(
            ((name, tag) for name, tag in self.tags.items() if tag.plugin == plugin), key=lambda pair: pair[0]
        )
