"""The rows of a tensor as a map on the Projector page: what is chosen, the job behind it, the names of the rows."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from inspector.checkpoint.types import Checkpoint, StateDict, TensorInfo
from inspector.health.roles import roles_of
from inspector.installed import install_line, is_installed
from inspector.jobs.job import Job
from inspector.jobs.kinds.table import sized
from inspector.jobs.subjects import ProjectionAsked
from inspector.projections import head_labels
from inspector.projector.clusters import MOST as MOST_CLUSTERS
from inspector.projector.labels import MOST_NBYTES, labels_at, labels_for, parse_labels
from inspector.projector.methods import METHODS, method_named
from inspector.projector.report import Neighbour, Points, Projection
from inspector.projector.rows import may_be_projected, proposed_tensor, usual_axis
from inspector.render.projection_figure import MOST_3D
from inspector.units import human_shape
from inspector.web import jobs, reports
from inspector.web.explain.choices import folded
from inspector.web.guard import said
from inspector.web.projector_map import Source, show_map
from inspector.web.session import Hand
from inspector.web.text import plain, visible

_ROWS, _COLUMNS = "rows", "columns"
# t-SNE takes a minute for as many points.
_LONG_METHOD_NBYTES = 2_000_000_000
_NEAR = 10


def show_rows(hand: Hand, checkpoint: Checkpoint, state: StateDict | None) -> None:
    """Tensor, direction and method are chosen and stand in the address; the map follows."""
    tensors = state.tensors if state is not None else checkpoint.tensors
    fit = {visible(tensor.name): tensor for tensor in tensors if may_be_projected(tensor)}
    if not fit:
        st.info("No tensor of this file has two or more dimensions: there are no rows to draw.", icon=":material/info:")
        return
    top = st.empty()
    roles = dict(roles_of(tensors))
    first = proposed_tensor(fit.values(), roles)
    start = list(fit).index(visible(first.name)) if first is not None else 0
    left, right = st.columns([3, 1.2], vertical_alignment="bottom")
    name = left.selectbox("Tensor", list(fit), index=start, key="tensor", bind="query-params")
    tensor = fit[str(name)] if name in fit else fit[list(fit)[start]]
    usual = usual_axis(roles[tensor.path])
    along = right.segmented_control(
        "A point for each", (_ROWS, _COLUMNS), default=(_ROWS, _COLUMNS)[usual], required=True, key="along",
        bind="query-params", width="stretch",
        help="Rows lie along the tensor's first axis, columns along its second; what lies along the others is "
        "flattened. Filters of a convolution are rows.",
    )  # fmt: skip
    axis = 1 if along == _COLUMNS else 0
    asked = choose_method(rows=tensor.shape[axis])
    labels = _names(hand, checkpoint, state, tensor, axis)
    with said():
        found = _projection(hand, state, tensor, axis, asked)
        if found is None:
            st.skeleton(height=560)
            return
        if labels:
            found = replace(found, labels=labels_at(labels, found.numbers.tolist()))
        file = reports.file_of(hand, state)

        def near(number: int, metric: str) -> tuple[Neighbour, ...]:
            arguments = (file, tensor.path, axis, number, metric, _NEAR)
            made: tuple[Neighbour, ...] = jobs.ask(Job(kind="neighbours", arguments=arguments, near=hand.sha256))
            return made

        def vectors() -> Points:
            made: Points = jobs.ask(Job(kind="vectors", arguments=(file, tensor.path, axis), near=hand.sha256))
            return made

        st.caption(plain(f"{visible(tensor.name)}: {human_shape(tensor.shape)} of {tensor.dtype}"))
        show_map(Source(projection=found, near=near, vectors=vectors, key=f"rows-{hand.sha256[:12]}"), top)


def choose_method(*, rows: int) -> ProjectionAsked:
    """How the map is made: all of it stands in the address. rows: how many there are."""
    titles = {method.title: method for method in METHODS}
    left, middle, right, last = st.columns([2.2, 1, 1, 1], vertical_alignment="bottom")
    title = left.segmented_control(
        "Method", list(titles), default=METHODS[0].title, required=True, key="method", bind="query-params",
        help=" ".join(f"{method.title}: {method.says}" for method in METHODS),
    )  # fmt: skip
    method = titles.get(str(title), METHODS[0])
    can_group = is_installed("sklearn")
    clusters = middle.number_input(
        "Groups", 0, MOST_CLUSTERS, 0, key="groups", bind="query-params", disabled=not can_group,
        help="By k-means; 0 for none." if can_group else f"Needs scikit-learn. {install_line('sklearn')}",
    )  # fmt: skip
    clusters = int(clusters or 0) if can_group else 0
    chance = method.seeded or clusters > 0
    seed = right.number_input(
        "Seed", 0, 2**31 - 1, 0, key="seed", bind="query-params", disabled=not chance,
        help="The same seed gives the same map." if chance else "Nothing in this method is chance.",
    )  # fmt: skip
    drawn = min(rows, method_named(method.id).most)
    deep = last.toggle(
        "3-D", key="deep", bind="query-params", disabled=drawn > MOST_3D,
        help=f"Up to {MOST_3D:,} points. Points are chosen on the flat map.",
    )  # fmt: skip
    components = 3 if deep and drawn <= MOST_3D else 2
    return ProjectionAsked(
        method=method.id, components=components, seed=int(seed or 0) if chance else 0, clusters=clusters
    )


def _projection(
    hand: Hand, state: StateDict | None, tensor: TensorInfo, axis: int, asked: ProjectionAsked
) -> Projection | None:
    nbytes = tensor.nbytes if asked.method == "pca" else tensor.nbytes + _LONG_METHOD_NBYTES
    kind = sized("projection", nbytes)
    job = Job(kind=kind, arguments=(reports.file_of(hand, state), tensor.path, axis, asked), near=hand.sha256)
    found: Projection | None = jobs.await_job(job, title="Making the map")
    return found


def _names(
    hand: Hand, checkpoint: Checkpoint, state: StateDict | None, tensor: TensorInfo, axis: int
) -> tuple[str, ...]:
    """Of the rows: from a list that the visitor gives, else the classes that the file states for its head."""
    stated = head_labels(checkpoint, reports.recognition_of(hand, state), tensor, state, axis=axis)
    place = f"names-{hand.sha256[:12]}"
    words = "Names of the rows · the file's classes" if stated else "Names of the rows"
    with folded(words, key=f"{place}-open", icon=":material/label:"), said():
        given = st.file_uploader(
            "A name a line, vocab.json, tokenizer.json or a projector's metadata",
            type=["txt", "tsv", "json"],
            key=f"{place}-{tensor.name!a}-{axis}",
            max_upload_size=MOST_NBYTES // 1_000_000,
        )
        if given is not None:
            return labels_for(parse_labels(given.getvalue(), given.name), tensor.shape[axis], given.name)
    return stated
