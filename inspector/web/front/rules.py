"""What the operator set, as the rules of the gate; and the address to open, once the server is about to start."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import streamlit as st
from streamlit import file_util

from inspector.installed import app_folder
from inspector.web.downloads import prefix
from inspector.web.front.gate import TOKEN_FIELD, Rules
from inspector.web.front.hosts import hosts_of, is_loopback
from inspector.web.front.keys import key_from
from inspector.web.server_paths import server_root
from inspector.web.uploads import HEALTH_PATH


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
        files=frozenset(path.name for path in static.iterdir() if path.is_file()) if static.is_dir() else frozenset(),
        open=frozenset({HEALTH_PATH}),
        base=prefix(),
    )


def greeting() -> str:
    """The line for whoever started the server; "" where no token is asked for."""
    rules = own_rules()
    if rules.key is None:
        return ""
    if rules.key.is_password:
        return "This server asks for its password."
    if rules.key.user_header:
        return f"This server lets in whom the header {rules.key.user_header} names, or who has its token."
    address = str(st.get_option("server.address") or "")
    host = address if address not in ("", "0.0.0.0", "::") else "localhost"
    scheme = "https" if st.get_option("server.sslCertFile") else "http"
    shown = f"[{host}]" if ":" in host else host
    place = f"{scheme}://{shown}:{st.get_option('server.port')}{rules.base}/"
    return f"This server asks for a token. Open {place}?{TOKEN_FIELD}={rules.key.secret}"
