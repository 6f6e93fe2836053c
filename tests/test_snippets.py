"""Every snippet is run, on the very file that it speaks of: lines that load it or allow names, lines for pasted errors,
the README's. Nothing in them reaches for the network."""

from __future__ import annotations

import re
import shlex
import socket
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from benchmarks.plain_load.files import FILES, network, plain, saved, write
from inspector.architectures.building_lines import building_lines
from inspector.architectures.index import load_index
from inspector.architectures.recognise import recognise
from inspector.architectures.targets import parse_target, target_of, target_of_candidate
from inspector.architectures.types import ArchitectureSpec, Target
from inspector.checkpoint.types import Checkpoint
from inspector.cli.main import run
from inspector.error_messages.explain import MESSAGES, explain_error
from inspector.error_messages.message import Message
from inspector.errors import ExportError
from inspector.keys.code import python_code
from inspector.keys.diagnose import diagnose
from inspector.keys.report import KeyReport
from inspector.readers import open_checkpoint

README = Path(__file__).resolve().parents[1] / "README.md"
# What `make test` runs of the forty; the others wait for `make thorough`.
FEW = (
    *("DataParallel", "checkpoint with optimizer", "timm's training", "safetensors", "shards with an index", "npz"),
    *("whole module", "ONNX", "half a file", "hostile", "in a zip", "parameters alone"),
)
SOME_NUMBERS_LOST = {"half a file", "half a legacy file", "no numbers"}


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a snippet reached for the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch announces the ends of its older formats
        yield


def target_for(checkpoint: Checkpoint, folder: Path) -> Target:
    """The recognised network, else the state dict of the unnamed one, as a file."""
    best = recognise(checkpoint).best
    if best is not None:
        return target_of_candidate(best)
    torch.save(plain().state_dict(), folder / "own.pth")
    return parse_target(f"file:{folder / 'own.pth'}", open_file=open_checkpoint)


def report_of(kind: str, folder: Path) -> tuple[Checkpoint, Target, KeyReport]:
    checkpoint = open_checkpoint(write(FILES[kind], folder))
    target = target_for(checkpoint, folder)
    return checkpoint, target, diagnose(checkpoint, target, accept=("running-statistics",))


def run_lines(code: str, names: dict[str, Any]) -> dict[str, Any]:
    """The shell's lines first, as they stand in its comments."""
    for line in re.findall(r"^#   (python -m inspector .*)$", code, re.MULTILINE):
        assert run(shlex.split(line)[3:]) == 0, line
    exec(code, names)
    return names


# Not a network's weights, or of another network than either of the two.
NO_LINES = {"PEFT adapter", "optimizer alone", "list of tensors", "quantised"}
CAST = {
    **dict.fromkeys(("half precision", "class of a repository"), torch.float16),
    "bfloat16": torch.bfloat16,
    "8-bit floats": torch.float8_e4m3fn,
}


@pytest.mark.parametrize("kind", [kind for kind in FILES if kind not in NO_LINES])
def test_the_lines_for_a_file_load_it(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, thorough: bool
) -> None:
    if not thorough and kind not in FEW:
        pytest.skip("runs with --thorough")
    monkeypatch.chdir(tmp_path)
    checkpoint, target, report = report_of(kind, tmp_path)
    assert report.plan is not None and report.plan.complete, report.says
    if kind in SOME_NUMBERS_LOST:
        with pytest.raises(ExportError, match="No lines load this file"):
            python_code(report.plan, file_name=checkpoint.origin.name, spec=target.spec)
        return
    code = python_code(report.plan, file_name=checkpoint.origin.name, spec=target.spec)
    if target.spec is not None:
        model, expected = run_lines(code, {})["model"], network()
    else:
        model, expected = plain().apply(_forget), plain()
        run_lines(code, {"model": model})
    for name, tensor in expected.state_dict().items():
        if kind == "parameters alone" and "running_" in name:
            continue
        own = model.state_dict()[name]
        written = tensor.to(CAST.get(kind, tensor.dtype)) if tensor.is_floating_point() else tensor
        assert torch.equal(own, written.to(own.dtype)), name


def _forget(module: nn.Module) -> None:
    for parameter in module.parameters(recurse=False):
        nn.init.zeros_(parameter)


SPECS = (
    ArchitectureSpec(library="torchvision", name="resnet18", num_classes=3, in_channels=1),
    ArchitectureSpec(library="torchvision", name="googlenet", in_channels=1, options=(("aux_logits", False),)),
    ArchitectureSpec(library="torchvision", name="inception_v3", num_classes=4),
    ArchitectureSpec(library="torchvision", name="vit_b_16", num_classes=4, options=(("image_size", 96),)),
    ArchitectureSpec(library="torchvision", name="fcn_resnet50", num_classes=4, options=(("aux_loss", True),)),
    ArchitectureSpec(library="torchvision", name="ssdlite320_mobilenet_v3_large", num_classes=4),
    ArchitectureSpec(library="torchvision", name="r3d_18", num_classes=4, in_channels=2),
)


def built_by_lines(spec: ArchitectureSpec) -> nn.Module:
    built = building_lines(spec)
    assert built is not None
    names: dict[str, Any] = {"torch": torch}
    with torch.device("meta"):
        exec("\n".join((f"import {built.module}", *built.lines)), names)
    model: nn.Module = names["model"]
    return model


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.label)
def test_the_lines_of_a_recognised_network_build_it(spec: ArchitectureSpec) -> None:
    own = {name: tuple(tensor.shape) for name, tensor in built_by_lines(spec).state_dict().items()}
    assert own == {tensor.name: tensor.shape for tensor in target_of(spec).tensors}


def test_the_lines_of_every_builder_of_torchvision_are_a_call_it_takes(thorough: bool) -> None:
    import inspect

    from torchvision.models import get_model_builder

    entries = {e.name: e for group in load_index().of_layout for e in group if e.library == "torchvision"}
    assert len(entries) > 80
    for name, entry in entries.items():
        spec = ArchitectureSpec(library="torchvision", name=name, num_classes=entry.num_classes)
        built = building_lines(spec)
        assert built is not None
        arguments = dict(re.findall(r", (\w+)=([^,)]+)", built.lines[0]))
        parameters = inspect.signature(get_model_builder(name)).parameters
        takes_others = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
        assert takes_others or set(arguments) <= set(parameters), name
        assert "weights_backbone" not in parameters or arguments["weights_backbone"] == "None", name
        if thorough and not name.startswith(("regnet", "quantized_")):
            own = built_by_lines(spec).state_dict()
            assert set(own) == {tensor.name for tensor in target_of(spec).tensors}, name


REFUSED = [
    *("timm's training", "a number of numpy beside", "a date and an enum beside", "whole module", "numpy values"),
    "defaultdict of two networks",
]


@pytest.mark.parametrize("kind", REFUSED)
def test_the_remedy_that_allows_names_loads_the_file(kind: str, tmp_path: Path) -> None:
    path = write(FILES[kind], tmp_path)
    (remedy,) = [f.remedy for f in open_checkpoint(path).findings if f.id == "weights-only-refuses"]
    found = re.search(r"(import [\w., ]+; )?torch\.serialization\.add_safe_globals\(\[.*\]\)", remedy)
    if found is None and "defaultdict" in kind:
        assert "save it again as a plain dict" in remedy
        return
    if found is None:
        assert "numpy" in kind and "the error that torch.load gives" in remedy
        return
    try:
        exec(found[0], {"torch": torch})
        torch.load(path)
    finally:
        torch.serialization.clear_safe_globals()


class Lightning(nn.Sequential):
    @classmethod
    def load_from_checkpoint(cls, path: str, cfg: object) -> Lightning:
        return cls()


def small() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))


def context_of(kind: str, folder: Path) -> dict[str, Any]:
    """What the reader of an error has in the script: a model, its state dict, a file of the kind the error is about."""
    from safetensors.torch import save_file

    model = small()
    values: Any = model.state_dict()
    if kind in ("whole-checkpoint", "lightning-checkpoint"):
        values = {"state_dict": values, "epoch": 3}
    path = folder / "m.pth"
    path.write_bytes(saved(values))
    names: dict[str, Any] = {"torch": torch, "model": model, "state": dict(model.state_dict()), "path": str(path)}
    names |= {"loaded": small(), "inputs": torch.ones(1, 3), "new_path": str(folder / "new.pth")}
    if kind == "torchscript-weights-only":
        torch.jit.save(torch.jit.script(model), path)
    if kind == "safetensors-without-format":
        save_file(names["state"], folder / "m.safetensors")
        names["path"] = str(folder / "m.safetensors")
    if kind in ("old-wrapper", "wrapped-attribute"):
        names["model"] = nn.DataParallel(model)
        model.fc = nn.Linear(2, 2)
    if kind == "lightning-arguments":
        names["model"] = Lightning()
    names["stream"] = path.open("rb")
    return names


# One that moves the model to a GPU, which is not everywhere.
NEEDS_A_GPU = {"parallel-device"}
PATCHED = [message for message in MESSAGES if any(error.patch for error in explain_error(message.example).errors)]


@pytest.mark.parametrize("message", PATCHED, ids=lambda message: message.kind)
def test_the_lines_for_a_pasted_error_run(message: Message, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if message.kind in NEEDS_A_GPU and not torch.cuda.is_available():
        pytest.skip("it needs a GPU")
    patches = [error.patch for error in explain_error(message.example).errors if error.patch]
    failed: list[str] = []
    for patch in patches:
        kinds = (message.kind, "whole-checkpoint")  # lines that look into a training checkpoint have one
        for place, kind in enumerate(kinds):
            (tmp_path / str(place)).mkdir(exist_ok=True)
            names = context_of(kind, tmp_path / str(place))
            try:
                exec(patch, names)
                break
            except (KeyError, RuntimeError, AttributeError, NameError) as error:
                failed.append(f"{kind}: {error!r}")
            finally:
                names["stream"].close()
        else:
            raise AssertionError("\n".join((patch, *failed)))


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_readmes_lines_do_what_they_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from PIL import Image

    monkeypatch.chdir(tmp_path)
    write(FILES["DataParallel"], tmp_path).rename("model.pth.tar")
    Image.effect_noise((64, 64), 60).convert("RGB").save("dog.jpg")
    found: list[Callable[[], None]] = []
    for block in blocks():
        exec(block, {"found": found})
    assert 'All 338 tensors fit once "module." is dropped. Lossless.' in capsys.readouterr().out
    assert (tmp_path / "fixed.safetensors").exists() and (tmp_path / "overlay.png").exists()
