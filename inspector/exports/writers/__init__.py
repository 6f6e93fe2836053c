"""The formats a repaired state dict can be written in, in the order in which they are offered."""

from __future__ import annotations

from inspector.exports.writers import pth, pth_legacy, safetensors_file
from inspector.exports.writers.entry import Writer

WRITERS: tuple[Writer, ...] = (pth.WRITER, safetensors_file.WRITER, pth_legacy.WRITER)
