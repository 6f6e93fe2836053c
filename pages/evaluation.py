"""Evaluation: how often is it right on pictures whose class is known?"""

import streamlit as st

from inspector.evaluate.mapping import map_classes
from inspector.evaluate.report import Evaluation
from inspector.units import counted, human_duration
from inspector.web import assumptions, jobs, own_network, reports
from inspector.web.components import need_file, title
from inspector.web.evaluation import view
from inspector.web.evaluation.against import show_against
from inspector.web.evaluation.asked import Asked, head_of
from inspector.web.evaluation.data import choose_data
from inspector.web.evaluation.worst import show_worst
from inspector.web.explain import answer, inputs
from inspector.web.guard import said
from inspector.web.text import plain

title("Evaluation", "How often is it right on pictures whose class is known?")
hand = need_file(
    "How many of your labelled pictures the model gets right, which classes it confuses, how far its confidence can be "
    "believed, and where it looked when it was wrong.",
    "clean",
    "transformer",
    "legacy-dataparallel",
)
best = reports.recognition_of(hand).best
if best is not None and best.spec.assumed and assumptions.ask(best.spec).assumed:
    st.caption("The evaluation begins here once that is confirmed: the model's answers depend on it.")
    st.stop()
if best is None and not own_network.ask_for_model(hand, "", "its evaluation begins here"):
    st.stop()
facts = reports.facts_of(hand)  # says at once, in one sentence, when there is no model to run
if best is None:
    st.caption(plain(f"Your code with the file's weights, loaded strictly: {facts.loaded}."))
if facts.weights_note:
    st.caption(plain(facts.weights_note))
data = choose_data()
line = st.container(horizontal=True, vertical_alignment="center", gap="small", key="settled")
with line:
    preprocessing = inputs.edit(inputs.inferred(hand), hand.sha256)
head = head_of(hand, preprocessing)
with line:
    naming = answer.edit_naming(hand, head.outputs)
if data is None:
    st.caption("Figures, curves and the worst cases appear here once pictures are chosen.")
    st.stop()

asked = Asked(hand=hand, data=data, preprocessing=preprocessing, naming=naming)
map_classes(data.classes, head.outputs, naming.names)  # says at once where the folders do not fit the head
about = human_duration(data.pictures * head.seconds)
says = f"Evaluate · {counted(data.pictures, 'picture')}, about {about}"
if not jobs.is_known(asked.job) and not jobs.offer(
    lambda: st.button(says, key="evaluate-start", type="primary", icon=":material/play_arrow:")
):
    st.stop()
report: Evaluation | None = jobs.await_job(asked.job, title=asked.title)
if report is None:
    st.stop()

view.show_answer(report)
if not report.pictures:
    view.show_not_counted(report)
    st.stop()
view.show_files(report)
view.show_matrix(report)
with said():
    show_worst(asked, report)
view.show_classes(report)
view.show_curves(report)
with said():
    show_against(report, hand, data)
view.show_not_counted(report)
