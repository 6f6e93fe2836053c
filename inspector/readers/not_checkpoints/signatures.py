"""Files that begin with something unmistakable: what each is, and what to do next.

Sources: each format's own specification; the numbers as `file(1)` and the projects' readers have them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """One kind of file by its first bytes. says: "is ..." after the file's name.

    closed: files or code may be in it, and nothing here looks into it.
    """

    says: str
    hint: str
    starts: tuple[bytes, ...] = ()
    at: int = 0
    closed: bool = False


def _kind(says: str, hint: str, *starts: bytes, at: int = 0) -> Foreign:
    return Foreign(says=says, hint=hint, starts=starts, at=at)


def _closed(says: str, hint: str, *starts: bytes, at: int = 0) -> Foreign:
    return Foreign(says=says, hint=hint, starts=starts, at=at, closed=True)


_IMAGE = "Open a checkpoint first; pictures belong on the Explain page."
_UNPACK = "Unpack it, then open the checkpoint inside."
_TABLE = "It is a table of data, probably what a model was trained on. Open the file with the weights."
_SOURCE = "Open the PyTorch checkpoint it came from."
_ENGINE = (
    "It is compiled for one kind of GPU and holds no readable weights. Open the ONNX or PyTorch file it was built from."
)
_PROGRAM = "Do not run it; it is no checkpoint."
_GGML = "Convert it to GGUF with a llama.cpp of its time, or open the PyTorch file it was converted from."
HDF5 = b"\x89HDF\r\n\x1a\n"

FOREIGN: tuple[Foreign, ...] = (
    _kind("is a PNG image", _IMAGE, b"\x89PNG\r\n\x1a\n"),
    _kind("is a JPEG image", _IMAGE, b"\xff\xd8\xff"),
    _kind("is a GIF image", _IMAGE, b"GIF87a", b"GIF89a"),
    _kind("is a TIFF image", _IMAGE, b"II*\x00", b"MM\x00*"),
    _kind("is a WebP image", _IMAGE, b"WEBP", at=8),
    _kind("is a sound file (WAV)", "Open the file with the weights.", b"WAVE", at=8),
    _kind("is a video (MP4)", "Open the file with the weights.", b"ftyp", at=4),
    _kind("is a PDF document", "Open the checkpoint it describes.", b"%PDF-"),
    _kind("is an old Office document", "Open the checkpoint it describes.", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),
    _closed("is a gzip archive", _UNPACK, b"\x1f\x8b"),
    _closed("is a bzip2 archive", _UNPACK, b"BZh"),
    _closed("is an xz archive", _UNPACK, b"\xfd7zXZ\x00"),
    _closed("is a Zstandard archive", _UNPACK, b"\x28\xb5\x2f\xfd"),
    _closed("is an LZ4 archive", _UNPACK, b"\x04\x22\x4d\x18", b"\x02\x21\x4c\x18"),
    _closed("is a 7-Zip archive", _UNPACK, b"7z\xbc\xaf\x27\x1c"),
    _closed("is a RAR archive", _UNPACK, b"Rar!\x1a\x07"),
    _closed("is a compressed archive (.Z)", _UNPACK, b"\x1f\x9d", b"\x1f\xa0"),
    _closed("is an lzip archive", _UNPACK, b"LZIP\x01"),
    _closed("is a Snappy archive", _UNPACK, b"\xff\x06\x00\x00sNaPpY"),
    _closed("is a cabinet archive (.cab)", _UNPACK, b"MSCF\x00\x00\x00\x00"),
    _closed("is an LHA archive", _UNPACK, b"-lh5-", b"-lh6-", b"-lh7-", b"-lh0-", b"-lh1-", at=2),
    _closed("is an xar archive", _UNPACK, b"xar!"),
    _kind("is a library of object files (ar)", _PROGRAM, b"!<arch>\n"),
    _closed("is a tar archive", _UNPACK, b"ustar", at=257),
    _kind("is a MATLAB file (.mat)", "Read it with scipy.io.loadmat, save the arrays with numpy.savez and open that.",
          b"MATLAB 5.0 MAT-file", b"MATLAB 7.3 MAT-file"),
    _kind("is a TensorFlow Lite model", _SOURCE, b"TFL3", at=4),
    _closed("is a PyTorch Mobile flatbuffer model (.ptl)", "Open the checkpoint it was exported from.", b"PTMF", at=4),
    _closed("is an ExecuTorch program (.pte)", "Open the checkpoint it was exported from.", b"ET12", at=4),
    _kind("is an ONNX Runtime model (.ort)", "Open the .onnx file it was converted from.", b"ORTM", at=4),
    _closed("is a TensorRT engine", _ENGINE, b"ftrt", b"ptrt"),
    _closed("is a file of Lua's Torch (.t7), the predecessor of PyTorch",
          "PyTorch before 1.0 read it with torch.utils.serialization.load_lua; save its tensors with torch.save there.",
          b"V 1", at=12),
    _kind("is an MXNet parameter file (.params)",
          "Load it with mxnet.nd.load, save the arrays with numpy.savez and open that.",
          b"\x12\x01\x00\x00\x00\x00\x00\x00"),
    _kind("is a ggml model from before GGUF (llama.cpp)", _GGML, b"lmgg", b"fmgg", b"tjgg", b"algg"),
    _kind("is an RKNN model (Rockchip)", _SOURCE, b"RKNN"),
    _kind("is an OCDBT manifest, part of an Orbax checkpoint (JAX)",
          "Restore the folder with orbax.checkpoint, save the arrays with numpy.savez and open that.",
          b"\x0c\xdb\x3a\x2a"),
    _kind("is a Parquet table", _TABLE, b"PAR1"),
    _kind("is an Arrow table", _TABLE, b"ARROW1", b"FEA1"),
    _kind("is an SQLite database", _TABLE, b"SQLite format 3\x00"),
    _kind("is an LMDB database", _TABLE, b"\xde\xc0\xef\xbe", at=16),
    _kind("holds compiled Python (.pyc)", "It is code; open the file with the weights.", b"\xa7\r\r\n", b"\xcb\r\r\n",
          b"\xf3\r\r\n", b"\x6f\r\r\n", b"\x61\r\r\n", b"\x55\r\r\n"),
    _kind("is an executable program or library", _PROGRAM, b"\x7fELF", b"MZ\x90", b"\xcf\xfa\xed\xfe",
          b"\xca\xfe\xba\xbe", b"\x00asm"),
    _kind("is a BMP image", _IMAGE, b"BM"),
)  # fmt: skip
_NCNN = "It has no names: the .param file beside it has. Open the PyTorch checkpoint it was converted from."
NCNN_STARTS = {
    b"\x47\x6b\x30\x01": f"half-precision floats|{_NCNN}",
    b"\x38\x4b\x0d\x00": f"8-bit integers|{_NCNN}",
    b"\x56\xc0\x02\x00": f"32-bit floats|{_NCNN}",
}
# Endings that a browser or downloader takes away when it has finished.
PARTIAL_SUFFIXES = (
    *(".crdownload", ".part", ".partial", ".download", ".incomplete", ".opdownload", ".aria2", ".!qb", ".filepart"),
)


def find_signature(head: bytes) -> Foreign | None:
    """The kind of file that begins so, None when none is known."""
    for kind in FOREIGN:
        if any(head[kind.at : kind.at + len(start)] == start for start in kind.starts):
            return kind
    return None
