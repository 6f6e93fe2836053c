"""From a place on the hub to a checkpoint: listed, chosen, its header read by ranges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from inspector.checkpoint.types import Checkpoint
from inspector.errors import AddressError, ReadError, UnknownFormat
from inspector.readers.entry import FolderPeek, Opening, Peek
from inspector.readers.finish import with_findings
from inspector.readers.folder import Folder, SubFolder
from inspector.readers.hub.choice import Candidate, Choice, choose, may_name_code
from inspector.readers.hub.folder import HubFolder
from inspector.readers.hub.listing import Repository, list_repository
from inspector.readers.hub.place import HubPlace, has_scheme, parse_place
from inspector.readers.single_file import opened_inside
from inspector.remote.address import is_web_address
from inspector.remote.client import Client
from inspector.units import counted, human_bytes

_LISTED = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class HubOpened:
    """place: with the commit and the path of what was opened, so that the same is opened again. files: that are the
    checkpoint, beside: that were read of as evidence."""

    checkpoint: Checkpoint
    place: HubPlace
    repository: Repository
    files: tuple[str, ...]
    beside: tuple[str, ...]


def open_place(where: str, opening: Opening, client: Client) -> HubOpened:
    """Raises AddressError for what cannot be had, UnknownFormat where several checkpoints could be meant, and what the
    reader raises."""
    place = parse_place(where)
    try:
        repository = list_repository(place, client, opening.limits)
    except AddressError as error:
        if has_scheme(where) or is_web_address(where):
            raise
        raise type(error)(
            f"There is no file {where[:100]} here, and as an id of the hub: {error.says}", hint=error.hint
        ) from error
    choice = _choice(repository, place.path)
    best = choice.best
    if best is None:
        raise _several(place, choice, repository.files)
    # Shards without an index are found again through their folder: the first one's name means that one alone.
    place = replace(repository.place, path=best.path if best.has_index else best.path.rpartition("/")[0])
    folder = HubFolder(repository, client, None if best.has_index else best.files)
    try:
        checkpoint = _open(folder, best, opening)
    finally:
        folder.close()
    unread = may_name_code(repository.files, best, folder.opened)
    checkpoint = replace(checkpoint, unread=(*checkpoint.unread, *unread))
    if choice.others:
        finding = opened_inside(folder, best.stands_for, choice.others)
        checkpoint = with_findings(checkpoint, behind=[finding])
    return HubOpened(
        checkpoint=checkpoint,
        place=place,
        repository=repository,
        files=best.files,
        beside=tuple(path for path in folder.opened if path not in best.files),
    )


def _choice(repository: Repository, path: str) -> Choice:
    files = repository.files
    if path in files:
        whole = next((c for c in choose(files).candidates if c.path == path), None)
        one = Candidate(path=path, stands_for=path, files=(path,), nbytes=files[path])
        return Choice(candidates=(whole or one,), best=whole if whole is not None and whole.has_index else one)
    found = choose(files, path)
    if path and not any(name.startswith(f"{path}/") for name in files):
        raise ReadError(
            f"{repository.place.repository} has no file {path[:100]}.",
            hint=_listed("It has", choose(files)) if choose(files).candidates else "",
        )
    return found


def _open(folder: HubFolder, best: Candidate, opening: Opening) -> Checkpoint:
    above, _, base = best.path.rpartition("/")
    beside: Folder = SubFolder(folder, above) if above else folder
    if not best.has_index:
        return opening.folder(FolderPeek(beside, opening))
    return opening.file(Peek(beside.open(base), opening, beside))


def _several(place: HubPlace, choice: Choice, files: Mapping[str, int]) -> UnknownFormat:
    where = f"{place.repository}/{place.path}".rstrip("/")
    if not choice.candidates:
        return UnknownFormat(f"{where} has no file that is named as a checkpoint.", hint=told_files(files, place.path))
    return UnknownFormat(
        f"{where} has {counted(len(choice.candidates), 'checkpoint')} that could be meant.",
        hint=_listed(f"Open one by {replace(place, path='').text}/ and its name:", choice),
    )


def told_files(files: Mapping[str, int], under: str = "") -> str:
    """What a repository, or a folder of it, has, in a sentence."""
    inside = [path for path in files if not under or path.startswith(f"{under}/")]
    if not inside:
        return "It is empty."
    named = [f"{path[:80]} ({human_bytes(files[path])})" for path in inside[:_LISTED]]
    more = f" and {len(inside) - _LISTED:,} more" if len(inside) > _LISTED else ""
    return f"It has {', '.join(named)}{more}."


def _listed(begin: str, choice: Choice) -> str:
    listed = "; ".join(candidate.says[:120] for candidate in choice.candidates[:_LISTED])
    more = f" and {len(choice.candidates) - _LISTED} more" if len(choice.candidates) > _LISTED else ""
    return f"{begin} {listed}{more}."
