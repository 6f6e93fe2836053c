"""Which tensors of a file belong to a module of the network it was recognised as, and which findings are about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from inspector.checkpoint.types import StateDict, TensorInfo
from inspector.findings import Finding, ranked
from inspector.keys.report import KeyReport

#: As many names as the shortest lists of findings have: behind them there may be more.
LISTED = 20
#: Findings about numbers list all that they are about, up to so many.
LISTED_OF_NUMBERS = 1000


def tensors_below(state: StateDict, modules: Sequence[str], keys: KeyReport | None) -> tuple[TensorInfo, ...]:
    """In file order. modules: paths in the network that `keys` is about, or in the file's own names where it is None.

    A tensor belongs where the plan places it; one that is not placed belongs nowhere.
    """
    if keys is None or keys.plan is None:
        return tuple(one for one in state.tensors if is_below(one.name, modules))
    placed = {
        source
        for step in keys.plan.steps
        if step.target is not None and is_below(step.target, modules)
        for source in step.sources
    }
    return tuple(one for one in state.tensors if one.name in placed)


def findings_about(
    tensors: Sequence[TensorInfo],
    modules: Sequence[str],
    *,
    of_file: Iterable[Finding],
    of_keys: Iterable[Finding] = (),
    of_numbers: Iterable[Finding] = (),
    known: Iterable[str] = (),
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """(those that name one of the tensors, those about so many tensors that they may be about these too), worst first.

    of_keys: of comparing with the network, which name its tensors too. known: every name in the file: one that the file
    has means the file's. of_numbers: of the health checks, whose lists are whole.
    """
    names, all_names = {one.name for one in tensors}, set(known)

    def is_about(finding: Finding, subject: str) -> bool:
        return subject in names or (finding in compared and subject not in all_names and is_below(subject, modules))

    files, compared, measured = list(of_file), list(of_keys), list(of_numbers)
    everything = ranked([*files, *compared, *measured])
    whole = {id(one) for one in measured if len(one.subjects) < LISTED_OF_NUMBERS}
    many = [
        one
        for one in everything
        if names != all_names
        and (_is_of_most(one, names, all_names) if id(one) in whole else _is_of_many(one, all_names))
    ]
    own = [one for one in everything if one not in many and any(is_about(one, subject) for subject in one.subjects)]
    return tuple(own), tuple(many)


def _is_of_many(finding: Finding, known: set[str]) -> bool:
    """Whether it names as many tensors as findings list at most, or all there are: no news of a single module."""
    named = known.intersection(finding.subjects)
    return bool(named) and (len(finding.subjects) >= LISTED or named == known)


def _is_of_most(finding: Finding, names: set[str], known: set[str]) -> bool:
    """The same of a list that is whole: it names one of these, and a quarter of all there are."""
    named = known.intersection(finding.subjects)
    return bool(named & names) and (named == known or (len(named) >= LISTED and 4 * len(named) >= len(known)))


def is_below(name: str, modules: Sequence[str]) -> bool:
    """Whether a tensor of this name lies in one of these modules."""
    return any(name.startswith(f"{module}.") for module in modules)
