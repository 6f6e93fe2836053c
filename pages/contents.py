"""Contents: what lies in the file around the tensors, and which code would a load run?"""

import streamlit as st

from inspector.checkpoint.types import GlobalUse, GlobalVerdict, Reach
from inspector.overview import load_that_runs, unfollowed
from inspector.units import counted, human_bytes
from inspector.web import reports
from inspector.web.components import finding_cards, need_file, title
from inspector.web.text import escaped, mono, visible
from inspector.web.trees import badge, draw_tree, table, value_branch

TONES = {GlobalVerdict.DANGEROUS: "error", GlobalVerdict.UNKNOWN: "notice", GlobalVerdict.KNOWN: "info"}

FEW = 12
# Characters of one piece of code: a browser colours a few megabytes for a minute.
MOST_CODE = 200_000


def globals_table(uses: list[GlobalUse], key: str) -> None:
    """A row per name: verdict and reason, where it sits, what it would be called with."""
    table(
        ("Global", "Verdict", "Place", "Arguments", "Times"),
        [
            (
                mono(use.name, 48),
                f"{badge(use.verdict.value, TONES[use.verdict])} {escaped(use.why)}",
                mono(use.place, 40) if use.place[:1] not in {"", "("} else escaped(use.place.strip("()") or "the root"),
                mono(use.arguments, 240) if use.arguments else "",
                f"{use.count:,}",
            )
            for use in uses
        ],
        numeric=(4,),
        key=key,
    )


title("Contents", "What lies around the tensors, and which code would an ordinary load run?")
hand = need_file(
    "The tree of Python values in the file, and every global a real unpickle would import, with its place.",
    "hostile",
    "training-checkpoint",
)
checkpoint = reports.checkpoint_of(hand)

st.header("Code named in the file")
if checkpoint.globals:
    called = sum(use.called and use.reach is not Reach.LEAVES for use in checkpoint.globals)
    st.markdown(
        f"{counted(len(checkpoint.globals), 'global')}, {called} of them called by {load_that_runs(checkpoint)}. "
        "**Nothing was executed here**: they were read as text."
    )
    others = [use for use in checkpoint.globals if use.verdict is not GlobalVerdict.KNOWN]
    known = [use for use in checkpoint.globals if use.verdict is GlobalVerdict.KNOWN]
    if others:
        globals_table(others, "globals")
    if known:
        # Beside names that matter, or in great number, the known ones would only be in the way.
        with st.expander(f"{counted(len(known), 'known name')}", expanded=not others and len(known) <= FEW):
            globals_table(known, "known-globals")
elif not (ends := unfollowed(checkpoint)):
    st.markdown("The file names no code: there is nothing in it that a load could run.")
else:
    st.markdown(f"{ends} Up to there it names no code.")

finding_cards(checkpoint.findings)

if checkpoint.code:
    st.header("Program text")
    st.markdown("It lies in the file and was read as text. **None of it was run.**")
    numbers = range(len(checkpoint.code))
    chosen = st.selectbox(
        "Piece", numbers, format_func=lambda i: visible(checkpoint.code[i].name), label_visibility="collapsed"
    )
    piece = checkpoint.code[chosen]
    text = visible(piece.text[:MOST_CODE])
    st.code(text, language="python", line_numbers=True, height=min(420, 60 + 22 * text.count("\n")))
    if not piece.whole or len(piece.text) > MOST_CODE:
        st.caption(f"The beginning; the whole has {human_bytes(piece.nbytes)}.")

st.header("Values")
draw_tree([value_branch(hand.name, checkpoint.root)])

if checkpoint.skipped:
    st.header("Not examined")
    table(("What and why",), [(escaped(said),) for said in checkpoint.skipped], key="skipped")
