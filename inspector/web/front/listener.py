"""What uvicorn answers itself, before any application is asked: to what is no request, and to connections without one.

Streamlit starts uvicorn and lets nobody configure it; its server is found by the handler that it has set for SIGTERM.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from typing import Any

from uvicorn import Config, Server

from inspector.web.front.counters import counters
from inspector.web.front.headers import page_headers

# Until a request's head must have come whole. Uploads have their own time, of each of their pieces.
HEAD_SECONDS = 30.0
# After the time for draining: for answers that were cut to be written.
_LAST_SECONDS = 5
_SILENT = "inspector_silent_connections_total"
# What it says of each socket that was refused with a sentence, though nothing went wrong.
_REFUSED_SOCKET = "ASGI callable returned without completing handshake."
counters.declare(_SILENT, "Connections that were closed since no request came on them in time.")


def running_server() -> Server | None:
    """Uvicorn's own, None where something else runs this application."""
    server = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    return server if isinstance(server, Server) else None


def guard(server: Server) -> None:
    """From here on its own answers carry our headers, and no connection waits for ever. Before it listens."""
    config = server.config
    if config.timeout_graceful_shutdown is None:
        config.timeout_graceful_shutdown = _LAST_SECONDS
    config.http_protocol_class = guarded(config)
    logging.getLogger("uvicorn.error").addFilter(lambda record: record.msg != _REFUSED_SOCKET)


def guarded(config: Config) -> type[asyncio.Protocol]:
    """The protocol of this configuration, as a class of ours."""
    base: Any = config.http_protocol_class

    class Guarded(base):  # type: ignore[misc]
        """One connection."""

        transport: Any
        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self._deadline = asyncio.get_running_loop().call_later(HEAD_SECONDS, self._give_up)

        def connection_lost(self, exc: Exception | None) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
            super().connection_lost(exc)

        def _give_up(self) -> None:
            # The cycle is there from the first whole head on; a WebSocket's has another protocol on the same line.
            has_other = self.transport.get_protocol() is not self
            if getattr(self, "cycle", None) is None and not has_other and not self.transport.is_closing():
                counters.add(_SILENT)
                self.transport.close()

        def send_400_response(self, msg: str) -> None:
            transport = self.transport
            self.transport = _WithHeaders(transport)
            try:
                super().send_400_response(msg)
            finally:
                self.transport = transport

    return Guarded


class _WithHeaders:
    """A transport whose first piece is the head of an answer."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._is_first = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if self._is_first:
            status, _, rest = data.partition(b"\r\n")
            ours = b"".join(name + b": " + value + b"\r\n" for name, value in page_headers())
            data = status + b"\r\n" + ours + rest
            self._is_first = False
        self._transport.write(data)
