"""Long names of layers where there is little room: what all of them begin with says nothing and is left out."""

from __future__ import annotations

from collections.abc import Sequence

# Shorter ones fit everywhere.
_LONG = 14


def short_names(names: Sequence[str]) -> dict[str, str]:
    """name -> what is shown: without the dotted parts that all share, "…" in their place; unique as the names are.

    One name alone, and names that fit anyway, stay as they are.
    """
    if len(names) < 2 or max(map(len, names)) <= _LONG:
        return {name: name for name in names}
    parts = [name.split(".") for name in names]
    most = min(map(len, parts)) - 1
    shared = next((n for n in range(most) if len({part[n] for part in parts}) > 1), most)
    while shared and any(part[shared][0].isdigit() for part in parts):
        shared -= 1  # a number alone says nothing either
    return {name: "…" + ".".join(part[shared:]) if shared else name for name, part in zip(names, parts, strict=True)}
