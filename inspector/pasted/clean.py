"""Pasted text as the program printed it: without terminal colours, log prefixes, frames and typographic quotes.

Every step takes time linear in the text: patterns begin with a literal or at a line's start, and repeat a bounded
number of times.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

# Characters. The longest error we have seen, of a 3,000-tensor model, has 400,000.
MOST_CHARACTERS = 1_000_000
_ANSI = re.compile(r"\x1b(?:\[[0-9;:?]{0,40}[ -/]{0,4}[@-~]|\][^\x07\x1b\n]{0,400}(?:\x07|\x1b\\)|[@-Z\\^_])")
_PREFIX = re.compile(
    r"""[ \t]{0,40}(?:
        \[rank[ ]?[0-9]{1,5}\]:[ ]?                                        # torchrun
      | \([A-Za-z_][\w.]{0,60}[ ](?:pid|rank)=[0-9]{1,10}(?:,[ ]ip=[0-9.]{1,20})?\)[ ]?   # Ray
      | \[?[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]
        [0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?(?:Z|[+-][0-9]{2}:?[0-9]{2})?\]?[ ]?(?:[:|-][ ])?
      | \[?(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL)\]?[ ]?[:|-][ ]
      | E[ ]{3,8}                                                            # pytest
      | >{1,3}[ ]                                                            # a quoted mail
      | [|│┃][ ]                                                            # rich's frames
      | [0-9]{1,4}:[ ]                                                       # srun -l
    )""",
    re.VERBOSE,
)
_QUOTES = str.maketrans(
    {"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "\u00a0": " ", "\u200b": ""}
)
_MOST_PREFIXES = 4
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Cleaned:
    """lines: the text with its line breaks. flat: the same with every run of white space as one space.

    skipped: how many characters in the middle were left out.
    """

    lines: str
    flat: str
    skipped: int


def clean(text: str) -> Cleaned:
    """The text without what terminals, loggers and chats put around it."""
    skipped = max(0, len(text) - MOST_CHARACTERS)
    if skipped:
        half = MOST_CHARACTERS // 2
        # A log ends with its error; a message alone begins with it.
        text = f"{text[:half]}\n...\n{text[-half:]}"
    if "&quot;" in text or "&#x27;" in text or "&#39;" in text:
        text = html.unescape(text)
    text = _ANSI.sub("", text).replace("\r\n", "\n").replace("\r", "\n").translate(_QUOTES)
    if "\\n\\t" in text:
        # The message as a JSON log or repr() writes it.
        text = text.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
    lines = "\n".join(_bare(line) for line in text.split("\n"))
    return Cleaned(lines=lines, flat=_SPACES.sub(" ", lines), skipped=skipped)


def _bare(line: str) -> str:
    for _ in range(_MOST_PREFIXES):
        found = _PREFIX.match(line)
        if found is None:
            break
        line = line[found.end() :]
    return line.rstrip(" \t│┃|")
