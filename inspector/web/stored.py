"""What the store notes of one file, and which files go when it is swept."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

# Of bytes, or as `remote_id` makes it.
_DIGEST = re.compile(r"[0-9a-f]{64}|r[0-9a-f]{63}")
# A record stays small however many sessions open the same sample; the ones that came last are remembered.
_OWNERS_KEPT = 64
#: How the name of a file begins that is fetched from an address.
FETCHED = "fetch-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """One file of the store.

    names: what each owner (a visitor, see `session.owner`) calls it. added, used: seconds since 1970.
    path: set where the data stay outside the store, in the folder that the server's owner opened to visitors.
    remote: the address or place on the hub where the data are, none of them here; sha256 is then no digest of them but
    of what their server says of them, and begins with a letter that no digest has.
    modified_ns: that file's time when its digest was taken; another one means other bytes.
    crowded: whether more had it than are in names: then only its age takes it away. opened: when each of them last
    looked at it as a checkpoint, seconds since 1970; pictures are in none.
    """

    sha256: str
    nbytes: int
    added: float
    used: float
    names: dict[str, str] = field(default_factory=dict)
    path: str = ""
    modified_ns: int = 0
    remote: str = ""
    crowded: bool = False
    opened: dict[str, float] = field(default_factory=dict)

    def is_owned_by(self, owner: str) -> bool:
        """Whether that one alone has it."""
        return self.names.keys() == {owner} and not self.crowded


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """How much is kept and how long. owner_nbytes: of the files that one visitor alone has, None for no such limit.
    busy_seconds: what others used within them does not go for a new upload."""

    nbytes: int
    owner_nbytes: int | None
    ttl_seconds: float
    busy_seconds: float


def leaving(
    records: Sequence[Stored], quota: Quota, *, now: float, exported: int = 0, room_for: int = 0, owner: str = ""
) -> tuple[tuple[Stored, ...], bool]:
    """(those that go, whether what is about to come has room then).

    What is too old, then of the visitor's own what is over that one's share, then the least recently used until the
    store is under its quota. exported: bytes beside the records. room_for: bytes that are about to come, of that owner.
    """
    old = [one for one in records if now - one.used > quota.ttl_seconds]
    kept = sorted(_without([one for one in records if not one.path and not one.remote], old), key=lambda one: one.used)
    own = [one for one in kept if one.is_owned_by(owner)]
    over_own = 0 if quota.owner_nbytes is None else _nbytes(own) + room_for - quota.owner_nbytes
    too_many = _first(own, over_own)
    kept, own = _without(kept, too_many), _without(own, too_many)
    over = _nbytes(kept) + exported + room_for - quota.nbytes
    others = _without(kept, own)
    busy = [one for one in others if room_for and now - one.used < quota.busy_seconds]
    pushed = _first(_without(kept, busy), over)
    return (*old, *too_many, *pushed), over <= _nbytes(pushed)


def with_owner(stored: Stored, owner: str, name: str, opened: float | None = None) -> dict[str, object]:
    """What changes when somebody has it, too, and calls it so. opened: where that one looks at it now."""
    others = [(who, called) for who, called in stored.names.items() if who != owner]
    names = dict([*others[1 - _OWNERS_KEPT :], (owner, name)])
    return {
        "names": names,
        "opened": {who: at for who, at in stored.opened.items() if who in names}
        | ({owner: opened} if opened is not None else {}),
        "crowded": stored.crowded or len(others) >= _OWNERS_KEPT,
    }


def remote_id(digest: str) -> str:
    """What a file that is elsewhere is known by: no sha256, and never mistaken for one."""
    return f"r{digest[:63]}"


def is_digest(text: str) -> bool:
    """Whether it is a sha256 as we write it, or the id of a file that is elsewhere."""
    return _DIGEST.fullmatch(text) is not None


def clean_name(name: str) -> str:
    """A visitor's file name as it may be shown: its last segment, printable, at most 200 characters."""
    last = re.split(r"[/\\]", name)[-1]
    return "".join(c for c in last if c.isprintable()).strip()[:200] or "unnamed file"


def sweep_fetches(incoming: Path, since: float) -> None:
    """Remove what was fetched of an address for visitors who left, or whose worker was ended amid a silence: what
    nothing was written to since then."""
    for rest in incoming.glob(f"{FETCHED}*"):
        with suppress(OSError):
            if rest.stat().st_mtime < since:
                rest.unlink()


def linked_name(name: str) -> str:
    """What a link calls a file: its folders, too, each part as `clean_name` shows it."""
    parts = (clean_name(part) for part in re.split(r"[/\\]", name) if part.strip(" ."))
    return "/".join(parts)[:200] or "unnamed file"


def _without(records: Sequence[Stored], some: Sequence[Stored]) -> list[Stored]:
    left_out = {one.sha256 for one in some}
    return [one for one in records if one.sha256 not in left_out]


def _first(records: Sequence[Stored], nbytes: int) -> list[Stored]:
    """As few of the first as hold that many bytes."""
    found: list[Stored] = []
    for one in records:
        if nbytes <= 0:
            break
        found.append(one)
        nbytes -= one.nbytes
    return found


def _nbytes(records: Collection[Stored]) -> int:
    return sum(one.nbytes for one in records)
