"""The Convert page's first part: a file written anew under its own names. The other one is `merging.py`."""

from __future__ import annotations

import streamlit as st

from inspector.checkpoint.types import Checkpoint, StateDict
from inspector.errors import UsageError
from inspector.keys.apply import whole_and_cut
from inspector.units import counted
from inspector.web import measuring, reports, session, writing
from inspector.web.session import Hand
from inspector.web.text import plain


def show_convert(hand: Hand, state: StateDict) -> None:
    """Choose, write, hand out. What the file does not hold whole is left out only if the visitor accepts that."""
    checkpoint = reports.checkpoint_of(hand)
    chosen = _averaged(checkpoint, state)
    options = writing.choose_options("convert-")
    cut = len(whole_and_cut(checkpoint, chosen.tensors)[1])
    salvage = bool(cut) and st.checkbox(
        plain(f"Leave out {counted(cut, 'tensor')} that the file does not hold whole"),
        value=st.query_params.get(session.SALVAGE_QUERY) == "1",
        key="salvage",
    )
    measured = measuring.health_if_read(hand, state)
    broken = next((f for f in measured.findings if f.id == "non-finite"), None) if measured is not None else None
    count = f" ({counted(len(broken.subjects), 'tensor')})" if broken is not None else ""
    without = st.checkbox(
        plain(f"Leave out tensors that hold NaN or infinity{count}"),
        key="without-broken",
        help="They are counted while it is written; what is carried along is said.",
    )
    names = (chosen.path, len(chosen.tensors), chosen.tensors[0].name if chosen.tensors else "")
    slot = f"converted/{hand.sha256}/{names}/{options}/{salvage}/{without}"
    job = writing.as_is(hand, chosen, salvage=salvage, without_broken=without)
    ending = "partial" if salvage else "converted"
    stem = f"{writing.stem_of(hand.name, checkpoint, state.path)}_{ending}"
    writing.write_button(slot, lambda: writing.write(job, options, name="converted", stem=stem), key="convert-write")


def _averaged(checkpoint: Checkpoint, state: StateDict) -> StateDict:
    """The averaged twin alone, where the state dict holds one and the visitor wants it."""
    from inspector.exports.averaged import find_averaged

    try:
        found = find_averaged(checkpoint)
    except UsageError:
        return state  # None, or several, which the choice of the state dict above tells apart.
    if found.state.path != state.path or not found.prefix:
        return state
    count = counted(len(found.alone.tensors), "tensor")
    wanted = st.checkbox(
        plain(f"Only the averaged weights: {found.prefix}, {count}, under the names of the trained ones"), key="ema"
    )
    return found.alone if wanted else state
