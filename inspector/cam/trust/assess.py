"""All measures of one map, each beside maps that know nothing of the model; the randomisation test; other methods."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from inspector.cam.engine.capture import unwrap
from inspector.cam.engine.scene import Scene, open_scene
from inspector.cam.report import PLAIN, Maps, Options
from inspector.cam.targets.answers import AnswerKind
from inspector.cam.targets.readings import BoxScore
from inspector.cam.trust.agreement import Agreement, agreement
from inspector.cam.trust.baselines import centred_gaussian, edges
from inspector.cam.trust.chance import RANDOM_MAPS, Chance, chance, cover_parts
from inspector.cam.trust.correlation import energy_in_mask, points_at, rank_correlation
from inspector.cam.trust.cost import (
    NOISE_DRAWS,
    WHOLE,
    Ledger,
    Pace,
    Plan,
    Work,
    at_once,
    pace,
    work_of_all,
    work_of_chance,
    work_of_comparing,
    work_of_measure,
    work_of_randomising,
)
from inspector.cam.trust.making import Maker
from inspector.cam.trust.measure import Case, Measure, Measured
from inspector.cam.trust.randomise import Stage, randomisation, stage_count
from inspector.errors import UsageError
from inspector.progress import Progress, silent

RANDOM, CENTRE, EDGES = "random", "centre", "edges"
# Rank correlation of a map with itself, made twice: below, the map is not the model's alone.
_REPEATED = 0.99


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The numbers of one map, or of several draws of noise. of: the method's id, or "random", "centre", "edges".
    values: by measure id; a measure that does not apply is left out; NaN where it applies and has no number, as for a
    map that is the same everywhere. curves: likewise, only those that have one.
    draws: maps in it, of which values and curves are means. spreads: by measure id, the standard deviation of a single
    draw (n - 1); () of one map, NaN where fewer than two draws have a number."""

    of: str
    values: tuple[tuple[str, float], ...]
    curves: tuple[tuple[str, tuple[tuple[float, float], ...]], ...] = ()
    draws: int = 1
    spreads: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """What was measured of one map. rows: its own first, then the baselines'. target: column of the scores.
    options: how the map was made. stages: of the randomisation test, () when it was not asked for. agreement: with
    other methods, None when not asked for or where the method looks at no layer. passes: forward passes in it, about.
    answer: how the scores were meant. refused: (measure id, why) of those that such an answer has no value for.
    repeated: rank correlation of the map with the same made once more of the same model, None without the
    randomisation test, NaN for a constant map. void: why that test says nothing, "" where it was taken; then there
    are no stages. chance: whether noise would do as well, None where no measure was asked for."""

    method: str
    layer: str
    target: int
    rows: tuple[Row, ...]
    stages: tuple[Stage, ...]
    passes: int
    options: Options = PLAIN
    agreement: Agreement | None = None
    answer: AnswerKind = AnswerKind.ONE
    refused: tuple[tuple[str, str], ...] = ()
    repeated: float | None = None
    void: str = ""
    chance: Chance | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """passes: forward passes of one picture, about, a map of one pass counting as three. seconds: as timed just now.
    pace: what each kind of piece took; given to `assess`, it need not be timed again."""

    passes: int
    seconds: float
    pace: Pace


def assess(
    model: nn.Module,
    picture: Tensor,
    maker: Maker,
    *,
    plan: Plan = WHOLE,
    mask: Tensor | None = None,
    answer: AnswerKind = AnswerKind.ONE,
    timed: Pace | None = None,
    progress: Progress = silent,
) -> Trust:
    """Measure one map of one picture beside several draws of noise, a blob in the middle and the picture's edges.

    picture: (1, C, H, W), prepared. maker: of the map, which is measured as it is shown, fused, smoothed and augmented.
    mask: (H, W) of bool, where the thing is, for the pointing game and the energy. answer: how the scores are meant.
    timed: what `cost` found, for an even progress. Raises as `heat_maps` does. The model is left as it was.
    """
    _check_one(picture)
    # A box has the detector's own confidence, whatever the answer is.
    meant = AnswerKind.ONE if isinstance(maker.read, BoxScore) else answer
    refused = tuple((m.id, m.refuses(meant)) for m in plan.measures if m.refuses(meant))
    plan = replace(plan, measures=[m for m in plan.measures if not m.refuses(meant)])
    progress(0, None, "timing one pass")
    total = work_of_all(model, maker, plan)
    ledger = Ledger(progress, timed or pace(model, picture, maker), total)
    begun = ledger.begin(Work(maps=maker.plain_maps))
    begun(0, 1, "making the map")
    own = maker(model, picture, begun.within)
    maker = replace(maker, target=int(own.targets[0]))
    rows = _rows(model, picture, maker, own, plan.measures, mask, meant, ledger)
    by_chance = None
    if plan.measures:
        by_chance = _by_chance(model, picture, maker, own.heat[0], meant, ledger.begin(work_of_chance()))
    stages: tuple[Stage, ...] = ()
    repeated, void = None, ""
    if plan.randomise:
        part = ledger.begin(work_of_randomising(model, maker))
        part(0, stage_count(unwrap(model)) + 2, "making the map once more")
        # Making a map gives torch's random state back, so that the same state would repeat a model's own noise.
        with torch.random.fork_rng():
            torch.manual_seed(maker.options.seed + 1)
            repeated = rank_correlation(own.raw[0], maker(model, picture, part.within).raw[0])
        void = _why_void(repeated)
    if plan.randomise and not void:
        stages = randomisation(
            model,
            lambda twin: maker(twin, picture, part.within).raw[0],
            seed=maker.options.seed,
            progress=part,
        )
    alike = None
    if plan.compare:
        alike = agreement(model, picture, maker, own.raw[0], ledger.begin(work_of_comparing(maker)))
    return Trust(
        method=maker.method,
        layer=own.layer.path,
        target=int(own.targets[0]),
        rows=rows,
        stages=stages,
        passes=total.all_passes,
        options=maker.options,
        agreement=alike,
        answer=meant,
        refused=refused,
        repeated=repeated,
        void=void,
        chance=by_chance,
    )


def cost(model: nn.Module, picture: Tensor, maker: Maker, *, plan: Plan = WHOLE) -> Cost:
    """What `assess` with the same arguments will take: its pieces are counted, and one of each kind is timed."""
    _check_one(picture)
    work = work_of_all(model, maker, plan)
    timed = pace(model, picture, maker)
    return Cost(passes=work.all_passes, seconds=timed.seconds(work), pace=timed)


def _check_one(picture: Tensor) -> None:
    if picture.dim() != 4 or picture.shape[0] != 1:
        raise UsageError(f"One picture (1, C, H, W) is measured, not {tuple(picture.shape)}.")


def _why_void(repeated: float) -> str:
    """repeated: rank correlation of the map with itself, made twice; NaN is no reason."""
    if not repeated < _REPEATED:
        return ""
    return (
        f"The map changes when nothing changed: made twice of the same model and picture, it has a rank correlation of "
        f"{repeated:.2f} with itself. So the randomisation test is void, and the other numbers are of one draw."
    )


def _by_chance(
    model: nn.Module, picture: Tensor, make: Maker, heat: Tensor, answer: AnswerKind, progress: Progress
) -> Chance:
    size = (picture.shape[2], picture.shape[3])
    with open_scene(model, picture, [], make.target, read=make.read, seed=make.options.seed) as scene:
        scene.progress = progress
        case = Case(scene=scene, heat=heat, answer=answer, at_once=at_once(model, picture))
        covered = cover_parts(case)
    # Made when they are asked for: a thousand of a large picture would not fit into memory.
    noise = [(make.of_noise(size, draw) for draw in range(kind, 2 * RANDOM_MAPS, 2)) for kind in (0, 1)]
    return chance(covered, heat, noise, shares=answer is not AnswerKind.NUMBERS)


def _rows(
    model: nn.Module,
    picture: Tensor,
    make: Maker,
    own: Maps,
    measures: Sequence[Measure],
    mask: Tensor | None,
    answer: AnswerKind,
    ledger: Ledger,
) -> tuple[Row, ...]:
    """Of the map, of noise, of the blob and of the edges."""
    size = (picture.shape[2], picture.shape[3])
    heats: dict[str, list[Tensor]] = {
        make.method: [own.heat[0]],
        RANDOM: [make.of_noise(size, draw) for draw in range(NOISE_DRAWS)],
        CENTRE: [centred_gaussian(size)],
        EDGES: [edges(picture[0].cpu())],
    }

    def measured(scene: Scene, heat: Tensor, *, is_own: bool) -> dict[str, Measured]:
        results: dict[str, Measured] = {}
        for measure in measures:
            if measure.maps and not is_own:
                continue
            part = ledger.begin(work_of_measure(measure, make, own=is_own))
            part(0, 1, "measuring")
            scene.progress = part

            def again(changed: Tensor, inside: Progress = part.within) -> Tensor:
                return make(model, changed, inside).heat[0]

            case = Case(
                scene=scene,
                heat=heat.to(picture.device),
                remap=again if is_own else None,
                answer=answer,
                at_once=at_once(model, picture),
            )
            # A map that is the same everywhere has no hottest pixels, and whatever is counted says nothing of it.
            points = bool(heat.max() > heat.min())
            results[measure.id] = measure.compute(case) if points else Measured(value=math.nan)
        if mask is not None:
            results["energy"] = Measured(value=energy_in_mask(heat, mask))
            results["pointing"] = Measured(value=points_at(heat, mask))
        return results

    with open_scene(model, picture, [], make.target, read=make.read, seed=make.options.seed) as scene:
        return tuple(
            _row(of, [measured(scene, heat, is_own=of == make.method) for heat in several])
            for of, several in heats.items()
        )


def _row(of: str, draws: Sequence[dict[str, Measured]]) -> Row:
    """One map's numbers as they are, those of several as mean and spread."""
    if len(draws) == 1:
        (results,) = draws
        return Row(
            of=of,
            values=tuple((i, r.value) for i, r in results.items()),
            curves=tuple((i, r.curve) for i, r in results.items() if r.curve),
        )
    values, spreads, curves = [], [], []
    for name in draws[0]:
        numbers = [one[name].value for one in draws if math.isfinite(one[name].value)]
        values.append((name, statistics.fmean(numbers) if numbers else math.nan))
        spreads.append((name, statistics.stdev(numbers) if len(numbers) > 1 else math.nan))
        lines = [one[name].curve for one in draws if one[name].curve]
        if lines:
            points = tuple((at[0][0], statistics.fmean(y for _, y in at)) for at in zip(*lines, strict=True))
            curves.append((name, points))
    return Row(of=of, values=tuple(values), curves=tuple(curves), draws=len(draws), spreads=tuple(spreads))
