""" "Did you mean ...?" for names that a person typed."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def suggest(typed: str, known: Iterable[str], *, most: int = 3) -> str:
    """A hint that names the nearest known names, or all of them when there are few, or "" when nothing is near.

    Case and the separators "-", "_" and " " are ignored: "ResNet-18" finds resnet18.
    """
    names = tuple(known)
    plain = {_plain(name): name for name in names}
    near = [plain[match] for match in get_close_matches(_plain(typed), plain, n=most, cutoff=0.6)]
    if near:
        return f"Did you mean {_either(near)}?"
    if len(names) <= 8:
        return f"Known are {', '.join(names)}."
    return ""


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")


def _either(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
