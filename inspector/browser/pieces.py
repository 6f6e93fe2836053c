"""What the page is handed: HTML of the report's own parts, and beside it what leads on from there.

The page takes no HTML as it is: it rebuilds it from a short list of elements and attributes (site/page/render.js), so
that not even a mistake here lets a name from a file become markup.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from inspector.findings import Severity
from inspector.render.html_text import escaped
from inspector.render.page_report.sections import card
from inspector.render.page_report.words import WORDS, mono, more, table
from inspector.render.page_words import in_page_words
from inspector.units import human_shape

if TYPE_CHECKING:
    from inspector.checkpoint.types import Checkpoint, GlobalUse, TensorInfo
    from inspector.findings import Finding

_FINDINGS, _OF_A_KIND = 60, 5
_NAMED = 3
# Of the app's pages, what this one has not.
_ELSEWHERE = (
    ('("With its optimizer" on the Repair page)', "(in the app, with torch)"),
    ("by `inspector run` and on the Run page", "by `inspector run` and on the app's Run page"),
    ("pictures belong on the Explain page", "pictures belong on the app's Explain page"),
    ("Repair page's box for code", 'box "Paste an error, or the code that loads", with the file open,'),
    ('tick "Leave out …" on the Convert page', 'tick "A part is enough: leave out …" on the Convert page'),
)
#: How the app is begun, which has all packages.
START_APP = 'In a copy of its repository: make app, or pip install ".[all]" and streamlit run app.py.'
# Nothing can be installed in a page.
_NOT_INSTALLED = (
    (re.compile(r"not tried: (\w+) is not installed\."), r"not tried: that needs the app, which has \1."),
    (re.compile(r"needs (\w+), which is not installed\."), r"needs the app, which has \1."),
    (re.compile(r"(\w+) is not installed\."), r"\1 is not in this page."),
    (re.compile(r"(Run: )?pip install [\w -]+$"), START_APP),
)


def own_words(text: str) -> str:
    """The pages' words, less what is only there."""
    text = in_page_words(text)
    for phrase, words in _ELSEWHERE:
        text = text.replace(phrase, words).replace(escaped(phrase), words)
    for pattern, words in _NOT_INSTALLED:
        text = pattern.sub(words, text)
    return text


def finding_cards(
    findings: Sequence[Finding], checkpoint: Checkpoint, of_keys: Collection[str] = ()
) -> list[dict[str, Any]]:
    """Worst first, each with the way to what it speaks of: {"html", "tab", "find"}. of_keys: ids of what the Repair
    page speaks of."""
    kinds: dict[tuple[Severity, str], int] = {}
    cards: list[dict[str, Any]] = []
    code = {use.name for use in checkpoint.globals}
    tensors = {tensor.name for tensor in checkpoint.tensors}
    for finding in findings:
        kinds[finding.severity, finding.id] = kinds.get((finding.severity, finding.id), 0) + 1
        if kinds[finding.severity, finding.id] > _OF_A_KIND or len(cards) >= _FINDINGS:
            continue
        html = own_words(card(finding, WORDS))
        named = [name for name in finding.subjects if name in tensors][:_NAMED]
        tab, find = ("tensors", named[0]) if named else ("", "")
        if finding.id in of_keys:
            tab, find = "repair", ""
        elif code.intersection(finding.subjects):
            tab, find = "contents", ""
        cards.append({"html": html, "tab": tab, "find": find})
    left = len(findings) - len(cards)
    return [*cards, *([{"html": more(left, "finding"), "tab": "", "find": ""}] if left else [])]


def globals_table(uses: Iterable[GlobalUse]) -> str:
    """A row per name: verdict and reason, where it sits, what it would be called with, as the Contents page has it."""
    from inspector.checkpoint.types import GlobalVerdict

    tones = {GlobalVerdict.DANGEROUS: "error", GlobalVerdict.UNKNOWN: "notice", GlobalVerdict.KNOWN: "info"}
    rows = [
        (
            mono(use.name, 48),
            f'<span class="tone {tones[use.verdict]}">{use.verdict.value}</span> {escaped(use.why)}',
            mono(use.place, 40) if use.place[:1] not in {"", "("} else escaped(use.place.strip("()") or "the root"),
            mono(use.arguments, 240) if use.arguments else "",
            f"{use.count:,}",
        )
        for use in uses
    ]
    return table(("Global", "Verdict", "Place", "Arguments", "Times"), rows, numeric=(4,)) if rows else ""


def tensor_rows(tensors: Iterable[TensorInfo]) -> dict[str, Any]:
    """Columns of the table of tensors: fifty thousand rows in one message."""
    from inspector.render.visible import visible

    held = list(tensors)
    return {
        "names": [visible(tensor.name) for tensor in held],
        "shapes": [human_shape(tensor.shape) for tensor in held],
        "types": [tensor.dtype for tensor in held],
        "elements": [tensor.numel for tensor in held],
        "nbytes": [tensor.nbytes for tensor in held],
    }
