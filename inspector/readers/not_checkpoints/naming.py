"""Files that are no checkpoints, named for what they are, with what to do next."""

from __future__ import annotations

import re

from inspector.checkpoint.source import ByteSource
from inspector.errors import CorruptFile, InspectorError, NotExamined, UnknownFormat
from inspector.readers.archives.zip_directory import Directory, ends_as_archive, find_member
from inspector.readers.archives.zip_doubts import refuse_encrypted
from inspector.readers.archives.zip_members import member_head
from inspector.readers.folder import Folder
from inspector.readers.not_checkpoints.binary import KERAS_HINT, name_binary, name_raw
from inspector.readers.not_checkpoints.messages import messages
from inspector.readers.not_checkpoints.signatures import PARTIAL_SUFFIXES, find_signature
from inspector.readers.not_checkpoints.text import name_pointer, name_text
from inspector.units import counted, human_bytes

WEIGHT_SUFFIXES = (
    *(".pth", ".pt", ".safetensors", ".ckpt", ".bin", ".th", ".tar", ".pt2", ".ptl", ".pkl", ".pickle", ".model"),
    *(".weights", ".gguf", ".onnx", ".npz", ".npy", ".zip", ".tgz", ".gz", ".bz2", ".xz"),
)
# No reader makes anything of these, and a folder may hold thousands of them.
NEVER_SUFFIXES = (
    *(".json", ".yaml", ".yml", ".txt", ".md", ".py", ".csv", ".tsv", ".log", ".html", ".toml", ".ini", ".cfg", ".sh"),
    *(".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".svg", ".mp4", ".wav", ".pdf", ".ipynb"),
    *(
        ".h5",
        ".msgpack",
        ".parquet",
        ".arrow",
        ".jsonl",
        ".lock",
        ".metadata",
        ".pyc",
        ".so",
        ".c",
        ".h",
        ".cpp",
        ".js",
    ),
)
_LOCAL = b"PK\x03\x04"
_WINDOW, _MOST_IN_FRONT = 1 << 20, 64 << 20
_KNOWN = "Known are PyTorch's own files, safetensors, pickles, numpy, GGUF and ONNX."


def name_foreign(source: ByteSource, name: str) -> InspectorError:
    """The error that says what an unclaimed file is, with what to do next and what the loaders say to it."""
    head = source.read(0, min(4096, source.size))
    found = _name(source, head, name)
    said = messages(head, source.size, name)
    suffix = next((s for s in PARTIAL_SUFFIXES if name.lower().endswith(s)), "")
    unfinished = f' A name that ends in "{suffix}" is that of an unfinished download: let it finish.' if suffix else ""
    return type(found)(found.says, hint=f"{found.hint}{unfinished}{said}".strip())


def _name(source: ByteSource, head: bytes, name: str) -> InspectorError:
    if not head:
        return UnknownFormat(f"{name} is empty: it has 0 bytes.", hint="The download or copy failed; do it again.")
    if head[:4] == b"\x7fELF" and head[16:18] in (b"\x04\x00", b"\x00\x04"):
        return UnknownFormat(
            f"{name} is a core dump: the memory of a program that crashed, not a checkpoint.",
            hint="Delete it, and open the file with the weights.",
        )
    kind = find_signature(head)
    if kind is not None:
        error = NotExamined if kind.closed else UnknownFormat
        return error(f"{name} {kind.says}, not a checkpoint.", hint=kind.hint)
    if not any(head):
        return _name_late_zip(source, head, name) or _name_zeros(source, head, name)
    return (
        name_pointer(source, head, name)
        or name_text(head, name, whole=source.size == len(head))
        or name_binary(source, head, name)
        or _name_broken(head, name)
        or _name_late_zip(source, head, name)
        or name_raw(source, head, name)
        or _by_name(name)
        or UnknownFormat(
            f"{name} is of no format known here; it begins with the bytes {head[:8].hex(' ')}.", hint=_KNOWN
        )
    )


def _by_name(name: str) -> InspectorError | None:
    if name.lower() != "saved_model.pb":
        return None
    # Its first field may be left out, and then nothing else tells it.
    return NotExamined(
        f"{name} is by its name a TensorFlow SavedModel (.pb).", hint="Open the PyTorch checkpoint of the same model."
    )


def _name_zeros(source: ByteSource, head: bytes, name: str) -> InspectorError:
    paddle = name_binary(source, head, name)
    if paddle is not None:
        return paddle
    places = sorted({max(0, source.size * i // 16 - 256) for i in range(1, 17)})
    full = not any(any(source.read(at, min(256, source.size - at))) for at in places)
    where = f"in {len(places) + 1} places looked at" if source.size > len(head) else "and nothing else"
    return UnknownFormat(
        f"{name} holds only zero bytes {where} ({human_bytes(source.size)} in all)."
        if full
        else f"{name} holds only zero bytes at its beginning ({human_bytes(source.size)} in all), and others behind.",
        hint="The download was preallocated but never filled, or the disk failed; get it again.",
    )


def _name_broken(head: bytes, name: str) -> InspectorError | None:
    """What would be a checkpoint but for its first bytes."""
    n = int.from_bytes(head[:8], "little")
    if re.match(rb"\{\s*[\"}]", head[8:40]):
        return CorruptFile(
            f"{name} looks like safetensors, but its header length {n:,} is impossible.",
            hint="Download or copy it again.",
        )
    return None


def _name_late_zip(source: ByteSource, head: bytes, name: str) -> InspectorError | None:
    """An archive that something was put in front of."""
    inside = head.find(_LOCAL)
    at = len(head) - len(_LOCAL)
    late = inside < 0 and ends_as_archive(source)
    while late and inside < 0 and at < min(source.size, _MOST_IN_FRONT):
        found = source.read(at, min(_WINDOW, source.size - at)).find(_LOCAL)
        inside = at + found if found >= 0 else -1
        at += _WINDOW - len(_LOCAL)
    if inside <= 0:
        return None
    return UnknownFormat(
        f"{name} has {counted(inside, 'byte')} before a zip archive begins.",
        hint="torch.load fails on it; cut those bytes off.",
    )


def name_zip(source: ByteSource, directory: Directory) -> InspectorError:
    """What a zip without torch's data.pkl is."""
    return name_special_zip(source, directory) or _name_plain_zip(source, directory)


def name_special_zip(source: ByteSource, directory: Directory) -> InspectorError | None:
    """What a zip is that no checkpoint is looked for in; None for an archive of plain files."""
    names = [m.name for m in directory.members]
    lower = [n.lower() for n in names]
    name = source.name
    if any(m.encrypted for m in directory.members):
        return refuse_encrypted(name, directory.members, "zip archive")
    if not names:
        return UnknownFormat(f"{name} is an empty zip archive.", hint="The download or packing failed; get it again.")
    if any(n.endswith("model.weights.h5") for n in lower) or _says(source, directory, "config.json", _KERAS):
        return NotExamined(f"{name} is a Keras model (.keras).", hint=KERAS_HINT)
    if _says(source, directory, "schema.json", _SKOPS):
        return NotExamined(
            f"{name} is a skops archive of scikit-learn objects (.skops).", hint="Its schema names what a load imports."
        )
    if any(n.endswith("archive_format") for n in lower) or any("serialized_exported_program" in n for n in lower):
        return UnknownFormat(
            f"{name} holds the members of a torch.export program (.pt2), but not where torch.export.save puts them.",
            hint="Open the .pt2 file itself.",
        )
    if any(n.endswith("/.data/extern_modules") for n in lower):
        return UnknownFormat(
            f"{name} is a torch.package archive.", hint="It holds code; save the model's state_dict instead."
        )
    if any(n.startswith("word/") or n == "[content_types].xml" for n in lower):
        return UnknownFormat(f"{name} is an Office document.", hint="Open the checkpoint it describes.")
    return None


# What the settings of other programs' archives have in them.
_KERAS = (b'"class_name"', b'"keras_version"', b'"module": "keras', b'"module":"keras')
_SKOPS = (b'"__module__"', b'"__class__"', b'"__loader__"')


def _says(source: ByteSource, directory: Directory, file: str, words: tuple[bytes, ...]) -> bool:
    """Whether a file in the archive's root begins with one of these words in it."""
    member = find_member(directory, file)
    head = member_head(source, member, 1 << 16) if member is not None else b""
    return any(word in head for word in words)


def _name_plain_zip(source: ByteSource, directory: Directory) -> InspectorError:
    name, names = source.name, [m.name for m in directory.members if not m.name.endswith("/")]
    if not names and directory.members:
        return UnknownFormat(
            f"{name} is a zip archive with {counted(len(directory.members), 'folder')} and no file in it.",
            hint="Pack the folder again, with its files.",
        )
    inner = [n for n in names if n.lower().endswith(WEIGHT_SUFFIXES)]
    pickle = next((n for n in names if n.lower().endswith("\\data.pkl")), "")
    if pickle:
        return UnknownFormat(
            f"{name} is an archive of torch's whose names have backslashes, as some programs on Windows write them: "
            f"{pickle[:80]}.",
            hint="Unpack it and pack its folder again with a program that writes forward slashes. (torch.load says "
            f"“file in archive is not in a subdirectory: {names[0][:60]}” to it.)",
        )
    if inner:
        return UnknownFormat(
            f"{name} is a zip archive with {counted(len(inner), 'checkpoint')} in it, first {inner[0][:80]}.",
            hint="Unpack it and open that file.",
        )
    return UnknownFormat(
        f"{name} is a zip archive of {counted(len(names), 'file')} without torch's data.pkl, first {names[0][:80]}.",
        hint="Unpack it and open the checkpoint inside, if there is one.",
    )


def name_folder(folder: Folder) -> InspectorError:
    """What a folder, or an archive of one, is in which nothing is a checkpoint."""
    names = list(folder.files())
    what = f"{folder.name} is {'an' if not names else 'a'} {'empty ' if not names else ''}{folder.kind}"
    if not names:
        return UnknownFormat(f"{what}.", hint="Open the folder with the weights.")
    special = _special_folder({n.lower() for n in names})
    if special is not None:
        return UnknownFormat(f"{what}: {special[0]}.", hint=special[1])
    inner = [n for n in names if n.lower().endswith(WEIGHT_SUFFIXES)]
    if inner:
        return UnknownFormat(
            f"{what} with {counted(len(inner), 'file')} named like a checkpoint, first {inner[0][:80]}, "
            "of which none is one.",
            hint=f"Open {inner[0][:80]} by itself to hear what it is.",
        )
    return UnknownFormat(
        f"{what} of {counted(len(names), 'file')} without a checkpoint, first {names[0][:80]}.",
        hint="Open the folder with the weights.",
    )


_ARRAYS = "save the arrays with numpy.savez and open that, or open the PyTorch checkpoint of the same model."


def _special_folder(lower: set[str]) -> tuple[str, str] | None:
    """What other frameworks' folders are, and what to do."""
    bases = {n.rpartition("/")[2] for n in lower}
    if "saved_model.pb" in bases:
        return "a TensorFlow SavedModel", f"Read it with TensorFlow, {_ARRAYS}"
    if {"manifest.json", "model.mlmodel"} <= bases or any("com.apple.coreml/" in n for n in lower):
        return "a Core ML package (.mlpackage)", "Open the PyTorch checkpoint it was converted from."
    if bases & {"manifest.ocdbt", "_checkpoint_metadata"} or "checkpoint/_metadata" in lower:
        return "an Orbax checkpoint (JAX)", f"Restore it with orbax.checkpoint, {_ARRAYS}"
    if any(n.endswith(".index") for n in bases) and any(".data-00000-of-" in n for n in bases):
        return "a TensorFlow checkpoint", f"Read it with TensorFlow, {_ARRAYS}"
    if bases & {".zarray", ".zgroup", "zarr.json"}:
        return "a Zarr array store", f"Read it with zarr, {_ARRAYS}"
    if any(n.endswith(".mar") for n in bases):
        return "a TorchServe store (.mar)", "Unpack the .mar file, which is a zip archive; open the checkpoint inside."
    return None
