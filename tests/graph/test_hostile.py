"""Damaged and made-up files give a graph or a ReadError, in bounded time, whatever is in them."""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from inspector.checkpoint.source import BufferSource
from inspector.errors import ReadError
from inspector.graph.boxes import draw
from inspector.graph.building import DEEPEST
from inspector.graph.from_onnx import graph_from_onnx
from inspector.graph.from_pt2 import graph_from_pt2
from inspector.graph.from_torchscript import graph_from_torchscript
from inspector.graph.sources import GRAPH_SOURCES
from inspector.graph.types import CARRIES_GRAPH, Graph
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.render.graph_files.dot import as_dot
from inspector.render.graph_files.mermaid import as_mermaid
from inspector.render.graph_files.svg import as_svg
from tests.graph.test_from_onnx import control_flow, functions
from tests.graph.test_from_pt2 import export
from tests.graph.test_from_torchscript import save
from tests.graph.zoo import SMALL, Branch, Script

Reader = Callable[[BufferSource, Limits], Graph | None]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Reader, list[bytes]]]:
    folder = tmp_path_factory.mktemp("whole")
    make, shape = SMALL["shared"]
    programs = [
        export(folder / "a.pt2", Branch(), torch.rand(2, 4)),
        export(folder / "b.pt2", make(), torch.rand(shape)),
    ]
    scripts = [
        save(folder / "a.pt", Script(), (2, 4), script=True),
        save(folder / "b.pt", make(), shape, script=False),
    ]
    return {
        "pt2": (graph_from_pt2, [p.read_bytes() for p in programs]),
        "onnx": (graph_from_onnx, [control_flow().SerializeToString(), functions().SerializeToString()]),
        "torchscript": (graph_from_torchscript, [p.read_bytes() for p in scripts]),
    }


def look(reader: Reader, data: bytes) -> bool:
    """Whether something was drawn."""
    try:
        graph = reader(BufferSource(data), DEFAULT_LIMITS.metered())
    except ReadError:
        return False
    if graph is None:
        return False
    drawing = draw(graph)
    as_svg(drawing.box)
    assert as_dot(drawing).count("{") > 0 and len(as_mermaid(drawing)) <= 50_000
    assert len(repr(graph.remarks)) < 20_000
    return bool(graph.nodes)


@pytest.mark.parametrize("kind", ["pt2", "onnx", "torchscript"])
def test_damaged_files_give_a_graph_or_an_error(
    files: dict[str, tuple[Reader, list[bytes]]], kind: str, seeds: Callable[..., range]
) -> None:
    reader, wholes = files[kind]
    drawn = 0
    for seed in seeds(60, full=4000):
        rng = random.Random(seed)
        data = bytearray(rng.choice(wholes))
        if rng.random() < 0.2:
            del data[rng.randrange(len(data)) :]
        for _ in range(rng.randint(0, 6)):
            if data:
                data[rng.randrange(len(data))] = rng.randrange(256)
        drawn += look(reader, bytes(data))
    assert drawn


@pytest.mark.parametrize("kind", ["pt2", "torchscript"])
def test_damaged_members_give_a_graph_or_an_error(
    files: dict[str, tuple[Reader, list[bytes]]], kind: str, seeds: Callable[..., range]
) -> None:
    """The archive is whole; what was damaged is the JSON, the code, or the pickle in it."""
    reader, wholes = files[kind]
    drawn = 0
    for seed in seeds(60, full=4000):
        rng = random.Random(seed)
        with zipfile.ZipFile(io.BytesIO(rng.choice(wholes))) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        chosen = [n for n in members if n.endswith((".json", ".py", "data.pkl"))]
        for name in rng.sample(chosen, 1):
            members[name] = damaged_text(rng, members[name])
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        drawn += look(reader, out.getvalue())
    assert drawn


def damaged_text(rng: random.Random, data: bytes) -> bytes:
    """Tokens are doubled, dropped and exchanged, so that much of it still parses."""
    tokens = data.replace(b'"', b'\0"\0').replace(b" ", b"\0 \0").replace(b",", b"\0,\0").split(b"\0")
    for _ in range(rng.randint(1, 8)):
        one, other = rng.randrange(len(tokens)), rng.randrange(len(tokens))
        kind = rng.random()
        if kind < 0.4:
            tokens[one], tokens[other] = tokens[other], tokens[one]
        elif kind < 0.7:
            tokens[one] = tokens[other]
        else:
            tokens[one] = rng.choice([b"null", b"{}", b"[]", b"-1", b"1e400", b"9" * 50, b'"\\ud800"', b"x" * 5000])
    return b"".join(tokens)


def program(graph: object, **more: object) -> bytes:
    out = io.BytesIO()
    module = {"graph_module": {"graph": graph}, "schema_version": {"major": 8, "minor": 1}, **more}
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a/archive_format", "pt2")
        archive.writestr("a/models/model.json", json.dumps(module))
    return out.getvalue()


def script(code: str, kind: str = "__torch__.M") -> bytes:
    module, _, name = kind.rpartition(".")
    pickle = b"\x80\x02c" + module.encode() + b"\n" + name.encode() + b"\n)\x81}b."
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a/data.pkl", pickle)
        archive.writestr("a/constants.pkl", b"\x80\x02).")
        archive.writestr(f"a/code/{module.replace('.', '/')}.py", code)
    return out.getvalue()


def forward(*lines: str) -> bytes:
    body = "\n".join(f"    {line}" for line in lines)
    return script(f"class M(Module):\n  def forward(self: __torch__.M, x: Tensor) -> Tensor:\n{body}\n")


def _deep_modules(n: int) -> dict[str, object]:
    path = ".".join("m" * 1)
    stack = ";".join(f"k,{'.'.join('m' * (k + 1))},a.B" for k in range(n))
    node = {"target": "torch.ops.aten.relu.default", "inputs": [], "outputs": [{"as_tensor": {"name": path}}]}
    return {"nodes": [{**node, "metadata": {"nn_module_stack": stack}}]}


def _inside(n: int) -> dict[str, object]:
    graph: dict[str, object] = {"nodes": []}
    for _ in range(n):
        inner = [{"name": "", "arg": {"as_graph": {"name": "g", "graph": graph}}}]
        graph = {"nodes": [{"target": "torch.ops.higher_order.cond", "inputs": inner, "outputs": []}]}
    return graph


CRAFTED: dict[str, tuple[Reader, Callable[[], bytes]]] = {
    "modules 300 deep": (graph_from_pt2, lambda: program(_deep_modules(300))),
    "graphs 60 deep": (graph_from_pt2, lambda: program(_inside(60))),
    "a name a megabyte long": (
        graph_from_pt2,
        lambda: program({"inputs": [{"as_tensor": {"name": "n" * 1_000_000}}], "nodes": []}),
    ),
    "nested calls": (graph_from_torchscript, lambda: forward("return " + "torch.relu(" * 90 + "x" + ")" * 90)),
    "a method that calls itself": (graph_from_torchscript, lambda: forward("return (self).forward(x, )")),
    "two calls in each of many functions": (
        graph_from_torchscript,
        lambda: script(
            "class M(Module):\n  def forward(self: __torch__.M, x: Tensor) -> Tensor:\n    return __torch__.f0(x)\n"
            + "".join(
                f"def f{k}(x: Tensor) -> Tensor:\n  y = __torch__.f{k + 1}(x)\n  return __torch__.f{k + 1}(y)\n"
                for k in range(40)
            )
            + "def f40(x: Tensor) -> Tensor:\n  return torch.relu(x)\n"
        ),
    ),
    "branches in branches": (
        graph_from_torchscript,
        lambda: forward(
            *(f"{'  ' * k}if bool(torch.any(x)):" for k in range(60)), "  " * 60 + "x = torch.relu(x)", "return x"
        ),
    ),
    "a list that doubles": (
        graph_from_torchscript,
        lambda: forward("a = [x, x]", *("a = [a, a]" for _ in range(60)), "return torch.cat(a)"),
    ),
    "numbers that grow": (
        graph_from_torchscript,
        lambda: forward("a = 9999999999", *("a = torch.mul(a, a)" for _ in range(200)), "return torch.add(x, a)"),
    ),
    "text that grows": (
        graph_from_torchscript,
        lambda: forward('a = "aaaaaaaa"', *("a = torch.add(a, a)" for _ in range(60)), "return torch.add(x, a)"),
    ),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_files_made_to_flood_are_drawn_as_far_as_the_bounds_go(name: str) -> None:
    reader, make = CRAFTED[name]
    look(reader, make())


def test_groups_go_no_deeper_than_can_be_drawn() -> None:
    graph = graph_from_pt2(BufferSource(program(_deep_modules(300))), DEFAULT_LIMITS.metered())
    assert graph is not None
    assert max(n.group.count(".") for n in graph.nodes) < DEEPEST
    assert any("nested deeper" in remark for remark in graph.remarks)


def test_what_stands_in_a_file_ends_no_label(tmp_path: Path) -> None:
    name = 'a"]; x [URL="javascript:1"] -->|<script>\n&#'
    graph = {
        "inputs": [{"as_tensor": {"name": name}}],
        "nodes": [
            {"target": name, "inputs": [{"name": "", "arg": {"as_tensor": {"name": name}}}], "outputs": []},
        ],
    }
    found = graph_from_pt2(BufferSource(program(graph)), DEFAULT_LIMITS.metered())
    assert found is not None
    drawing = draw(found)
    assert "<script>" not in as_svg(drawing.box)
    mermaid = as_mermaid(drawing)
    assert '"]; x' not in mermaid and "<script>" not in mermaid
    dot = as_dot(drawing)
    assert all(line.replace('\\"', "").count('"') % 2 == 0 for line in dot.splitlines())


def test_the_readers_that_carry_a_graph_are_those_that_are_read() -> None:
    assert set(CARRIES_GRAPH) == set(GRAPH_SOURCES)
