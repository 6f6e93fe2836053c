"""A file behind an address, or a place on the hub, opened by its header: what it is, and by what it is known again."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace

from inspector.checkpoint.types import Checkpoint
from inspector.readers.entry import Opening, Peek
from inspector.readers.hub.opening import open_place
from inspector.readers.hub.place import endpoint, is_hub_place, own_access
from inspector.readers.web_folder import folder_of_index
from inspector.remote.address import WebAddress, is_web_address, parse_address
from inspector.remote.client import Client
from inspector.remote.policy import OWN, OWN_LOOK, Policy
from inspector.remote.proxy import with_proxy
from inspector.remote.source import HttpSource, Identity


@dataclass(frozen=True, slots=True, kw_only=True)
class RemotePart:
    """One file of it. name: its path in the repository, else its last part. sha256: where the hub says it.
    beside: whether it is evidence beside the checkpoint and no part of it."""

    address: WebAddress
    name: str
    identity: Identity
    sha256: str = ""
    beside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteOpened:
    """where: what opens the same again, a place on the hub with its commit. title: what to call it. host: who serves
    it. parts: every file that belongs to it. requests, fetched_nbytes: that it took."""

    checkpoint: Checkpoint
    where: str
    title: str
    host: str
    parts: tuple[RemotePart, ...]
    requests: int
    fetched_nbytes: int

    @property
    def wanted(self) -> tuple[RemotePart, ...]:
        """What is fetched for all of it: the one file as it is, so that its digest is the file's; several with what
        lies beside them, as a folder."""
        own = tuple(part for part in self.parts if not part.beside)
        return own if len(own) == 1 else self.parts

    @property
    def nbytes(self) -> int:
        """Of what is wanted."""
        return sum(part.identity.size for part in self.wanted)

    @property
    def digest(self) -> str:
        """Of where it is and what its server says of it, as hexadecimal digits. Not of its content: none was read."""
        told = [(p.name, p.identity.size, p.identity.etag, p.identity.modified, p.sha256) for p in self.parts]
        return hashlib.sha256(json.dumps(["remote", self.where, told]).encode()).hexdigest()


def own_client(*, for_a_look: bool = False) -> Client:
    """For the command line and Python: this machine's networks are its user's, and so is HF_TOKEN.

    for_a_look: for what is over once a header or a listing is read.
    """
    return Client(replace(with_proxy(OWN_LOOK if for_a_look else OWN), access=own_access()))


def hub_trusted(policy: Policy) -> Policy:
    """The same, that may ask the hub of HF_ENDPOINT wherever it is: whoever set that chose it."""
    return replace(policy, trusted=(*policy.trusted, endpoint().origin))


def open_remote(where: str, opening: Opening, *, name: str = "", client: Client | None = None) -> RemoteOpened:
    """Raises AddressError for what cannot be had, and what the readers raise."""
    own = client is None
    client = client or own_client(for_a_look=True)
    before, nbytes = client.requests, client.nbytes
    if not is_web_address(where) or is_hub_place(where):
        found = open_place(where, opening, client)
        parts = tuple(
            RemotePart(
                address=found.repository.address_of(path),
                name=path,
                identity=Identity(size=found.repository.files[path]),
                sha256=found.repository.sha256.get(path, ""),
                beside=path in found.beside,
            )
            for path in (*found.files, *found.beside)
        )
        # Shards are the folder that they lie in.
        path = found.place.path
        inside = path.rpartition("/")[0] if path.endswith(".index.json") else path
        title = f"{found.place.repository}/{inside}".rstrip("/")
        checkpoint, text, host = found.checkpoint, found.place.text, endpoint().host
    else:
        address = parse_address(where)
        source = HttpSource(address, name=name, client=client)
        folder = None
        try:
            folder = folder_of_index(source, opening.limits)
            checkpoint = opening.file(Peek(source, opening, folder))
        except Exception:
            if folder is not None:
                folder.close()
            for one in (source,) if folder is None else folder.sources():
                one.close()
            raise
        sources = (source,) if folder is None else folder.sources()
        if folder is not None:
            folder.close()
        parts = tuple(RemotePart(address=one.web, name=one.name, identity=one.identity) for one in sources)
        title, text, host = source.name if folder is None else folder.name, address.text, address.host
    if own:
        client.end_look()
    return RemoteOpened(
        checkpoint=checkpoint,
        where=text,
        title=title,
        host=host,
        parts=parts,
        requests=client.requests - before,
        fetched_nbytes=client.nbytes - nbytes,
    )
