"""A comparison of two checkpoints as text: the answer, what it proves, then what differs, the largest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from inspector.compare.report import (
    Diff,
    OtherChange,
    PairNumbers,
    Relation,
    Side,
    TensorDiff,
    Totals,
)
from inspector.render.diff_words import (
    both_shapes,
    both_types,
    importance,
    largest_change,
    relation_word,
    tensor_name,
    tensor_note,
)
from inspector.render.text import pairs, safe, table
from inspector.render.visible import one_line
from inspector.units import counted, human_bytes, human_count, human_distance, human_share

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
    """The whole report; tensors that are the same, their names too, are only counted."""
    parts: list[RenderableType] = [
        pairs([("first", _side(diff.a)), ("second", _side(diff.b)), ("paired", safe(diff.alignment.says))]),
        *(f"  {safe(rule)}" for rule in diff.alignment.rules),
        "",
        Text(one_line(diff.says), style="bold"),
    ]
    parts += [safe(verdict.says) for verdict in diff.verdicts if one_line(verdict.says) not in diff.says]
    # What a rule above says of all names is not said of each.
    named = diff.tensors if not diff.alignment.rules else [t for t in diff.tensors if not t.is_only_renamed]
    different = sorted((t for t in named if t.relation is not Relation.SAME or t.renamed), key=importance)
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
            f"[{style}]{relation_word(tensor)}[/]", safe(tensor_name(tensor)), safe(both_shapes(tensor)),
            safe(both_types(tensor)), *measured, safe(tensor_note(tensor)),
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
