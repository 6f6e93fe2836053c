"""The report about the file in hand, to take along: made when it is asked for, with the heat maps that were kept for
it."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from inspector.architectures.types import Target
from inspector.checkpoint.types import Checkpoint
from inspector.errors import InspectorError
from inspector.file_report.make import is_proved, report_of
from inspector.file_report.report import FileReport, MapFacts
from inspector.health.report import HealthReport
from inspector.inspection import Inspection, Question
from inspector.jobs.job import Job
from inspector.keys.report import Verification
from inspector.units import counted, human_bytes
from inspector.web import answers, jobs, measuring, reports, states
from inspector.web.guard import said
from inspector.web.repair.proofs import Against, verify_job
from inspector.web.session import Hand
from inspector.web.text import plain
from inspector.web.writing import stem_of

# Read when the report is asked for; larger files are in it with numbers once the Weights page has read them.
_READ_NBYTES = 1_000_000_000
_KEPT, _MOST_KEPT = "kept-maps", 24


@st.dialog("Report")
def report_dialog(hand: Hand) -> None:
    """The report about the file in hand as a page, against the architecture that it was recognised as: made as soon as
    the dialog is open, then said to be, with its size and what is in it, and handed out."""
    from inspector.render.page_report.page import report_html

    with said():
        name = f"{stem_of(hand.name)}-report.html"
        with st.spinner("Making it …"):
            report = _made(hand)
            page = report_html(report).encode("utf-8")
        st.markdown(plain(f"{name} is made: {human_bytes(len(page))}. {_contents(report)}"))
        if not report.maps:
            st.caption("Heat maps come into it once some are kept for it on Explain.")
        st.download_button(
            f"Download {plain(name)}",
            page,
            file_name=name,
            mime="text/html",
            on_click="ignore",
            icon=":material/download:",
            type="primary",
            key="report-download",
        )
        st.caption("One page to send on or to print: it needs no network, and holds the same as JSON.")


def _made(hand: Hand) -> FileReport:
    """Raises ReadError where the file has gone meanwhile."""
    checkpoint = reports.checkpoint_of(hand)
    state = states.meant_state(checkpoint) or checkpoint.weights
    measured = measuring.health_if_read(hand, state) if state is not None else None
    inspection = answers.inspection_of_hand(hand, checkpoint, measured)
    if checkpoint.weights is not None:
        inspection = replace(inspection, parameters=reports.parameters_of(hand), costs=answers.costs_of_hand(hand))
    target = reports.own_target(hand) if checkpoint.weights is not None else None
    health, proof = _health_job(hand, checkpoint, measured), _proof_job(hand, inspection, target)
    if health is not None:
        inspection = _with_health(inspection, health)
    verification: Verification | None = None
    if proof is not None:
        try:
            verification = jobs.ask(proof, says="Verifying with a strict load")
        except InspectorError as error:
            inspection = replace(inspection, skipped=(*inspection.skipped, ("verification", str(error))))
    spec = target.spec if target is not None else None
    return report_of(inspection, spec=spec, verification=verification, maps=kept_maps(hand))


def _contents(report: FileReport) -> str:
    """What is in it, as one sentence."""
    parts = [counted(len(report.findings), "finding") if report.findings else "no finding"]
    if report.tensors:
        read = "with their numbers" if report.numbers_read else "by the header, without their numbers"
        parts.append(f"{counted(len(report.tensors), 'tensor')} {read}")
    if report.repair is not None and report.repair.proofs:
        parts.append(f"the repair with {counted(len(report.repair.proofs), 'proof')}")
    elif report.repair is not None:
        parts.append("how it loads")
    parts += [counted(len(report.maps), "heat map")] if report.maps else []
    return f"In it: what the file is, {', '.join(parts[:-1])}{' and ' if parts[:-1] else ''}{parts[-1]}."


def _health_job(hand: Hand, checkpoint: Checkpoint, measured: HealthReport | None) -> Job | None:
    nbytes = sum(tensor.nbytes for tensor in checkpoint.tensors)
    if checkpoint.weights is None or measured is not None or nbytes > _READ_NBYTES:
        return None
    return measuring.health_job(hand, states.meant_state(checkpoint) or checkpoint.weights)


def _with_health(inspection: Inspection, job: Job) -> Inspection:
    try:
        found: HealthReport = jobs.ask(job, says="Reading its numbers")
    except InspectorError as error:
        why = (Question.HEALTH.value, str(error))
        return replace(inspection, skipped=(*inspection.skipped, why))
    return replace(inspection, health=found)


def _proof_job(hand: Hand, inspection: Inspection, target: Target | None) -> Job | None:
    """The one that the Repair page asks for where nothing was answered, accepted or chosen there."""
    plan = inspection.keys.plan if inspection.keys is not None else None
    state = inspection.state or inspection.checkpoint.weights
    if plan is None or target is None or state is None or not is_proved(inspection.checkpoint, plan):
        return None
    return verify_job(hand, plan, target, f"{target.label}/{'.'.join(state.path)}/()/()/False", Against())


def kept_maps(hand: Hand) -> tuple[MapFacts, ...]:
    """The heat maps of this file that this session kept, in their order."""
    kept: dict[str, tuple[MapFacts, ...]] = st.session_state.get(_KEPT, {})
    return kept.get(hand.sha256, ())


def keep_map(hand: Hand, facts: MapFacts) -> None:
    """Put it into this file's report; the same map in other colours takes its place, and the oldest gives way."""
    others = tuple(one for one in kept_maps(hand) if not _same(one, facts))
    kept = {**st.session_state.get(_KEPT, {}), hand.sha256: (*others, facts)[-_MOST_KEPT:]}
    # Of the files that were looked at last: a picture has some 200 kB.
    st.session_state[_KEPT] = dict(list(kept.items())[-4:])


def drop_maps(hand: Hand) -> None:
    """Leave them all out again."""
    st.session_state[_KEPT] = {key: maps for key, maps in st.session_state.get(_KEPT, {}).items() if key != hand.sha256}


def _same(one: MapFacts, other: MapFacts) -> bool:
    def asked(facts: MapFacts) -> tuple[object, ...]:
        return facts.picture_sha256, facts.method, facts.layer, facts.asked, facts.target.index, facts.preprocessing

    return asked(one) == asked(other)
