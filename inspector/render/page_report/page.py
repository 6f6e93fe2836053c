"""The whole page: one file that needs nothing else, shows nothing of anybody else, and runs nothing."""

from __future__ import annotations

from inspector.file_report.read import ELEMENT
from inspector.file_report.report import FileReport
from inspector.render.html_text import escaped
from inspector.render.json import as_json
from inspector.render.page_report import sections
from inspector.render.page_report.maps import maps
from inspector.render.page_report.style import STYLE
from inspector.units import human_bytes

# Nothing is fetched and nothing runs, whatever a name in the file would be taken for.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def report_html(report: FileReport) -> str:
    """The page, with the report as JSON in it, which `read_report` takes out again."""
    file = report.file
    head = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escaped(_POLICY)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escaped(file.name)}: report</title><style>{STYLE}</style></head>"
    )
    size = human_bytes(file.nbytes)
    digest = f"<span>sha256 <code>{escaped(file.sha256[:16])}</code></span>" if file.sha256 else ""
    title = (
        f"<h1>{escaped(file.name)}</h1>"
        f'<p class="line"><span>{escaped(file.format_says)}</span><span>{escaped(size)}</span>{digest}</p>'
    )
    body = (
        title,
        sections.answers(report),
        sections.numbers(report),
        sections.findings(report),
        sections.the_file(report),
        sections.architecture(report),
        sections.repair(report),
        sections.weights(report),
        maps(report),
        sections.not_examined(report),
        f'<p class="soft">Written by {escaped(report.engine.name)} {escaped(report.engine.version)}. The file was read '
        "without running anything in it. Everything above, and what it leaves out, stands in this page as JSON "
        f"(schema {escaped(report.schema)}).</p>",
    )
    return f"{head}<body><main>{''.join(body)}</main>\n{_data(report)}\n</body></html>\n"


def report_json(report: FileReport, *, indent: int | None = 2) -> str:
    """The report as JSON, as docs/schema publishes it; pictures of maps are left out."""
    return as_json(report, indent=indent)


def _data(report: FileReport) -> str:
    # In JSON these stand inside text alone, where they may be written so: no name ends the element, or opens another.
    text = report_json(report, indent=None).replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return f'<script type="application/json" id="{ELEMENT}">{text}</script>'
