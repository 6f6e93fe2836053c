"""TorchScript archives against torch.jit.load of the same file, and what their code is said to do."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hostile import Payload, call
from torch import nn

from inspector.checkpoint.data import read_bytes
from inspector.checkpoint.types import Checkpoint, GlobalVerdict
from inspector.errors import InspectorError
from inspector.findings import Severity
from inspector.readers import open_checkpoint
from inspector.readers.formats.script.findings import COMPUTING, NETWORK, REACHING, reach_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.bn = nn.BatchNorm2d(4)
        self.register_buffer("mask", torch.arange(4.0).bfloat16())
        self.aside = torch.ones(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.bn(self.conv(x)) * self.mask.float().sum() + self.aside.sum()


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()
        self.heads = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4, bias=False)])
        self.heads[1].weight = self.heads[0].weight

    def forward(self, x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        y = self.inner(x).mean((2, 3))
        for head in self.heads:
            y = head(y)
        if bool(y.sum() > 0):
            y = y * scale
        return y


def _saved(module: torch.jit.ScriptModule, **extra: str | bytes) -> bytes:
    buffer = io.BytesIO()
    torch.jit.save(module, buffer, _extra_files=extra or None)
    return buffer.getvalue()


def _scripted(**extra: str | bytes) -> bytes:
    torch.manual_seed(0)
    return _saved(torch.jit.script(Tied().eval()), **extra)


def _traced() -> bytes:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).eval()
    return _saved(torch.jit.trace(model, torch.randn(1, 3, 8, 8)))


def _rewritten(data: bytes, change: Callable[[str, bytes], bytes | None], **added: bytes) -> bytes:
    """The same archive with members changed, left out (None) or added."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for info in old.infolist():
            content = change(info.filename.partition("/")[2], old.read(info))
            if content is not None:
                new.writestr(info.filename, content, compress_type=info.compress_type)
        for name, content in added.items():
            new.writestr(f"archive/{name}", content)
    return out.getvalue()


def _with_body(body: str) -> bytes:
    """A small program whose forward has this body."""

    class Small(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x

    head = "class Small(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n"
    head += "  _is_full_backward_hook : Optional[bool]\n"

    def change(name: str, content: bytes) -> bytes:
        if not name.startswith("code/") or not name.endswith(".py"):
            return content
        kind = name.removeprefix("code/").removesuffix(".py").replace("/", ".") + ".Small"
        return (f"{head}  def forward(self: {kind},\n    x: Tensor) -> Tensor:\n{body}    return x\n").encode()

    return _rewritten(_saved(torch.jit.script(Small())), change)


def _ids(checkpoint: Checkpoint) -> set[str]:
    return {f.id for f in checkpoint.findings}


def _check_weights(data: bytes) -> Checkpoint:
    checkpoint = open_checkpoint(data)
    assert checkpoint.format == "torchscript"
    loaded = torch.jit.load(io.BytesIO(data))
    expected = loaded.state_dict()
    state = checkpoint.weights
    assert state is not None
    assert [t.name for t in state.tensors] == list(expected)
    parameters = dict(loaded.named_parameters(remove_duplicate=False))
    for tensor in state.tensors:
        real = expected[tensor.name]
        assert tensor.shape == tuple(real.shape)
        assert f"torch.{tensor.dtype}" == str(real.dtype)
        assert read_bytes(checkpoint, tensor) == bytes(real.contiguous().untyped_storage())
        assert tensor.is_parameter is (tensor.name in parameters), tensor.name
    return checkpoint


def test_a_scripted_model_has_the_weights_that_torch_loads() -> None:
    checkpoint = _check_weights(_scripted())
    assert dict(checkpoint.metadata)["made by"].startswith("torch.jit.script")
    assert dict(checkpoint.metadata)["forward"] == "(x: Tensor, scale: float=1.) -> Tensor"
    tied = {t.name: t.storage_id for t in checkpoint.tensors}
    assert tied["heads.0.weight"] == tied["heads.1.weight"]
    assert "shared-storage" in _ids(checkpoint)


def test_a_tensor_attribute_is_no_part_of_the_state_dict_but_is_shown() -> None:
    checkpoint = open_checkpoint(_scripted())
    (aside,) = [t for t in checkpoint.tensors if t.path[-1] == "aside"]
    assert aside.is_parameter is None
    assert "neither parameter nor buffer" in aside.note
    assert checkpoint.weights is not None
    assert aside not in checkpoint.weights.tensors


def test_a_traced_model_says_what_it_was_traced_with() -> None:
    checkpoint = _check_weights(_traced())
    said = dict(checkpoint.metadata)
    assert said["made by"] == "torch.jit.trace"
    assert said["forward was traced with"] == "1x3x8x8 float32"
    assert said["archive version"].isdigit()


def test_modules_have_their_classes_and_constants() -> None:
    checkpoint = open_checkpoint(_scripted())
    assert checkpoint.weights is not None
    inner = next(c for c in checkpoint.weights.modules.children if c.name == "inner")
    conv = next(c for c in inner.children if c.name == "conv")
    assert conv.kind == "torch.nn.modules.conv.Conv2d"
    assert dict(conv.hyperparameters)["kernel_size"] == "(3, 3)"
    assert dict(conv.hyperparameters)["in_channels"] == "3"


def test_a_frozen_model_keeps_its_weights_among_the_constants() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()).eval()
    frozen = torch.jit.freeze(torch.jit.script(model))
    checkpoint = open_checkpoint(_saved(frozen))
    found = {t.path: t for t in checkpoint.tensors}
    shapes = {path: t.shape for path, t in found.items()}
    assert ("CONSTANTS", "c0") in shapes
    by_shape = {t.shape: read_bytes(checkpoint, t) for t in found.values()}
    assert by_shape[(4, 3, 3, 3)] == model[0].weight.detach().numpy().tobytes()
    assert by_shape[(4,)] == model[0].bias.detach().numpy().tobytes()


def test_a_mobile_archive_says_its_bytecode_version(tmp_path: Path) -> None:
    path = tmp_path / "model.ptl"
    torch.jit.script(Tied().eval())._save_for_lite_interpreter(str(path))
    checkpoint = open_checkpoint(path)
    assert checkpoint.format == "torchscript"
    assert int(dict(checkpoint.metadata)["mobile bytecode version"]) >= 4


def test_code_and_extra_files_are_shown_as_text() -> None:
    data = _scripted(**{"config.json": '{"classes": 3}', "raw": b"\xff\x00\xfe"})
    checkpoint = open_checkpoint(data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {n.partition("/")[2]: archive.read(n).decode() for n in archive.namelist() if n.endswith(".py")}
    assert {s.name: s.text for s in checkpoint.code} == members
    assert dict(checkpoint.metadata)["extra/config.json"] == '{"classes": 3}'
    assert any("extra/raw" in s for s in checkpoint.skipped)


def test_an_ordinary_program_has_nothing_worse_than_a_notice() -> None:
    for data in (_scripted(), _traced()):
        checkpoint = open_checkpoint(data)
        assert all(f.severity in (Severity.NOTICE, Severity.INFO) for f in checkpoint.findings), checkpoint.findings
        assert all(use.verdict is GlobalVerdict.KNOWN for use in checkpoint.globals)
        (said,) = [f for f in checkpoint.findings if f.id == "torchscript"]
        assert "no restricted mode" in said.remedy


@pytest.mark.parametrize(
    ("body", "ident", "name"),
    [
        ('    torch.save(x, "{marker}")\n', "script-reaches-system", "aten::save"),
        ('    torch . \\\n  save(x, "{marker}")\n', "script-reaches-system", "aten::save"),
        ('    ops.aten.save(x, "{marker}")\n', "script-reaches-system", "aten::save"),
        ('    s = torch.save\n    s(x, "{marker}")\n', "script-reaches-system", "aten::save"),
        ('    t = torch\n    t.save(x, "{marker}")\n', "script-hides-operators", ""),
        ('    getattr(torch, "sa" "ve")(x, "{marker}")\n', "script-hides-operators", ""),
        ('    a = ops.aten\n    a.save(x, "{marker}")\n', "script-hides-operators", ""),
        ('    x = torch.add(x, torch.from_file("{marker}", True, 2))\n', "script-reaches-system", "aten::from_file"),
    ],
)
def test_a_program_that_writes_a_file_is_found_however_it_says_so(
    body: str, ident: str, name: str, tmp_path: Path
) -> None:
    marker = tmp_path / "marker"
    data = _with_body(body.replace("{marker}", str(marker)))
    (finding,) = [f for f in open_checkpoint(data).findings if f.id == ident]
    assert finding.severity is Severity.ERROR
    assert not name or finding.subjects == (name,)
    assert "line 8" in finding.says or "line 7" in finding.says
    assert not marker.exists()
    # The oracle: torch itself compiles and runs it, which is why it is said.
    torch.jit.load(io.BytesIO(data))(torch.ones(2))
    assert marker.exists()


@pytest.mark.parametrize(
    ("body", "ident"),
    [
        ("    ops.mylib.run(x)\n", "script-custom-operators"),
        ("    c = __torch__.torch.classes.mylib.Thing(x)\n", "script-custom-operators"),
        ("    c = __torch__.torch.classes.dist_c10d.Store(x)\n", "script-reaches-system"),
        ('    ops.prim.rpc_sync("a", x)\n', "script-reaches-system"),
        ("    ops.c10d.send([x], 0)\n", "script-reaches-system"),
        ("    c = __torch__.torch\n", "script-hides-operators"),
        ('    y = "\n    # " + torch.save(x, "f")\n', "script-hides-operators"),
        ('    print("x")\n', "script-loops"),
        ("    while True:\n      x = x\n", "script-loops"),
    ],
)
def test_what_a_program_calls_beside_arithmetic_is_said(body: str, ident: str) -> None:
    assert ident in _ids(open_checkpoint(_with_body(body)))


@pytest.mark.parametrize(
    "body",
    [
        "    y = ops.quantized.relu6(x, False)\n",
        "    y = torch.relu(x)\n",
        '    y = "torch.save(x)"\n',
        "    # torch.save\n",
    ],
)
def test_arithmetic_texts_and_comments_are_no_operators(body: str) -> None:
    found = _ids(open_checkpoint(_with_body(body)))
    assert not {i for i in found if i.startswith("script-")}


_ASK = """
import json, torch, torch.distributed
print(json.dumps([[s.name, [a.name for a in s.arguments if "str" in str(a.type)]]
                  for s in torch._C._jit_get_all_schemas()]))
"""


def test_the_list_of_operators_fits_the_installed_torch() -> None:
    """A new operator that takes a file name, or a new namespace, must be judged before it passes."""
    # In a fresh process: other tests may have registered operators of their own.
    out = subprocess.run([sys.executable, "-c", _ASK], capture_output=True, text=True, check=True)
    schemas = json.loads(out.stdout)
    names = {name for name, _ in schemas}
    said = ("file", "path", "url", "worker", "addr", "command", "script")
    reaching = {name for name, arguments in schemas if any(word in a for a in arguments for word in said)}
    assert {"aten::save", "aten::from_file"} <= reaching
    assert not {name for name in reaching if not reach_of(name)}
    assert {name for name in REACHING if not name.startswith("debugprims::")} <= names
    assert {name.partition("::")[0] for name in names} <= COMPUTING | NETWORK


def test_a_class_that_the_code_does_not_define_is_unknown() -> None:
    assert all(u.verdict is GlobalVerdict.KNOWN for u in open_checkpoint(_traced()).globals)
    lacking = _rewritten(_traced(), lambda name, content: None if name.startswith("code/") else content)
    unknown = {u.name for u in open_checkpoint(lacking).globals if u.verdict is GlobalVerdict.UNKNOWN}
    assert len(unknown) == 3
    assert all(name.startswith("__torch__.torch.nn.modules.") for name in unknown)


def test_a_payload_in_any_pickle_is_reported_and_never_runs(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    attack = b"\x80\x02" + call("os", "system", f"touch {marker}") + b"."
    for target in ("data.pkl", "constants.pkl", "traced_inputs.pkl"):
        data = _rewritten(_traced(), lambda name, content, target=target: attack if name == target else content)
        checkpoint = open_checkpoint(data)
        assert checkpoint.globals[0].name.endswith(".system"), target
        assert "dangerous-global" in _ids(checkpoint)
    debug = _rewritten(_scripted(), lambda name, content: attack if name.endswith(".debug_pkl") else content)
    assert "dangerous-global" in _ids(open_checkpoint(debug))
    assert not marker.exists()
    assert Payload(marker)


def test_a_pickle_behind_the_main_one_or_in_a_second_archive_is_found(tmp_path: Path) -> None:
    attack = b"\x80\x02" + call("os", "system", f"touch {tmp_path / 'marker'}") + b"."
    behind = _rewritten(_traced(), lambda name, content: content + attack if name == "data.pkl" else content)
    worse = _rewritten(_traced(), lambda name, content: attack if name == "data.pkl" else content)
    for data in (behind, worse + _traced(), _traced() + worse):
        assert any(use.verdict is GlobalVerdict.DANGEROUS for use in open_checkpoint(data).globals)
    assert not (tmp_path / "marker").exists()


def test_code_that_cannot_be_read_or_belongs_to_nothing_is_said() -> None:
    broken = _rewritten(_traced(), lambda name, content: b"\xff\xfe" if name.endswith(".py") else content)
    assert "script-code-unreadable" in _ids(open_checkpoint(broken))
    added = _rewritten(
        _traced(), lambda name, content: content, **{"code/__torch__/other.py": b"class A(Module):\n  pass\n"}
    )
    (finding,) = [f for f in open_checkpoint(added).findings if f.id == "script-code-unused"]
    assert finding.subjects == ("code/__torch__/other.py",)
    assert "script-code-unused" not in _ids(open_checkpoint(_traced()))


def test_a_bomb_among_the_code_is_cut_off() -> None:
    out = io.BytesIO(_traced())
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/code/__torch__/bomb.py", b"#" + b" " * 60_000_000)
    checkpoint = open_checkpoint(out.getvalue())
    assert sum(len(s.text) for s in checkpoint.code) <= 4_000_000
    assert any("not read whole" in s for s in checkpoint.skipped)


def test_a_script_cut_or_changed_anywhere_is_a_checkpoint_or_an_error() -> None:
    data = _traced()
    for cut in range(0, len(data), 97):
        try:
            open_checkpoint(data[:cut])
        except InspectorError:
            continue
    for at in range(0, len(data), 61):
        changed = bytearray(data)
        changed[at] ^= 0x55
        try:
            open_checkpoint(bytes(changed))
        except InspectorError:
            continue
