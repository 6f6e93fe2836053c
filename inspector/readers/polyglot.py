"""Whether a file that one reader has claimed could be another format as well: cheap, from its first and last bytes.

`other_loaders.py` decides; it needs the pickle machine, which most safetensors, GGUF and ONNX files can do without.
"""

from __future__ import annotations

from inspector.readers.archives.tar_directory import is_tar
from inspector.readers.archives.zip_directory import ends_as_archive
from inspector.readers.entry import Peek, Reader

# What a pickle can begin with. "P", a persistent id, is not among them: pickle.load ends there.
_FIRST = frozenset(b"().012BCFGIJKLMNQRSTUVX]abcdeghijlopqrstu}" + bytes(range(0x80, 0x99)))
_ZIPS_OF_TORCH = ("torch-zip", "torchscript", "torch-package")
# They are pickles, and look for an archive at their end themselves.
PICKLES = ("torch-legacy", "pickle")


def deserves_second_look(peek: Peek, reader: Reader) -> bool:
    """False where the bytes cannot be any other format that torch.load, pickle or zipfile would read."""
    if is_tar(peek.head) and reader.id != "torch-tar":
        return True
    if peek.is_zip:
        return reader.id not in _ZIPS_OF_TORCH
    if peek.head[:1] and peek.head[0] in _FIRST and reader.id not in PICKLES:
        return True
    return ends_as_archive(peek.source)
