"""How a command ends: by itself, by a signal, or because what it prints cannot be delivered."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from typing import IO, Any

import typer
from typer.core import TyperCommand, TyperGroup

from inspector.cli.signals import code_of
from inspector.errors import ExportError, ModelError, UsageError
from inspector.render.visible import one_line
from inspector.side_files import reason_of
from inspector.units import shorten_middle

# As shells say it: 128 and the signal's number.
UNREAD = 141
_MOST_CHARACTERS = 3_000
_STDOUT, _STDERR = 1, 2


class Ended(Exception):
    """A command that was stopped. code: what to leave with."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Unread(Exception):
    """Whoever read what is printed has closed it: `inspector ... | head`."""


class Group(TyperGroup):
    """The commands. typer itself makes 130 of every interrupt, whichever signal it was."""

    def make_context(self, *args: Any, **more: Any) -> Any:
        with _ended_by_signals(), printing():  # its help
            return super().make_context(*args, **more)

    def invoke(self, ctx: Any) -> Any:
        try:
            with _ended_by_signals():
                return super().invoke(ctx)
        except SystemExit as error:
            # No command of ours does so: a person's own code, run by `explain`, would end us without a word.
            raise ModelError(f"The code ended the program by itself, with exit code {error.code or 0}.") from error


class Command(TyperCommand):
    """One command. What was given as nothing is not taken for left out: `--reference "$UNSET"` would prove less."""

    def make_context(self, *args: Any, **more: Any) -> Any:
        with printing():  # its help
            return super().make_context(*args, **more)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for before, word in zip(("", *args), args, strict=False):
            if not word or (word.startswith("--") and word.find("=") == len(word) - 1):
                what = word.rstrip("=") or (before if before.startswith("-") else "An argument")
                raise UsageError(f"{what} was given as an empty text.", hint="Is a variable of the shell not set?")
        return super().parse_args(ctx, args)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as interrupt:
        raise Ended(code_of(interrupt)) from interrupt


# Undone before anything of ours is printed.
_ASIDE = ExitStack()


def set_output_aside() -> None:
    """From here to the answer, what a person's own code prints goes to standard error and not into a report."""
    _ASIDE.enter_context(_elsewhere())


def restore_output() -> None:
    """Undo that; nothing where it was not done."""
    _ASIDE.close()


@contextmanager
def _elsewhere() -> Iterator[None]:
    sys.stdout.flush()
    with ExitStack() as undo:
        # Their extensions print below Python.
        with suppress(OSError):
            kept = os.dup(_STDOUT)
            undo.callback(os.close, kept)
            undo.callback(os.dup2, kept, _STDOUT)
            os.dup2(_STDERR, _STDOUT)
        with redirect_stdout(sys.stderr):
            yield


@contextmanager
def printing() -> Iterator[None]:
    """Around what is written to standard output. Raises Unread, or ExportError where it cannot be written."""
    restore_output()
    try:
        yield
    except BrokenPipeError as error:
        _give_up(sys.stdout)
        raise Unread from error
    except OSError as error:
        _give_up(sys.stdout)
        raise ExportError(f"Standard output cannot be written: {reason_of(error)}.") from error


def flush() -> None:
    """Deliver what was printed. Raises as `printing`: what a full disk refuses is known only now."""
    with printing():
        if sys.stdout is not None:
            sys.stdout.flush()


def complain(text: str) -> None:
    """One line on standard error, with control characters from file names made visible."""
    with suppress(OSError, ValueError):
        try:
            print(shorten_middle(one_line(text.strip()), _MOST_CHARACTERS), file=sys.stderr, flush=True)
        except OSError:
            _give_up(sys.stderr)
            raise


def _give_up(stream: IO[str]) -> None:
    """Let what is still in its buffer go nowhere: Python would try again at its end, and complain itself."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def check_streams() -> None:
    """Make the standard streams usable, for a program's start. Raises ExportError without a standard output.

    A closed one leaves its number free, and the next file that is opened would get what is printed.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) < 3:
        pass
    os.close(number)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        # Names in files are not made for this terminal's letters.
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    if sys.stdout is None:
        raise ExportError("Standard output is closed: there is nowhere to put the answer.")


# typer has its own copy of click, which is not public; what it raises for a wrong command line is its base.
USAGE_PROBLEM: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")
