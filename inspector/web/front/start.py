"""When the server starts: the address with the token for whoever started it, and the browser if that is wanted."""

from __future__ import annotations

import asyncio
import os
import sys
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import streamlit as st

from inspector.architectures.index import load_index
from inspector.jobs.walls import what_is_missing
from inspector.web.exports_kept import the_kept
from inspector.web.front.draining import drain_on_sigterm, draining
from inspector.web.front.gate import TOKEN_FIELD
from inspector.web.front.hosts import is_loopback
from inspector.web.front.keys import code_is_off, code_key
from inspector.web.front.listener import guard, running_server
from inspector.web.front.request_log import lines_for
from inspector.web.front.rules import own_rules
from inspector.web.front.vacancy import clear_when_empty
from inspector.web.front.variables import LOG, own_limits
from inspector.web.jobs import the_client
from inspector.web.provisional import the_uploads
from inspector.web.server_paths import server_root
from inspector.web.store import the_store

_SWEEP_SECONDS = 600
_ANY = ("", "0.0.0.0", "::")


@asynccontextmanager
async def started(_app: object) -> AsyncIterator[None]:
    """Around the server's life. INSPECTOR_BROWSER=1 opens the browser, which Streamlit would do without the token."""
    the_store()  # which clears what an end in the middle left
    the_client().start()  # torch takes seconds to import: before anybody asks
    # Standard output may be a log that others read.
    lines = filter(None, (greeting(), offer_of_code(), what_is_missing(the_client().settings.workers)))
    print(
        "", *(f"  {line}" for line in lines), "", sep="\n", flush=True, file=sys.stderr if is_logged() else sys.stdout
    )
    if os.environ.get("INSPECTOR_BROWSER") == "1":
        # Some browsers hold whoever starts them until they are closed.
        asyncio.get_running_loop().run_in_executor(None, webbrowser.open, entrance())
    sweeping = asyncio.create_task(_sweep_now_and_then())
    clearing = asyncio.create_task(clear_when_empty())
    # Visitors who come at the same time would each load it.
    loading = asyncio.get_running_loop().run_in_executor(None, load_index)
    server = running_server()
    if server is not None:
        guard(server)
    draining.waits_for.append(lambda: len(the_client().running()))
    restore = drain_on_sigterm(draining, own_limits().drain_seconds)
    yield
    restore()
    sweeping.cancel()
    clearing.cancel()
    await loading
    the_client().close()
    the_store().clear_uploads()


async def _sweep_now_and_then() -> None:
    """What is too old goes though nobody uploads."""
    while True:
        await asyncio.sleep(_SWEEP_SECONDS)
        await asyncio.to_thread(the_kept.settle)
        await asyncio.to_thread(the_store().sweep)
        the_uploads().sweep()


def is_logged() -> bool:
    """Whether the operator wants a line for each request."""
    return lines_for(os.environ.get(LOG.name, "")) is not None


def greeting() -> str:
    """Where the app is, and what it asks for."""
    key = own_rules().key
    if key is None:
        return f"Model Inspector is at {entrance()}"
    place = entrance().partition("?")[0]
    if key.is_password:
        return f"Model Inspector is at {place} and asks for its password."
    if key.user_header:
        return (
            f"Model Inspector is at {place} and lets in whom the header {key.user_header} names, or who has its token."
        )
    if is_logged() and os.environ.get("INSPECTOR_TOKEN"):
        return f"Model Inspector is at {place} and asks for the token that its operator stated."
    return f"Model Inspector asks for a token. Open {entrance()}"


def offer_of_code() -> str:
    """The key with which a page runs own code, where it would ask for one; "" elsewhere."""
    address = str(st.get_option("server.address") or "")
    if code_is_off(os.environ) or server_root() is not None or not is_loopback(address):
        return ""
    return f"To run your own code, a page asks for the code key: {code_key().secret}"


def entrance() -> str:
    """The address of the first page, with the token where one was drawn or stated; never with a password."""
    rules = own_rules()
    address = str(st.get_option("server.address") or "")
    host = "localhost" if address in _ANY else f"[{address}]" if ":" in address else address
    scheme = "https" if st.get_option("server.sslCertFile") else "http"
    query = f"?{TOKEN_FIELD}={rules.key.secret}" if rules.key is not None and not rules.key.is_password else ""
    return f"{scheme}://{host}:{st.get_option('server.port')}{rules.base}/{query}"
