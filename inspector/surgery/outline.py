"""Names by the modules that they lie in, as few patterns as tell them apart: what a preview lists."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from inspector.keys.folding import fold

Group = tuple[str, list[str]]
_DEEPEST = 64  # segments


def by_module(names: Iterable[str], within: Collection[str]) -> list[Group]:
    """(pattern, its names): layer1.*, layer2.* and fc.{weight,bias}, each of them all that `within` has there.

    within: every name of the state dict. A star never stands for a name that is not among them.
    """
    wanted = set(names)
    every = list(dict.fromkeys([*within, *wanted]))
    return _cover(_common(every), every, wanted, _DEEPEST) if wanted else []


def modules_line(names: Sequence[str], within: Collection[str], most: int = 4) -> str:
    """'layer4.* (30), fc.{weight,bias} (2) and 12 more' for one line."""
    groups = by_module(names, within)
    shown = [f"{pattern} ({len(members):,})" if len(members) > 1 else pattern for pattern, members in groups[:most]]
    left = sum(len(members) for _, members in groups[most:])
    return ", ".join(shown) + (f" and {left:,} more" if left else "")


def _cover(prefix: str, every: Sequence[str], wanted: Collection[str], depth: int) -> list[Group]:
    """Of the names below one module, by what lies directly in it. Its own tensors stand together."""
    inner: dict[str, list[str]] = {}
    for name in every:
        segment, dot, _ = name[len(prefix) :].partition(".")
        inner.setdefault(f"{prefix}{segment}." if dot else "", []).append(name)
    found: list[Group] = []
    for below, members in inner.items():
        ours = [name for name in members if name in wanted]
        if not ours:
            continue
        folds = fold(ours)
        if len(folds) == 1 or not below or not depth:
            found += [(one.pattern, list(one.names)) for one in folds]
        elif len(ours) == len(members):
            found.append((f"{below}*", ours))
        else:
            found += _cover(below, members, wanted, depth - 1)
    return found


def _common(names: Sequence[str]) -> str:
    """The modules that all names begin with, with their dots."""
    prefix = ""
    while True:
        segment, dot, _ = names[0][len(prefix) :].partition(".")
        longer = f"{prefix}{segment}."
        if not dot or not all(name.startswith(longer) for name in names):
            return prefix
        prefix = longer
