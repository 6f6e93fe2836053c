"""Every file of a repository of the hub, or of all of an owner's, to be read one by one by whoever goes over many."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from urllib.parse import quote

from inspector.errors import AddressError
from inspector.limits import Limits
from inspector.readers.hub.listing import Repository, list_repository
from inspector.readers.hub.place import HubPlace, endpoint, has_scheme, is_repository, own_access, parse_place
from inspector.readers.plain_json import parse_json
from inspector.remote.address import WebAddress, parse_address
from inspector.remote.client import Client
from inspector.remote.policy import OWN
from inspector.remote.proxy import with_proxy
from inspector.remote.source import HttpSource, Identity

_OWNER = re.compile(r"hf://([A-Za-z0-9][A-Za-z0-9._-]{0,95})/", re.IGNORECASE)
_PAGE_NBYTES = 32 << 20
_PAGES = 1000
_NEXT = re.compile(r'<([^>]+)>\s*;\s*rel="?next"?')


@dataclass(frozen=True, slots=True, kw_only=True)
class HubFile:
    """One file at one commit. tag: its sha256 where the hub says it, else the commit, which says as much."""

    place: HubPlace
    size: int
    tag: str

    @property
    def address(self) -> str:
        return self.place.text

    @property
    def name(self) -> str:
        return self.place.path.rpartition("/")[2]

    def open(self) -> HttpSource:
        """Nothing is fetched before it is read."""
        repository = Repository(place=self.place, files={}, sha256={})
        return HttpSource(
            repository.address_of(self.place.path),
            name=self.name,
            client=_client(),
            identity=Identity(size=self.size),
        )


def list_hub(text: str, limits: Limits) -> Iterator[HubFile]:
    """The files of `hf://org/name` (or below a path in it), or of every model of `hf://org/`.

    Raises AddressRefused for what names neither, AddressError where it cannot be listed.
    """
    client = _client()
    owner = _OWNER.fullmatch(text) if has_scheme(text) else None
    places = _models_of(owner[1], client, limits) if owner else iter((parse_place(text),))
    for place in places:
        repository = list_repository(place, client, limits)
        for path, nbytes in repository.files.items():
            if not place.path or path == place.path or path.startswith(f"{place.path}/"):
                at = HubPlace(
                    repository=repository.place.repository,
                    kind=place.kind,
                    revision=repository.place.revision,
                    path=path,
                )
                yield HubFile(place=at, size=nbytes, tag=repository.sha256.get(path, repository.place.revision))


def _client() -> Client:
    return Client(replace(with_proxy(OWN), access=own_access()))


def _models_of(owner: str, client: Client, limits: Limits) -> Iterator[HubPlace]:
    root = endpoint()
    address: WebAddress | None = parse_address(f"{root.text.rstrip('/')}/api/models?author={quote(owner)}&limit=1000")
    for _ in range(_PAGES):
        if address is None:
            return
        answer = client.get(address, most_nbytes=_PAGE_NBYTES, name=owner)
        if answer.status != 200 or not answer.whole:
            raise AddressError(f"{root.host} does not list the models of {owner} ({answer.status}).")
        listed, _ = parse_json(answer.body, owner, most_values=10 * limits.members, limits=limits)
        if not isinstance(listed, list):
            raise AddressError(f"{root.host} does not answer as a hub does.", hint="See HF_ENDPOINT.")
        for entry in listed:
            name = entry.get("id") if isinstance(entry, dict) else None
            if isinstance(name, str) and is_repository(name):
                yield HubPlace(repository=name)
        following = _NEXT.search(answer.headers.get("Link", ""))
        address = parse_address(following[1]) if following else None
        if address is not None and address.host_and_port != root.host_and_port:
            raise AddressError(f"{root.host} sends to {address.host} for the rest of its list.")
    raise AddressError(f"{root.host} lists more than {_PAGES:,} pages of models of {owner}.")
