"""An adapter merged into its base, whichever of the two is in hand: the other one is asked for where it is needed.

Both files and what tells the scale (adapter_config.json, or alpha alone) stand in the address by their digests, so that
a link brings back all of it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import streamlit as st

from inspector.architectures.parts import is_adapter
from inspector.checkpoint.types import Checkpoint, StateDict
from inspector.errors import ExportError, InspectorError
from inspector.jobs.job import Job
from inspector.jobs.subjects import Destination
from inspector.side_files import read_bytes
from inspector.units import counted
from inspector.web import comparison, reports, session, writing
from inspector.web.exports_kept import Underway
from inspector.web.guard import said, show_error
from inspector.web.second_file import Asked, put_down, second_file
from inspector.web.session import Hand
from inspector.web.store import is_digest, the_store
from inspector.web.text import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

_CONFIG, _ALPHA = "config", "alpha"
_FILE = "adapter_config.json"
_NBYTES = 1_000_000
_BASE = Asked(question="Which is its base model?", button="Take it")
_ADAPTER = Asked(question="Which adapter?", button="Take it")


def is_adapters(state: StateDict | None) -> bool:
    """Whether what is in hand is an adapter without its base."""
    return state is not None and is_adapter({t.name: t.shape for t in state.tensors})


def show_merge(hand: Hand, checkpoint: Checkpoint, state: StateDict, *, key: str = "merge") -> None:
    """The boxes for what is not in hand, what tells the scale, and the merged file. state: of the file in hand."""
    holds_adapter = is_adapters(state)
    st.caption(
        "The base's weights become W + scale · B A. Every tensor of the adapter must have its one place in it, by name "
        "and shape; what is written is read back and compared."
    )
    named = dict(checkpoint.metadata).get("adapter base model", "") if holds_adapter else ""
    if named:
        st.caption(plain(f"Its config says that it is for {named}."))
    other = second_file(hand, asked=_BASE if holds_adapter else _ADAPTER)
    if other is None:
        return
    names, change = st.columns([6, 1.4], vertical_alignment="center")
    names.markdown(plain(f"{'Base' if holds_adapter else 'Adapter'}: {other.name}"))
    if change.button("Another file", icon=":material/close:", key="second-other", width="stretch"):
        put_down()
        st.rerun()
    second = reports.checkpoint_of(other)
    if holds_adapter:
        base, adapter, of_adapter = other, hand, checkpoint
        base_state = comparison.choose_other_state(second, None, None)
    else:
        base, adapter, of_adapter, base_state = hand, other, second, state
    config = _scale(adapter, of_adapter)
    options = writing.choose_options(f"{key}-")
    path = base_state.path if base_state is not None else None
    slot = f"merged/{hand.sha256}/{other.sha256}/{path}/{sorted((config or {}).items(), key=str)!r}/{options}"
    stem = f"{writing.stem_of(base.name)}_merged"

    def make() -> Underway:
        def job(destination: Destination) -> Job:
            return writing.job_of("merged", base, reports.file_of(adapter), config or {}, destination, state=base_state)

        return writing.write(job, options, name="merged", stem=stem)

    if config is None:
        st.caption(f"Give {_FILE} or alpha first: the adapter's scale is in no tensor of it.")
    writing.write_button(slot, make, key=f"{key}-write", disabled=config is None)


def _scale(hand: Hand, checkpoint: Checkpoint) -> Mapping[str, object] | None:
    """What tells the adapter's scale, asked for where the file does not; None while nothing does. Raises ExportError
    where the adapter has no pairs."""
    from inspector.exports.adapter import config_inside, config_of_alpha, has_own_scale

    tensors = checkpoint.weights.tensors if checkpoint.weights is not None else ()
    if has_own_scale(tensors):
        return {}
    given = _given()
    if given is not None:
        return given
    path = the_store().get_path(hand.sha256) if checkpoint.format == "peft" else None
    inside = config_inside(path, hand.name) if path is not None else {}
    if inside:
        st.caption(plain(f"Its {_FILE} lies beside its weights: {_told(inside)}."))
        return inside
    left, right = st.columns([3, 1.4])
    uploaded = left.file_uploader(
        f"Its {_FILE}",
        type=["json"],
        key="adapter-config",
        # Streamlit's own limit is for checkpoints, and would be said beside it.
        max_upload_size=1,
        help="It lies beside the adapter's weights, and alone tells everything that a merge needs.",
    )
    if uploaded is not None:
        with said():
            _keep(uploaded.getvalue())
            st.rerun()
    linked = st.query_params.get(_ALPHA, "")
    typed = right.text_input(
        "Or alpha alone",
        value=linked if _number(linked) is not None else "",
        placeholder="16",
        key=f"adapter-alpha-{hand.sha256}",
        help="For plain LoRA: each pair is scaled by alpha / rank, and the ranks are read from the shapes. "
        "rsLoRA and other settings are only in the config.",
    )
    alpha = _number(typed or "")
    if alpha is None:
        st.query_params.pop(_ALPHA, None)
        if typed:
            show_error(ExportError(f"{typed[:40]} is no number."))
        return None
    st.query_params[_ALPHA] = (typed or "").strip()
    return config_of_alpha(tensors, alpha)


def _given() -> Mapping[str, object] | None:
    """The config that the address names, with a way to take it back; None where there is none (any more)."""
    from inspector.exports.adapter import parse_adapter_config

    wanted = st.query_params.get(_CONFIG, "")
    if not wanted:
        return None
    path = the_store().get_path(wanted) if is_digest(wanted) and the_store().is_here(wanted) else None
    if path is None:
        st.warning(
            f"The {_FILE} of this link is not on the server any more: give it again.", icon=":material/link_off:"
        )
        return None
    names, change = st.columns([6, 1.4], vertical_alignment="center")
    config: Mapping[str, object] | None = None
    try:
        config = parse_adapter_config(read_bytes(path, most_nbytes=_NBYTES))
        names.markdown(plain(f"{_FILE}: {_told(config)}"))
    except InspectorError as error:
        with names:
            show_error(error)
    if change.button("Another config", icon=":material/close:", key="config-other", width="stretch"):
        st.query_params.pop(_CONFIG, None)
        st.rerun()
    return config


def _keep(raw: bytes) -> None:
    """Into the store and the address. Raises ExportError for what is no config."""
    from inspector.exports.adapter import parse_adapter_config

    parse_adapter_config(raw)
    stored = the_store().put_bytes(raw, name=_FILE, owner=session.owner())
    st.query_params.pop(_ALPHA, None)
    st.query_params[_CONFIG] = stored.sha256


def _told(config: Mapping[str, object]) -> str:
    """ "LORA, r 8, lora_alpha 16": what of it a merge rests on first."""
    words = ("peft_type", "r", "lora_alpha", "use_rslora")
    said_of = {word: config[word] for word in words if config.get(word) not in (None, False)}
    listed = [
        str(value)[:40] if word == "peft_type" else f"{word} {str(value)[:40]}" for word, value in said_of.items()
    ]
    for word in ("rank_pattern", "alpha_pattern"):
        own = config.get(word)
        # Layers that these name are scaled by their own numbers.
        listed += [f"{word} for {counted(len(own), 'name')}"] if isinstance(own, dict) and own else []
    return ", ".join(listed) or "it says neither type nor rank"


def _number(text: str) -> float | None:
    try:
        value = float(text.strip())
    except ValueError:
        return None
    return value if math.isfinite(value) and 0 < value <= 1e6 else None
