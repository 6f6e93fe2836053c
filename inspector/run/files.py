"""What may be a member of a run: files, and those that lie in archives. Nothing is opened before it is its turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from inspector.checkpoint.source import ByteSource, PathSource
from inspector.checkpoint.types import Checkpoint
from inspector.errors import ReadError
from inspector.events.find import is_event_file
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.readers import open_checkpoint
from inspector.readers.folder import SubFolder
from inspector.readers.inside import Inside, look_inside
from inspector.readers.opening import open_below

# A folder that is one checkpoint in pieces has one of these beside the pieces; of one with a trainer's state that says
# where in the training it was saved.
_INDEXES = (".index.json", "adapter_config.json", ".metadata")
OF_ONE = ("trainer_state.json",)


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFile:
    """One file or folder that may be a checkpoint.

    name: for display. opening: opens it anew; raises InspectorError. let_go: frees what opening took beside the source.
    asked: somebody named it, so that it is said of it where it is no checkpoint.
    """

    name: str
    opening: Callable[[], Checkpoint]
    let_go: Callable[[], None] = _nothing
    asked: bool = False

    def close(self, checkpoint: Checkpoint) -> None:
        """Done with it for now."""
        checkpoint.source.close()
        self.let_go()


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFiles:
    """Event files of one folder, in TensorBoard's order. open: one of them each."""

    name: str
    open: tuple[Callable[[], ByteSource], ...]


_Found = tuple[list[RunFile], list[EventFiles]]


@contextmanager
def opened(file: RunFile) -> Iterator[Checkpoint]:
    """The checkpoint, closed afterwards. Raises what opening raises."""
    checkpoint = file.opening()
    try:
        yield checkpoint
    finally:
        file.close(checkpoint)


def files_at(path: Path, name: str, whole: RunFile, limits: Limits = DEFAULT_LIMITS) -> _Found:
    """(checkpoints to be, event files) of one file: the members of an archive of several, else `whole`."""
    if is_event_file(name.rpartition("/")[2]):
        return [], [EventFiles(name=name, open=(lambda: PathSource(path, name),))]
    source = PathSource(path, name)
    try:
        inside = _archive(source, limits)
    except ReadError:
        # Whoever opens it says what is wrong with it.
        inside = None
    if inside is None:
        source.close()
        return [whole], []
    return _members(inside, name)


def event_folders(named: Sequence[tuple[str, Callable[[], ByteSource]]]) -> list[EventFiles]:
    """named: (path of an event file, what opens it); those of one folder are one log."""
    folders = sorted({name.rpartition("/")[0] for name, _ in named})
    return [
        EventFiles(
            name=folder or ".", open=tuple(open_ for name, open_ in sorted(named, key=_name) if _in(name, folder))
        )
        for folder in folders
    ]


def _name(named: tuple[str, object]) -> str:
    return named[0]


def _in(name: str, folder: str) -> bool:
    return name.rpartition("/")[0] == folder


def _archive(source: ByteSource, limits: Limits) -> Inside | None:
    """An archive of files that is no one checkpoint."""
    inside = look_inside(source, limits, at_end=False)
    if inside is not None and inside.stream is not None:
        # What is packed as a whole: a tar, or one checkpoint.
        inside = look_inside(inside.stream, limits, at_end=False)
    if inside is None or inside.strays or inside.stream is not None or not inside.names:
        return None
    pieces = {_folder(name) for name in inside.names if name.endswith(_INDEXES)}
    # What lies in pieces at the top is one checkpoint.
    return None if inside.root in pieces else inside


def _folder(name: str) -> str:
    """What stands in front of the file, with its "/"; "" for nothing."""
    return name[: name.rfind("/") + 1]


def _members(inside: Inside, name: str) -> _Found:
    events = [one for one in inside.names if is_event_file(one.rpartition("/")[2])]
    logs = event_folders([(f"{name}/{one}", _opener(inside, one)) for one in events])
    marked = {_folder(one) for one in inside.names if one.endswith(_INDEXES) or one.rpartition("/")[2] in OF_ONE}
    whole = tuple(sorted(marked - {"", inside.root}))
    files = [_whole(inside, one.rstrip("/")) for one in whole if not one.startswith(tuple(set(whole) - {one}))]
    apart = set(events)
    files += [_member(inside, one) for one in inside.names if one not in apart and not one.startswith(whole)]
    return files, logs


def _opener(inside: Inside, name: str) -> Callable[[], ByteSource]:
    return lambda: inside.open(name)


def _whole(inside: Inside, path: str) -> RunFile:
    """A folder that is one checkpoint."""
    names = [name for name in inside.names if name.startswith(f"{path}/")]

    def opening() -> Checkpoint:
        assert inside.folder is not None
        return open_below(SubFolder(inside.folder, path, path))

    def let_go() -> None:
        for name in names:
            inside.close(name)

    return RunFile(name=path, opening=opening, let_go=let_go)


def _member(inside: Inside, name: str) -> RunFile:
    return RunFile(
        name=name,
        opening=lambda: open_checkpoint(inside.open(name), name=name),
        let_go=lambda: inside.close(name),
    )
