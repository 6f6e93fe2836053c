"""torch.export archives, new and old layout, against the program's own state_dict; what they would make a load do."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hostile import Payload
from torch import nn
from torch._export.serde.serialize import serialize
from torch.export.pt2_archive._package import package_pt2
from torch.export.pt2_archive._package_weights import TensorProperties, Weights

from inspector.checkpoint.data import read_bytes
from inspector.checkpoint.types import Checkpoint
from inspector.errors import InspectorError
from inspector.findings import Severity
from inspector.readers import open_checkpoint
from inspector.readers.formats.export.program import DTYPES, is_arithmetic, read_program
from inspector.readers.header_look import HeaderLook, Wanted

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.bn = nn.BatchNorm2d(4)
        self.first = nn.Linear(4, 4, bias=False)
        self.second = nn.Linear(4, 4, bias=False)
        self.second.weight = self.first.weight
        self.register_buffer("kept", torch.arange(3.0))
        self.register_buffer("dropped", torch.full((2,), 3.0), persistent=False)
        self.thin = nn.Parameter(torch.randn(4, 6).bfloat16().t()[1:, :2])
        self.offset = torch.tensor([2.5, 1.0])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.second(self.first(self.bn(self.conv(x)).mean((2, 3))))
        return y + self.kept.sum() + self.dropped.sum() + self.thin.float().sum() + self.offset.sum()


@pytest.fixture(scope="module")
def program() -> torch.export.ExportedProgram:
    torch.manual_seed(0)
    batch = torch.export.Dim("batch", min=2, max=64)
    return torch.export.export(Model().eval(), (torch.randn(4, 3, 8, 8),), dynamic_shapes=({0: batch},))


@pytest.fixture(scope="module")
def saved(program: torch.export.ExportedProgram) -> bytes:
    buffer = io.BytesIO()
    torch.export.save(program, buffer, extra_files={"note.txt": "hello"})
    return buffer.getvalue()


@pytest.fixture(scope="module")
def saved_old(program: torch.export.ExportedProgram) -> bytes:
    """The layout of 2.1 to 2.6, in which torch.export.load still reads these four members."""
    parts = serialize(program)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("serialized_exported_program.json", parts.exported_program)
        archive.writestr("serialized_state_dict.pt", parts.state_dict)
        archive.writestr("serialized_constants.pt", parts.constants)
        archive.writestr("serialized_example_inputs.pt", parts.example_inputs)
        archive.writestr("version", "8.20")
    return out.getvalue()


def _rewritten(data: bytes, change: Callable[[str, bytes], bytes | None], **added: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        top = old.namelist()[0].partition("/")[0]
        for info in old.infolist():
            content = change(info.filename.partition("/")[2], old.read(info))
            if content is not None:
                new.writestr(info.filename, content)
        for name, content in added.items():
            new.writestr(f"{top}/{name}", content)
    return out.getvalue()


def _edited(data: bytes, member: str, edit: Callable[[dict], object]) -> bytes:  # type: ignore[type-arg]
    """The archive with one JSON member edited in place."""

    def change(name: str, content: bytes) -> bytes:
        if name != member:
            return content
        table = json.loads(content)
        edit(table)
        return json.dumps(table).encode()

    return _rewritten(data, change)


def _check(checkpoint: Checkpoint, expected: dict[str, torch.Tensor], label: str) -> None:
    (state,) = [s for s in checkpoint.state_dicts if s.path[-1] == label]
    assert {t.name for t in state.tensors} == set(expected)
    for tensor in state.tensors:
        real = expected[tensor.name]
        assert (tensor.shape, tensor.stride) == (tuple(real.shape), real.stride())
        assert f"torch.{tensor.dtype}" == str(real.dtype)
        copy = real.detach().clone(memory_format=torch.contiguous_format)
        assert read_bytes(checkpoint, tensor) == bytes(copy.untyped_storage())


WEIGHTS = "data/weights/model_weights_config.json"
PROGRAM = "models/model.json"


def _ids(checkpoint: Checkpoint) -> set[str]:
    return {f.id for f in checkpoint.findings}


@pytest.mark.parametrize("layout", ["saved", "saved_old"])
def test_weights_and_constants_are_those_of_the_program(
    layout: str, program: torch.export.ExportedProgram, request: pytest.FixtureRequest
) -> None:
    data = request.getfixturevalue(layout)
    checkpoint = open_checkpoint(data)
    assert checkpoint.format == "torch-export"
    loaded = torch.export.load(io.BytesIO(data))
    _check(checkpoint, dict(loaded.state_dict), "state_dict")
    _check(checkpoint, dict(program.state_dict), "state_dict")
    _check(checkpoint, dict(loaded.constants), "constants")
    assert checkpoint.weights is not None
    kinds = {t.name: t.is_parameter for t in checkpoint.weights.tensors}
    assert {n for n, is_parameter in kinds.items() if is_parameter} == set(program.graph_signature.parameters)
    assert {n for n, is_parameter in kinds.items() if is_parameter is False} == set(program.state_dict) - set(
        program.graph_signature.parameters
    )
    tied = {t.name: t.storage_id for t in checkpoint.weights.tensors}
    assert tied["first.weight"] == tied["second.weight"]
    notes = {t.name: t.note for t in checkpoint.tensors}
    assert notes["dropped"] == "non-persistent buffer"
    assert notes["offset"] == "tensor constant"


@pytest.mark.parametrize("layout", ["saved", "saved_old"])
def test_inputs_outputs_versions_and_operators_are_said(layout: str, request: pytest.FixtureRequest) -> None:
    checkpoint = open_checkpoint(request.getfixturevalue(layout))
    said = dict(checkpoint.metadata)
    symbol = said["input x"].partition("x")[0]
    assert said["input x"] == f"{symbol}x3x8x8 float32"
    assert said[f"size {symbol}"] == "2 to 64"
    assert [v for k, v in said.items() if k.startswith("output ")] == [f"{symbol}x4 float32"]
    assert said["torch version"] == torch.__version__
    assert "aten.linear.default 2" in said["operators"]
    assert "aten.conv2d.default 1" in said["operators"]
    (graph,) = checkpoint.code
    assert "conv2d = torch.ops.aten.conv2d.default(input=x, weight=p_conv_weight, bias=p_conv_bias)" in graph.text
    if layout == "saved":
        assert said["extra/note.txt"] == "hello"


@pytest.mark.parametrize("layout", ["saved", "saved_old"])
def test_an_ordinary_program_has_nothing_worse_than_a_notice(layout: str, request: pytest.FixtureRequest) -> None:
    checkpoint = open_checkpoint(request.getfixturevalue(layout))
    assert all(f.severity in (Severity.NOTICE, Severity.INFO) for f in checkpoint.findings), checkpoint.findings
    assert "torch-export" in _ids(checkpoint)
    assert not checkpoint.skipped


def test_the_json_of_torch_2_1_is_understood() -> None:
    """Every member of a union is written there, the others as null; the signature maps names. From a file of 2.1.2."""

    def union(**chosen: object) -> dict[str, object]:
        return {"as_none": None, "as_tensor": None, "as_ints": None, "as_bool": None, "as_expr": None, **chosen}

    meta = {"dtype": 7, "sizes": [{"as_expr": {"expr_str": "2*s0", "hint": None}, "as_int": None}, {"as_int": 3}]}
    node = {
        "target": "torch.ops.aten.mm.default",
        "inputs": [
            {"name": "self", "arg": union(as_tensor={"name": "arg1_1"})},
            {"name": "dims", "arg": union(as_ints=[1, 0])},
            {"name": "flag", "arg": union(as_bool=False)},
            {"name": "nothing", "arg": union()},
        ],
        "outputs": [union(as_tensor={"name": "mm"})],
    }
    graph = {"nodes": [node], "tensor_values": {"arg1_1": {"val": None, "meta": meta}}}
    signature = {
        "inputs_to_parameters": {"arg0_1": "L__self___w"},
        "inputs_to_buffers": {"arg2_1": "L__self___b"},
        "user_inputs": ["arg1_1"],
        "user_outputs": ["mm"],
    }
    facts = read_program({"graph_module": {"graph": graph, "signature": signature}, "schema_version": 1})
    assert facts.inputs == [("arg1_1", "2*s0x3 float32")]
    assert facts.kinds == {"L__self___w": "parameter", "L__self___b": "buffer"}
    assert facts.graph == "mm = torch.ops.aten.mm.default(self=arg1_1, dims=[1, 0], flag=False, nothing=None)"
    assert facts.metadata == [("schema version", "1")]
    assert not facts.odd


def test_the_list_of_types_is_that_of_the_installed_torch() -> None:
    from torch._export.serde.schema import ScalarType

    named = {kind.value for kind in ScalarType if kind.name != "UNKNOWN"}
    assert set(DTYPES) == named
    from torch._export.serde.serialize import _SERIALIZE_TO_TORCH_DTYPE

    assert {n: str(_SERIALIZE_TO_TORCH_DTYPE[n]).removeprefix("torch.") for n in named} == DTYPES


@pytest.mark.parametrize(
    "text",
    ["s77", "2*s0 + 1", "Symbol('s77', positive=True, integer=True)", "Max(1, s0//2)", "Add(Symbol('u0'), Integer(-1))",
     "Rational(1, 2)*s0", "2.0*s1", "Mod(s0, 8)", "FloorDiv(s0 + 3, 4)"],
)  # fmt: skip
def test_symbolic_sizes_are_arithmetic(text: str) -> None:
    assert is_arithmetic(text)


@pytest.mark.parametrize(
    "text",
    ["__import__('os').system('id')", "(lambda: 1)()", "s0.__class__", "exec('x')", "open('f')", "[x for x in s0]",
     "Symbol('a b')", "max.real", "(s0)(s1)", "eval(s0)"],
)  # fmt: skip
def test_anything_else_is_no_arithmetic(text: str) -> None:
    assert not is_arithmetic(text)


def test_an_expression_that_sympy_would_evaluate_is_an_error(saved: bytes, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    attack = f"__import__('os').system('touch {marker}')"

    def edit(table: dict) -> None:  # type: ignore[type-arg]
        table["graph_module"]["graph"]["tensor_values"]["x"]["sizes"][0] = {"as_expr": {"expr_str": attack}}

    data = _edited(saved, PROGRAM, edit)
    (finding,) = [f for f in open_checkpoint(data).findings if f.id == "export-odd-code"]
    assert finding.severity is Severity.ERROR
    assert "__import__" in finding.says
    assert not marker.exists()
    # The oracle: torch evaluates it on load, which is why it is said.
    with pytest.raises(Exception):  # noqa: B017
        torch.export.load(io.BytesIO(data))
    assert marker.exists()


@pytest.mark.parametrize(
    ("target", "ident"),
    [
        ("torch.hub.load", "export-odd-code"),
        ("torch.os.system", "export-odd-code"),
        ("_operator.attrgetter.x", "export-odd-code"),
        ("torch.ops.aten.from_file.default", "script-reaches-system"),
        ("torch.ops.mylib.run.default", "script-custom-operators"),
        ("torch.ops.c10d.send.default", "script-reaches-system"),
    ],
)
def test_what_a_graph_calls_beside_arithmetic_is_said(target: str, ident: str, saved: bytes) -> None:
    def edit(table: dict) -> None:  # type: ignore[type-arg]
        table["graph_module"]["graph"]["nodes"][0]["target"] = target

    assert ident in _ids(open_checkpoint(_edited(saved, PROGRAM, edit)))


def test_guards_are_shown_as_text(saved: bytes) -> None:
    data = _edited(saved, PROGRAM, lambda table: table.update(guards_code=["L['x'].size()[0] == 3"]))
    checkpoint = open_checkpoint(data)
    assert "export-guards" in _ids(checkpoint)
    assert checkpoint.code[-1].text == "L['x'].size()[0] == 3"


def test_pickled_members_are_followed_and_never_run(saved: bytes, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    buffer = io.BytesIO()
    torch.save({"x": Payload(marker)}, buffer)
    entry = {"path_name": "weight_99", "is_param": False, "use_pickle": True, "tensor_meta": None}
    data = _edited(saved, WEIGHTS, lambda table: table["config"].update(evil=entry))
    data = _rewritten(data, lambda name, content: content, **{"data/weights/weight_99": buffer.getvalue()})
    checkpoint = open_checkpoint(data)
    assert checkpoint.globals[0].name in ("posix.system", "os.system")
    assert checkpoint.globals[0].place.startswith("data/weights/weight_99")
    assert "dangerous-global" in _ids(checkpoint)
    plain = pickle.dumps(Payload(marker))
    data = _rewritten(saved, lambda name, content: content, **{"data/constants/opaque_obj_0": plain})
    assert "dangerous-global" in _ids(open_checkpoint(data))
    assert not marker.exists()
    assert os.name


def test_a_pickled_weight_is_read_from_the_file_inside(saved: bytes) -> None:
    buffer = io.BytesIO()
    torch.save(torch.arange(6.0).reshape(2, 3).t(), buffer)
    entry = {"path_name": "weight_99", "is_param": False, "use_pickle": True, "tensor_meta": None}
    data = _edited(saved, WEIGHTS, lambda table: table["config"].update(more=entry))
    data = _rewritten(data, lambda name, content: content, **{"data/weights/weight_99": buffer.getvalue()})
    checkpoint = open_checkpoint(data)
    (more,) = [t for t in checkpoint.tensors if t.name == "more"]
    assert read_bytes(checkpoint, more) == torch.arange(6.0).reshape(2, 3).t().contiguous().numpy().tobytes()


def test_compiled_code_is_flagged(saved: bytes) -> None:
    library = b"\x7fELF" + b"\0" * 60
    added = {"data/aotinductor/model/data.bin": library, "data/aotinductor/model/a.cubin": b"x"}
    (finding,) = [
        f for f in open_checkpoint(_rewritten(saved, lambda n, c: c, **added)).findings if f.id == "native-code"
    ]
    assert set(finding.subjects) == set(added)


def test_the_weights_of_a_compiled_model_are_views_of_saved_tensors(tmp_path: Path) -> None:
    torch.manual_seed(0)
    whole, other = torch.randn(6, 4), torch.randn(3)
    views = {"whole": whole, "part": whole.t()[1:], "other": other}
    weights = Weights({name: (value, TensorProperties(value)) for name, value in views.items()})
    library = tmp_path / "model.so"
    library.write_bytes(b"\x7fELF" + b"\0" * 20)
    metadata = tmp_path / "model_metadata.json"
    metadata.write_text('{"AOTI_DEVICE_KEY": "cpu"}')
    path = tmp_path / "compiled.pt2"
    package_pt2(path, aoti_files={"model": [str(library), str(metadata), weights]})
    checkpoint = open_checkpoint(path)
    assert {t.name for t in checkpoint.tensors} == set(views)
    for tensor in checkpoint.tensors:
        real = views[tensor.name]
        assert (tensor.shape, tensor.stride) == (tuple(real.shape), real.stride())
        assert read_bytes(checkpoint, tensor) == real.contiguous().numpy().tobytes()
    assert checkpoint.weights is not None
    assert checkpoint.weights.path == ("model", "compiled weights")
    assert {"native-code", "shared-storage"} <= _ids(checkpoint)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"path_name": "../../etc/passwd"}, "is not there"),
        ({"path_name": 3}, "names no member"),
        ({"tensor_meta": None}, "no tensor_meta"),
        ({"dtype": 99}, "dtype 99 is unknown"),
        ({"dtype": True}, "is unknown"),
        ({"sizes": [{"as_int": -4}]}, "no numbers"),
        ({"sizes": [{"as_int": 1 << 61}] * 2, "strides": [{"as_int": 1}] * 2}, "impossible"),
        ({"sizes": [{"as_expr": {"expr_str": "s0"}}]}, "no numbers"),
        ({"sizes": [{"as_int": 5}]}, "behind the end"),
        ({"storage_offset": {"as_int": 1}}, "behind the end"),
        ({"layout": 1}, "has no raw bytes"),
    ],
)
def test_a_lying_table_is_a_finding_and_the_rest_is_shown(change: dict[str, object], says: str, saved: bytes) -> None:
    def edit(table: dict) -> None:  # type: ignore[type-arg]
        entry = table["config"]["conv.bias"]
        (entry if next(iter(change)) in entry else entry["tensor_meta"]).update(change)

    checkpoint = open_checkpoint(_edited(saved, WEIGHTS, edit))
    assert any(says in f.says for f in checkpoint.findings), [f.says for f in checkpoint.findings]
    assert "conv.weight" in {t.name for t in checkpoint.tensors}


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "[]",
        "null",
        '{"config": 3}',
        '{"config": {"a": 1, "a": 2}}',
        "\udc80",
        "[" + "0," * 3_000_000 + "0]",
    ],
)
def test_hostile_json_is_a_finding(text: str, saved: bytes) -> None:
    raw = text.encode("utf-8", "surrogatepass")
    for member in (WEIGHTS, PROGRAM):
        data = _rewritten(saved, lambda name, content, member=member: raw if name == member else content)
        assert open_checkpoint(data).format == "torch-export"


def test_an_archive_cut_or_changed_anywhere_is_a_checkpoint_or_an_error(saved: bytes, saved_old: bytes) -> None:
    for data in (saved, saved_old):
        for cut in range(0, len(data), 997):
            try:
                open_checkpoint(data[:cut])
            except InspectorError:
                continue
        for at in range(0, len(data), 397):
            changed = bytearray(data)
            changed[at] ^= 0x55
            try:
                open_checkpoint(bytes(changed))
            except InspectorError:
                continue


def test_slices_tell_what_the_whole_archive_tells(saved: bytes) -> None:
    data = _rewritten(saved, lambda name, raw: raw, **{"program/extra/ballast": bytes(3_000_000)})
    look = HeaderLook(len(data), "net.pt2")
    outcome: object = None
    while not isinstance(outcome, Checkpoint):
        outcome = look.take(b"".join(data[offset : offset + n] for offset, n in look.wanted.ranges))
        assert isinstance(outcome, Wanted | Checkpoint)
    whole = open_checkpoint(data, name="net.pt2")
    assert (outcome.tensors, outcome.findings, outcome.metadata) == (whole.tensors, whole.findings, whole.metadata)
    assert look.requests <= 6 and look.nbytes < 1_000_000
