"""Run it: one forward pass, watched, on the Architecture page: does it run, and if not, why; which values come out."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import streamlit as st

from inspector.doctor.report import CallRecord, Trace
from inspector.errors import InspectorError
from inspector.jobs.job import Job
from inspector.jobs.subjects import FileRef
from inspector.render.json import as_json
from inspector.render.trace_text import modes_sentence, trace_plain
from inspector.units import counted, human_shape
from inspector.web import feature_maps, jobs, own_code, reports
from inspector.web.components import Figure, figures, finding_cards
from inspector.web.explain import inputs, pictures
from inspector.web.forwards import Own
from inspector.web.guard import said, show_error
from inspector.web.session import Hand
from inspector.web.text import escaped, mono, plain, visible
from inspector.web.trees import table_height

_RANDOM, _PICTURE = "random numbers", "a picture"
_FILES, _THEIRS = "the file's", "those that the code gives it"


@st.fragment
def show_of_file(hand: Hand, size: tuple[int, ...] | None, batch: int) -> None:
    """Of the file's own weights: with random numbers, or with a picture as Explain prepares it."""
    ways = [_RANDOM, _PICTURE] if size is not None else [_RANDOM]
    way, training = _choices(ways, key=f"run-{hand.sha256[:12]}")
    given: object = size
    if way == _PICTURE:
        picture = pictures.choose_picture()
        if picture is None:
            st.caption("Choose a picture to run on.")
            return
        st.caption("The picture is prepared as on Explain; the height and width above do not count for it.")
        given = (picture.ref, inputs.inferred(hand))
    with said():
        arguments = (reports.model_file(hand), given, batch, training)
        job = Job(kind="trace", arguments=arguments, near=hand.sha256)
        found: Trace = jobs.ask(job, says="Watching a forward pass")
        show_trace(found, key=f"trace-{hand.sha256[:12]}")
        if found.failure is None:
            feature_maps.show_feature_maps(found, arguments, hand)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A file whose weights fit one's own code. says: how many of them, a clause."""

    hand: Hand
    file: FileRef
    says: str


@st.fragment
def show_of_code(own: Own, loaded: Loaded | None, uncounted: InspectorError | None) -> None:
    """Of what a person's code builds: with the file's weights where they fit, or those that the code gives it.

    uncounted: why its pass could not be counted; said here, where the pass does not say it better.
    """
    key = f"run-own-{own.source.sha256[:12]}"
    weights = _THEIRS
    if loaded is not None:
        weights = str(st.radio("Weights", [_FILES, _THEIRS], horizontal=True, key=f"{key}-weights"))
    with_file = loaded is not None and weights == _FILES
    way, training = _choices([_RANDOM, _PICTURE] if with_file else [_RANDOM], key=key)
    try:
        if loaded is not None and with_file:
            found = _with_weights(own, loaded, way, training)
            says = f"With the file's weights, loaded strictly: {loaded.says}."
        else:
            found = own_code.report("trace-own", own.source, own.size, own.batch, training)
            says = "With the weights that the code gives it: nothing of the file is in it."
    except InspectorError as error:
        show_error(error)
        if uncounted is not None and uncounted.says != error.says:
            show_error(uncounted)
        return
    if found is None:
        return
    st.caption(plain(says))
    show_trace(found, key=f"trace-own-{own.source.sha256[:12]}")
    if uncounted is not None and found.failure is None:
        st.caption("What a pass costs was not counted:")
        show_error(uncounted)


def _with_weights(own: Own, loaded: Loaded, way: str, training: bool) -> Trace | None:
    """The pass in the worker that runs this code alone; None before a picture is chosen."""
    given: object = own.size
    if way == _PICTURE:
        picture = pictures.choose_picture()
        if picture is None:
            st.caption("Choose a picture to run on.")
            return None
        st.caption("The picture is prepared as on Explain; the input above does not count for it.")
        given = (picture.ref, inputs.inferred(loaded.hand))
    job = Job(kind="trace", arguments=(loaded.file, given, own.batch, training), near=loaded.hand.sha256)
    found: Trace = jobs.ask(job, says="Running your code with the file's weights")
    return found


def _choices(ways: list[str], *, key: str) -> tuple[str, bool]:
    columns = iter(st.columns(2))
    way = ways[0]
    if len(ways) > 1:
        way = str(next(columns).radio("Run it on", ways, horizontal=True, key=f"{key}-way"))
    mode = next(columns).radio("Mode", ["evaluation", "training"], horizontal=True, key=f"{key}-mode")
    return way, mode == "training"


def show_trace(trace: Trace, *, key: str) -> None:
    """The answer, what was noticed, the calls, and the text for an issue."""
    failure, diagnosis = trace.failure, trace.diagnosis
    shapes = ", ".join(human_shape(facts.shape) for _, facts in trace.inputs)
    if failure is not None and diagnosis is not None:
        where = _call(trace, failure.stack[-1]).path if failure.stack else trace.calls[-1].path if trace.calls else ""
        place = f" in {where or 'the model itself'} on {shapes}" if trace.calls else ""
        st.error(f"It fails{place}: {diagnosis.says}", icon=":material/error:")
        if diagnosis.fix:
            st.html(f"<p><b>What to do</b> {escaped(diagnosis.fix)}</p>")
        if diagnosis.code:
            st.code(diagnosis.code, language="python")
        for label, line in (("Line", failure.line), ("To mend", diagnosis.change)):
            if line is not None and (label == "Line" or line != failure.line):
                st.html(f"<p><b>{label}</b> {escaped(f'{line.file}, line {line.line}:')} {mono(line.text)}</p>")
        sure = f"This is {diagnosis.sureness.value}. " if diagnosis.sureness.value != "unknown" else ""
        tried = f"Tried: {'; '.join(diagnosis.tried)}. " if diagnosis.tried else ""
        st.html(f"<p><small>{escaped(sure + tried)}torch says: {mono(f'{failure.error}: {failure.says}')}</small></p>")
    else:
        outputs = trace.calls[0].outputs if trace.calls else ()
        out = ", ".join(human_shape(o.shape) for o in outputs[:3])
        st.success(f"It runs to its end: {shapes} in, {out or 'nothing'} out.", icon=":material/check_circle:")
        row = [Figure(label="module calls", says=f"{len(trace.calls):,}")]
        row.append(Figure(label="operators", says=f"{trace.operators:,}"))
        if trace.greatest is not None:
            where, size = trace.greatest
            row.append(Figure(label=f"largest magnitude, in {where or 'the output'}", says=f"{size:.4g}"))
        figures(row)
        if trace.modes is not None:
            st.caption(escaped(f"In the other mode: {modes_sentence(trace)}."))
    finding_cards([f for f in trace.findings if f.id != "forward-fails"])
    running = set(failure.stack) if failure is not None else set()
    st.dataframe(
        _frame(trace, running),
        hide_index=True,
        height=table_height(len(trace.calls), 430),
        column_config={
            "Module": st.column_config.TextColumn(pinned=True, width="medium"),
            **{name: st.column_config.NumberColumn(format="%.4g") for name in ("Min", "Mean", "Max", "Std")},
            "Zeros %": st.column_config.NumberColumn(format="%.1f"),
        },
        alt="Each call of a module with what went in, what came out, and its values",
    )
    for note in trace.skipped:
        st.caption(escaped(f"Not looked at: {note}"))
    with st.expander("As text for an issue", icon=":material/content_copy:"):
        st.code(trace_plain(trace), language=None)
    st.download_button("JSON", lambda: as_json(trace), "trace.json", "application/json", on_click="ignore", key=key)
    st.caption(f"Made with {escaped(trace.input_from or 'random numbers')}; {counted(len(trace.calls), 'call')}.")


def _call(trace: Trace, number: int) -> CallRecord:
    return next(call for call in trace.calls if call.number == number)


def _frame(trace: Trace, running: set[int]) -> pd.DataFrame:
    made = []
    for call in trace.calls:
        first = call.outputs[0] if call.outputs else None
        values = first.statistics if first is not None else None
        made.append(
            {
                "Module": visible(call.path) or "(the model)",
                "Kind": visible(call.kind),
                "In": ", ".join(human_shape(one.shape) for one in call.inputs[:3]),
                "Out": "fails" if call.number in running else ", ".join(human_shape(o.shape) for o in call.outputs[:3]),
                "Min": values.minimum if values is not None else None,
                "Mean": values.mean if values is not None else None,
                "Max": values.maximum if values is not None else None,
                "Std": values.deviation if values is not None else None,
                "Zeros %": 100 * values.zeros if values is not None else None,
                "Not finite": values.nans + values.infinities + values.negative_infinities if values else None,
            }
        )
    return pd.DataFrame(made)
