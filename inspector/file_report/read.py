"""A report read back from the page or the JSON that it was handed on as. Nothing in it is trusted or run."""

from __future__ import annotations

import json
import re
from os import PathLike
from typing import Any

from inspector.errors import ReadError
from inspector.file_report.report import SCHEMA_NAME, VERSION, FileReport
from inspector.file_report.versions import upgraded
from inspector.reports_from_json import KEPT, report_from
from inspector.side_files import encoding_of, read_bytes, shown_name
from inspector.units import whole_number

#: A page of 100,000 tensors has about 40 MB.
_MOST_NBYTES = 512_000_000
#: Where the page holds its JSON: the element's id.
ELEMENT = "model-inspector-report"
_OPENS = re.compile(rf'<script type="application/json" id="{ELEMENT}">')
_CLOSES = "</script>"


def read_report(path: str | PathLike[str]) -> FileReport:
    """The report in a page or a JSON file that this program wrote, of this version of the schema or an earlier one.

    Pictures of heat maps stay in the page. Raises ReadError for what is no report, or of a version that is not known
    here.
    """
    name = shown_name(path)
    raw = read_bytes(path, most_nbytes=_MOST_NBYTES)
    try:
        text = raw.decode(encoding_of(raw))
    except UnicodeDecodeError as error:
        raise _no_report(name) from error
    begins = _OPENS.search(text)
    if begins is not None:
        # Whatever comes from a file is escaped in it, so that the next end is its end.
        text = text[begins.end() : max(begins.end(), text.find(_CLOSES, begins.end()))]
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _no_report(name) from error
    return report_from_plain(plain, name)


def report_from_plain(plain: Any, name: str) -> FileReport:
    """The report of what its JSON holds. name: for sentences. Raises ReadError as above."""
    schema = plain.get("schema") if isinstance(plain, dict) else None
    own, _, version = schema.rpartition("/") if isinstance(schema, str) else ("", "", "")
    number = whole_number(version, 1_000_000)
    if own != SCHEMA_NAME or not number:
        raise _no_report(name)
    if number > VERSION:
        raise ReadError(
            f"{name} is a report of version {number}; this program knows versions up to {VERSION}.",
            hint="Install a newer one to read it.",
        )
    plain = {**upgraded(plain, number), "schema": f"{SCHEMA_NAME}/{VERSION}"}
    try:
        return report_from(FileReport, plain, KEPT)
    except (TypeError, ValueError, KeyError, RecursionError) as error:
        raise ReadError(
            f"{name} says that it is a report of this program, but its fields are not those of one."
        ) from error


def _no_report(name: str) -> ReadError:
    return ReadError(
        f"{name} is no report of this program.", hint="Give the .html or .json that `inspector report` wrote."
    )
