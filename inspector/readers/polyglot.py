"""Whether a file that one reader has claimed could be another format as well: cheap, from its first and last bytes.

`other_loaders.py` decides; it needs the pickle machine, which most safetensors, GGUF and ONNX files can do without.
"""

from __future__ import annotations

from inspector.checkpoint.source import is_distant
from inspector.readers.archives.tar_directory import is_tar
from inspector.readers.archives.zip_directory import ends_as_archive
from inspector.readers.entry import Peek, Reader

# What a pickle can begin with. "P", a persistent id, is not among them: pickle.load ends there.
_FIRST = frozenset(b"().012BCFGIJKLMNQRSTUVX]abcdeghijlopqrstu}" + bytes(range(0x80, 0x99)))
_ZIPS_OF_TORCH = ("torch-zip", "torchscript", "torch-package")
# They are pickles, and look for an archive at their end themselves.
PICKLES = ("torch-legacy", "pickle")
# The first request to a server brings as much: the end of a file that is no longer is at hand.
_FIRST_NBYTES = 128 * 1024


def unlooked_end(peek: Peek, reader: Reader) -> str:
    """Why the end of a file is not looked at, a sentence; "" where it is. Across a network it would be one more request
    for each, to find an archive that would have to lie inside the last tensor: what follows that is a finding by its
    length alone. Under another name somebody may load it as an archive, which its end then decides."""
    if reader.id != "safetensors" or not is_distant(peek.source) or is_tar(peek.head):
        return ""
    if peek.source.size <= _FIRST_NBYTES:
        return ""
    if not peek.opening.depth and not peek.source.name.lower().endswith(".safetensors"):
        return ""
    return "Whether an archive ends it was not looked at: that takes another request to the server."


def deserves_second_look(peek: Peek, reader: Reader) -> bool:
    """False where the bytes cannot be any other format that torch.load, pickle or zipfile would read."""
    if is_tar(peek.head) and reader.id != "torch-tar":
        return True
    if peek.is_zip:
        return reader.id not in _ZIPS_OF_TORCH
    if peek.head[:1] and peek.head[0] in _FIRST and reader.id not in PICKLES:
        return True
    if unlooked_end(peek, reader):
        return False
    return ends_as_archive(peek.source)
