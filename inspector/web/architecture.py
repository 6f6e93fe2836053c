"""Rows and trees of the Architecture page, and its evidence, from the reports."""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

from inspector.architectures.types import Candidate, Recognition
from inspector.flops.report import CostReport
from inspector.params.report import ParameterReport
from inspector.render.page_words import in_page_words
from inspector.units import human_bytes, human_count, human_macs, human_shape
from inspector.web.text import escaped, mono
from inspector.web.trees import Branch, table

_TWINS = 4
_NAMELESS = "(no name)"


def candidate_row(candidate: Candidate, *, explained: bool) -> tuple[str, ...]:
    """One candidate with its evidence, as HTML cells; `explained`: with its sentence."""
    twins = ", ".join(mono(twin) for twin in candidate.twins[:_TWINS])
    if len(candidate.twins) > _TWINS:
        twins += f" and {len(candidate.twins) - _TWINS} more"
    return (
        mono(candidate.spec.label)
        + (f"<br><small>{escaped(in_page_words(candidate.says))}</small>" if explained else ""),
        f"{candidate.score:.3f}",
        f"{len(candidate.matched):,}",
        f"{len(candidate.missing):,}",
        f"{len(candidate.extra):,}",
        f"{len(candidate.reshaped):,}",
        twins,
    )


def show_evidence(recognition: Recognition, costs: CostReport | None) -> None:
    """Who it could be and how well each fits; and what another tool counts."""
    if recognition.candidates:
        table(
            ("Candidate", "Score", "Fit", "Missing", "Extra", "Other shape", "Cannot be told from"),
            [candidate_row(c, explained=c is not recognition.best) for c in recognition.candidates],
            numeric=(1, 2, 3, 4, 5),
            key="candidates",
        )
    else:
        st.caption("No known architecture has these names and shapes.")
    if costs is not None and costs.second_opinions:
        table(
            ("Second opinion", "MACs", "What it counts otherwise"),
            [
                (escaped(o.tool), f"{o.macs:,}" if o.macs is not None else "no answer", escaped(o.note))
                for o in costs.second_opinions
            ],
            numeric=(1,),
            key="opinions",
        )


def count_tree(counts: ParameterReport) -> tuple[Branch, ...]:
    """Modules with parameters and bytes, from the file alone."""
    return _nest(
        (
            module.path,
            module.depth,
            (module.kind or "").rpartition(".")[2],
            "",
            (human_count(module.parameters), human_bytes(module.parameter_nbytes + module.buffer_nbytes)),
        )
        for module in counts.modules
    )


def cost_tree(costs: CostReport, counts: ParameterReport) -> tuple[Branch, ...]:
    """Modules in call order with what goes out of them; the parameters are the file's where it has the module."""
    known = {module.path: module.parameters for module in counts.modules}
    return _nest(
        (
            module.path,
            module.depth,
            module.kind,
            "→ " + human_shape(module.output_shape) if module.output_shape else "",
            (human_count(known.get(module.path, module.parameters)), human_macs(module.macs)),
        )
        for module in costs.modules
    )


def _nest(rows: Iterable[tuple[str, int, str, str, tuple[str, ...]]]) -> tuple[Branch, ...]:
    """(path, depth, kind, says, figures) to trees: each below the nearest module above it that is there."""
    # By their segments: a module without a name (of the tensor ".weight") has the whole model's path.
    listed = {
        tuple(path.split(".")) if path or depth else (): (kind, says, figures)
        for path, depth, kind, says, figures in rows
    }
    children: dict[tuple[str, ...] | None, list[tuple[str, ...]]] = {}
    above: dict[tuple[str, ...], tuple[str, ...] | None] = {}
    for path in listed:
        above[path] = next((path[:end] for end in range(len(path) - 1, -1, -1) if path[:end] in listed), None)
        children.setdefault(above[path], []).append(path)
    made: dict[tuple[str, ...], Branch] = {}
    # The deepest first, so that what is below is made before what holds it.
    for path in sorted(listed, key=len, reverse=True):
        kind, says, figures = listed[path]
        label = ".".join(path[len(above[path] or ()) :])
        made[path] = Branch(
            label=label or (_NAMELESS if path else "model"),
            kind=kind,
            says=says,
            right=figures,
            children=tuple(made[child] for child in children.get(path, ())),
        )
    return tuple(made[path] for path in children.get(None, ()))
