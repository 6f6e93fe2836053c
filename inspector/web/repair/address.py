"""What was answered on the Repair page as it stands in the address: a link or a reload finds the same repair again.

The address is taken up once for each session, for the target whose names it was answered for. Whoever made the link
made up what stands in it, so an answer counts only where the page asks for it and offers that option; what is left is
said.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode

import streamlit as st

from inspector.architectures.types import Target
from inspector.keys.report import RepairPlan
from inspector.units import shorten_middle
from inspector.web.address_line import write_address
from inspector.web.explain.choices import LINKED
from inspector.web.repair.choices import Answers, lacks
from inspector.web.repair.targets import NAME_SLOT, WAY_SLOT, builder_names
from inspector.web.text import plain, visible

_TAKEN, _LEFT = "repair-address", "repair-address-left"
_TARGET, _TO, _CHOOSE, _ACCEPT, _PART = "target", "to", "choose", "accept", "part"
# Of an address; browsers and servers take no more for certain.
_LONGEST, _MOST = 2000, 100
_TOLD = 3


@dataclass(slots=True)
class Linked:
    """What a link answers for one target and was not taken up yet.

    to: as `_digest` says. is_over: everything that the page asks for was taken up, and what is left is only said.
    """

    to: str
    choose: dict[str, str] = field(default_factory=dict)
    accept: set[str] = field(default_factory=set)
    partial: bool = False
    is_over: bool = False

    def left(self) -> list[str]:
        """In the words of the address."""
        part = ["a part is enough"] if self.partial else []
        return [*(f"{key}={option}" for key, option in self.choose.items()), *sorted(self.accept), *part]


def take_up() -> None:
    """Once for each session, before the target is asked for: a model that is named, and the answers to be given."""
    if st.session_state.get(_TAKEN):
        return
    st.session_state[_TAKEN] = True
    asked = st.query_params.to_dict()
    name = asked.get(_TARGET, "")
    if name and name in builder_names():
        st.session_state[WAY_SLOT], st.session_state[NAME_SLOT] = "named", name
    elif name:
        st.session_state[LINKED] = {NAME_SLOT: name}
    if asked.get(_TO):
        st.session_state[_LEFT] = Linked(
            to=asked[_TO],
            choose=dict(_pairs(asked.get(_CHOOSE, ""))),
            accept={rule for rule, _ in _pairs(asked.get(_ACCEPT, ""))},
            partial=asked.get(_PART) == "1",
        )


def give(answers: Answers, plan: RepairPlan | None, target: Target) -> bool:
    """Answer what the link answers and the page asks; whether there was any. What one answer opens is asked with the
    next diagnosis."""
    linked = _linked(target)
    if linked is None or linked.is_over:
        return False
    before = answers.as_key
    for key, option in list(linked.choose.items()):
        question = next((q for q in answers.asked.values() if key in {q.id, *map(q.at, q.places)}), None)
        if question is not None and option in dict(question.options):
            answers.choose[key] = linked.choose.pop(key)
    if plan is not None:
        offered = linked.accept & set(plan.needs_accept) & {use.id for use in plan.rules}
        answers.accept |= offered
        linked.accept -= offered
        if linked.partial and lacks(plan):
            answers.partial, linked.partial = True, False
    linked.is_over = answers.as_key == before
    return not linked.is_over


def say_left(target: Target) -> None:
    """What of the link is asked nowhere here, until somebody answers on the page."""
    linked = _linked(target)
    left = linked.left() if linked is not None and linked.is_over else []
    if left:
        named = ", ".join(f"“{visible(shorten_middle(one, 60))}”" for one in left[:_TOLD])
        more = f" and {len(left) - _TOLD:,} more" if len(left) > _TOLD else ""
        st.caption(f":material/link_off: {plain(f'The link answers {named}{more}, which is not asked here.')}")


def forget(target: Target) -> None:
    """Somebody answers on the page: what the link says does not matter any more."""
    if _linked(target) is not None:
        del st.session_state[_LEFT]


def chosen(answers: Answers, target: Target) -> dict[str, str]:
    """What is answered now, as the address says it; "" for what is not, and for more than an address holds."""
    named = st.session_state.get(NAME_SLOT) if st.session_state.get(WAY_SLOT) == "named" else ""
    given = {
        _CHOOSE: urlencode(sorted(answers.choose.items())),
        _ACCEPT: urlencode([(rule, "1") for rule in sorted(answers.accept)]),
        _PART: "1" if answers.partial else "",
    }
    if any(len(text) > _LONGEST for text in given.values()) or len(answers.choose) > _MOST:
        given = dict.fromkeys(given, "")
    return {_TARGET: str(named or ""), _TO: _digest(target) if any(given.values()) else "", **given}


def follow(answers: Answers, target: Target) -> None:
    """Write it into the browser's address, in place."""
    write_address(chosen(answers, target), key="repair-address-line")


def _linked(target: Target) -> Linked | None:
    held = st.session_state.get(_LEFT)
    return held if isinstance(held, Linked) and held.to == _digest(target) else None


def _digest(target: Target) -> str:
    """Of the names that are asked for: two pasted lists have one label, and what is confirmed of a model changes
    its label."""
    names = "\n".join(tensor.name for tensor in target.tensors)
    return hashlib.sha256(names.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _pairs(text: str) -> Sequence[tuple[str, str]]:
    try:
        return parse_qsl(text, max_num_fields=_MOST) if len(text) <= _LONGEST else ()
    except ValueError:
        return ()
