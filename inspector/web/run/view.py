"""A run on the page: the answer, its checkpoints, what was left out, files to take home."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

import streamlit as st

from inspector.jobs.job import Job
from inspector.jobs.kinds.table import sized
from inspector.render.json import as_json
from inspector.render.run import members_csv, members_listing, run_json, series_csv
from inspector.run.findings import learned
from inspector.run.groups import By, distance_from_first
from inspector.run.report import RunReport
from inspector.units import counted, human_bytes, human_count, human_distance
from inspector.web import jobs
from inspector.web.components import Figure, figures, finding_cards
from inspector.web.run.choice import Chosen
from inspector.web.text import escaped, mono, plain
from inspector.web.trees import table

_ROWS_SHOWN = 400
_MANY, _TALL = 16, 460


def report_of(chosen: Chosen) -> RunReport | None:
    """The report when it is done, else None, and progress is drawn. Raises UsageError where nothing is a checkpoint."""
    run = chosen.run
    job = Job(kind=sized("run-report", chosen.nbytes), arguments=(run,), near=run.sha256 or run.digest)
    found: RunReport | None = jobs.await_job(job, title=f"Reading the checkpoints of {plain(run.name)}")
    return found


def show_answer(report: RunReport) -> None:
    """The sentence, the figures in a row, and what was noticed."""
    st.html(f'<p class="mi-answer">{escaped(report.says)}</p>')
    for note in report.notes:
        st.html(f'<p class="mi-why">{escaped(note)}</p>')
    if len(report.members) > 1:
        numbers = sum(tensor.numel for tensor in report.tensors)
        distance = distance_from_first(report, learned(report))[-1]
        row = [
            Figure(label="checkpoints", says=f"{len(report.members):,}"),
            Figure(label=f"{report.axis}s", says=f"{report.members[0].at:.6g} to {report.members[-1].at:.6g}"),
            Figure(label="tensors", says=f"{len(report.tensors):,}"),
            Figure(label="numbers in each", says=human_count(numbers), exact=f"{numbers:,}"),
        ]
        if distance == distance:
            exact = "Relative L2 of what is learned: |last - first| / |first|"
            row.append(Figure(label="last from first, relative L2", says=human_distance(distance), exact=exact))
        if report.left_out:
            row.append(Figure(label="left out", says=f"{len(report.left_out):,}"))
        figures(row)
    finding_cards(report.findings)
    for log in report.logs:
        finding_cards(log.findings)


def show_members(report: RunReport) -> None:
    """A row per checkpoint, then what is none of the run and why."""
    st.header("Checkpoints")
    listing = members_listing(report, _ROWS_SHOWN)
    folder = shared_folder([name for name, *_ in listing.rows])
    rows = [(mono(name[len(folder) :], 32), *map(escaped, cells)) for name, *cells in listing.rows]
    # What stands below must not be a hundred rows away.
    with st.container(height=_TALL) if len(rows) > _MANY else st.container():
        table(listing.heads, rows, numeric=listing.numeric, key="members")
    if listing.more:
        st.caption(plain(listing.more))
    if report.left_out:
        st.header("Left out")
        left = [
            (mono(one.name, 48), "could not be read" if one.broken else "belongs to something else", escaped(one.why))
            for one in report.left_out
        ]
        table(("File", "What", "Why"), left, key="left-out")
    if report.passed:
        with st.expander(f"{counted(len(report.passed), 'file')} passed over that hold no weights"):
            table(("File", "Why"), [(mono(n, 60), escaped(why)) for n, why in report.passed], key="passed")


def shared_folder(names: Sequence[str]) -> str:
    """What stands in front of all of them, up to its last "/"; "" for nothing."""
    levels = zip(*(name.split("/")[:-1] for name in names), strict=False)
    return "".join(f"{level[0]}/" for level in takewhile(lambda level: len(set(level)) == 1, levels))


def show_files(report: RunReport, by: By) -> None:
    """The numbers to take home; the same files as `inspector run --csv` and `--json` write."""
    with st.container(horizontal=True, key="run-files"):
        for text, make, name in (
            ("Checkpoints (CSV)", lambda: members_csv(report), "members.csv"),
            (f"Series by {by} (CSV)", lambda: series_csv(report, by), "series.csv"),
            ("Report (JSON)", lambda: as_json(run_json(report, by)) + "\n", "run.json"),
        ):
            st.download_button(text, make, file_name=name, on_click="ignore", icon=":material/download:", key=name)
    st.caption(
        plain(
            f"{human_bytes(report.read_nbytes)} of tensors read in {report.seconds:.2f} s, one checkpoint at a time. "
            f"In the order of the {report.ordered_by} that the files state."
            if report.ordered_by != "name"
            else f"{human_bytes(report.read_nbytes)} of tensors read in {report.seconds:.2f} s, one checkpoint at a "
            "time. In the order of their names: not all of them state an epoch or a step."
        )
    )
