"""A run: one picture through its checkpoints, as a strip in the order of training."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from inspector.cam.columns import Kind
from inspector.cam.targets.answers import infer_answer
from inspector.checkpoint.training_place import Place, in_order, place_of
from inspector.errors import InspectorError
from inspector.jobs.asked import Member, RunAsked, RunMade
from inspector.jobs.job import Job
from inspector.jobs.subjects import Naming, Wanted
from inspector.units import counted, human_bytes, human_duration
from inspector.web import jobs, reports, session
from inspector.web.dropzone import drop_zones
from inspector.web.explain import looking, strip
from inspector.web.explain.answer import stated_names
from inspector.web.explain.looking import Subject
from inspector.web.explain.several import start_button
from inspector.web.guard import show_error
from inspector.web.session import Hand
from inspector.web.text import escaped, plain
from inspector.web.trees import scrolled

MOST_CHECKPOINTS = 60
# Opening, recognising and building: 0.1 s and about 100 MB/s, measured on a ResNet-50 and a ShuffleNet.
_OPENING_SECONDS, _NBYTES_A_SECOND = 0.1, 1e8
_ARRIVED, _CHOSEN = "run-arrived", "run"
_SAME, _BEST = "the class chosen above", "each checkpoint's best class"


def show_run(subject: Subject, spec: Wanted, target: int, naming: Naming, threads: int) -> None:
    """Take checkpoints, show their order, say what they cost, work behind the page, show the strip.

    target: the class chosen above. threads: that torch computes with.
    """
    seen = looking.look_at(subject)
    if seen.kind is not Kind.CLASSES:
        st.info("Strips are for classifiers here; the command line makes them for pixels and boxes, with --series.")
        return
    hand = subject.hand
    best = reports.recognition_of(hand).best
    if best is None or reports.model_file(hand).code is not None:
        st.info("A strip needs an architecture that is recognised, so that all checkpoints are one network.")
        return
    st.caption(
        "The same picture through the checkpoints of one training run: when does the model begin to look at the "
        "thing, and does it go on to?"
    )
    hands = _choose(hand)
    if len(hands) < 2:
        st.caption("Add the run's other checkpoints, then a strip with one map for each appears here.")
        return
    members, by = _members(hands)
    st.html(_order_table(members, hand))
    st.caption(f"In the order of the {by} that they state." if by != "name" else _BY_NAME)
    if len(members) < 2:
        return
    which = st.segmented_control("Explain", (_SAME, _BEST), default=_SAME, required=True, key="run-class")
    wanted = target if which == _SAME else None
    asked = RunAsked(
        subject=subject.asked,
        members=tuple(members),
        wanted=spec,
        target=wanted,
        naming=naming,
        architecture=best.spec.label,
        own=None if subject.preprocessing.source == "set on this page" else subject.preprocessing,
        stated=stated_names(hand),
        own_answer=naming.answer if naming.answer is infer_answer(reports.checkpoint_of(hand)) else None,
    )
    job = Job(kind="run", arguments=(asked,), near=hand.sha256)
    one_map = looking.cost_of(subject, spec).whole
    seconds = sum(_OPENING_SECONDS + session.nbytes_of(_hand(one)) / _NBYTES_A_SECOND + one_map for one in members)
    says = f"Make the strip · {counted(len(members), 'checkpoint')}, about {human_duration(seconds)}"
    if not start_button(job, says, name="run", icon=":material/view_column:"):
        return
    made: RunMade | None = jobs.await_job(job, title=f"Looking through {counted(len(members), 'checkpoint')}")
    if made is not None:
        strip.show(made, subject, naming.names, wanted, threads)


def _hand(member: Member) -> Hand:
    return Hand(sha256=member.file.sha256, name=member.file.name)


_BY_NAME = (
    "In the order of their names, numbers by their value: not all of them state an epoch or a step that orders them."
)


def _choose(hand: Hand) -> list[Hand]:
    """The file in hand and what the visitor adds to it, from this session or by dropping it here."""
    arrived: list[Hand] = st.session_state.setdefault(_ARRIVED, [])
    kept: list[str] = st.session_state.get(_CHOSEN, [])
    box = f"run-files-{hand.sha256}"
    with st.container(key="run-drop"):
        came = [Hand(sha256=one.sha256, name=one.names[session.owner()]) for one in drop_zones("run-zone")]
    known = {one.sha256 for one in arrived}
    arrived += [one for one in came if one.sha256 not in known]
    offered = {one.sha256: one for one in (*arrived, *(entry.hand for entry in session.recent()))}
    offered.pop(hand.sha256, None)
    if not offered:
        return [hand]
    chosen = st.session_state.get(box)
    if chosen is None:
        # Another file of the same run in hand: the run stays.
        chosen = kept if hand.sha256 in kept else []
    wanted = dict.fromkeys([*chosen, *(one.sha256 for one in came)])
    st.session_state[box] = [digest for digest in wanted if digest in offered]
    digests: list[str] = st.multiselect(
        "The run's other checkpoints",
        list(offered),
        key=box,
        format_func=lambda digest: offered[digest].name,
        placeholder="files of this session",
        max_selections=MOST_CHECKPOINTS - 1,
    )
    st.session_state[_CHOSEN] = [hand.sha256, *digests]
    return [hand, *(offered[digest] for digest in digests)]


def _members(hands: Sequence[Hand]) -> tuple[list[Member], str]:
    """(those that can be opened, in the order of the run, what orders them); the others are said."""
    found: list[Member] = []
    for hand in hands:
        try:
            found.append(Member(file=reports.file_of(hand), place=_place(hand.sha256, hand.name)))
        except InspectorError as error:
            st.warning(f"**{plain(hand.name)}** is left out.", icon=":material/warning:")
            show_error(error)
    order, by = in_order([(one.file.name, one.place) for one in found])
    return [found[position] for position in order], by


@st.cache_data(max_entries=512, show_spinner="Reading the file …")
def _place(sha256: str, name: str) -> Place:
    checkpoint = reports.open_anew(sha256, name)
    try:
        return place_of(checkpoint)
    finally:
        checkpoint.source.close()


def _order_table(members: Sequence[Member], hand: Hand) -> str:
    """The run before the work, as HTML."""

    def number(value: float | None) -> str:
        return "" if value is None else f"{value:.12g}"

    rows = "".join(
        f'<tr><td class="mi-num">{at}</td><td>{escaped(one.file.name)}{_IN_HAND if _hand(one) == hand else ""}</td>'
        f'<td class="mi-num">{number(one.place.epoch)}</td><td class="mi-num">{number(one.place.step)}</td>'
        f'<td class="mi-num">{escaped(human_bytes(session.nbytes_of(_hand(one))))}</td></tr>'
        for at, one in enumerate(members, start=1)
    )
    heads = "".join(f'<th class="mi-num">{head}</th>' for head in ("Epoch", "Step", "Size"))
    return (
        f'{scrolled("checkpoints of the run")}<table class="mi-table" data-table="run"><thead><tr><td></td>'
        f"<th>Checkpoint</th>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


_IN_HAND = ' <span class="mi-count">in hand</span>'
