"""query: questions about all files of an audit, from its catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inspector.catalogue.questions import Duplicates
from inspector.cli.ending import complain, printing
from inspector.cli.options import show, use_utf8
from inspector.cli.output import Overwrite
from inspector.errors import ReadError, UsageError
from inspector.side_files import shown_name
from inspector.units import counted

if TYPE_CHECKING:
    from inspector.catalogue.open import Answer, Catalogue

_LIMIT = 100


class Form(StrEnum):
    """How an answer is written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def query(
    store: Annotated[str, typer.Argument(help="The store of an audit.")],
    sql: Annotated[
        str, typer.Argument(metavar="[SELECT]", help="One SELECT over files, tensors and findings; none lists them.")
    ] = "",
    search: Annotated[
        str,
        typer.Option(
            "--search",
            metavar="TEXT",
            help="Files by path, network, format, tensor name or sha256 (8 digits and more).",
        ),
    ] = "",
    findings: Annotated[
        str, typer.Option("--findings", metavar="ID", help="Every finding whose id is this, or begins so.")
    ] = "",
    duplicates: Annotated[
        Duplicates | None, typer.Option("--duplicates", help="What lies there twice: whole files, or tensors.")
    ] = None,
    trunks: Annotated[bool, typer.Option("--trunks", help="Files that share most of their weights.")] = False,
    form: Annotated[
        Form | None, typer.Option("--format", help="How it is written; by the ending of --output, else a table.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "--out", help="Write all rows into this file instead: .csv, .json.")
    ] = None,
    overwrite: Overwrite = False,
    limit: Annotated[int, typer.Option("--limit", min=0, help="Rows that are printed, 0 for all.")] = _LIMIT,
) -> int:
    """Ask the catalogue of an audit: search, duplicates, shared trunks, findings, or any SELECT. Nothing is written."""
    from inspector.catalogue.open import open_catalogue
    from inspector.catalogue.parts import catalogue_of
    from inspector.readers.bucket import is_bucket_address

    asked = [name for name in (sql, search, findings, duplicates, trunks) if name]
    if len(asked) > 1:
        raise UsageError("That is more than one question.", hint="Ask one at a time.")
    if is_bucket_address(store):
        raise UsageError(
            f"{store[:200]} is in a bucket, and a catalogue is asked in a folder.",
            hint=f"Make one first: merge-parts {store[:200]} --catalogue DIR; then: query DIR.",
        )
    if not Path(store).is_dir():
        raise ReadError(f"{store[:200]} is no folder.", hint="Name the store of an audit: audit SOURCE --store DIR.")
    if output is not None:
        _check_output(output, store, overwrite=overwrite)
    form = form or (Form.TABLE if output is None else _form_of_ending(output))
    with open_catalogue(catalogue_of(store)) as catalogue:
        _complain_of(catalogue)
        most = limit if output is None else 0
        if sql and (output is not None or form is not Form.TABLE):
            columns, rows = catalogue.stream(sql)
            _write(columns, _first(rows, most), form, output)
            return 0
        answer = _answer(catalogue, most, sql, search, findings, duplicates, trunks)
    if output is None and form is Form.TABLE:
        from inspector.render.answer import answer_table

        show(answer, lambda: answer_table(answer.columns, answer.rows, more=answer.more), as_json=False)
    else:
        _write(answer.columns, answer.rows, form, output)
    return 0


_OF_ENDINGS = {".json": Form.JSON, ".csv": Form.CSV, ".txt": Form.TABLE, ".tsv": Form.TABLE, "": Form.TABLE}


def _form_of_ending(output: Path) -> Form:
    """Raises UsageError for an ending that is not written."""
    form = _OF_ENDINGS.get(output.suffix.lower())
    if form is None:
        raise UsageError(
            f"{shown_name(output)}: no {output.suffix} is written.",
            hint="Name a .csv, .json or .txt, or pass --format.",
        )
    return form


def _answer(
    catalogue: Catalogue,
    most: int,
    sql: str,
    search: str,
    findings: str,
    duplicates: Duplicates | None,
    trunks: bool,
) -> Answer:
    from inspector.catalogue import questions

    if search:
        return questions.search(catalogue, search, most=most)
    if findings:
        return questions.with_finding(catalogue, findings, most=most)
    if duplicates is not None:
        return questions.duplicates(catalogue, duplicates, most=most)
    if trunks:
        return questions.trunks(catalogue, most=most)
    return catalogue.ask(sql, most=most) if sql else questions.tables(catalogue)


def _complain_of(catalogue: Catalogue) -> None:
    damaged = catalogue.parts.damaged
    if damaged:
        complain(
            f"{counted(len(damaged), 'file')} of the catalogue cannot be read, first {damaged[0]}; the others answer. "
            "Run the audit again: they are made anew from the store."
        )
    if catalogue.parts.older:
        complain("Parts of an earlier version are left out. Run the audit again: they are made anew from the store.")
    if catalogue.absent:
        complain(f"{counted(catalogue.absent, 'file')} of the audits have no result yet.")


def _check_output(output: Path, store: str, *, overwrite: bool) -> None:
    from inspector.cli.output import check_is_new, check_place

    check_place(output, ())
    check_is_new(output, overwrite=overwrite)
    if output.resolve().is_relative_to(Path(store).resolve()):
        raise UsageError("That is in the store itself.", hint="Write it somewhere else.")


def _write(columns: tuple[str, ...], rows: Iterable[tuple[Any, ...]], form: Form, output: Path | None) -> None:
    pieces = _pieces(columns, rows, form)
    if output is None:
        use_utf8()
        with printing():
            for piece in pieces:
                print(piece, end="")
        return
    from inspector.cli.output import written_whole

    with (
        written_whole(output) as temporary,
        temporary.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file,
    ):
        file.writelines(pieces)


def _pieces(columns: tuple[str, ...], rows: Iterable[tuple[Any, ...]], form: Form) -> Iterator[str]:
    from inspector.render.answer import csv_pieces, json_pieces, text_pieces

    if form is Form.JSON:
        return json_pieces(columns, rows)
    return csv_pieces(columns, rows) if form is Form.CSV else text_pieces(columns, rows)


def _first(rows: Iterator[tuple[Any, ...]], most: int) -> Iterator[tuple[Any, ...]]:
    for number, row in enumerate(rows, 1):
        yield row
        if number == most:
            return
