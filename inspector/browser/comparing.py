"""A second file held against the first: names, shapes, types, what lies beside the weights, and every tensor's bytes.
How far numbers moved takes NumPy, and the app."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from inspector.browser.pieces import own_words
from inspector.compare.report import Relation
from inspector.progress import Progress, silent
from inspector.render.diff_words import both_shapes, both_types, importance, tensor_note
from inspector.render.html_text import escaped
from inspector.render.page_report.words import folded, mono, section, table
from inspector.units import counted, human_bytes

if TYPE_CHECKING:
    from inspector.checkpoint.types import Checkpoint
    from inspector.compare.report import Diff, TensorDiff

# Rows of one table.
_ROWS, _OTHERS = 500, 200
# So many that were not compared stand among the others; more lie behind a click.
_UNREAD = 20
_WORDS = {
    **{relation: relation.value for relation in Relation},
    Relation.SAME: "the same",
    Relation.RESHAPED: "of another shape",
    Relation.ADDED: "only there",
    Relation.REMOVED: "not there",
    Relation.UNREAD: "not compared",
}


def compare(first: Checkpoint, second: Checkpoint, progress: Progress = silent) -> dict[str, Any]:
    """Reads both files once, as far as their tensors are of one shape and type."""
    from inspector.compare.diff import compare_checkpoints

    found = compare_checkpoints(first, second, numbers=False, progress=progress)
    return {"differs": found.differs(), "html": _html(found)}


def _html(found: Diff) -> str:
    html = f"<p><b>{escaped(own_words(found.says))}</b></p>"
    html += f"<p>{escaped(own_words(found.alignment.says))}</p>"
    html += "".join(f'<p class="soft">{escaped(rule)}</p>' for rule in found.alignment.rules)
    rows = [(f"{count:,}", _WORDS[relation]) for relation, count in found.totals.counts]
    html += table(("Tensors", "In the second file"), rows, numeric=(0,)) if rows else ""
    html += section("What differs", _tensors(found))
    html += section("Renamed", _renamed(found))
    html += section("Beside the weights", _others(found))
    left = "".join(f"<li>{escaped(own_words(says))}</li>" for says in found.skipped)
    html += section("Not compared", f"<ul>{left}</ul>" if left else "")
    return html + f'<p class="soft">{escaped(human_bytes(found.read_nbytes))} of tensors were read.</p>'


def _tensors(found: Diff) -> str:
    different = sorted((one for one in found.tensors if one.relation is not Relation.SAME), key=importance)
    if not different:
        return ""
    unread = [one for one in different if one.relation is Relation.UNREAD]
    if len(unread) <= _UNREAD:
        return _listed(different)
    listed = [one for one in different if one.relation is not Relation.UNREAD]
    return (_listed(listed) if listed else "") + folded(
        f"{counted(len(unread), 'tensor')} not compared", _listed(unread)
    )


def _renamed(found: Diff) -> str:
    """What has the same bytes under another name."""
    names = [(t.a.name, t.b.name) for t in found.tensors if t.is_only_renamed and t.a is not None and t.b is not None]
    if not names:
        return ""
    listed = table(("First", "Second"), [(mono(a, 60), mono(b, 60)) for a, b in names[:_ROWS]])
    listed += _rest(len(names) - _ROWS, "tensor")
    says = f"{counted(len(names), 'tensor')} with the same bytes under another name"
    return f"<p>{escaped(says)}.</p>{listed}" if len(names) <= _UNREAD else folded(says, listed)


def _listed(different: Sequence[TensorDiff]) -> str:
    rows = [
        (
            _name(one), f'<span class="tone notice">{_WORDS[one.relation]}</span>', escaped(both_shapes(one)),
            escaped(both_types(one)), escaped(tensor_note(one)),
        )
        for one in different[:_ROWS]
    ]  # fmt: skip
    return table(("Tensor", "In the second", "Shape", "Type", "Note"), rows) + _rest(len(different) - _ROWS, "tensor")


def _name(one: TensorDiff) -> str:
    if one.renamed and one.a is not None and one.b is not None:
        return f"{mono(one.a.name, 50)}<br>{mono(one.b.name, 50)}"
    return mono(one.name, 50)


def _others(found: Diff) -> str:
    rows = [
        (
            escaped(str(one.kind)), mono(one.where, 60) if one.where else "",
            escaped(one.a if one.a is not None else "-"), escaped(one.b if one.b is not None else "-"),
        )
        for one in found.others[:_OTHERS]
    ]  # fmt: skip
    rest = _rest(len(found.others) - _OTHERS, "difference")
    return table(("What", "Where", "First", "Second"), rows) + rest if rows else ""


def _rest(left: int, noun: str) -> str:
    return f'<p class="soft">{counted(left, f"further {noun}")}.</p>' if left > 0 else ""
