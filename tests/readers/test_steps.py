"""The short way of the pickle machine goes where its handlers go, step for step, on good and on broken streams."""

from __future__ import annotations

import io
import pickle
import random
from collections import OrderedDict
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.checkpoint.source import BufferSource
from inspector.limits import Limits
from inspector.readers.unpickle.machine import machine, stream
from inspector.readers.unpickle.machine.machine import Handler, Machine, Semantics
from inspector.readers.unpickle.machine.opcodes import TABLE
from inspector.readers.unpickle.meanings.persistent import torch_persistent
from inspector.readers.unpickle.meanings.table import MEANINGS, build
from inspector.readers.unpickle.stand_ins import Call, Group, Mapping, StorageRef, TensorStub


def _by_handlers(m: Machine, table: Sequence[Handler], n: int) -> None:
    for _ in range(n):
        if m.pos >= len(m.data):
            m.refill()
        m.opcode = m.data[m.pos]
        m.pos += 1
        table[m.opcode](m)


def _plain(value: object, left: int = 6) -> object:
    """What can be compared of a graph."""
    if not left:
        return type(value).__name__
    if isinstance(value, list | tuple):
        return (type(value).__name__, [_plain(item, left - 1) for item in value[:50]])
    if isinstance(value, Mapping):
        return (value.kind, _plain(value.pairs, left), _plain(value.attributes, left - 1))
    if isinstance(value, Group):
        return (value.kind, _plain(value.items, left))
    if isinstance(value, Call):
        return ("call", _plain(value.args, left - 1), _plain(value.states, left - 1), value.how, value.why)
    if isinstance(value, TensorStub):
        return (value.shape, value.stride, value.dtype, value.offset, value.requires_grad, _plain(value.storage))
    if isinstance(value, StorageRef):
        return (value.key, value.numel, value.dtype, value.location)
    return repr(value) if isinstance(value, int | float | str | bytes | None) else type(value).__name__


def _followed(data: bytes, monkeypatch: pytest.MonkeyPatch, *, short: bool, window: int, limits: Limits) -> object:
    with monkeypatch.context() as patch:
        patch.setattr(stream, "_FIRST_NBYTES", window)
        patch.setattr(stream, "_MOST_NBYTES", window)
        if not short:
            patch.setattr(machine, "follow", _by_handlers)
        m = Machine(
            BufferSource(data),
            0,
            len(data),
            limits=limits,
            semantics=Semantics(meanings=MEANINGS, build=build, persistent=torch_persistent({}, [])),
        )
        out = m.run(TABLE)
    uses = [(key, use.count, use.calls, use.arguments) for key, use in out.uses.items()]
    return (
        _plain(out.value), out.end, out.broken, out.over_limit, out.opcodes, out.oddities, out.nbytes, out.protocol,
        uses, m.slots_below, len(m.stack),
    )  # fmt: skip


def _saved(protocol: int) -> bytes:
    """A state dict as torch.save pickles it, memo numbers beyond 256 included."""
    state = OrderedDict((f"layers.{i}.wäight" if i % 9 == 0 else f"l.{i}.w", torch.zeros(2, i + 1)) for i in range(60))
    state.update(tied=next(iter(state.values())), text="x" * 300, numbers=[1, 256, 70000, 1 << 40, 0.5, True, None])
    out = io.BytesIO()

    class Pickler(pickle.Pickler):
        def persistent_id(self, obj: object) -> object:
            if isinstance(obj, torch.storage.TypedStorage):
                return ("storage", torch.FloatStorage, str(id(obj)), "cpu", obj._size())
            return None

    Pickler(out, protocol).dump(state)
    return out.getvalue()


_SAVED = [_saved(protocol) for protocol in range(1, 6)]


@pytest.mark.parametrize("window", [7, 64, 1 << 16])
@pytest.mark.parametrize("data", _SAVED, ids=range(len(_SAVED)))
def test_real_pickles(data: bytes, window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits()
    outcomes = [_followed(data, monkeypatch, short=short, window=window, limits=limits) for short in (True, False)]
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][2] == ""  # type: ignore[index]


def test_damaged_pickles(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(5)
    for round_ in range(600):
        data = bytearray(chance.choice(_SAVED))
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(data))
            kind = chance.randrange(3)
            if kind == 0:
                data[at] = chance.randrange(256)
            elif kind == 1:
                del data[at : at + chance.randint(1, 40)]
            else:
                data[at:at] = data[chance.randrange(len(data)) :][: chance.randint(1, 40)]
        window = chance.choice([5, 31, 1 << 16])
        limits = Limits(opcodes=chance.choice([500, 20_000_000]), memo=chance.choice([100, 4_000_000]))
        short, long = (
            _followed(bytes(data), monkeypatch, short=short, window=window, limits=limits) for short in (True, False)
        )
        assert short == long, round_


@settings(deadline=None)
@given(
    parts=st.lists(
        st.one_of(
            st.sampled_from([bytes((op,)) for op in b"(t)\x85\x86\x87\x88\x89N]}aseu0102R\x94Q."]),
            st.sampled_from([b"q", b"h", b"K"]).flatmap(lambda op: st.integers(0, 5).map(lambda n: op + bytes((n,)))),
            st.sampled_from([b"r", b"j"]).flatmap(
                lambda op: st.integers(0, 5).map(lambda n: op + n.to_bytes(4, "little"))
            ),
            st.sampled_from(
                [b"X\x02\0\0\0ab", b"X\x02\0\0\0\xc3\xa4", b"X\x01\0\0\0\xff", b"X\x09\0\0\0ab", b"M\x01\x02"]
            ),
            st.sampled_from([b"\x8c\x02ab", b"\x8c\x01\xff", b"\x8c\xffab", b"X\0\0\0\x01", b"cos\nsystem\n"]),
        ),
        max_size=40,
    ),
    window=st.sampled_from([5, 16, 1 << 16]),
)
def test_any_sequence_of_opcodes(parts: list[bytes], window: int) -> None:
    data = b"".join(parts)
    with pytest.MonkeyPatch.context() as patch:
        short, long = (_followed(data, patch, short=short, window=window, limits=Limits()) for short in (True, False))
    assert short == long


@pytest.mark.parametrize("put", [b"q\x02", b"r\x02\0\0\0"])
def test_a_memo_out_of_line(put: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entry 2 is made before 0 and 1, and again behind them; then one entry that nobody numbers."""
    data = b"K\x01" + put + b"q\x00q\x01" + b"K\x07" + put + b"K\x05\x94" + b"h\x02h\x03\x87."
    short, long = (
        _followed(data, monkeypatch, short=short, window=1 << 16, limits=Limits()) for short in (True, False)
    )
    assert short == long
    assert short[0] == ("tuple", ["5", "7", "5"])  # type: ignore[index]
