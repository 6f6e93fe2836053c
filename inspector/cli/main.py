"""The command line: `python -m inspector COMMAND`.

Exit codes: 0 clean, 1 findings at or above --fail-on (or a refused repair), 2 unusable input, 130 stopped.
Every command prints text for people, or with --json the same report as strict JSON on standard output; progress and
errors go to standard error. Commands import what they need when they run, so that --help answers at once.
"""

from __future__ import annotations

import sys
from typing import Any

import typer

from inspector.cli import convert, fix, look, paste, see, serve
from inspector.cli.scan import scan
from inspector.sharing import share_processors

app = typer.Typer(
    name="inspector",
    help="Open any PyTorch checkpoint without running anything in it: what it is, why it does not load, "
    "where the model looks, and a repaired file.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("open")(look.open_)
app.command()(scan)
app.command()(look.identify)
app.command()(fix.diagnose)
app.command()(fix.repair)
app.command()(convert.convert)
app.command()(convert.merge)
app.command("explain-error")(paste.explain_error)
app.command()(look.flops)
app.command()(look.stats)
app.command()(see.explain)
app.command("app")(serve.app_)


# typer has its own copy of click, which is not public; what it raises for a wrong command line is its base.
_UsageProblem: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")


def main(arguments: list[str] | None = None) -> None:
    """Run one command and leave with its exit code."""
    share_processors()
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Run one command; the exit code. Errors become sentences on standard error."""
    from inspector.errors import InspectorError
    from inspector.progress import Stopped

    try:
        outcome: Any = app(args=arguments, standalone_mode=False)
    except InspectorError as error:
        _say(error.says, error.hint)
        return 2
    except (Stopped, KeyboardInterrupt, typer.Abort):
        print("Stopped.", file=sys.stderr)
        return 130
    except typer.Exit as exit_:
        return exit_.exit_code
    except _UsageProblem as error:
        error.show()
        return 2
    except BrokenPipeError:
        # `inspector ... | head`: the reader has what it wanted.
        sys.stderr.close()
        return 0
    return outcome if isinstance(outcome, int) else 0


def _say(says: str, hint: str) -> None:
    """One sentence and what to do next, with control characters from file names made visible."""
    from inspector.render.visible import one_line

    print(one_line(f"{says} {hint}".strip()), file=sys.stderr)
