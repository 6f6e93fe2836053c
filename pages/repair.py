"""Repair: why does it not load, and how does it load?"""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from inspector.architectures.types import Target
from inspector.keys.apply import check_whole, not_whole
from inspector.keys.placing.left_over import left_over
from inspector.render.page_words import in_page_words
from inspector.web import merging, next_steps, pasting, reports, states
from inspector.web.components import finding_cards, need_file, title
from inspector.web.guard import said
from inspector.web.proof_table import proof_table
from inspector.web.repair import address, choices, heard, lists, proofs, python, targets, unwrapping
from inspector.web.repair.export import show_export
from inspector.web.text import escaped, plain
from inspector.web.writing import stem_of


def paste_box() -> None:
    """Last: whoever has the error at hand rather than the question."""
    with st.expander("Paste the error that loading it gave", icon=":material/content_paste:"):
        pasting.paste_box("repair", checkpoint)


title("Repair", "Why does it not load, and how does it load?")
hand = need_file(
    "What keeps the file from loading, the plan that makes it fit, proof that it does, and the file.",
    "legacy-dataparallel",
    "training-checkpoint",
)
# The answer stands first; what it is an answer to, and what it rests on, below.
first = st.container(key="repair-answer")
checkpoint = reports.checkpoint_of(hand)
state = states.state_in_hand(checkpoint, models_only=True)
if state is None:
    st.info("The file holds no state dict, so there are no keys to repair.", icon=":material/info:")
    st.stop()

# Several networks, and nobody said which: nothing is to be written of one that was not chosen.
several = states.unanswered(checkpoint)
# Drawn once the diagnosis tells whether it is a question.
which = st.container(key="which-state")
target: Target | None = None
why = ""
address.take_up()
with said():
    target, why = targets.choose_target(hand, reports.own_target(hand, state))
if target is not None:
    targets.show_target(target, why)
    with said():
        target = targets.confirm_assumed(target)
if target is None:
    with which:
        states.choose_state(checkpoint, models_only=True, question=several)
    if several:
        st.caption("What can be written without a target appears here once that is chosen.")
    elif reports.own_target(hand, state) is None:
        with said():
            unwrapping.show_unwrap(hand, state)
        if checkpoint.format == "onnx":
            next_steps.show_for_onnx(here="repair")
        elif merging.is_adapters(state):
            next_steps.link_to_merge()
        else:
            next_steps.show_for_unknown(reports.recognition_of(hand, state), on_repair=True, is_module=state.is_module)
    paste_box()
    st.stop()

answers = choices.answers_for(hand, state, target)
accept, choose, partial = answers.as_key
# The likeliest is only a suggestion: where another set of weights fits as well, the report asks which.
picked = None if state is checkpoint.weights and states.meant_state(checkpoint) is None else state
report = reports.keys_of(hand, target, picked, accept=accept, choose=choose, partial=partial)
asks = states.asked_by(report.plan, checkpoint)
if asks and states.chosen_state(checkpoint) is state:
    asks = ""
    report = reports.keys_of(hand, target, state, accept=accept, choose=choose, partial=partial)
# A target of one's own that only one of several networks fits has said which; what it asks is asked first.
is_own = st.session_state[targets.WAY_SLOT] == "own"
found = report.plan if not is_own and not partial else None
fits = found is not None and (found.complete or bool(found.ambiguities))
with which:
    told = next((s for s in checkpoint.state_dicts if s.path == report.state_dict), None) if several else None
    states.choose_state(checkpoint, models_only=True, question=asks or ("" if fits else several), told=told)
# What the file is as it stands is another answer for each of the sets.
if asks or (several and not fits):
    st.caption("What keeps it from loading appears here once that is chosen.")
    paste_box()
    st.stop()
plan = report.plan
state = next((s for s in checkpoint.state_dicts if s.path == report.state_dict), state)
icon = '<span class="mi-icon" aria-hidden="true">block</span> ' if report.refusal else ""
first.html(f'<p class="mi-answer">{icon}{escaped(lists.answer(report))}</p>')
if report.refusal and report.refusal != report.says:
    first.warning(plain(in_page_words(report.refusal)), icon=":material/block:")
choices.note_asked(plan, answers)
if address.give(answers, plan, target):
    st.rerun()
beside: dict[str, DeltaGenerator] = {}
if choices.ask(plan, answers, beside):
    address.forget(target)
    st.rerun()
address.say_left(target)
address.follow(answers, target)

# The file comes first; what it rests on stands below and is made first, where it takes longer than the boxes.
download = st.container(key="repaired-file")
left, waiting = left_over(report), plan is not None and bool(plan.ambiguities)
# Before an answer that decides about it, nothing is no finding.
if not (waiting and left.nothing):
    st.header("Left over")
    lists.show_left_over(left, waiting=waiting, lost=plan.lost if plan is not None else 0)
finding_cards(lists.beside(report))
if plan is not None and plan.rules:
    st.header("Rules")
    lists.show_rules(plan)
if plan is not None and plan.certificate:
    st.caption(plain(f"Placed: {lists.certificate(plan)}."))

broken = not_whole(checkpoint, plan) if plan is not None and plan.complete else ()
if plan is not None and broken:
    with download, said():
        check_whole(checkpoint, plan)
    with download:
        next_steps.show_for_cut(hand)
elif plan is not None and plan.complete:
    asked = f"{target.label}/{'.'.join(state.path)}/{accept}/{choose}/{partial}"
    st.header("Verified")
    proved = st.container(key="proved")
    against = proofs.ask_against(hand)
    written = False
    with download:
        st.header("The part as a file" if plan.partial else "The repaired file")
        with said():
            written = show_export(hand, plan, target, asked, against)
    if written:
        proved.caption("The proofs stand above, with the file that was written: these and its reading back.")
    with proved, said():
        if not written:
            proof_table(proofs.verified(hand, plan, target, asked, against), "How", "proofs", of_part=plan.partial)
    # No lines load a file cut short; those for what is written of it stand with that.
    if not plan.lost:
        st.header("Python")
        with said():
            python.show_code(plan, hand.name, target.spec)
if plan is not None:
    lists.show_plan(plan, state, target, stem_of(hand.name, checkpoint, state.path))
another = reports.why_another(hand, state) if plan is None or not plan.complete else ""
if another and checkpoint.format == "onnx":
    next_steps.show_for_onnx(here="repair")
elif another:
    next_steps.show_for_unknown(reports.recognition_of(hand, state), on_repair=True, another=another)
paste_box()
if plan is not None:
    # Last, since it reads the file: the questions are there and can be answered meanwhile.
    with said():
        heard.show_heard(hand, plan, target, answers.asked, beside)
