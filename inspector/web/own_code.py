"""`code:model.py:build` on the page: only where the page and the server are one person's, and only once confirmed.

Offered when the server listens on this machine alone, the request came to this machine's own name and through no proxy,
and a folder was opened (INSPECTOR_ROOT). INSPECTOR_CODE=off forbids it everywhere; nothing allows it to others. What is
confirmed is the file's content: another byte in it asks again. Files that it imports are not looked at.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from inspector.architectures.types import Target
from inspector.architectures.user_code import PREFIX, Factory, is_code, parse_factory
from inspector.errors import UsageError
from inspector.jobs.job import Job
from inspector.side_files import read_bytes
from inspector.web import jobs
from inspector.web.front.hosts import host_of, is_loopback
from inspector.web.server_paths import resolve_in_root, server_root
from inspector.web.text import mono, plain, visible

_AGREED, _REPORTS = "code-agreed", "code-reports"
_MOST_SOURCE = 1 << 20  # bytes
_SHOWN = 20_000  # characters
SECONDS = 60.0
# Of memory beyond what torch itself takes: a factory builds a model, and its values.
NBYTES = 4_000_000_000
_FORWARDED = ("x-forwarded-for", "x-forwarded-host", "x-real-ip", "forwarded", "via")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The file that would run. sha256: of its bytes now."""

    factory: Factory
    path: Path
    sha256: str
    text: str


def is_allowed() -> bool:
    """Whether code may be offered at all: not on a server that others reach, whatever they send."""
    if os.environ.get("INSPECTOR_CODE", "").lower() in {"off", "0", "no", "false"} or server_root() is None:
        return False
    if not is_loopback(str(st.get_option("server.address") or "")):
        return False
    headers = {name.lower(): value for name, value in _headers().items()}
    if any(name in headers for name in _FORWARDED):
        return False
    return is_loopback(host_of(headers.get("host", "")))


def _headers() -> dict[str, str]:
    return st.context.headers.to_dict()


def ask() -> Target | None:
    """The field, the question, and the target once it was answered."""
    source = ask_source("target-code")
    if source is None:
        return None
    found: Target = report("code-target", source)
    return found


def ask_source(key: str) -> Source | None:
    """The field and the question; the source once it was answered."""
    text = st.text_input(
        "Factory",
        placeholder="code:model.py:build?num_classes=4",
        key=key,
        help=plain(f"A Python file in {server_root()}, and the function or class in it that makes the model."),
    ).strip()
    if not text:
        return None
    source = find_source(text if is_code(text) else PREFIX + text)
    if not is_agreed(source):
        _question(source)
        return None
    return source


def report(kind: str, source: Source, *more: object) -> Any:
    """What a job says of what the code builds; run once for each content and question in a session.

    kind: of a job that takes the factory, the folder, seconds, bytes, and more.
    """
    kept: dict[tuple[object, ...], Any] = st.session_state.setdefault(_REPORTS, {})
    asked = (kind, source.factory.text, source.sha256, *more)
    if asked not in kept:
        arguments = (source.factory.text, server_root() or Path(), SECONDS, NBYTES, *more)
        job = Job(kind=kind, arguments=arguments, known_by=secrets.token_hex(16))
        kept[asked] = jobs.ask(job, says="Running your code in its own process")
    return kept[asked]


def find_source(text: str) -> Source:
    """The file that a `code:` target names. Raises UsageError for modules, RefusedContent outside the folder,
    LimitExceeded for what is too long to be a model's source."""
    factory = parse_factory(text)
    if not factory.is_file:
        raise UsageError("On this page code comes from a file.", hint="Write code:model.py:build.")
    path = resolve_in_root(factory.where)
    raw = read_bytes(path, most_nbytes=_MOST_SOURCE)
    return Source(
        factory=factory,
        path=path,
        sha256=hashlib.sha256(raw).hexdigest(),
        text=raw.decode("utf-8", "replace"),
    )


def is_agreed(source: Source) -> bool:
    """Whether this session's visitor said yes to this content at this place."""
    return (str(source.path), source.sha256) in st.session_state.get(_AGREED, set())


def check_agreed(target: Target) -> None:
    """Raise UsageError when the file is another one than was agreed to: before it runs again."""
    if not is_allowed() or not is_agreed(find_source(target.label)):
        raise UsageError("The code changed since you agreed to run it.", hint="Look at it above and agree once more.")


def _question(source: Source) -> None:
    with st.container(border=True, key="code-question"):
        st.html(
            f"<p><b>Run this file?</b> {mono(str(source.path))} would run with this server's Python, in its own "
            f"process of at most {SECONDS:.0f} seconds. It can do whatever your account can: read it first. Files it "
            f"imports run too.</p><p>sha256 {mono(source.sha256[:16])}</p>"
        )
        with st.expander("What is in it", icon=":material/code:"):
            st.code(visible(source.text[:_SHOWN]), language="python")
        if st.button("Run it", key="code-run", icon=":material/play_arrow:"):
            st.session_state.setdefault(_AGREED, set()).add((str(source.path), source.sha256))
            st.rerun()
