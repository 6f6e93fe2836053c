"""CRC-32C (Castagnoli) of bytes, masked as TFRecord files keep it.

Sources: RFC 3720, appendix B.4 (polynomial, check values); tensorflow/core/lib/hash/crc32c.h (the mask).
Long data are cut into blocks that lie side by side in numpy's lanes; what each block adds is moved to its place by a
linear map, since a checksum without its start value is linear over GF(2).
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

_POLYNOMIAL = 0x82F63B78
_MASK_DELTA = 0xA282EAD8
_ALL = 0xFFFFFFFF
_BLOCK = 32
_MOST_LANES = 1 << 13
# Below, a loop over the bytes is the faster one.
_SHORT = 3072
_Words = NDArray[np.uint32]


def _make_table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
        table.append(crc)
    return table


_TABLE = _make_table()


def crc32c(data: bytes | memoryview) -> int:
    """The checksum of all of it."""
    state, at = _ALL, 0
    while len(data) - at >= _SHORT:
        lanes = 1 << min((len(data) - at) // _BLOCK, _MOST_LANES).bit_length() - 1
        nbytes = lanes * _BLOCK
        state = _shift(_one(state), _level(lanes))[0] ^ _linear(data[at : at + nbytes], lanes)
        state, at = int(state), at + nbytes
    for byte in data[at:]:
        state = _TABLE[(state ^ byte) & 0xFF] ^ state >> 8
    return state ^ _ALL


def masked(data: bytes | memoryview) -> int:
    """The same, turned and moved, so that checksums of checksums are no trouble."""
    crc = crc32c(data)
    return (crc >> 15 | crc << 17) + _MASK_DELTA & _ALL


def _one(state: int) -> _Words:
    return np.array([state], np.uint32)


def _level(lanes: int) -> int:
    return lanes.bit_length() - 1


def _linear(data: bytes | memoryview, lanes: int) -> int:
    """The checksum that starts at 0, of lanes * _BLOCK bytes; lanes is a power of two."""
    table = np.array(_TABLE, np.uint32)
    columns = np.ascontiguousarray(np.frombuffer(data, np.uint8).reshape(lanes, _BLOCK).T)
    state = np.zeros(lanes, np.uint32)
    for column in columns:
        state = table[(state ^ column) & 0xFF] ^ state >> 8
    level = 0
    while len(state) > 1:
        state = _shift(state[0::2], level) ^ state[1::2]
        level += 1
    return int(state[0])


def _shift(states: _Words, level: int) -> _Words:
    """States as they are behind 2^level blocks of zeros."""
    tables = _tables(level)
    moved: _Words = tables[0][states & 0xFF]
    for place in (1, 2, 3):
        moved = moved ^ tables[place][states >> 8 * place & 0xFF]
    return moved


@cache
def _tables(level: int) -> _Words:
    """(4, 256): what a byte at each place of a state becomes."""
    values = np.arange(256, dtype=np.uint32)
    states = np.stack([values << 8 * place for place in range(4)])
    if level:
        return _shift(_shift(states, level - 1), level - 1)
    table = np.array(_TABLE, np.uint32)
    for _ in range(_BLOCK):
        states = table[states & 0xFF] ^ states >> 8
    return states
