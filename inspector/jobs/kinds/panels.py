"""What stands below the one map: tables of small maps, channels, several pictures, trust, a run."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from inspector.cam.describe import Setting
from inspector.cam.engine.tensors import centres_of, enlarge, normalise
from inspector.cam.explain import explain_many
from inspector.cam.inputs.picture import upright
from inspector.cam.live import Channel
from inspector.cam.methods import METHODS
from inspector.cam.report import Explanation, LayerProposal
from inspector.cam.runs import ReadyModel
from inspector.cam.series import Common, agreement_with_last, explain_each
from inspector.cam.trust.assess import Cost, assess
from inspector.cam.trust.assess import cost as cost_of
from inspector.cam.trust.making import Maker
from inspector.cam.trust.masks import mask_seen
from inspector.cam.trust.pictures import Named, assess_pictures, cost_of_pictures
from inspector.errors import ExplainError, InspectorError
from inspector.jobs.asked import RunAsked, RunMade, SheetMade, StripAsked
from inspector.jobs.bench import Bench
from inspector.jobs.kinds.files import checkpoint_of, ready_of
from inspector.jobs.kinds.heat import explained, looked, need_of, setting_of, spec_of
from inspector.jobs.kinds.pictures import decoded
from inspector.jobs.subjects import ChannelSeen, Naming, PictureRef, Subject, Thumbnails, Wanted
from inspector.ready import ready_model
from inspector.render.explained_table import row_of, row_of_error, table_csv
from inspector.render.overlay import png_bytes
from inspector.render.panels import PicturesPanel, TrustPanel
from inspector.render.scores import share_text
from inspector.render.screen import THUMBNAIL, at_screen_size, thumbnail
from inspector.render.sheet import Cell, cell_of, findings_line, sheet
from inspector.render.strip import strip_cell, strip_rows
from inspector.render.trust_panel import pictures_panel, trust_panel

if TYPE_CHECKING:
    from torch import Tensor

_ACROSS = 4

Pixels = NDArray[np.uint8]


def grid(
    bench: Bench, subject: Subject, layers: tuple[LayerProposal, ...], target: int, naming: Naming, colour_map: str
) -> Thumbnails:
    """Every method that is arithmetic at every one of these layers, as small pictures."""
    small = at_screen_size(decoded(bench, subject.picture), 3 * THUMBNAIL)
    lines: list[tuple[Pixels | None, ...]] = []
    notes: list[tuple[int, int, str]] = []
    for place in layers:
        line: list[Pixels | None] = []
        for method in METHODS:
            if method.arithmetic is None:
                continue
            try:
                made = explained(bench, subject, Wanted(method=method.id, layers=(place,)), target, naming)
            except ExplainError:
                line.append(None)
                continue
            if made.findings:
                notes.append((len(lines), len(line), ", ".join(finding.id for finding in made.findings)))
            line.append(np.asarray(thumbnail(small, made, colour_map)))
        lines.append(tuple(line))
    return Thumbnails(lines=tuple(lines), notes=tuple(notes))


def channels(
    bench: Bench, subject: Subject, layer: LayerProposal, target: int, made: Explanation, colour_map: str, most: int
) -> tuple[ChannelSeen, ...]:
    """Those that move the score most. made: a map of the same column, for its geometry."""
    look, _ = looked(bench, subject)
    small = at_screen_size(decoded(bench, subject.picture), 3 * THUMBNAIL)
    size = (look.batch.shape[2], look.batch.shape[3])
    return tuple(
        ChannelSeen(
            index=channel.index,
            contribution=channel.contribution,
            signed=channel.signed,
            low=float(channel.activation.min()),
            high=float(channel.activation.max()),
            thumbnail=np.asarray(thumbnail(small, _of_channel(channel, layer, size, made), colour_map)),
        )
        for channel in look.channels(layer, target, most)
    )


def channel(
    bench: Bench, subject: Subject, layer: LayerProposal, target: int, made: Explanation, number: int, most: int
) -> Explanation:
    """One of them as a map."""
    look, _ = looked(bench, subject)
    size = (look.batch.shape[2], look.batch.shape[3])
    return _of_channel(look.channels(layer, target, most)[number], layer, size, made)


def _of_channel(found: Channel, layer: LayerProposal, size: tuple[int, int], made: Explanation) -> Explanation:
    activation = found.activation[None]
    heat = enlarge(normalise(activation), size, centres_of(layer, activation))[0]
    return replace(made, heat=heat.float().clamp(0, 1).numpy())


def spread(bench: Bench, made: Explanation, values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Numbers at a map's grid as they lie over the model's input, each where its cell looks."""
    import torch

    field = torch.from_numpy(values)[None]
    centres = centres_of(made.layer, field, aligned=made.options.aligned)
    found: NDArray[np.float32] = enlarge(field, made.heat.shape, centres).numpy()[0]
    return found


def sheet_of(
    bench: Bench,
    subject: Subject,
    pictures: tuple[PictureRef, ...],
    names: tuple[str, ...],
    wanted: Wanted,
    target: int | None,
    naming: Naming,
    colour_map: str,
) -> SheetMade:
    """One map of each picture; one that cannot be read or explained is said and left out. names: of the pictures."""
    look, _ = looked(bench, subject)
    need_of(bench, subject, tuple(look.batch.shape))
    request, model = spec_of(look, wanted).request, ready_of(bench, subject.file).model
    setting = setting_of(subject, naming)
    cells: list[Cell] = []
    rows = []
    failed: list[tuple[str, str]] = []
    for number, (one, name) in enumerate(zip(pictures, names, strict=True)):
        bench.progress(number, len(pictures), name)
        try:
            picture = decoded(bench, one)
            (made,) = explain_many(model, [picture], request, setting, targets=target)
        except InspectorError as error:
            failed.append((name, error.says))
            rows.append(row_of_error(error.says, checkpoint=subject.file.name, picture=name))
            continue
        rows.append(row_of(made, checkpoint=subject.file.name, picture=name, threshold=0.5))
        label = made.target.name or f"class {made.target.index}"
        lines = (name, f"{label} {share_text(made.target)}", *findings_line(made))
        cells.append(cell_of(picture, made, lines, colour_map=colour_map))
    drawn = [cells[start : start + _ACROSS] for start in range(0, len(cells), _ACROSS)]
    return SheetMade(
        sheet=png_bytes(sheet(drawn)) if cells else b"", table=table_csv(rows), count=len(cells), failed=tuple(failed)
    )


def trust_cost(bench: Bench, subject: Subject, wanted: Wanted, target: int) -> float:
    """Seconds that measuring a map takes, by one piece of each kind."""
    return _timed(bench, subject, wanted, target).seconds


def _timed(bench: Bench, subject: Subject, wanted: Wanted, target: int) -> Cost:
    """What was timed for the offer serves the work."""
    look, _ = looked(bench, subject)

    def time_it() -> Cost:
        return cost_of(look.model, look.batch, _maker(bench, subject, wanted, target))

    return bench.keep(("trust-cost", subject, wanted, target), time_it, nbytes=lambda _: 1000)


def trust(
    bench: Bench, subject: Subject, wanted: Wanted, target: int, naming: Naming, mask: PictureRef | None
) -> TrustPanel:
    """All measures of one map beside maps that know nothing. mask: a picture of where the thing is."""
    look, crop = looked(bench, subject)
    need_of(bench, subject, tuple(look.batch.shape), times=3.0)
    where: Tensor | None = None
    if mask is not None:
        where = mask_seen(upright(decoded(bench, mask)), crop, (look.batch.shape[2], look.batch.shape[3]))
    return trust_panel(
        assess(
            look.twin(),
            look.batch,
            _maker(bench, subject, wanted, target),
            mask=where,
            answer=naming.answer,
            timed=_timed(bench, subject, wanted, target).pace,
            progress=bench.progress,
        )
    )


def _maker(bench: Bench, subject: Subject, wanted: Wanted, target: int) -> Maker:
    look, _ = looked(bench, subject)
    read, column = look.reading(target)
    spec = spec_of(look, wanted)
    return Maker(method=spec.method, layers=spec.layers, options=spec.options, target=column, read=read)


def pictures_cost(
    bench: Bench,
    subject: Subject,
    pictures: tuple[PictureRef, ...],
    names: tuple[str, ...],
    wanted: Wanted,
    target: int | None,
    naming: Naming,
) -> float:
    """Seconds that measuring the maps of these takes, by the first that has one."""
    look, _ = looked(bench, subject)
    request, setting = spec_of(look, wanted).request, setting_of(subject, naming)
    return cost_of_pictures(look.model, _named(bench, pictures, names), request, setting, target=target).seconds


def pictures_trust(
    bench: Bench,
    subject: Subject,
    pictures: tuple[PictureRef, ...],
    names: tuple[str, ...],
    wanted: Wanted,
    target: int | None,
    naming: Naming,
) -> PicturesPanel:
    """Every map measured, means over them, class by class."""
    look, _ = looked(bench, subject)
    need_of(bench, subject, tuple(look.batch.shape), times=3.0)
    given, request = _named(bench, pictures, names), spec_of(look, wanted).request
    setting = setting_of(subject, naming)
    return pictures_panel(assess_pictures(look.twin(), given, request, setting, target=target, progress=bench.progress))


def _named(bench: Bench, pictures: tuple[PictureRef, ...], names: tuple[str, ...]) -> list[Named]:
    """Each by its name, decoded when its turn comes."""
    return [(name, partial(decoded, bench, one)) for one, name in zip(pictures, names, strict=True)]


def run(bench: Bench, asked: RunAsked) -> RunMade:
    """One picture through the checkpoints of a run, each opened, built, explained and let go."""
    subject = asked.subject
    look, _ = looked(bench, subject)
    need_of(bench, subject, tuple(look.batch.shape), times=2.0)
    common = Common(
        architecture=asked.architecture,
        setting=Setting(preprocessing=subject.preprocessing, categories=asked.naming.names, answer=asked.naming.answer),
        own=asked.own,
        stated=asked.stated,
        own_answer=asked.own_answer,
    )

    def ready(number: int) -> ReadyModel:
        member = asked.members[number]
        made = ready_model(checkpoint_of(bench, member.file))
        return replace(made, name=member.file.name, sha256=member.file.sha256, place=member.place)

    given = [(member.file.name, partial(ready, number)) for number, member in enumerate(asked.members)]
    picture, request = decoded(bench, subject.picture), spec_of(look, asked.wanted).request
    stages = tuple(explain_each(given, picture, common, request, target=asked.target, progress=bench.progress))
    maps = [stage.made for stage in stages if stage.made is not None]
    return RunMade(stages=stages, agreement=agreement_with_last(maps) if maps else ())


def strip_png(bench: Bench, asked: StripAsked) -> bytes:
    """The strip as the command line writes it, from every pixel of the picture."""
    cells = [
        strip_cell(
            decoded(bench, asked.picture),
            made,
            name=stage.name,
            place=stage.place,
            one_scale=asked.one_scale,
            colour_map=asked.colour_map,
            opacity=asked.opacity,
        )
        for stage, made in zip(asked.kept, asked.drawn, strict=True)
    ]
    return png_bytes(sheet(strip_rows(cells)))
