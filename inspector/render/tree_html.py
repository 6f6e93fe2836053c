"""Trees as plain HTML details, so that thousands of nodes cost one message and no widgets.

They have no ARIA roles: opening and folding is the browser's own, by keyboard too; a tree would promise arrows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from inspector.checkpoint.types import ModuleNode
from inspector.checkpoint.values import Value, ValueKind
from inspector.render.html_text import escaped
from inspector.units import counted, human_count, human_shape, shorten_middle

_SIBLINGS = 120
_NODES = 3_000
_LABEL = 120
_SAYS = 400
_CONTAINERS = (ValueKind.MAPPING, ValueKind.SEQUENCE, ValueKind.SET, ValueKind.OBJECT, ValueKind.MODULE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One row. kind: its type, greyed. says: its value. right: figures at the right edge. badge: (word, tone)."""

    label: str
    kind: str = ""
    says: str = ""
    right: tuple[str, ...] = ()
    badge: tuple[str, str] | None = None
    children: tuple[Branch, ...] = field(default=())
    left_out: int = 0


def tree_html(branches: Sequence[Branch], *, open_depth: int = 1, heads: Sequence[str] = ()) -> str:
    """All of them; rows above `open_depth` start open. What exceeds a page's room is counted at its place.

    heads: what the figures at the right edge are.
    """
    budget = [_NODES]
    cells = "".join(f"<span>{escaped(head)}</span>" for head in heads)
    heading = f'<div class="mi-leaf mi-heads"><span class="mi-right">{cells}</span></div>' if heads else ""
    return f'<div class="mi-tree">{heading}{_rows(branches, 0, open_depth, budget)}</div>'


def _rows(branches: Sequence[Branch], depth: int, open_depth: int, budget: list[int]) -> str:
    rows = []
    for branch in branches:
        if budget[0] <= 0:
            rows.append('<div class="mi-leaf mi-more">more is not shown here</div>')
            break
        budget[0] -= 1
        line = _line(branch)
        if branch.children or branch.left_out:
            inner = _rows(branch.children, depth + 1, open_depth, budget)
            if branch.left_out:
                inner += f'<div class="mi-leaf mi-more">and {counted(branch.left_out, "more", "more")}</div>'
            opened = " open" if depth < open_depth else ""
            rows.append(f"<details{opened}><summary>{line}</summary><div>{inner}</div></details>")
        else:
            rows.append(f'<div class="mi-leaf">{line}</div>')
    return "".join(rows)


def _line(branch: Branch) -> str:
    parts = [_span("mi-label", branch.label, _LABEL)]
    if branch.kind:
        parts.append(_span("mi-kind", branch.kind, _LABEL))
    if branch.says:
        parts.append(_span("mi-says", branch.says, _SAYS))
    if branch.badge:
        word, tone = branch.badge
        parts.append(badge(word, tone))
    if branch.right:
        cells = "".join(f"<span>{escaped(figure)}</span>" for figure in branch.right)
        parts.append(f'<span class="mi-right">{cells}</span>')
    return "".join(parts)


def _span(tone: str, text: str, width: int) -> str:
    short = shorten_middle(text, width)
    title = f' title="{escaped(text)}"' if short != text else ""
    return f'<span class="{tone}"{title}>{escaped(short)}</span>'


def badge(word: str, tone: str) -> str:
    """A word in a pill, as HTML. tone: a severity's value."""
    return f'<span class="mi-badge mi-{escaped(tone)}">{escaped(word)}</span>'


def value_branch(label: str, value: Value) -> Branch:
    """A Python value of the file. Inert ones are marked: a real unpickle would have called code for them."""
    shown = value.children[:_SIBLINGS]
    left_out = max(value.size, len(value.children)) - len(shown)
    return Branch(
        label=label,
        kind=value.type_name if value.kind is not ValueKind.TENSOR else "tensor",
        says=value.says,
        badge=("not executed", "warning") if value.inert else None,
        children=tuple(value_branch(name, child) for name, child in shown),
        # The size of a text is its length, not something left out.
        left_out=left_out if value.kind in _CONTAINERS else 0,
    )


def module_branch(node: ModuleNode) -> Branch:
    """A module with what is below it; the figure is its parameters and buffers in elements."""
    children = [module_branch(child) for child in node.children]
    tensors = [
        Branch(
            label=t.name.rpartition(".")[2],
            says=human_shape(t.shape),
            kind=t.dtype,
            right=(human_count(t.numel),),
        )
        for t in node.tensors
    ]
    settings = ", ".join(f"{name}={value}" for name, value in node.hyperparameters)
    return Branch(
        label=node.name or "model",
        kind=(node.kind or "").rpartition(".")[2],
        says=settings,
        right=(human_count(elements_below(node)),),
        children=tuple(tensors[:_SIBLINGS] + children),
        left_out=max(0, len(tensors) - _SIBLINGS),
    )


def elements_below(node: ModuleNode) -> int:
    """Elements of all tensors in a module and below."""
    return sum(t.numel for t in node.tensors) + sum(elements_below(child) for child in node.children)
