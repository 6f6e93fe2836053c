"""Files that the page writes: the repaired one, the weights alone, another format. As the command line writes them,
byte for byte, and proved as there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector.browser.documents import own_target
from inspector.browser.pieces import own_words
from inspector.errors import ExportError
from inspector.exports.report import broken_line
from inspector.progress import Progress, silent
from inspector.render.html_text import escaped
from inspector.render.page_report.proofs import proofs_table
from inspector.render.unwrap_words import PREFIX_HELP, prefix_answer, prefix_question, salvage_label
from inspector.render.visible import visible
from inspector.units import counted, human_bytes

if TYPE_CHECKING:
    from inspector.browser.views import Opened
    from inspector.checkpoint.types import StateDict
    from inspector.exports.report import ExportReport


def write_file(
    opened: Opened,
    kind: str,
    folder: str,
    *,
    writer: str,
    salvage: bool = False,
    prefix: str = "",
    progress: Progress = silent,
) -> dict[str, Any]:
    """Write into folder. kind: "repair", "unwrap" or "convert". writer: an id of `WRITERS`. salvage: of what is not
    whole, the rest (not "repair"). prefix: what comes off in front of every name, too ("unwrap" alone).

    Raises ExportError where it is refused, with the reason.
    """
    from inspector.exports.write import find_writer

    stem = Path(opened.checkpoint.origin.name).name.split(".")[0] or "model"
    named = {"repair": "repaired", "unwrap": "weights", "convert": "converted"}[kind]
    named = "partial" if salvage and kind != "repair" else named
    where = Path(folder) / f"{stem}-{named}{find_writer(writer).suffix}"
    says = ""
    if kind == "repair":
        report = _repair(opened, where, writer, progress)
    elif kind == "unwrap":
        report, says = _unwrap(opened, where, writer, salvage, prefix, progress)
    else:
        report = _convert(opened, where, writer, salvage, progress)
    return {"path": str(where), "name": where.name, "nbytes": report.nbytes, "sha256": report.sha256,
            "html": _told(report, says)}  # fmt: skip


def choices(opened: Opened) -> dict[str, dict[str, Any]]:
    """What is to be decided before the tensors are written as they are, for "convert" and for "unwrap". cut: how many
    are not whole, and in which words they are left out; prefixes: "" and what every name begins with, and in which
    words it is kept and dropped ("unwrap"); asks, help: the question that they answer."""
    return {kind: _choices(opened, kind) for kind in ("convert", "unwrap")}


def _choices(opened: Opened, kind: str) -> dict[str, Any]:
    from inspector.exports.unwrap import unwrap
    from inspector.keys.apply import whole_and_cut

    try:
        state, joined = _to_unwrap(opened) if kind == "unwrap" else (_state(opened), 0)
        cut = len(whole_and_cut(opened.checkpoint, state.tensors)[1])
        shared = unwrap(state, joined=joined).shared if kind == "unwrap" else ()
    except ExportError:  # Said where it is written.
        return {"cut": 0, "says": "", "asks": "", "help": "", "prefixes": []}
    return {
        "cut": cut,
        "says": salvage_label(cut) if cut else "",
        "asks": visible(prefix_question(shared)) if shared else "",
        "help": PREFIX_HELP if shared else "",
        "prefixes": [[one, visible(prefix_answer(one))] for one in ("", *shared)] if shared else [],
    }


def _repair(opened: Opened, where: Path, writer: str, progress: Progress) -> ExportReport:
    from inspector.exports.export import export_repaired

    keys, checkpoint = opened.keys, opened.checkpoint
    if opened.untried is not None:
        raise opened.untried
    if keys is None or keys.plan is None or not keys.plan.complete:
        raise ExportError((keys.refusal or keys.says) if keys is not None else "Nothing was diagnosed yet.")
    target = opened.target or own_target(checkpoint, checkpoint.weights)
    return export_repaired(checkpoint, keys.plan, target, where, writer=writer, progress=progress)


def _state(opened: Opened) -> StateDict:
    from inspector.checkpoint.several import sets_of_weights
    from inspector.exports.one_of_several import several_sets

    checkpoint = opened.checkpoint
    sets = sets_of_weights(checkpoint)
    if len(sets) > 1:
        raise several_sets(checkpoint, sets)
    if checkpoint.weights is None:
        raise ExportError(f"{checkpoint.origin.name} holds no named tensors.", hint="There is nothing to write.")
    return checkpoint.weights


def _to_unwrap(opened: Opened) -> tuple[StateDict, int]:
    from inspector.exports.unwrap import only_weights

    chosen, joined = only_weights(opened.checkpoint)
    return chosen or _state(opened), joined


def _unwrap(
    opened: Opened, where: Path, writer: str, salvage: bool, prefix: str, progress: Progress
) -> tuple[ExportReport, str]:
    from inspector.exports.convert import export_as_is
    from inspector.exports.unwrap import unwrap

    state, joined = _to_unwrap(opened)
    found = unwrap(state, joined=joined, prefix=prefix)
    report = export_as_is(opened.checkpoint, found.state, where, writer=writer, salvage=salvage, progress=progress)
    says = found.says or "Nothing was wrapped around them: the names are as they were."
    return report, f"{says} {found.proof}"


def _convert(opened: Opened, where: Path, writer: str, salvage: bool, progress: Progress) -> ExportReport:
    from inspector.exports.convert import export_as_is

    return export_as_is(opened.checkpoint, _state(opened), where, writer=writer, salvage=salvage, progress=progress)


def _told(report: ExportReport, says: str) -> str:
    notes = "".join(
        f"<p>{escaped(own_words(says))}</p>"
        for says in (*([broken_line(report.broken)] if report.broken else ()), *report.notes)
    )
    lost = "".join(f"<li>{escaped(own_words(line))}</li>" for line in report.lost)
    return (
        (f"<p>{escaped(says)}</p>" if says else "")
        + f"<p>{escaped(report.name)}: {counted(report.tensors, 'tensor')}, {human_bytes(report.nbytes)}.</p>"
        + (f'<p class="line"><span>sha256 <code>{escaped(report.sha256)}</code></span></p>' if report.sha256 else "")
        + notes
        + "<h3>Verified</h3>"
        + own_words(proofs_table(report.verification.proofs))
        + (f"<h3>Not carried over</h3><ul>{lost}</ul>" if lost else "")
    )
