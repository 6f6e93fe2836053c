"""What a page lists of a catalogue: files by a text and an order, and the findings of one of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from inspector.catalogue import questions
from inspector.catalogue.open import Answer, Catalogue
from inspector.catalogue.questions import MATCHES_TEXT

_COLUMNS = "file, path, place, kind, severity, says, architecture, classes, format, tensors, parameters, nbytes"
_FINDINGS = """
SELECT finding, severity, says, subjects FROM findings WHERE file = $file
ORDER BY list_position(['error', 'warning', 'notice', 'info'], severity), finding
"""
_SUMMARY = """
SELECT count(*) AS files, count(*) FILTER (kind = 'checkpoint') AS checkpoints,
    count(*) FILTER (severity = 'error') AS errors, count(*) FILTER (severity = 'warning') AS warnings,
    count(*) FILTER (weights IS NOT NULL) AS digested, sum(nbytes)::BIGINT AS nbytes, max(audited) AS audited
FROM files
"""


class Order(StrEnum):
    """What the listed files begin with."""

    WORST = "worst"
    PATH = "path"
    LARGEST = "largest"
    NEWEST = "newest"


class Question(StrEnum):
    """What a page asks."""

    SUMMARY = "summary"
    FILES = "files"
    FINDINGS = "findings"
    SAME_FILES = "same files"
    SAME_TENSORS = "same tensors"
    TRUNKS = "trunks"


_ORDERS = {
    Order.WORST: "list_position(['error', 'warning', 'notice', 'info'], severity), kind <> 'checkpoint', path",
    Order.PATH: "path",
    Order.LARGEST: "nbytes DESC, path",
    Order.NEWEST: "audited DESC, path",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """text: that listed files match, "" for all of them. file: whose findings. most: rows, 0 for all."""

    question: Question
    text: str = ""
    order: Order = Order.WORST
    file: int = 0
    most: int = 0


def answer(catalogue: Catalogue, asked: Asked, *, seconds: float = 0.0) -> Answer:
    """Raises as `Catalogue.ask`."""
    ask = {
        Question.SUMMARY: lambda: catalogue.ask(_SUMMARY, seconds=seconds),
        Question.FILES: lambda: _files(catalogue, asked, seconds),
        Question.FINDINGS: lambda: catalogue.ask(_FINDINGS, parameters={"file": asked.file}, seconds=seconds),
        Question.SAME_FILES: lambda: questions.duplicates(
            catalogue, questions.Duplicates.FILES, most=asked.most, seconds=seconds
        ),
        Question.SAME_TENSORS: lambda: questions.duplicates(
            catalogue, questions.Duplicates.TENSORS, most=asked.most, seconds=seconds
        ),
        Question.TRUNKS: lambda: questions.trunks(catalogue, places=True, most=asked.most, seconds=seconds),
    }
    return ask[asked.question]()


def _files(catalogue: Catalogue, asked: Asked, seconds: float) -> Answer:
    """The rows, and in a last column how many there are in all."""
    matching = f"WHERE {MATCHES_TEXT}" if asked.text else ""
    return catalogue.ask(
        f"""SELECT {_COLUMNS}, count(*) OVER () AS in_all FROM files LEFT JOIN (
            SELECT file, count(*) AS matches FROM tensors WHERE $text <> '' AND contains(lower(name), lower($text))
            GROUP BY file
        ) AS held USING (file) {matching} ORDER BY {_ORDERS[asked.order]}""",
        parameters={"text": asked.text},
        most=asked.most,
        seconds=seconds,
    )
