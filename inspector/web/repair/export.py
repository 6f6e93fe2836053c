"""Writing the repaired file: held against what the visitor gave, with its optimizer where that is wanted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import streamlit as st

from inspector.architectures.types import Target
from inspector.checkpoint.types import StateRole
from inspector.jobs.asked import OptimizerFacts
from inspector.jobs.job import Job
from inspector.jobs.subjects import Destination
from inspector.keys.report import RepairPlan
from inspector.keys.written import written_code
from inspector.web import jobs, reports, writing
from inspector.web.repair.proofs import Against
from inspector.web.session import Hand
from inspector.web.text import plain
from inspector.web.writing import Options


@dataclass(frozen=True, slots=True, kw_only=True)
class _Training:
    """Whether the optimizer is written along; by_kind: the visitor's yes to groups by kind of parameter."""

    optimizer: bool = False
    by_kind: bool = False


def show_export(hand: Hand, plan: RepairPlan, target: Target, asked: str, against: Against) -> bool:
    """Choose, write, check, hand out; whether the proofs of a written file stand there.

    against: a file is only written if these answers agree, too.
    """
    options = writing.choose_options()
    training = _ask_training(hand, plan, target, asked)
    if training.optimizer:
        options = Options(writer="pth", dtype="", shard_size="")
    slot = f"written/{hand.sha256}/{asked}/{against}/{options}/{training}"

    def job(destination: Destination) -> Job:
        more = (plan, target, destination, training.optimizer, training.by_kind, against.held_for(target))
        return writing.job_of("repaired", hand, *more)

    ending = "partial" if plan.partial else "repaired"
    stem = f"{writing.stem_of(hand.name, reports.checkpoint_of(hand), plan.state_dict)}_{ending}"
    # A training checkpoint has its weights where the file had them; a bare state dict became an entry of one.
    access = (plan.access or plan.state_dict or ("state_dict",)) if training.optimizer else ()
    lines_of = partial(written_code, plan=plan, spec=target.spec, access=access)
    return writing.write_button(
        slot, lambda: writing.write(job, options, name="repaired", stem=stem), lines_of=lines_of
    )


def _ask_training(hand: Hand, plan: RepairPlan, target: Target, asked: str) -> _Training:
    checkpoint = reports.checkpoint_of(hand)
    # Of a file cut short the optimizer's tensors are no more whole than the model's.
    if plan.lost or not any(s.role is StateRole.OPTIMIZER for s in checkpoint.state_dicts):
        return _Training()
    facts = _optimizer_facts(hand, plan, target, asked)
    if facts.refusal:
        st.caption(plain(f"Without its optimizer. {facts.refusal}"))
        return _Training()
    if not st.checkbox(
        "With its optimizer: one .pth in which the optimizer's state follows the renamed parameters",
        key="optimizer",
        help="A whole training checkpoint, to go on training from; format, type and files above do not apply.",
    ):
        return _Training()
    question = "; ".join(facts.asks)
    by_kind = bool(question) and st.checkbox(
        plain(f"The optimizer's groups were made by kind of parameter: {question}"),
        key="optimizer-groups",
        help="Other groups would fit the file as well, and this is what only its author knows.",
    )
    return _Training(optimizer=True, by_kind=by_kind)


def _optimizer_facts(hand: Hand, plan: RepairPlan, target: Target, asked: str) -> OptimizerFacts:
    """Whether the optimizer can go along, and what is to be confirmed about its groups."""
    if plan.gathered:
        return OptimizerFacts(refusal="The parts of the model lie apart, and none says in which order it took them.")
    file = reports.file_of(hand)
    job = Job(
        kind="optimizer-groups",
        arguments=(file, plan, target),
        known_by=(file, asked, reports.target_key(target)),
        near=hand.sha256,
    )
    facts: OptimizerFacts = jobs.ask(job, says="Looking at the optimizer")
    return facts
