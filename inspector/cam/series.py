"""One picture through the checkpoints of a run: in which order they stand, which of them do not belong, what changes.

One model is held at a time. A strip means something only where all maps were asked the same of the same network, so a
checkpoint of another architecture, other class names or another stated preprocessing is left out and said.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from inspector.cam.report import Explanation, Preprocessing
from inspector.cam.runs import ReadyModel
from inspector.cam.targets.answers import AnswerKind
from inspector.checkpoint.training_place import Place
from inspector.errors import ExplainError, InspectorError
from inspector.progress import Progress, part_of, silent

if TYPE_CHECKING:
    from PIL import Image

    from inspector.cam.describe import Setting
    from inspector.cam.spec import MapRequest

# Maps with nothing in them; the order of their cells is rounding.
_EMPTY = {"non-finite-map", "zero-gradient-map", "constant-map", "rounding-map"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """What every checkpoint of a run shares.

    setting: of all maps; without categories they are called what the files say. own: the preprocessing that the
    checkpoint has by itself that the others are held against; None where it was set by hand, so that nothing is held
    against it. stated: its class names. own_answer: as `own`, None where it was said by hand.
    """

    architecture: str
    setting: Setting
    own: Preprocessing | None
    stated: tuple[str, ...] = ()
    own_answer: AnswerKind | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stage:
    """What became of one checkpoint. number: its position in what was given. stated: its own class names. Either
    made or error is there."""

    number: int
    name: str
    sha256: str = ""
    place: Place = field(default_factory=Place)
    stated: tuple[str, ...] = ()
    made: Explanation | None = None
    error: InspectorError | None = None


def explain_each(
    given: Sequence[tuple[str, Callable[[], ReadyModel]]],
    picture: Image.Image,
    common: Common,
    request: MapRequest,
    *,
    target: int | None = None,
    progress: Progress = silent,
) -> Iterator[Stage]:
    """One map of each checkpoint, in the order given: (name, what opens it and builds its model).

    A model is let go before the next one is built. target: class index, None for each one's best.
    """
    from inspector.cam.explain import explain_many

    stated = common.stated
    for number, (name, open_it) in enumerate(given):
        inside = part_of(progress, number, len(given), name)
        inside(0, None, "")
        try:
            ready = open_it()
        except InspectorError as error:
            yield Stage(number=number, name=name, error=_bare(error))
            continue
        stage = Stage(number=number, name=name, sha256=ready.sha256, place=ready.place, stated=ready.class_names)
        try:
            check_belongs(ready, common, stated)
            stated = stated or ready.class_names
            setting = replace(common.setting, categories=common.setting.categories or stated)
            (made,) = explain_many(ready.model, [picture], request, setting, targets=target, progress=inside)
            stage = replace(stage, made=made)
        except InspectorError as error:
            stage = replace(stage, error=_bare(error))
        del ready
        yield stage


def check_belongs(ready: ReadyModel, common: Common, stated: tuple[str, ...]) -> None:
    """Raise ExplainError where its map would not be comparable. stated: the class names of the others."""
    if ready.architecture != common.architecture:
        raise ExplainError(
            f"It is {ready.architecture}; the others are {common.architecture}.",
            hint="A strip is of one network. Explain this one by itself.",
        )
    if ready.class_names and stated and ready.class_names != stated:
        pairs = enumerate(zip(ready.class_names, stated, strict=False))
        at = next((k for k, (its, theirs) in pairs if its != theirs), None)
        says = (
            f"It names {len(ready.class_names)} classes, the others {len(stated)}."
            if at is None
            else f"It calls class {at} {ready.class_names[at]!r}; the others call it {stated[at]!r}."
        )
        raise ExplainError(says, hint="Its answers mean something else. Explain it by itself.")
    if ready.answer is not None and common.own_answer is not None and ready.answer is not common.own_answer:
        raise ExplainError(
            f"Its answer is stated as {ready.answer.value!r}; that of the others is {common.own_answer.value!r}.",
            hint="Say how the answers of all of them are read, or explain it by itself.",
        )
    own = common.own
    if own is not None and not ready.preprocessing.assumed and not _alike(ready.preprocessing, own):
        raise ExplainError(
            f"Its pictures are prepared otherwise, as {ready.preprocessing.source} has it.",
            hint="Set the preprocessing by hand to give all of them the same input.",
        )


def agreement_with_last(maps: Sequence[Explanation]) -> tuple[float, ...]:
    """Rank correlation of each raw map with the last one's; NaN where one of the two has nothing to show."""
    import torch

    from inspector.cam.trust.correlation import rank_correlation

    def usable(one: Explanation) -> bool:
        return not any(finding.id in _EMPTY for finding in one.findings) and one.raw.shape == maps[-1].raw.shape

    return tuple(
        rank_correlation(torch.from_numpy(one.raw), torch.from_numpy(maps[-1].raw))
        if usable(one) and usable(maps[-1])
        else math.nan
        for one in maps
    )


def on_one_scale(maps: Sequence[Explanation]) -> tuple[Explanation, ...]:
    """The same maps with heat divided by the highest raw value of all, instead of each by its own.

    Raises ExplainError for fused maps, which have no raw value: each of their layers was scaled by itself.
    """
    if any(one.options.fusion for one in maps):
        raise ExplainError("Fused maps have no common scale: each of their layers was divided by its own maximum.")
    highest = max((one.raw_maximum for one in maps if one.heat.any()), default=0.0)
    return tuple(replace(one, heat=one.heat * (one.raw_maximum / highest)) if one.heat.any() else one for one in maps)


def _bare(error: InspectorError) -> InspectorError:
    """Without its traceback, whose frames would keep the model."""
    return type(error)(error.says, hint=error.hint)


def _alike(one: Preprocessing, other: Preprocessing) -> bool:
    return replace(one, source="", assumed=False) == replace(other, source="", assumed=False)
