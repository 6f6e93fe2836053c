"""The heat maps that somebody kept, each with how it was made."""

from __future__ import annotations

from inspector.cam.report import Score
from inspector.file_report.report import FileReport, MapFacts
from inspector.render.html_text import escaped
from inspector.render.page_report.sections import card
from inspector.render.page_report.words import folded, mono, section
from inspector.render.png import png_address
from inspector.units import human_share


def maps(report: FileReport) -> str:
    """Every map that has its picture; of those read back from JSON there is none to show."""
    shown = "".join(_one(found) for found in report.maps)
    return section("Where it looks", f'<div class="maps">{shown}</div>' if shown else "", kind="sheet")


def _one(found: MapFacts) -> str:
    called = found.target.name or f"class {found.target.index}"
    alt = f"Heat map for {called}"
    drawn = (
        f'<img src="{png_address(found.png)}" alt="{escaped(alt)}">'
        if found.png
        else "<p>(its picture is in the page)</p>"
    )
    steps = found.preprocessing
    stated = "assumed" if steps.assumed else f"by {steps.source}"
    scores = ", ".join(f"{score.name or f'class {score.index}'} {_share(score)}" for score in found.scores[:3])
    lines = (
        f"{found.picture}: {found.method}" + (f" at {found.layer}" if found.layer else ""),
        f"Answer: {scores}",
        f"Preprocessing: {_size(steps.resize)}, crop {_size(steps.crop)}, mean {_plain(steps.mean)}, "
        f"deviation {_plain(steps.std)}, {stated}",
    )
    text = "".join(f"<br>{escaped(one)}" for one in lines)
    how = folded("Command", f"<pre>{escaped(found.command)}</pre>", printed=True)
    digest = f"<p class=soft>Picture {mono(found.picture_sha256[:16])}</p>"
    return (
        f"<figure>{drawn}<figcaption><b>{escaped(called)} {escaped(_share(found.target))}</b>{text}</figcaption>"
        f"{digest}{how}{''.join(map(card, found.findings))}</figure>"
    )


def _share(score: Score) -> str:
    return human_share(score.probability) if score.probability is not None else f"{score.logit:.4g}"


def _size(size: int | tuple[int, int] | None) -> str:
    return "as it is" if size is None else str(size) if isinstance(size, int) else f"{size[0]}x{size[1]}"


def _plain(values: tuple[float, ...]) -> str:
    return " ".join(f"{value:g}" for value in values)
