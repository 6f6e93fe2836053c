"""The bill on the Architecture page: a table of modules to sort and filter, memory, time, and files to take along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from inspector.flops.memory_report import OPTIMIZERS, PRECISIONS
from inspector.flops.report import CostReport, Coverage, ModuleCost
from inspector.flops.roofline import DEVICES, Device, find_device, least_seconds, limit_of
from inspector.flops.timing_report import TimingReport
from inspector.render.bill import COLUMNS, Column, bill_csv, bill_markdown, incomplete, share_of
from inspector.render.json import as_json
from inspector.units import counted, human_bytes
from inspector.web.components import Figure, figures
from inspector.web.forwards import Forward
from inspector.web.guard import said
from inspector.web.text import escaped, visible
from inspector.web.trees import table_height

_USUAL = ("kind", "settings", "output", "macs", "elementwise", "parameters", "read", "field", "calls")
_BYTES = ("activations", "read", "written")
_TITLES = {column.id: column.title for column in COLUMNS}
_MARKS = {Coverage.PARTIAL: " (partial)", Coverage.UNAVAILABLE: " (unavailable)"}


def frame(
    report: CostReport, rows: Sequence[ModuleCost], columns: Sequence[Column], device: Device | None, *, percent: bool
) -> pd.DataFrame:
    """A row per module; percent: of the whole, where a column has one."""
    made: dict[str, list[Any]] = {"Module": [visible(m.path) or "(the model)" for m in rows]}
    for column in columns:
        values = [column.value(m) for m in rows]
        if percent and column.share:
            values = [None if (s := share_of(column, v, report)) is None else 100 * s for v in values]
        if not column.is_number or column.id == "field":
            values = ["" if v is None else v for v in values]
        made[column.id] = [visible(v) if isinstance(v, str) else v for v in values]
    if device is not None:
        made["limit"] = [limit_of(m, device) for m in rows]
    return pd.DataFrame(made)


def settings(report: CostReport, columns: Sequence[Column], *, percent: bool) -> dict[str, Any]:
    """How the table shows each column, and what its heading says of what is missing."""
    made: dict[str, Any] = {"Module": st.column_config.TextColumn(pinned=True, width="medium")}
    for column in columns:
        state = report.coverage(column.state) if column.state else None
        mark = _MARKS.get(state.coverage, "") if state is not None else ""
        title, helps = column.title + mark, column.helps + (f" {state.why}." if state is not None and state.why else "")
        if not column.is_number or column.id == "field":
            made[column.id] = st.column_config.TextColumn(title, help=helps)
        elif percent and column.share:
            made[column.id] = st.column_config.ProgressColumn(
                f"{title} %", help=helps, format="%.1f", min_value=0, max_value=100
            )
        else:
            # Streamlit's own format for bytes counts in 1,024 and writes "KB"; all tables of the pages show them whole.
            title = f"{title}, bytes" if column.id in _BYTES else title
            shown = "%.1f" if column.id == "intensity" else "localized"
            made[column.id] = st.column_config.NumberColumn(title, help=helps, format=shown)
    made["limit"] = st.column_config.TextColumn("Waits for", help="What limits the module on the device.")
    return made


def matching(report: CostReport, words: str) -> tuple[ModuleCost, ...]:
    """Modules whose path, class or settings hold every word."""
    wanted = words.lower().split()
    return tuple(m for m in report.modules if all(word in f"{m.path} {m.kind} {m.settings}".lower() for word in wanted))


@st.fragment
def show_table(report: CostReport) -> None:
    """Filter, columns, the table, and the files."""
    search, choose, unit = st.columns([3, 4, 2], vertical_alignment="bottom")
    words = search.text_input(
        "Filter", key="bill-filter", placeholder="part of a name, class or setting", icon=":material/search:", live=True
    )
    chosen = choose.multiselect(
        "Columns", [c.id for c in COLUMNS], default=list(_USUAL), format_func=_TITLES.__getitem__, key="bill-columns"
    )
    names = ["none", *(device.name for device in DEVICES)]
    named = unit.selectbox("On a device", names, key="bill-device", help="What limits each module there.")
    percent = st.toggle("In percent of the whole", key="bill-percent")
    device = find_device(named) if named and named != "none" else None
    columns = [column for column in COLUMNS if column.id in chosen]
    rows = matching(report, words or "")
    if device is not None:
        st.caption(
            f"{device.name}: above {device.ridge:.0f} FLOPs a byte arithmetic is the limit, below it memory. One pass "
            f"takes at least {1000 * least_seconds(report, device):.3g} ms there, if nothing is fused."
        )
    st.caption(f"{counted(len(rows), 'module')} of {len(report.modules):,}. A heading sorts.")
    st.dataframe(
        frame(report, rows, columns, device, percent=percent),
        hide_index=True,
        height=table_height(len(rows), 560),
        column_config=settings(report, columns, percent=percent),
        alt="What each module costs",
    )
    for note in incomplete(report):
        st.html(f"<p><small>{escaped(note)}</small></p>")
    name = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in report.target)[:60]
    with st.container(horizontal=True):
        st.download_button("CSV", lambda: bill_csv(report, rows, device), f"{name}.csv", "text/csv", on_click="ignore")
        st.download_button(
            "Markdown", lambda: bill_markdown(report, rows, columns), f"{name}.md", "text/markdown", on_click="ignore"
        )
        st.download_button("JSON", lambda: as_json(report), f"{name}.json", "application/json", on_click="ignore")


@st.fragment
def show_memory(forward: Forward) -> None:
    """The peak of one pass or step, and what it is made of."""
    what, how = st.columns(2)
    purpose = what.selectbox("For", ["inference", *(f"training with {o}" for o in OPTIMIZERS)], key="memory-for")
    precision = str(how.selectbox("In", PRECISIONS, key="memory-precision"))
    optimizer = str(purpose).removeprefix("training with ") if purpose != "inference" else ""
    with said():
        found = forward.memory(optimizer, precision)
        row = [
            Figure(label="at the peak", says=human_bytes(found.peak_nbytes), exact=f"{found.peak_nbytes:,} bytes"),
            Figure(
                label="weights and buffers" if found.buffer_nbytes else "weights",
                says=human_bytes(found.parameter_nbytes + found.buffer_nbytes),
            ),
            Figure(label="input", says=human_bytes(found.input_nbytes)),
        ]
        if found.optimizer:
            row.append(Figure(label="the optimizer's state", says=human_bytes(found.optimizer_nbytes)))
        rest = "activations, gradients, work" if found.optimizer else "activations and work"
        figures([*row, Figure(label=rest, says=human_bytes(found.rest_nbytes))])
        where = f"The peak is in {found.at}. " if found.at else ""
        st.caption(
            f"{escaped(where)}What kernels use inside themselves and what an allocator keeps in reserve come on top."
        )


@st.fragment
def show_time(forward: Forward) -> None:
    """Measured on demand, on this server."""
    key = f"timed-{forward.key}"
    if st.button("Measure on this server", key=f"go-{key}", icon=":material/timer:"):
        with said():
            st.session_state[key] = forward.timing()
    found: TimingReport | None = st.session_state.get(key)
    if found is None:
        st.caption("Each module's time, with random numbers: three passes to warm up, ten measured.")
        return
    figures(
        [
            Figure(label="one pass", says=_ms(found.seconds)),
            Figure(label="between quartiles", says=_ms(found.spread)),
        ]
    )
    st.caption(escaped(f"{found.conditions}."))
    st.dataframe(
        pd.DataFrame(
            {
                "Module": [visible(m.path) for m in found.modules],
                "Kind": [m.kind for m in found.modules],
                "ms": [1000 * m.seconds for m in found.modules],
                "Spread": [1000 * m.spread for m in found.modules],
                "Share": [100 * m.seconds / found.seconds if found.seconds else 0.0 for m in found.modules],
            }
        ).sort_values("ms", ascending=False),
        hide_index=True,
        height=430,
        column_config={
            "Module": st.column_config.TextColumn(pinned=True),
            "ms": st.column_config.NumberColumn(format="%.3f"),
            "Spread": st.column_config.NumberColumn("Spread, ms", format="%.3f"),
            "Share": st.column_config.ProgressColumn("Share %", format="%.1f", min_value=0, max_value=100),
        },
        alt="Time of each module",
    )


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.3g} ms"
