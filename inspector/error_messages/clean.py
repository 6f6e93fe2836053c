"""Pasted text as the program printed it: without what terminals, loggers, chats, pages and keyboards made of it.

Every step takes time linear in the text: patterns begin with a literal or at a line's start, and repeat a bounded
number of times.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

# Characters. The longest error we have seen, of a 3,000-tensor model, has 400,000.
MOST_CHARACTERS = 1_000_000
_ANSI = re.compile(
    r"(?:\x1b|\\x1[bB]|\\u001[bB]|\\033|\u241b)"
    r"(?:\[[0-9;:?]{0,40}[ -/]{0,4}[@-~]|\][^\x07\x1b\n]{0,400}(?:\x07|\x1b\\)|[@-Z\\^_])"
    # What is left of a colour when the escape character itself was lost.
    r"|\[[0-9]{1,3}(?:;[0-9]{1,3}){0,4}m"
)
_PREFIX = re.compile(
    r"""[ \t]{0,40}(?:
        \[rank[ ]?[0-9]{1,5}\]:[ ]?                                        # torchrun
      | \([A-Za-z_][\w.]{0,60}[ ](?:pid|rank)=[0-9]{1,10}(?:,[ ]ip=[0-9.]{1,20})?\)[ ]?   # Ray
      | \[?[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]
        [0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?(?:Z|[+-][0-9]{2}:?[0-9]{2})?\]?[ ]?(?:[:|-][ ])?
      | \[?(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL)\]?[ ]?[:|-][ ]
      | std(?:err|out)[ ]?[:|][ ]
      | E[ ]{3,8}                                                            # pytest
      | >{1,3}[ ]                                                            # a quoted mail
      | [|│┃][ ]                                                            # rich's frames
      | [0-9]{1,4}:[ ]                                                       # srun -l
    )""",
    re.VERBOSE,
)
_ENTITY = re.compile(r"&(?:#[0-9]{1,6}|#[xX][0-9a-fA-F]{1,6}|[a-z]{2,8});")
_CODE_POINT = re.compile(r"\\u(00[0-9a-fA-F]{2}|201[89cdCD]|2026)")
# Markdown's escapes; a path of Windows has a letter behind its backslash.
_ESCAPED = re.compile(r"\\([_*\[\]<>()`#.!-])")
# A byte as bytes print it ("\\x1f"), whose backslash a log escaped once more.
_DOUBLED = re.compile(r"\\{2,4}(x[0-9a-fA-F]{2})(?![0-9a-fA-F])")
_MARKS = {
    **{chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},  # full-width
    **dict.fromkeys("“”„‟«»「」『』〝〞", '"'),
    **dict.fromkeys("‘’‚‛´′", "'"),
    **dict.fromkeys("\u00a0\u2002\u2003\u2009\u202f\u3000", " "),
    **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad", ""),
    "。": ".",
    "｡": ".",
    "、": ",",
    "､": ",",
    "【": "[",
    "】": "]",
    "⋯": "…",
    "\u2028": "\n",
    "\u2029": "\n",
}
_PUNCTUATION = str.maketrans(_MARKS)
_MOST_PREFIXES = 4
_SPACES = re.compile(r"\s+")
# A line that begins with these begins something, and does not go on with the word before.
_BEGINNINGS = re.compile(r"\n\s{0,40}(?=(?:missing|unexpected) keys?\b|size mismatch for )", re.IGNORECASE)
_BREAKS = re.compile(r"[ \t]*\n[ \t]*")
# Lines of code around the one that raised, as notebooks and rich print them: "    779         raise RuntimeError(".
_CONTEXT = re.compile(r"[ \t]{0,20}([0-9]{1,5})(?:[ \t]|$)")
_FURTHER = 3


@dataclass(frozen=True, slots=True)
class Cleaned:
    """lines: the text with its line breaks. flat: the same with every run of white space as one space.

    joined: without line breaks, which is right where a terminal broke lines within words. skipped: how many
    characters in the middle were left out.
    """

    lines: str
    flat: str
    joined: str
    skipped: int


def clean(text: str) -> Cleaned:
    """The text without what was put around it and into it on its way."""
    skipped = max(0, len(text) - MOST_CHARACTERS)
    if skipped:
        half = MOST_CHARACTERS // 2
        # A log ends with its error; a message alone begins with it.
        text = f"{text[:half]}\n...\n{text[-half:]}"
    if _ENTITY.search(text):
        text = html.unescape(text)
    text = _ANSI.sub("", text).replace("\r\n", "\n").replace("\r", "\n").translate(_PUNCTUATION)
    text = _CODE_POINT.sub(lambda found: chr(int(found.group(1), 16)), text).translate(_PUNCTUATION)
    if "\\n\\t" in text or '\\"' in text:
        # The message as a JSON log or repr() writes it.
        text = text.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
    text = _DOUBLED.sub(r"\\\1", text)
    text = _ESCAPED.sub(r"\1", text)
    lines = "\n".join(_without_context([_bare(line) for line in text.split("\n")]))
    flat = _SPACES.sub(" ", lines)
    joined = _SPACES.sub(" ", _BREAKS.sub("", _BEGINNINGS.sub(" ", lines))) if "\n" in lines.strip() else flat
    return Cleaned(lines=lines, flat=flat, joined=joined, skipped=skipped)


def _bare(line: str) -> str:
    for _ in range(_MOST_PREFIXES):
        found = _PREFIX.match(line)
        if found is None:
            break
        line = line[found.end() :]
    return line.rstrip(" \t│┃|")


def _without_context(lines: list[str]) -> list[str]:
    """Without numbered lines of code that follow one another: they were shown, not run to the error."""
    numbers = [int(found.group(1)) if (found := _CONTEXT.match(line)) else 0 for line in lines]
    kept = []
    last = 0  # The number before, with arrow lines ("--> 777") and empty ones between.
    for i, line in enumerate(lines):
        number = numbers[i]
        if number:
            after = next((n for n in numbers[i + 1 : i + 1 + _FURTHER] if n), 0)
            run = 0 < number - last <= _FURTHER or 0 < after - number <= _FURTHER
            last = number
            if run:
                continue
        kept.append(line)
    return kept
