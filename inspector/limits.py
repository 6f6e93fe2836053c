"""How much of a file is believed before anything is allocated for it.

Every length, offset and count read from a file is checked against these. The defaults pass every real checkpoint we
know of; a hostile one runs into them early. Exceeding one is an error or a finding with the figure in it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Upper bounds, inclusive.

    pickle_nbytes: one pickle stream (bytes). The pickle of a 20,000-tensor file is about 3 MB.
    opcodes: steps of the pickle machine for one stream.
    memo: entries in a pickle's memo; also its containers and calls.
    depth: nesting of containers and modules.
    nodes: values kept for display in the tree; what is over it is counted, not shown.
    text_nbytes: one string or bytes constant in a pickle.
    members: entries in an archive's directory.
    header_nbytes: a safetensors header or a zip directory; the safetensors library's own cap is 100,000,000.
    inflated_nbytes: one compressed member, after inflating.
    inflation_ratio: the same, relative to its compressed size (small members are exempt).
    tensors: tensors in one file.
    dimensions: of one tensor; torch's own cap is 64.
    """

    pickle_nbytes: int = 512 * 1024 * 1024
    opcodes: int = 20_000_000
    memo: int = 4_000_000
    depth: int = 200
    nodes: int = 200_000
    text_nbytes: int = 64 * 1024 * 1024
    members: int = 1_000_000
    header_nbytes: int = 100_000_000
    inflated_nbytes: int = 1024 * 1024 * 1024
    inflation_ratio: int = 200
    tensors: int = 1_000_000
    dimensions: int = 64


DEFAULT_LIMITS = Limits()
