"""Contents: what lies in the file around the tensors, and which code would a load run?"""

import streamlit as st

from inspector.checkpoint.types import GlobalVerdict
from inspector.units import counted
from inspector.web import reports
from inspector.web.components import finding_cards, need_file, title
from inspector.web.text import escaped, mono
from inspector.web.trees import badge, draw_tree, table, value_branch

TONES = {GlobalVerdict.DANGEROUS: "error", GlobalVerdict.UNKNOWN: "notice", GlobalVerdict.KNOWN: "info"}

title("Contents", "What lies around the tensors, and which code would an ordinary load run?")
hand = need_file(
    "The tree of Python values in the file, and every global a real unpickle would import, with its place.",
    "hostile",
    "training-checkpoint",
)
checkpoint = reports.checkpoint_of(hand)

st.subheader("Code named in the file")
if checkpoint.globals:
    called = sum(use.called for use in checkpoint.globals)
    st.markdown(
        f"{counted(len(checkpoint.globals), 'global')}, {called} of them called by an ordinary load. "
        "**Nothing was executed here**: they were read as text."
    )
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
            for use in checkpoint.globals
        ],
        numeric=(4,),
        key="globals",
    )
else:
    st.markdown("The file names no code: there is nothing in it that a load could run.")

finding_cards(checkpoint.findings)

st.subheader("Values")
draw_tree([value_branch(hand.name, checkpoint.root)])

if checkpoint.skipped:
    st.subheader("Not examined")
    table(("What and why",), [(escaped(said),) for said in checkpoint.skipped], key="skipped")
