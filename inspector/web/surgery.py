"""Tree surgery on a page: modules left out, taken out alone, with a new head, or frozen; previewed, then written."""

from __future__ import annotations

from functools import partial

import streamlit as st

from inspector.architectures.types import Recognition
from inspector.checkpoint.types import ModuleNode, StateDict
from inspector.errors import InspectorError
from inspector.jobs.job import Job
from inspector.jobs.subjects import Destination, Held
from inspector.keys.written import written_code
from inspector.surgery.report import Drop, Extract, Initial, NewHead, Operation, SurgeryReport
from inspector.units import counted, human_bytes
from inspector.web import jobs, reports, writing
from inspector.web.exports_kept import Underway
from inspector.web.guard import said, show_error
from inspector.web.session import Hand
from inspector.web.text import escaped, mono, plain, visible
from inspector.web.trees import table

_MOST_MODULES = 600
_BEGINS = {Initial.DEFAULT: "as torch's own layer", Initial.ZEROS: "zeros"}


def show_surgery(hand: Hand, state: StateDict, recognition: Recognition) -> None:
    """Choose, preview, write; and the code that freezes. Every path is as the file has it."""
    st.caption(
        "Every remaining tensor stays bit for bit the file's. What cannot be told is refused; nothing of the file runs."
    )
    modules = _modules(state)
    steps = _ask(modules, recognition)
    file = reports.file_of(hand, state)
    job = Job(kind="surgery", arguments=(file, steps), known_by=(file, steps), near=hand.sha256)
    try:
        report: SurgeryReport = jobs.ask(job, says="Planning the steps")
    except InspectorError as error:
        show_error(error)
        return
    if steps:
        _show_preview(report)
        with said():
            _show_writing(hand, state, report, steps)
    with said():
        _show_freezing(hand, report, modules)


def _ask(modules: list[str], recognition: Recognition) -> tuple[Operation, ...]:
    """In the one order in which every path is what the file calls it: leave out, new head, take out."""
    left, right = st.columns(2)
    dropped = left.multiselect("Leave out", modules, placeholder="modules", key="surgery-drop")
    taken = right.selectbox("Take out alone", modules, index=None, placeholder="a module", key="surgery-extract")
    head_box, classes_box, begins_box = st.columns([2, 1, 1])
    known = [path for path in _heads(recognition) if path in modules]
    others = [path for path in modules if path not in known]
    head = head_box.selectbox("New head", known + others, index=None, placeholder="a module", key="surgery-head")
    classes = classes_box.number_input("Classes", 1, 1 << 20, 10, key="surgery-classes", disabled=head is None)
    begins = begins_box.selectbox(
        "It begins", list(Initial), format_func=_BEGINS.__getitem__, key="surgery-begins", disabled=head is None
    )
    steps: list[Operation] = [Drop(module=module) for module in dropped]
    if head is not None:
        steps.append(NewHead(module=head, classes=int(classes), how=begins or Initial.DEFAULT))
    if taken is not None:
        steps.append(Extract(module=taken))
    return tuple(steps)


def _modules(state: StateDict) -> list[str]:
    """Paths of modules that hold something, the outer ones first; of a large network not the innermost."""
    paths: list[str] = []
    level: list[ModuleNode] = [state.modules]
    while level and len(paths) < _MOST_MODULES:
        level = [child for node in level for child in node.children if child.tensors or child.children]
        paths += [node.path for node in level]
    return paths[:_MOST_MODULES]


def _heads(recognition: Recognition) -> list[str]:
    """Where the architecture's number of classes is decided, below the file's wrapper."""
    from inspector.architectures.targets import target_of_candidate

    best = recognition.best
    if best is None or not best.exact:
        return []
    names = target_of_candidate(best).heads
    return list(dict.fromkeys(best.wrapper + name.rpartition(".")[0] for name in names))


def _show_preview(report: SurgeryReport) -> None:
    before, after = (
        f"{counted(size.tensors, 'tensor')}, {human_bytes(size.nbytes)}" for size in (report.before, report.after)
    )
    st.html(f"<p>{escaped(before)} → {escaped(after)}. {escaped(report.goes_into)}</p>")
    table(
        ("What", "Tensors", "Size", "Which", "Becomes"),
        [
            (
                escaped(row.fate.value),
                f"{row.tensors:,}",
                human_bytes(row.nbytes),
                mono(row.pattern, 70),
                mono(row.becomes, 50) + (" …" if row.tensors > 1 else "") if row.becomes else "",
            )
            for row in report.rows
        ],
        numeric=(1, 2),
        key="surgery-rows",
    )
    for note in report.notes:
        st.caption(plain(note))


def _show_writing(hand: Hand, state: StateDict, report: SurgeryReport, steps: tuple[Operation, ...]) -> None:
    options = writing.choose_options("surgery-")

    def job(destination: Destination) -> Job:
        more = (report.plan, report.target, destination, False, False, Held())
        return writing.job_of("repaired", hand, *more, state=state)

    def make() -> Underway:
        return writing.write(job, options, name="surgery", stem=f"{writing.stem_of(hand.name)}_surgery")

    lines_of = partial(written_code, plan=report.plan, spec=report.target.spec)
    slot = f"surgery/{hand.sha256}/{state.path}/{steps}/{options}"
    writing.write_button(slot, make, key="surgery-write", lines_of=lines_of)


def _show_freezing(hand: Hand, report: SurgeryReport, modules: list[str]) -> None:
    from inspector.surgery.freeze import freeze_code

    st.header("Freeze for training")
    chosen, factor_box = st.columns([3, 1])
    left = {step.target.rpartition(".")[0] for step in report.plan.steps if step.target is not None}
    there = {module[:at] for module in left for at, sign in enumerate(module + ".") if sign == "."}
    fitting = [path for path in modules if path in there] or sorted(there)[:_MOST_MODULES]
    frozen = chosen.multiselect("Frozen", fitting, placeholder="modules of the result", key="surgery-freeze")
    factor = factor_box.number_input(
        "Learning rate of the rest, as a factor", 0.001, 1.0, 0.1, format="%g", key="surgery-factor"
    )
    if not frozen:
        return
    code = freeze_code(reports.checkpoint_of(hand), report, frozen, factor=factor)
    for note in code.notes:
        st.caption(plain(note))
    st.code(visible(code.text), language="python", height=640)
