"""Can maps of this model be trusted, by several pictures: every map measured, then means over them, class by class."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from torch import Tensor, nn

from inspector.cam.explain import explain_many
from inspector.cam.inputs.preprocess import prepare
from inspector.cam.report import Crop, Explanation, Options, Score
from inspector.cam.trust.assess import Cost, Trust, assess, cost
from inspector.cam.trust.cost import Pace, Plan
from inspector.cam.trust.intervals import Interval, student, wilson
from inspector.cam.trust.making import Maker
from inspector.cam.trust.verdicts import YES_OR_NO, Verdict, verdict_of
from inspector.errors import InspectorError, UsageError
from inspector.progress import Progress, part_of, silent

if TYPE_CHECKING:
    from PIL import Image

    from inspector.cam.describe import Setting
    from inspector.cam.spec import MapRequest

# Of many pictures: what other methods say is asked of one.
PLAN = Plan(compare=False)

Named = tuple[str, "Callable[[], Image.Image]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureTrust:
    """What was measured of one picture's map.

    target: what the map is of. answered: the model's own answer. verdict: of the map; FAILED where there is none, as
    `why` says. share: of random maps that do as well. forgotten: rank correlation of the map with the one that is left
    when the model forgot everything, None where that was not measured. values: by measure id, of the map; others: of
    the maps that know nothing (of, values).
    """

    picture: str
    verdict: Verdict
    why: str = ""
    target: Score | None = None
    answered: Score | None = None
    share: float | None = None
    forgotten: float | None = None
    values: tuple[tuple[str, float], ...] = ()
    others: tuple[tuple[str, tuple[tuple[str, float], ...]], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Average:
    """One measure over pictures. of: the method's id, or the map that knows nothing. lead: by how much the method's map
    is above it, picture by picture; None for the method itself."""

    measure: str
    of: str
    mean: Interval
    lead: Interval | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Pictures of one answer, or all. answered: the class, None for all. pictures: whose map was measured. verdicts:
    how many maps got which. better: share of maps that are better than noise."""

    answered: int | None
    name: str
    pictures: int
    verdicts: tuple[tuple[Verdict, int], ...]
    better: Interval
    averages: tuple[Average, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustOfPictures:
    """rows: a picture each, in the order given. groups: all of them first, then by the class that was answered, the
    largest first. failures: (why, how many pictures) of those without a map. refused: (measure id, why) of measures
    that such an answer has no value for. passes: in all, about."""

    method: str
    layer: str
    options: Options
    rows: tuple[PictureTrust, ...]
    groups: tuple[Group, ...]
    failures: tuple[tuple[str, int], ...]
    refused: tuple[tuple[str, str], ...]
    passes: int

    @property
    def whole(self) -> Group:
        """Of all pictures that were measured."""
        return self.groups[0]


def map_to_measure(
    model: nn.Module, picture: Image.Image, explanation: Explanation, setting: Setting
) -> tuple[Tensor, Crop, Maker]:
    """((1, C, H, W), the rectangle that it shows, how this map of it is made again)."""
    batch, crop = prepare(picture, setting.preprocessing)
    asked = setting.question.ask(model, batch, [crop])
    target = explanation.target.index if asked.columns is None else asked.columns[0]
    return batch, crop, replace(Maker.of(explanation), target=target, read=asked.read)


def assess_pictures(
    model: nn.Module,
    pictures: Sequence[Named],
    request: MapRequest,
    setting: Setting,
    *,
    target: int | None = None,
    plan: Plan = PLAN,
    progress: Progress = silent,
) -> TrustOfPictures:
    """Every picture's map measured beside maps that know nothing.

    pictures: (name, what opens it), one open at a time. target: class index, None for each one's best. What cannot be
    read or explained is said in its row, and the others go on. Raises UsageError for no pictures. The model is left as
    it was.
    """
    if not pictures:
        raise UsageError("Which pictures?")
    rows: list[PictureTrust] = []
    first: Trust | None = None
    passes = 0
    paces: dict[tuple[int, ...], Pace] = {}
    for number, (name, open_it) in enumerate(pictures):
        part = part_of(progress, number, len(pictures), name)
        part(0, None, "opening")
        try:
            picture = open_it()
            (explanation,) = explain_many(model, [picture], request, setting, targets=target)
            batch, _, maker = map_to_measure(model, picture, explanation, setting)
            shape = tuple(batch.shape)
            if shape not in paces:
                paces[shape] = cost(model, batch, maker, plan=plan).pace
            trust = assess(model, batch, maker, plan=plan, answer=setting.answer, timed=paces[shape], progress=part)
        except InspectorError as error:
            rows.append(PictureTrust(picture=name, verdict=Verdict.FAILED, why=error.says))
            continue
        first, passes = first or trust, passes + trust.passes
        rows.append(_row(name, explanation, trust))
    measured = [row for row in rows if row.verdict is not Verdict.FAILED]
    reasons = Counter(row.why for row in rows if row.verdict is Verdict.FAILED)
    return TrustOfPictures(
        method=request.method,
        layer="" if first is None else first.layer,
        options=request.options if first is None else first.options,
        rows=tuple(rows),
        groups=(_group(measured, request.method, None), *_by_answer(measured, request.method)),
        failures=tuple(reasons.most_common()),
        refused=() if first is None else first.refused,
        passes=passes,
    )


def cost_of_pictures(
    model: nn.Module,
    pictures: Sequence[Named],
    request: MapRequest,
    setting: Setting,
    *,
    target: int | None = None,
    plan: Plan = PLAN,
) -> Cost:
    """What `assess_pictures` with the same arguments will take, by the first of them that has a map.

    Raises what the last of them raised where none has.
    """
    failed: InspectorError = UsageError("Which pictures?")
    for _, open_it in pictures:
        try:
            picture = open_it()
            (explanation,) = explain_many(model, [picture], request, setting, targets=target)
            batch, _, maker = map_to_measure(model, picture, explanation, setting)
            one = cost(model, batch, maker, plan=plan)
        except InspectorError as error:
            failed = error
            continue
        return replace(one, passes=one.passes * len(pictures), seconds=one.seconds * len(pictures))
    raise failed


def _row(name: str, explanation: Explanation, trust: Trust) -> PictureTrust:
    assert trust.chance is not None
    own, *others = trust.rows
    return PictureTrust(
        picture=name,
        verdict=verdict_of(trust),
        why=trust.void,
        target=explanation.target,
        answered=explanation.scores[0],
        share=trust.chance.share,
        forgotten=trust.stages[-1].correlation if trust.stages else None,
        values=own.values,
        others=tuple((row.of, row.values) for row in others),
    )


def _by_answer(rows: Sequence[PictureTrust], method: str) -> list[Group]:
    by_class: dict[int, list[PictureTrust]] = defaultdict(list)
    for row in rows:
        if row.answered is not None:
            by_class[row.answered.index].append(row)
    order = sorted(by_class, key=lambda index: (-len(by_class[index]), index))
    return [_group(by_class[index], method, by_class[index][0].answered) for index in order]


def _group(rows: Sequence[PictureTrust], method: str, answered: Score | None) -> Group:
    counts = Counter(row.verdict for row in rows)
    return Group(
        answered=None if answered is None else answered.index,
        name="" if answered is None else answered.name or f"class {answered.index}",
        pictures=len(rows),
        verdicts=tuple((verdict, counts[verdict]) for verdict in Verdict if counts[verdict]),
        better=wilson([float(row.verdict is Verdict.BETTER) for row in rows]),
        averages=tuple(_averages(rows, method)),
    )


def _averages(rows: Sequence[PictureTrust], method: str) -> list[Average]:
    own = [dict(row.values) for row in rows]
    others = [{of: dict(values) for of, values in row.others} for row in rows]
    averages: list[Average] = []
    for measure in dict.fromkeys(name for values in own for name in values):
        mean = wilson if measure in YES_OR_NO else student
        mine = [values.get(measure, float("nan")) for values in own]
        averages.append(Average(measure=measure, of=method, mean=mean(mine)))
        for of in dict.fromkeys(of for one in others for of in one):
            theirs = [one.get(of, {}).get(measure, float("nan")) for one in others]
            if any(measure in one.get(of, {}) for one in others):
                leads = [a - b for a, b in zip(mine, theirs, strict=True)]
                # Of several draws of noise it is a mean, no yes or no.
                averages.append(Average(measure=measure, of=of, mean=student(theirs), lead=student(leads)))
    return averages
