"""From one path to its rows. Whatever a file does to the reader, it costs its own row and no other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from inspector.checkpoint.digest import sha256_of
from inspector.checkpoint.producer import producer_of
from inspector.checkpoint.source import ByteSource, is_distant
from inspector.checkpoint.types import Checkpoint, GlobalVerdict
from inspector.errors import InspectorError, ModelError, NotExamined, PointerFile, UnknownFormat
from inspector.findings import Finding, FindingKind, Severity, ranked
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.params.count import count_parameters
from inspector.readers import open_checkpoint
from inspector.readers.folder import Folder
from inspector.readers.sidecars import READ
from inspector.survey.described import Describer, NumbersSeen
from inspector.survey.kinds import INTERNAL_ERROR, NO_CHECKPOINT, UNREADABLE_FILE, kind_of_error
from inspector.survey.report import RowKind, SurveyRow
from inspector.survey.unclaimed import observe_unclaimed

# What people call checkpoints: under these names anything else is worth a line of its own.
CHECKPOINT_SUFFIXES = (
    *(".pth", ".pt", ".ckpt", ".bin", ".th", ".tar", ".safetensors", ".pt2", ".ptl", ".pkl", ".pickle", ".p"),
    *(".joblib", ".dill", ".model", ".weights", ".gguf", ".onnx", ".npz", ".npy", ".llamafile"),
)


def is_named_as_checkpoint(name: str) -> bool:
    """Whether people would take it for a checkpoint by its name."""
    return name.lower().endswith(CHECKPOINT_SUFFIXES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How every file is read.

    digest: compute the sha256 of each checkpoint. more: asked about each that was opened, beside what its reader
    noticed; what: which network it is. Both go to other processes, so they must pickle. describer: takes down what is
    in each for a catalogue, and is told what `more` read.
    every: members of an archive that are no checkpoints and harmless have rows, too.
    pointers_pass: a Git LFS pointer is a note and no error, since it is what a repository holds.
    """

    limits: Limits = DEFAULT_LIMITS
    digest: bool = False
    more: Callable[[Checkpoint, NumbersSeen | None], Iterable[Finding]] | None = None
    what: Callable[[Checkpoint], str] | None = None
    every: bool = False
    pointers_pass: bool = False
    describer: Describer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A row, and what its reading told. parts: names of the files whose whole content is in it.

    polyglot: the file is an archive besides.
    """

    row: SurveyRow
    parts: tuple[str, ...] = ()
    polyglot: bool = False


def open_row(where: Path | ByteSource, path: str, reading: Reading, *, beside: Folder | None = None) -> Opened:
    """The row of one thing to open. beside: the files that lie beside a source. Raises nothing for what it contains."""
    nbytes = 0
    try:
        nbytes = (where.stat().st_size if where.is_file() else 0) if isinstance(where, Path) else where.size
        checkpoint = open_checkpoint(where, limits=reading.limits, beside=beside)
        try:
            # What was read as evidence was read as text, and may be something else to another program.
            whole = tuple(p.name for p in checkpoint.parts if p.opened and not p.says.startswith(READ))
            polyglot = any(finding.id == "two-formats" for finding in checkpoint.findings)
            return Opened(row=_row(path, checkpoint, reading), parts=whole, polyglot=polyglot)
        finally:
            # What came through a network is looked at for members next; whoever gave the source lets go of it.
            if checkpoint.source is not where or not is_distant(checkpoint.source):
                checkpoint.source.close()
    except UnknownFormat as error:
        if isinstance(error, NotExamined) or is_named_as_checkpoint(where.name):
            says = str(error) if isinstance(error, NotExamined) else error.says
            is_pointer = isinstance(error, PointerFile)
            remedy = error.hint if is_pointer else ""
            severity = Severity.NOTICE if is_pointer and reading.pointers_pass else None
            return Opened(row=unreadable_row(path, nbytes, kind_of_error(error), says, severity, remedy=remedy))
        row = SurveyRow(path=path, nbytes=nbytes, kind=RowKind.OTHER, finding=NO_CHECKPOINT.id, says=error.says)
        return Opened(row=_with_content(row, where, reading.limits))
    except InspectorError as error:
        return Opened(row=unreadable_row(path, nbytes, kind_of_error(error), str(error)))
    except OSError as error:
        says = f"It cannot be read: {error.strerror or error}."
        return Opened(row=unreadable_row(path, nbytes, UNREADABLE_FILE, says))
    except Exception as error:  # noqa: BLE001 - a gate must not be passed because a file crashed its guard
        return Opened(row=crashed_row(path, nbytes, error))


def _with_content(row: SurveyRow, where: Path | ByteSource, limits: Limits) -> SurveyRow:
    try:
        return with_findings(row, observe_unclaimed(where, where.name, limits))
    except InspectorError as error:
        return unreadable_row(row.path, row.nbytes, kind_of_error(error), str(error))


def crashed_row(path: str, nbytes: int, error: Exception) -> SurveyRow:
    """The row of what made its reader fail in a way that is no answer."""
    says = f"Reading it failed in a way that it should not ({type(error).__name__}: {error}). Please report this."
    return unreadable_row(path, nbytes, INTERNAL_ERROR, says[:500])


def unreadable_row(
    path: str, nbytes: int, kind: FindingKind, says: str, severity: Severity | None = None, *, remedy: str = ""
) -> SurveyRow:
    """The row of what was not, or could not be, looked at. severity: one of the kind's others."""
    row = SurveyRow(path=path, nbytes=nbytes, kind=RowKind.UNREADABLE)
    return with_findings(row, (kind.found(says, severity=severity, remedy=remedy),))


def with_findings(row: SurveyRow, findings: Iterable[Finding]) -> SurveyRow:
    """The row with more findings about the same file."""
    ordered = ranked(findings)
    if not ordered:
        return row
    counts = Counter(dict(row.counts))
    counts.update(finding.severity.value for finding in ordered)
    counts_now = tuple((s.value, counts[s.value]) for s in reversed(Severity) if counts[s.value])
    row = replace(row, counts=counts_now, findings=ranked((*row.findings, *ordered)))
    first = ordered[0]
    if row.worst is not None and row.worst.rank >= first.severity.rank:
        return row
    return replace(row, worst=first.severity, finding=first.id, says=first.says)


def _row(path: str, checkpoint: Checkpoint, reading: Reading) -> SurveyRow:
    verdicts = Counter(use.verdict for use in checkpoint.globals)
    parameters = buffers = 0
    if checkpoint.weights is not None:
        try:
            total = count_parameters(checkpoint).total
            parameters, buffers = total.parameters, total.buffers
        except ModelError:
            pass  # Nothing to count; the row says how many tensors there are.
    row = SurveyRow(
        path=path,
        nbytes=checkpoint.origin.nbytes,
        kind=RowKind.CHECKPOINT,
        format=checkpoint.format,
        producer=producer_of(checkpoint),
        what=reading.what(checkpoint) if reading.what is not None else "",
        tensors=len(checkpoint.tensors),
        parameters=parameters,
        buffers=buffers,
        dangerous=verdicts[GlobalVerdict.DANGEROUS],
        unknown=verdicts[GlobalVerdict.UNKNOWN],
        sha256=sha256_of(checkpoint.source) if reading.digest else None,
    )
    describer = reading.describer
    seen = describer.numbers if describer is not None else None
    more = tuple(reading.more(checkpoint, seen)) if reading.more is not None else ()
    if describer is not None:
        describer.describe(path, checkpoint)
    return with_findings(row, (*checkpoint.findings, *more))
