"""What does this text say went wrong? Every loading error in it, in its order, with what to do.

The text is taken as a person pastes it and never run, looked up as a path, or shown as markup. With the file beside it
the answer says what the file itself is.
"""

from __future__ import annotations

import re

from inspector.checkpoint.types import Checkpoint, GlobalVerdict
from inspector.pasted.beside import describe_file
from inspector.pasted.clean import MOST_CHARACTERS, Cleaned, clean
from inspector.pasted.fit import explain_lists
from inspector.pasted.key_lists import read_key_lists
from inspector.pasted.message import Message
from inspector.pasted.messages_code import FOREIGN
from inspector.pasted.messages_code import MESSAGES as OF_CODE
from inspector.pasted.messages_files import MESSAGES as OF_FILES
from inspector.pasted.report import PastedError, PastedReport
from inspector.readers.unpickle.verdicts import judge
from inspector.units import counted, shorten_middle

MESSAGES: tuple[Message, ...] = (*OF_FILES, *OF_CODE, *FOREIGN)
MOST_ERRORS = 12
_QUOTED = 160
_MATCHED = "<All keys matched successfully>"


def explain_error(text: str, *, checkpoint: Checkpoint | None = None, unreadable: str = "") -> PastedReport:
    """Explain pasted text. checkpoint: the file it is about; unreadable: why that file cannot be opened.

    Never raises for strange text: "nothing known in it" is an answer. Takes time linear in the text, of which at most
    a million characters are read.
    """
    cleaned = clean(text)
    found = [*_lists(cleaned), *_messages(cleaned.flat)]
    found.sort(key=lambda item: item[0])
    errors = tuple(error for _, error in found)[:MOST_ERRORS]
    skipped = []
    if cleaned.skipped:
        skipped.append(f"{cleaned.skipped:,} characters in the middle; {MOST_CHARACTERS:,} are read.")
    if len(found) > MOST_ERRORS:
        skipped.append(f"{counted(len(found) - MOST_ERRORS, 'further error')}.")
    beside = describe_file(errors, checkpoint, unreadable)
    return PastedReport(
        says=_answer(errors, cleaned.flat), errors=errors, file=beside.says, code=beside.code, skipped=tuple(skipped)
    )


def _lists(cleaned: Cleaned) -> list[tuple[float, PastedError]]:
    found = []
    whole = max(1, len(cleaned.lines))
    for start, lists in read_key_lists(cleaned.lines):
        quote = re.sub(r"\s+", " ", cleaned.lines[start : start + 4 * _QUOTED]).strip()
        found.append((start / whole, explain_lists(lists, shorten_middle(quote, _QUOTED))))
    return found


def _messages(flat: str) -> list[tuple[float, PastedError]]:
    """Messages by their place, as a share of the text, since positions in the two forms of it differ."""
    found: list[tuple[float, PastedError]] = []
    hidden: set[str] = set()
    for message in MESSAGES:
        match = message.find(flat)
        if match is None:
            continue
        hidden.update(message.hides)
        error = PastedError(
            kind=message.kind,
            quote=shorten_middle(match.group(0), _QUOTED),
            says=message.fill(message.says, match),
            why=message.fill(message.why, match),
            steps=tuple(message.fill(step, match) for step in message.steps),
            patch=_patch(message, match),
            ours=message.ours,
        )
        found.append((match.start() / max(1, len(flat)), error))
    return [(at, error) for at, error in found if error.kind not in hidden]


def _patch(message: Message, match: re.Match[str]) -> str:
    if not message.patch:
        return ""
    if message.kind == "unsupported-global":
        module, _, name = match.group("name").rpartition(".")
        # No lines that allow a name which runs whatever it is given.
        if not module or judge(module, name)[0] is GlobalVerdict.DANGEROUS:
            return ""
    return message.fill(message.patch, match)


def _answer(errors: tuple[PastedError, ...], flat: str) -> str:
    if not flat.strip():
        return "There is no text to explain."
    if not errors:
        if _MATCHED in flat:
            return "This is no error: all keys matched."
        return "No loading error that is known here stands in this text."
    ours = [error for error in errors if error.ours] or list(errors)
    more = f" ({counted(len(errors) - 1, 'further error')} below)" if len(errors) > 1 else ""
    return f"{ours[0].says}{more}"
