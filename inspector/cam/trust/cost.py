"""What measuring costs before it starts, and how far it is while it runs: work counted in pieces, each piece timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from inspector.cam.engine.capture import unwrap
from inspector.cam.engine.scene import open_scene
from inspector.cam.method import FORWARD_AND_BACKWARD
from inspector.cam.methods import method_named
from inspector.cam.report import PLAIN
from inspector.cam.trust.agreement import compared_methods
from inspector.cam.trust.chance import COVERS
from inspector.cam.trust.infill import impute
from inspector.cam.trust.making import Maker
from inspector.cam.trust.measure import Measure
from inspector.cam.trust.measures import MEASURES
from inspector.cam.trust.randomise import stage_count
from inspector.progress import Progress

# Draws of noise that every measure is taken of: a further draw exceeds three of their standard deviations once in 80
# times (t with 7 degrees of freedom), any of four measures once in 20. The test by chance has a thousand and is free.
NOISE_DRAWS = 8
# With a Gaussian and the edges.
BASELINES = NOISE_DRAWS + 2
_AT_ONCE = 16
# Weights times pixels from which four pictures take as long as sixteen of less do: ResNet-18 from 70 x 70 on. And from
# which one picture alone keeps the processor busy: VGG-16, ViT-B at 224 x 224.
_MIDDLE, _HEAVY = 5e10, 3e12
_SAMPLE = 1 << 16
# Seconds: a piece that takes less is done once more, or done at all, to be timed.
_WORTH_TIMING = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is measured of a map. randomise: whether it changes when the model forgets. compare: with other methods."""

    measures: Sequence[Measure] = MEASURES
    randomise: bool = True
    compare: bool = True


WHOLE = Plan()


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """passes: of one picture. maps: plain ones by the method. others: plain ones by the methods beside it.
    fills: of ROAD. weights: numbers that are drawn anew."""

    passes: int = 0
    maps: int = 0
    others: int = 0
    fills: int = 0
    weights: int = 0

    @property
    def all_passes(self) -> int:
        """About, a map of one pass counting with its backward."""
        return self.passes + FORWARD_AND_BACKWARD * (self.maps + self.others)

    def __add__(self, more: Work) -> Work:
        return Work(
            passes=self.passes + more.passes,
            maps=self.maps + more.maps,
            others=self.others + more.others,
            fills=self.fills + more.fills,
            weights=self.weights + more.weights,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Seconds of one pass, map (of the method, of another one), filled picture, weight, as timed just now."""

    one_pass: float
    one_map: float
    other_map: float
    fill: float
    weight: float

    def seconds(self, work: Work) -> float:
        return (
            work.passes * self.one_pass
            + work.maps * self.one_map
            + work.others * self.other_map
            + work.fills * self.fill
            + work.weights * self.weight
        )


def work_of_measure(measure: Measure, maker: Maker, *, own: bool) -> Work:
    """own: of the map itself, not of one that knows nothing."""
    maps = measure.maps * maker.plain_maps if own else 0
    return Work(passes=measure.passes, maps=maps, fills=measure.fills) if own or not measure.maps else Work()


def work_of_chance() -> Work:
    return Work(passes=COVERS)


def work_of_randomising(model: nn.Module, maker: Maker) -> Work:
    bare = unwrap(model)
    weights = sum(parameter.numel() for parameter in bare.parameters())
    # Of the model as it is, twice: once more to see whether the map stays, once by the copy.
    return Work(maps=(stage_count(bare) + 2) * maker.plain_maps, weights=weights)


def work_of_comparing(maker: Maker) -> Work:
    """Without fusion and augmentation all methods share a forward and most a backward."""
    if not method_named(maker.method).by_layer:
        return Work()
    others = compared_methods(maker.method)
    if maker.options.fusion or maker.options.augmented:
        return Work(others=len(others) * maker.plain_maps)
    return Work(others=len({method.objective for method in others if method.gradient}))


def work_of_all(model: nn.Module, maker: Maker, plan: Plan) -> Work:
    """Of `assess` with the same arguments."""
    work = Work(maps=maker.plain_maps)
    if plan.measures:
        work += work_of_chance()
    for measure in plan.measures:
        for own in (True, *[False] * BASELINES):
            work += work_of_measure(measure, maker, own=own)
    if plan.randomise:
        work += work_of_randomising(model, maker)
    return work + work_of_comparing(maker) if plan.compare else work


def pace(model: nn.Module, picture: Tensor, maker: Maker) -> Pace:
    """Each kind of piece, done once: about the time of a dozen passes. Raises as the method does."""
    count = at_once(model, picture)
    copies = picture.expand(count, *picture.shape[1:])
    target = maker.target
    entry, layer = method_named(maker.method), maker.layers[0]
    kept = [layer] if layer.path else []
    with open_scene(model, picture, kept, target, read=maker.read, seed=maker.options.seed) as scene:
        # The second of two where that is quick: the first one of a size finds its way.
        one_pass = _timed(lambda: scene.answer(copies, 0)) / count
        if one_pass * count < _WORTH_TIMING:
            one_pass = min(one_pass, _timed(lambda: scene.answer(copies, 0)) / count)
        passes = 0 if entry.passes is None else entry.passes(scene, layer)
    plain = replace(maker, layers=(layer,), options=PLAIN)
    other = plain.by("grad-cam")
    other_map = FORWARD_AND_BACKWARD * one_pass
    if entry.by_layer and maker.options.fusion == "":
        other_map = _timed(lambda: other(model, picture))
    one_map = passes * one_pass + other_map
    if one_map < _WORTH_TIMING:
        one_map = _timed(lambda: plain(model, picture))
    # Half of the pixels, in one piece.
    mask = torch.zeros(picture.shape[2:], dtype=torch.bool)
    mask[: max(1, picture.shape[2] // 2)] = True
    sample = torch.empty(_SAMPLE)
    return Pace(
        one_pass=one_pass,
        one_map=one_map,
        other_map=other_map,
        fill=_timed(lambda: impute(picture[0], mask)),
        weight=_timed(lambda: sample.normal_(generator=torch.Generator())) / _SAMPLE,
    )


def at_once(model: nn.Module, picture: Tensor) -> int:
    """How many pictures go through a model together: few enough that stopping never waits long, and the same on every
    machine, since the last digits of an answer may depend on it."""
    weights = sum(parameter.numel() for parameter in model.parameters())
    work = weights * picture.shape[2] * picture.shape[3]
    return 1 if work >= _HEAVY else 4 if work >= _MIDDLE else _AT_ONCE


class Ledger:
    """One bar for all pieces: each moves it by the share of its expected time, and it never goes back."""

    def __init__(self, progress: Progress, pace: Pace, total: Work) -> None:
        self._progress = progress
        self._pace = pace
        self._total = max(1e-6, pace.seconds(total))
        self._begun = 0.0
        self._shown = 0.0

    def begin(self, work: Work) -> Piece:
        """The next piece; what was begun before is done."""
        start = self._begun
        self._begun += self._pace.seconds(work)
        return Piece(self, start, self._begun - start)

    def publish(self, seconds: float, note: str) -> None:
        self._shown = max(self._shown, min(seconds, self._total))
        self._progress(round(1000 * self._shown), round(1000 * self._total), note)


class Piece:
    """A `Progress` of one piece of the work."""

    def __init__(self, ledger: Ledger, start: float, length: float) -> None:
        self._ledger = ledger
        self._start = start
        self._length = length
        self._done = 0.0
        self._step = 1.0

    def __call__(self, done: int, total: int | None, note: str) -> None:
        self._done, self._step = (done / total, 1 / total) if total else (0.0, 1.0)
        self._ledger.publish(self._start + self._length * self._done, note)

    def within(self, done: int, total: int | None, note: str) -> None:
        """A `Progress` of what goes on inside the last step."""
        inner = min(1.0, done / total) if total else 0.0
        self._ledger.publish(self._start + self._length * (self._done + self._step * inner), note)


def _timed(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
