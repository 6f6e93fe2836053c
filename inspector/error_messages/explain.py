"""What does this text say went wrong? Every loading error in it, in its order, with what to do.

The text is taken as a person pastes it and never run, looked up as a path, or shown as markup. With the file beside it
the answer says what the file itself is. Python that loads weights is read too (`loading_code/`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from inspector.checkpoint.types import Checkpoint
from inspector.error_messages.clean import MOST_CHARACTERS, Cleaned, clean
from inspector.error_messages.fit import explain_lists
from inspector.error_messages.key_lists import names_alone, read_key_lists
from inspector.error_messages.loading_code.find import CodeReading, read_code
from inspector.error_messages.message import Message, fold
from inspector.error_messages.messages_calls import MESSAGES as OF_CALLS
from inspector.error_messages.messages_code import FOREIGN
from inspector.error_messages.messages_code import MESSAGES as OF_CODE
from inspector.error_messages.messages_copies import MESSAGES as OF_COPIES
from inspector.error_messages.messages_files import MESSAGES as OF_FILES
from inspector.error_messages.messages_forward import MESSAGES as OF_FORWARDS
from inspector.error_messages.messages_pickle import MESSAGES as OF_PICKLES
from inspector.error_messages.messages_training import MESSAGES as OF_TRAINING
from inspector.error_messages.messages_versions import MESSAGES as OF_VERSIONS
from inspector.error_messages.report import KeyLists, PastedError, PastedReport
from inspector.error_messages.with_file import describe_file
from inspector.units import counted, shorten_middle

MESSAGES: tuple[Message, ...] = (
    *OF_FILES,
    *OF_PICKLES,
    *OF_COPIES,
    *OF_VERSIONS,
    *OF_CODE,
    *OF_FORWARDS,
    *OF_CALLS,
    *OF_TRAINING,
    *FOREIGN,
)
MOST_ERRORS = 12
_QUOTED = 160
_QUOTED_LIST = 116
_SPACES = re.compile(r"\s+")
_WORD_BEFORE = re.compile(r"[\w.]{1,40}\Z")
_WORD_BEHIND = re.compile(r"[\w]{0,40}[\"'`]{0,3}[>)\]]{0,3}")
_MATCHED = "<All keys matched successfully>"


def explain_error(text: str, *, checkpoint: Checkpoint | None = None, unreadable: str = "") -> PastedReport:
    """Explain pasted text. checkpoint: the file it is about; unreadable: why that file cannot be opened.

    Never raises for strange text: "nothing known in it" is an answer. Takes time linear in the text, of which at most
    a million characters are read.
    """
    cleaned = clean(text)
    code = read_code(text, checkpoint)
    found = [*_lists(cleaned), *_messages(cleaned)] or ([] if code.lines else _names_alone(cleaned))
    found.sort(key=lambda item: item[0])
    if code.errors:
        # The same fault by the message that it raised says less than the line it stands in.
        kinds, lines = {error.kind for error in code.errors}, text.count("\n") + 1
        found = [(at, error) for at, error in found if error.kind not in kinds]
        found = sorted([*found, *((error.line / lines, error) for error in code.errors)], key=lambda item: item[0])
    errors = tuple(error for _, error in found)[:MOST_ERRORS]
    skipped = []
    if cleaned.skipped:
        skipped.append(f"{cleaned.skipped:,} characters in the middle; {MOST_CHARACTERS:,} are read.")
    if len(found) > MOST_ERRORS:
        skipped.append(f"{counted(len(found) - MOST_ERRORS, 'further error')}.")
    beside = describe_file(errors, checkpoint, unreadable)
    return PastedReport(
        says=_answer(errors, cleaned.flat, code),
        errors=errors,
        file=beside.says,
        code=beside.code,
        skipped=tuple(skipped),
    )


def _lists(cleaned: Cleaned) -> list[tuple[float, PastedError]]:
    text, lists = cleaned.lines, read_key_lists(cleaned.lines)
    if cleaned.joined != cleaned.flat:
        # A terminal breaks lines within words, and then a line's shapes are found without its breaks alone.
        joined = read_key_lists(cleaned.joined)
        if _told(joined) > _told(lists):
            text, lists = cleaned.joined, joined
    found = []
    for start, one in lists:
        found.append((start / max(1, len(text)), explain_lists(one, _beginning(text[start : start + 4 * _QUOTED]))))
    return found


def _beginning(text: str) -> str:
    """The first words and keys of a list, each whole: it goes on, so no key of its end is shown as if it were one."""
    flat = _SPACES.sub(" ", text).strip()
    if len(flat) <= _QUOTED_LIST:
        return flat
    return f"{flat[: _QUOTED_LIST + 1].rpartition(' ')[0].rstrip(' ,') or flat[:_QUOTED_LIST]} …"


def _told(found: Sequence[tuple[int, KeyLists]]) -> tuple[int, int]:
    """How much the lists tell: shapes, and lists that are there."""
    return sum(len(one.reshaped) for _, one in found), sum(len(one.pasted) for _, one in found)


def _names_alone(cleaned: Cleaned) -> list[tuple[float, PastedError]]:
    """A list out of its middle: which list it was, no word says."""
    start, names = names_alone(cleaned.lines)
    if not names:
        return []
    error = PastedError(
        kind="list-without-words",
        quote=_beginning(cleaned.lines[start : start + 4 * _QUOTED]),
        says=f"These are {counted(len(names), 'key')} of a load_state_dict error; whether they are missing or "
        "unexpected, is cut off.",
        why="Missing keys are the model's and not the file's, unexpected ones the other side's: the answer differs.",
        steps=('Paste the line above them too, "Missing key(s) in state_dict" or "Unexpected key(s) in state_dict".',),
        asks=True,
    )
    return [(0.0, error)]


def _messages(cleaned: Cleaned) -> list[tuple[float, PastedError]]:
    """Messages by their place, as a share of the text, since positions in the forms of it differ."""
    found: list[tuple[float, PastedError, str]] = []
    of_code: list[tuple[float, PastedError, str]] = []
    hidden: set[str] = set()
    flat, joined = fold(cleaned.flat), fold(cleaned.joined)
    for message in MESSAGES:
        text = cleaned.flat
        match, in_code = message.find(text, flat)
        if cleaned.joined != text and (match is None or message.lacks(match)):
            # A terminal breaks lines within words; then the other form has what this one has not.
            other, other_in_code = message.find(cleaned.joined, joined)
            if other is not None and (match is None or not message.lacks(other)):
                text, match, in_code = cleaned.joined, other, other_in_code
        if match is None:
            continue
        error = PastedError(
            kind=message.kind,
            quote=shorten_middle(_whole_words(match, text), _QUOTED),
            says=message.answer(match),
            why=message.fill(message.why, match),
            steps=tuple(message.fill(step, match) for step in message.steps),
            patch=message.code(match, text),
            causes=message.causes,
            asks=message.asks,
            ours=message.ours,
        )
        (of_code if in_code else found).append((match.start() / max(1, len(text)), error, message.kind))
        if not in_code:
            hidden.update(message.hides)
    if all(error.asks for _, error, _ in found):
        found += of_code
        hidden.update(*(message.hides for message in MESSAGES if any(kind == message.kind for *_, kind in of_code)))
    return [(at, error) for at, error, kind in found if kind not in hidden]


def _whole_words(match: re.Match[str], text: str) -> str:
    """What was found, up to the ends of its first and last word: patterns begin and end within words."""
    before, behind = _WORD_BEFORE.search(text, max(0, match.start() - 40), match.start()), match.end()
    after = _WORD_BEHIND.match(text, behind)
    return text[before.start() if before else match.start() : after.end() if after else behind]


def _answer(errors: tuple[PastedError, ...], flat: str, code: CodeReading) -> str:
    if not flat.strip():
        return "There is no text to explain."
    if not errors:
        if _MATCHED in flat:
            return "This is no error: all keys matched."
        if code.lines:
            return (
                f"No fault that is known here stands in this code ({counted(code.lines, 'line')}, "
                f"{counted(code.loads, 'loading call')}); it was read, not run."
            )
        return "No loading error that is known here stands in this text."
    # What tells the cause comes first, before what asks for the rest and before other frameworks.
    ours = sorted((error for error in errors if error.ours), key=lambda error: error.asks) or list(errors)
    more = f" ({counted(len(errors) - 1, 'further error')} below)" if len(errors) > 1 else ""
    return f"{ours[0].says}{more}"
