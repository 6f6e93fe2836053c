"""Nothing in a file is ever run, whatever route it takes; and what would have run is named."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tracemalloc
from collections import OrderedDict
from pathlib import Path

import pytest
import torch
from hostile import Payload, call, text, torch_zip, variants

from inspector.checkpoint.types import Checkpoint, GlobalVerdict
from inspector.checkpoint.values import Value, ValueKind
from inspector.errors import InspectorError, LimitExceeded
from inspector.findings import Severity
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.readers import open_checkpoint
from inspector.readers.unpickle.machine.opcodes import OPCODES

ROUTES = sorted(variants(Path("x")))


def dangerous(checkpoint: Checkpoint) -> dict[str, str]:
    return {g.name: g.place for g in checkpoint.globals if g.verdict is GlobalVerdict.DANGEROUS}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("container", ["plain", "zip", "deflated zip"])
def test_no_route_runs_and_every_route_is_named(route: str, container: str, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    data = variants(marker)[route]
    if container != "plain":
        data = torch_zip(data, deflate=container == "deflated zip")
    checkpoint = open_checkpoint(data)
    assert not marker.exists()
    assert set(dangerous(checkpoint)) & {"os.system", "posix.system"}
    # What lies behind the main pickle of an archive is read by no load.
    noticed = {f.id for f in checkpoint.findings if f.severity is Severity.ERROR}
    assert noticed & {"dangerous-global", "hidden-pickle"}
    left = container != "plain" and route == "second pickle of the file"
    assert ("dangerous-global" in noticed) is not left


def test_the_payloads_are_real(tmp_path: Path) -> None:
    """The quiet twin: the same bytes do create the marker when Python itself loads them."""
    marker = tmp_path / "marker"
    pickle.loads(variants(marker)["reduce, protocol 2"])
    assert marker.exists()


def test_place_and_arguments_are_told(tmp_path: Path) -> None:
    file = tmp_path / "evil.pt"
    torch.save({"state_dict": {"w": torch.ones(2)}, "extra": [1, {"cb": Payload(tmp_path / "marker")}]}, file)
    checkpoint = open_checkpoint(file)
    (use,) = [g for g in checkpoint.globals if g.verdict is GlobalVerdict.DANGEROUS]
    assert use.place == "extra.1.cb"
    assert "touch" in use.arguments
    assert (use.called, use.count) == (True, 1)
    assert checkpoint.weights is not None and checkpoint.weights.tensors[0].name == "w"
    assert not (tmp_path / "marker").exists()


def test_a_result_that_is_thrown_away_is_said_to_be_that(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(variants(tmp_path / "marker")["result thrown away"])
    assert list(dangerous(checkpoint).values()) == ["(not in the tree: its result is thrown away)"]
    hooks = open_checkpoint(variants(tmp_path / "marker")["in backward hooks"])
    assert list(dangerous(hooks).values()) == ["0.argument 2"]


def test_every_opcode_has_a_handler() -> None:
    import pickletools

    assert {ord(o.code) for o in pickletools.opcodes} == set(OPCODES)
    assert open_checkpoint(b"\x80\x02].").format == "pickle"


def test_a_broken_pickle_keeps_what_came_before() -> None:
    data = b"\x80\x02}" + text("a") + b"K\x01s" + text("b") + call("os", "system", "x") + b"s\xff"
    checkpoint = open_checkpoint(data)
    finding = next(f for f in checkpoint.findings if f.id == "broken-pickle")
    assert "no pickle opcode (0xff)" in finding.says
    assert [label for label, _ in checkpoint.root.children] == ["a", "b"]
    assert dangerous(checkpoint) == {"os.system": "b"}


def test_an_ordinary_file_names_nothing_dangerous(tmp_path: Path) -> None:
    torch.save(OrderedDict(w=torch.ones(2)), tmp_path / "a.pt")
    checkpoint = open_checkpoint(tmp_path / "a.pt")
    assert {g.verdict for g in checkpoint.globals} == {GlobalVerdict.KNOWN}
    assert checkpoint.findings == ()


def test_names_that_only_look_harmless() -> None:
    for module, name in (
        ("torch", "serialization.os.system"),
        ("torch.storage", "_load_from_bytes"),
        ("torch._dynamo.guards", "GuardBuilder.get"),
        ("numpy", "load"),
        ("builtins", "getattr"),
        ("functools", "reduce"),
        ("asyncio.unix_events", "_UnixSubprocessTransport._start"),
        ("__builtin__", "eval"),
    ):
        checkpoint = open_checkpoint(b"\x80\x02" + call(module, name, "x") + b".")
        assert len(dangerous(checkpoint)) == 1, (module, name)
    checkpoint = open_checkpoint(b"\x80\x02" + call("mmdet.core", "ConfigDict", "x") + b".")
    assert [g.verdict for g in checkpoint.globals] == [GlobalVerdict.UNKNOWN]


# -- shapes of graphs ---------------------------------------------------------------------------------------------


def nodes(value: Value) -> int:
    count, left = 0, [value]
    while left:
        top = left.pop()
        count += 1
        left.extend(child for _, child in top.children)
    return count


def within(data: bytes, megabytes: float, limits: Limits = DEFAULT_LIMITS) -> Checkpoint:
    """Opened in so much memory; a file that takes more than its length in time would not end here."""
    tracemalloc.start()
    try:
        checkpoint = open_checkpoint(data, limits=limits)
        peak = tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()
    assert peak < megabytes
    return checkpoint


def test_exponential_memo_graph_costs_its_length() -> None:
    """Sixty lists, each holding the one before twice: 2**60 paths."""
    data = b"\x80\x02]q\x00"
    for n in range(60):
        data += b"](h" + bytes([n]) + b"h" + bytes([n]) + b"eq" + bytes([n + 1])
    checkpoint = within(data + b".", 20)
    assert nodes(checkpoint.root) == 1 + 2 * 60


def test_exponential_modules_cost_their_budget() -> None:
    """Thirty modules, each holding the one before under two names."""
    data = b"\x80\x02N0"
    for n in range(30):
        children = b"}" if n == 0 else b"}" + b"".join(text(k) + b"h" + bytes([n - 1]) + b"s" for k in "ab")
        state = b"}" + text("_parameters") + b"}s" + text("_modules") + children + b"s"
        data += b"cnet\nBlock\n)\x81" + state + b"bq" + bytes([n]) + (b"0" if n < 29 else b"")
    checkpoint = within(data + b".", 150)
    assert checkpoint.root.kind is ValueKind.MODULE
    assert any("nested too deep" in line for line in checkpoint.skipped)


def test_cycles_end() -> None:
    cyclic: list[object] = [1]
    cyclic.append({"again": cyclic})
    checkpoint = open_checkpoint(pickle.dumps(cyclic))
    again = checkpoint.root.children[1][1].children[0][1]
    assert again.kind is ValueKind.SEEN


@pytest.mark.parametrize("opcode", [b"\x85", b"l"])
def test_a_million_levels_are_cut(opcode: bytes) -> None:
    opening = b"N" if opcode == b"\x85" else b""
    body = opcode * 100_000 if opcode == b"\x85" else b"(" * 100_000 + b"l" * 100_000
    checkpoint = within(b"\x80\x02" + opening + body + b".", 200)
    assert any("nested too deep" in line for line in checkpoint.skipped)


def test_recalled_constants_are_not_copied_without_end() -> None:
    """One text of 1 MB, encoded a thousand times from the memo: ten bytes of file for a megabyte of memory."""
    data = b"\x80\x02c_codecs\nencode\nq\x000" + text("x" * 1_000_000) + text("latin1") + b"\x86q\x010("
    data += b"h\x00h\x01R" * 1000 + b"l."
    checkpoint = within(data, 60)
    assert checkpoint.root.size == 1000


def test_huge_memo_indices_and_lengths_allocate_nothing() -> None:
    within(b"\x80\x02Nr\xff\xff\xff\xff.", 5)
    for opcode in (b"\x8d", b"\x8e", b"\x96"):
        checkpoint = within(b"\x80\x04" + opcode + b"\xff\xff\xff\xff\xff\xff\xff\x7f.", 5)
        assert any(f.id in ("broken-pickle", "pickle-over-limit") for f in checkpoint.findings)


def test_colliding_integer_keys_take_no_quadratic_time() -> None:
    """Integers that are equal modulo 2**61 - 1 hash alike in Python."""
    prime = (1 << 61) - 1
    n = 200_000
    pairs = (b"\x8a\x0c" + (i * prime).to_bytes(12, "little", signed=True) + b"N" for i in range(1, n))
    checkpoint = open_checkpoint(b"\x80\x02}(" + b"".join(pairs) + b"u.")
    assert checkpoint.root.size == n - 1


@pytest.mark.parametrize("opcode", [b"}", b"]"])
def test_containers_have_a_budget(opcode: bytes) -> None:
    checkpoint = within(b"\x80\x02(" + opcode * 200_000 + b"l.", 20, Limits(memo=20_000))
    (finding,) = [f for f in checkpoint.findings if f.id == "pickle-over-limit"]
    assert "more than 20,000 containers and calls" in finding.says


def test_opcode_budget_is_a_finding() -> None:
    checkpoint = open_checkpoint(b"\x80\x02" + b"N0" * 50_000 + b"N.", limits=Limits(opcodes=10_000))
    (finding,) = [f for f in checkpoint.findings if f.id == "pickle-over-limit"]
    assert "more than 10,000 steps" in finding.says


def test_a_deflate_bomb_is_refused() -> None:
    data = torch_zip(b"\x80\x02X" + (200_000_000).to_bytes(4, "little") + b"\0" * 200_000_000 + b".", deflate=True)
    assert len(data) < 1_000_000
    with pytest.raises(LimitExceeded, match="inflates from"):
        within(data, 250)


def test_opening_imports_no_torch(tmp_path: Path) -> None:
    torch.save({"w": torch.ones(3)}, tmp_path / "a.pt")
    code = (
        "import sys, inspector; assert not {'torch', 'numpy', 'streamlit'} & set(sys.modules);"
        "from inspector.readers import open_checkpoint; c = open_checkpoint(sys.argv[1]);"
        "assert not {'torch', 'numpy', 'zipfile', 'pickle'} & set(sys.modules);"
        "from inspector.checkpoint.data import read_array; assert read_array(c, c.tensors[0]).sum() == 3;"
        "assert 'torch' not in sys.modules, 'torch'; print(len(c.tensors))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "a.pt")], capture_output=True, text=True, check=True
    )
    assert done.stdout == "1\n"


def test_no_exception_but_ours_for_nonsense() -> None:
    for data in (b"", b"\x80", b"\x80\x02", b"PK\x03\x04", b"PK\x05\x06" + b"\0" * 18, b"\0" * 9, b"{" * 20, b"(" * 50):
        try:
            open_checkpoint(data)
        except InspectorError as error:
            assert error.says
