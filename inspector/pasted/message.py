"""One loading error that people bring, and what is to be said about it."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SHORT = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One entry of `MESSAGES`.

    kind: stable and kebab-case. pattern: found in the text with its white space made single; begins with a literal
    and repeats a bounded number of times, so that a search takes linear time. says, why, steps: sentences in which
    {name} stands for the pattern's group of that name. patch: Python lines, where {name!r} is the group as a literal.
    hides: kinds that say nothing more once this one was found. example: one real wording, for the tests.
    """

    kind: str
    pattern: str
    says: str
    why: str
    steps: tuple[str, ...]
    example: str
    patch: str = ""
    hides: tuple[str, ...] = ()
    ours: bool = True

    def find(self, text: str) -> re.Match[str] | None:
        """The first place in the text."""
        return re.search(self.pattern, text)

    def fill(self, template: str, found: re.Match[str]) -> str:
        """A sentence or patch with what the message named. Values are put in once, so braces in them stay braces."""
        values = {k: (v or "").strip()[:_SHORT] for k, v in found.groupdict().items()}
        return template.format_map(values) if values else template.format()
