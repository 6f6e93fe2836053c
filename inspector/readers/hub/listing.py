"""What a repository holds, as the hub's API says: one request for the commit and every file with its length.

Source: huggingface_hub, HfApi.model_info(files_metadata=True) and list_repo_refs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote

from inspector.errors import AddressError, ReadError
from inspector.limits import Limits
from inspector.readers.folder import leads_outside
from inspector.readers.hub.place import HubPlace, endpoint, is_repository
from inspector.readers.plain_json import parse_json
from inspector.remote.address import WebAddress
from inspector.remote.client import Answer, Client
from inspector.remote.refusals import GATED_HINT, advice

_LISTING_NBYTES = 32 << 20
_REFS_NBYTES = 4 << 20
_LISTED = 8
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A repository at one commit. place: as it was asked for, its revision the commit where the hub says it.
    files: path -> bytes. sha256: of those that the hub knows the digest of (LFS). gated: whether it is given only to
    those who agreed to its terms."""

    place: HubPlace
    files: Mapping[str, int]
    sha256: Mapping[str, str]
    gated: bool = False

    def address_of(self, path: str) -> WebAddress:
        """Where one file is fetched."""
        place = self.place
        kind = "" if place.kind == "models" else f"{place.kind}/"
        revision = quote(place.revision or "main", safe="")
        return _below(f"{kind}{place.repository}/resolve/{revision}/{quote(path)}")


def list_repository(place: HubPlace, client: Client, limits: Limits) -> Repository:
    """Raises AddressError where there is none. Of more than limits.members files the first count."""
    revision = quote(place.revision or "main", safe="")
    address = _below(f"api/{place.kind}/{place.repository}/revision/{revision}?blobs=true")
    answer = client.get(address, most_nbytes=_LISTING_NBYTES, name=place.repository)
    if answer.status != 200:
        raise _refused(place, answer, client, limits)
    value = _json(answer, place, limits)
    siblings = value.get("siblings")
    if not isinstance(siblings, list):
        raise AddressError(f"{endpoint().host} does not list the files of {place.repository}.")
    files: dict[str, int] = {}
    digests: dict[str, str] = {}
    for entry in siblings[: limits.members]:
        if not isinstance(entry, dict):
            continue
        path, nbytes, lfs = entry.get("rfilename"), entry.get("size"), entry.get("lfs")
        if not isinstance(path, str) or leads_outside(path) or type(nbytes) is not int or nbytes < 0:
            continue
        files[path] = nbytes
        digest = lfs.get("sha256") if isinstance(lfs, dict) else None
        if isinstance(digest, str) and re.fullmatch(r"[0-9a-f]{64}", digest):
            digests[path] = digest
    commit = value.get("sha")
    if isinstance(commit, str) and _COMMIT.fullmatch(commit):
        place = replace(place, revision=commit)
    # A name that was given up, or one without an owner, is answered for by the repository that has it now.
    name = value.get("id")
    if isinstance(name, str) and is_repository(name):
        place = replace(place, repository=name)
    gated = value.get("gated") not in (None, False)
    return Repository(place=place, files=dict(sorted(files.items())), sha256=digests, gated=gated)


def list_revisions(place: HubPlace, client: Client, limits: Limits) -> tuple[str, ...]:
    """Branches, then tags. Raises AddressError where they cannot be listed."""
    address = _below(f"api/{place.kind}/{place.repository}/refs")
    answer = client.get(address, most_nbytes=_REFS_NBYTES, name=place.repository)
    if answer.status != 200:
        raise AddressError(f"{endpoint().host} does not list the revisions of {place.repository}.")
    value = _json(answer, place, limits)
    found: list[str] = []
    for group in ("branches", "tags"):
        entries = value.get(group)
        names = [entry.get("name") for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
        found += [name for name in names if isinstance(name, str) and len(name) <= 200]
    return tuple(dict.fromkeys(found))


def _below(path: str) -> WebAddress:
    root = endpoint()
    return replace(root, target=root.target.partition("?")[0] + path)


def _json(answer: Answer, place: HubPlace, limits: Limits) -> dict[str, object]:
    if not answer.whole:
        raise AddressError(f"{endpoint().host} lists more of {place.repository} than is read ({_LISTING_NBYTES:,} B).")
    try:
        value, _ = parse_json(answer.body, place.repository, most_values=10 * limits.members, limits=limits)
    except ReadError as error:
        raise AddressError(f"{endpoint().host} does not answer as a hub does.", hint="See HF_ENDPOINT.") from error
    if not isinstance(value, dict):
        raise AddressError(f"{endpoint().host} does not answer as a hub does.", hint="See HF_ENDPOINT.")
    return value


def _refused(place: HubPlace, answer: Answer, client: Client, limits: Limits) -> AddressError:
    """Why the hub does not list it. Without a token it says of private repositories what it says of none."""
    host, code = endpoint().host, answer.headers.get("X-Error-Code", "")
    if code == "RevisionNotFound" or (answer.status == 404 and code != "RepoNotFound" and place.revision):
        try:
            known = ", ".join(name[:60] for name in list_revisions(place, client, limits)[:_LISTED])
        except ReadError:
            known = ""
        if known or code == "RevisionNotFound":
            return AddressError(
                f"{place.repository} has no revision {place.revision[:60]!r} on {host}.",
                hint=f"It has {known}." if known else "",
            )
    if code == "GatedRepo" or answer.status == 403:
        return AddressError(
            f"{place.repository} is gated on {host}: it is given to those who agreed to its terms.",
            hint=GATED_HINT,
        )
    if answer.status in (401, 404):
        return AddressError(
            f"{host} has no repository {place.repository} that everybody may read.",
            hint="Check the name; for a private one set HF_TOKEN for the command line.",
        )
    return AddressError(
        f"{host} answers {answer.status} {answer.reason[:60]} about {place.repository}.", hint=advice(answer.status)
    )
