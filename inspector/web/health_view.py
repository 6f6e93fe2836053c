"""What the checks found, as the Weights page shows it: a sentence, filters, rows that lead to a tensor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import streamlit as st

from inspector.findings import Finding, Severity
from inspector.health.report import HealthReport
from inspector.units import counted, shorten_middle
from inspector.web.components import finding_cards
from inspector.web.session import TENSOR_QUERY
from inspector.web.text import escaped, visible

_PLURAL = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTICE: "note", Severity.INFO: "remark"}
_CHOSEN, _MUTED = "weights-tensor", "mute"
_BUTTONS = 3
_ROWS = 12


def sentence(health: HealthReport) -> str:
    """The answer: how many of each, or that there is nothing."""
    counts = Counter(f.severity for f in health.findings)
    tensors = counted(len(health.weights.tensors), "tensor")
    if not health.findings:
        says = f"Nothing was found in the numbers of {tensors}."
    else:
        words = [counted(counts[s], word) for s, word in _PLURAL.items() if counts[s]]
        quiet_words = "" if counts[Severity.ERROR] or counts[Severity.WARNING] else "No error, no warning: "
        says = f"{quiet_words}{', '.join(words)} in the numbers of {tensors}."
    return f'<p class="mi-answer"><b>{escaped(says)}</b></p>'


def sick_names(health: HealthReport) -> tuple[str, ...]:
    """Tensors that an error or a warning is about, worst first."""
    found: dict[str, None] = {}
    for finding in health.findings:
        if finding.severity.rank >= Severity.WARNING.rank:
            found.update(dict.fromkeys(finding.subjects))
    measured = {t.name for t in health.weights.tensors}
    return tuple(name for name in found if name in measured)


def filtered(health: HealthReport) -> tuple[Finding, ...]:
    """Those left by the choices above them; what is muted stands in the page's address."""
    if len(health.findings) < 2:
        return health.findings
    roles = dict(health.roles)
    left, middle, right = st.columns([2, 2, 3])
    severities = list(dict.fromkeys(f.severity for f in health.findings))
    kept = left.multiselect(
        "Severity",
        severities,
        format_func=lambda s: _PLURAL[s],
        placeholder="all",
        key="weights-severity",
    )
    present = list(dict.fromkeys(roles[name].value for f in health.findings for name in f.subjects if name in roles))
    role = middle.selectbox("Role", present, index=None, placeholder="all", key="weights-role")
    titles = {f.id: f.title or f.id for f in health.findings}
    muted = right.multiselect(
        "Muted",
        list(titles),
        [one for one in st.query_params.get_all(_MUTED) if one in titles],
        format_func=lambda one: visible(titles[one]),
        placeholder="nothing",
        key="weights-muted",
        help="What you do not want to see for this file. It stands in the address, so that a link keeps it.",
    )
    # Bound to the address by Streamlit, titles would stand in it, which change.
    st.query_params[_MUTED] = muted
    return tuple(
        f
        for f in health.findings
        if (not kept or f.severity in kept)
        and f.id not in muted
        and (role is None or any(name in roles and roles[name].value == role for name in f.subjects))
    )


def draw_findings(findings: Sequence[Finding], tensors: Collection[str]) -> None:
    """Errors and warnings with the way to their tensors; notes and remarks folded below. tensors: those that can be
    looked at; a finding may be about an optimizer, too."""
    loud = [f for f in findings if f.severity.rank >= Severity.WARNING.rank]
    soft = [f for f in findings if f.severity.rank < Severity.WARNING.rank]
    for n, finding in enumerate(loud[:_ROWS]):
        _row(finding, f"loud-{n}", tensors)
    if len(loud) > _ROWS:
        finding_cards(loud[_ROWS:])
    if soft:
        counts = Counter(f.severity for f in soft)
        words = [counted(counts[s], word) for s, word in _PLURAL.items() if counts[s]]
        with st.expander(" and ".join(words), expanded=not loud):
            for n, finding in enumerate(soft[:_ROWS]):
                _row(finding, f"soft-{n}", tensors)
            if len(soft) > _ROWS:
                finding_cards(soft[_ROWS:])


def _row(finding: Finding, key: str, tensors: Collection[str]) -> None:
    """A finding, and buttons that open the first tensors it is about."""
    with st.container(gap=None, key=f"finding-{key}"):
        finding_cards([finding])
        named = [name for name in finding.subjects if name in tensors]
        if named:
            _ways(named, key)


def _ways(names: Sequence[str], key: str) -> None:
    with st.container(horizontal=True, gap="small"):
        for n, name in enumerate(names[:_BUTTONS]):
            label = visible(shorten_middle(name, 40)).replace("[", "\\[").replace("*", "\\*").replace("_", "\\_")
            st.button(
                label,
                key=f"open-{key}-{n}",
                icon=":material/data_array:",
                type="tertiary",
                on_click=_choose,
                args=(name,),
            )


def _choose(name: str) -> None:
    st.session_state[_CHOSEN] = name


def choose_tensor(names: Sequence[str], findings: Sequence[Finding]) -> str | None:
    """The tensor to look at, those that something was found about first; it stands in the address and is taken from
    it."""
    named = dict.fromkeys(name for f in findings for name in f.subjects)
    known = set(names)
    ordered = [*(name for name in named if name in known), *(name for name in names if name not in named)]
    # A name may be empty: an address that names none is another thing.
    wanted = st.query_params.get(TENSOR_QUERY)
    if _CHOSEN not in st.session_state and wanted is not None and wanted in known:
        st.session_state[_CHOSEN] = wanted
    chosen = st.selectbox(
        "Look at a tensor",
        ordered,
        index=None,
        format_func=visible,
        placeholder="choose one, or press its name above",
        key=_CHOSEN,
    )
    if chosen is not None:
        st.query_params[TENSOR_QUERY] = chosen
    else:
        st.query_params.pop(TENSOR_QUERY, None)
    return chosen
