"""Whether this server is alive, whether it takes visitors, and what it has counted: for whoever runs it."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import os
import secrets
import shutil
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from inspector.errors import UsageError
from inspector.units import human_bytes
from inspector.web.downloads import prefix
from inspector.web.front.counters import CONTENT_TYPE, counters
from inspector.web.front.draining import draining
from inspector.web.front.hosts import host_of, is_loopback
from inspector.web.front.paths import HEALTH_PATH, LIVE_PATH, METRICS_PATH, READY_PATH
from inspector.web.front.variables import METRICS_FROM, METRICS_TOKEN
from inspector.web.front.workers import workers_answer
from inspector.web.store import the_store

# Less on the disk than this, and uploads would be refused.
LEAST_FREE_NBYTES = 64 * 10**6
_SHORTEST_TOKEN = 12
_KEPT_SECONDS = 1.0
_FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")

ReadyCheck = Callable[[], Awaitable[str]]
"""Why this server is not ready in a sentence, "" where it is; it answers within a second or so."""


@dataclass(slots=True)
class _Kept:
    """The last answer, so that asking often costs nothing: the checks write, and ask others."""

    at: float = -1e9
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Readers:
    """Who may read the counters: with the token, or from these networks. Nobody where there is neither."""

    token: str = ""
    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = ()

    def may(self, request: Request) -> bool:
        """Whether whoever asks is one of them."""
        kind, _, shown = request.headers.get("authorization", "").partition(" ")
        if self.token and kind.lower() == "bearer" and hmac.compare_digest(self.token.encode(), shown.strip().encode()):
            return True
        if any(name in request.headers for name in _FORWARDED) or request.client is None:
            return False
        try:
            address = ipaddress.ip_address(request.client.host)
        except ValueError:
            return False
        if address.is_loopback and not is_loopback(host_of(request.headers.get("host", ""))):
            return False  # a proxy on this machine that does not say so
        return any(address in network for network in self.networks)


def readers_from(environment: Mapping[str, str]) -> Readers:
    """Whom the operator named. Raises UsageError for a short token and for what is no address."""
    token = environment.get(METRICS_TOKEN.name, "")
    if token and len(token) < _SHORTEST_TOKEN:
        says = f"{METRICS_TOKEN.name} has {len(token)} characters."
        raise UsageError(says, hint=f"Take {_SHORTEST_TOKEN} or more.")
    networks = []
    for part in environment.get(METRICS_FROM.name, "").split(","):
        if part.strip():
            try:
                networks.append(ipaddress.ip_network(part.strip(), strict=False))
            except ValueError as error:
                says = f"{METRICS_FROM.name} names {part.strip()[:60]!r}, which is no address."
                raise UsageError(says, hint="Write 10.0.0.5 or 10.0.0.0/24, with commas between several.") from error
    return Readers(token=token, networks=tuple(networks))


async def store_is_written() -> str:
    """A file is written into the store and taken away, and there is room for more."""
    return await asyncio.to_thread(_try_store)


def _try_store() -> str:
    folder = the_store().root
    trial = folder / f"trial-{secrets.token_hex(8)}"
    try:
        trial.write_bytes(b"ready?")
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return f"The store cannot be written: {error.strerror or type(error).__name__}."
    finally:
        trial.unlink(missing_ok=True)
    return "" if free >= LEAST_FREE_NBYTES else f"{human_bytes(free)} are free on the store's disk."


async def is_taking() -> str:
    """Not on its way to its end."""
    return "The server is about to end." if draining.has_begun else ""


# Asked in this order.
ready_checks: list[ReadyCheck] = [is_taking, store_is_written, workers_answer]
_kept = _Kept()


def probe_routes() -> list[Route]:
    """What app.py mounts."""
    readers = readers_from(os.environ)

    async def tell_metrics(request: Request) -> Response:
        if not readers.may(request):
            return PlainTextResponse("Not found", 404)
        return PlainTextResponse(await asyncio.to_thread(counters.text), media_type=CONTENT_TYPE)

    return [
        Route(prefix() + HEALTH_PATH, tell_health, methods=["GET"]),
        Route(prefix() + LIVE_PATH, tell_live, methods=["GET"]),
        Route(prefix() + READY_PATH, tell_ready, methods=["GET"]),
        Route(prefix() + METRICS_PATH, tell_metrics, methods=["GET"]),
    ]


async def tell_health(request: Request) -> JSONResponse:
    """Alive, and the store is there."""
    return JSONResponse({"status": "ok", "store": the_store().root.is_dir()})


async def tell_live(request: Request) -> JSONResponse:
    """The process answers: what a container's health check asks, which ends what does not answer."""
    return JSONResponse({"status": "live"})


async def tell_ready(request: Request) -> JSONResponse:
    """Visitors may be sent here: what a balancer asks. 503 with the reasons where not."""
    reasons = (await is_taking(),) if draining.has_begun else await _reasons()
    says = [reason for reason in reasons if reason]
    if says:
        return JSONResponse({"status": "not ready", "reasons": says}, 503, {"cache-control": "no-store"})
    return JSONResponse({"status": "ready"}, headers={"cache-control": "no-store"})


async def _reasons() -> tuple[str, ...]:
    if time.monotonic() - _kept.at > _KEPT_SECONDS:
        _kept.reasons = tuple([await check() for check in ready_checks])
        _kept.at = time.monotonic()
    return _kept.reasons


def _resident_nbytes() -> float:
    """Of this process; 0 where the system does not tell."""
    if sys.platform != "linux":
        return 0
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


counters.gauge("inspector_resident_bytes", "Memory of the web process.", _resident_nbytes)
counters.gauge("inspector_draining", "1 from SIGTERM on.", lambda: draining.has_begun)
counters.gauge("inspector_store_bytes", "Of files and exports in the store.", lambda: the_store().nbytes())
counters.gauge(
    "inspector_store_free_bytes", "Free on the store's disk.", lambda: shutil.disk_usage(the_store().root).free
)
