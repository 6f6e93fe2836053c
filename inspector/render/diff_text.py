"""A comparison of two checkpoints as text: the answer, what it proves, then what differs, the largest first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from inspector.compare.report import (
    Diff,
    OtherChange,
    PairNumbers,
    Relation,
    Side,
    TensorDiff,
    TensorSide,
    Totals,
)
from inspector.render.text import pairs, safe, table
from inspector.render.visible import one_line
from inspector.units import counted, human_bytes, human_count, human_distance, human_shape, human_share

_STYLE = {
    Relation.CHANGED: "yellow",
    Relation.TRUNCATED: "yellow",
    Relation.RESHAPED: "magenta",
    Relation.ADDED: "green",
    Relation.REMOVED: "red",
    Relation.UNREAD: "bold red",
}
_OTHERS = 40
_ROWS = 200


def diff_text(diff: Diff) -> RenderableType:
    """The whole report; tensors that are the same are only counted."""
    parts: list[RenderableType] = [
        pairs([("first", _side(diff.a)), ("second", _side(diff.b)), ("paired", safe(diff.alignment.says))]),
        *(f"  {safe(rule)}" for rule in diff.alignment.rules),
        "",
        Text(one_line(diff.says), style="bold"),
    ]
    parts += [safe(verdict.says) for verdict in diff.verdicts if one_line(verdict.says) not in diff.says]
    different = sorted((t for t in diff.tensors if t.relation is not Relation.SAME), key=_importance)
    if different:
        parts += ["", tensors_text(different)]
    for unsure in diff.alignment.ambiguous[:_OTHERS]:
        parts.append(f"not paired: {safe(', '.join(unsure.a))} and {safe(', '.join(unsure.b))}: {safe(unsure.why)}")
    if diff.others:
        parts += ["", others_text(diff.others)]
    parts += ["", *(Text(f"Not compared: {one_line(what)}", style="dim") for what in diff.skipped)]
    parts.append(Text(_read(diff), style="dim"))
    return Group(*parts)


def _side(side: Side) -> str:
    state = f", {side.state}" if side.state and side.path else ""
    return safe(
        f"{side.name}: {side.format_says}{state}, {counted(side.tensors, 'tensor')}, "
        f"{human_count(side.parameters)} parameters, {human_bytes(side.nbytes)}"
    )


def _read(diff: Diff) -> str:
    speed = (
        f" ({diff.read_nbytes / diff.seconds / 1e9:.1f} GB/s)" if diff.seconds and diff.read_nbytes > 1 << 26 else ""
    )
    return f"{human_bytes(diff.read_nbytes)} read in {diff.seconds:.2f} s{speed}."


def _importance(tensor: TensorDiff) -> tuple[float, float]:
    """What cannot be measured first, then the largest relative L2."""
    if tensor.relation is Relation.UNREAD:
        return (0.0, 0.0)
    if tensor.numbers is None:
        return (1.0, 0.0)
    relative = tensor.numbers.relative
    return (2.0, -relative if not math.isnan(relative) else -math.inf)


def tensors_text(tensors: Sequence[TensorDiff]) -> RenderableType:
    """A row for each."""
    made = table(
        "relation", "tensor", "shape", "type", "relative L2", "cosine", "changed", "largest change", "note",
        right=(4, 5, 6),
    )  # fmt: skip
    for tensor in tensors[:_ROWS]:
        style = _STYLE.get(tensor.relation, "default")
        numbers = tensor.numbers
        measured = _measured(tensor, numbers) if numbers is not None else ("", "", "", "")
        made.add_row(
            f"[{style}]{tensor.relation}[/]", safe(tensor_name(tensor)), _both(tensor, _shape), _both(tensor, _type),
            *measured, safe(tensor_note(tensor)),
        )  # fmt: skip
    if len(tensors) <= _ROWS:
        return made
    return Group(made, Text(f"{len(tensors) - _ROWS:,} further tensors: all of them are in the JSON.", style="dim"))


def _measured(tensor: TensorDiff, numbers: PairNumbers) -> tuple[str, str, str, str]:
    # Sums go over what is finite in both: beside NaN in one file they are no measure of likeness.
    odd = numbers.one_sided
    cosine = None if odd else numbers.cosine
    return (
        "not finite" if odd else human_distance(numbers.relative),
        "" if cosine is None else f"{cosine:.6f}",
        human_share(numbers.changed / numbers.n) if numbers.n else "",
        largest_change(tensor),
    )


def largest_change(tensor: TensorDiff) -> str:
    """ "0.5 at [3, 7]: 1 -> 1.5", "" where nothing changed."""
    change = tensor.numbers.largest if tensor.numbers is not None else None
    if change is None or tensor.a is None:
        return ""
    shape = (*tensor.a.shape, tensor.parts) if tensor.parts > 1 else tensor.a.shape
    place = f" at {list(change.place(shape))}" if shape else ""
    return f"{change.size:.4g}{place}: {change.a:.6g} -> {change.b:.6g}"


def tensor_note(tensor: TensorDiff) -> str:
    """What else is to be said of it."""
    parts = [tensor.note]
    if tensor.reshape is not None:
        parts.append(f"first {tensor.rows:,} rows equal" if tensor.reshape == "first rows equal" else tensor.reshape)
    if tensor.axes:
        parts.append(f"axes {list(tensor.axes)}")
    numbers = tensor.numbers
    if numbers is not None:
        if numbers.zeroed:
            rest = ", all others equal" if numbers.rest_equal else ""
            parts.append(f"{human_share(numbers.zeroed / numbers.n)} set to zero{rest}")
        odd = numbers.nan_a + numbers.nan_b + numbers.infinite_a + numbers.infinite_b
        if odd:
            parts.append(
                f"NaN or infinite: {numbers.nan_a + numbers.infinite_a:,} -> {numbers.nan_b + numbers.infinite_b:,}"
            )
    return "; ".join(part for part in parts if part)


def tensor_name(tensor: TensorDiff) -> str:
    """Its name, both where the files differ in it."""
    if tensor.renamed and tensor.a is not None and tensor.b is not None:
        return f"{tensor.a.name} => {tensor.b.name}"
    return tensor.name


def _both(tensor: TensorDiff, show: Callable[[TensorSide], str]) -> str:
    sides = [show(side) for side in (tensor.a, tensor.b) if side is not None]
    return safe(" -> ".join(dict.fromkeys(sides)))


def _shape(side: TensorSide) -> str:
    return human_shape(side.shape)


def _type(side: TensorSide) -> str:
    return side.dtype


def others_text(others: Sequence[OtherChange]) -> RenderableType:
    """What differs beside the weights."""
    made = table("beside the weights", "where", "first", "second")
    for other in others[:_OTHERS]:
        where = f"{other.where} ({other.parameter})" if other.parameter else other.where
        made.add_row(str(other.kind), safe(where), safe(other.a or "-"), safe(other.b or "-"))
    if len(others) <= _OTHERS:
        return made
    return Group(made, Text(f"{len(others) - _OTHERS:,} further ones: all of them are in the JSON.", style="dim"))


def stat_text(diff: Diff) -> RenderableType:
    """A row per module, and the whole as the last one, as `git diff --stat` has it."""
    made = table("module", "tensors", "same", "changed", "other", "elements", "relative L2", "elements changed",
                 right=range(1, 8))  # fmt: skip
    whole, *modules = diff.modules
    for module in [m for m in modules if m.totals.count(Relation.SAME) < m.totals.tensors][:_ROWS]:
        made.add_row("  " * (module.depth - 1) + safe(module.path), *_cells(module.totals))
    made.add_row("in all", *_cells(whole.totals), style="bold")
    return Group(made, Text(one_line(diff.says)))


def _cells(totals: Totals) -> Iterator[str]:
    same, changed = totals.count(Relation.SAME), totals.count(Relation.CHANGED)
    yield f"{totals.tensors:,}"
    yield f"{same:,}"
    yield f"{changed:,}"
    yield f"{totals.tensors - same - changed:,}"
    yield human_count(max(totals.parameters_a, totals.parameters_b))
    yield "" if totals.relative is None else human_distance(totals.relative)
    yield human_share(totals.share_changed) if totals.elements else ""


def name_lines(diff: Diff, tolerance: float | None) -> Iterator[str]:
    """The names of what differs, one in each line, both names where the files differ in them."""
    for tensor in diff.tensors:
        if tensor.differs(tolerance):
            yield one_line(tensor_name(tensor))


def rows_text(rows: Sequence[tuple[str, Diff | None, str]]) -> RenderableType:
    """Several files against the first: (name, comparison, what is said where there is none)."""
    made = table("file", "same", "changed", "other", "relative L2", "cosine", "what it is", right=range(1, 6))
    for name, diff, says in rows:
        if diff is None:
            made.add_row(safe(name), "", "", "", "", "", safe(says))
            continue
        totals = diff.totals
        same, changed = totals.count(Relation.SAME), totals.count(Relation.CHANGED)
        cosine = totals.numbers.cosine if totals.numbers is not None else None
        made.add_row(
            safe(name), f"{same:,}", f"{changed:,}", f"{totals.tensors - same - changed:,}",
            "" if totals.relative is None else human_distance(totals.relative),
            "" if cosine is None else f"{cosine:.6f}", safe(diff.says),
        )  # fmt: skip
    return made
