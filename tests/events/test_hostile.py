"""Event files that were made to hurt: nothing but our own errors, and memory within the limits."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from inspector.checkpoint.source import BufferSource
from inspector.errors import InspectorError
from inspector.events.read import read_events
from inspector.events.records import record
from inspector.events.tensors import shape_message
from inspector.events.wire import double, message, text, varint
from inspector.events.write import EventWriter
from inspector.limits import DEFAULT_LIMITS
from tests.events.made import event, metadata, plain_scalar, read, scalars, value, written


def _everything(writer: EventWriter) -> None:
    writer.text("notes", 0, "**hello**")
    for step in range(2):
        writer.scalar("loss", step, 1 / (step + 1))
        writer.histogram("weights", step, [0, 1, 2, 3], [1, 5, 2])
        writer.pr_curve("pr", step, np.arange(20).reshape(4, 5))
        writer.image("picture", step, b"\x89PNG....", (3, 4))


def _resealed(data: bytes, generator: random.Random) -> bytes:
    """Bytes of events changed, and their checksums made right: what framing alone would keep out."""
    made, at = [], 0
    while at < len(data):
        length = int.from_bytes(data[at : at + 8], "little")
        body = bytearray(data[at + 12 : at + 12 + length])
        while generator.random() < 0.2:
            body[generator.randrange(len(body))] = generator.choice([0, 1, 0x7F, 0x80, 0xFF, generator.randrange(256)])
        if generator.random() < 0.02:
            del body[generator.randrange(len(body)) :]
        made.append(record(bytes(body)))
        at += 16 + length
    return b"".join(made)


def _torn(data: bytes, generator: random.Random) -> bytes:
    body = bytearray(data)
    for _ in range(generator.randrange(1, 4)):
        body[generator.randrange(len(body))] = generator.randrange(256)
    return bytes(body[: generator.randrange(len(body) + 1)])


def test_mutants_end_in_a_log_or_an_error_of_ours(seeds: Callable[..., range]) -> None:
    data = written(_everything)
    read_whole = unread = 0
    for seed in seeds(2000, full=40_000):
        generator = random.Random(seed)
        mutant = (_resealed if seed % 4 else _torn)(data, generator)
        try:
            log = read(mutant)
        except InspectorError:
            unread += 1
            continue
        read_whole += not log.findings
        for series in (*log.scalars, *log.histograms, *log.texts, *log.images, *log.curves):
            steps = [p[0] for p in series] if series in log.scalars else [p.step for p in series.points]
            assert steps == sorted(set(steps))
    # Both ends are reached.
    assert read_whole > 100 and unread > 5


def _peak(data: bytes, room: int) -> tuple[int, tuple[str, ...]]:
    """(most bytes that reading took beside the data, ids of findings)."""
    limits = replace(DEFAULT_LIMITS, memory_nbytes=room)
    tracemalloc.start()
    try:
        log = read_events(BufferSource(data, "e"), limits=limits)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return peak, tuple(finding.id for finding in log.findings)


def test_tags_without_end_stay_within_the_budget() -> None:
    data = b"".join(plain_scalar(f"tag/{n}", 1.0) for n in range(2_000))
    room = 400_000
    peak, ids = _peak(data, room)
    assert peak < 3 * room and ids == ("events-unread",)


def test_points_without_end_stay_within_the_budget() -> None:
    data = scalars(3_000)
    room = 50_000
    peak, ids = _peak(data, room)
    # The cursor reads half a megabyte ahead.
    assert peak < 800_000 and ids == ("events-unread",)
    log = read_events(BufferSource(data), limits=replace(DEFAULT_LIMITS, memory_nbytes=room))
    kept = len(log.scalars[0])
    assert 500 < kept < 1_200 and f"{3_000 - kept:,} values went beyond" in log.findings[0].says


def test_one_step_again_and_again_takes_no_room() -> None:
    data = b"".join(plain_scalar("x", float(n)) for n in range(3_000))
    log = read_events(BufferSource(data), limits=replace(DEFAULT_LIMITS, memory_nbytes=10_000))
    assert len(log.scalars[0]) == 1 and log.scalars[0].last == 2_999.0
    assert [finding.id for finding in log.findings] == ["events-replaced"]


def test_a_tensor_that_says_it_is_huge_is_not_made() -> None:
    for shape in ((1 << 62,), (1 << 20, 1 << 20), (0, 1 << 62), (1 << 62, 0)):
        numbers = b"" if 0 in shape else message(6, bytes(8))
        tensor = message(8, varint(1, 2), shape_message(2, shape), numbers)
        peak, ids = _peak(value("x", tensor, metadata("histograms")), DEFAULT_LIMITS.memory_nbytes)
        assert peak < 1_000_000 and ids == ("events-unread",), shape


def test_packed_numbers_that_would_grow_are_refused() -> None:
    """A byte of a packed varint is 8 as float64 and some 30 as Python's."""
    tensor = message(8, varint(1, 3), shape_message(2, (4 << 20,)), message(7, b"\x01" * (4 << 20)))
    peak, ids = _peak(value("x", tensor, metadata("scalars")), DEFAULT_LIMITS.memory_nbytes)
    assert peak < 12_000_000 and ids == ("events-unread",)


def test_many_small_fields_of_one_tensor_are_bounded() -> None:
    tensor = message(8, varint(1, 3), varint(7, 1) * 60_000)
    peak, ids = _peak(value("x", tensor, metadata("scalars")), DEFAULT_LIMITS.memory_nbytes)
    assert peak < 8_000_000 and ids == ("events-unread",)


def test_a_histogram_of_single_numbers_is_bounded() -> None:
    peak, ids = _peak(value("x", message(5, double(6, 1.0) * 60_000)), DEFAULT_LIMITS.memory_nbytes)
    assert peak < 8_000_000 and ids == ("events-unread",)


def test_hyperparameters_without_end_are_cut() -> None:
    pairs = b"".join(message(1, text(1, f"p{n}"), message(2, double(2, 1.0))) for n in range(12_000))
    log = read(value("h", metadata("hparams", message(3, pairs))))
    assert len(log.hyperparameters) == 10_000 and log.hyperparameters[0] == ("p0", 1.0)


def test_messages_in_messages_are_not_followed() -> None:
    nested = b""
    for _ in range(2000):
        nested = message(5, nested)
    log = read(event(nested) + event(message(10, nested)) + plain_scalar("x", 1.0))
    assert len(log.scalars) == 1


def test_a_tag_as_long_as_a_book_is_no_tag() -> None:
    log = read(plain_scalar("x" * 1_000_000, 1.0) + plain_scalar("y", 2.0))
    assert [series.tag for series in log.scalars] == ["y"]
    assert "a tag that is too long" in log.findings[0].says and len(log.findings[0].says) < 300


def test_texts_of_a_writer_are_cut() -> None:
    log = read(event(text(3, "v" * 100_000)) + event(message(10, text(1, "w" * 100_000))) + plain_scalar("x", 1.0))
    assert len(log.files[0].version) == len(log.files[0].writer) == 200


def test_text_that_is_no_utf_8_is_shown_escaped() -> None:
    log = read(event(message(5, message(1, message(1, b"a\xff"), b"\x15\x00\x00\x80?"))))
    assert log.scalars[0].tag == "a\\xff"
