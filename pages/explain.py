"""Explain: where does the model look?"""

import streamlit as st

from inspector.cam.report import Explanation
from inspector.errors import InspectorError, UsageError
from inspector.jobs.subjects import Wanted
from inspector.overview import say_of_itself
from inspector.units import human_duration, human_shape, human_share
from inspector.web import assumptions, jobs, next_steps, own_network, reports
from inspector.web.components import Figure, figures, finding_cards, need_file, title
from inspector.web.explain import address, answer, controls, inputs, looking, view
from inspector.web.explain.channels import show_channels
from inspector.web.explain.grid import show_grid
from inspector.web.explain.looking import Subject
from inspector.web.explain.run import show_run
from inspector.web.explain.several import show_several
from inspector.web.explain.slots import layer_slot, method_slot
from inspector.web.explain.trust import show_trust
from inspector.web.guard import said, show_error
from inspector.web.text import plain

GRID, CHANNELS, TRUST = "Methods and layers", "Channels", "Can it be trusted?"
SEVERAL, RUN = "Several pictures", "A run"
PARTS = (GRID, CHANNELS, TRUST, SEVERAL, RUN)

title("Explain", "Where does the model look?")
hand = need_file(
    "A heat map over your picture: which parts of it speak for the class the model answers.",
    "clean",
    "transformer",
    "legacy-dataparallel",
)
best = reports.recognition_of(hand).best
unfit = reports.why_unfit(hand)
if reports.checkpoint_of(hand).format == "onnx":
    if best is None or unfit:
        # One's own code is no way out: an exporter folds and renames what such code would be filled with.
        st.info(plain(say_of_itself(reports.checkpoint_of(hand)).strip()), icon=":material/info:")
        next_steps.show_for_onnx()
        st.stop()
    says = f"The graph in this ONNX model is not run: the maps are of {best.spec.label} with the file's weights."
    st.info(plain(says), icon=":material/info:")
if unfit and not own_network.ask_for_model(hand, unfit):
    st.stop()
if best is not None and not unfit and best.spec.assumed and assumptions.ask(best.spec).assumed:
    st.caption("The heat map appears here once that is confirmed: the model's answers depend on it.")
    st.stop()
if best is None and not own_network.ask_for_model(hand, ""):
    st.stop()
facts = reports.facts_of(hand)  # says at once, in one sentence, when there is no model to run
if best is None or unfit:
    st.caption(plain(f"Your code with the file's weights, loaded strictly: {facts.loaded}."))
if facts.weights_note:
    st.caption(plain(facts.weights_note))
view.begin()
with said():
    address.take_up(hand, (*view.DRAWING, *inputs.settings(inputs.inferred(hand), hand.sha256)))
line = st.container(horizontal=True, vertical_alignment="center", gap="small", key="settled")
picture = inputs.take_picture(line)
with line:
    preprocessing = inputs.edit(inputs.inferred(hand), hand.sha256)
inputs.tell_gone(inputs.inferred(hand), preprocessing, hand.sha256)
if picture is None:
    st.caption("The heat map appears here once a picture is chosen.")
    st.stop()

left, side = st.columns([5, 2], gap="medium")
with left.container(key="explain-map"):
    # What was drawn for another picture goes at once; a map of the same one stays until the next has come.
    place = st.container() if view.is_shown(hand, picture) else st.empty()
    waiting = st.container(key="explain-waiting")
if not view.is_shown(hand, picture):
    with place:
        view.reserve(picture)
with waiting:
    layers = controls.layers_of(hand, preprocessing)
    subject = Subject(hand=hand, picture=picture, preprocessing=preprocessing, layers=layers)
    seen = looking.look_at(subject)
with line:
    naming = answer.edit_naming(hand, answer.class_count(seen, hand))
scores = answer.scores_of(seen, naming)
with side:
    st.html(answer.score_bars(scores, assumed=preprocessing.assumed))
    answer.suggest_names(hand, answer.class_count(seen, hand))
    target, other = answer.choose_columns(seen, scores, hand, picture)
    method = controls.choose_method(hand)
    layer = controls.choose_layer(hand, layers)
    layer, options = controls.edit_options(hand, preprocessing, layer)
    controls.advise(method, layer)


def maps(spec: Wanted, column: int) -> Explanation | None:
    """The map; None while it is worked on, or before it was asked for."""
    if looking.is_arithmetic(spec):
        return looking.explained(subject, spec, column, naming)
    cost = looking.cost_of(subject, spec)
    if cost.seconds <= looking.AT_ONCE_SECONDS or cost.passes <= looking.FORWARDS_AT_ONCE:
        return looking.explained(subject, spec, column, naming)
    if not looking.is_begun(subject, spec, column, naming):
        about = human_duration(cost.seconds)
        says = f"This method runs the model about {cost.passes:,} times, which takes about {about} here."

        def begin() -> bool:
            st.info(says, icon=":material/hourglass:")
            return st.button("Start", key=f"start-{column}", type="primary", icon=":material/play_arrow:")

        if not jobs.offer(begin):
            return None
    return looking.explained_by_job(subject, spec, column, naming, title=f"{cost.passes:,} runs of the model")


spec = first = second = None
with waiting:
    try:
        spec = looking.spec_of(subject, method, layer, options)
        first = maps(spec, target)
        if first is not None and other is not None:
            second = maps(spec, other)
    except InspectorError as error:
        show_error(error)
        if isinstance(error, UsageError):
            spec = None  # What means nothing of this picture means nothing of others.
with place if view.is_shown(hand, picture) else place.container():
    if first is None:
        view.reserve(picture)
    else:
        view.show(hand, picture, first, second, facts.threads)
if first is not None:
    finding_cards((*first.findings, *(second.findings if second is not None else ())))
    figures(
        [
            Figure(label="lowest of the raw map", says=f"{first.raw_minimum:.3g}", exact=repr(first.raw_minimum)),
            Figure(label="highest of it", says=f"{first.raw_maximum:.3g}", exact=repr(first.raw_maximum)),
            Figure(label="negative", says=human_share(first.negative_share)),
            Figure(label="cells", says=human_shape(first.raw.shape)),
        ]
    )
view.note_shown(hand, picture)

part = st.segmented_control("More", PARTS, default=GRID, key="explain-part", required=True, persist_state="session")
with said():
    if part == GRID:
        show_grid(subject, method, layer, target, naming, keys=(method_slot(hand), layer_slot(hand)))
    elif part == SEVERAL and spec is not None:
        show_several(subject, spec, target, naming)
    elif part == RUN and spec is not None:
        show_run(subject, spec, target, naming, facts.threads)
    elif first is None:
        st.caption("This needs the map above.")
    elif part == CHANNELS:
        show_channels(subject, layer, target, first)
    else:
        show_trust(subject, target, first, naming)
