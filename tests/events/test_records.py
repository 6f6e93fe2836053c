"""What is read of event files that are torn, damaged or made to hurt, and what is said of the rest."""

from __future__ import annotations

import struct

import pytest

from inspector.checkpoint.source import BufferSource
from inspector.errors import UnknownFormat
from inspector.events.checksum import masked
from inspector.events.read import read_events
from inspector.events.records import record
from inspector.findings import Severity
from tests.events.made import event, plain_scalar, points, read, scalars

# Of `scalars`: a version and a writer come first.
_FIRST = 2


def _ends(data: bytes) -> list[int]:
    """Where each record ends."""
    ends, at = [], 0
    while at < len(data):
        at += 16 + struct.unpack_from("<Q", data, at)[0]
        ends.append(at)
    return ends


def _ids(data: bytes) -> list[str]:
    return [finding.id for finding in read(data).findings]


def test_a_whole_file_has_no_findings() -> None:
    log = read(scalars(5))
    assert points(log, "loss") == [(step, float(step)) for step in range(5)]
    assert log.findings == ()
    assert (log.first_step, log.last_step) == (0, 4)
    assert log.last_wall_time - log.first_wall_time == 4.0
    (file,) = log.files
    assert (file.records, file.read_nbytes, file.damaged) == (5 + _FIRST, file.nbytes, 0)
    assert (file.version, file.writer) == ("brain.Event:2", "model-inspector")


@pytest.mark.parametrize("missing", [1, 5, 20, 40])
def test_a_torn_last_record_is_named_and_the_rest_kept(missing: int) -> None:
    data = scalars(5)
    log = read(data[:-missing])
    assert points(log, "loss") == [(step, float(step)) for step in range(4)]
    (finding,) = log.findings
    assert finding.id == "events-cut" and finding.severity is Severity.NOTICE
    assert f"at byte {_ends(data)[-2]:,}" in finding.says and "the 6 records before it were read" in finding.says
    assert log.files[0].read_nbytes == _ends(data)[-2]


def test_every_cut_is_an_answer() -> None:
    data = scalars(2)
    ends = _ends(data)
    for nbytes in range(1, len(data)):
        log = read(data[:nbytes])
        assert log.files[0].records == sum(end <= nbytes for end in ends)
        assert bool(log.findings) == (nbytes not in ends)


def test_a_damaged_record_is_passed_over() -> None:
    data = bytearray(scalars(5))
    begin = _ends(data)[_FIRST + 1]  # Of step 2.
    data[begin + 20] ^= 1
    log = read(bytes(data))
    assert [step for step, _ in points(log, "loss")] == [0, 1, 3, 4]
    (finding,) = log.findings
    assert finding.id == "events-damaged" and f"at byte {begin:,}" in finding.says
    assert finding.says.startswith("1 record of events.out.tfevents.1 does not agree")
    assert log.files[0].damaged == 1


def test_behind_a_damaged_length_nothing_is_found_and_that_is_said() -> None:
    data = bytearray(scalars(5))
    begin = _ends(data)[_FIRST + 1]
    data[begin] ^= 1
    log = read(bytes(data))
    assert [step for step, _ in points(log, "loss")] == [0, 1]
    (finding,) = log.findings
    assert finding.id == "events-lost" and f"at byte {begin:,}" in finding.says
    assert ("nbytes", len(data) - begin) in finding.evidence


@pytest.mark.parametrize("length", [1 << 30, 1 << 60, (1 << 64) - 1])
def test_a_length_beyond_the_file_is_a_cut_and_no_allocation(length: int) -> None:
    header = struct.pack("<Q", length)
    log = read(scalars(1) + header + struct.pack("<I", masked(header)) + b"abc")
    assert [finding.id for finding in log.findings] == ["events-cut"]
    assert points(log, "loss") == [(0, 0.0)]


def test_a_record_that_is_too_large_is_jumped_over() -> None:
    data = scalars(1) + record(bytes(5000)) + plain_scalar("loss", 7.0, step=1)
    log = read_events(BufferSource(data, "e.tfevents"), most_record_nbytes=1000)
    assert points(log, "loss") == [(0, 0.0), (1, 7.0)]
    (finding,) = log.findings
    assert finding.id == "events-unread" and "larger than the 1.00 kB" in finding.says


def test_an_empty_file_is_said_to_be() -> None:
    log = read(b"")
    assert log.scalars == () and log.findings[0].says == "events.out.tfevents.1 is empty."
    assert log.first_step is None and log.first_wall_time is None


@pytest.mark.parametrize("data", [b"PK\x03\x04" + bytes(100), b"loss,1\nloss,2\n" * 20, bytes(64)])
def test_another_file_is_refused_in_words(data: bytes) -> None:
    with pytest.raises(UnknownFormat, match="is no TensorBoard event file"):
        read(data)


def test_a_stranger_among_several_is_a_finding() -> None:
    log = read_events([BufferSource(scalars(1), "a"), BufferSource(b"not at all an event file", "b")])
    assert points(log, "loss") == [(0, 0.0)]
    assert [(f.id, f.subjects) for f in log.findings] == [("events-lost", ("b",))]


def test_what_is_no_event_is_counted() -> None:
    data = scalars(1) + record(b"\x07\xff\xff") + record(b"\x2a\xff\x01") + plain_scalar("loss", 3.0, step=9)
    log = read(data)
    assert points(log, "loss") == [(0, 0.0), (9, 3.0)]
    (finding,) = log.findings
    assert finding.id == "events-unread" and finding.says.startswith("2 records are no whole event")
    assert _ids(scalars(1) + event()) == []
