"""Where a mean over pictures lies, with 95 % confidence: how that is worked out, and when it says little."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

# Below so many pictures one of them moves a mean by a tenth.
FEW = 10
_CONFIDENCE = 0.95
_Z = statistics.NormalDist().inv_cdf(0.5 + _CONFIDENCE / 2)
# Student's t at 97.5 % with 1 to 9 degrees of freedom; from there on the expansion below is exact to four digits.
_T = (12.7062047, 4.3026527, 3.1824463, 2.7764451, 2.5705818, 2.4469118, 2.3646243, 2.3060041, 2.2621572)


class By(StrEnum):
    """How an interval is worked out."""

    STUDENT = "student"
    WILSON = "wilson"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """mean: over `pictures` numbers, NaN of none. low, high: where it lies with 95 % confidence, NaN where `by` is
    none: of one number there is no interval."""

    mean: float
    low: float
    high: float
    pictures: int
    by: By


def student(values: Sequence[float]) -> Interval:
    """Of numbers of any size, by Student's t over them (n - 1); those that are not finite are left out."""
    numbers = [value for value in values if math.isfinite(value)]
    count = len(numbers)
    mean = statistics.fmean(numbers) if numbers else math.nan
    if count < 2:
        return Interval(mean=mean, low=math.nan, high=math.nan, pictures=count, by=By.NONE)
    half = student_quantile(count - 1) * statistics.stdev(numbers) / math.sqrt(count)
    return Interval(mean=mean, low=mean - half, high=mean + half, pictures=count, by=By.STUDENT)


def wilson(values: Sequence[float]) -> Interval:
    """Of yes and no (1 and 0) by Wilson's score, which stays within 0 and 1 and has a width where all are alike
    (Wilson 1927, J. Am. Stat. Assoc. 22); those that are not finite are left out."""
    numbers = [value for value in values if math.isfinite(value)]
    count = len(numbers)
    if not count:
        return Interval(mean=math.nan, low=math.nan, high=math.nan, pictures=0, by=By.NONE)
    mean = statistics.fmean(numbers)
    below = 1 + _Z**2 / count
    centre = (mean + _Z**2 / (2 * count)) / below
    half = _Z * math.sqrt(mean * (1 - mean) / count + _Z**2 / (4 * count**2)) / below
    low = 0.0 if mean == 0 else max(0.0, centre - half)
    high = 1.0 if mean == 1 else min(1.0, centre + half)
    return Interval(mean=mean, low=low, high=high, pictures=count, by=By.WILSON)


def student_quantile(freedom: int) -> float:
    """Student's t at 97.5 %. freedom: degrees of freedom, 1 and more."""
    if freedom <= len(_T):
        return _T[freedom - 1]
    # Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5.
    z, n = _Z, freedom
    return (
        z
        + (z**3 + z) / (4 * n)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    )
