"""A folder, or an archive of one, that is no format of several files: the one checkpoint in it, when there is one.

Which files are checkpoints is decided by their content. What is opened is only what nobody could mean differently:
several that are independent are an error that lists them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from inspector.checkpoint.types import Checkpoint, Part
from inspector.errors import InspectorError, ReadError, UnknownFormat
from inspector.findings import Finding, FindingKind, Severity
from inspector.readers.entry import FolderPeek
from inspector.readers.finish import with_findings
from inspector.readers.folder import Folder, SubFolder
from inspector.readers.not_checkpoints.naming import NEVER_SUFFIXES, WEIGHT_SUFFIXES, name_folder
from inspector.readers.sidecars import add_evidence
from inspector.units import counted

OPENED_INSIDE = FindingKind("opened-inside", Severity.INFO, "The checkpoint lies in a folder", also=(Severity.NOTICE,))

_MOST_LOOKS = 64
_LISTED = 12
_NAME_NBYTES = 150  # An entry of a dict with a short text.
_CHARGED_NBYTES = 1 << 20
# What trainers write beside the weights: pickles all of them, but not the model.
ASIDE_NAME = re.compile(
    r"(optimizer|scheduler|lr_scheduler|scaler|grad_scaler|sampler|rng_state|random_states|training_args|"
    r"custom_checkpoint|dataloader|loss|replay_buffer)([_-]?\d+)*\.(pt|pth|bin|pkl|pickle|safetensors)",
    re.IGNORECASE,
)
# The folder's own model by the convention of the transformers, diffusers and PEFT libraries.
OWN_NAME = re.compile(r"(model|pytorch_model|diffusion_pytorch_model|adapter_model)\.(safetensors|bin)")
# What a library keeps beside it of the same model: in other frameworks' files, in shards, its tokenizer.
_OF_THE_SAME = re.compile(
    r"(((adapter|tf|flax|rust|openvino)_)?((diffusion_)?pytorch_)?model|consolidated|tokenizer|spiece|sentencepiece)"
    r"([._-].*)?",
    re.IGNORECASE,
)
# One file more may be a leftover; of several nobody knows which is meant.
_FEWEST_STRANGERS = 2
ARCHIVES = ("packed",)
# Formats in which nothing is named that a load would import.
_CODELESS = ("safetensors", "gguf", "onnx", "npy")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """path: of a file, or of a folder within the folder. others: what was not opened, and why."""

    path: str
    is_folder: bool = False
    others: tuple[str, ...] = ()


def open_single(peek: FolderPeek) -> Checkpoint:
    """The one checkpoint of a folder, with the evidence beside it. Raises UnknownFormat when there is none, or several;
    another ReadError when it cannot be read."""
    choice = _choose(peek)
    if choice.is_folder:
        checkpoint = peek.opening.folder(FolderPeek(SubFolder(peek.folder, choice.path), peek.opening.deeper()))
        parts = tuple(replace(part, name=f"{choice.path}/{part.name}") for part in checkpoint.parts)
        read = {path for path in peek.folder.files() if path.startswith(f"{choice.path}/")}
    else:
        checkpoint = peek.open_inner(choice.path)
        above = choice.path.rpartition("/")[0]
        if above:
            checkpoint = add_evidence(checkpoint, SubFolder(peek.folder, above), peek.limits, prefix=f"{above}/")
        nbytes = peek.folder.size_of(choice.path) or 0
        opened = Part(name=choice.path, nbytes=nbytes, says=f"the checkpoint shown, {checkpoint.format_says}")
        parts = (opened, *checkpoint.parts)
        read = {choice.path}
    unread = (
        *(f"{choice.path}/{path}" for path in checkpoint.unread),
        *unread_code(peek, (path for path in peek.folder.files() if path not in read)),
    )
    finding = opened_inside(peek.folder, choice.path, choice.others)
    return with_findings(replace(checkpoint, parts=parts, unread=unread), behind=[finding])


def is_mixed(paths: Iterable[str]) -> bool:
    """Whether files of these names are a collection in which one happens to have a library's usual name: several lie at
    the top that are called like checkpoints, and are neither of the same model nor what a trainer keeps beside it."""
    top = [path for path in paths if "/" not in path and path.lower().endswith(WEIGHT_SUFFIXES)]
    strangers = [path for path in top if not _OF_THE_SAME.fullmatch(path) and not ASIDE_NAME.fullmatch(path)]
    return len(strangers) >= _FEWEST_STRANGERS


def unread_code(peek: FolderPeek, paths: Iterable[str]) -> tuple[str, ...]:
    """Which of these files, which nobody read, are by their content of a format that may name code.

    Of more than are looked at, those named like a checkpoint count by their name.
    """
    names = [path for path in paths if not path.lower().endswith(NEVER_SUFFIXES)]
    names.sort(key=lambda path: not path.lower().endswith(WEIGHT_SUFFIXES))
    looked = _formats(peek, names[:_MOST_LOOKS])
    behind = [path for path in names[_MOST_LOOKS:] if path.lower().endswith(WEIGHT_SUFFIXES)]
    return (*(path for path, ident in looked.items() if ident not in _CODELESS), *behind)


def opened_inside(folder: Folder, path: str, others: Sequence[str]) -> Finding:
    """What was opened of a folder. others: what was not, and why."""
    says = f"{folder.name} is a {folder.kind} of {counted(len(folder.files()), 'file')}; shown is {path[:120]}."
    if others:
        says += f" Not opened: {'; '.join(others[:4])}{' …' if len(others) > 4 else ''}."
    return OPENED_INSIDE.found(
        says,
        severity=Severity.NOTICE if others else Severity.INFO,
        subjects=(path[:200],),
        evidence=(("files", len(folder.files())), ("not_opened", len(others))),
        remedy="Open another file of it by its own name." if others else "",
    )


def _choose(peek: FolderPeek) -> _Choice:
    files = peek.folder.files()
    layouts = _layouts(peek)
    inside = tuple(f"{path}/" for path in layouts)
    loose = {path: n for path, n in files.items() if not path.startswith(inside)} if inside else files
    claimed, behind = _claimed(peek, loose)
    if not claimed and not layouts:
        raise _none(peek, files, behind)
    if len(layouts) == 1 and not claimed:
        return _Choice(path=layouts[0], is_folder=True)
    aside = [path for path in claimed if ASIDE_NAME.fullmatch(_base(path))]
    main = [path for path in claimed if path not in aside] or aside
    told = [f"{path} (what a trainer keeps beside the weights)" for path in aside if path not in main]
    main, twins = without_twins(main)
    told += twins
    told += [f"{counted(behind, 'more file')}, not looked at"] if behind else []
    if len(main) == 1 and not layouts:
        return _Choice(path=main[0], others=tuple(told))
    own = [path for path in main if "/" not in path and OWN_NAME.fullmatch(path)]
    if len(own) == 1 and not is_mixed(main):
        rest = [path for path in (*layouts, *main) if path != own[0]]
        return _Choice(path=own[0], others=(*(f"{path}" for path in rest), *told))
    raise _several(peek, [*(f"{path}/" for path in layouts), *main], behind)


def _none(peek: FolderPeek, files: Mapping[str, int], behind: int) -> InspectorError:
    """Why there is none: in the words of the one file that is named like a checkpoint, where there is one."""
    named = [path for path in files if path.lower().endswith(WEIGHT_SUFFIXES)]
    if len(named) == 1:
        try:
            peek.open_inner(named[0])
        except ReadError as error:
            return UnknownFormat(
                f"{peek.folder.name} is a {peek.folder.kind} without a checkpoint: {error.says}", hint=error.hint
            )
    unnamed = name_folder(peek.folder)
    if not behind:
        return unnamed
    return type(unnamed)(
        f"None of the {_MOST_LOOKS} files of {peek.folder.name} that were looked at is a checkpoint; "
        f"{counted(behind, 'more file was', 'more files were')} not.",
        hint="Open the one that you mean by itself; `inspector scan` looks at every one.",
    )


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def _layouts(peek: FolderPeek) -> list[str]:
    """Folders within that are a format of several files, outermost first."""
    found: list[str] = []
    folders: dict[str, None] = {}
    for path in peek.folder.files():
        above = path.rpartition("/")[0]
        while above and above not in folders:
            folders[above] = None
            above = above.rpartition("/")[0]
        if len(folders) > _MOST_LOOKS:
            break
    looked = sorted(folders, key=lambda p: (p.count("/"), p))[:_MOST_LOOKS]
    inside, taken = _sorted_in(peek, looked)
    for path in looked:
        if any(path.startswith(f"{other}/") for other in found):
            continue
        folder = SubFolder(peek.folder, path, files=inside[path])
        if peek.opening.detect_folder(FolderPeek(folder, peek.opening.deeper())):
            found.append(path)
    peek.limits.spend(-taken)
    return found


def _sorted_in(peek: FolderPeek, folders: Sequence[str]) -> tuple[dict[str, dict[str, int]], int]:
    """The files of each folder, in one walk: an archive may have hundreds of thousands; and what they take (bytes).

    Raises LimitExceeded where folders within folders would make too much of long names.
    """
    made: dict[str, dict[str, int]] = {folder: {} for folder in folders}
    deepest = max((folder.count("/") for folder in folders), default=-1) + 1
    what = f"The list of files of {peek.folder.name}"
    sum_nbytes = charged = 0
    for path, nbytes in peek.folder.files().items():
        at = -1
        for _ in range(deepest):
            at = path.find("/", at + 1)
            if at < 0:
                break
            inside = made.get(path[:at])
            if inside is not None:
                inside[path[at + 1 :]] = nbytes
                sum_nbytes += _NAME_NBYTES + len(path)
        if sum_nbytes - charged > _CHARGED_NBYTES:
            peek.limits.charge(sum_nbytes - charged, what)
            charged = sum_nbytes
    return made, charged


def _claimed(peek: FolderPeek, files: Mapping[str, int]) -> tuple[list[str], int]:
    """(files that are checkpoints by content: those named so, else any other, else archives of them; how many more of
    such names were not looked at)."""
    named = [path for path in files if path.lower().endswith(WEIGHT_SUFFIXES)]
    formats = _detected(peek, named)
    behind = max(0, len(named) - _MOST_LOOKS)
    if not any(ident not in ARCHIVES for ident in formats.values()):
        others = [
            path
            for path in files
            if path not in formats and not path.lower().endswith((*NEVER_SUFFIXES, *WEIGHT_SUFFIXES))
        ]
        formats.update(_detected(peek, others))
        behind += max(0, len(others) - _MOST_LOOKS)
    direct = [path for path, ident in formats.items() if ident not in ARCHIVES]
    return direct or list(formats), behind


def _detected(peek: FolderPeek, paths: Iterable[str]) -> dict[str, str]:
    # What lies higher is looked at first; a crafted archive could have a million names.
    ordered = sorted(paths, key=lambda p: (p.count("/"), bool(ASIDE_NAME.fullmatch(_base(p))), p))
    return _formats(peek, [path for path in ordered[:_MOST_LOOKS] if peek.folder.size_of(path)])


def _formats(peek: FolderPeek, paths: Iterable[str]) -> dict[str, str]:
    """The format of each file that a reader claims."""
    found = {path: peek.detect_inner(path) for path in paths}
    return {path: ident for path, ident in found.items() if ident}


def without_twins(paths: list[str]) -> tuple[list[str], list[str]]:
    """One of each pair that the same model is published as, safetensors first, and what to say about the other."""
    groups: dict[tuple[str, str], list[str]] = {}
    for path in paths:
        above, _, base = path.rpartition("/")
        stem = re.sub(r"\.(safetensors|bin|pt|pth|ckpt|onnx|gguf|npz)$", "", base)
        groups.setdefault((above, "model" if stem == "pytorch_model" else stem), []).append(path)
    kept: list[str] = []
    told: list[str] = []
    for group in groups.values():
        first = next((path for path in group if path.endswith(".safetensors")), None)
        if first is None or len(group) == 1:
            kept += group
            continue
        kept.append(first)
        told += [f"{path} (by its name the same model in another format)" for path in group if path != first]
    return kept, told


def _several(peek: FolderPeek, paths: list[str], behind: int) -> UnknownFormat:
    """behind: how many more may be checkpoints, by their names."""
    listed = ", ".join(path[:80] for path in paths[:_LISTED])
    more = f" and {len(paths) - _LISTED} more" if len(paths) > _LISTED else ""
    last = next((path for path in paths if _base(path) == "last.ckpt"), "")
    hint = f"{last} is the last state by Lightning's convention: open that one." if last else "Open one of them."
    if peek.folder.kind == "folder":
        hint += " A line for each: python -m inspector scan FOLDER."
    else:
        hint = f"Unpack it and open one of them{f', {last} for the last state' if last else ''}."
    hint += " Those of one training are read together by `inspector run` and on the Run page."
    least = "at least " if behind else ""
    others = f" {counted(behind, 'more file was', 'more files were')} not looked at." if behind else ""
    return UnknownFormat(
        f"{peek.folder.name} is a {peek.folder.kind} with {least}{counted(len(paths), 'checkpoint')} that do not "
        f"belong together: {listed}{more}.{others}",
        hint=hint,
    )
