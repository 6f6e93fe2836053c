"""card: what a checkpoint alone can fill in of a model card and a bill of materials."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from inspector.cli.ending import printing
from inspector.cli.options import Digest, FailOn, File, exit_code, open_file, progress_bar, show_json
from inspector.findings import Severity


class CardFormat(StrEnum):
    """How the card is written."""

    MARKDOWN = "markdown"
    CYCLONEDX = "cyclonedx"
    JSON = "json"


def card(
    file: File,
    format_: Annotated[
        CardFormat,
        typer.Option("--format", help="markdown: a hub's README; cyclonedx: an ML-BOM 1.6; json: the facts."),
    ] = CardFormat.MARKDOWN,
    digest: Digest = False,
    fail_on: FailOn = Severity.ERROR,
) -> int:
    """Write a model card or a CycloneDX bill of materials of what the file shows; what it does not is left open.

    A signature of OpenSSF model signing beside it (model.sig) is compared with the digests; one that does not agree
    is an error.
    """
    from inspector.cards.make import make_card

    checkpoint = open_file(file)
    report = make_card(checkpoint, file, digest=digest, progress=progress_bar("sha256"))
    if format_ is CardFormat.JSON:
        show_json(report)
    elif format_ is CardFormat.CYCLONEDX:
        from inspector.render.card import card_cyclonedx

        show_json(card_cyclonedx(report))
    else:
        from inspector.render.card import card_markdown

        with printing():
            print(card_markdown(report), end="")
    disagrees = report.signature is not None and not report.signature.agrees
    return 1 if disagrees and fail_on.rank <= Severity.ERROR.rank else exit_code(report.findings, fail_on)
