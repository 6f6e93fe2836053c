"""Writing the repaired file, and handing it out from the disk."""

from __future__ import annotations

import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from inspector.architectures.types import Target, TargetKind
from inspector.checkpoint.types import Checkpoint, StateRole
from inspector.exports.report import ExportReport
from inspector.keys.folding import folded_line
from inspector.keys.report import RepairPlan
from inspector.units import human_bytes
from inspector.web import downloads, reports, uploads
from inspector.web.repair import own_code
from inspector.web.repair.proofs import proof_table
from inspector.web.server_paths import server_root
from inspector.web.session import Hand
from inspector.web.text import escaped, mono, plain
from inspector.web.uploads import the_store

_LABELS = {"safetensors": ".safetensors", "pth": ".pth", "pth-legacy": ".pth for torch before 1.6"}
_DTYPES = ("", "float32", "float16", "bfloat16")
_SHARDS = {"": "one file", "1GB": "shards of 1 GB", "2GB": "shards of 2 GB", "5GB": "shards of 5 GB"}
_LOST_SHOWN = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the visitor wants written. shard_size: "" for one file. dtype: "" as stored."""

    writer: str
    dtype: str
    shard_size: str
    optimizer: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """An export on the server, to be downloaded. folder: never a visitor's name. stem: what the visitor calls it."""

    folder: Path
    stem: str
    report: ExportReport


def show_export(hand: Hand, plan: RepairPlan, target: Target, asked: str) -> None:
    """Choose, write, check, hand out."""
    options = _choose(reports.checkpoint_of(hand))
    slot = f"written/{hand.sha256}/{asked}/{options}"
    if st.button("Write and verify", type="primary", key="write", icon=":material/save:"):
        with st.spinner("Writing and reading back …"):
            st.session_state[slot] = _write(hand, plan, target, options)
    written = st.session_state.get(slot)
    if isinstance(written, Written):
        _show(written)


def _choose(checkpoint: Checkpoint) -> Options:
    writer_box, dtype_box, shard_box = st.columns([3, 1.4, 1.4], vertical_alignment="bottom")
    writer = writer_box.segmented_control(
        "Format", _writer_ids(), format_func=_label, default="safetensors", required=True, key="writer"
    )
    dtype = dtype_box.selectbox("Element type", _DTYPES, format_func=lambda d: d or "as stored", key="dtype")
    shards = shard_box.selectbox("Files", list(_SHARDS), format_func=_SHARDS.__getitem__, key="shards")
    optimizer = any(s.role is StateRole.OPTIMIZER for s in checkpoint.state_dicts) and st.checkbox(
        "With its optimizer: one .pth in which the optimizer's state follows the renamed parameters",
        key="optimizer",
        help="A whole training checkpoint, to go on training from; format, type and files above do not apply.",
    )
    if optimizer:
        return Options(writer="pth", dtype="", shard_size="", optimizer=True)
    return Options(writer=writer or "safetensors", dtype=dtype or "", shard_size=shards or "")


def _write(hand: Hand, plan: RepairPlan, target: Target, options: Options) -> Written:
    """Write, read back and verify. Raises ExportError, and then leaves nothing."""
    from inspector.exports.export import export_repaired
    from inspector.exports.shards import parse_size
    from inspector.keys.verify import Compared

    if target.kind is TargetKind.CODE:
        own_code.check_agreed(target)
    the_store().sweep()
    folder = the_store().exports / secrets.token_hex(downloads.TOKEN_BYTES)
    folder.mkdir(parents=True, mode=0o700)
    ending = "" if options.shard_size else _ending(options.writer)
    report: ExportReport | None = None
    try:
        with reports.torch_lock:
            report = export_repaired(
                reports.checkpoint_of(hand),
                plan,
                target,
                folder / f"repaired{ending}",
                writer=options.writer,
                dtype=options.dtype or None,
                shard_nbytes=parse_size(options.shard_size) if options.shard_size else None,
                optimizer=options.optimizer,
                compared=Compared(folder=server_root()),
            )
    finally:
        if report is None:
            shutil.rmtree(folder, ignore_errors=True)
    return Written(folder=folder, stem=f"{stem_of(hand.name)}_repaired", report=report)


def _show(written: Written) -> None:
    report = written.report
    files = downloads.exported_files(written.folder)
    names = [path.name if len(files) > 1 else written.stem + path.suffix for path in files]
    digest = f", sha256 {mono(report.sha256[:16])}" if report.sha256 else ""
    what = mono(names[0]) if len(names) == 1 else f"{len(names):,} files,"
    st.html(f"<p>{what} {human_bytes(report.nbytes)}, {report.tensors:,} tensors{digest}</p>")
    proof_table(report.verification, "Read back from the file", "export-proofs")
    if report.stays_initial:
        st.caption(plain(f"Stays at the model's initial value: {folded_line(report.stays_initial, _LOST_SHOWN)}."))
    for says in report.optimizers:
        st.caption(plain(says))
    if report.lost:
        more = f", and {len(report.lost) - _LOST_SHOWN:,} more" if len(report.lost) > _LOST_SHOWN else ""
        st.caption(plain(f"Left out of this file: {', '.join(report.lost[:_LOST_SHOWN])}{more}."))
    if not files:
        st.info("This export is not on the server any more. Write it again.", icon=":material/info:")
    elif uploads.is_mounted():
        links = "".join(_link(written, place, name) for place, name in enumerate(names))
        st.html(f'<div class="mi-downloads" data-testid="downloads">{links}</div>')
    else:
        for place, (path, name) in enumerate(zip(files, names, strict=True)):
            st.download_button(
                f"Download {plain(name)}",
                path.read_bytes,
                file_name=name,
                on_click="ignore",
                mime="application/octet-stream",
                icon=":material/download:",
                key=f"download-{place}",
            )


def _link(written: Written, place: int, name: str) -> str:
    address = downloads.address_of(written.folder.name, place, name)
    icon = '<span class="mi-icon" aria-hidden="true">download</span>'
    return f'<a class="mi-download" href="{escaped(address)}" download>{icon}Download {escaped(name)}</a>'


def stem_of(name: str) -> str:
    """ "shapes_dp.pth.tar" -> "shapes_dp": the name without the endings that say a format."""
    stem = name
    for _ in range(3):
        base, dot, ending = stem.rpartition(".")
        if not dot or not base or ending.lower() not in _ENDINGS:
            break
        stem = base
    return stem


_ENDINGS = {"pth", "pt", "ckpt", "bin", "th", "tar", "safetensors", "pkl", "model", "zip"}


def _writer_ids() -> list[str]:
    from inspector.exports.writers import WRITERS

    return [writer.id for writer in WRITERS]


def _ending(writer_id: str) -> str:
    from inspector.exports.writers import WRITERS

    return next(writer.suffix for writer in WRITERS if writer.id == writer_id)


def _label(writer_id: str) -> str:
    return _LABELS.get(writer_id, writer_id)
