"""A second file beside the one in hand: chosen from what is there or dropped, kept in the address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from inspector.units import counted
from inspector.web import samples, session
from inspector.web.dropzone import drop_zone
from inspector.web.guard import said
from inspector.web.server_paths import listing, named, server_root, store_path
from inspector.web.session import Hand
from inspector.web.store import Stored, is_digest, linked_name, the_store
from inspector.web.text import plain, visible

_QUERY, _NAME = "with", "with-name"
_ITSELF, _RECENT, _SAMPLE, _SERVER = "itself", "recent", "sample", "server"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """In which words a page asks for its second file. question: above the boxes. button: that takes what was chosen."""

    question: str = "With which other file?"
    button: str = "Compare"


_COMPARED = Asked()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """One line of the list. what: where it comes from. which: the digest, sample or path."""

    what: str
    which: str
    says: str


def second_file(
    hand: Hand, *, itself: bool = False, fitting: Sequence[str] = (), asked: Asked = _COMPARED
) -> Hand | None:
    """The other file, None while there is none; the boxes to choose it are drawn then, else its name and a way back.

    itself: whether the file in hand may be it (it holds several state dicts). fitting: samples whose buttons are shown.
    """
    found = _in_address()
    if found is not None:
        return found
    with st.container(border=True, key="second-file"):
        st.markdown(f"**{asked.question}**")
        _say_gone()
        arrived = drop_zone("second-drop")
        if arrived is not None:
            _choose(_kept(arrived))
        box, go = st.columns([6, 1.2], vertical_alignment="bottom")
        choices = _choices(hand, itself)
        chosen = box.selectbox(
            "Or one that is here already",
            choices,
            index=None,
            format_func=lambda choice: visible(choice.says),
            placeholder=f"type a part of the name: {counted(len(choices), 'file')}",
            # Letters in their order, wherever they stand, find most of a folder of checkpoints.
            filter_mode="contains",
            # Not every file of a large folder is listed.
            accept_new_options=server_root() is not None,
            key="second-choice",
        )
        if go.button(asked.button, disabled=chosen is None, key="second-go", width="stretch") and chosen is not None:
            with said():
                _choose(_taken(hand, _meant(chosen, choices) if isinstance(chosen, str) else chosen))
        offered = [sample for sample in samples.some(fitting) if sample.path.is_file()]
        with st.container(horizontal=True):
            for sample in offered:
                if st.button(plain(f"Try “{sample.title}”"), key=f"second-{sample.id}", icon=":material/science:"):
                    with said():
                        _choose(_kept(samples.store(sample), sample.file))
    return None


def beside(stored: Stored, name: str = "") -> dict[str, str]:
    """What stands in the address of a page that shows this one as the second file."""
    hand = _kept(stored, name)
    return {_QUERY: hand.sha256, _NAME: hand.name}


def in_address() -> dict[str, str]:
    """What the address says of the second file, for a link to another page that shows it, too."""
    return {name: st.query_params[name] for name in (_QUERY, _NAME) if name in st.query_params}


def put_down() -> None:
    """Choose another one."""
    for name in (_QUERY, _NAME):
        st.query_params.pop(name, None)


def _choose(hand: Hand) -> None:
    st.query_params.from_dict({**st.query_params.to_dict(), _QUERY: hand.sha256, _NAME: hand.name})
    st.rerun()


def _in_address() -> Hand | None:
    """The file that the address names; whoever has the link may look at it, as at the one in hand."""
    wanted = st.query_params.get(_QUERY, "")
    if not wanted:
        return None
    stored = the_store().find(wanted)
    if stored is None or not the_store().is_here(wanted):
        # Its digest stays in the address, so that the link is whole again once the file is here.
        if not is_digest(wanted):
            put_down()
        return None
    return _kept(stored, linked_name(st.query_params.get(_NAME, "") or wanted[:12]))


def _say_gone() -> None:
    """That the link names a second file which is not here any more, so that the same one can be dropped."""
    wanted = st.query_params.get(_QUERY, "")
    if wanted:
        name = linked_name(st.query_params.get(_NAME, "") or wanted[:12])
        st.warning(
            plain(
                f"The second file of this link, {name}, is not on the server any more: drop it again. Its sha256 "
                f"begins with {wanted[:12]}."
            ),
            icon=":material/link_off:",
        )


def _kept(stored: Stored, name: str = "") -> Hand:
    """Ours, too."""
    own = name or the_store().name_of(stored.sha256, session.owner())
    if session.owner() not in stored.names:
        the_store().claim(stored.sha256, name=own, owner=session.owner())
    return Hand(sha256=stored.sha256, name=own)


def _choices(hand: Hand, itself: bool) -> list[_Choice]:
    found = [_Choice(what=_ITSELF, which="", says=f"{hand.name} itself: another state dict of it")] if itself else []
    found += [
        _Choice(what=_RECENT, which=entry.hand.sha256, says=f"{entry.hand.name} (opened before)")
        for entry in session.recent()
        if entry.hand.sha256 != hand.sha256
    ]
    if server_root() is not None:
        found += [_Choice(what=_SERVER, which=path, says=f"{path} (on this server)") for path in listing().files]
    return found + [
        _Choice(what=_SAMPLE, which=s.id, says=f"{s.title} (a sample)") for s in samples.chips() if not s.page
    ]


def _meant(typed: str, choices: Sequence[_Choice]) -> _Choice:
    """Of a piece of a name the one line that contains it, whatever kind it is of; else a path on the server. Raises
    UsageError where several lines do."""
    found = named(typed, [choice.says for choice in choices])
    path = _Choice(what=_SERVER, which=typed, says=typed)
    return next((choice for choice in choices if choice.says == found), path)


def _taken(hand: Hand, choice: _Choice) -> Hand:
    """Raises ReadError where it went meanwhile."""
    if choice.what == _ITSELF:
        return hand
    if choice.what == _RECENT:
        (entry,) = (e.hand for e in session.recent() if e.hand.sha256 == choice.which)
        return _kept(session.stored(entry), entry.name)
    if choice.what == _SERVER:
        return _kept(store_path(choice.which))
    (sample,) = samples.some([choice.which])
    return _kept(samples.store(sample), sample.file)
