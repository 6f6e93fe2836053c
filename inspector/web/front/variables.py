"""What an operator sets by the environment: every variable with its default and meaning, and the numbers among them.

docs/operating.md and docs/commands.md take their tables from here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from inspector.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """name: of the environment variable. default: what holds where it is not set, as it would be written; "" for
    nothing. says: what it is for. least: of a number, the smallest one; None for what is no number."""

    name: str
    says: str
    default: str = ""
    least: int | None = None


CONNECTIONS = Variable(
    name="INSPECTOR_MAX_CONNECTIONS",
    default="400",
    least=1,
    says="Open pages (WebSockets) of all visitors together. Whoever comes then reads that the server is full.",
)
CONNECTIONS_EACH = Variable(
    name="INSPECTOR_MAX_CONNECTIONS_PER_VISITOR",
    default="20",
    least=1,
    says="Open pages of one visitor: one browser by its cookie, one user by the proxy's header, else one address.",
)
UPLOADS = Variable(
    name="INSPECTOR_MAX_UPLOADS", default="32", least=1, says="Uploads of all visitors at the same time."
)
UPLOADS_EACH = Variable(
    name="INSPECTOR_MAX_UPLOADS_PER_VISITOR", default="4", least=1, says="Uploads of one visitor at the same time."
)
UPLOAD_IDLE = Variable(
    name="INSPECTOR_UPLOAD_IDLE_SECONDS",
    default="120",
    least=1,
    says="An upload of which nothing came for so long is given up; nothing of it stays.",
)
FILE = Variable(
    name="INSPECTOR_FILE_BYTES", default=str(16 * 10**9), least=1, says="The largest file that is taken, in bytes."
)
STORE_NBYTES = Variable(
    name="INSPECTOR_STORE_BYTES",
    default=str(64 * 10**9),
    least=1,
    says="What the store holds at most, in bytes; uploads under way and exports count.",
)
STORE_EACH = Variable(
    name="INSPECTOR_STORE_BYTES_PER_VISITOR",
    default=str(16 * 10**9),
    least=1,
    says="What one visitor alone may have in it; beyond that the visitor's own oldest files go.",
)
STORE_HOURS = Variable(
    name="INSPECTOR_STORE_HOURS", default="24", least=1, says="How long a file is kept after it was last looked at."
)
SHARED = Variable(
    name="INSPECTOR_STORE_SHARED",
    says="`on`: the store is shared by every server that is started with it, on one disk that locks files.",
)
DRAIN = Variable(
    name="INSPECTOR_DRAIN_SECONDS",
    default="30",
    least=0,
    says="After SIGTERM: how long uploads and downloads under way may go on before the server ends.",
)
LOG = Variable(
    name="INSPECTOR_LOG",
    says="`json`: one line for each request on standard output, without names, digests, tokens, cookies and queries.",
)
METRICS_TOKEN = Variable(
    name="INSPECTOR_METRICS_TOKEN",
    says="Who sends `Authorization: Bearer` with it, 12 characters or more, may read `/inspector/metrics`.",
)
METRICS_FROM = Variable(
    name="INSPECTOR_METRICS_FROM",
    says="Addresses or networks, with commas between them, that may read `/inspector/metrics` without a token, "
    "directly and not through a proxy.",
)
ADDRESSES = Variable(
    name="INSPECTOR_ADDRESSES",
    says="Whether the Open page takes addresses and ids of the hub: `on` for everybody, `off` for nobody. Otherwise it "
    "does on a server that listens on this machine alone. What is not asked: docs/addresses.md.",
)
PRIVATE = Variable(
    name="INSPECTOR_PRIVATE_ADDRESSES",
    says="`on`: visitors may open addresses of this machine and its networks, too. Whoever may see the app then reads "
    "what they serve. A public server's redirect is not followed there.",
)
PROXY = Variable(
    name="INSPECTOR_PROXY",
    says="`http://host:port` through which every address is asked, on the command line, too; the environment's other "
    "proxies are not. It resolves the names, so it must refuse your own networks itself.",
)
HUB = Variable(
    name="HF_ENDPOINT",
    default="https://huggingface.co",
    says="The hub that ids are looked up at, wherever it is. `HF_TOKEN` is for the command line alone.",
)
VARIABLES = (
    Variable(
        name="INSPECTOR_ROOT",
        says="A folder on the server whose files may be opened by path; without it there is no such box.",
    ),
    Variable(
        name="INSPECTOR_CATALOGUE",
        says="The store of an audit (`inspector audit --store`) whose catalogue the page Zoo shows. Whoever is let in "
        "sees what it says of all its files, and opens those in `INSPECTOR_ROOT`.",
    ),
    Variable(
        name="INSPECTOR_CODE",
        says="`off`: the pages never run `code:` targets. Otherwise they offer them only on a server that listens on "
        "this machine alone, for code whose content you agreed to run, and without `INSPECTOR_ROOT` only to whom has "
        "the code key that the server prints at its start.",
    ),
    Variable(
        name="INSPECTOR_TOKEN",
        says="What a visitor has to show once, 12 characters or more. A server that others can reach, or that opens a "
        "folder, draws one at each start and prints an address with it.",
    ),
    Variable(name="INSPECTOR_PASSWORD", says="In its place a password, which is never printed."),
    Variable(
        name="INSPECTOR_USER_HEADER",
        says="In its place the header that an authenticating proxy sets, `X-Forwarded-User` say. Whoever reaches the "
        "server past the proxy can set it too: let nobody.",
    ),
    Variable(
        name="INSPECTOR_STORE", default="a per-user cache folder", says="Where uploads are kept; one server to a store."
    ),
    SHARED,
    Variable(
        name="INSPECTOR_SAMPLES",
        default="a per-user cache folder",
        says="Where an installation keeps the sample files that it makes once.",
    ),
    Variable(
        name="INSPECTOR_WORKERS",
        default="one more than processors, at most 8",
        says="Processes that run what is heavy; 0 runs it in the web process, without walls.",
    ),
    Variable(
        name="INSPECTOR_MEMORY",
        default="70 % of what is free at the start",
        says="What they may take together, as `8G`.",
    ),
    Variable(
        name="INSPECTOR_COMPILED",
        says="`0`: statistics are taken by NumPy; `1`: by compiled loops from the first byte, where the extra `[fast]` "
        "is installed. Otherwise by these from 268 MB on. The numbers are the same.",
    ),
    Variable(name="INSPECTOR_BROWSER", says="`1`: the browser is opened when the server has started."),
    CONNECTIONS,
    CONNECTIONS_EACH,
    UPLOADS,
    UPLOADS_EACH,
    UPLOAD_IDLE,
    ADDRESSES,
    PRIVATE,
    PROXY,
    HUB,
    FILE,
    STORE_NBYTES,
    STORE_EACH,
    STORE_HOURS,
    DRAIN,
    LOG,
    METRICS_TOKEN,
    METRICS_FROM,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """connections, uploads: at the same time, of everybody and of each visitor."""

    connections: int
    connections_each: int
    uploads: int
    uploads_each: int
    upload_idle_seconds: int
    drain_seconds: int


def number(variable: Variable, environment: Mapping[str, str]) -> int:
    """What the operator stated, else the default. Raises UsageError for what is no whole number or too small."""
    stated = environment.get(variable.name, "").strip() or variable.default
    least = variable.least or 0
    if not stated.isascii() or not stated.isdecimal() or len(stated) > 18 or int(stated) < least:
        raise UsageError(f"{variable.name} is {stated[:40]!r}.", hint=f"Write a whole number from {least} on.")
    return int(stated)


def is_shared(environment: Mapping[str, str]) -> bool:
    """Whether several servers use one store. Raises UsageError for what is neither on nor off."""
    stated = environment.get(SHARED.name, "").strip().lower()
    if stated not in ("", "on", "off"):
        raise UsageError(f"{SHARED.name} is {stated[:40]!r}.", hint="Write on or off.")
    return stated == "on"


@lru_cache(maxsize=1)
def own_limits() -> Limits:
    """Of this process. Raises UsageError as `number`."""
    return limits_from(os.environ)


def limits_from(environment: Mapping[str, str]) -> Limits:
    """Raises UsageError as `number`."""
    return Limits(
        connections=number(CONNECTIONS, environment),
        connections_each=number(CONNECTIONS_EACH, environment),
        uploads=number(UPLOADS, environment),
        uploads_each=number(UPLOADS_EACH, environment),
        upload_idle_seconds=number(UPLOAD_IDLE, environment),
        drain_seconds=number(DRAIN, environment),
    )
