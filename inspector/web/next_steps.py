"""Where to go from a file that no page has an answer for: a network that nobody knows, or no checkpoint at all."""

from __future__ import annotations

import streamlit as st

from inspector.architectures.types import Recognition
from inspector.web import own_code, samples, session
from inspector.web.guard import said
from inspector.web.text import plain

_NEAREST = 3


def show_for_unknown(
    recognition: Recognition,
    *,
    on_repair: bool = False,
    another: str = "",
    off: str = "",
    is_module: bool = False,
) -> None:
    """What can be done with a network that nobody knows by name, or that is only near a known one; nothing is drawn for
    others.

    on_repair: the page itself asks for the key list and another file, and takes wrappers off. another: why the file is
    not the known network that it is near. off: what of its names comes off without a target, as the words of a link.
    is_module: the file holds an object of somebody's own class, whose tensors come out of it without that class.
    """
    if not another and (recognition.best is not None or recognition.official is not None):
        return
    if on_repair:
        st.markdown("**What else can be done with it**")
    else:
        st.header("What can be done with it")
    near = [one.label for one in recognition.alike[:_NEAREST]]
    if another:
        st.caption(plain(another))
    elif near:
        st.caption(plain(f"Nearest by its shapes: {', '.join(near)}."))
    if is_module:
        st.caption("It holds a whole module. Its tensors come out of it under their own names, without its class.")
    with st.container(horizontal=True, key="next-steps"):
        if is_module:
            link_to_weights()
        if off and not on_repair:
            st.page_link("pages/repair.py", label=plain(off), icon=":material/layers_clear:")
        if own_code.is_offered():
            st.page_link("pages/architecture.py", label="Run it with your own code", icon=":material/code:")
        if not on_repair:
            st.page_link(
                "pages/repair.py", label="Compare with your model's keys or another file", icon=":material/rule:"
            )
        st.page_link("pages/architecture.py", label="What its names and shapes tell", icon=":material/schema:")
        st.page_link("pages/compare.py", label="Hold it against a relative", icon=":material/compare_arrows:")
        if not is_module:
            st.page_link("pages/convert.py", label="Convert it as it is", icon=":material/swap_horiz:")


def link_to_weights() -> None:
    """To the Convert page, which writes the tensors alone: nothing else of the file comes along."""
    st.page_link("pages/convert.py", label="Convert: the weights alone", icon=":material/output:")


def link_to_merge() -> None:
    """From an adapter, which has no names to repair, to where its base is asked for."""
    st.markdown("**What else can be done with it**")
    st.page_link("pages/overview.py", label="Merge it into its base", icon=":material/merge:")


def show_for_onnx(*, here: str = "") -> None:
    """What can be done with an ONNX model, and what cannot. here: the page, where it is one of those named: it is not
    linked to."""
    if here == "repair":
        st.markdown("**What else can be done with it**")
    else:
        st.header("What can be done with it")
    st.caption(
        "An ONNX model is a program with its weights, and not run here: no heat maps on Explain, no Evaluation. "
        "onnxruntime runs it; for maps, open the PyTorch file that it was exported from."
    )
    with st.container(horizontal=True, key="next-steps"):
        if here != "architecture":
            st.page_link("pages/architecture.py", label="Its graph, drawn", icon=":material/schema:")
        st.page_link("pages/weights.py", label="Its numbers, checked", icon=":material/bar_chart:")
        st.page_link("pages/convert.py", label="Convert its tensors", icon=":material/swap_horiz:")
        st.page_link("pages/compare.py", label="Hold it against the PyTorch file", icon=":material/compare_arrows:")


def link_to_salvage(hand: session.Hand) -> None:
    """To the Convert page, where what is not whole is left out already: the link says that, and Write does it."""
    _link_to_convert(hand, "Convert what can be read", {session.SALVAGE_QUERY: "1"})


def link_without_broken(hand: session.Hand) -> None:
    """To the Convert page, whose box leaves out tensors that hold NaN or infinity."""
    _link_to_convert(hand, "Convert without these tensors", {})


def _link_to_convert(hand: session.Hand, label: str, more: dict[str, str]) -> None:
    st.page_link(
        "pages/convert.py",
        label=label,
        icon=":material/content_cut:",
        query_params={session.QUERY: hand.sha256, session.NAME_QUERY: hand.name, **more},
    )


def show_for_cut(hand: session.Hand) -> None:
    """Under the sentence about a file that ends too early: its whole tensors can be had."""
    with st.container(horizontal=True, key="cut-steps"):
        link_to_salvage(hand)
        st.page_link("pages/open.py", label="Open it again once it is whole", icon=":material/upload_file:")


def show_for_unreadable() -> None:
    """Under the sentence about a file that is no checkpoint, or is gone: other files, and a way out of this one."""
    with st.container(horizontal=True, vertical_alignment="center", key="next-steps"):
        st.page_link("pages/open.py", label="Open another file", icon=":material/upload_file:")
        for sample in samples.some(("clean",)):
            if st.button(plain(f"Try “{sample.title}”"), key="unreadable-sample", icon=":material/science:"):
                with said():
                    session.take(samples.store(sample), sample.file)
                    st.rerun()
        if session.in_hand() is not None and st.button("Put it away", key="unreadable-away", type="tertiary"):
            session.put_down()
            st.switch_page("pages/open.py")
