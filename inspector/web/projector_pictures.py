"""The visitor's pictures as a map of what they are at a layer: chosen, run, and drawn as pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import streamlit as st
from PIL import Image
from streamlit.delta_generator import DeltaGenerator

from inspector.cam.report import Preprocessing
from inspector.doctor.maps_asked import MapsAsked, Side
from inspector.doctor.report import Trace
from inspector.jobs.job import Job
from inspector.jobs.subjects import PicturesProjected
from inspector.projector.neighbours import Metric, nearest
from inspector.units import counted, human_shape
from inspector.web import assumptions, jobs, reports
from inspector.web.explain import answer, inputs
from inspector.web.explain.choices import choose_one
from inspector.web.explain.pictures import MEGABYTES, TYPES, Picture, sample_pictures
from inspector.web.explain.sprites import data_address
from inspector.web.guard import said
from inspector.web.projector import choose_method
from inspector.web.projector_map import Source, show_map
from inspector.web.session import Hand
from inspector.web.text import plain, visible

MOST_PICTURES = 200
_BY_NAME, _BY_ANSWER = "file names", "what the model answers"


def show_pictures(hand: Hand) -> None:
    """Pictures, a layer, a method; then the map. Raises where there is no model to run."""
    best = reports.recognition_of(hand).best
    if best is not None and best.spec.assumed and assumptions.ask(best.spec).assumed:
        st.caption("The map appears here once that is confirmed: the model's answers depend on it.")
        return
    reports.facts_of(hand)  # says at once, in one sentence, when there is no model to run
    top = st.empty()
    taken = _choose_pictures()
    preprocessing = inputs.edit(inputs.inferred(hand), hand.sha256)
    if len(taken) < 2:
        st.caption("A map of the pictures appears here once there are two or more.")
        return
    place = _choose_layer(hand, taken[0], preprocessing)
    if place is None:
        return
    asked = choose_method(rows=len(taken))
    refs, names = tuple(one.ref for one in taken), tuple(one.name for one in taken)
    arguments = (reports.model_file(hand), refs, names, preprocessing, place, asked)
    job = Job(kind="pictures-projection", arguments=arguments, near=hand.sha256)
    with said():
        found: PicturesProjected | None = jobs.await_job(job, title=f"Looking at {counted(len(taken), 'picture')}")
        if found is None:
            st.skeleton(height=560)
            return
        for name, says in found.failed:
            st.warning(f"{plain(name)}: {plain(says)}", icon=":material/warning:")
        _show(hand, found, top)


def _show(hand: Hand, found: PicturesProjected, top: DeltaGenerator) -> None:
    projection = found.projection
    if any(one >= 0 for one in found.answers):
        by = st.segmented_control(
            "Called by", (_BY_NAME, _BY_ANSWER), default=_BY_NAME, required=True, key="called-by", bind="query-params"
        )
        if by == _BY_ANSWER:
            projection = replace(projection, labels=_answers(hand, found))
    points = replace(found.points, labels=projection.labels)
    sprites = {at: data_address(Image.fromarray(one), quality=85) for at, one in enumerate(found.thumbnails)}
    show_map(
        Source(
            projection=projection,
            near=lambda number, metric: nearest(points, number, metric=Metric(metric)),
            vectors=lambda: points,
            key=f"pictures-{hand.sha256[:12]}",
            sprites=sprites,
        ),
        top,
    )


def _answers(hand: Hand, found: PicturesProjected) -> tuple[str, ...]:
    names = answer.stated_names(hand)
    return tuple("" if one < 0 else names[one] if one < len(names) else f"class {one}" for one in found.answers)


def _choose_pictures() -> list[Picture]:
    uploads = st.file_uploader(
        "Pictures", type=TYPES, accept_multiple_files=True, key="projected-pictures", max_upload_size=MEGABYTES,
        help=f"At most {MOST_PICTURES}. A folder can be dropped here too.",
    )  # fmt: skip
    samples = st.toggle("With the pictures that come with the samples", value=not uploads, key="projected-samples")
    taken = [Picture(name=path.name, data=path.read_bytes()) for path in (sample_pictures() if samples else ())]
    taken += [Picture(name=upload.name, data=upload.getvalue()) for upload in uploads or ()]
    if len(taken) > MOST_PICTURES:
        st.warning(f"{len(taken)} pictures: the first {MOST_PICTURES} are taken.", icon=":material/warning:")
    return taken[:MOST_PICTURES]


def _choose_layer(hand: Hand, picture: Picture, preprocessing: Preprocessing) -> MapsAsked | None:
    """What the head reads at the start: the last vector before the answer. None where the pass fails, which is said."""
    job = Job(
        kind="trace",
        arguments=(reports.model_file(hand), (picture.ref, preprocessing), 1, False),
        near=hand.sha256,
    )
    trace: Trace = jobs.ask(job, says="Watching a forward pass")
    if trace.failure is not None:
        st.error("The model does not run on this picture: Run it, on the Architecture page, says why.")
        return None
    places = layers_of(trace)
    if not places:
        st.caption("No module of this pass has a tensor with a batch: there is nothing to draw.")
        return None
    words = {word: visible(word) for word in places}
    chosen = choose_one("Layer", words, f"projected-layer-{hand.sha256[:12]}", first=next(iter(words)))
    st.caption("Of a map the mean over its places is taken, of tokens that over their patches.")
    return places[chosen or next(iter(words))]


def layers_of(trace: Trace) -> Mapping[str, MapsAsked]:
    """What a picture may be taken at, the likeliest first: what the last linear layer reads, then each module's output
    in the order of the pass."""
    found: dict[str, MapsAsked] = {}
    heads = [call for call in trace.calls if call.kind == "Linear" and call.inputs and len(call.inputs[0].shape) == 2]
    if heads:
        head = heads[-1]
        shape = human_shape(head.inputs[0].shape)
        found[f"what {head.path} reads · {shape}"] = MapsAsked(path=head.path, time=head.time, side=Side.INPUT)
    several = {call.path for call in trace.calls if call.time > 1}
    for call in trace.calls:
        if not call.outputs or len(call.outputs[0].shape) < 2:
            continue
        which = f", call {call.time}" if call.path in several else ""
        word = f"{call.path or '(the model)'}{which} · {call.kind} · {human_shape(call.outputs[0].shape)}"
        found[word] = MapsAsked(path=call.path, time=call.time, side=Side.OUTPUT)
    return found
