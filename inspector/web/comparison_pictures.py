"""Two files held against each other as pictures: the network coloured by change, and both fingerprints."""

from __future__ import annotations

import math
from collections.abc import Iterator

import streamlit as st

from inspector.architectures.types import ArchitectureSpec
from inspector.checkpoint.types import StateDict
from inspector.compare.fingerprints import fingerprint_pairs
from inspector.compare.modules import below_modules, change_of, total_of
from inspector.compare.report import Diff, Relation, TensorDiff
from inspector.errors import InspectorError
from inspector.graph.nesting import CALL
from inspector.graph.types import CARRIES_GRAPH, Box, Drawn
from inspector.render import figures as plots
from inspector.units import human_distance, human_share
from inspector.web import measuring, network, reports
from inspector.web.charts import draw_chart
from inspector.web.components import Figure, figures
from inspector.web.drawing import show_drawing
from inspector.web.forwards import Known
from inspector.web.session import Hand
from inspector.web.text import mono, plain

_CHOSEN = "comparison-chosen"
_RELATIVE, _SHARE = "Relative L2", "Share changed"
# Read beside the comparison without being asked for: a second or two each.
_AT_ONCE_NBYTES = 500_000_000


def draw_network(diff: Diff, hand: Hand, state: StateDict | None) -> None:
    """The first file's network, coloured by how far each module moved; nothing where nobody knows it."""
    found = _drawn(hand, state)
    if found is None:
        return
    drawn, names = found
    below = below_modules(diff.tensors, names)
    st.header("The network, coloured by change")
    _show(drawn, below, f"change-{diff.a.sha256}-{diff.b.sha256}")


@st.fragment
def _show(drawn: Drawn, below: dict[str, list[TensorDiff]], key: str) -> None:
    changes = {box.module: change_of(_of_box(box, below)) for box in _boxes(drawn.box) if box.module}
    columns = {
        title: {module: change[nth] for module, change in changes.items() if change is not None}
        for nth, title in enumerate((_RELATIVE, _SHARE))
    }

    def choose(box: Box) -> None:
        st.session_state[_CHOSEN] = (key, box.path)

    state = st.session_state.get(_CHOSEN)
    chosen = state[1] if isinstance(state, tuple) and state[0] == key else ""
    show_drawing(
        drawn.box, key=key, columns=columns, chosen=chosen, on_choice=choose, says=drawn.says, coloured=_RELATIVE
    )
    box = next((one for one in _boxes(drawn.box) if one.path == chosen), None)
    if box is None or not box.module:
        st.caption(
            "Relative L2 is |second - first| / |first| over the tensors that are not the same. Grey is what holds "
            "none, or where NaN came."
        )
        return
    tensors = _of_box(box, below)
    total, change = total_of(tensors), change_of(tensors)
    st.html(f"<p class='mi-chosen'><b>{mono(box.module)}</b> {mono(box.kind)}</p>")
    row = [
        Figure(label="tensors", says=f"{total.tensors:,}"),
        Figure(label="same", says=f"{total.count(Relation.SAME):,}"),
    ]
    if change is not None:
        row += [
            Figure(label="relative L2", says=human_distance(change[0]) if math.isfinite(change[0]) else "NaN came"),
            Figure(label="of its numbers changed", says=human_share(change[1])),
        ]
    figures(row)


def _boxes(box: Box) -> Iterator[Box]:
    waiting = [box]
    while waiting:
        here = waiting.pop()
        yield here
        waiting.extend(here.children)


def _of_box(box: Box, below: dict[str, list[TensorDiff]]) -> list[TensorDiff]:
    """Pairs below it, each once; of equal neighbours folded into one box those of all."""
    # What is called again has a path of its own, and is the same module.
    modules = dict.fromkeys(CALL.sub("", path) for path in box.repeated) if box.repeated else {box.module: None}
    found = {tensor.name: tensor for module in modules for tensor in below.get(module, ())}
    return list(found.values())


def _drawn(hand: Hand, state: StateDict | None) -> tuple[Drawn, dict[str, tuple[str, ...]]] | None:
    """(the graph, what its network calls each tensor of the file); None where there is none to draw."""
    if reports.checkpoint_of(hand).format in CARRIES_GRAPH:
        carried = network.carried(hand)
        if carried is not None:
            tensors = state.tensors if state is not None else reports.checkpoint_of(hand).tensors
            return carried, {tensor.name: (tensor.name,) for tensor in tensors}
    best = reports.recognition_of(hand, state).best if state is not None else None
    if best is None or best.spec.assumed or reports.why_another(hand, state):
        return None
    try:
        target = reports.own_target(hand, state)
        plan = reports.keys_of(hand, target, state).plan if target is not None else None
        if plan is None:
            return None
        names: dict[str, tuple[str, ...]] = {}
        for step in plan.steps:
            for source in step.sources if step.target is not None else ():
                names[source] = (*names.get(source, ()), str(step.target))
        return Known(best.spec, _size(best.spec), 1).drawn(), names
    except InspectorError as error:
        st.caption(plain(f"The network cannot be drawn: {error.says}"))
        return None


def _size(spec: ArchitectureSpec) -> tuple[int, ...] | None:
    return reports.default_input(spec) if reports.takes_pictures(spec) else None


def draw_fingerprints(diff: Diff, hand: Hand, state: StateDict | None, other: Hand, its: StateDict | None) -> None:
    """Both heat strips, a row for each pair."""
    st.header("Both fingerprints")
    nbytes = diff.a.nbytes + diff.b.nbytes
    known = [measuring.health_if_read(*one) for one in ((hand, state), (other, its))]
    if (
        nbytes > _AT_ONCE_NBYTES
        and None in known
        and not st.session_state.get(f"fingerprints-{diff.b.sha256}")
        and not st.button(
            "Read both files' numbers", key=f"fingerprints-{diff.b.sha256}-go", icon=":material/bar_chart:"
        )
    ):
        return
    st.session_state[f"fingerprints-{diff.b.sha256}"] = True
    first, second = measuring.health_report(hand, state), measuring.health_report(other, its)
    if first is None or second is None:
        st.skeleton(height=300)
        return
    left, right = fingerprint_pairs(diff.tensors, first.weights, second.weights)
    if not left.names:
        st.caption("No pair of them has two or more dimensions, so there are no layers to draw.")
        return
    st.caption(plain(f"A row per pair of weights: {left.scale}. Colour is the share of its values in the bin."))
    columns = st.columns([1.35, 1])
    for column, strip, name, side in zip(
        columns, (left, right), (hand.name, other.name), ("first", "second"), strict=True
    ):
        with column:
            st.markdown(f"**{plain(name)}**")
            figure = plots.fingerprint_figure(strip)
            figure.update_traces(showscale=False)
            if side == "second" and right.names == left.names:
                figure.update_yaxes(showticklabels=False)
            draw_chart(figure, key=f"fingerprint-{side}", alt=f"Layers by values heat strip of the {side} file")
