"""What no shape tells and a forward pass depends on: one clause, unfolded on demand, confirmed once for every page."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from inspector.architectures.types import ArchitectureSpec, Assumption, OptionValue
from inspector.web.text import escaped, plain


def confirmed_label(spec: ArchitectureSpec) -> str:
    """The spec with what this visitor confirmed of it, as it is written on the command line; "" before that."""
    return str(st.session_state.get(_slot(spec), "")) if spec.assumed else ""


def confirmed_spec(spec: ArchitectureSpec) -> ArchitectureSpec:
    """The same as a spec: what was confirmed stands among its options and is assumed no more. Raises UsageError for
    values that mean nothing."""
    from inspector.architectures.targets import parse_spec

    label = confirmed_label(spec)
    return parse_spec(label) if label else spec


def ask(spec: ArchitectureSpec) -> ArchitectureSpec:
    """The clause, the settings unfolded on demand, each with its reason and open to change, and one box that confirms
    all of them. The same spec until then. Raises UsageError for values that mean nothing."""
    from inspector.architectures.families.assume import assumed_clause

    if not spec.assumed:
        return spec
    slot = _slot(spec)
    with st.container(border=True, key="assumed"):
        state = "Confirmed by you" if confirmed_label(spec) else "Assumed"
        clause = escaped(assumed_clause(_as_written(spec)))
        st.html(f"<p><b>{state}</b> What the model computes depends on what no shape tells: {clause}.</p>")
        answers = {}
        with st.expander("Show and change all of them" if len(spec.assumed) > 1 else "Show and change it"):
            for one in spec.assumed:
                text = st.text_input(
                    plain(f"{one.name}: {one.why}"),
                    value=_written(one.value),
                    key=f"{slot}/{one.name}",
                    max_chars=200,
                    persist_state="session",
                )
                answers[one.name] = (text or "").strip()
        agreed = st.checkbox("These are right for this file", value=bool(confirmed_label(spec)), key=f"{slot}/agreed")
    st.session_state[slot] = _with_options(spec, answers) if agreed else ""
    return confirmed_spec(spec)


def _slot(spec: ArchitectureSpec) -> str:
    return f"assumed/{spec.label}"


def _as_written(spec: ArchitectureSpec) -> list[Assumption]:
    """The assumptions with the values that stand in the boxes, which are drawn below."""
    texts = [st.session_state.get(f"{_slot(spec)}/{one.name}") for one in spec.assumed]
    return [one if text is None else replace(one, value=text) for one, text in zip(spec.assumed, texts, strict=True)]


def _with_options(spec: ArchitectureSpec, answers: dict[str, str]) -> str:
    """The label with the answers among its options."""
    added = "&".join(f"{name}={text}" for name, text in answers.items() if text)
    return spec.label + ("&" if "?" in spec.label else "?") + added if added else spec.label


def _written(value: OptionValue) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
