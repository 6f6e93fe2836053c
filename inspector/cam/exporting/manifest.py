"""What maps were made of and by what, beside them."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass

from inspector.cam.exporting.blend import Blend
from inspector.cam.exporting.request import Request, command_line
from inspector.cam.report import Crop, Explanation, LayerProposal, Options, Preprocessing, Score
from inspector.cam.targets.answers import AnswerKind
from inspector.findings import Finding

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file that was read. sha256: of its bytes, "" where it was not asked for (a folder)."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One map without its arrays. checkpoint, picture: positions in the manifest's lists. key: prefix of its arrays in
    the NPZ. Other fields as in `Explanation`."""

    checkpoint: int
    picture: int
    key: str
    method: str
    layer: LayerProposal
    layers: tuple[LayerProposal, ...]
    asked: str
    answer: AnswerKind
    target: Score
    scores: tuple[Score, ...]
    raw_minimum: float
    raw_maximum: float
    negative_share: float
    crop: Crop
    options: Options
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Everything needed to make the files again. command: does it. files: names of what lies beside."""

    schema: int
    command: str
    checkpoints: tuple[Source, ...]
    pictures: tuple[Source, ...]
    preprocessing: Preprocessing
    colour_map: str
    opacity: float
    blend: Blend
    threshold: float
    threads: int
    versions: tuple[tuple[str, str], ...]
    platform: str
    entries: tuple[Entry, ...]
    files: tuple[str, ...]


def entry_of(explanation: Explanation, *, checkpoint: int = 0, picture: int = 0, key: str = "") -> Entry:
    """The explanation without its arrays."""
    return Entry(
        checkpoint=checkpoint,
        picture=picture,
        key=key,
        method=explanation.method,
        layer=explanation.layer,
        layers=explanation.layers,
        asked=explanation.asked,
        answer=explanation.answer,
        target=explanation.target,
        scores=explanation.scores,
        raw_minimum=explanation.raw_minimum,
        raw_maximum=explanation.raw_maximum,
        negative_share=explanation.negative_share,
        crop=explanation.crop,
        options=explanation.options,
        findings=explanation.findings,
    )


def manifest_of(
    request: Request,
    entries: Sequence[Entry],
    *,
    checkpoints: Sequence[Source],
    pictures: Sequence[Source],
    versions: tuple[tuple[str, str], ...],
    files: Sequence[str],
    folder: str = "explained",
) -> Manifest:
    """folder: where the command writes to."""
    return Manifest(
        schema=SCHEMA,
        command=command_line(request, folder),
        checkpoints=tuple(checkpoints),
        pictures=tuple(pictures),
        preprocessing=request.preprocessing,
        colour_map=request.colour_map,
        opacity=request.opacity,
        blend=request.blend,
        threshold=request.threshold,
        threads=request.threads,
        versions=versions,
        platform=platform.platform(),
        entries=tuple(entries),
        files=tuple(files),
    )
