"""CRC-32C against the standard's own vectors and the bit-by-bit definition."""

from __future__ import annotations

import random

import pytest

from inspector.events.checksum import crc32c, masked


# RFC 3720, appendix B.4, as numbers; and the check value of the catalogue of CRCs.
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
)
def test_known_values(data: bytes, expected: int) -> None:
    assert crc32c(data) == expected


def _by_definition(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@pytest.mark.parametrize("nbytes", [1, 31, 3071, 3072, 3073, 4096, 4127, 40_000])
def test_long_data_in_blocks_are_as_by_definition(nbytes: int) -> None:
    data = random.Random(nbytes).randbytes(nbytes)
    assert crc32c(data) == _by_definition(data)
    assert crc32c(memoryview(data)) == crc32c(data)


def test_more_than_a_block_of_all_lanes() -> None:
    """A checksum of the parts' bytes in two ways of cutting: 300,000 bytes are more than 8,192 lanes of 32."""
    data = random.Random(0).randbytes(300_000)
    assert crc32c(data) == _by_table(data)


def _by_table(data: bytes) -> int:
    table = [_one(byte) for byte in range(256)]
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _one(crc: int) -> int:
    for _ in range(8):
        crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc


def test_the_mask_is_the_format_s_own() -> None:
    # tensorflow/core/lib/hash/crc32c.h: turned right by 15 bits, plus 0xa282ead8.
    assert masked(b"123456789") == ((0xE3069283 >> 15 | (0xE3069283 << 17) & 0xFFFFFFFF) + 0xA282EAD8) & 0xFFFFFFFF
