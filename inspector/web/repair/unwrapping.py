"""The weights without what is wrapped around them: one click, for a network that no library knows."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import streamlit as st

from inspector.checkpoint.types import Checkpoint, StateDict
from inspector.errors import ExportError
from inspector.keys.apply import whole_and_cut
from inspector.render.unwrap_words import PREFIX_HELP, prefix_answer, prefix_question, salvage_label
from inspector.units import counted
from inspector.web import next_steps, reports, writing
from inspector.web.session import Hand
from inspector.web.text import plain

if TYPE_CHECKING:
    from inspector.exports.unwrap import Unwrapped


def what_comes_off(hand: Hand, state: StateDict) -> str:
    """What a link to here offers; "" where nothing comes off, nor may."""
    try:
        found = _unwrapped(reports.checkpoint_of(hand), state)
    except ExportError:
        return ""
    if found.says:
        return "Take its wrappers off"
    return f'Drop "{found.shared[-1]}." from its names' if found.shared else ""


def _unwrapped(checkpoint: Checkpoint, state: StateDict, prefix: str = "") -> Unwrapped:
    """prefix: as for `unwrap`. Raises ExportError where the names do not come apart."""
    from inspector.exports.unwrap import only_weights, unwrap

    joined = 0
    with suppress(ExportError):  # Several sets of weights: the one that was chosen is meant.
        whole, joined = only_weights(checkpoint)
        likeliest = whole is not None and checkpoint.weights is not None and checkpoint.weights.path == state.path
        state, joined = (whole, joined) if whole is not None and likeliest else (state, 0)
    return unwrap(state, joined=joined, prefix=prefix)


def show_unwrap(hand: Hand, state: StateDict) -> None:
    """Say what would come off and write it; nothing is drawn where nothing is wrapped."""
    checkpoint = reports.checkpoint_of(hand)
    try:
        found = _unwrapped(checkpoint, state)
    except ExportError as error:
        st.caption(plain(str(error)))
        return
    if not found.says and not found.shared:
        return
    st.markdown("**Or without a target**")
    prefix = _ask_prefix(hand, found.shared) if found.shared else ""
    if prefix:
        found = _unwrapped(checkpoint, state, prefix)
    if not found.says:
        return
    st.caption(plain(f"{found.says} {found.proof}"))
    cut = len(whole_and_cut(checkpoint, found.state.tensors)[1])
    if cut:
        total = counted(len(found.state.tensors), "tensor")
        st.warning(plain(f"{cut:,} of {total} are not whole in {hand.name}."), icon=":material/content_cut:")
        next_steps.show_for_cut(hand)
        if cut == len(found.state.tensors) or not st.checkbox(
            plain(salvage_label(cut)),
            key="unwrap-salvage",
        ):
            return
    options = writing.choose_options("unwrap-")
    slot = f"unwrapped/{hand.sha256}/{state.path}/{options}/{cut}/{prefix}"
    ending = "partial" if cut else "unwrapped"
    stem = f"{writing.stem_of(hand.name, checkpoint, state.path)}_{ending}"
    job = writing.as_is(hand, found.state, salvage=bool(cut))
    writing.write_button(slot, lambda: writing.write(job, options, name="unwrapped", stem=stem), key="unwrap-write")


def _ask_prefix(hand: Hand, shared: tuple[str, ...]) -> str:
    """What every key begins with: the file's own word, so it stays unless the visitor says that it is none of the
    network's; "" for that."""
    kept = st.radio(
        plain(prefix_question(shared)),
        ("", *shared),
        format_func=lambda prefix: plain(prefix_answer(prefix)),
        key=f"own-prefix-{hand.sha256}",
        help=PREFIX_HELP,
    )
    return kept or ""
