"""All faults of pasted loading code, in its order, as errors of the explanation."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.checkpoint.types import Checkpoint
from inspector.error_messages.loading_code import assigned, given, opening, undone, using, wrapping
from inspector.error_messages.loading_code.entry import Code, Fault
from inspector.error_messages.loading_code.events import scopes_of
from inspector.error_messages.loading_code.snippet import find_snippet
from inspector.error_messages.report import PastedError
from inspector.units import shorten_middle

FAULTS: tuple[Fault, ...] = (
    *assigned.FAULTS,
    *given.FAULTS,
    *opening.FAULTS,
    *wrapping.FAULTS,
    *using.FAULTS,
    *undone.FAULTS,
)
_QUOTED = 140
# Said of every corrected line that keeps it, but for the one that reads the answer.
_LAX = ("With strict=False names that do not fit are passed over: print what load_state_dict gives back.",)
_READS_ANSWER = "lax-loading-unread"
# Reads and loads. Faults are looked for by comparing them with one another.
_MOST_CALLS = 300


@dataclass(frozen=True, slots=True)
class CodeReading:
    """lines: how many the Python has, 0 for a text that is none. loads: how often it reads or loads weights."""

    lines: int = 0
    loads: int = 0
    errors: tuple[PastedError, ...] = ()


def read_code(text: str, checkpoint: Checkpoint | None = None) -> CodeReading:
    """What is wrong with the loading code in a text; nothing of it is run. checkpoint: the file that it loads.

    Never raises for strange text. Errors with `asks` are faults under the condition that they name.
    """
    snippet = find_snippet(text)
    if snippet is None:
        return CodeReading()
    try:
        scopes = scopes_of(snippet)
        if sum(len(scope.reads) + len(scope.loads) for scope in scopes) > _MOST_CALLS:
            return CodeReading()
        code = Code(snippet, scopes, checkpoint)
        found = [(fault.kind, one) for fault in FAULTS for one in fault.find(code)]
    except RecursionError:  # an expression deeper than Python follows
        return CodeReading()
    loads = sum(len(scope.reads) + len(scope.loads) for scope in scopes)
    if not loads and not found:
        return CodeReading()
    errors = [
        PastedError(
            kind=kind,
            line=snippet.line_of(one.node),
            quote=f"line {snippet.line_of(one.node):,}: {shorten_middle(snippet.text_of(one.node), _QUOTED)}",
            says=one.says,
            why=one.why,
            steps=(*one.steps, *(_LAX if kind != _READS_ANSWER and "strict=False" in one.patch else ())),
            patch=f"{one.patch}\n" if one.patch else "",
            asks=one.if_so,
        )
        for kind, one in found
    ]
    errors.sort(key=lambda error: error.line)
    return CodeReading(lines=len(snippet.lines), loads=loads, errors=tuple(errors))
