"""explain: where does the model look?"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inspector.cam.exporting.blend import OPACITY, Blend
from inspector.cam.targets.answers import AnswerKind
from inspector.cli.options import FILE_HELP, Json, State, StoreOption, TargetOption, progress_bar, show
from inspector.cli.pieces import PiecesExecutor, PiecesJobs, PiecesPart, PiecesThreads
from inspector.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from inspector.cam.describe import Setting
    from inspector.cam.engine.maps import Axes
    from inspector.cam.exporting.manifest import Source
    from inspector.cam.exporting.request import Request
    from inspector.cam.report import Estimate
    from inspector.cam.runs import ReadyModel
    from inspector.cam.trust.assess import Trust
    from inspector.cam.trust.pictures import TrustOfPictures
    from inspector.cli.explaining import Files

Out = Path | None


def explain(
    file: Annotated[str, typer.Argument(help=FILE_HELP)] = "",
    pictures: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PICTURE...", help="Pictures, or folders of them: PNG, JPEG, WebP ..."),
    ] = None,
    output: Annotated[
        Out, typer.Option("--output", "-o", help="Write the overlay as PNG; of several maps a contact sheet.")
    ] = None,
    maps: Annotated[Out, typer.Option("--maps", help="Write raw and normalised maps and logits as NPZ.")] = None,
    csv: Annotated[Out, typer.Option("--csv", help="Write a table with a row for each map.")] = None,
    export: Annotated[
        Out, typer.Option("--export", metavar="DIR", help="Write all of these and a manifest into a folder.")
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(help="Method of the heat map, several for a grid; grad-cam if left out.")
    ] = None,
    layer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:CALL][=LAYOUT]",
            help="Module whose output is explained, several for a grid; the suggested one if left out. :0 is its first "
            "call. =NCHW, =NHWC, or =1+8x8 for one token before 8 rows of 8 patches, if it is found otherwise.",
        ),
    ] = None,
    classes: Annotated[
        list[int] | None, typer.Option("--class", help="Class to explain, several for a grid; the top one if left out.")
    ] = None,
    series: Annotated[
        list[str] | None,
        typer.Option("--series", metavar="FILE", help="Another checkpoint for the same picture, several for a strip."),
    ] = None,
    common_scale: Annotated[
        bool, typer.Option("--common-scale", help="Colours of a series by the highest of all, not each by its own.")
    ] = False,
    fuse: Annotated[str, typer.Option(help="One map of several layers: mean, maximum or product.")] = "",
    eigen_smooth: Annotated[
        bool, typer.Option("--eigen-smooth", help="The strongest pattern over the channels instead of their sum.")
    ] = False,
    augment: Annotated[
        bool, typer.Option("--augment", help="The mean over six brighter, darker and mirrored copies.")
    ] = False,
    aligned: Annotated[
        bool, typer.Option("--aligned", help="Cells at the centres of their receptive fields, not spread evenly.")
    ] = False,
    seed: Annotated[int, typer.Option(help="For methods that draw random numbers.", min=0, max=2**32 - 1)] = 0,
    pixels_of: Annotated[
        int | None, typer.Option("--pixels-of", metavar="CLASS", help="Explain the pixels a segmentation gives it.")
    ] = None,
    box: Annotated[
        str,
        typer.Option(
            metavar="BOX", help="Explain a detector's box: 1 for the surest, or left,top,right,bottom[:CLASS]."
        ),
    ] = "",
    answer: Annotated[
        AnswerKind | None,
        typer.Option(help="One class of several, several labels, or plain numbers; what the file says if left out."),
    ] = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Measure the maps beside maps that know nothing; of several pictures means.")
    ] = False,
    trust_csv: Annotated[
        Out, typer.Option("--trust-csv", metavar="FILE", help="Write what was measured as a table, with --trust.")
    ] = None,
    mask: Annotated[Out, typer.Option(help="A picture that is white where the thing is, for --trust.")] = None,
    estimate: Annotated[bool, typer.Option("--estimate", help="Only say what it will cost.")] = False,
    list_layers: Annotated[bool, typer.Option("--list-layers", help="Show the layers worth explaining.")] = False,
    list_methods: Annotated[bool, typer.Option("--list-methods", help="Show the methods.")] = False,
    preprocessing: Annotated[
        str, typer.Option(metavar="JSON", help="size or resize and crop, mean, std, interpolation; else inferred.")
    ] = "",
    names: Annotated[
        str,
        typer.Option(
            metavar="FILE", help="Class names: JSON, or one in each line; or cifar-10, cifar-100, imagenet-1k."
        ),
    ] = "",
    colour_map: Annotated[
        str, typer.Option("--colour-map", help="viridis, inferno, magma, cividis, turbo, jet.")
    ] = "viridis",
    opacity: Annotated[float, typer.Option(help="Of the hottest place over the picture.", min=0, max=1)] = OPACITY,
    blend: Annotated[Blend, typer.Option(help="Opacity follows the heat, or is the same everywhere.")] = Blend.HEAT,
    threshold: Annotated[float, typer.Option(help="Of the box in the table.", min=0, max=1)] = 0.5,
    store: StoreOption = "",
    executor: PiecesExecutor = "",
    jobs: PiecesJobs = 0,
    part: PiecesPart = "1/1",
    threads: PiecesThreads = 0,
    target: TargetOption = "",
    state: State = "",
    json: Json = False,
) -> int:
    """Show where a recognised model looks in a picture.

    With --store, --executor, --jobs or --part by pieces of 32 pictures, of which no map is made again after an
    interruption.
    """
    from rich.console import Group

    from inspector.render.explained_text import estimate_text, layers_text, methods_text

    if list_methods:
        from inspector.cam.methods import METHODS

        show({"methods": [_plain(entry) for entry in METHODS]}, methods_text, as_json=json)
        return 0
    if not file:
        raise UsageError("Which checkpoint?", hint="inspector explain FILE PICTURE")
    from inspector.cam.describe import Setting
    from inspector.cam.exporting.manifest import Source
    from inspector.cam.exporting.request import Request
    from inspector.cam.report import Options
    from inspector.cli.explain_trust import (
        announce,
        check_trust,
        estimate_of_trust,
        measured_picture,
        measured_pictures,
    )
    from inspector.cli.explaining import Files, Places, load, pictures_in, question_of
    from inspector.cli.map_pieces import check_pieces, each_by_pieces, map_part, running_in
    from inspector.render.colour_maps import colour_table
    from inspector.sweep.piece import parse_part

    colour_table(colour_map)  # a typo is said before the work
    question = question_of(pixels_of, box)
    found = () if list_layers and not pictures else pictures_in(pictures or ())
    if series:
        _check_series(found, method or (), layer or (), classes or ())
    if common_scale and (not series or fuse):
        raise UsageError("--common-scale is for a series of maps that are not fused.", hint="Leave it out.")
    share = parse_part(part)
    by_pieces = bool(store or executor or jobs or share.of > 1)
    if by_pieces:
        check_pieces(
            share,
            store,
            one_map=not fuse and max(map(len, (method or (), layer or (), classes or ()))) <= 1,
            more=bool(series) or trust or estimate or list_layers,
            places=any(place is not None for place in (output, maps, csv, export)),
        )
    count = _threads(threads or int(by_pieces))
    loading = partial(load, state=state, target=target, preprocessing=preprocessing, names=names, answer=answer)
    loaded = loading(file)
    if loaded.weights_note:
        typer.echo(f"{loaded.weights_note} --state runs another.", err=True)
    request = Request(
        file=file,
        pictures=tuple(map(str, found)),
        methods=tuple(method or ("grad-cam",)),
        layers=tuple(layer or ()),
        classes=tuple(classes or ()),
        options=Options(fusion=fuse, eigen_smooth=eigen_smooth, augmented=augment, seed=seed, aligned=aligned),
        preprocessing=loaded.preprocessing,
        answer=answer or loaded.answer or AnswerKind.ONE,
        colour_map=colour_map,
        opacity=opacity,
        blend=blend,
        threshold=threshold,
        series=tuple(series or ()),
        common_scale=common_scale,
        pixels_of=pixels_of,
        box=box,
        state=state,
        target=target,
        names=names,
        threads=count,
    )
    if list_layers:
        layers = _layers(loaded, request)
        show({"layers": layers}, lambda: layers_text(layers), as_json=json)
        return 0
    one_map = bool(fuse) or max(_lengths(request)) <= 1
    single = not series and len(found) == 1 and one_map and not by_pieces
    check_trust(trust=trust, one_map=one_map and not series, single=single, mask=mask, table=trust_csv)
    setting = Setting(
        preprocessing=loaded.preprocessing, categories=loaded.class_names, question=question, answer=request.answer
    )
    in_pieces = partial(running_in, request, preprocessing, executor=executor, jobs=jobs, store=store, part=share)
    if share.of > 1:
        with in_pieces() as running:
            return map_part(loaded, request, setting, running, as_json=json)
    if estimate or any(_has_passes(name) for name in request.methods):
        cost = _estimate(loaded, request, setting)
        if estimate:
            costs = {"estimate": cost}
            if trust:
                costs["trust"] = estimate_of_trust(loaded, request, setting)
            measuring = ["", "Measuring whether they can be trusted:", estimate_text(costs["trust"])] if trust else []
            show(costs, lambda: Group(estimate_text(cost), *measuring), as_json=json)
            return 0
        announce(cost.passes, cost.seconds)
    measured: Trust | TrustOfPictures | None = None
    places = Places(output=output, maps=maps, table=csv, folder=export, trust=trust_csv)
    with Files(request=request, single=single, places=places) as files:
        if series:
            from inspector.cli.series import each_checkpoint

            first = [loaded]
            del loaded  # one model at a time
            bar = progress_bar("explaining")
            by_hand = bool(preprocessing)
            checkpoints = each_checkpoint(first, loading, request, setting, files, by_hand=by_hand, progress=bar)
        elif by_pieces:
            checkpoints = [Source(name=loaded.name, sha256=loaded.sha256)]
            with in_pieces() as running:
                each_by_pieces(loaded, request, setting, files, running)
        else:
            checkpoints = [Source(name=loaded.name, sha256=loaded.sha256)]
            _each_picture(loaded, request, setting, files)
            if trust:
                measured = (
                    measured_picture(loaded, request, setting, files, mask)
                    if single
                    else measured_pictures(loaded, request, setting)
                )
                files.write_trust(measured)
        files.finish(checkpoints, _pictures(request))
    show(_report(files, measured), partial(_text, files, measured), as_json=json)
    return 0 if len(files.kept) and not _failed(files) else 1


def _check_series(pictures: Sequence[Path], *axes: Sequence[object]) -> None:
    if len(pictures) != 1:
        raise UsageError("A series of checkpoints takes one picture.", hint="Leave --series out for several.")
    if max(map(len, axes)) > 1:
        raise UsageError("A series of checkpoints takes one method, one layer and one class.")


def _each_picture(loaded: ReadyModel, request: Request, setting: Setting, files: Files) -> None:
    from inspector.cam.picture_maps import explain_pictures
    from inspector.cli.explaining import add_maps

    pictures = [Path(name) for name in request.pictures]
    bar = progress_bar("explaining")
    for maps in explain_pictures(
        loaded.model, pictures, _axes(request), setting, options=request.options, progress=bar
    ):
        add_maps(files, maps)


def _text(files: Files, measured: Trust | TrustOfPictures | None) -> RenderableType:
    from rich.console import Group

    from inspector.cam.inputs.class_lists import suggestion
    from inspector.cam.trust.assess import Trust
    from inspector.render.explained_text import explanations_text, trust_text
    from inspector.render.text import explanation_text, safe
    from inspector.render.trust_pictures import trust_of_pictures_text

    if files.single:
        parts = [explanation_text(files.kept[0][1], files.written)]
    else:
        parts = [explanations_text(files.kept, files.problems, files.written)]
    if measured is not None:
        parts += ["", trust_text(measured) if isinstance(measured, Trust) else trust_of_pictures_text(measured)]
    suggested = _suggested(files)
    if suggested:
        parts += ["", safe(f"{suggestion(len(files.kept[0][1].logits))} --names {' or '.join(suggested)} takes them.")]
    return Group(*parts)


def _suggested(files: Files) -> list[str]:
    """Ids of well-known class lists that would fit, where nobody names the classes."""
    from inspector.cam.inputs.class_lists import lists_of

    if not files.kept or files.kept[0][1].target.name or files.kept[0][1].box:
        return []
    return [one.id for one in lists_of(len(files.kept[0][1].logits))]


def _report(files: Files, trust: Trust | TrustOfPictures | None) -> dict[str, Any]:
    """Of one picture alone "explanation" and "trust", else "explanations" and "trust_of_pictures"."""
    kept = [explanation for _, explanation in files.kept]
    found: dict[str, Any] = {"explanation": kept[0]} if files.single else {"explanations": kept}
    if trust is not None:
        found["trust" if files.single else "trust_of_pictures"] = trust
    suggested = _suggested(files)
    if suggested:
        found["suggested_names"] = suggested
    return found | {"problems": files.problems, "written": files.written}


def _failed(files: Files) -> bool:
    from inspector.render.explained_table import ERROR

    return any(row[ERROR] for row in files.rows)


def _lengths(request: Request) -> tuple[int, ...]:
    return len(request.methods), len(request.layers), len(request.classes)


def _axes(request: Request) -> Axes:
    from inspector.cam.engine.maps import Axes

    return Axes(
        layers=request.layers or None, methods=request.methods, classes=request.classes or (None,), most_layers=1
    )


def _threads(wanted: int) -> int:
    import torch

    if wanted:
        torch.set_num_threads(wanted)
    return torch.get_num_threads()


def _has_passes(name: str) -> bool:
    from inspector.cam.methods import method_named

    return method_named(name).passes is not None


def _layers(loaded: ReadyModel, request: Request) -> Sequence[Any]:
    from inspector.cam.inputs.picture import input_shape, open_picture
    from inspector.cam.inputs.preprocess import prepare
    from inspector.cam.layers.proposals import propose_layers

    shape = input_shape(loaded.preprocessing)
    if request.pictures:
        batch, _ = prepare(open_picture(Path(request.pictures[0])), loaded.preprocessing)
        shape = (batch.shape[1], batch.shape[2], batch.shape[3])
    return propose_layers(loaded.model, shape)


def _estimate(loaded: ReadyModel, request: Request, setting: Setting) -> Estimate:
    from inspector.cam.costs import estimate
    from inspector.cam.inputs.picture import open_picture

    picture = open_picture(Path(request.pictures[0]))
    one = estimate(loaded.model, picture, _axes(request), setting, options=request.options)
    times = len(request.pictures) * (1 + len(request.series))
    by_method = tuple((name, passes * times) for name, passes in one.by_method)
    return replace(one, passes=one.passes * times, seconds=one.seconds * times, by_method=by_method)


def _pictures(request: Request) -> list[Source]:
    import hashlib

    from inspector.cam.exporting.manifest import Source
    from inspector.cam.inputs.picture import MOST_NBYTES
    from inspector.side_files import read_bytes

    def digest(name: str) -> str:
        return hashlib.sha256(read_bytes(name, most_nbytes=MOST_NBYTES)).hexdigest()

    return [Source(name=name, sha256=digest(name)) for name in request.pictures]


def _plain(entry: Any) -> dict[str, Any]:
    return {
        "id": entry.id, "title": entry.title, "paper": entry.paper, "says": entry.says, "by_layer": entry.by_layer,
        "passes_of_its_own": entry.passes is not None, "seeded": entry.seeded,
    }  # fmt: skip
