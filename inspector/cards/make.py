"""A card from a checkpoint: headers, recognition, digests; nothing else."""

from __future__ import annotations

from pathlib import Path

from inspector.architectures.index import load_index
from inspector.architectures.match import is_another
from inspector.architectures.recognise import recognise
from inspector.architectures.types import Recognition
from inspector.cards.report import CardFile, CardReport, KnownModel
from inspector.cards.signature import compare_signature, find_signature
from inspector.checkpoint.digest import digest_of, left_undigested, with_digest
from inspector.checkpoint.producer import producer_of
from inspector.checkpoint.types import Checkpoint
from inspector.errors import InspectorError
from inspector.findings import ranked
from inspector.params.count import count_parameters
from inspector.progress import Progress, silent
from inspector.side_files import PathKind, kind_of_path

# What a model card and CycloneDX ask for and no checkpoint tells.
UNKNOWN = ("licence", "training data", "language", "intended use", "limitations", "metrics", "who made it", "when")
# What the hub calls the tasks of the index.
_TASKS = {
    "classification": "image-classification",
    "quantization": "image-classification",
    "detection": "object-detection",
    "segmentation": "image-segmentation",
    "video": "video-classification",
}


def make_card(checkpoint: Checkpoint, where: str, *, digest: bool = False, progress: Progress = silent) -> CardReport:
    """where: the path as the person gave it. Reads every byte of a file here once, of one at an address only where its
    digest is asked for.

    A signature beside a path is compared. Raises ReadError, OSError where the bytes cannot be read.
    """
    state = checkpoint.weights
    undigested = "" if digest else left_undigested(checkpoint)
    folder = Path(where) if _is_path(where) and kind_of_path(where) is PathKind.FOLDER else None
    if folder is None and not undigested:
        checkpoint = with_digest(checkpoint, progress)
    files = _files(checkpoint, folder, progress)
    if len(files) == 1 and not undigested:
        checkpoint = with_digest(checkpoint, progress)
    recognition = recognise(checkpoint, state) if state else None
    parameters = count_parameters(checkpoint, state, recognition) if state else None
    counted = parameters.total if parameters else None
    signature = None
    if _is_path(where):
        beside = find_signature(Path(where))
        signature = compare_signature(beside, files) if beside is not None else None
    findings = (*checkpoint.findings, *(recognition.findings if recognition else ()))
    return CardReport(
        name=Path(checkpoint.origin.name).stem or checkpoint.origin.name,
        format=checkpoint.format_says,
        producer=producer_of(checkpoint),
        files=files,
        tensors=len(state.tensors) if state else len(checkpoint.tensors),
        parameters=counted.parameters if counted else 0,
        buffers=counted.buffers if counted else 0,
        dtypes=tuple((dtype, elements) for dtype, elements, _ in parameters.dtypes) if parameters else (),
        metadata=checkpoint.own_metadata,
        model=_model(recognition),
        part=recognition.part if recognition else "",
        near=_near(recognition),
        findings=ranked(findings),
        unknown=UNKNOWN,
        signature=signature,
        skipped=(undigested,) if undigested else (),
    )


def _files(checkpoint: Checkpoint, folder: Path | None, progress: Progress) -> tuple[CardFile, ...]:
    """Each file with its digest: those of a folder by name, else the one."""
    if folder is None:
        origin = checkpoint.origin
        return (CardFile(name=origin.name, nbytes=origin.nbytes, sha256=origin.sha256 or ""),)
    return tuple(
        CardFile(name=part.name, nbytes=part.nbytes, sha256=_digest(folder, part.name, progress))
        for part in checkpoint.parts
        if part.nbytes
    )


def _digest(folder: Path, name: str, progress: Progress) -> str:
    """ "" where it is not simply a file of that folder: the name may come from a file in it."""
    path = folder / name
    if ".." in Path(name).parts or Path(name).is_absolute() or kind_of_path(path) is not PathKind.FILE:
        return ""
    try:
        return digest_of(path, progress)
    except (InspectorError, OSError):
        return ""


def _is_path(where: str) -> bool:
    return not where.startswith(("http://", "https://")) and kind_of_path(where) is not PathKind.NOTHING


def _near(recognition: Recognition | None) -> str:
    """What it is near and is not, in a sentence; "" for others."""
    best = recognition.best if recognition else None
    if recognition is None or best is None or not is_another(best, load_index().of(best.spec)):
        return ""
    return recognition.says


def _model(recognition: Recognition | None) -> KnownModel | None:
    best = recognition.best if recognition else None
    if recognition is None or best is None:
        return None
    spec = best.spec
    entry = load_index().of(spec)
    if is_another(best, entry):
        return None
    classes = spec.num_classes or (entry.num_classes if entry is not None else None)
    return KnownModel(
        library=spec.library,
        name=spec.name,
        label=spec.label,
        says=recognition.says,
        official=recognition.official.name if recognition.official else "",
        classes=classes,
        task=_TASKS.get(entry.task, "") if entry is not None and classes else "",
        settings=tuple((name, str(value)) for name, value in spec.options),
    )
