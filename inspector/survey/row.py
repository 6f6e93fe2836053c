"""From one path to one row. Whatever a file does to the reader, it costs its own row and no other."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from inspector.checkpoint.digest import sha256_of
from inspector.checkpoint.producer import producer_of
from inspector.checkpoint.types import Checkpoint, GlobalVerdict
from inspector.errors import InspectorError, ModelError, UnknownFormat
from inspector.findings import Severity, ranked
from inspector.limits import Limits
from inspector.params.count import count_parameters
from inspector.readers import open_checkpoint
from inspector.survey.report import RowKind, SurveyRow

# What people call checkpoints: under these names anything else is worth a line of its own.
CHECKPOINT_SUFFIXES = (
    *(".pth", ".pt", ".ckpt", ".bin", ".th", ".tar", ".safetensors", ".pt2", ".ptl", ".pkl", ".pickle", ".p"),
    *(".joblib", ".model", ".weights", ".gguf", ".onnx", ".npz"),
)


def survey_path(root: Path, path: str, limits: Limits, *, digest: bool = False) -> tuple[SurveyRow, tuple[str, ...]]:
    """The row of one file or folder under root, and the files whose content is in it (relative to it).

    Raises nothing for what the file contains.
    """
    place = root / path
    nbytes = 0
    try:
        nbytes = place.stat().st_size if place.is_file() else 0
        checkpoint = open_checkpoint(place, limits=limits)
        try:
            return _row(path, checkpoint, digest), tuple(p.name for p in checkpoint.parts if p.opened)
        finally:
            checkpoint.source.close()
    except UnknownFormat as error:
        named = place.suffix.lower() in CHECKPOINT_SUFFIXES
        kind = RowKind.UNREADABLE if named else RowKind.OTHER
        worst = Severity.ERROR if named else None
        return SurveyRow(path=path, nbytes=nbytes, kind=kind, worst=worst, finding="no-checkpoint", says=error.says), ()
    except InspectorError as error:
        return _failed(path, nbytes, type(error).__name__, str(error)), ()
    except Exception as error:  # noqa: BLE001 - a gate must not be passed because a file crashed its guard
        says = f"Reading it failed in a way that it should not ({type(error).__name__}: {error}). Please report this."
        return _failed(path, nbytes, "internal-error", says[:500]), ()


def _failed(path: str, nbytes: int, ident: str, says: str) -> SurveyRow:
    return SurveyRow(
        path=path, nbytes=nbytes, kind=RowKind.UNREADABLE, worst=Severity.ERROR, finding=ident, says=says,
        counts=((Severity.ERROR.value, 1),),
    )  # fmt: skip


def _row(path: str, checkpoint: Checkpoint, digest: bool) -> SurveyRow:
    findings = ranked(checkpoint.findings)
    first = findings[0] if findings else None
    counts = Counter(finding.severity for finding in findings)
    verdicts = Counter(use.verdict for use in checkpoint.globals)
    parameters = buffers = 0
    if checkpoint.weights is not None:
        try:
            total = count_parameters(checkpoint).total
            parameters, buffers = total.parameters, total.buffers
        except ModelError:
            pass  # Nothing to count; the row says how many tensors there are.
    return SurveyRow(
        path=path,
        nbytes=checkpoint.origin.nbytes,
        kind=RowKind.CHECKPOINT,
        format=checkpoint.format,
        producer=producer_of(checkpoint),
        tensors=len(checkpoint.tensors),
        parameters=parameters,
        buffers=buffers,
        dangerous=verdicts[GlobalVerdict.DANGEROUS],
        unknown=verdicts[GlobalVerdict.UNKNOWN],
        worst=first.severity if first else None,
        finding=first.id if first else "",
        says=first.says if first else "",
        counts=tuple((s.value, counts[s]) for s in reversed(Severity) if counts[s]),
        sha256=sha256_of(checkpoint.source) if digest else None,
    )
