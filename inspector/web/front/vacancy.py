"""When the last visitor has left, what was kept for them goes: answers in memory, open files, reports, sessions.

All of it is made again from the disk when somebody comes back. Streamlit itself forgets sessions only when others come.
"""

from __future__ import annotations

import asyncio
import gc
import time

import streamlit as st
from streamlit.runtime import Runtime

from inspector.jobs import walls
from inspector.web.jobs import active_sessions, the_client

# Longer than a session whose line broke is kept (server.disconnectedSessionTTL).
EMPTY_SECONDS = 48.0
_LOOK_SECONDS = 4.0


async def clear_when_empty() -> None:
    """Until it is cancelled; on the server's own loop, where sessions come and go."""
    since, cleared = time.monotonic(), True
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        if active_sessions():
            since, cleared = time.monotonic(), False
        elif not cleared and time.monotonic() - since > EMPTY_SECONDS:
            clear()
            cleared = True


def clear() -> None:
    """Now; whoever comes meanwhile waits for what is made again."""
    the_client().forget()
    st.cache_resource.clear()
    st.cache_data.clear()
    _forget_sessions()
    gc.collect()
    walls.give_back()


def _forget_sessions() -> None:
    # Neither the manager nor its storage has a public way to let go of those whose time is over.
    storage = getattr(getattr(Runtime.instance(), "_session_mgr", None), "_session_storage", None)
    expire = getattr(getattr(storage, "_cache", None), "expire", None)
    if expire is not None:
        expire()
