"""A network that no library knows, by one's own code: its bill, drawing and run for Architecture, a model for
Explain and Evaluation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from inspector.architectures.structure.example import example_input
from inspector.architectures.types import Recognition, Target
from inspector.checkpoint.types import StateDict
from inspector.errors import KeysDoNotFit
from inspector.flops.input_size import parse_size
from inspector.keys.runnable import say_placed
from inspector.render.page_words import in_page_words
from inspector.units import human_shape
from inspector.web import architecture_views as views
from inspector.web import own_code, reports, run_it
from inspector.web.forwards import Own
from inspector.web.guard import said
from inspector.web.run_it import Loaded
from inspector.web.session import Hand
from inspector.web.text import escaped, plain

_USUAL = (3, 224, 224)


def show_of_architecture(hand: Hand, state: StateDict, recognition: Recognition) -> None:
    """The boxes, whether the file's weights fit, and then the tabs. An error stands once."""
    st.header("Your own code for it")
    st.caption("With the code that builds this network, a forward pass can be drawn, counted, timed and run.")
    with said():
        own_code.use_for(hand.sha256, None)
        source = own_code.ask_source(hand.sha256)
        if source is None:
            return
        preferred = reports.checkpoint_of(hand).weights
        source, target = own_code.sized(source, state)
        loaded = _loaded(hand, source, target, None if state is preferred else state)
        if loaded is not None:
            st.success(plain(f"The file's weights fit this code: {loaded.says}."), icon=":material/check_circle:")
        left, right, _ = st.columns([2, 1, 3])
        example = (example_input(recognition.structure) if recognition.structure else ()) or _USUAL
        typed = left.text_input(
            "Input without the batch", placeholder=human_shape(example), key=f"code-input-{hand.sha256[:12]}"
        )
        many = int(right.number_input("Batch", 1, 4096, 1, key=f"code-batch-{hand.sha256[:12]}"))
        own = Own(source, parse_size(typed.strip()) if typed and typed.strip() else None, many)
        costs, uncounted = views.try_costs(own)
        if costs is not None:
            views.show_totals(None, costs)
        if costs is not None and costs.input_assumed:
            shape = human_shape(costs.input_shape)
            st.caption(f"Input {shape}, {escaped(in_page_words(costs.input_assumed))}.")
        ways: dict[str, Callable[[], None]] = {"Run it": lambda: run_it.show_of_code(own, loaded, uncounted)}
        if costs is not None:
            ways = {"Drawing": lambda: views.drawing_view(None, own, costs, None)} | ways
            ways |= views.bill_views(own, costs)
        views.show_views(ways, key="architecture-own")


def say_another(why: str, *, with_code: bool = True) -> None:
    """On Architecture: why nothing of the known network that it is near stands there, and what gives what is true.
    with_code: whether somebody's code can."""
    way = ""
    if with_code:
        way = "Your own code gives the true ones." if own_code.is_offered() else own_code.say_how()
    what = "What that network costs and how it is drawn is not true of this file, so neither is shown."
    st.info(f"{plain(f'{why} {what}')} {way}".strip(), icon=":material/info:")


def ask_for_model(hand: Hand, unfit: str, begins: str = "the heat map appears here") -> bool:
    """On Explain and Evaluation: the boxes, and whether the file's weights fit what the code builds. unfit: why they do
    not fit the known network that they are near; "" where there is none. begins: a clause, what the page does then."""
    fits = False
    if unfit:
        st.info(plain(in_page_words(unfit)), icon=":material/info:")
    if not own_code.is_offered():
        st.caption(own_code.say_how())
        return False
    # What the boxes are for stands above them.
    first = st.container()
    with said():
        own_code.use_for(hand.sha256, None)
        source = own_code.ask_source(hand.sha256)
        if source is not None:
            source, target = own_code.sized(source, reports.checkpoint_of(hand).weights)
            fits = _loaded(hand, source, target, None) is not None
    if not fits:
        known = "It is none that is known." if unfit else "Nobody knows this network by name."
        first.caption(f"{known} With the code that builds it and the file's weights in it, {begins}.")
    return fits


def _loaded(hand: Hand, source: own_code.Source, target: Target, state: StateDict | None) -> Loaded | None:
    """The file as a model by this code, or None with the reason on the page. state: None for the likeliest."""
    try:
        plan = reports.plan_to_run(hand, target, state)
    except KeysDoNotFit as error:
        says = plain(in_page_words(error.says))
        st.warning(
            f"The file's weights do not fit this code, so none of them is in it: {says}", icon=":material/warning:"
        )
        return None
    own_code.use_for(hand.sha256, source)
    says = in_page_words(say_placed(plan))
    file = reports.model_file(hand)
    return Loaded(hand=hand, file=replace(file, state=state.path if state is not None else None), says=says)
