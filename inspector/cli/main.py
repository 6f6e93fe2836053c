"""The command line: `python -m inspector COMMAND`.

Exit codes: 0 clean, 1 findings at or above --fail-on (or a refused repair), 2 unusable input, 128 + N ended by signal N
(130 Ctrl-C, 143 SIGTERM, 141 nobody reads the output).
Every command prints text for people, or with --json the same report as strict JSON on standard output; progress and
errors go to standard error. Commands import what they need when they run, so that --help answers at once.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

import typer

from inspector.cli.app import app_
from inspector.cli.audit import audit, merge_parts
from inspector.cli.card import card
from inspector.cli.check import check
from inspector.cli.convert import convert
from inspector.cli.diagnose import diagnose
from inspector.cli.diff import diff
from inspector.cli.ending import (
    UNREAD,
    USAGE_PROBLEM,
    Command,
    Ended,
    Group,
    Unread,
    check_streams,
    complain,
    flush,
    restore_output,
)
from inspector.cli.evaluate import evaluate
from inspector.cli.events import events
from inspector.cli.explain import explain
from inspector.cli.explain_error import explain_error
from inspector.cli.flops import flops
from inspector.cli.graph import graph
from inspector.cli.hub import hub
from inspector.cli.identify import identify
from inspector.cli.merge import merge
from inspector.cli.open import open_
from inspector.cli.project import project
from inspector.cli.query import query
from inspector.cli.repair import repair
from inspector.cli.report import report
from inspector.cli.run import run_
from inspector.cli.scan import scan
from inspector.cli.signals import STOPPED, code_of, signals_raised
from inspector.cli.stats import stats
from inspector.cli.surgery import surgery
from inspector.cli.tensorboard import tensorboard
from inspector.cli.textconv import textconv
from inspector.cli.trace import trace
from inspector.cli.unwrap import unwrap
from inspector.errors import ExportError, InspectorError
from inspector.installed import missing_package
from inspector.openmp import share_processors
from inspector.progress import Stopped
from inspector.side_files import reason_of, shown_name

app = typer.Typer(
    name="inspector",
    cls=Group,
    help="Open any PyTorch checkpoint without running anything in it: what it is, why it does not load, "
    "where the model looks, and a repaired file.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for _name, _command in (
    ("open", open_),
    ("hub", hub),
    ("scan", scan),
    ("check", check),
    ("audit", audit),
    ("merge-parts", merge_parts),
    ("query", query),
    ("identify", identify),
    ("diagnose", diagnose),
    ("diff", diff),
    ("run", run_),
    ("repair", repair),
    ("unwrap", unwrap),
    ("convert", convert),
    ("merge", merge),
    ("surgery", surgery),
    ("explain-error", explain_error),
    ("flops", flops),
    ("graph", graph),
    ("trace", trace),
    ("stats", stats),
    ("textconv", textconv),
    ("project", project),
    ("card", card),
    ("report", report),
    ("explain", explain),
    ("events", events),
    ("tensorboard", tensorboard),
    ("evaluate", evaluate),
    ("app", app_),
):
    app.command(_name, cls=Command)(_command)


def main(arguments: list[str] | None = None) -> None:
    """Run one command and leave with its exit code."""
    share_processors()
    try:
        check_streams()
    except ExportError as error:
        complain(str(error))
        sys.exit(2)
    with signals_raised():
        code = run(arguments)
    sys.exit(code)


def run(arguments: list[str] | None = None) -> int:
    """Run one command; the exit code. Errors become sentences on standard error."""
    try:
        outcome: Any = app(args=arguments, standalone_mode=False)
        flush()
    except InspectorError as error:
        complain(str(error))
        return 2
    except (Ended, Stopped, KeyboardInterrupt, typer.Abort) as end:
        complain("Stopped.")
        return end.code if isinstance(end, Ended) else code_of(end) if isinstance(end, KeyboardInterrupt) else STOPPED
    except typer.Exit as exit_:
        return exit_.exit_code
    except USAGE_PROBLEM as error:
        with suppress(OSError):
            error.show()
        return 2
    except Unread:
        return UNREAD
    except OSError as error:
        complain(f"{f'{shown_name(error.filename)}: ' if error.filename else ''}{reason_of(error)}.")
        return 2
    except MemoryError:
        complain("This needs more memory than there is.")
        return 2
    except ImportError as error:
        says = missing_package(error)
        if not says:
            raise
        complain(says)
        return 2
    finally:
        restore_output()
    return outcome if isinstance(outcome, int) else 0
