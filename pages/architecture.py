"""Architecture: which model is it, how sure is that, and what does each part cost?"""

from collections.abc import Callable
from functools import partial

import streamlit as st

from inspector.graph.types import CARRIES_GRAPH
from inspector.overview import say_of_itself
from inspector.render.page_words import in_page_words
from inspector.web import (
    architecture,
    assumptions,
    next_steps,
    own_code,
    own_network,
    reports,
    run_it,
    states,
    surgery,
)
from inspector.web import architecture_views as views
from inspector.web.components import finding_cards, need_file, title
from inspector.web.forwards import Forward, Known
from inspector.web.guard import said
from inspector.web.module_held import Held
from inspector.web.structure import show_structure
from inspector.web.text import escaped, plain

title("Architecture", "Which model is it, how sure is that, and what does each part cost?")
hand = need_file(
    "The recognised model with its evidence, the module tree with parameters, and multiply-accumulates per module.",
    "whole-module",
    "legacy-dataparallel",
)
checkpoint = reports.checkpoint_of(hand)
state = states.choose_state(checkpoint, models_only=True)
if state is None:
    st.info("The file holds no state dict, so there are no modules to show.", icon=":material/info:")
    st.stop()

recognition = reports.recognition_of(hand, state)
program = say_of_itself(checkpoint)
st.html(f'<p class="mi-answer">{escaped(in_page_words(program + recognition.answer))}</p>')
finding_cards(recognition.findings)

# What is only near a known network has neither its costs nor its drawing.
another = reports.why_another(hand, state) if recognition.best is not None else ""
best = recognition.best if not another else None
if another:
    own_network.say_another(another, with_code=not program)
if best is None and program:
    next_steps.show_for_onnx(here="architecture")
elif best is None and own_code.is_offered():
    # Before all that is told of names and shapes, so that it is in view for whoever comes for it.
    own_network.show_of_architecture(hand, state, recognition)
elif recognition.best is None:
    st.caption(own_code.say_how())
counts = reports.parameters_of(hand, state)
forward: Forward | None = None
if best is not None:
    spec, size, batch = best.spec, None, 1
    with said():
        spec = assumptions.ask(best.spec)
    if reports.takes_pictures(best.spec):
        channels, height, width = reports.default_input(best.spec)
        tall, wide, many, _ = st.container(key="input-size").columns([1, 1, 1, 3])
        height = int(tall.number_input("Height", 1, 4096, height, step=32, key=f"height-{best.spec.label}"))
        width = int(wide.number_input("Width", 1, 4096, width, step=32, key=f"width-{best.spec.label}"))
        batch = int(many.number_input("Batch", 1, 4096, 1, key=f"batch-{best.spec.label}"))
        size = (channels, height, width)
    if spec.assumed:
        st.caption("What a pass costs is counted once that is confirmed: the model is run for it.")
    else:
        forward = Known(spec, size, batch)
whose = reports.whose_costs(hand, state) if forward is not None else ""
if whose:
    st.info(plain(whose), icon=":material/info:")
costs = views.ask_costs(forward) if forward is not None else None
views.show_totals(counts, costs)
trainable = " Which of them are trained is not in the file." if counts.trainable is None else ""
st.caption(f"Parameters and buffers are told apart by {counts.role_source.value}.{trainable}")
carries = checkpoint.format in CARRIES_GRAPH
if recognition.structure is not None and not carries:
    show_structure(recognition.structure, counts)

shown: dict[str, Callable[[], None]] = {}
if forward is not None or carries:
    held = Held(hand=hand, state=state)
    shown["Drawing"] = lambda: views.drawing_view(hand if carries else None, forward, costs, counts, held)
if best is not None and not best.spec.assumed:
    shown["Run it"] = lambda: run_it.show_of_file(hand, size, batch)
shown["Tree"] = partial(views.tree_view, state, counts, costs)
if forward is not None and costs is not None:
    shown |= views.bill_views(forward, costs)
shown["Surgery"] = partial(surgery.show_surgery, hand, state, recognition)
shown["Evidence"] = lambda: architecture.show_evidence(recognition, costs)
views.show_views(shown, key="architecture-view")
