"""Rows and trees of the Architecture page, from the reports. No drawing here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from inspector.architectures.types import Candidate
from inspector.flops.report import CostReport
from inspector.params.report import ParameterReport
from inspector.units import human_bytes, human_count, human_macs, human_shape
from inspector.web.option_words import in_page_words
from inspector.web.text import escaped, mono
from inspector.web.trees import Branch

_TWINS = 4


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
    """(path, depth, kind, says, figures), depth first, to a tree."""
    listed = list(rows)

    def below(start: int, depth: int) -> tuple[Sequence[Branch], int]:
        found: list[Branch] = []
        at = start
        while at < len(listed) and listed[at][1] >= depth:
            path, own, kind, says, figures = listed[at]
            children, at = below(at + 1, own + 1)
            found.append(
                Branch(
                    label=path.rpartition(".")[2] or "model",
                    kind=kind,
                    says=says,
                    right=figures,
                    children=tuple(children),
                )
            )
        return found, at

    return tuple(below(0, 0)[0])
