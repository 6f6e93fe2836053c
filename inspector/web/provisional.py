"""What is told of a file while it is being uploaded, from slices that its browser sends beside.

Known by whose upload it is and a number that the browser drew for it, never by a digest: nobody here has seen the file,
and nothing says that the slices are of it. It goes with the upload, or when nothing came for a while; what the stored
bytes say then is read from them alone.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from inspector.checkpoint.types import Checkpoint
from inspector.errors import NoRoom, UsageError
from inspector.findings import Finding
from inspector.inspection import inspect
from inspector.overview import Answer, summarise_reports
from inspector.readers.header_look import HeaderLook, Waits, Wanted
from inspector.web.answers import figures_of
from inspector.web.components import Figure
from inspector.web.front.variables import own_limits

# Of one file, worst first; how many there are is in the answers.
_MOST_FINDINGS = 500
_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionalView:
    """What the Overview would say of a file if its slices are what they seem. nbytes: of the file, as its browser says.

    requests, fetched_nbytes: what it took.
    """

    name: str
    nbytes: int
    format_says: str
    answers: tuple[Answer, ...]
    figures: tuple[Figure, ...]
    findings: tuple[Finding, ...]
    requests: int
    fetched_nbytes: int


@dataclass(slots=True, kw_only=True)
class _Upload:
    """look: None once it has said what it can. at: when something of it came last. is_reading: slices are on their
    way, or being read."""

    look: HeaderLook | None
    view: ProvisionalView | None = None
    at: float
    is_reading: bool = False


class Uploads:
    """Those of all visitors that are looked at while they come; what each may hold is bounded by `HeaderLook`.

    most, most_each: of all visitors and of each. idle_seconds: without slices, of one whose bytes do not come.
    """

    def __init__(
        self, *, most: int, most_each: int, idle_seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most, self._most_each, self._idle_seconds, self._clock = most, most_each, idle_seconds, clock
        self._lock = threading.Lock()
        self._held: dict[tuple[str, str], _Upload] = {}
        # Whose bytes come, too: as many as the server takes uploads.
        self._coming: set[tuple[str, str]] = set()

    def __len__(self) -> int:
        return len(self._held)

    @property
    def held_nbytes(self) -> int:
        """Of slices."""
        with self._lock:
            return sum(one.look.source.held_nbytes for one in self._held.values() if one.look is not None)

    def begin_round(self, owner: str, ident: str, *, name: str, size: int) -> int:
        """How many bytes of slices are to come now. The round ends with `end_round` or `end`.

        Raises UsageError for what no page of ours asks, NoRoom where too many are looked at.
        """
        if _ID.fullmatch(ident) is None or size <= 0:
            raise UsageError("This is no upload of ours.")
        with self._lock:
            self._drop_idle()
            one = self._held.get((owner, ident))
            if one is None:
                self._check_room(owner)
                one = self._held[owner, ident] = _Upload(look=HeaderLook(size, name), at=self._clock())
            if one.look is None or one.is_reading or one.look.source.size != size:
                raise UsageError("This upload is asked for nothing now.")
            one.is_reading = True
            return one.look.wanted.nbytes

    def end_round(self, owner: str, ident: str, data: bytes) -> ProvisionalView | Wanted | Waits:
        """What the slices say. Takes seconds where they are hostile. Raises UsageError as `HeaderLook.take`, and where
        the upload has ended meanwhile."""
        with self._lock:
            one = self._held.get((owner, ident))
            look = one.look if one is not None else None
        if one is None or look is None:
            raise UsageError("The upload has ended.")
        outcome: ProvisionalView | Wanted | Waits
        came = look.take(data)
        outcome = came if isinstance(came, Wanted | Waits) else _view(look, came)
        with self._lock:
            one.is_reading, one.at = False, self._clock()
            if not isinstance(outcome, Wanted):
                # Its slices have served; of what was opened from them nothing is kept.
                look.source.close()
                one.look = None
            if isinstance(outcome, ProvisionalView):
                one.view = outcome
        return outcome

    def coming(self, owner: str, ident: str) -> None:
        """Its bytes begin to come: what is known of it stays until `end`."""
        if _ID.fullmatch(ident):
            with self._lock:
                self._coming.add((owner, ident))

    def end(self, owner: str, ident: str) -> None:
        """It has arrived, was stopped or refused; nothing of its slices stays."""
        with self._lock:
            one = self._held.pop((owner, ident), None)
            self._coming.discard((owner, ident))
        if one is not None and one.look is not None:
            one.look.source.close()

    def find(self, owner: str, ident: str) -> ProvisionalView | None:
        """What is told of it; None for what is unknown, of somebody else, or has ended."""
        with self._lock:
            self._drop_idle()
            one = self._held.get((owner, ident))
            return one.view if one is not None else None

    def sweep(self) -> None:
        """Drop what nobody goes on with."""
        with self._lock:
            self._drop_idle()

    def _drop_idle(self) -> None:
        until = self._clock() - self._idle_seconds
        for key, one in list(self._held.items()):
            if one.at < until and key not in self._coming and not one.is_reading:
                del self._held[key]

    def _check_room(self, owner: str) -> None:
        own = sum(whose == owner for whose, _ in self._held)
        if own >= self._most_each or len(self._held) >= self._most:
            raise NoRoom("Too many uploads are looked at while they come.")


def _view(look: HeaderLook, checkpoint: Checkpoint) -> ProvisionalView:
    inspection = inspect(checkpoint)
    overview = summarise_reports(inspection)
    return ProvisionalView(
        name=look.source.name,
        nbytes=look.source.size,
        format_says=checkpoint.format_says,
        answers=overview.answers,
        figures=tuple(figures_of(checkpoint, inspection.parameters)),
        findings=overview.findings[:_MOST_FINDINGS],
        requests=look.requests,
        fetched_nbytes=look.nbytes,
    )


@lru_cache(maxsize=1)
def the_uploads() -> Uploads:
    """Of this process."""
    limits = own_limits()
    return Uploads(most=limits.uploads, most_each=limits.uploads_each, idle_seconds=limits.upload_idle_seconds)
