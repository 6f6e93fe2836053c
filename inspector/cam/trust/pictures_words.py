"""What trust over several pictures says, in words: page and terminal say the same."""

from __future__ import annotations

from inspector.cam.trust.intervals import FEW, By, Interval
from inspector.cam.trust.pictures import TrustOfPictures
from inspector.cam.trust.verdicts import Verdict
from inspector.units import counted, human_share

_AFTER = {
    Verdict.NOISE: "{} no better than noise",
    Verdict.EMPTY: "{} the same everywhere or empty",
    Verdict.STILL: "{} of an answer that hardly depends on the picture",
    Verdict.CHANGES: "{} another one each time it is made",
}


def pictures_summary(report: TrustOfPictures) -> str:
    """How many maps beat chance, how sure that is, what became of the others."""
    whole = report.whole
    if not whole.pictures:
        return f"None of {counted(len(report.rows), 'picture')} gave a map: nothing was measured."
    counts = dict(whole.verdicts)
    says = (
        f"{counts.get(Verdict.BETTER, 0)} of {counted(whole.pictures, 'map')} {_are(whole.pictures)} better than noise"
    )
    says += f" ({share_text(whole.better)})"
    rest = [text.format(counts[verdict]) for verdict, text in _AFTER.items() if verdict in counts]
    return says + (f"; {', '.join(rest)}." if rest else ".")


def failures_text(report: TrustOfPictures) -> str:
    """How many pictures gave no map, and why; "" where all did."""
    count = sum(number for _, number in report.failures)
    if not count:
        return ""
    reasons = " ".join(f"{number} x: {why}" if number > 1 else why for why, number in report.failures)
    return f"{counted(count, 'picture')} of {len(report.rows)} gave no map. {reasons}"


def intervals_text(report: TrustOfPictures) -> str:
    """How the intervals are worked out, and whether the pictures are too few for them."""
    count = report.whole.pictures
    if not count:
        return ""
    if count == 1:
        return "One picture has no interval: several pictures of each class tell more."
    says = (
        "Intervals hold with 95 % confidence for pictures like these: of means by Student's t over the pictures, of "
        "shares of maps by Wilson's score."
    )
    if count < FEW:
        says += (
            f" {counted(count, 'picture')} {_are(count)} few: one of them moves every mean, and the intervals are no "
            f"better than that. Take {FEW} or more."
        )
    elif any(group.pictures < FEW for group in report.groups[1:]):
        says += f" Classes with fewer than {FEW} pictures say little by themselves."
    return says


def interval_text(interval: Interval) -> str:
    """ "0.412 (0.301 to 0.523)"; without an interval the mean alone."""
    if interval.mean != interval.mean:
        return "none"
    mean = _number(interval.mean)
    return mean if interval.by is By.NONE else f"{mean} ({_number(interval.low)} to {_number(interval.high)})"


def share_text(interval: Interval) -> str:
    """The same of a share of maps: "92 %, 65 to 99 %"."""
    if interval.by is By.NONE:
        return "none"
    low, high = human_share(interval.low), human_share(interval.high)
    return f"{human_share(interval.mean)}, 95 % interval {low} to {high}"


def _number(value: float) -> str:
    # No minus before what rounds to nothing.
    return f"{round(value, 3) + 0.0:.3f}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
