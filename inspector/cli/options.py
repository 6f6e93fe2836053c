"""Options that several commands share, and how they open, show and leave."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inspector.cli.ending import printing
from inspector.errors import InspectorError, UsageError
from inspector.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType

    from inspector.architectures.types import Candidate, Recognition, Target
    from inspector.checkpoint.types import Checkpoint, StateDict
    from inspector.findings import Finding
    from inspector.progress import Progress

# Moved out of a region, it costs some ten dollars.
UNASKED_NBYTES = 100_000_000_000

FILE_HELP = (
    "A checkpoint: a path, an http(s) address that answers ranges, or hf://org/name[@revision][/file] on the hub."
)
File = Annotated[str, typer.Argument(help=f"{FILE_HELP[:-1]}; also s3://, gs:// and az:// with [remote].")]
Json = Annotated[bool, typer.Option("--json", help="Print the report as JSON on standard output.")]
State = Annotated[
    str,
    typer.Option(
        "--state", metavar="NAME", help='Which state dict of the file, e.g. "ema"; the likeliest if left out.'
    ),
]
Digest = Annotated[
    bool,
    typer.Option("--digest", help="Also compute the sha256 of a file at an address, which fetches all of it."),
]
FailOn = Annotated[Severity, typer.Option("--fail-on", help="Exit with 1 if a finding is at least this severe.")]
StoreOption = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="DIR",
        help="A folder of its own, or a prefix of a bucket, for results: what is there is not read again.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Fetch also more than 100 GB of numbers from addresses.")]
TargetOption = Annotated[
    str,
    typer.Option(
        "--target",
        metavar="T",
        help="torchvision/resnet18, torchvision/resnet18?num_classes=1000, timm/resnetaa50, file:other.safetensors, "
        "keys:list.txt or code:model.py:build (runs it).",
    ),
]


def refuse_unnamed_code(text: str) -> None:
    """Raise UsageError for net.py and code:net.py, which name no network, with the names that are in it."""
    from inspector.architectures.source_names import offered_names
    from inspector.side_files import PathKind, kind_of_path, read_text, shown_name

    where = text.strip().removeprefix("code:")
    if not where.endswith(".py") or ":" in where.rpartition("/")[2] or kind_of_path(Path(where)) is PathKind.NOTHING:
        return
    try:
        names = offered_names(read_text(where, "source"))
    except InspectorError as error:
        raise UsageError(f"{shown_name(where)} is to be Python source. {error.says}", hint=error.hint) from error
    written = [f"code:{where}:{name}" for name in names[:6]]
    raise UsageError(
        f"{shown_name(where)} is Python source; say which network in it is to be built, and it is run.",
        hint=f"Write {' or '.join(written)}." if written else f"No network was found in it by name: code:{where}:NAME.",
    )


def refuse_addresses(paths: Iterable[str], command: str) -> None:
    """Raise UsageError where one of the paths is an address, for a command that looks at this machine alone."""
    from inspector.readers.hub.place import has_scheme
    from inspector.readers.opening import is_address

    for path in paths:
        if is_address(path) or has_scheme(path):
            raise UsageError(
                f"{path[:200]} is an address, and `{command}` looks at files and folders of this machine.",
                hint="`open` takes it, by its header; for the rest fetch it first.",
            )


def open_file(where: str, *, digest: bool = False) -> Checkpoint:
    """The checkpoint behind a path or address, with its sha256 if asked."""
    from inspector.checkpoint.digest import with_digest

    checkpoint = _opened(where)
    return with_digest(checkpoint, progress_bar("sha256")) if digest else checkpoint


def _opened(where: str) -> Checkpoint:
    scheme, colon, _ = where.partition("://")
    if colon and scheme.lower() not in ("http", "https", "hf"):
        from inspector.readers.bucket import is_bucket_address, open_bucket

        if is_bucket_address(where):
            return open_bucket(where)
    from inspector.readers import open_checkpoint

    return open_checkpoint(where)


def pick_state(checkpoint: Checkpoint, name: str) -> StateDict | None:
    """The state dict of that label or last key; the likeliest weights for ""."""
    if not name:
        return checkpoint.weights
    wanted = [s for s in checkpoint.state_dicts if name in (s.label, ".".join(s.path), s.path[-1] if s.path else "")]
    if len(wanted) == 1:
        return wanted[0]
    have = ", ".join(s.label for s in checkpoint.state_dicts) or "none"
    raise UsageError(f'The file has {len(wanted)} state dicts called "{name}".', hint=f"It has: {have}.")


def recognised(checkpoint: Checkpoint, state: StateDict | None, *, describe: bool = True) -> Recognition:
    """What the state dict is; an error when there is none. describe: with the structure of what nobody knows."""
    from inspector.architectures.recognise import recognise
    from inspector.errors import UnknownArchitecture

    if state is None:
        raise UnknownArchitecture(f"{checkpoint.origin.name} holds no state dict: there are no names to recognise.")
    return recognise(checkpoint, state, describe=describe)


def refuse_another(checkpoint: Checkpoint, recognition: Recognition, state: StateDict | None) -> None:
    """Raise UnknownArchitecture where a file is only near its best candidate: what that costs and how it is drawn would
    be another network's."""
    from inspector.errors import UnknownArchitecture
    from inspector.keys.runnable import why_another

    why = why_another(checkpoint, recognition, state)
    if why and recognition.best is not None:
        label = recognition.best.spec.label
        raise UnknownArchitecture(
            why,
            hint=f"Your own code gives what is true of it: code:model.py:build. Of the stock network: {label}.",
        )


def find_target(text: str, checkpoint: Checkpoint, state: StateDict | None) -> Target:
    """The target as written, or the best candidate for ""."""
    from inspector.architectures.following import shapes_of
    from inspector.architectures.targets import follow_shapes, parse_target, target_of_candidate
    from inspector.architectures.user_code import target_of_code
    from inspector.errors import UnknownArchitecture

    best: Candidate | None = None
    if not text or not text.startswith(("file:", "keys:", "code:")):
        best = recognised(checkpoint, state, describe=False).best
        if not text and best is None:
            raise UnknownArchitecture(
                f"{checkpoint.origin.name} was not recognised, so there is nothing to compare it with.",
                hint="Name a target: --target torchvision/resnet18, file:other.pth, keys:list.txt or code:net.py:make.",
            )
    if not text:
        assert best is not None
        return follow_shapes(target_of_candidate(best), state)
    return parse_target(
        text,
        candidate=best,
        state=state,
        open_file=open_file,
        run_code=lambda code: target_of_code(code, shapes=shapes_of(state) if state is not None else ()),
    )


def show_json(report: object) -> None:
    """The report as JSON on standard output."""
    from inspector.render.json import write_json

    use_utf8()
    with printing():
        write_json(report, sys.stdout.write)
        print()


def use_utf8() -> None:
    """JSON and its like are UTF-8, whatever the terminal speaks."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")


def show(report: object, renderable: Callable[[], RenderableType], *, as_json: bool) -> None:
    """The report on standard output, as JSON or as text."""
    if as_json:
        show_json(report)
        return
    from rich.console import Console

    made = renderable()
    with printing():
        console = Console(highlight=False)
        if not console.is_terminal:
            # A pipe has no width; 80 would fold long keys that the next program wants whole.
            console = Console(highlight=False, width=160)
        # By its own writing rich would end the program where nobody reads.
        with console.capture() as text:
            console.print(made)
        sys.stdout.write(text.get())


def exit_code(findings: Iterable[Finding], fail_on: Severity) -> int:
    """1 when one of the findings is at least that severe."""
    return int(any(f.severity.rank >= fail_on.rank for f in findings))


def progress_bar(what: str) -> Progress:
    """A line on standard error that rewrites itself, for terminals; silent elsewhere."""
    if not sys.stderr.isatty():
        from inspector.progress import silent

        return silent
    last = 0.0

    def report(done: int, total: int | None, note: str) -> None:
        nonlocal last
        now = time.monotonic()
        finished = total is not None and done >= total
        if now - last < 0.1 and not finished:
            return
        last = now
        share = f"{done / total:4.0%}" if total else f"{done:,}"
        line = "" if finished else f"{what} {share} {note}"[:100]
        # A terminal that was closed is no reason to stop the work.
        with suppress(OSError):
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)

    return report
