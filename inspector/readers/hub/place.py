"""What names a place on the hub: `hf://org/name@revision/path`, or `org/name` where no such path is here.

Source: huggingface_hub, HfFileSystem (the form of its paths) and validate_repo_id (what a name may be).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TypeGuard
from urllib.parse import quote, unquote

from inspector.errors import AddressRefused
from inspector.readers.not_checkpoints.naming import WEIGHT_SUFFIXES
from inspector.remote.address import WebAddress, parse_address
from inspector.remote.policy import Access

SCHEME = "hf://"
ENDPOINT_VARIABLE, TOKEN_VARIABLE = "HF_ENDPOINT", "HF_TOKEN"
_ENDPOINT = "https://huggingface.co"
_WORD = r"[A-Za-z0-9][\w.-]{0,95}"
_REPOSITORY = re.compile(rf"(?:(?P<kind>models|datasets|spaces)/)?(?P<id>{_WORD}/{_WORD})(?P<rest>[@/].*)?", re.ASCII)
# The two kinds of revision that have slashes in them, unescaped.
_SPECIAL = re.compile(r"refs/(?:pr/\d+|convert/\w+)")
_BARE = re.compile(rf"{_WORD}/{_WORD}(@[\w.-]+)?", re.ASCII)
_MOST = 1000
_FILES = (*WEIGHT_SUFFIXES, ".json", ".txt", ".py", ".zip", ".tar", ".gz", ".tgz", ".xz", ".yaml", ".yml")


@dataclass(frozen=True, slots=True, kw_only=True)
class HubPlace:
    """kind: "models", "datasets" or "spaces". repository: "org/name". revision: a branch, tag or commit, "" for the
    usual one. path: of a file or folder in it, "" for none named."""

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
    return where.startswith(SCHEME) or (is_bare_id(where) and not os.path.lexists(where.partition("/")[0]))


def is_bare_id(text: str) -> bool:
    """Whether a text can be an org/name, and is not called as files are."""
    return _BARE.fullmatch(text) is not None and not text.lower().endswith(_FILES)


def parse_place(text: str) -> HubPlace:
    """Raises AddressRefused for what names none."""
    match = _REPOSITORY.fullmatch(text.removeprefix(SCHEME)) if len(text) <= _MOST else None
    if match is None:
        raise AddressRefused(
            f"{text[:80]} names no repository of the hub.", hint="Write hf://org/name, hf://org/name@revision/file."
        )
    rest, revision = match["rest"] or "", ""
    if rest.startswith("@"):
        special = _SPECIAL.match(rest[1:])
        revision, _, rest = (special[0], "/", rest[1 + special.end() :]) if special else rest[1:].partition("/")
    path = rest.strip("/")
    if any(part in ("", ".", "..") for part in path.split("/")) and path:
        raise AddressRefused(f"{path[:80]} is no path in a repository.")
    return HubPlace(repository=match["id"], kind=match["kind"] or "models", revision=unquote(revision), path=path)


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
