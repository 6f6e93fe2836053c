"""Pieces of the page's HTML: tables, folded lists, the words for how bad something is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from inspector.findings import Severity
from inspector.render.html_text import escaped
from inspector.units import counted, shorten_middle

WORDS = {Severity.ERROR: "Error", Severity.WARNING: "Warning", Severity.NOTICE: "Note", Severity.INFO: "Info"}
# Of what keeps a file from loading as it is, which is no error in it.
LOADING_WORDS = {**WORDS, Severity.ERROR: "Fails", Severity.WARNING: "Not as it is"}
_WIDEST = 90


def tone(severity: Severity | None) -> str:
    """The class that gives it its colour."""
    return severity.value if severity else "unknown"


def mono(text: str, width: int = _WIDEST) -> str:
    """A name in the code font; the whole in the tooltip where it is shortened."""
    short = shorten_middle(text, width)
    title = f' title="{escaped(text)}"' if short != text else ""
    return f"<code{title}>{escaped(short)}</code>"


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """Names and values. rows: (name as text, value as HTML)."""
    body = "".join(f"<tr><td>{escaped(name)}</td><td>{value}</td></tr>" for name, value in rows)
    return f'<table class="facts"><tbody>{body}</tbody></table>'


def drawing(svg: str, says: str) -> str:
    """A figure with its caption; "" without one."""
    return f'<figure><div class="wide">{svg}</div><figcaption>{escaped(says)}</figcaption></figure>' if svg else ""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[int] = ()) -> str:
    """rows: cells as HTML. numeric: columns set at the right."""
    kinds = [' class="number"' if n in numeric else "" for n in range(len(heads))]
    head = "".join(f"<th{kind}>{escaped(name)}</th>" for kind, name in zip(kinds, heads, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{kind}>{cell}</td>" for kind, cell in zip(kinds, row, strict=True)) + "</tr>"
        for row in rows
    )
    top = f"<thead><tr>{head}</tr></thead>"
    return f'<div class="wide"><table>{top}<tbody>{body}</tbody></table></div>'


def folded(says: str, inside: str, *, printed: bool = False) -> str:
    """Behind a click. printed: opened on paper."""
    kind = ' class="printed"' if printed else ""
    return f"<details{kind}><summary>{escaped(says)}</summary>{inside}</details>"


def more(left_out: int, noun: str) -> str:
    """What a bounded list does not show, and where it stands."""
    if left_out <= 0:
        return ""
    return f'<p class="soft">{counted(left_out, f"further {noun}")}: in the JSON that this page holds.</p>'


def section(title: str, inside: str, *, kind: str = "") -> str:
    """A heading and what is below it; "" where there is nothing."""
    given = f' class="{kind}"' if kind else ""
    return f"<section{given}><h2>{escaped(title)}</h2>{inside}</section>" if inside else ""
