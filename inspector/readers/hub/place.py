"""What names a place on the hub: `hf://org/name@revision/path`, the address of one of its pages, or `org/name` where no
such path is here.

Source: huggingface_hub, HfFileSystem (the form of its paths), validate_repo_id (what a name may be; the oldest ones
have no owner) and the hub's own pages.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import TypeGuard
from urllib.parse import quote, unquote

from inspector.errors import AddressRefused
from inspector.readers.not_checkpoints.naming import WEIGHT_SUFFIXES
from inspector.remote.address import WebAddress, is_web_address, parse_address
from inspector.remote.policy import Access

SCHEME = "hf://"
ENDPOINT_VARIABLE, TOKEN_VARIABLE = "HF_ENDPOINT", "HF_TOKEN"
_ENDPOINT = "https://huggingface.co"
_WORD = r"[A-Za-z0-9][\w.-]{0,95}"
_REPOSITORY = re.compile(rf"(?:(?P<kind>models|datasets|spaces)/)?(?P<id>{_WORD}/{_WORD})(?P<rest>[@/].*)?", re.ASCII)
# Names of the hub's first days, which it redirects to those with an owner.
_OWNERLESS = re.compile(rf"(?:(?P<kind>models|datasets|spaces)/)?(?P<id>{_WORD})(?P<rest>[@/].*)?", re.ASCII)
# Pages and files of a repository on the hub's site.
_PAGE = re.compile(
    rf"/(?:(?P<kind>datasets|spaces)/)?(?P<id>{_WORD}(?:/{_WORD})?)"
    rf"(?:/(?:blob|tree|resolve|raw|blame|commits)/(?P<rest>.+))?/?",
    re.ASCII,
)
_SITES = ("https://huggingface.co", "http://huggingface.co", "https://www.huggingface.co", "https://hf.co")
# Pages of the site that are no repository's.
_NO_OWNERS = ("api", "docs", "papers", "collections", "settings", "blog", "join", "login", "models", "organizations")
# The two kinds of revision that have slashes in them, unescaped.
_SPECIAL = re.compile(r"refs/(?:pr/\d+|convert/\w+)")
_BARE = re.compile(rf"{_WORD}/{_WORD}(@[\w.-]+)?", re.ASCII)
_MOST = 1000
_FILES = (*WEIGHT_SUFFIXES, ".json", ".txt", ".py", ".zip", ".tar", ".gz", ".tgz", ".xz", ".yaml", ".yml")


@dataclass(frozen=True, slots=True, kw_only=True)
class HubPlace:
    """kind: "models", "datasets" or "spaces". repository: "org/name", "name" for the oldest. revision: a branch, tag or
    commit, "" for the usual one. path: of a file or folder in it, "" for none named."""

    repository: str
    kind: str = "models"
    revision: str = ""
    path: str = ""

    @property
    def text(self) -> str:
        """As it is written."""
        kind = "" if self.kind == "models" else f"{self.kind}/"
        revision = f"@{quote(self.revision, safe='')}" if self.revision else ""
        return f"{SCHEME}{kind}{self.repository}{revision}{f'/{self.path}' if self.path else ''}"


def is_hub_place(where: object) -> TypeGuard[str]:
    """Whether it names a place on the hub. A bare org/name does only where neither it nor org is here."""
    if not isinstance(where, str):
        return False
    if is_web_address(where):
        return place_of_page(where) is not None
    return has_scheme(where) or (is_bare_id(where) and not os.path.lexists(where.partition("/")[0]))


def has_scheme(text: str) -> bool:
    """Whether it begins with hf://, in letters of any case."""
    return text[: len(SCHEME)].lower() == SCHEME


def place_of_page(address: str) -> HubPlace | None:
    """The place that an address of the hub's site shows or sends, None for every other address.

    The site is the public hub's, whichever hub is asked, and that of HF_ENDPOINT.
    """
    try:
        web, root = parse_address(address), endpoint()
    except AddressRefused:
        return None
    above = root.target.rstrip("/")
    own = web.origin == root.origin and web.target.startswith(f"{above}/")
    if not own and web.origin not in _SITES:
        return None
    target = web.target.removeprefix(above) if own else web.target
    match = _PAGE.fullmatch(target.partition("?")[0])
    if match is None or match["id"].partition("/")[0] in _NO_OWNERS:
        return None
    # A page without more than a name could be anything on a site of one's own, and a file is no repository.
    if not match["rest"] and (match["id"].lower().endswith(_FILES) or (own and "/" not in match["id"])):
        return None
    kind = f"{match['kind']}/" if match["kind"] else ""
    try:
        place = parse_place(f"{SCHEME}{kind}{match['id']}" + (f"@{match['rest']}" if match["rest"] else ""))
        # What an address has escaped is plain in a path; a revision is unescaped already.
        return replace(place, path=_checked_path(unquote(place.path)))
    except AddressRefused:
        return None


def is_repository(name: str) -> bool:
    """Whether a text is a repository's whole name, with its owner."""
    return re.fullmatch(rf"{_WORD}/{_WORD}", name, re.ASCII) is not None


def is_bare_id(text: str) -> bool:
    """Whether a text can be an org/name, and is not called as files are."""
    return _BARE.fullmatch(text) is not None and not text.lower().endswith(_FILES)


def parse_place(text: str) -> HubPlace:
    """Raises AddressRefused for what names none."""
    page = place_of_page(text) if is_web_address(text) else None
    if page is not None:
        return page
    bare = text[len(SCHEME) :] if has_scheme(text) else text
    match = _REPOSITORY.fullmatch(bare) if len(text) <= _MOST else None
    named_file = match is not None and match["id"].lower().endswith(_FILES)
    old = _OWNERLESS.fullmatch(bare) if len(text) <= _MOST else None
    if old is not None and (named_file or (match is None and (old["rest"] or "@")[0] == "@")):
        match = old
    if match is None:
        raise AddressRefused(
            f"{text[:80]} names no repository of the hub.", hint="Write hf://org/name, hf://org/name@revision/file."
        )
    rest, revision = match["rest"] or "", ""
    if rest.startswith("@"):
        special = _SPECIAL.match(rest[1:])
        revision, _, rest = (special[0], "/", rest[1 + special.end() :]) if special else rest[1:].partition("/")
    path = _checked_path(rest.strip("/"))
    return HubPlace(repository=match["id"], kind=match["kind"] or "models", revision=unquote(revision), path=path)


def _checked_path(path: str) -> str:
    if path and any(part in ("", ".", "..") for part in path.split("/")):
        raise AddressRefused(f"{path[:80]} is no path in a repository.")
    return path


def endpoint() -> WebAddress:
    """The hub that is asked: HF_ENDPOINT, else the public one. Raises AddressRefused for what is no address."""
    return parse_address((os.environ.get(ENDPOINT_VARIABLE, "").strip() or _ENDPOINT).rstrip("/") + "/")


def own_access() -> Access | None:
    """HF_TOKEN, for the endpoint alone; None where it is not set."""
    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if not token:
        return None
    if not token.isascii() or not token.isprintable() or " " in token:
        raise AddressRefused(f"{TOKEN_VARIABLE} holds no token: it has characters that none has.")
    return Access(origin=endpoint().origin, header=f"Bearer {token}")
