"""What joblib.dump writes, byte by byte: arrays between the opcodes, and what others make of the same bytes."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
import pytest

from inspector.checkpoint.data import read_array
from inspector.checkpoint.types import Checkpoint, GlobalVerdict
from inspector.findings import Severity
from inspector.limits import DEFAULT_LIMITS
from inspector.readers import open_checkpoint

OURS = "joblib.numpy_pickle NumpyArrayWrapper"
OLD = "sklearn.externals.joblib.numpy_pickle NumpyArrayWrapper"
CALL = b"cos\nsystem\nX\x02\x00\x00\x00id\x85R"


def text(value: str) -> bytes:
    return b"X" + len(value.encode()).to_bytes(4, "little") + value.encode()


def name(dotted: str) -> bytes:
    return b"c%s\n%s\n" % tuple(part.encode() for part in dotted.split())


def value(item: Any) -> bytes:
    """A plain value as opcodes."""
    if isinstance(item, bytes):
        return item
    if isinstance(item, tuple):
        return b"(" + b"".join(map(value, item)) + b"t"
    if item is None or isinstance(item, bool):
        return {None: b"N", True: b"\x88", False: b"\x89"}[item]
    if isinstance(item, int):
        raw = item.to_bytes(9, "little", signed=True)
        return b"\x8a\x09" + raw
    return text(item)


def dtype(code: str, *, state: tuple[Any, ...] | None = None) -> bytes:
    plain = (3, "|" if code[-1] == "1" else "<", None, None, None, -1, -1, 0)
    return name("numpy dtype") + value((code, False, True)) + b"R" + value(state or plain) + b"b"


def wrapper(
    shape: Any, kind: bytes, *, order: Any = "C", mmap: Any = True, align: Any = 16, made: bytes = b"", **more: Any
) -> bytes:
    """The stand-in object up to its BUILD. align: "" leaves the key out, as joblib did before 1.2."""
    state = {"subclass": name("numpy ndarray"), "shape": shape, "order": order, "dtype": kind, "allow_mmap": mmap}
    state |= {} if align == "" else {"numpy_array_alignment_bytes": align}
    pairs = b"".join(text(key) + value(item) for key, item in (state | more).items())
    return (made or name(OURS) + b")\x81") + b"}(" + pairs + b"ub"


def padded(raw: bytes, n: int = 3) -> bytes:
    return bytes([n]) + b"\xff" * n + raw


def in_dict(**entries: bytes) -> bytes:
    return b"\x80\x04}" + b"".join(text(key) + entry + b"s" for key, entry in entries.items()) + b"."


def worst(checkpoint: Checkpoint) -> Severity | None:
    return max((f.severity for f in checkpoint.findings), key=lambda s: s.rank, default=None)


def errors(raw: bytes) -> str:
    """What is said in errors of a file."""
    found = open_checkpoint(raw, name="x.joblib").findings
    return " ".join(f.says for f in found if f.severity is Severity.ERROR)


def test_arrays_of_joblib_open_with_their_numbers() -> None:
    """Each was "no pickle opcode": the bytes of an array were read as opcodes."""
    rng = np.random.default_rng(0)
    c = rng.standard_normal((3, 4)).astype("<f4")
    f = np.asfortranarray(rng.standard_normal((2, 5)))
    big = np.arange(6, dtype=">i4").reshape(2, 3)
    long = rng.standard_normal(5000)
    raw = in_dict(
        c=wrapper((3, 4), dtype("f4")) + padded(c.tobytes()),
        f=wrapper((2, 5), dtype("f8"), order="F") + padded(f.tobytes("A"), 16),
        big=wrapper((2, 3), dtype("i4", state=(3, ">", None, None, None, -1, -1, 0))) + padded(big.tobytes(), 1),
        zero_d=wrapper((), dtype("i1")) + padded(b"\x07", 0),
        empty=wrapper((0, 3), dtype("f8")) + padded(b""),
        unaligned=wrapper((3,), dtype("u1"), align=None) + b"\x00\x01\x02",
        before=wrapper((3,), dtype("u1"), align="") + b"\x03\x04\x05",
        vendored=wrapper((2,), dtype("u1"), align="", made=name(OLD) + b")\x81") + b"\x00\x09",
        reduced=wrapper((2,), dtype("u1"), made=name("copyreg _reconstructor") + b"(" + name(OURS)
                        + name("builtins object") + b"NtR") + padded(b"\x08\x09"),
        long=wrapper((5000,), dtype("f8")) + padded(long.tobytes(), 11),
    )  # fmt: skip
    checkpoint = open_checkpoint(raw, name="x.joblib")
    arrays = {t.name: read_array(checkpoint, t) for t in checkpoint.tensors}
    assert np.array_equal(arrays["c"], c) and np.array_equal(arrays["f"], f) and np.array_equal(arrays["big"], big)
    assert arrays["zero_d"].tolist() == 7 and arrays["empty"].shape == (0, 3) and np.array_equal(arrays["long"], long)
    assert arrays["unaligned"].tolist() == [0, 1, 2] and arrays["before"].tolist() == [3, 4, 5]
    assert arrays["vendored"].tolist() == [0, 9] and arrays["reduced"].tolist() == [8, 9]
    assert {use.verdict for use in checkpoint.globals} == {GlobalVerdict.KNOWN}
    assert errors(raw) == ""


def test_arrays_without_a_torch_type_are_skipped_exactly() -> None:
    fields = b"}" + text("x") + value((dtype("i4"), 0)) + b"s" + text("y") + value((dtype("f8"), 4)) + b"s"
    raw = in_dict(
        words=wrapper((2,), dtype("U3", state=(3, "<", None, None, None, 12, 4, 8)))
        + padded("abcde ".encode("utf-32-le")),
        record=wrapper((2,), dtype("V12", state=(3, "|", None, ("x", "y"), fields, 12, 1, 16))) + padded(bytes(24)),
        days=wrapper((1,), dtype("M8", state=(4, "<", None, None, None, -1, -1, 0, (None, (b"C\x02ns", 1, 1, 1)))))
        + padded(bytes(8)),
        wide=wrapper((1,), dtype("f16")) + padded(bytes(16)),
        last=wrapper((1,), dtype("u1")) + padded(b"\x2a"),
    )
    checkpoint = open_checkpoint(raw, name="x.joblib")
    assert errors(raw) == ""
    assert [t.name for t in checkpoint.tensors] == ["last"]
    assert read_array(checkpoint, checkpoint.tensors[0]).tolist() == [42]
    assert [child.type_name for _, child in checkpoint.root.children][:4] == ["numpy.ndarray"] * 4


U1 = dtype("u1")
OBJECTS = dtype("O8", state=(3, "|", None, None, None, -1, -1, 63))


def test_an_array_of_objects_is_followed_as_the_pickle_it_is() -> None:
    inner = pickle.dumps(np.array([{"a": 1}, "text"], dtype=object), protocol=5)
    raw = in_dict(o=wrapper((2,), OBJECTS, mmap=False) + inner, a=wrapper((1,), dtype("u1")) + padded(b"\x05"))
    assert errors(raw) == ""
    checkpoint = open_checkpoint(raw, name="x.joblib")
    assert [t.name for t in checkpoint.tensors] == ["a"]
    evil = in_dict(o=wrapper((2,), OBJECTS, mmap=False) + b"\x80\x05" + CALL + b".")
    assert "os.system" in errors(evil)
    assert "cannot be followed" in errors(in_dict(o=wrapper((2,), OBJECTS, mmap=False) + b"\x80\x05]\x00."))


def test_arrays_behind_a_frame_are_no_part_of_it() -> None:
    body = b"}" + text("a") + wrapper((2,), dtype("u1"))
    frame = b"\x95" + len(body).to_bytes(8, "little")
    rest = b"\x95" + (2).to_bytes(8, "little") + b"s."
    assert errors(b"\x80\x04" + frame + body + padded(b"\x01\x02") + rest) == ""
    longer = b"\x95" + (len(body) + 6).to_bytes(8, "little")
    assert "inside a frame" in errors(b"\x80\x04" + longer + body + padded(b"\x01\x02") + b"s.")


def test_an_array_beyond_the_limit_of_a_pickle_is_left_in_the_file() -> None:
    """A model of gigabytes is a small pickle with arrays in it."""
    limits = DEFAULT_LIMITS.trial(opcodes=10_000, nbytes=4_000).metered()
    raw = in_dict(a=wrapper((9000,), dtype("u1")) + padded(bytes(9000)), b=wrapper((1,), dtype("u1")) + padded(b"\x01"))
    checkpoint = open_checkpoint(raw, name="x.joblib", limits=limits)
    assert [t.name for t in checkpoint.tensors] == ["a", "b"] and worst(checkpoint) is not Severity.ERROR


class Recorder(pickle._Unpickler):  # type: ignore[name-defined, misc]
    """Python's own unpickler, which notes every name and makes nothing of it."""

    def __init__(self, raw: bytes) -> None:
        super().__init__(io.BytesIO(raw))
        self.names: list[str] = []

    def find_class(self, module: str, name: str) -> Any:
        self.names.append(f"{module}.{name}")
        return type(name, (), {"__init__": lambda self, *args: None, "__setstate__": lambda self, state: None})


def names_of_plain_load(raw: bytes) -> list[str]:
    recorder = Recorder(raw)
    try:
        recorder.load()
    except Exception as error:  # noqa: BLE001 - the names that come before it are what counts
        recorder.names.append(f"({type(error).__name__})")
    return recorder.names


def _astray(raw: bytes, **options: Any) -> bytes:
    """A file whose only array consists of these bytes, none of them skipped by anybody but joblib."""
    return in_dict(a=wrapper((len(raw),), dtype("u1"), align="", **options) + raw)


MEMO = text("os") + b"q\x05" + text("system") + b"q\x06"
EVIL_ARRAYS = {
    "calls": _astray(CALL + b"."),
    "breaks_after_the_call": _astray(CALL + b"\x00\x00\x00"),
    "long": _astray(CALL + b"0" + bytes(9000)),
    "old_protocol": _astray(b"(S'id'\nios\nsystem\n."),
    "names_from_the_memo": b"\x80\x04" + MEMO + b"00}" + text("a") + wrapper((9,), dtype("u1"), align="")
    + b"h\x05h\x06\x93)R." + b"s.",
    "callable_from_the_memo": b"\x80\x04" + name("os system") + b"q\x050}" + text("a")
    + wrapper((5,), dtype("u1"), align="") + b"h\x05)R." + b"s.",
    "behind_a_long_constant": _astray(b"B\x88\x13\x00\x00" + bytes(5000) + CALL + b"."),
    "in_the_padding": in_dict(a=wrapper((1,), dtype("u1")) + b"(" + CALL + b"." + bytes(60)),
    # To joblib the memo of the inner pickle is its own: there this names builtins.len.
    "in_an_object_array": b"\x80\x04" + text("os") + b"\x94" + text("system") + b"\x9400}" + text("a")
    + wrapper((1,), OBJECTS, mmap=False) + text("builtins") + b"\x94" + text("len")
    + b"\x9400h\x00h\x01\x93)R." + b"s.",
}  # fmt: skip


@pytest.mark.parametrize("kind", EVIL_ARRAYS)
def test_what_pickle_load_runs_of_an_array_is_an_error(kind: str) -> None:
    """joblib skips the bytes; pickle.load executes them."""
    raw = EVIL_ARRAYS[kind]
    assert "os.system" in names_of_plain_load(raw), "the case itself is wrong"
    assert "os.system" in errors(raw)


def test_what_an_older_joblib_runs_of_an_array_is_an_error() -> None:
    """Before 1.2 it knew no padding: it takes that for the first elements, and the last ones for opcodes."""
    tail = CALL + b"0s."
    raw = in_dict(a=wrapper((20 + len(tail),), dtype("u1")) + padded(bytes(20) + tail, len(tail) - 1))
    assert "os.system" in errors(raw)
    assert errors(raw.replace(b"system", b"SYSTEM").replace(b"cos", b"cox")) == ""


def test_what_joblib_runs_behind_an_array_is_an_error() -> None:
    """To pickle.load it is a constant, begun inside the array."""
    hidden = CALL + b"0"
    raw = b"\x80\x04}" + text("a") + wrapper((5,), dtype("u1"), align="") + b"B" + len(hidden).to_bytes(4, "little")
    raw += hidden + b"s."
    assert "os.system" not in names_of_plain_load(raw)
    assert "os.system" in errors(raw)


def test_numbers_that_begin_like_opcodes_are_no_alarm() -> None:
    rng = np.random.default_rng(1)
    heads = [bytes([n]) + rng.bytes(40) for n in range(256)]
    raw = in_dict(**{f"a{n}": wrapper((41,), dtype("u1"), align="") + head for n, head in enumerate(heads)})
    checkpoint = open_checkpoint(raw, name="x.joblib")
    assert len(checkpoint.tensors) == 256 and worst(checkpoint) is not Severity.ERROR
    assert {use.verdict for use in checkpoint.globals} == {GlobalVerdict.KNOWN}
    assert all(read_array(checkpoint, t).tobytes() == head for t, head in zip(checkpoint.tensors, heads, strict=True))


def test_bytes_that_lead_back_into_the_stream_are_no_alarm() -> None:
    """One in a few thousand arrays ends in bytes that are opcodes, and what follows are joblib's own."""
    first = wrapper((4,), U1, made=name(OURS) + b"q\x07)\x81") + padded(b"NNNN")
    raw = in_dict(a=first, b=wrapper((4,), U1, made=b"h\x07)\x81") + padded(b"\x00N0N"), c=b"K\x01")
    assert errors(raw) == ""


def test_the_other_reading_changes_nothing_of_the_first() -> None:
    """Its appends, items and memo entries are its own."""
    inside = b"q\x00q\x01a0Nq\x01" + bytes(3)
    raw = b"\x80\x04]q\x00" + text("kept") + b"q\x01a" + wrapper((len(inside),), dtype("u1"), align="") + inside
    raw += b"ah\x01a."
    checkpoint = open_checkpoint(raw, name="x.joblib")
    assert [child.says for _, child in checkpoint.root.children][::2] == ["kept", "kept"]
    assert len(checkpoint.root.children) == 3 and len(checkpoint.tensors) == 1


def _state(*state: Any) -> bytes:
    return dtype("f4", state=state)


BODY = padded(b"\x01\x02")
HOSTILE = {
    "negative": wrapper((-1,), U1) + BODY,
    "huge": wrapper((1 << 61,), U1) + BODY,
    "huge product": wrapper((1 << 40, 1 << 40), U1) + BODY,
    "huge product of int64 zero": wrapper((1 << 32, 1 << 32), U1, align="") + b"",
    "longer than the file": wrapper((1000,), U1) + BODY,
    "shape of texts": wrapper(("2",), U1) + BODY,
    "shape of bools": wrapper((True,), U1) + BODY,
    "shape as a list": wrapper(b"]K\x02a", U1) + BODY,
    "many dimensions": wrapper((1,) * 65, U1) + BODY,
    "dtype as text": wrapper((2,), text("u1")) + BODY,
    "dtype without state": wrapper((2,), name("numpy dtype") + value(("u1", False, True)) + b"R") + BODY,
    "strange dtype": wrapper((2,), dtype("u3")) + BODY,
    "bfloat16": wrapper((2,), dtype("bfloat16")) + BODY,
    "text dtype": wrapper((2,), dtype("Sx")) + BODY,
    "empty elements": wrapper((2,), dtype("V0", state=(3, "|", None, None, None, 0, 1, 0))) + BODY,
    "numbers flagged as objects": wrapper((1,), _state(3, "<", None, None, None, -1, -1, 1), align="") + b"N..." + b"",
    "objects not flagged": wrapper((1,), dtype("O8", state=(3, "|", None, None, None, -1, -1, 0)), mmap=False) + BODY,
    "lengthened text": wrapper((1,), dtype("S2", state=(3, "|", None, None, None, 9, 1, 0))) + BODY,
    "numbers with fields": wrapper((1,), _state(3, "<", None, ("a",), b"}", 8, 1, 0)) + BODY,
    "subarray": wrapper((1,), _state(3, "<", U1, None, None, -1, -1, 0)) + BODY,
    "old state of a dtype": wrapper((1,), _state(2, "<", None, None, None, -1, -1, 1)) + BODY,
    "dtype filled twice": wrapper((2,), U1 + value((3, "|", None, None, None, -1, -1, 0)) + b"b") + BODY,
    "objects with a memory map": wrapper((1,), OBJECTS) + b"N.",
    "order": wrapper((2,), U1, order="K") + BODY,
    "map as a number": wrapper((2,), U1, mmap=1) + BODY,
    "alignment as text": wrapper((2,), U1, align="16") + BODY,
    "another attribute": wrapper((2,), U1, more=None) + BODY,
    "padding of something": wrapper((2,), U1) + b"\x03abc\x01\x02",
    "padding beyond the end": wrapper((2,), U1) + b"\xff",
    "state is no dict": name(OURS) + b")\x81" + value((1, 2)) + b"b" + BODY,
    "state is a pair": name(OURS) + b")\x81}N\x86b" + BODY,
    "no attributes": name(OURS) + b")\x81}b" + BODY,
    "filled twice": wrapper((2,), U1, made=name(OURS) + b")\x81q\x07") + BODY + b"0"
    + wrapper((2,), U1, align="", made=b"h\x07") + b"\x00\x01",
    "made with arguments": wrapper((2,), U1, align="", made=name(OURS) + value((1,)) + b"R") + b"\x00\x01",
    "made by a wrapped class": wrapper((2,), U1, made=name("functools partial") + name(OURS) + b"\x85R)R") + BODY,
    "made by something else": wrapper((2,), U1, made=name("some where") + name(OURS) + b"\x85R") + BODY,
    "copied by something else": wrapper((2,), U1, made=name("some where") + name(OURS) + b")\x81\x85R") + BODY,
    "class changed": name(OURS) + b"}" + text("numpy_array_alignment_bytes") + b"K\x01sb0"
    + wrapper((2,), U1, align="") + b"\x00\x01",
}  # fmt: skip


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_wrapper_that_joblib_does_not_write_is_an_error(kind: str) -> None:
    says = errors(in_dict(a=HOSTILE[kind]))
    assert any(words in says for words in ("not as joblib writes it", "may be an array of joblib", "stream ends"))


def test_a_memmap_is_only_the_class_of_an_array() -> None:
    """joblib and numpy name it for an array that was one; called, it opens a file."""
    named = wrapper((2,), U1, subclass=name("numpy memmap")) + BODY
    plain = name("numpy._core.multiarray _reconstruct") + b"(" + name("numpy memmap") + value((0,)) + text("b") + b"tR"
    assert errors(in_dict(a=named)) == errors(in_dict(a=plain)) == ""
    call = name("numpy memmap") + value(("/tmp/x", "u1", "w+")) + b"R"
    assert "numpy.memmap" in errors(in_dict(a=named, b=call))
    around = name("copyreg __newobj__") + value((name("numpy memmap"), "/tmp/x")) + b"R"
    assert "numpy.memmap" in errors(in_dict(a=named, b=around))
    assert "numpy.memmap" in errors(in_dict(a=wrapper((1,), OBJECTS, mmap=False) + b"\x80\x05" + call + b".", b=named))


@pytest.mark.parametrize("module", ["joblib.numpy_pickle", "joblib.numpy_pickle_compat", "sklearn.externals.joblib.x"])
def test_an_array_in_another_file_is_said_to_be_there(module: str) -> None:
    """joblib before 0.10 loads that file too, with any pickle in it."""
    state = b"}(" + text("filename") + text("x_01.npy") + text("subclass") + name("numpy ndarray") + b"u"
    checkpoint = open_checkpoint(in_dict(a=name(f"{module} NDArrayWrapper") + b")\x81" + state + b"b"), name="x.pkl")
    use = next(use for use in checkpoint.globals if use.name.endswith("NDArrayWrapper"))
    assert use.verdict is GlobalVerdict.DANGEROUS and "load" in use.why
    assert worst(checkpoint) is Severity.ERROR


def test_only_a_plain_pickle_is_read_as_joblib_reads_it() -> None:
    """torch.load runs on into the bytes, whatever the object before them."""
    constant = in_dict(a=wrapper((2,), U1) + BODY)
    outer = b"\x80\x04" + name("pickle loads") + b"B" + len(constant).to_bytes(4, "little") + constant + b"\x85R."
    checkpoint = open_checkpoint(outer, name="x.pkl")
    assert any(u.verdict is GlobalVerdict.DANGEROUS and "Wrapper" in u.name for u in checkpoint.globals)
