"""What the numbers say of a question, beside it: after it was asked, and without anybody having to wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from inspector.architectures.types import Target
from inspector.jobs.job import Job
from inspector.keys.report import Ambiguity, RepairPlan
from inspector.keys.witnesses.hearing import may_be_heard
from inspector.keys.witnesses.types import Bearing, Statement
from inspector.units import counted
from inspector.web import jobs, reports
from inspector.web.session import Hand
from inspector.web.text import plain

# So many options are called by name; of more their number is said.
_NAMED = 3


def show_heard(
    hand: Hand,
    plan: RepairPlan,
    target: Target,
    asked: Mapping[str, Ambiguity],
    places: Mapping[str, DeltaGenerator],
) -> None:
    """asked: the questions by their ids, open or answered. places: behind each of them on the page."""
    if not places or not may_be_heard(plan):
        return
    file = reports.file_of(hand)
    job = Job(
        kind="statements",
        arguments=(file, plan, target),
        known_by=(file, plan.state_dict, plan.chosen, plan.partial, reports.target_key(target)),
        near=hand.sha256,
    )
    # While the numbers are read, their progress stands behind the first question, and all of the page is there.
    with next(iter(places.values())):
        statements: Sequence[Statement] | None = jobs.await_job(job, title="Asking the numbers")
    for statement in statements or ():
        question = asked.get(statement.question) or asked.get(statement.question.partition(":")[0])
        if question is not None and question.id in places:
            with places[question.id]:
                _show(statement, question)


def _show(statement: Statement, question: Ambiguity) -> None:
    options = dict(question.options)
    speaks = _speaks(statement, options)
    if statement.contradicts:
        st.warning(
            plain(f"The numbers speak against this answer. {statement.says} {speaks}"), icon=":material/query_stats:"
        )
    else:
        st.caption(plain(f"{statement.says} {speaks}"))


def _speaks(statement: Statement, options: Mapping[str, str]) -> str:
    """Which options it speaks for, and against how many."""
    sentences = []
    for bearing in (Bearing.FOR, Bearing.AGAINST):
        which = statement.which(bearing)
        if not which:
            continue
        called = "; ".join(f'"{options.get(option, option)}"' for option in which)
        sentences.append(
            f"This speaks {bearing.value} {called}."
            if len(which) <= _NAMED
            else f"This speaks {bearing.value} {counted(len(which), 'answer')}."
        )
    return " ".join(sentences)
