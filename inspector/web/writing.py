"""What every page that writes a file has in common: format, type and number of files, the work, and the hand-out."""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from inspector.checkpoint.types import Checkpoint, StateDict, StateRole
from inspector.exports.report import broken_line
from inspector.jobs.job import Job
from inspector.jobs.kinds.table import sized
from inspector.jobs.subjects import Destination
from inspector.keys.folding import folded_line
from inspector.keys.written import written_code
from inspector.progress import Stopped
from inspector.units import human_bytes, parse_size
from inspector.web import downloads, jobs, reports, uploads
from inspector.web.exports_kept import Underway, Written, the_kept
from inspector.web.proof_table import proof_table
from inspector.web.session import Hand, owner
from inspector.web.store import the_store
from inspector.web.text import escaped, mono, plain, visible

_LABELS = {"safetensors": ".safetensors", "pth": ".pth", "pth-legacy": ".pth for torch before 1.6"}
_DTYPES = ("", "float32", "float16", "bfloat16")
_SHARDS = {"": "one file", "1GB": "shards of 1 GB", "2GB": "shards of 2 GB", "5GB": "shards of 5 GB"}
_LOST_SHOWN = 12
_MOST_OTHERS = 5
_MODELS = (StateRole.WEIGHTS, StateRole.EMA)
_LONGEST_PART = 40  # characters of a state dict in a file name
_ENDINGS = {"pth", "pt", "ckpt", "bin", "th", "tar", "safetensors", "pkl", "model", "zip"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the visitor wants written. shard_size: "" for one file. dtype: "" as stored."""

    writer: str
    dtype: str
    shard_size: str

    @property
    def shard_nbytes(self) -> int | None:
        """Bytes of a shard, None for one file."""
        return parse_size(self.shard_size) if self.shard_size else None


def choose_options(key: str = "") -> Options:
    """Format, element type and number of files. key: tells the fields of one page apart."""
    writer_box, dtype_box, shard_box = st.columns([3, 1.4, 1.4], vertical_alignment="bottom")
    writer = writer_box.segmented_control(
        "Format", _writer_ids(), format_func=_label, default="safetensors", required=True, key=f"{key}writer"
    )
    dtype = dtype_box.selectbox("Element type", _DTYPES, format_func=lambda d: d or "as stored", key=f"{key}dtype")
    shards = shard_box.selectbox("Files", list(_SHARDS), format_func=_SHARDS.__getitem__, key=f"{key}shards")
    return Options(writer=writer or "safetensors", dtype=dtype or "", shard_size=shards or "")


JobOf = Callable[[Destination], Job]
# The names under which the visitor has the files -> the lines that load them.
LinesOf = Callable[[Sequence[str]], str]


def job_of(kind: str, hand: Hand, *more: object, state: StateDict | None = None) -> Job:
    """A job that writes. It is asked for once: its file is new each time."""
    file = reports.file_of(hand, state)
    return Job(
        kind=sized(kind, file.path.stat().st_size),
        arguments=(file, *more),
        known_by=secrets.token_hex(16),
        near=hand.sha256,
    )


def as_is(hand: Hand, state: StateDict, *, salvage: bool = False, without_broken: bool = False) -> JobOf:
    """What `write` asks for tensors under the names they have in state."""
    return lambda destination: job_of("as-is", hand, state, destination, salvage, without_broken)


def write(job: JobOf, options: Options, *, name: str, stem: str) -> Underway:
    """Begin a job that writes into a new folder of the store's. Whatever this raises, nothing is left.

    name: of the file on the server, never a visitor's. stem: of the file that is handed out.
    """
    the_store().sweep()
    folder = the_store().new_export(secrets.token_hex(downloads.TOKEN_BYTES))
    ending = "" if options.shard_size else _ending(options.writer)
    destination = Destination(
        place=folder / f"{name}{ending}",
        writer=options.writer,
        dtype=options.dtype,
        shard_nbytes=options.shard_nbytes,
    )
    try:
        running = jobs.start(job(destination))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Underway(running=running, folder=folder, stem=stem)


def write_button(
    slot: str,
    make: Callable[[], Underway],
    *,
    key: str = "write",
    disabled: bool = False,
    lines_of: LinesOf | None = None,
) -> bool:
    """The button, and what came of it, or how far it is; whether a written file's proofs stand there.

    slot: what the file is about, its digest, and everything that was chosen; what was written of the file with other
    choices stands below. lines_of: how it is loaded.
    """
    clicked = st.button("Write and verify", type="primary", key=key, icon=":material/save:", disabled=disabled)
    if clicked and not the_kept.is_underway(owner(), slot):
        the_kept.begin(owner(), slot, make())
    written = _show(slot)
    if written is not None:
        show_written(written, key=key, lines_of=lines_of)
    group = "/".join(slot.split("/")[:2]) + "/"
    others = the_kept.others(owner(), group, slot)[:_MOST_OTHERS]
    if others:
        st.caption("With other choices:")
    for other in others:
        before = _show(other)
        if before is not None:
            _links_of(before)
    return written is not None


def _show(slot: str) -> Written | None:
    """What was written; while it is being written how far that is, and where it was stopped that it was."""
    try:
        held = the_kept.find(owner(), slot)
        if isinstance(held, Underway) and jobs.follow(held.running, title=f"Writing and reading back {held.stem}"):
            held = the_kept.find(owner(), slot)
    except Stopped:
        st.info("Stopped: nothing was written.", icon=":material/cancel:")
        return None
    return held if isinstance(held, Written) else None


def show_written(written: Written, *, key: str = "write", lines_of: LinesOf | None = None) -> None:
    """The links first, then the proofs, what is not in the file, and the lines that load what comes by the links."""
    report = written.report
    files = _named_files(written)
    digest = f", sha256 {mono(report.sha256[:16])}" if report.sha256 else ""
    what = mono(files[0][1]) if len(files) == 1 else f"{len(files):,} files,"
    st.html(f"<p>{what} {human_bytes(report.nbytes)}, {report.tensors:,} tensors{digest}</p>")
    if report.is_part:
        lacking = folded_line(report.stays_initial or report.left_out, _LOST_SHOWN)
        says = f"A part of the model. Not in this file, so they stay at the model's initial value: {lacking}."
        st.warning(plain(says), icon=":material/content_cut:")
    if report.broken:
        st.warning(plain(broken_line(report.broken)), icon=":material/warning:")
    if not files:
        st.info("The written file is not on the server any more. Write it again.", icon=":material/info:")
    elif uploads.is_mounted():
        _links_of(written)
    else:
        for place, (path, name) in enumerate(files):
            st.download_button(
                f"Download {plain(name)}",
                path.read_bytes,
                file_name=name,
                on_click="ignore",
                mime="application/octet-stream",
                icon=":material/download:",
                key=f"{key}-download-{place}",
            )
    proof_table(report.verification, "Read back from the file", f"{key}-proofs", of_part=report.is_part)
    if report.cast is not None:
        st.caption(plain(report.cast.says))
    for says in report.optimizers:
        st.caption(plain(says))
    if report.state:
        st.caption(plain(f"Taken: {report.state}."))
    for says in report.notes:
        st.caption(plain(f"{says[:1].upper()}{says[1:]}".removesuffix(".") + "."))
    if report.lost:
        more = f", and {len(report.lost) - _LOST_SHOWN:,} more" if len(report.lost) > _LOST_SHOWN else ""
        listed = ", ".join(what.removesuffix(".") for what in report.lost[:_LOST_SHOWN])
        st.caption(plain(f"Left out of this file: {listed}{more}."))
    if files:
        st.caption("Load what you downloaded:")
        names = [name for _, name in files]
        lines = lines_of(names) if lines_of is not None else written_code(names, left_out=report.left_out)
        st.code(visible(lines), language="python")


def _named_files(written: Written) -> list[tuple[Path, str]]:
    """Each file that is still on the server, and what the visitor calls it."""
    files = downloads.exported_files(written.folder)
    return [(path, path.name if len(files) > 1 else written.stem + path.suffix) for path in files]


def _links_of(written: Written) -> None:
    """To each of its files; nothing for one that is not on the server any more."""
    links = "".join(_link(written, place, name) for place, (_, name) in enumerate(_named_files(written)))
    if links:
        st.html(f'<div class="mi-downloads" data-testid="downloads">{links}</div>')


def _link(written: Written, place: int, name: str) -> str:
    address = downloads.address_of(written.folder.name, place, name)
    icon = '<span class="mi-icon" aria-hidden="true">download</span>'
    return f'<a class="mi-download" href="{escaped(address)}" download>{icon}Download {escaped(name)}</a>'


def stem_of(name: str, checkpoint: Checkpoint | None = None, path: Sequence[str] = ()) -> str:
    """ "shapes_dp.pth.tar" -> "shapes_dp": the name without the endings that say a format.

    path: of the state dict that is written; of a checkpoint with several it stands behind the name, "shapes_dp_ema".
    """
    stem = name
    for _ in range(3):
        base, dot, ending = stem.rpartition(".")
        if not dot or not base or ending.lower() not in _ENDINGS:
            break
        stem = base
    of_models = [s for s in checkpoint.state_dicts if s.role in _MODELS] if checkpoint is not None else []
    if len(of_models) > 1 and path:
        stem += "_" + re.sub(r"[^0-9A-Za-z-]+", "_", "_".join(path)).strip("_")[:_LONGEST_PART]
    return stem


def _writer_ids() -> list[str]:
    from inspector.exports.writers import WRITERS

    return [writer.id for writer in WRITERS]


def _ending(writer_id: str) -> str:
    from inspector.exports.writers import WRITERS

    return next(writer.suffix for writer in WRITERS if writer.id == writer_id)


def _label(writer_id: str) -> str:
    return _LABELS.get(writer_id, writer_id)
