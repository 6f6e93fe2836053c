"""Which of a file's state dicts is meant: chosen once, the same on every page, and in the address of each.

It is asked by one box. Where more than one fits, and nobody said which, the question is the box's label and nothing is
chosen in it yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote, unquote

import streamlit as st

from inspector.checkpoint.several import equal_sets
from inspector.checkpoint.types import Checkpoint, StateDict, StateRole
from inspector.keys.report import WHICH_STATE, RepairPlan
from inspector.units import counted
from inspector.web import session
from inspector.web.session import Hand
from inspector.web.text import plain, visible

_Path = tuple[str, ...]
QUERY = "state"
# Of the session: which of a file's state dicts was chosen.
_STATE_OF, _LINK = "state-of/", "followed-state"
_NO_MODEL = (StateRole.OPTIMIZER, StateRole.TRAINING)
# Of an address, made up by whoever made the link; the file itself is the path of no keys.
_LONGEST, _WHOLE = 400, "/"
_WIDTH = 420


def follow_link(hand: Hand | None) -> None:
    """Once per session: take up what the address says. Afterwards keep the address in step with what was chosen."""
    if session.missing() is not None:
        return  # It is asked for, and what the link says of it counts once it is here.
    wanted, first = st.query_params.get(QUERY, ""), not st.session_state.get(_LINK)
    st.session_state[_LINK] = True
    if hand is not None and first and 0 < len(wanted) <= _LONGEST:
        st.session_state.setdefault(f"{_STATE_OF}{hand.sha256}", _path_in(wanted))
    held = path_of(hand.sha256) if hand is not None else None
    if held is None:
        st.query_params.pop(QUERY, None)
    elif wanted != _as_query(held):
        st.query_params[QUERY] = _as_query(held)


def path_of(sha256: str) -> _Path | None:
    """Of the state dict that this visitor chose of a file; None where nothing was chosen."""
    held = st.session_state.get(f"{_STATE_OF}{sha256}")
    return held if isinstance(held, tuple) else None


def state_label(state: StateDict) -> str:
    """How a state dict is called in a selection: its path in the file and what it is for."""
    role = "" if state.role.value in state.label.split(".") else f"{state.role.value}, "
    return f"{state.label} ({role}{counted(len(state.tensors), 'tensor')})"


def state_in_hand(checkpoint: Checkpoint, *, models_only: bool = False) -> StateDict | None:
    """The chosen one, else the likeliest weights; draws nothing. None where the file holds none."""
    held = chosen_state(checkpoint)
    offered = _offered(checkpoint, models_only)
    return held if any(s is held for s in offered) else checkpoint.weights


def choose_state(
    checkpoint: Checkpoint, *, models_only: bool = False, question: str = "", told: StateDict | None = None
) -> StateDict | None:
    """The state dict to look at: a selection where the file holds several, the same on every page. None when it holds
    none.

    models_only: leave out the optimizer's, which no architecture has. question: asked in place of "State dict", while
    nothing is chosen. told: which one it is as long as nobody chose, where something tells.
    """
    states = _offered(checkpoint, models_only)
    if len(states) < 2:
        return checkpoint.weights
    current = None if question else told or state_in_hand(checkpoint, models_only=models_only)
    key = f"state-{checkpoint.origin.sha256}-{models_only}"
    return _choose(question or "State dict", states, current, checkpoint, key=key)


def asked_by(plan: RepairPlan | None, checkpoint: Checkpoint) -> str:
    """What a repair asks of the file's state dicts, so that the box of the state dicts answers it; "" for nothing.

    Sets that lie apart and are put together are none of the box's: a question about those is asked by itself.
    """
    offered = {state.label for state in _offered(checkpoint, models_only=True)}
    for question in plan.ambiguities if plan is not None else ():
        if question.id == WHICH_STATE and offered.issuperset(dict(question.options)):
            return question.question
    return ""


def choose_of_several(checkpoint: Checkpoint) -> StateDict | None:
    """Of several networks the one that is meant, asked as one question; None until it is answered, and for a file of
    one network."""
    sets = equal_sets(checkpoint)
    if not sets:
        return None
    return _choose(_which_of(sets), sets, meant_state(checkpoint), checkpoint, key=f"set-{checkpoint.origin.sha256}")


def unanswered(checkpoint: Checkpoint) -> str:
    """Of several networks that none of the model's state dicts was chosen of: which one is meant; "" for nothing to
    ask."""
    sets, held = equal_sets(checkpoint), chosen_state(checkpoint)
    is_chosen = held is not None and any(held is state for state in _offered(checkpoint, models_only=True))
    return _which_of(sets) if sets and not is_chosen else ""


def _which_of(sets: Sequence[StateDict]) -> str:
    return f"Which of its {len(sets):,} sets of weights is meant?"


def _choose(
    label: str, states: Sequence[StateDict], current: StateDict | None, checkpoint: Checkpoint, *, key: str
) -> StateDict | None:
    st.session_state[key] = next((i for i, s in enumerate(states) if s is current), None)
    chosen = st.selectbox(
        plain(label),
        range(len(states)),
        format_func=lambda i: visible(state_label(states[i])),
        # Another file has other ones: the choice belongs to this file.
        key=key,
        on_change=_keep_choice,
        args=(checkpoint, key, states),
        placeholder="not said yet",
        width="stretch" if len(label) > _WIDTH // 8 else _WIDTH,
    )
    return states[chosen] if chosen is not None else None


def meant_state(checkpoint: Checkpoint) -> StateDict | None:
    """Of several networks in the file the one that the visitor chose, on whatever page; None for the likeliest."""
    held = chosen_state(checkpoint)
    return held if held is not None and any(held is state for state in equal_sets(checkpoint)) else None


def chosen_state(checkpoint: Checkpoint) -> StateDict | None:
    """What this visitor chose of the file's state dicts, on whatever page; None where nothing was chosen."""
    path = path_of(checkpoint.origin.sha256 or "")
    return next((s for s in checkpoint.state_dicts if s.path == path), None) if path is not None else None


def _offered(checkpoint: Checkpoint, models_only: bool) -> list[StateDict]:
    # A lone metric beside the weights is no model; it stands on the Contents page.
    return [
        s
        for s in checkpoint.state_dicts
        if s is checkpoint.weights or (len(s.tensors) > 1 and not (models_only and s.role in _NO_MODEL))
    ]


def _keep_choice(checkpoint: Checkpoint, key: str, states: Sequence[StateDict]) -> None:
    chosen, slot = st.session_state[key], f"{_STATE_OF}{checkpoint.origin.sha256}"
    st.session_state[slot] = states[chosen].path if chosen is not None else None
    if chosen is None:
        st.query_params.pop(QUERY, None)
    else:
        st.query_params[QUERY] = _as_query(states[chosen].path)


def _as_query(path: _Path) -> str:
    return "/".join(quote(key, safe="") for key in path) or _WHOLE


def _path_in(text: str) -> _Path:
    return () if text == _WHOLE else tuple(unquote(key) for key in text.split("/"))
