"""The tabs of the Architecture page: drawing, tree, table, memory, time, evidence. Only the open one is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from inspector.checkpoint.types import StateDict
from inspector.errors import InspectorError, NeedsValues
from inspector.flops.report import CostReport
from inspector.graph.types import Drawn
from inspector.params.report import ParameterReport
from inspector.units import human_bytes, human_count, human_macs
from inspector.web import architecture, bill, network
from inspector.web.address_line import write_address
from inspector.web.components import Figure, figures
from inspector.web.forwards import Forward
from inspector.web.guard import said, show_error
from inspector.web.module_held import Held
from inspector.web.session import Hand
from inspector.web.text import plain
from inspector.web.trees import draw_tree, module_branch

# Of the address: the open tab, by its name.
_TAB = "tab"


def ask_costs(forward: Forward) -> CostReport | None:
    """What the pass costs; where that takes numbers, a box that says so. None where it cannot be told."""
    with said():
        try:
            return forward.costs()
        except NeedsValues as error:
            if st.checkbox("Run it once with random numbers", key=f"real-{forward.key}"):
                return forward.costs(real=True)
            show_error(error)
    return None


def try_costs(forward: Forward) -> tuple[CostReport | None, InspectorError | None]:
    """The same of one's own code: what the pass costs, or why it was not counted, which is not said here: what fails is
    told better by a pass that is watched."""
    try:
        return forward.costs(), None
    except NeedsValues:
        return ask_costs(forward), None
    except InspectorError as error:
        return None, error


def show_totals(counts: ParameterReport | None, costs: CostReport | None) -> None:
    """Parameters as the file has them, and what a pass costs."""
    row: list[Figure] = []
    if counts is not None:
        total = counts.total
        row.append(Figure(label="parameters", says=human_count(total.parameters), exact=f"{total.parameters:,}"))
        if counts.trainable is not None:
            row.append(Figure(label="trainable", says=human_count(counts.trainable), exact=f"{counts.trainable:,}"))
        row += [
            Figure(label="in buffers", says=human_count(total.buffers), exact=f"{total.buffers:,}"),
            Figure(
                label="weights", says=human_bytes(total.parameter_nbytes), exact=f"{total.parameter_nbytes:,} bytes"
            ),
        ]
    elif costs is not None:
        row += [
            Figure(label="parameters", says=human_count(costs.parameters), exact=f"{costs.parameters:,}"),
            Figure(label="trainable", says=human_count(costs.trainable), exact=f"{costs.trainable:,}"),
            Figure(
                label="weights", says=human_bytes(costs.parameter_nbytes), exact=f"{costs.parameter_nbytes:,} bytes"
            ),
        ]
    if costs is not None:
        bound = "at least " if costs.uncounted else ""
        moved = costs.read_nbytes + costs.written_nbytes
        row += [
            Figure(label="MACs", says=bound + human_macs(costs.macs), exact=f"{costs.macs:,}"),
            Figure(label="FLOPs (2 x MACs)", says=bound + human_macs(costs.flops), exact=f"{costs.flops:,}"),
            Figure(label="forward/backward", says=human_bytes(costs.forward_backward_nbytes)),
            Figure(label="memory traffic", says=human_bytes(moved), exact=f"{moved:,} bytes read and written"),
        ]
    figures(row)


def show_views(views: dict[str, Callable[[], None]], *, key: str) -> None:
    """A tab for each; only the open one runs. It stands in the address, and a link opens it.

    Not by `bind`: Streamlit then lets nobody write the address as a whole, as `session.follow_link` does.
    """
    linked = st.query_params.get(_TAB, "")
    # Once it was chosen on the page, the link has had its say.
    if linked in views and key not in st.session_state:
        st.session_state[key] = linked
    tabs = st.tabs(list(views), key=key, on_change="rerun")
    opened = next((name for name, tab in zip(views, tabs, strict=True) if tab.open), "")
    write_address({_TAB: opened if opened != next(iter(views), "") else ""}, key=f"{key}-address-line")
    for (_, show), tab in zip(views.items(), tabs, strict=True):
        if tab.open:
            with tab, said():
                show()


def drawing_view(
    hand: Hand | None,
    forward: Forward | None,
    costs: CostReport | None,
    counts: ParameterReport | None,
    held: Held | None = None,
) -> None:
    """The graph that the file carries, else that of the pass. held: the file whose tensors and findings are told."""
    drawn: Drawn | None = network.carried(hand) if hand is not None else None
    carries = drawn is not None
    if drawn is None and forward is not None:
        try:
            drawn = forward.drawn()
        except NeedsValues as error:
            st.caption(f"It cannot be drawn: {plain(error.says)}")
            return
    if drawn is None:
        st.caption("The file carries no graph that can be drawn.")
        return
    name = hand.sha256[:12] if hand is not None else ""
    if held is not None and carries:
        held = replace(held, own_names=True)
    network.show_network(drawn, costs, counts, key=f"drawing-{name}-{forward.key if forward else ''}", held=held)


def tree_view(state: StateDict, counts: ParameterReport, costs: CostReport | None) -> None:
    """Modules with what goes out of them, or what the file holds of each."""
    if costs is not None:
        draw_tree(architecture.cost_tree(costs, counts), heads=("parameters", "MACs"), open_depth=2)
    elif state.is_module:
        draw_tree([module_branch(state.modules)], heads=("elements",), open_depth=2)
    else:
        draw_tree(architecture.count_tree(counts), heads=("parameters", "bytes"), open_depth=2)


def bill_views(forward: Forward, costs: CostReport) -> dict[str, Callable[[], None]]:
    """What a pass costs, in the order of the tabs."""
    return {
        "Table": lambda: bill.show_table(costs),
        "Memory": lambda: bill.show_memory(forward),
        "Time": lambda: bill.show_time(forward),
    }
