"""Whether the rows that rotary positions turn together lie half a head apart or side by side.

A pair turns slower the further back it stands, and training gives slow pairs other norms than fast ones. Over all heads
and layers the norms of a head's rows make a profile: with halves it runs through twice, with pairs once. In one head
alone nothing shows. Halves of heads of N rows look as pairs of heads of N / 2 do, so that it speaks for an answer only
where something else tells the size of a head; a size under which the file would be what the answer denies is spoken
against all the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import numpy as np

from inspector.keys.certificate.ranks import log_chance
from inspector.keys.rules import rotary_halves
from inspector.keys.rules.inner_order import AS_IT_IS
from inspector.keys.witnesses.entry import Floats, Scene, Witness, some
from inspector.keys.witnesses.types import Bearing, Statement

#: A correlation of the profile from which on it is one of the two.
_SURE = 0.8
# What runs through twice goes with the place by no more than 0.5, whatever it is: of a place's variance a quarter lies
# within the halves. And both of its halves are equally large; a fall that dies away is not.
_MOST_WITH_PLACE, _MOST_TIMES = 0.65, 2.0
#: Of the profile being an accident, over all sizes of a head that are tried.
_CHANCE = 1e-3
_AGREEING, _FEWEST_LAYERS = 0.75, 2
_HALVES, _PAIRS = "halves", "pairs"


def _listens(scene: Scene) -> Statement | None:
    sizes = {option: int(option.rpartition("-")[2]) for option, _ in scene.question.options if option != AS_IT_IS}
    expected = _file_would_be(scene)
    if AS_IT_IS not in scene.plans or not sizes or not expected:
        return None
    names = [name for name in scene.shapes if name.endswith(".weight") and scene.differs(name)]
    profiles: dict[int, list[Floats]] = {size: [] for size in sizes.values()}
    for (name,) in some([(name,) for name in names]):
        rows = scene.tensor(AS_IT_IS, name)
        scene.forget()
        norms = np.linalg.norm(rows, axis=1) if rows is not None and rows.ndim == 2 else np.zeros(1)
        if norms.min() <= 0:
            continue
        for size, found in profiles.items():
            if len(norms) % size == 0:
                found.append(np.log(norms).reshape(-1, size).mean(axis=0))
    seen = {size: _layout(found, len(profiles)) for size, found in profiles.items() if len(found) >= _FEWEST_LAYERS}
    said = _bearings(sizes, expected, {size: way for size, (way, *_) in seen.items()})
    told = [size for option, size in sizes.items() if said.get(option, Bearing.NOTHING) is not Bearing.NOTHING]
    if not told:
        return None
    way, halves, index, agree = seen[told[0]]
    runs = "repeats after half a head" if way == _HALVES else "falls or rises through the whole head"
    says = (
        f"With heads of {told[0]} rows the norms of the rows, averaged over all heads, make a profile that {runs} "
        f"(first half with second {halves:.2f}, with the place in the head {index:.2f}), in {agree:,} of "
        f"{len(profiles[told[0]]):,} matrices: the file's rows turn in {way}, if heads have that size."
    )
    return Statement(
        question=scene.question.id,
        witness=WITNESS.id,
        options=tuple((option, said.get(option, Bearing.NOTHING)) for option, _ in scene.question.options),
        agree=agree,
        layers=len(profiles[told[0]]),
        says=says,
    )


def _file_would_be(scene: Scene) -> str:
    """What the file's rows are under the options that reorder them."""
    for steps in scene.plans.values():
        for step in steps.values():
            found = re.fullmatch(r"rows:([0-9]+),([0-9]+)", step.value) if step.rule == rotary_halves.RULE.id else None
            if found is not None:
                return _PAIRS if found[2] == "2" and found[1] != "2" else _HALVES if found[1] == "2" else ""
    return ""


def _layout(found: list[Floats], tried: int) -> tuple[str, float, float, int]:
    """(halves, pairs or "", first half with second, with the place, matrices that say the same)."""
    profile = np.mean(found, axis=0)
    halves, index = _both(profile)
    size = len(profile)
    first, second = (float(half.std()) for half in np.split(profile, 2))
    alike = max(first, second) <= _MOST_TIMES * min(first, second)
    level = math.log(_CHANCE / (2 * max(1, tried)))
    way = ""
    if halves >= _SURE and abs(index) <= _MOST_WITH_PLACE and alike and log_chance(halves, size // 2) < level:
        way = _HALVES
    elif abs(index) >= _SURE and log_chance(abs(index), size) < level:
        way = _PAIRS
    each = [_both(profile) for profile in found]
    agree = sum((h > abs(i)) is (way == _HALVES) for h, i in each)
    return (way if agree >= _AGREEING * len(found) else ""), halves, index, agree


def _both(profile: Floats) -> tuple[float, float]:
    """Correlation of the first half of a profile with its second, and of all of it with the place."""
    if np.ptp(profile) <= 1e-9 or len(profile) < 8:
        return 0.0, 0.0
    first, second = np.split(profile, 2)
    with np.errstate(all="ignore"):
        halves = np.corrcoef(first, second)[0, 1]
        index = np.corrcoef(profile, np.arange(len(profile)))[0, 1]
    return float(np.nan_to_num(halves)), float(np.nan_to_num(index))


def _bearings(sizes: Mapping[str, int], expected: str, seen: Mapping[int, str]) -> dict[str, Bearing]:
    """expected: what the file would be where it is reordered. seen: what it looks like with heads of each size."""
    said = {o: Bearing.AGAINST for o, size in sizes.items() if seen.get(size) and seen[size] != expected}
    if len(sizes) == 1:
        # What tells the size of a head leaves one way to be right.
        only, size = next(iter(sizes.items()))
        if seen.get(size) == expected:
            return {only: Bearing.FOR, AS_IT_IS: Bearing.AGAINST}
        if said:
            return said | {AS_IT_IS: Bearing.FOR}
    return said


WITNESS = Witness(
    id="rotary-rows",
    title="Norms of the rows of queries and keys",
    questions=frozenset({rotary_halves.RULE.id}),
    listens=_listens,
    source="RoFormer (Su 2021): a pair's angle per place falls with its number",
)
