"""Numbers as people read and write them. Exact values stay in the reports; these make only text."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from inspector.errors import UsageError

_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*([kmgt]?)i?b?", re.IGNORECASE)
_LAST_NUMBER = re.compile(r"[0-9]+[a-z]?$")
_LEAST = 1_000
# What stands behind a number, one step for each thousand: operations (MACs, FLOPs) in SI's, what is counted as the
# field writes it ("7 B parameters"), bytes in decimal ones. There is no other spelling anywhere.
OPERATION_STEPS = ("", " K", " M", " G", " T", " P")
COUNT_STEPS = ("", " K", " M", " B", " T")
BYTE_STEPS = (" B", " kB", " MB", " GB", " TB", " PB")


def _scaled(value: float, steps: tuple[str, ...]) -> tuple[float, str]:
    size = float(value)
    for step in steps[:-1]:
        # 999.95 would round to "1000.0": move on one step earlier.
        if abs(size) < 999.5:
            return size, step
        size /= 1000
    return size, steps[-1]


def _three_digits(size: float) -> str:
    if abs(size) >= 99.95:
        return f"{size:.0f}"
    if abs(size) >= 9.995:
        return f"{size:.1f}"
    return f"{size:.2f}"


def human_count(n: int) -> str:
    """1234567 -> '1.23 M', with B for a thousand million as the field writes it; exact below 1000."""
    if abs(n) < 1000:
        return str(n)
    size, step = _scaled(n, COUNT_STEPS)
    return f"{_three_digits(size)}{step}"


def human_input(shape: Sequence[int]) -> str:
    """What a figure of costs is at. shape: of the input, (..., height, width) or (tokens,)."""
    return f"{shape[-2]}x{shape[-1]}" if len(shape) > 1 else f"{shape[0]} tokens"


def human_macs(macs: int) -> str:
    """Multiply-accumulates with SI steps: 4089184256 -> '4.09 G'."""
    if abs(macs) < 1000:
        return str(macs)
    size, step = _scaled(macs, OPERATION_STEPS)
    return f"{_three_digits(size)}{step}"


def human_bytes(nbytes: int) -> str:
    """Decimal units, as file systems and hubs show them: 4800000 -> '4.80 MB'."""
    if abs(nbytes) < 1000:
        return f"{nbytes} B"
    size, step = _scaled(nbytes, BYTE_STEPS)
    return f"{_three_digits(size)}{step}"


def human_share(fraction: float) -> str:
    """0.0723 -> '7.2 %'; never '0.0 %' for something that is there, never '100.0 %' for almost all."""
    if fraction != fraction:
        return "NaN"
    if fraction <= 0:
        return "0 %"
    if fraction >= 1:
        return "100 %"
    if fraction < 0.001:
        return "< 0.1 %"
    if fraction > 0.999:
        return "> 99.9 %"
    return f"{fraction * 100:.1f} %"


def human_distance(relative: float) -> str:
    """Relative L2, |b - a| / |a|: 0.032144 -> '0.03214', a plain ratio everywhere; '' for NaN, which is not known."""
    return "" if math.isnan(relative) else f"{relative:.4g}"


def human_shape(shape: tuple[int | str, ...]) -> str:
    """(64, 3, 7, 7) -> '64x3x7x7'; a scalar is 'scalar'."""
    return "x".join(str(n) for n in shape) if shape else "scalar"


def place_in(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index along each dimension of element `flat`, counted in row-major order; () in a scalar."""
    left, place = flat, []
    for size in reversed(shape):
        left, at = divmod(left, size)
        place.append(at)
    return tuple(reversed(place))


def human_place(flat: int, shape: tuple[int, ...]) -> str:
    """185, (4, 3, 4, 4) -> '[3, 2, 2, 1]', as one writes it in Python behind the tensor."""
    return f"[{', '.join(map(str, place_in(flat, shape)))}]"


def counted(n: int, noun: str, plural: str = "") -> str:
    """1, 'key' -> '1 key'; 3, 'key' -> '3 keys'."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def shorten_middle(text: str, width: int = 48) -> str:
    """Cut the middle of a long key, where keys differ least from each other."""
    if len(text) <= width:
        return text
    keep = width - 1
    head = keep * 2 // 5
    return f"{text[:head]}…{text[len(text) - (keep - head) :]}"


def shorten_apart(names: Sequence[str], width: int = 48) -> list[str]:
    """Long keys that stand below each other: short, and no two alike that are not.

    What all of them begin with goes, whole segments of it. Words then become initials from the left with the number
    that they end in ("f.10.b.3.0.weight", "s2.0.branch2.5.weight"), as numbers tell layers apart; what is still too
    long loses its first segments, then its middle. What would be alike after that stays whole.
    """
    segments = [name.split(".") for name in names]
    common = 0
    if len(set(names)) > 1 and any(len(name) > width for name in names):
        shortest = min(map(len, segments))
        while common < shortest - 1 and len({parts[common] for parts in segments}) == 1:
            common += 1
    bare = [f"…{'.'.join(parts[common:])}" if common else ".".join(parts) for parts in segments]
    short = [_with_initials(name, width) for name in bare]
    for shorter in (_without_first, shorten_middle):
        cut = [shorter(text, width) for text in short]
        meant: dict[str, set[str]] = {}
        for text, name in zip(cut, bare, strict=True):
            meant.setdefault(text, set()).add(name)
        short = [text if len(meant[text]) == 1 else was for text, was in zip(cut, short, strict=True)]
    alike: dict[str, set[str]] = {}
    for text, name in zip(short, bare, strict=True):
        alike.setdefault(text, set()).add(name)
    return [text if len(alike[text]) == 1 else name for text, name in zip(short, bare, strict=True)]


def _with_initials(name: str, width: int) -> str:
    """Its words as initials and their numbers, from the left, until it is short enough; the last word stays."""
    parts = name.split(".")
    for place, part in enumerate(parts[:-1]):
        if len(".".join(parts)) <= width:
            break
        word = part.lstrip("…")
        if word[:1].isalpha():
            number = _LAST_NUMBER.search(word[1:])
            parts[place] = part[: len(part) - len(word)] + word[0] + (number[0] if number else "")
    return ".".join(parts)


def _without_first(name: str, width: int) -> str:
    """Its last segments, as many as there is room for; unchanged where the last one alone is too long."""
    if len(name) <= width:
        return name
    parts = name.lstrip("…").split(".")
    for first in range(1, len(parts)):
        if len(rest := f"…{'.'.join(parts[first:])}") <= width:
            return rest
    return name


def human_duration(seconds: float) -> str:
    """ "0.4 s", "12 s", "3 min", "2 h": an estimate, so never more than two digits."""
    if seconds < 9.95:
        return f"{max(seconds, 0.1):.1f} s"
    if seconds < 90:
        return f"{round(seconds)} s"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} min"
    return f"{round(seconds / 3600)} h"


def whole_number(text: str, most: int) -> int | None:
    """The number that ASCII digits write; None for anything else, or above most."""
    if not text.isascii() or not text.isdigit() or len(text) > 20:
        return None
    return number if (number := int(text)) <= most else None


def parse_size(text: str) -> int:
    """ "2GB" -> 2,000,000,000 bytes, as huggingface_hub counts. Raises UsageError for what is no size."""
    match = _SIZE.fullmatch(text.strip())
    nbytes = int(float(match[1]) * 1000 ** " kmgt".index(match[2].lower() or " ")) if match else 0
    if nbytes < _LEAST:
        raise UsageError(f'"{text[:40]}" is no size.', hint="Write 2GB, 500MB or a number of bytes, 1,000 at least.")
    return nbytes


def with_article(word: str) -> str:
    """A class's name in a sentence: "an EncoderOutput", "a tuple"."""
    return f"{'an' if word[:1].lower() in tuple('aeio') else 'a'} {word}"
