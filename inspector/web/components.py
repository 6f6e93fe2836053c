"""The pieces pages are made of: finding cards, rows of figures, verdict rows, empty states, titles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from inspector.findings import Finding, Severity, ranked
from inspector.render.page_words import in_page_words
from inspector.units import counted
from inspector.web import samples, session
from inspector.web.copy_link import copy_link
from inspector.web.guard import said
from inspector.web.session import Hand
from inspector.web.text import escaped, mono, plain

_STYLE = (Path(__file__).parent / "static" / "style.css").read_text(encoding="utf-8")
_WORDS = {
    Severity.ERROR: ("Error", "error"),
    Severity.WARNING: ("Warning", "warning"),
    Severity.NOTICE: ("Note", "info"),
    Severity.INFO: ("Info", "check_circle"),
}
_SUBJECTS_SHOWN = 12
# Of one kind, and in all: a file with 3,000 broken tensors says it 3,000 times.
_KIND_SHOWN = 5
_CARDS_SHOWN = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number of a row. says: as people read it. exact: on hover, "" when `says` is exact."""

    label: str
    says: str
    exact: str = ""


def use_style() -> None:
    """Put the style sheet on the page; once per run, from ui.py."""
    st.html(f"<style>{_STYLE}</style>")


def title(question: str, says: str) -> None:
    """The page's heading and, in one line, the question it answers; at its right, a way to share the view."""
    with st.container(horizontal=True, vertical_alignment="top", key="page-title"):
        st.html(f'<div class="mi-title"><h1>{escaped(question)}</h1><p>{escaped(says)}</p></div>')
        copy_link(says)


def figures(row: Sequence[Figure]) -> None:
    """Numbers side by side, with tabular digits; they wrap on narrow screens."""
    cells = "".join(
        f'<div class="mi-figure" title="{escaped(f.exact)}"><span>{escaped(f.says)}</span>'
        f"<small>{escaped(f.label)}</small></div>"
        for f in row
    )
    st.html(f'<div class="mi-figures">{cells}</div>')


def finding_cards(findings: Iterable[Finding], *, none: str = "") -> None:
    """Worst first, each with icon, word, sentence, remedy and what it is about. none: said when there are none."""
    listed = ranked(findings)
    shown = _few_of_each(listed)
    if shown:
        left_out = Counter(f.severity for f in listed) - Counter(f.severity for f in shown)
        words = [counted(left_out[s], _WORDS[s][0].lower()) for s in Severity if left_out[s] and s is not Severity.INFO]
        more = f'<p class="mi-more">Of the same kinds, not shown here: {", ".join(words)}.</p>' if words else ""
        st.html("".join(_card(finding) for finding in shown) + more)
    elif none:
        quiet(none)


def _few_of_each(listed: Iterable[Finding]) -> list[Finding]:
    kinds: Counter[tuple[Severity, str]] = Counter()
    shown: list[Finding] = []
    for finding in listed:
        kinds[finding.severity, finding.id] += 1
        if kinds[finding.severity, finding.id] <= _KIND_SHOWN and len(shown) < _CARDS_SHOWN:
            shown.append(finding)
    return shown


def quiet(says: str) -> None:
    """Good news in one line."""
    st.html(f'<div class="mi-quiet"><span class="mi-icon" aria-hidden="true">check</span>{escaped(says)}</div>')


def _card(finding: Finding) -> str:
    word, icon = _WORDS[finding.severity]
    more = "".join(f"<li>{mono(subject, 90)}</li>" for subject in finding.subjects[:_SUBJECTS_SHOWN])
    if len(finding.subjects) > _SUBJECTS_SHOWN:
        more += f"<li>and {counted(len(finding.subjects) - _SUBJECTS_SHOWN, 'more', 'more')}</li>"
    measured = "".join(f"<li>{escaped(label)}: {mono(str(value), 90)}</li>" for label, value in finding.evidence)
    details = f"<details><summary>Evidence</summary><ul>{measured}{more}</ul></details>" if more or measured else ""
    remedy = f'<p class="mi-remedy">{escaped(in_page_words(finding.remedy))}</p>' if finding.remedy else ""
    return (
        f'<div class="mi-finding mi-{finding.severity.value}" data-finding="{escaped(finding.id)}">'
        f'<span class="mi-icon" aria-hidden="true">{icon}</span>'
        f"<div><p><b>{word}</b> {escaped(in_page_words(finding.says))}</p>{remedy}{details}</div></div>"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One row of the overview's answer. how: the icon in a word. page: where the reasons stand."""

    word: str
    says: str
    severity: Severity | None
    how: str
    page: str = ""
    link: str = ""


def verdict_rows(rows: Sequence[Verdict]) -> None:
    """The answer, a row per question, each with the way to its page."""
    with st.container(border=True, key="verdict"):
        for row in rows:
            icon = _WORDS[row.severity][1] if row.severity else "help"
            tone = row.severity.value if row.severity else "unknown"
            left, right = st.columns([5.6, 1.3], vertical_alignment="center")
            left.html(
                f'<div class="mi-verdict mi-{tone}"><span class="mi-icon" role="img" title="{row.how}" '
                f'aria-label="{row.how}">{icon}</span>'
                f"<b>{escaped(row.word)}</b><span>{escaped(in_page_words(row.says))}</span></div>"
            )
            if row.page:
                right.page_link(row.page, label=row.link, icon=":material/arrow_forward:", icon_position="right")


def need_file(shows: str, *fitting: str) -> Hand:
    """The file in hand; without one the page's empty state, and the page ends here.

    shows: one sentence on what the page will show. fitting: sample ids whose buttons are offered.
    """
    hand = session.in_hand()
    if hand is not None:
        return hand
    with st.container(border=True, key="empty-state"):
        st.markdown(plain(shows))
        with st.container(horizontal=True, vertical_alignment="center"):
            for sample in samples.some(fitting):
                if st.button(plain(f"Try “{sample.title}”"), key=f"empty-{sample.id}", icon=":material/science:"):
                    with said():
                        session.take(samples.store(sample), sample.file)
                        st.rerun()
            st.page_link("pages/open.py", label="Open your own file", icon=":material/upload_file:")
    st.stop()
    raise AssertionError  # st.stop never returns


def file_line(format_says: str, size: str, sha256: str) -> None:
    """Format, size and digest under a page title; "" for a file whose bytes are elsewhere, which has none yet."""
    digest = f'<span title="{escaped(sha256)}">sha256 {mono(sha256[:12])}</span>' if sha256 else ""
    st.html(f'<div class="mi-fileline"><span>{escaped(format_says)}</span><span>{escaped(size)}</span>{digest}</div>')
