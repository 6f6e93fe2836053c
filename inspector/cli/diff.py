"""diff: what differs between checkpoints, in numbers and in what they prove.

Exit codes as those of diff: 0 the same weights, 1 different, 2 trouble: any file that could not be read, or not whole,
whatever the others are; or a tensor of otherwise equal files.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from inspector.cli.ending import complain, printing
from inspector.cli.options import (
    UNASKED_NBYTES,
    Json,
    StoreOption,
    Yes,
    open_file,
    pick_state,
    progress_bar,
    show,
    show_json,
    use_utf8,
)
from inspector.errors import UsageError
from inspector.render.visible import one_line

if TYPE_CHECKING:
    from rich.console import RenderableType

    from inspector.cli.diff_files import Compared
    from inspector.compare.report import Verdict

Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="A B [C ...]",
        help="Checkpoints: files, folders of one in shards, addresses, hf://org/name. Each is held against the first. "
        "Two folders of files are compared file by file, by name.",
    ),
]
Stat = Annotated[bool, typer.Option("--stat", help="A row per module instead of one per tensor.")]
NamesOnly = Annotated[
    bool,
    typer.Option(
        "--names-only",
        "--name-only",
        help="The names of tensors that differ, and nothing else; of several files with the file before each, and the "
        "file alone where one folder lacks it.",
    ),
]
Tolerance = Annotated[
    float | None,
    typer.Option(
        "--tolerance",
        metavar="REL",
        min=0.0,
        help="Numbers of one shape count as the same up to this relative L2 per tensor, in whatever type; 0: equal "
        "values. They are still shown.",
    ),
]
All = Annotated[
    bool,
    typer.Option(
        "--all",
        help="Compare the optimizer's and all other tensors too, and exit with 1 also where "
        "only these, metadata, classes or code differ.",
    ),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print nothing but what could not be read; the exit code is the answer.")
]
ExitCode = Annotated[bool, typer.Option("--exit-code", help="Accepted for git's sake: it is always so.")]
StateBoth = Annotated[
    str, typer.Option("--state", metavar="NAME", help='Which state dict of every file, e.g. "ema"; else the likeliest.')
]
StateA = Annotated[str, typer.Option("--state-a", metavar="NAME", help="Which one of the first file.")]
StateB = Annotated[str, typer.Option("--state-b", metavar="NAME", help="Which one of the others.")]
ExecutorOption = Annotated[
    str,
    typer.Option(
        "--executor",
        metavar="WHERE",
        help='By pieces: in "threads", in "processes", or on a Dask cluster: tcp://host:8786.',
    ),
]
Jobs = Annotated[int, typer.Option(help="Tensors read side by side; 0: one per processor.", min=0, max=256)]


def diff(
    paths: Paths,
    stat: Stat = False,
    names_only: NamesOnly = False,
    tolerance: Tolerance = None,
    everything: All = False,
    quiet: Quiet = False,
    exit_code: ExitCode = False,
    state: StateBoth = "",
    state_a: StateA = "",
    state_b: StateB = "",
    jobs: Jobs = 0,
    store: StoreOption = "",
    executor: ExecutorOption = "",
    yes: Yes = False,
    json: Json = False,
) -> int:
    """Compare checkpoints: every tensor, every module, and what that proves; exit 0 same, 1 different, 2 trouble.

    With --store or --executor by pieces of 268 MB, of which none is read again after an interruption.
    """
    from inspector.cli.diff_files import Comparing, compare_paths

    if len(paths) < 2:
        raise UsageError("Two files are needed to compare.", hint="Write: diff FIRST SECOND.")
    if stat + names_only + quiet > 1:
        raise UsageError("--stat, --names-only and --quiet each say what is printed.", hint="Give one of them.")
    if state and (state_a or state_b):
        raise UsageError(
            "--state is for all files, --state-a and --state-b for one each.", hint="Give one or the other."
        )
    comparing = Comparing(
        first=lambda checkpoint: pick_state(checkpoint, state or state_a),
        second=lambda checkpoint: pick_state(checkpoint, state or state_b),
        workers=jobs or os.cpu_count() or 1,
        relatives=not (stat or names_only or quiet),
        everything=everything,
        most_nbytes=None if yes else UNASKED_NBYTES,
        progress=progress_bar("comparing"),
    )
    if store or executor:
        from inspector.giants.pairs import pairs_in_pieces

        with pairs_in_pieces(executor or "threads", jobs, store) as pairwise:
            found = compare_paths(paths, replace(comparing, pairwise=pairwise))
    else:
        found = compare_paths(paths, comparing)
    for each in found:
        if each.trouble:
            complain(each.says)
        for lack in each.diff.incomplete if each.diff is not None else ():
            complain(f"{one_line(each.name)}: {lack}" if len(found) > 1 else lack)
    if not quiet:
        merge = _merge(paths) if len(paths) > 2 and comparing.relatives else None
        _print(found, merge, stat=stat, names_only=names_only, tolerance=tolerance, json=json)
    codes = [_code(each, tolerance, everything=everything) for each in found]
    return max(codes, default=2)


def _code(each: Compared, tolerance: float | None, *, everything: bool) -> int:
    from inspector.compare.report import Relation

    if each.diff is None:
        return 2 if each.trouble else 1
    if each.diff.incomplete:
        return 2
    differing = [t for t in each.diff.tensors if t.differs(tolerance)]
    if any(t.relation is not Relation.UNREAD for t in differing):
        return 1
    if everything and any(not other.kind.is_container for other in each.diff.others):
        return 1
    return 2 if differing else 0


def _merge(paths: list[str]) -> Verdict | None:
    """Whether one of them is a merge of the others. What cannot be opened was told already."""
    from inspector.compare.merges import find_merge
    from inspector.errors import InspectorError

    files = []
    for path in paths:
        with suppress(InspectorError):
            files.append(open_file(path))
    try:
        return find_merge(files, progress=progress_bar("looking for a merge"))
    except (ArithmeticError, LookupError, ValueError, MemoryError) as error:
        # Files are hostile: a test that breaks must not end the comparison.
        complain(f"Whether one is a merge of the others is not told: the test broke off ({error}).")
        return None


def _print(
    found: list[Compared],
    merge: Verdict | None,
    *,
    stat: bool,
    names_only: bool,
    tolerance: float | None,
    json: bool,
) -> None:
    if json:
        one = found[0].diff if len(found) == 1 else None
        rows = [{"name": each.name, "diff": each.diff, "says": each.says, "trouble": each.trouble} for each in found]
        show_json(one if one is not None else {"diffs": rows, "merge": merge})
        return
    diffs = [each.diff for each in found if each.diff is not None]
    if names_only:
        _names(found, tolerance)
        return

    by_module = stat or len(found) == 1
    alone = [each.says for each in found if each.diff is None and not each.trouble]
    lines = [(each.name, each.diff, each.says) for each in found]

    def text() -> RenderableType:
        from rich.console import Group

        from inspector.render.diff_text import diff_text, rows_text, stat_text
        from inspector.render.text import safe

        if by_module:
            return Group(*map(stat_text if stat else diff_text, diffs), *map(safe, alone))
        rows = rows_text(lines)
        return Group(safe(merge.says), rows) if merge is not None else rows

    show(None, text, as_json=False)


def _names(found: list[Compared], tolerance: float | None) -> None:
    """Of several files "file: tensor", and the file alone where only one folder has it."""
    from inspector.render.diff_text import name_lines

    use_utf8()
    with printing():
        for each in found:
            name = one_line(each.name)
            before = f"{name}: " if len(found) > 1 or each.folders else ""
            if each.diff is None and not each.trouble:
                print(name)
            for line in name_lines(each.diff, tolerance) if each.diff is not None else ():
                print(before + line)
