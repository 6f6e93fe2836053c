"""The box for a pasted error, and its explanation on the page."""

from __future__ import annotations

import streamlit as st

from inspector.checkpoint.types import Checkpoint
from inspector.error_messages.clean import MOST_CHARACTERS
from inspector.error_messages.explain import explain_error
from inspector.error_messages.report import PastedError, PastedReport, Renaming
from inspector.render.page_words import in_page_words
from inspector.web.text import escaped, mono, plain, visible
from inspector.web.trees import arrow, table


def paste_box(place: str, checkpoint: Checkpoint | None = None) -> None:
    """A box, and below it what the pasted text means. place: which page, for the widgets' keys."""
    text = st.text_area(
        "What torch.load, load_state_dict or the model itself said, or the code that loads",
        placeholder="RuntimeError: Error(s) in loading state_dict for ...",
        max_chars=MOST_CHARACTERS,
        key=f"pasted-{place}",
        help="The whole traceback or a part of it, or your lines of Python that load; nothing in it is run.",
    )
    # Leaving the box sends what stands in it; the button is there to be pressed for it.
    st.button("Explain it", key=f"explain-{place}", icon=":material/help_center:")
    if text and text.strip():
        show_report(explain_error(text, checkpoint=checkpoint), place)


def show_report(report: PastedReport, place: str) -> None:
    """The answer, then each error, then what the file adds."""
    st.html(f'<p class="mi-answer">{escaped(report.says)}</p>')
    for number, error in enumerate(report.errors):
        _show_error(error, f"{place}-{number}", alone=len(report.errors) == 1)
    if report.file:
        st.html("<p><b>This file</b></p>" + "".join(f"<p>{escaped(line)}</p>" for line in report.file))
    if report.code:
        st.code(visible(report.code), language="python")
    for what in report.skipped:
        st.caption(plain(f"Not read: {what}"))


def _show_error(error: PastedError, key: str, *, alone: bool) -> None:
    says = "" if alone else f"<p><b>{escaped(error.says)}</b></p>"
    steps = "".join(f"<li>{escaped(in_page_words(step))}</li>" for step in error.steps)
    either = "".join(
        f"<p><b>{word}</b> {escaped(cause.says)} <i>Sign: {escaped(cause.sign)}.</i></p>"
        for word, cause in zip(("Either", "Or"), error.causes, strict=False)
    )
    st.html(f"{says}<p>{mono(error.quote, 120)}</p>{either}<p>{escaped(error.why)}</p><ol>{steps}</ol>")
    if error.keys is not None and error.keys.renamings:
        table(
            ("Rule", "Keys", "For example"),
            [_row(use) for use in error.keys.renamings],
            numeric=(1,),
            key=f"pasted-rules-{key}",
        )
    if error.patch:
        st.code(visible(error.patch), language="python")


def _row(use: Renaming) -> tuple[str, ...]:
    return escaped(use.says), f"{use.count:,}", "<br>".join(arrow(old, new) for old, new in use.examples)
