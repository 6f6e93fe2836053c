"""Plain http and https addresses, each one file, to be read one by one by whoever goes over many."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from urllib.parse import quote, unquote

from inspector.errors import InspectorError
from inspector.readers.remote import own_client
from inspector.remote.address import WebAddress, parse_address
from inspector.remote.source import HttpSource, Identity, ask_identity

_AT_ONCE = 16
_QUERY_DIGITS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class WebFile:
    """One file as its server says it is. failed: why it said nothing, which opening it raises: of a thousand addresses
    one that is gone costs itself alone."""

    web: WebAddress
    identity: Identity = field(default_factory=lambda: Identity(size=0))
    failed: InspectorError | None = None

    @property
    def address(self) -> str:
        """Without a name and password; of a query, which often is a signature, its digest."""
        path, mark, query = self.web.target.partition("?")
        told = hashlib.sha256(query.encode()).hexdigest()[:_QUERY_DIGITS] if mark else ""
        return f"{self.web.origin}{path}{mark}{told}"

    @property
    def name(self) -> str:
        """Its last part, as the server has it."""
        return unquote(self.web.target.partition("?")[0].rpartition("/")[2])

    @property
    def size(self) -> int:
        return self.identity.size

    @property
    def tag(self) -> str:
        return " ".join(one for one in (self.identity.etag, self.identity.modified) if one)

    def open(self) -> HttpSource:
        """Nothing is fetched before it is read."""
        if self.failed is not None:
            raise self.failed
        return HttpSource(self.web, client=own_client(), identity=self.identity)


def list_web(addresses: Sequence[str]) -> tuple[WebFile, ...]:
    """What is at each address, a byte asked of each, several at a time. Raises AddressRefused for what is none."""
    asked = [parse_address(address) for address in dict.fromkeys(addresses)]
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="inspector-addresses") as pool:
        return tuple(pool.map(_look_up, asked))


def beside_web(file: WebFile, names: Iterable[str]) -> dict[str, WebFile]:
    """The files of these names in its own folder, a byte asked of each; a name with a slash may lead elsewhere."""
    path, mark, query = file.web.target.partition("?")
    above = path.rpartition("/")[0]
    asked = {name: replace(file.web, target=f"{above}/{quote(name)}{mark}{query}") for name in names if "/" not in name}
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="inspector-addresses") as pool:
        return dict(zip(asked, pool.map(_look_up, asked.values()), strict=True))


def _look_up(web: WebAddress) -> WebFile:
    client = own_client(for_a_look=True)
    try:
        return WebFile(web=web, identity=ask_identity(web, client))
    except InspectorError as error:
        return WebFile(web=web, failed=error)
    finally:
        client.close()
