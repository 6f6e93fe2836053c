"""Architecture: which model is it, how sure is that, and what does each part cost?"""

import streamlit as st

from inspector.units import human_bytes, human_count, human_macs
from inspector.web import architecture, assumptions, reports
from inspector.web.components import Figure, figures, finding_cards, need_file, title
from inspector.web.guard import said
from inspector.web.option_words import in_page_words
from inspector.web.text import escaped, mono
from inspector.web.trees import draw_tree, module_branch, table

title("Architecture", "Which model is it, how sure is that, and what does each part cost?")
hand = need_file(
    "The recognised model with its evidence, the module tree with parameters, and multiply-accumulates per module.",
    "whole-module",
    "legacy-dataparallel",
)
checkpoint = reports.checkpoint_of(hand)
state = reports.choose_state(checkpoint, models_only=True)
if state is None:
    st.info("The file holds no state dict, so there are no modules to show.", icon=":material/info:")
    st.stop()

recognition = reports.recognition_of(hand, state)
st.html(f'<p class="mi-answer">{escaped(in_page_words(recognition.answer))}</p>')
finding_cards(recognition.findings)
if recognition.candidates:
    table(
        ("Candidate", "Score", "Fit", "Missing", "Extra", "Other shape", "Cannot be told from"),
        [architecture.candidate_row(c, explained=c is not recognition.best) for c in recognition.candidates],
        numeric=(1, 2, 3, 4, 5),
        key="candidates",
    )

counts = reports.parameters_of(hand, state)
total = counts.total
trainable = "not in the file" if counts.trainable is None else human_count(counts.trainable)
figures(
    [
        Figure(label="parameters", says=human_count(total.parameters), exact=f"{total.parameters:,}"),
        Figure(label="trainable", says=trainable),
        Figure(label="in buffers", says=human_count(total.buffers), exact=f"{total.buffers:,}"),
        Figure(label="weights", says=human_bytes(total.parameter_nbytes), exact=f"{total.parameter_nbytes:,} bytes"),
    ]
)
st.caption(f"Parameters and buffers are told apart by {counts.role_source.value}.")

best = recognition.best
costs = None
if best is not None:
    size, spec = None, best.spec
    with said():
        spec = assumptions.ask(best.spec)
    if reports.takes_pictures(best.spec):
        st.subheader("Cost of one picture")
        channels, height, width = reports.default_input(best.spec)
        tall, wide, _ = st.columns([1, 1, 4])
        height = int(tall.number_input("Height", 1, 4096, height, step=32, key=f"height-{best.spec.label}"))
        width = int(wide.number_input("Width", 1, 4096, width, step=32, key=f"width-{best.spec.label}"))
        size = (channels, height, width)
    else:
        st.subheader("Cost of one forward pass")
    if spec.assumed:
        st.caption("What a pass costs is counted once that is confirmed: the model is run for it.")
    else:
        with said():
            costs = reports.costs_of(spec, size)
            bound = "at least " if costs.uncounted else ""
            figures(
                [
                    Figure(label="MACs", says=bound + human_macs(costs.macs), exact=f"{costs.macs:,}"),
                    Figure(label="FLOPs (2 x MACs)", says=bound + human_macs(costs.flops), exact=f"{costs.flops:,}"),
                    Figure(label="all module outputs", says=human_bytes(costs.activation_nbytes)),
                ]
            )
            table(
                ("Second opinion", "MACs", "What it counts otherwise"),
                [
                    (escaped(o.tool), f"{o.macs:,}" if o.macs is not None else "no answer", escaped(o.note))
                    for o in costs.second_opinions
                ],
                numeric=(1,),
                key="opinions",
            )
            if costs.uncounted:
                names = ", ".join(f"{mono(name)} ({calls}x)" for name, calls in costs.uncounted)
                st.html(f"<p>Not counted, so the figure is a lower bound: {names}.</p>")

st.subheader("Modules")
if costs is not None:
    draw_tree(architecture.cost_tree(costs, counts), heads=("parameters", "MACs"), open_depth=2)
elif state.is_module:
    draw_tree([module_branch(state.modules)], heads=("elements",), open_depth=2)
else:
    draw_tree(architecture.count_tree(counts), heads=("parameters", "bytes"), open_depth=2)
