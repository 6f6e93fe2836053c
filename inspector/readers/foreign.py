"""Files that are no checkpoints, named for what they are, with what to do next."""

from __future__ import annotations

import re
from dataclasses import dataclass

from inspector.checkpoint.source import ByteSource
from inspector.errors import CorruptFile, InspectorError, RefusedContent, UnknownFormat
from inspector.readers.folder import Folder
from inspector.readers.zip_directory import Directory
from inspector.units import counted, human_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """One kind of file by its first bytes. says: "is ..." after the file's name."""

    says: str
    hint: str
    starts: tuple[bytes, ...] = ()
    at: int = 0


_IMAGE = "Open a checkpoint first; pictures belong on the Explain page."
_UNPACK = "Unpack it, then open the checkpoint inside."
FOREIGN: tuple[Foreign, ...] = (
    Foreign(says="is a PNG image", hint=_IMAGE, starts=(b"\x89PNG\r\n\x1a\n",)),
    Foreign(says="is a JPEG image", hint=_IMAGE, starts=(b"\xff\xd8\xff",)),
    Foreign(says="is a GIF image", hint=_IMAGE, starts=(b"GIF87a", b"GIF89a")),
    Foreign(says="is a BMP image", hint=_IMAGE, starts=(b"BM",)),
    Foreign(says="is a TIFF image", hint=_IMAGE, starts=(b"II*\x00", b"MM\x00*")),
    Foreign(says="is a WebP image", hint=_IMAGE, starts=(b"WEBP",), at=8),
    Foreign(says="is a PDF document", hint="Open the checkpoint it describes.", starts=(b"%PDF-",)),
    Foreign(says="is a gzip archive", hint=_UNPACK, starts=(b"\x1f\x8b",)),
    Foreign(says="is a bzip2 archive", hint=_UNPACK, starts=(b"BZh",)),
    Foreign(says="is an xz archive", hint=_UNPACK, starts=(b"\xfd7zXZ\x00",)),
    Foreign(says="is a Zstandard archive", hint=_UNPACK, starts=(b"\x28\xb5\x2f\xfd",)),
    Foreign(says="is a 7-Zip archive", hint=_UNPACK, starts=(b"7z\xbc\xaf\x27\x1c",)),
    Foreign(says="is a RAR archive", hint=_UNPACK, starts=(b"Rar!\x1a\x07",)),
    Foreign(says="is a tar archive", hint=_UNPACK, starts=(b"ustar",), at=257),
    Foreign(
        says="is an HDF5 file, probably Keras weights",
        hint="Convert it with Keras, or open the PyTorch checkpoint of the same model.",
        starts=(b"\x89HDF\r\n\x1a\n",),
    ),
    Foreign(
        says="is a TensorFlow Lite model", hint="Open the PyTorch checkpoint it came from.", starts=(b"TFL3",), at=4
    ),
    Foreign(
        says="is a PyTorch Mobile flatbuffer model",
        hint="Open the checkpoint it was exported from.",
        starts=(b"PTMF",),
        at=4,
    ),
    Foreign(
        says="is an executable program", hint="Do not run it; it is no checkpoint.", starts=(b"\x7fELF", b"MZ\x90")
    ),
)

WEIGHT_SUFFIXES = (
    *(".pth", ".pt", ".safetensors", ".ckpt", ".bin", ".th", ".tar", ".pt2", ".ptl", ".pkl", ".pickle", ".model"),
    *(".weights", ".gguf", ".onnx", ".npz", ".npy", ".zip", ".tgz", ".gz", ".bz2", ".xz"),
)
_LFS = re.compile(rb"version https://git-lfs[^\n]*\n(?:ext[^\n]*\n)*oid sha256:([0-9a-f]{64})\nsize (\d{1,19})")


def name_foreign(source: ByteSource, name: str) -> InspectorError:
    """The error that says what an unclaimed file is."""
    if source.size == 0:
        return UnknownFormat(f"{name} is empty: it has 0 bytes.", hint="The download or copy failed; do it again.")
    head = source.read(0, min(4096, source.size))
    for kind in FOREIGN:
        if any(head[kind.at : kind.at + len(start)] == start for start in kind.starts):
            return UnknownFormat(f"{name} {kind.says}, not a checkpoint.", hint=kind.hint)
    pointer = _LFS.match(head)
    if pointer:
        size = int(pointer[2])
        return UnknownFormat(
            f"{name} is a Git LFS pointer ({source.size} bytes), not the file itself, which has {size:,} bytes "
            f"and the sha256 {pointer[1].decode()[:12]}….",
            hint='Run "git lfs pull" in the repository, or download the file from its web page.',
        )
    return _name_text(source, head, name) or _name_binary(source, head, name)


def _name_text(source: ByteSource, head: bytes, name: str) -> InspectorError | None:
    body = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    lower = body[:512].lower()
    if lower.startswith((b"<!doctype html", b"<html", b"<head", b"<script")) or b"<html" in lower:
        title = re.search(rb"<title[^>]*>([^<]{1,120})", head, re.IGNORECASE)
        says = f' titled "{title[1].decode("utf-8", "replace").strip()}"' if title else ""
        return UnknownFormat(
            f"{name} is a web page{says}, not a checkpoint.",
            hint="The download link led to a page (a login, a warning, an error). Use the direct link to the file.",
        )
    if body.startswith((b"<?xml", b"<Error")):
        return UnknownFormat(
            f"{name} is an XML document, not a checkpoint.",
            hint="A storage service's error message looks so; check the link.",
        )
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4:
            return None
        text = head[: error.start].decode("utf-8")
    if sum(c < " " and c not in "\t\r\n\f\x1b" for c in text):
        return None
    if body[:1] in (b"{", b"["):
        index = b'"weight_map"' in head
        hint = (
            "It is the index of a sharded checkpoint; open one of the files it names."
            if index
            else "Configuration files lie beside the weights; open the weights."
        )
        return UnknownFormat(f"{name} is JSON text, not a checkpoint.", hint=hint)
    first = text.strip().splitlines()[0][:60] if text.strip() else ""
    return UnknownFormat(
        f'{name} is a text file that begins "{first}", not a checkpoint.',
        hint="Open the file with the weights instead.",
    )


def _name_binary(source: ByteSource, head: bytes, name: str) -> InspectorError:
    if not any(head):
        return UnknownFormat(
            f"{name} holds only zero bytes at its beginning ({human_bytes(source.size)} in all).",
            hint="The download was preallocated but never filled, or the disk failed; get it again.",
        )
    if head[:2] == b"\x08" or (head[:1] == b"\x08" and b"\x12" in head[:64] and b"onnx" in head[:4096].lower()):
        return UnknownFormat(
            f"{name} looks like an ONNX model, not a checkpoint.", hint="Open the PyTorch file it was exported from."
        )
    if head[:1] == b"\x08" and (b"pytorch" in head[:256] or b"onnx" in head[:256].lower()):
        return UnknownFormat(
            f"{name} is an ONNX model, not a checkpoint.", hint="Open the PyTorch file it was exported from."
        )
    n = int.from_bytes(head[:8], "little")
    if len(head) >= 9 and head[8:9] == b"{":
        return CorruptFile(
            f"{name} looks like safetensors, but its header length {n:,} is impossible.",
            hint="Download or copy it again.",
        )
    inside = head.find(b"PK\x03\x04")
    if inside > 0:
        return UnknownFormat(
            f"{name} has {inside:,} bytes before a zip archive begins.",
            hint="torch.load fails on it; cut those bytes off.",
        )
    shown = head[:8].hex(" ")
    return UnknownFormat(
        f"{name} is of no format known here; it begins with the bytes {shown}.",
        hint="Known are torch.save files (zip and legacy), safetensors and pickles.",
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
        return RefusedContent(f"{name} is an encrypted zip archive.", hint="Unpack it with its password first.")
    if not names:
        return UnknownFormat(f"{name} is an empty zip archive.", hint="The download or packing failed; get it again.")
    if any(n.endswith("model.weights.h5") for n in lower):
        return UnknownFormat(
            f"{name} is a Keras model (.keras).", hint="Open the PyTorch checkpoint of the same model."
        )
    if any(n.endswith("archive_format") for n in lower) or any("serialized_exported_program" in n for n in lower):
        return UnknownFormat(
            f"{name} is a torch.export program (.pt2), which is not read yet.",
            hint="Save program.state_dict with torch.save and open that.",
        )
    if any(n.endswith("/.data/extern_modules") for n in lower):
        return UnknownFormat(
            f"{name} is a torch.package archive.", hint="It holds code; save the model's state_dict instead."
        )
    if any(n.startswith("word/") or n == "[content_types].xml" for n in lower):
        return UnknownFormat(f"{name} is an Office document.", hint="Open the checkpoint it describes.")
    return None


def _name_plain_zip(source: ByteSource, directory: Directory) -> InspectorError:
    name, names = source.name, [m.name for m in directory.members]
    inner = [n for n in names if n.lower().endswith(WEIGHT_SUFFIXES)]
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
