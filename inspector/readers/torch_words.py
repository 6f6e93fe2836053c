"""What torch 2.15 and safetensors say when they refuse a file, in their own words.

An owner has seen the sentence and looks for it. tests/readers/test_torch_versions.py provokes each of them on the
installed version and compares; earlier versions may word them otherwise.
"""

from __future__ import annotations

# caffe2/serialize/inline_container.cc, when the end of the archive is not there.
NO_DIRECTORY = "PytorchStreamReader failed reading zip archive: failed finding central directory."
NOT_COVERED = "Error while deserializing header: incomplete metadata, file not fully covered"
# Python's pickle, on a stream that ends too early.
BROKE_OFF = "pickle data was truncated"


def unexpected_end(nbytes: int) -> str:
    """torch/csrc/serialization.cpp, when a storage of a legacy file is cut."""
    return f"unexpected EOF, expected {nbytes} more bytes. The file might be corrupted."
