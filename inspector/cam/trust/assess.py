"""All measures of one map, each beside maps that know nothing of the model, and the randomisation test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from inspector.cam.answers import AnswerKind
from inspector.cam.maps import choose_layers, heat_maps
from inspector.cam.readings import BoxScore, Reading, class_scores
from inspector.cam.report import LayerProposal
from inspector.cam.scene import open_scene
from inspector.cam.trust.agreement import energy_in_mask, points_at
from inspector.cam.trust.baselines import centred_gaussian, edges, random_map
from inspector.cam.trust.measure import Case, Measure, Measured
from inspector.cam.trust.measures import MEASURES
from inspector.cam.trust.randomise import Stage, randomisation
from inspector.errors import UsageError
from inspector.progress import Progress, silent

RANDOM, CENTRE, EDGES = "random", "centre", "edges"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One map's numbers. of: the method's id, or "random", "centre", "edges". values: by measure id; a measure that
    does not apply is left out. curves: likewise, only those that have one."""

    of: str
    values: tuple[tuple[str, float], ...]
    curves: tuple[tuple[str, tuple[tuple[float, float], ...]], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """What was measured of one map. rows: its own first, then the baselines'. target: class index.
    stages: of the randomisation test, () when it was not asked for. passes: forward passes it was estimated to take.
    answer: how the scores were meant. refused: (measure id, why) of those that such an answer has no value for."""

    method: str
    layer: str
    target: int
    rows: tuple[Row, ...]
    stages: tuple[Stage, ...]
    passes: int
    answer: AnswerKind = AnswerKind.ONE
    refused: tuple[tuple[str, str], ...] = ()


def assess(
    model: nn.Module,
    picture: Tensor,
    *,
    layer: LayerProposal | str | None = None,
    target: int | None = None,
    method: str = "grad-cam",
    mask: Tensor | None = None,
    measures: Sequence[Measure] = MEASURES,
    randomise: bool = True,
    read: Reading = class_scores,
    answer: AnswerKind = AnswerKind.ONE,
    progress: Progress = silent,
    seed: int = 0,
) -> Trust:
    """Measure one map of one picture and three baselines.

    picture: (1, C, H, W), prepared. mask: (H, W) of bool, where the thing is, for the pointing game and the energy.
    answer: how the scores are meant.
    Other arguments as `heat_maps`. Raises as it does. The model is left as it was.
    """
    if picture.dim() != 4 or picture.shape[0] != 1:
        raise UsageError(f"One picture (1, C, H, W) is measured, not {tuple(picture.shape)}.")
    size = (picture.shape[2], picture.shape[3])
    (found,) = choose_layers(model, None if layer is None else [layer], (picture.shape[1], *size), 1)
    own = heat_maps(model, picture, layer=found, targets=target, method=method, read=read, seed=seed)
    chosen = int(own.targets[0])

    def again(other: nn.Module, changed: Tensor) -> Tensor:
        made = heat_maps(other, changed, layer=found, targets=chosen, method=method, read=read, seed=seed)
        return made.heat[0]

    # A box has the detector's own confidence, whatever the answer is.
    meant = AnswerKind.ONE if isinstance(read, BoxScore) else answer
    refused = tuple((m.id, m.refuses(meant)) for m in measures if m.refuses(meant))
    measures = [m for m in measures if not m.refuses(meant)]
    heats = {
        method: own.heat[0],
        RANDOM: random_map(size, found.grid, seed),
        CENTRE: centred_gaussian(size),
        EDGES: edges(picture[0].cpu()),
    }
    rows = []
    with open_scene(model, picture, [], chosen, read=read, progress=progress, seed=seed) as scene:
        for name, heat in heats.items():
            remap = (lambda changed: again(model, changed)) if name == method else None
            case = Case(scene=scene, heat=heat.to(picture.device), remap=remap, answer=meant)
            results = [(m.id, m.compute(case)) for m in measures if not m.of_method or remap is not None]
            if mask is not None:
                results.append(("energy", Measured(value=energy_in_mask(heat, mask))))
                results.append(("pointing", Measured(value=points_at(heat, mask))))
            rows.append(
                Row(
                    of=name,
                    values=tuple((i, r.value) for i, r in results),
                    curves=tuple((i, r.curve) for i, r in results if r.curve),
                )
            )
    stages: tuple[Stage, ...] = ()
    if randomise:

        def raw(twin: nn.Module) -> Tensor:
            made = heat_maps(twin, picture, layer=found, targets=chosen, method=method, read=read, seed=seed)
            return made.raw[0]

        stages = randomisation(model, raw, seed=seed, progress=progress)
    return Trust(
        method=method,
        layer=own.layer.path,
        target=chosen,
        rows=tuple(rows),
        stages=stages,
        passes=cost(measures, randomise=randomise),
        answer=meant,
        refused=refused,
    )


def cost(measures: Sequence[Measure] = MEASURES, *, randomise: bool = True) -> int:
    """About how many forward passes of one picture `assess` takes for a method of one pass; for an estimate of time."""
    maps = 4
    return sum(m.passes if m.of_method else maps * m.passes for m in measures) + (30 if randomise else 0)
