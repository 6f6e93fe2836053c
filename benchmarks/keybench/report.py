"""The tables, as Markdown."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum

from benchmarks.keybench.corruptions import ADDED, held_kinds
from benchmarks.keybench.damage import Answer
from benchmarks.keybench.run import OURS
from benchmarks.keybench.scaling import Timing
from benchmarks.keybench.score import Score, Total, total
from inspector.keys.report import Evidence

_ADDED = frozenset(corruption.name for corruption in ADDED)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join('---' for _ in head)} |"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _of_tool(name: str) -> Callable[[Score], bool]:
    return lambda score: score.tool == name


def _of_corruption(name: str) -> Callable[[Score], bool]:
    return lambda score: score.corruption == name


def percent(value: float, digits: int = 1) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f} %"


def by_corruption(scores: Sequence[Score]) -> Iterator[str]:
    """This engine, one row per corruption."""
    ours = [score for score in scores if score.tool == OURS]
    rows = []
    for name in dict.fromkeys(score.corruption for score in ours):
        found = total(ours, _of_corruption(name))
        expects = next(score.expects for score in ours if score.corruption == name)
        # What has no right places has no share of them.
        shares = [percent(found.right_share), percent(found.wrong_share, 2)] if found.placeable else ["-", "-"]
        logits = f"{found.logits_equal} of {found.logits}" if found.logits else "-"
        rules = "-" if math.isnan(found.median_rules) else f"{found.median_rules:g}"
        told = f"{found.told} of {found.cases}" if expects is Answer.TELL else "-"
        whole = f"{found.whole} of {found.cases}"
        rows.append(
            [
                name,
                expects,
                *shares,
                whole,
                str(found.refused),
                str(found.asked),
                str(found.silent),
                logits,
                rules,
                told,
            ]
        )
    yield from table(
        [
            "corruption",
            "wanted",
            "right",
            "wrong",
            "whole",
            "refused",
            "asked",
            "silent",
            "logits equal",
            "rules",
            "told",
        ],
        rows,
    )


def by_tool(scores: Sequence[Score], names: Sequence[str]) -> Iterator[str]:
    """All tools on the same cases, those that a tool saw: a slow one sees fewer, and ours on those stands beside."""
    rows = []
    for tool in dict.fromkeys(score.tool for score in scores):
        found = total(scores, _of_tool(tool))
        rows.append(_tool_row(tool, found))
        seen = {(s.corruption, s.architecture, s.seed) for s in scores if s.tool == tool}
        if found.cases < total(scores, lambda score: score.tool == OURS).cases:
            same = [s for s in scores if s.tool == OURS and (s.corruption, s.architecture, s.seed) in seen]
            rows.append(_tool_row(f"{OURS}, on the cases of {tool}", total(same)))
    own = f" ({', '.join(names)}: written anew from the description)" if names else ""
    yield from table(
        ["tool", "cases", "right", "wrong", "whole", "refused", "out of time", "silent", "median", "longest"], rows
    )
    if own:
        yield ""
        yield own.strip()


def _tool_row(name: str, found: Total) -> list[str]:
    seconds = found.seconds or [0.0]
    return [
        name,
        f"{found.cases:,}",
        percent(found.right_share),
        percent(found.wrong_share, 2),
        f"{found.whole:,}",
        f"{found.refused:,}",
        f"{found.timed_out:,}",
        f"**{found.silent}**",
        f"{1000 * statistics.median(seconds):.0f} ms",
        f"{1000 * max(seconds):,.0f} ms",
    ]


def held_out(scores: Sequence[Score]) -> Iterator[str]:
    """This engine on what may be looked at, and on what is held out."""
    rows = []
    for label, held in (("looked at", False), ("held out", True)):
        chosen = [score for score in scores if score.tool == OURS and score.held_out is held]
        if not chosen:
            continue
        found = total(chosen)
        nets = len({score.architecture for score in chosen if " as " not in score.architecture})
        rows.append(
            [
                label,
                str(nets),
                f"{found.cases:,}",
                percent(found.right_share, 2),
                percent(found.wrong_share, 2),
                f"**{found.silent}**",
                f"{found.logits_equal} of {found.logits}",
                f"{found.median_rules:g}",
            ]
        )
    yield from table(
        ["", "networks", "cases", "right", "wrong", "silent", "logits equal", "rules, one cause"],
        rows,
    )


class Case(StrEnum):
    """What became of a case, each of which is exactly one of these; the last three are faults of the engine."""

    UNASKED = "right, unasked"
    ANSWERED = "right after truthful answers"
    STOPPED = "rightly not repaired"
    TOLD = "told that nothing can tell"
    UNTOLD = "nothing tells"
    OPEN = "refused or left open"
    WRONG = "wrong, and not whole"
    SILENT = "silent"


def case_of(score: Score) -> Case:
    """The one outcome of a case, all of which are the denominator."""
    if score.silent:
        return Case.SILENT
    if score.expects is Answer.TELL:
        return Case.TOLD if score.told else Case.UNTOLD
    if score.expects in (Answer.REFUSE, Answer.WAIT):
        return Case.STOPPED
    if score.wrong:
        return Case.WRONG
    if score.left or (score.expects is Answer.REPAIR and not score.strict):
        return Case.OPEN
    return Case.ANSWERED if score.asked else Case.UNASKED


def every_case(scores: Sequence[Score]) -> Iterator[str]:
    """This engine on all cases, whatever is wanted of them: numbers of cases, and shares of all."""
    ours = [score for score in scores if score.tool == OURS]
    groups = {
        "all": ours,
        "looked at": [score for score in ours if not score.held_out],
        "held out": [score for score in ours if score.held_out],
        "held out, kinds": [score for score in ours if score.corruption in held_kinds()],
        "made after libraries and threads": [score for score in ours if score.corruption in _ADDED],
    }
    rows = []
    for label, chosen in groups.items():
        if chosen:
            count = Counter(case_of(score) for score in chosen)
            kinds = len({score.corruption for score in chosen})
            shares = [f"{count[kind]:,} ({100 * count[kind] / len(chosen):.1f} %)" for kind in Case]
            rows.append([label, str(kinds), f"{len(chosen):,}", *shares])
    yield from table(["", "kinds", "cases", *Case], rows)


def certificates(scores: Sequence[Score]) -> Iterator[str]:
    """By what evidence the tensors of complete repairs were placed."""
    found = total(scores, lambda score: score.tool == OURS and score.strict)
    count = sum(found.evidence.values()) or 1
    rows = [[kind, f"{found.evidence[kind]:,}", percent(100 * found.evidence[kind] / count)] for kind in Evidence]
    yield from table(["evidence", "tensors", "share"], rows)


def times(timings: Sequence[Timing]) -> Iterator[str]:
    sizes = sorted({size for timing in timings for size in timing.seconds})
    rows = [
        [timing.corruption, *(f"{1000 * timing.seconds[n]:.0f} ms" if n in timing.seconds else "-" for n in sizes)]
        for timing in timings
    ]
    yield from table(["keys", *(f"{size:,}" for size in sizes)], rows)


def troubles(scores: Sequence[Score]) -> Iterator[str]:
    """Cases of this engine that are not as they should be, the worst first."""
    for score in scores:
        if score.tool != OURS:
            continue
        kinds = {
            "silent": score.silent,
            "wrong": score.wrong > 0 and score.expects in (Answer.REPAIR, Answer.PART, Answer.WAIT),
            "other logits": score.logits is False,
            "not told": score.expects is Answer.TELL and not score.told,
            "incomplete": score.expects is Answer.REPAIR and not score.strict,
        }
        said = [kind for kind, is_so in kinds.items() if is_so]
        if said:
            waits = f", waits for {', '.join(score.open[:3])}" if score.open else ""
            where = f", {score.wrong_keys[0]} first" if score.wrong_keys else ""
            yield (
                f"{', '.join(said)}: {score.corruption} on {score.architecture}, seed {score.seed}: "
                f"{score.right} of {score.placeable} right, {score.wrong} wrong{where}{waits}"
            )
