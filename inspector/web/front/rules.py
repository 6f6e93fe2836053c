"""What the operator set, as the rules of the gate."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import streamlit as st
from streamlit import file_util

from inspector.installed import app_folder
from inspector.web.downloads import prefix
from inspector.web.front.draining import draining
from inspector.web.front.gate import Rules
from inspector.web.front.hosts import hosts_of, is_loopback
from inspector.web.front.keys import key_from
from inspector.web.front.paths import HEALTH_PATH, LIVE_PATH, METRICS_PATH, READY_PATH
from inspector.web.front.turnstile import House
from inspector.web.front.variables import own_limits
from inspector.web.front.visitors import own_visitors
from inspector.web.server_paths import server_root


@lru_cache(maxsize=1)
def own_house() -> House:
    """Of this process: how many may be inside. Raises UsageError for what is no number."""
    rules = own_rules()
    return House(
        limits=own_limits(),
        visitors=own_visitors(),
        draining=draining,
        pages=rules.pages,
        base=rules.base,
    )


@lru_cache(maxsize=1)
def own_rules() -> Rules:
    """Of this process: a token that nobody stated is drawn once. Raises UsageError for one that is too short."""
    address = str(st.get_option("server.address") or "")
    allowed = [str(name) for name in st.get_option("server.allowedHosts") or ()]
    origins = [str(origin) for origin in st.get_option("server.corsAllowedOrigins") or ()]
    folder = app_folder()
    static = Path(file_util.get_static_dir())
    return Rules(
        hosts=hosts_of(address, allowed, origins),
        key=key_from(os.environ, needed=not is_loopback(address) or server_root() is not None),
        pages=frozenset(path.stem for path in (folder / "pages").glob("*.py")) if folder else frozenset(),
        files=frozenset(path.relative_to(static).as_posix() for path in static.rglob("*") if path.is_file()),
        open=frozenset({HEALTH_PATH, LIVE_PATH, READY_PATH, METRICS_PATH}),
        base=prefix(),
    )
