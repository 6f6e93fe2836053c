"""Write the repaired state dict, read it back, compare it bit for bit, and only then give it its name.

A file under the destination's name is therefore always whole and right; on any failure there is none.
"""

from __future__ import annotations

import os
import tempfile
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from inspector.architectures.types import Target
from inspector.checkpoint.data import read_bytes
from inspector.checkpoint.digest import sha256_of
from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.joined_source import paths_of
from inspector.checkpoint.source import PathSource
from inspector.checkpoint.types import Checkpoint, StateRole
from inspector.errors import ExportError, InspectorError, KeysDoNotFit, UsageError
from inspector.exports.report import ExportReport
from inspector.exports.writers import WRITERS
from inspector.exports.writers.entry import Writer
from inspector.keys.apply import apply_plan, check_complete, state_of
from inspector.keys.report import Proof, RepairPlan, StepKind, Verification
from inspector.keys.verify import tensor_bytes, verify_plan
from inspector.progress import Progress, silent
from inspector.readers import open_checkpoint
from inspector.units import counted

DTYPE_CHOICES = ("float32", "float16", "bfloat16")


def export_repaired(
    checkpoint: Checkpoint,
    plan: RepairPlan,
    target: Target,
    destination: Path,
    *,
    writer: str = "pth",
    dtype: str | None = None,
    progress: Progress = silent,
    writers: Sequence[Writer] = WRITERS,
) -> ExportReport:
    """Apply the plan and write the result to destination, verified.

    dtype: None keeps every tensor's type; one of DTYPE_CHOICES casts the floating ones, which may lose digits.
    Raises ExportError, and leaves no file behind, when the plan is open or incomplete, a proof fails, the destination
    is the source, or the disk refuses. Raises UsageError for a writer or dtype that does not exist.
    """
    entry = find_writer(writer, writers)
    if dtype is not None and dtype not in DTYPE_CHOICES:
        raise UsageError(f'"{dtype}" is no type to export.', hint=f"Choose one of {', '.join(DTYPE_CHOICES)}.")
    destination = Path(destination)
    check_destination(checkpoint, destination)
    try:
        check_complete(plan)
        progress(0, 4, "verifying the plan")
        verification = verify_plan(checkpoint, plan, target)
        _check(verification)
        progress(1, 4, "applying the plan")
        state = apply_plan(checkpoint, plan, spec=target.spec)
    except KeysDoNotFit as error:
        raise ExportError(f"Nothing was written. {error.says}", hint=error.hint) from error
    lost = _lost(checkpoint, plan, entry)
    if dtype is not None:
        state, changed = _cast(state, dtype)
        lost += changed
    report = write_proved(state, destination, entry, _provenance(checkpoint, plan, entry), verification, progress)
    return replace(report, lost=lost + report.lost)


def write_proved(
    state: Mapping[str, Tensor],
    destination: Path,
    entry: Writer,
    text: Mapping[str, str],
    verification: Verification | None = None,
    progress: Progress = silent,
) -> ExportReport:
    """Write the state dict under a name of our own, read it back twice, and only then name it destination.

    text: provenance for writers that keep it. verification: what was proved before. Raises ExportError, and leaves no
    file behind, when it reads back otherwise or the disk refuses.
    """
    temporary = _new_file(destination, entry.suffix)
    try:
        progress(2, 4, f"writing {destination.name}")
        lost = entry.write(state, temporary, text)
        progress(3, 4, "reading it back")
        before = verification.proofs if verification else ()
        proofs = (_prove_reread(temporary, state), _prove_library(temporary, state, entry))
        verification = Verification(proofs=before + proofs)
        _check(verification)
        written = PathSource(temporary)
        try:
            nbytes, digest = written.size, sha256_of(written)
        finally:
            written.close()
        _publish(temporary, destination)
    except OSError as error:
        raise ExportError(f"{destination.name} cannot be written: {error.strerror or error}.") from error
    except RuntimeError as error:
        # So torch's writers end when the disk is full; their words are about their own insides.
        raise ExportError(
            f"{destination.name} could not be written to its end by torch; nothing of it was left.",
            hint="Look whether the disk is full.",
        ) from error
    finally:
        temporary.unlink(missing_ok=True)
    progress(4, 4, "done")
    return ExportReport(
        name=destination.name,
        writer=entry.id,
        nbytes=nbytes,
        sha256=digest,
        tensors=len(state),
        lost=lost,
        verification=verification,
    )


def find_writer(writer: str, writers: Sequence[Writer] = WRITERS) -> Writer:
    """The writer of that id. Raises UsageError for one that does not exist."""
    for entry in writers:
        if entry.id == writer:
            return entry
    raise UsageError(f'There is no writer "{writer}".', hint=f"Choose one of {', '.join(w.id for w in writers)}.")


def check_destination(checkpoint: Checkpoint, destination: Path) -> None:
    """Raise ExportError when destination is the file itself, a folder, or no name for a file."""
    try:
        destination.lstat()
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        # Too long, through a file as if it were a folder, or with a null byte in it.
        raise ExportError(f"{destination.name[:80]!r} is no name for a file here: {error}.") from error
    for origin in map(Path, paths_of(checkpoint.source)):
        if destination.exists() and origin.exists() and destination.samefile(origin):
            raise ExportError(
                f"{destination.name} is the file that is being repaired.", hint="Give the repaired file another name."
            )
    if destination.is_dir():
        raise ExportError(f"{destination.name} is a folder.", hint="Name a file in it.")


def _new_file(destination: Path, suffix: str) -> Path:
    """An empty file of our own beside the destination, so that naming it at the end is one step."""
    folder = destination.parent
    if not folder.is_dir():
        raise ExportError(f"The folder of {destination.name} does not exist.", hint="Make it first.")
    try:
        descriptor, name = tempfile.mkstemp(dir=folder, prefix=".writing-", suffix=suffix)
    except OSError as error:
        raise ExportError(f"Nothing can be written in {folder}: {error.strerror or error}.") from error
    os.close(descriptor)
    return Path(name)


def _check(verification: Verification) -> None:
    failed = next((p for p in verification.proofs if p.passed is False), None)
    if failed is not None:
        raise ExportError(f"Nothing was written: {failed.says}", hint=f"The proof that failed is {failed.id}.")
    if not verification.holds:
        raise ExportError("Nothing was written: nothing about this repair could be proven.")


def _publish(temporary: Path, destination: Path) -> None:
    # mkstemp makes files for the owner alone; a written model gets what any new file gets.
    mask = os.umask(0)
    os.umask(mask)
    temporary.chmod(0o666 & ~mask)
    temporary.replace(destination)


def _cast(state: Mapping[str, Tensor], dtype: str) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    """Floating tensors in another type; tensors that were one stay one. Says what that costs."""
    wanted: torch.dtype = getattr(torch, dtype)
    made: OrderedDict[str, Tensor] = OrderedDict()
    done: dict[tuple[object, ...], Tensor] = {}
    count = infinite = 0
    for name, tensor in state.items():
        if not tensor.is_floating_point() or tensor.dtype is wanted:
            made[name] = tensor
            continue
        key = (tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride())
        cast = done.get(key) if tensor.numel() else None
        if cast is None:
            cast = done[key] = tensor.to(wanted)
            infinite += int((torch.isinf(cast) & torch.isfinite(tensor)).sum())
        made[name] = cast
        count += 1
    if hasattr(state, "_metadata"):
        made._metadata = state._metadata  # type: ignore[attr-defined]
    if not count:
        return made, ()
    says = f"{counted(count, 'tensor')} cast to {dtype}"
    return made, (says + (f"; {counted(infinite, 'value')} became infinite." if infinite else "."),)


def _lost(checkpoint: Checkpoint, plan: RepairPlan, entry: Writer) -> tuple[str, ...]:
    """What stood in the file and does not stand in the new one."""
    state = state_of(checkpoint, plan)
    lost = []
    if not (entry.keeps_text and checkpoint.format == "safetensors"):
        lost += [key for key, _ in checkpoint.own_metadata]
    for other in checkpoint.state_dicts:
        if other is not state and not (other.path[: len(state.path)] == state.path and state.path):
            states = {StateRole.OPTIMIZER: "optimizer state", StateRole.TRAINING: "training state"}
            what = states.get(other.role, "state dict")
            lost.append(f"{other.label}: {what} of {counted(len(other.tensors), 'tensor')}")
    lost = [key for key in lost if key not in state.others]
    lost += [f"{name}: not a tensor" for name in state.others]
    lost += [f"{s.source}: left out" for s in plan.steps if s.kind is StepKind.DROP]
    if state.is_module:
        lost.append(f"the module object itself ({state.kind}); its tensors are kept")
    return tuple(dict.fromkeys(lost))


def _provenance(checkpoint: Checkpoint, plan: RepairPlan, entry: Writer) -> dict[str, str]:
    if not entry.keeps_text:
        return {}
    kept = dict(checkpoint.own_metadata) if checkpoint.format == "safetensors" else {}
    text = {
        **kept,
        "repaired_from": checkpoint.origin.name,
        "repaired_for": plan.target,
        "repaired_by": "; ".join(use.says for use in plan.rules) or "no change of names",
    }
    if checkpoint.origin.sha256:
        text["repaired_from_sha256"] = checkpoint.origin.sha256
    return text


def _prove_reread(path: Path, state: Mapping[str, Tensor]) -> Proof:
    """Our own reader on the written file, byte for byte."""
    source = PathSource(path)
    try:
        written = open_checkpoint(source)
        found = next((s for s in written.state_dicts if len(s.tensors) == len(state)), None)
        infos = {t.name: t for t in (found.tensors if found else ())}
        if set(infos) != set(state):
            return Proof(id="reread", says="The written file has other names than were to be written.", passed=False)
        for name, tensor in state.items():
            info = infos[name]
            same = info.shape == tuple(tensor.shape) and info.dtype == _name(tensor)
            if not same or read_bytes(written, info) != tensor_bytes(tensor):
                return Proof(id="reread", says=f"{name} reads back otherwise than it was written.", passed=False)
    except InspectorError as error:
        return Proof(id="reread", says=f"The written file does not read back: {error.says}", passed=False)
    finally:
        source.close()
    says = f"Read back without executing anything: {counted(len(state), 'tensor')} bit for bit equal."
    return Proof(id="reread", says=says, passed=True)


def _prove_library(path: Path, state: Mapping[str, Tensor], entry: Writer) -> Proof:
    """The format's own library on the written file, bit for bit."""
    again = entry.read(path)
    if set(again) != set(state):
        return Proof(id="library", says="The format's own library finds other names.", passed=False)
    for name, tensor in state.items():
        other = again[name]
        if (
            other.dtype is not tensor.dtype
            or other.shape != tensor.shape
            or tensor_bytes(other) != tensor_bytes(tensor)
        ):
            return Proof(id="library", says=f"The format's own library reads {name} otherwise.", passed=False)
    library = "safetensors" if entry.suffix == ".safetensors" else "torch.load(weights_only=True)"
    return Proof(id="library", says=f"{library} reads {counted(len(state), 'tensor')} bit for bit equal.", passed=True)


def _name(tensor: Tensor) -> str:
    name = str(tensor.dtype).removeprefix("torch.")
    return name if name in DTYPES else ""
