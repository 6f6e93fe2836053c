"""One's own code on the page, as a file or pasted: only where page and server are one person's, and once confirmed.

Offered when the server listens on this machine alone and the request came to this machine's own name and through no
proxy. Where a folder is open (INSPECTOR_ROOT), a token was asked for at the door; elsewhere whoever shares this machine
comes in, so the visit first shows the code key, which stands in the terminal of whoever started the server.
INSPECTOR_CODE=off forbids it everywhere; nothing allows it to others. What is confirmed is the file's content: another
byte in it asks again. Files that it imports are not looked at. What is told of it without weights comes from a process
for each question; with a file's weights it runs in a worker that does nothing else.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import streamlit as st

from inspector.architectures.following import shapes_of
from inspector.architectures.types import Target
from inspector.architectures.user_code import PREFIX, Factory, is_code, parse_factory
from inspector.checkpoint.types import StateDict
from inspector.errors import UsageError
from inspector.jobs.job import Job
from inspector.jobs.subjects import CodeRef
from inspector.side_files import read_bytes
from inspector.web import jobs
from inspector.web.explain.choices import folded
from inspector.web.front.hosts import host_of, is_loopback
from inspector.web.front.keys import code_is_off, code_key
from inspector.web.pasted_code import ask_text, pasted_file
from inspector.web.server_paths import resolve_in_root, server_root
from inspector.web.text import mono, plain, visible

_AGREED, _REPORTS, _USED = "code-agreed", "code-reports", "code-used"
_UNLOCKED = "code-unlocked"
_FILE, _PASTED = "a file", "pasted"
_MOST_SOURCE = 1 << 20  # bytes
_SHOWN = 20_000  # characters
SECONDS = 60.0
# Of memory beyond what torch itself takes: a factory builds a model, and its values.
NBYTES = 4_000_000_000
_FORWARDED = ("x-forwarded-for", "x-forwarded-host", "x-real-ip", "forwarded", "via")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The file that would run. folder: in which it runs. sha256: of its bytes now."""

    factory: Factory
    folder: Path
    path: Path
    sha256: str
    text: str


def is_offered() -> bool:
    """Whether code may be offered at all: not on a server that others reach, whatever they send."""
    return not code_is_off(os.environ) and is_own_visit()


def is_allowed() -> bool:
    """Whether this visit may run code: where it is offered, and by a token at the door or the code key."""
    return is_offered() and (server_root() is not None or bool(st.session_state.get(_UNLOCKED)))


def say_how() -> str:
    """How code can be offered where it is not, as Markdown in one line."""
    off = " without INSPECTOR_CODE=off" if is_own_visit() else " on your own machine"
    return (
        "With the code that builds this network it can be counted, drawn and explained: start "
        f"`python -m inspector app`{off}, open this file there and come back to this page. Weights and Architecture "
        "tell meanwhile what its numbers and names show."
    )


def is_own_visit() -> bool:
    """Whether page and server are one person's: the server listens on this machine alone, and was asked by this
    machine's own name and through no proxy."""
    if not is_loopback(str(st.get_option("server.address") or "")):
        return False
    headers = {name.lower(): value for name, value in _headers().items()}
    if any(name in headers for name in _FORWARDED):
        return False
    return is_loopback(host_of(headers.get("host", "")))


def _headers() -> dict[str, str]:
    return st.context.headers.to_dict()


def ask(sha256: str, state: StateDict | None) -> Target | None:
    """The boxes, the question, and the target once it was answered. sha256, state: of the file that it is for."""
    source = ask_source(sha256)
    return sized(source, state)[1] if source is not None else None


def sized(source: Source, state: StateDict | None) -> tuple[Source, Target]:
    """Names and shapes of what the code builds with the sizes that a file shows, and the source that says so.

    Which sizes the file gave stands on the page. Raises ModelError where it builds nothing.
    """
    found: Target = report("code-target", source, shapes_of(state) if state is not None else ())
    factory = parse_factory(found.label)
    given = source.factory.arguments
    taken = [f"{name}={value!r}" for name, value in factory.arguments.items() if given.get(name) != value]
    if taken:
        st.caption(f"Built with {plain(', '.join(taken))}, as the file's shapes show.")
    return replace(source, factory=factory), found


def ask_source(sha256: str) -> Source | None:
    """Where the code is, as a file or pasted, and the question; the source once it was answered.

    sha256: of the file that it is for. What was given for it on one page stands on the others.
    """
    if not is_allowed():
        _ask_key()
        return None
    key = f"code-{sha256[:12]}"
    # What was agreed to stands in one line, so that what it is for comes at once.
    agreed = str(st.session_state.get(f"{key}-agreed", ""))
    with (
        folded(f"Your code · {plain(agreed)}", key=f"{key}-fold", icon=":material/code:") if agreed else st.container()
    ):
        # Without a folder of the server no file can be named.
        ways = (_FILE, _PASTED) if server_root() is not None else (_PASTED,)
        way = st.radio("Your code", ways, horizontal=True, key=f"{key}-way", persist_state="session")
        text = ask_text(key) if way == _PASTED else _ask_file(key)
    source = find_source(text if is_code(text) else PREFIX + text) if text else None
    if source is None or not is_agreed(source):
        st.session_state[f"{key}-agreed"] = ""
        if source is not None:
            _question(source)
        return None
    st.session_state[f"{key}-agreed"] = f"{source.factory.name}, {way if way == _PASTED else source.factory.where}"
    return source


def _ask_key() -> None:
    """The box for the code key; the page runs again once it was shown."""
    with st.container(border=True, key="code-key"):
        shown = st.text_input(
            "Code key",
            type="password",
            autocomplete="off",
            placeholder="from the terminal",
            help="It is for whoever started the app, not for others on this machine: the code can do what you can.",
        )
        st.caption(
            'To use your own code here, copy the code key from the terminal in which the app was started: "To run '
            'your own code, ..." stands there below the address. Nothing runs before you say so.'
        )
        if not shown or not shown.strip():
            return
        if not code_key().opens(shown.strip()):
            st.error("That is not this server's code key: each start has another one.", icon=":material/key_off:")
            return
    st.session_state[_UNLOCKED] = True
    st.rerun()


def _ask_file(key: str) -> str:
    text = st.text_input(
        "Factory",
        placeholder="code:model.py:build?num_classes=4",
        key=f"{key}-file",
        persist_state="session",
        help=plain(f"A Python file in {server_root()}, and the function or class in it that makes the model."),
    )
    if not text or not text.strip():
        st.caption(
            plain(
                f"Name a Python file in {server_root()}, and the class or function in it. Nothing of it runs "
                "before you say so."
            )
        )
    return (text or "").strip()


def report(kind: str, source: Source, *more: object) -> Any:
    """What a job says of what the code builds; run once for each content and question in a session.

    kind: of a job that takes the factory, the folder, seconds, bytes, and more.
    """
    kept: dict[tuple[object, ...], Any] = st.session_state.setdefault(_REPORTS, {})
    asked = (kind, source.factory.text, source.sha256, *more)
    if asked not in kept:
        arguments = (source.factory.text, source.folder, SECONDS, NBYTES, *more)
        job = Job(kind=kind, arguments=arguments, known_by=secrets.token_hex(16))
        kept[asked] = jobs.ask(job, says="Running your code in its own process")
    return kept[asked]


def find_source(text: str) -> Source:
    """The file that a `code:` target names: one that was pasted in this session, else one of the server's folder.

    Raises UsageError for modules, RefusedContent outside the folder, LimitExceeded for what is too long to be a model's
    source.
    """
    factory = parse_factory(text)
    if not factory.is_file:
        raise UsageError("On this page code comes from a file.", hint="Write code:model.py:build.")
    pasted = pasted_file(factory.where)
    path = pasted or resolve_in_root(factory.where)
    raw = read_bytes(path, most_nbytes=_MOST_SOURCE)
    return Source(
        factory=factory,
        folder=pasted.parent if pasted else server_root() or Path(),
        path=path,
        sha256=hashlib.sha256(raw).hexdigest(),
        text=raw.decode("utf-8", "replace"),
    )


def is_agreed(source: Source) -> bool:
    """Whether this session's visitor said yes to this content at this place."""
    return (str(source.path), source.sha256) in st.session_state.get(_AGREED, {})


def check_agreed(target: Target) -> None:
    """Raise UsageError when the file is another one than was agreed to: before it runs again."""
    if not is_allowed() or not is_agreed(find_source(target.label)):
        raise UsageError("The code changed since you agreed to run it.", hint="Look at it above and agree once more.")


def folder_of(target: Target) -> Path:
    """Where the code of a target lies and runs. Raises as `check_agreed`."""
    check_agreed(target)
    return find_source(target.label).folder


def use_for(sha256: str, source: Source | None) -> None:
    """From now on a file's weights run in what this code builds, or in nothing where it is None."""
    used: dict[str, Source] = st.session_state.setdefault(_USED, {})
    used.pop(sha256, None)
    if source is not None:
        used[sha256] = source


def used_for(sha256: str) -> CodeRef | None:
    """The code that a file's weights run in, as jobs know it; None where nobody agreed to any."""
    source: Source | None = st.session_state.get(_USED, {}).get(sha256)
    if source is None or not is_allowed() or not is_agreed(source):
        return None
    agreed: dict[tuple[str, str], str] = st.session_state[_AGREED]
    return CodeRef(
        text=source.factory.text,
        folder=source.folder,
        sha256=source.sha256,
        agreed=agreed[(str(source.path), source.sha256)],
    )


def _question(source: Source) -> None:
    pasted = pasted_file(source.factory.where) is not None
    what, name = ("code", "What you pasted") if pasted else ("file", mono(str(source.path)))
    with st.container(border=True, key="code-question"):
        st.html(
            f"<p><b>Run this {what}?</b> {name} would run with this server's Python, in its own process of at most "
            f"{SECONDS:.0f} seconds, and with the file's weights in a worker that does nothing else. It can do "
            f"whatever your account can: read it first. Files it imports run too.</p>"
            f"<p>sha256 {mono(source.sha256[:16])}</p>"
        )
        with st.expander("What is in it", icon=":material/code:"):
            st.code(visible(source.text[:_SHOWN]), language="python")
        if st.button("Run it", key="code-run", icon=":material/play_arrow:"):
            st.session_state.setdefault(_AGREED, {})[(str(source.path), source.sha256)] = secrets.token_hex(16)
            st.rerun()
