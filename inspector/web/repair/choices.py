"""What the visitor decides about one file and target: open questions, lossy rules, a part instead of the whole."""

from __future__ import annotations

from dataclasses import dataclass, field

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from inspector.architectures.types import Target
from inspector.checkpoint.types import StateDict
from inspector.keys.report import Ambiguity, Cost, RepairPlan
from inspector.units import counted
from inspector.web.session import Hand
from inspector.web.text import plain

# So many may be answered one by one on the page; more are answered together or on the command line.
_MOST_PLACES = 200


@dataclass(slots=True)
class Answers:
    """What the visitor accepted and chose for one file and target.

    asked: every question that came up; an answered one is no longer open, but its answer must stay changeable.
    partial: what nothing fills may stay at the model's initial value.
    """

    accept: set[str] = field(default_factory=set)
    choose: dict[str, str] = field(default_factory=dict)
    asked: dict[str, Ambiguity] = field(default_factory=dict)
    partial: bool = False

    @property
    def as_key(self) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...], bool]:
        """The same in an order of its own, for caches."""
        return tuple(sorted(self.accept)), tuple(sorted(self.choose.items())), self.partial


def answers_for(hand: Hand, state: StateDict, target: Target) -> Answers:
    """The session's answers for this file, state dict and target."""
    slot = f"answers/{hand.sha256}/{state.path}/{target.label}"
    held = st.session_state.setdefault(slot, Answers())
    return held if isinstance(held, Answers) else Answers()


def note_asked(plan: RepairPlan | None, answers: Answers) -> None:
    """Which questions came up, before any of them is answered."""
    for question in plan.ambiguities if plan else ():
        # Places that were answered one by one are not asked about any more, and stay changeable.
        held = answers.asked.get(question.id)
        if held is None or held.options != question.options or not set(question.places) <= set(held.places):
            answers.asked[question.id] = question


def ask(plan: RepairPlan | None, answers: Answers, beside: dict[str, DeltaGenerator] | None = None) -> bool:
    """Those that came up, lossy rules, and whether a part is enough. Whether another answer was given.

    beside: takes a place behind each question by its id, for what is said of it later.
    """
    before = answers.as_key
    for question in answers.asked.values():
        _ask_one(question, answers)
        if beside is not None:
            beside[question.id] = st.container(key=f"beside-{question.id}")
    waiting = plan.needs_accept if plan else ()
    for use in plan.rules if plan else ():
        # What a choice above already settles needs no second yes.
        if use.id in answers.accept or use.id in waiting:
            why = "changes the weights" if use.cost is Cost.LOSSY else "no name confirms it"
            label = plain(f"Accept: {use.says} ({why})")
            if st.checkbox(label, value=use.id in answers.accept, key=f"accept-{use.id}"):
                answers.accept.add(use.id)
            else:
                answers.accept.discard(use.id)
    if answers.partial or lacks(plan):
        answers.partial = st.checkbox(
            plain(f"A part is enough: {_lacking(plan)} may stay at the model's initial value"),
            value=answers.partial,
            key="partial",
            help="The repaired file then loads with strict=False, and the code below checks the list of what it lacks.",
        )
    return answers.as_key != before


def lacks(plan: RepairPlan | None) -> bool:
    """Whether a part is all that can be had: nothing fills some places, or the file does not hold all tensors whole."""
    return plan is not None and bool(plan.missing or plan.lost) and not plan.ambiguities


def _lacking(plan: RepairPlan | None) -> str:
    if plan is None or not (plan.missing or plan.lost):
        return "what nothing fills"
    if not plan.lost:
        return f"{counted(len(plan.missing), 'tensor')} that nothing fills"
    # Of a part both are in one list already.
    if plan.partial:
        return f"{counted(len(plan.missing), 'tensor')} that the file does not hold whole"
    lost = f"{counted(plan.lost, 'tensor')} that the file does not hold whole"
    return f"{lost} and {len(plan.missing):,} that nothing fills" if plan.missing else lost


def _ask_one(question: Ambiguity, answers: Answers) -> None:
    options = dict(question.options)
    held = answers.choose.get(question.id)
    chosen = st.radio(
        plain(question.question),
        list(options),
        format_func=lambda option: plain(options[option]),
        index=list(options).index(held) if held in options else None,
        key=f"choose-{question.id}",
    )
    if chosen is not None:
        answers.choose[question.id] = chosen
    elif 1 < len(question.places) <= _MOST_PLACES:
        with st.expander(f"They are not all alike: answer for each of the {len(question.places)}"):
            for place in question.places:
                _ask_at(place, question, answers)


def _ask_at(place: str, question: Ambiguity, answers: Answers) -> None:
    options, key = dict(question.options), question.at(place)
    chosen = st.selectbox(
        plain(place),
        list(options),
        format_func=lambda option: plain(options[option]),
        index=list(options).index(answers.choose[key]) if answers.choose.get(key) in options else None,
        key=f"choose-{key}",
        placeholder="not known yet",
    )
    if chosen is not None:
        answers.choose[key] = chosen
    else:
        answers.choose.pop(key, None)
