"""What the file should fit: the recognised model, another one, another file, a list of keys, or one's own code."""

from __future__ import annotations

import streamlit as st

from inspector.architectures.types import Candidate, Target
from inspector.checkpoint.types import StateDict
from inspector.web import assumptions, own_code, reports, session
from inspector.web.explain.choices import linked_to, no_longer_linked, say_gone
from inspector.web.session import Hand
from inspector.web.text import escaped, mono

WAY_SLOT, NAME_SLOT = "target-way", "target-name"
_WAYS = {
    "own": "the recognised model",
    "named": "another model",
    "keys": "a list of keys",
    "file": "another file",
    "code": "your own code",
}


def choose_target(hand: Hand, own: Target | None) -> tuple[Target | None, str]:
    """(the target, why it is that one); None until the visitor has chosen."""
    others = [r.hand for r in session.recent() if r.hand.sha256 != hand.sha256]
    possible = {"own": own is not None, "file": bool(others), "code": own_code.is_offered()}
    ways = [way for way in _WAYS if possible.get(way, True)]
    if own is None:
        # Nobody knows its model by name, so the visitor's own list of keys is the likelier target.
        st.caption("The file was not recognised. Compare it with the keys of your own model, or with another file.")
        ways.sort(key=lambda way: way == "named")
    if st.session_state.get(WAY_SLOT) not in ways:
        st.session_state[WAY_SLOT] = ways[0]
    way = st.segmented_control(
        "Compare with",
        ways,
        format_func=_WAYS.__getitem__,
        required=True,
        key=WAY_SLOT,
        on_change=no_longer_linked,
        args=(NAME_SLOT,),
    )
    gone = linked_to(NAME_SLOT, ())
    if gone is not None:
        say_gone(gone, f"this is {_WAYS[way or ways[0]]}", why="no model that is known here")
    if way == "own":
        best = reports.recognition_of(hand).best
        return own, best.says if best is not None else ""
    if way == "named":
        return _named(hand), "You named it; sizes that a file shows follow the file."
    if way == "file":
        at = st.selectbox("File", range(len(others)), format_func=lambda i: others[i].name, key="target-file")
        return (_of_file(others[at]) if at is not None else None), "The names and shapes of another file you opened."
    if way == "code":
        return own_code.ask(
            hand.sha256, reports.checkpoint_of(hand).weights
        ), "What your own code builds; sizes that a file shows follow it."
    text = st.text_area("One key per line", placeholder='print(*model.state_dict(), sep="\\n")', key="target-keys")
    if not text or not text.strip():
        return None, ""
    pasted = _of_keys(text)
    known = sum(tensor.shape is not None for tensor in pasted.tensors)
    if not known:
        return pasted, "Names that you pasted; shapes cannot be compared."
    all_of_them = known == len(pasted.tensors)
    return pasted, "Names and shapes that you pasted" + ("." if all_of_them else f", {known:,} of them with a shape.")


def show_target(target: Target, why: str) -> None:
    """One line: which, how large, and why that one."""
    more = f'<br><span class="mi-more">{escaped(why)}</span>' if why else ""
    st.html(f"<p>Target {mono(target.label)}, {len(target.tensors):,} tensors.{more}</p>")


def _named(hand: Hand) -> Target | None:
    name = st.selectbox(
        "Model", builder_names(), index=None, placeholder="type to search torchvision and timm", key=NAME_SLOT
    )
    if not name:
        return None
    return _parsed(name, reports.recognition_of(hand).best, reports.checkpoint_of(hand).weights)


def builder_names() -> list[str]:
    """Of all models that can be named."""
    from inspector.architectures.index import load_index

    return list(load_index().builders)


def _parsed(name: str, candidate: Candidate | None, state: StateDict | None) -> Target:
    from inspector.architectures.targets import parse_target

    return parse_target(name, candidate=candidate, state=state)


def _of_file(other: Hand) -> Target:
    from inspector.architectures.targets import target_of_checkpoint

    return target_of_checkpoint(reports.checkpoint_of(other), other.name)


def _of_keys(text: str) -> Target:
    from inspector.architectures.key_lists import target_of_list

    return target_of_list(text, "the pasted list")


def confirm_assumed(target: Target) -> Target:
    """What no shape tells and a forward pass depends on: shown, changed or confirmed by the visitor.

    The same target until everything is confirmed; names and shapes are compared meanwhile, nothing is run.
    """
    if target.spec is None or not target.spec.assumed:
        return target
    spec = assumptions.ask(target.spec)
    return target if spec.assumed else _parsed(spec.label, None, None)
