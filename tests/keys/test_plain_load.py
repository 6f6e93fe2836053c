"""What `model.load_state_dict(torch.load(path))` would do is what it does when it is run, on files of every kind."""

from __future__ import annotations

import argparse
import collections
import gzip
import io
import os
import pickle
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from inspector.architectures.types import Target, TargetKind, TargetTensor
from inspector.checkpoint.data import read_array
from inspector.inspection import inspect
from inspector.keys.diagnose import diagnose
from inspector.keys.plain_load import plain_load
from inspector.overview import Topic, summarise_reports
from inspector.readers import open_checkpoint


def net() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(8, 5))


def state() -> dict[str, Tensor]:
    return dict(net().state_dict())


class Runs:
    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, ("true",)


def saved(value: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer, **options)
    return buffer.getvalue()


def in_safetensors(value: dict[str, Tensor], tmp_path: Path) -> bytes:
    save_file(value, tmp_path / "made.safetensors")
    return (tmp_path / "made.safetensors").read_bytes()


def script() -> bytes:
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(net()), buffer)
    return buffer.getvalue()


def zipped(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("model.pth", data)
    return buffer.getvalue()


def npz() -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **{name: tensor.numpy() for name, tensor in state().items()})
    return buffer.getvalue()


LEGACY = {"_use_new_zipfile_serialization": False}
OLD = {"pickle_protocol": 4}
# Name of the file, its bytes.
FILES: dict[str, Callable[[Path], tuple[str, bytes]]] = {
    "plain": lambda _: ("m.pth", saved(state())),
    "with versions": lambda _: ("m.pth", saved(net().state_dict())),
    "legacy": lambda _: ("m.pth", saved(state(), **LEGACY)),
    "protocol 4": lambda _: ("m.pth", saved(state(), **OLD)),
    "nested": lambda _: ("m.pth", saved({"model": state()})),
    "nested twice, legacy": lambda _: ("m.pth", saved({"a": {"b": state()}}, **LEGACY)),
    "beside an epoch": lambda _: ("m.pth", saved({"state_dict": state(), "epoch": 3})),
    "an epoch among the names": lambda _: ("m.pth", saved({**state(), "epoch": 3})),
    "whole module": lambda _: ("m.pth", saved(net())),
    "whole module, legacy": lambda _: ("m.pth", saved(net(), **LEGACY)),
    "module under a key": lambda _: ("m.pth", saved({"model": net()})),
    "hostile": lambda _: ("m.pth", saved({**state(), "x": Runs()})),
    "numpy values": lambda _: ("m.pth", saved({k: v.numpy() for k, v in state().items()})),
    "arguments beside": lambda _: ("m.pth", saved({"model": state(), "args": collections.Counter()})),
    "half": lambda _: ("m.pth", saved(state())[:-1500]),
    "half, legacy": lambda _: ("m.pth", saved(state(), **LEGACY)[:-300]),
    "safetensors": lambda p: ("m.safetensors", in_safetensors(state(), p)),
    "half a safetensors": lambda p: ("m.safetensors", in_safetensors(state(), p)[:-300]),
    "module. before": lambda _: ("m.pth", saved({f"module.{k}": v for k, v in state().items()})),
    "one is missing": lambda _: ("m.pth", saved({k: v for k, v in state().items() if k != "3.bias"})),
    "other shape": lambda _: ("m.pth", saved({**state(), "3.bias": torch.zeros(6)})),
    "TorchScript": lambda _: ("m.pt", script()),
    "pickle": lambda _: ("m.pkl", pickle.dumps(state())),
    "in a zip": lambda _: ("m.zip", zipped(saved(state()))),
    "gzipped": lambda _: ("m.pth.gz", gzip.compress(saved(state()))),
    "npz": lambda _: ("m.npz", npz()),
    "half precision": lambda _: ("m.pth", saved({k: v.half() for k, v in state().items()})),
    "meta": lambda _: ("m.pth", saved({k: v.to("meta") for k, v in state().items()})),
    "parameters": lambda _: ("m.pth", saved({k: nn.Parameter(v, v.is_floating_point()) for k, v in state().items()})),
}


def packed_again(keep: Callable[[str, bytes], bytes | None] = lambda _, data: data, **more: bytes) -> bytes:
    """The archive of a plain file as another program packs it. more: further members, by name."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(saved(state()))) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            data = keep(name.partition("/")[2], old.read(name))
            if data is not None:
                new.writestr(name, data)
        for name, data in more.items():
            new.writestr(name, data)
    return buffer.getvalue()


def without(*names: str) -> bytes:
    return packed_again(lambda name, data: None if name in names else data)


def instead(member: str, value: bytes) -> bytes:
    return packed_again(lambda name, data: value if name == member else data)


def with_weight(change: Callable[[Tensor], Tensor]) -> bytes:
    return saved({**state(), "3.weight": change(state()["3.weight"])})


def quantised(weight: Tensor) -> Tensor:
    return torch.quantize_per_tensor(weight, 0.1, 0, torch.qint8)


# Found by a stranger: all of them were green.
FILES |= {
    "packed again": lambda _: ("m.pth", packed_again()),
    "packed again, no version": lambda _: ("m.pth", without("version")),
    "packed again, version 99": lambda _: ("m.pth", instead("version", b"99\n")),
    "packed again, empty version": lambda _: ("m.pth", instead("version", b"")),
    "packed again, version 2": lambda _: ("m.pth", instead("version", b"2\n")),
    "packed again, no byte order": lambda _: ("m.pth", without("byteorder")),
    "packed again, odd byte order": lambda _: ("m.pth", instead("byteorder", b"middle")),
    "a file beside the folder": lambda _: ("m.pth", packed_again(**{"readme.txt": b"hello"})),
    "a second folder": lambda _: ("m.pth", packed_again(**{"other/data.pkl": b"hello"})),
    "bytes behind a safetensors": lambda p: ("m.safetensors", in_safetensors(state(), p) + bytes(9)),
    "another format under the name of safetensors": lambda _: ("m.safetensors", saved(state())),
    "a sparse weight": lambda _: ("m.pth", with_weight(Tensor.to_sparse)),
    "a weight in rows": lambda _: ("m.pth", with_weight(Tensor.to_sparse_csr)),
    "a quantised weight": lambda _: ("m.pth", with_weight(quantised)),
}

# A key that is no text: load_state_dict asks each how it begins.
FILES |= {
    f"a key {key!r}": lambda _, key=key: ("m.pth", saved({**state(), key: torch.zeros(2)}))  # type: ignore[misc]
    for key in (7, 1.5, True, None, b"x", ("a", 1))
}
FILES |= {
    "a number as a key, no tensor": lambda _: ("m.pth", saved({**state(), 7: "x"})),
    "a number as a key, legacy": lambda _: ("m.pth", saved({**state(), 7: torch.zeros(2)}, **LEGACY)),
    "under a number": lambda _: ("m.pth", saved({0: state()})),
    "names as Python 2 writes them": lambda _: ("m.pth", with_old_names()),
}
# What lies at the top lies there, whatever lies beside it.
FILES |= {
    "flat, and again under a key": lambda _: ("m.pth", saved({"state_dict": state(), **state()})),
    "flat, then under a key": lambda _: ("m.pth", saved({**state(), "state_dict": state()})),
    "flat, a module beside": lambda _: ("m.pth", saved({**state(), "model": net()})),
    "flat, averages beside": lambda _: ("m.pth", saved({**state(), "ema": {k: v + 1 for k, v in state().items()}})),
    "flat, a larger one beside": lambda _: ("m.pth", saved({**state(), "model": {"w": torch.zeros(9000)}})),
}


def versioned(value: dict[str, Tensor], version: int | None) -> dict[str, Tensor]:
    made = collections.OrderedDict(value)
    made._metadata = {"": {"version": 1}, "1": {"version": version}}  # type: ignore[attr-defined]
    return made


def uncounted() -> dict[str, Tensor]:
    return {name: tensor for name, tensor in state().items() if "num_batches_tracked" not in name}


def one_element(value: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.reshape(1) if not tensor.dim() else tensor for name, tensor in value.items()}


def deleted() -> dict[str, Tensor]:
    found = net().state_dict()
    del found["1.num_batches_tracked"]
    return found


# torch loads what lacks the counters of batch norms, where no version says that they should be there.
FILES |= {
    "no counters": lambda _: ("m.pth", saved(uncounted())),
    "no counters, version 1": lambda _: ("m.pth", saved(versioned(uncounted(), 1))),
    "no counters, version 2": lambda _: ("m.pth", saved(versioned(uncounted(), 2))),
    "no counters, no version": lambda _: ("m.pth", saved(versioned(uncounted(), None))),
    "no counters, of a state dict": lambda _: ("m.pth", saved(deleted())),
    "no counters, legacy": lambda _: ("m.pth", saved(uncounted(), **LEGACY)),
    "no counters, safetensors": lambda p: ("m.safetensors", in_safetensors(uncounted(), p)),
    "no counters, and one more": lambda _: ("m.pth", saved({**uncounted(), "x": torch.zeros(1)})),
    "no counters and no mean": lambda _: ("m.pth", saved({k: v for k, v in uncounted().items() if "mean" not in k})),
    "counters of one element": lambda _: ("m.pth", saved(one_element(state()))),
    "counters of one element, version 2": lambda _: ("m.pth", saved(versioned(one_element(state()), 2))),
    "counters of 1x1": lambda _: ("m.pth", saved({**state(), "1.num_batches_tracked": torch.zeros(1, 1)})),
    "no counters but a wrapper": lambda _: ("m.pth", saved({f"module.{k}": v for k, v in uncounted().items()})),
}


class Named(collections.OrderedDict):  # type: ignore[type-arg]
    """A dict of a class that nobody here knows."""


def optimizer() -> torch.optim.Optimizer:
    model = net()
    made = torch.optim.Adam(model.parameters())
    model(torch.zeros(2, 3, 3, 3)).sum().backward()
    made.step()
    return made


# Without weights by name: there was no sentence at all.
WITHOUT: dict[str, Any] = {
    "a list of tensors": lambda: list(state().values()),
    "a list of pairs": lambda: list(state().items()),
    "a tensor": lambda: torch.zeros(3),
    "a parameter": lambda: nn.Parameter(torch.zeros(3)),
    "a number": lambda: 3,
    "nothing": lambda: None,
    "a text": lambda: "weights",
    "an empty dict": dict,
    "numbers for names": lambda: dict(enumerate(state().values())),
    "bytes for names": lambda: {name.encode(): tensor for name, tensor in state().items()},
    "an epoch": lambda: {"epoch": 3},
    "a size": lambda: torch.Size([3]),
    "a schedule": lambda: torch.optim.lr_scheduler.StepLR(optimizer(), 3).state_dict(),
    "an optimizer's state": lambda: optimizer().state_dict(),
    "an optimizer": optimizer,
    "an optimizer that has done nothing": lambda: torch.optim.SGD(net().parameters(), 0.1),
    "a schedule with its optimizer": lambda: torch.optim.lr_scheduler.StepLR(optimizer(), 3),
    "a dataset": lambda: torch.utils.data.TensorDataset(torch.zeros(3, 2)),
    "an array": lambda: np.zeros(3),
}


def with_metadata(metadata: Any, value: dict[str, Tensor], **more: Any) -> dict[str, Tensor]:
    made = collections.OrderedDict(value)
    vars(made).update(_metadata=metadata, **more)
    return made


# Of a second stranger. What else stands beside _metadata, or in it, hides no version; what torch cannot read ends it.
METADATA: dict[str, Any] = {
    "a text for a version": {"1": {"version": "2"}},
    "nothing for a module": {"1": None},
    "a list": [1],
    "None": None,
    "a number for a module's name": {1: {"version": 2}},
    "half a version": {"1": {"version": 1.5}},
    "another module's": {"0": {"version": 2}},
    "more in an entry": {"1": {"version": 2, "x": [1]}},
}
FILES |= {
    f"metadata, {kind}": lambda _, value=value: ("m.pth", saved(with_metadata(value, uncounted())))  # type: ignore[misc]
    for kind, value in METADATA.items()
}
FILES |= {
    "metadata beside another attribute": lambda _: (
        "m.pth", saved(with_metadata({"1": {"version": 2}}, uncounted(), other=1))
    ),
    "safetensors under the name of pth": lambda p: ("m.pth", in_safetensors(state(), p)),
    "safetensors under another name": lambda p: ("m.sft", in_safetensors(state(), p)),
    "another archive in front": lambda _: ("m.pth", saved({"x": torch.zeros(60_000)}) + renamed(str)),
    "a small archive in front": lambda _: ("m.pth", renamed(without_folder) + saved({**state(), "x": 1})),
    "a Mac's folder with a pickle": lambda _: ("m.pth", renamed(str, first="__MACOSX/data.pkl")),
}  # fmt: skip


def renamed(change: Callable[[str], str], first: str = "") -> bytes:
    """The archive of a plain file with other names of its members. first: a member that comes before them."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(saved(state()))) as old, zipfile.ZipFile(buffer, "w") as new:
        if first:
            new.writestr(first, b"x")
        for name in old.namelist():
            new.writestr(change(name), old.read(name))
    return buffer.getvalue()


def without_folder(name: str) -> str:
    return name.partition("/")[2]


# Packed again: their numbers are there, and torch looks in the folder of the first record alone.
REPACKED: dict[str, Callable[[], bytes]] = {
    "another folder": lambda: renamed(lambda name: "other/" + without_folder(name)),
    "no folder": lambda: renamed(without_folder),
    "a folder more": lambda: renamed(lambda name: "ckpt/" + name),
    "a dot before": lambda: renamed(lambda name: "./" + name),
    "a stroke before": lambda: renamed(lambda name: "/" + name),
    "a Mac's folder first": lambda: renamed(str, first="__MACOSX/archive/._data.pkl"),
    "a Mac's folder first, no folder": lambda: renamed(without_folder, first="__MACOSX/._data.pkl"),
    "a Mac's file first": lambda: renamed(str, first=".DS_Store"),
    "a text first": lambda: renamed(str, first="README.txt"),
    "the folder first": lambda: renamed(str, first="archive/"),
    "a little behind": lambda: saved(state()) + bytes(60_000),
    "much behind": lambda: saved(state()) + bytes(200_000),
    "without its last bytes": lambda: saved(state())[:-10],
}
FILES |= {"a dict of an unknown class": lambda _: ("m.pth", saved(Named(state())))}
FILES |= {"a counter that is a number": lambda _: ("m.pth", saved({**state(), "1.num_batches_tracked": 3}))}
FILES |= {f"packed again, {kind}": lambda _, make=make: ("m.pth", make()) for kind, make in REPACKED.items()}  # type: ignore[misc]


def with_old_names() -> bytes:
    """The plain file with the strings of Python 2 (SHORT_BINSTRING) as names."""

    def old(data: bytes) -> bytes:
        for name in state():
            new = b"X" + len(name).to_bytes(4, "little") + name.encode()
            assert data.count(new) == 1
            data = data.replace(new, b"U" + len(name).to_bytes(1, "little") + name.encode())
        return data

    return packed_again(lambda name, data: old(data) if name == "data.pkl" else data)


def really_loads(path: Path) -> bool:
    """The two lines themselves."""
    try:
        read = torch.load(path)
        net().load_state_dict(read)
    except (
        RuntimeError,
        TypeError,
        ValueError,
        AttributeError,
        OSError,
        EOFError,
        pickle.UnpicklingError,
        SafetensorError,
    ):
        return False
    return True


def target() -> Target:
    tensors = tuple(
        TargetTensor(name=name, shape=tuple(tensor.shape), dtype=str(tensor.dtype).removeprefix("torch."))
        for name, tensor in state().items()
    )
    return Target(label="net", kind=TargetKind.CODE, tensors=tensors)


@pytest.mark.parametrize("kind", FILES)
def test_the_answer_is_what_happens(kind: str, tmp_path: Path) -> None:
    name, data = FILES[kind](tmp_path)
    path = tmp_path / name
    path.write_bytes(data)
    checkpoint = open_checkpoint(path)
    weights = checkpoint.weights
    assert weights is not None
    report = diagnose(checkpoint, target())
    expected = not plain_load(checkpoint, weights).obstacles and report.loads
    assert expected == really_loads(path), plain_load(checkpoint, weights)


@pytest.mark.parametrize(
    "kind", ["nested", "whole module", "hostile", "half", "TorchScript", "in a zip", "numpy values"]
)
def test_the_diagnosis_does_not_say_that_nothing_needs_doing(kind: str, tmp_path: Path) -> None:
    name, data = FILES[kind](tmp_path)
    (tmp_path / name).write_bytes(data)
    says = diagnose(open_checkpoint(tmp_path / name), target()).says
    assert "no name or shape needs repair" not in says
    assert "but a plain load fails" in says or " But torch.load ends with" in says or "is left out" in says


def test_a_repacked_archive_says_what_torch_says_and_that_the_numbers_are_here(tmp_path: Path) -> None:
    says = said_of(without("version"), "m.pth", tmp_path)
    assert says.startswith('Fails as it is: torch.load ends with "Expected hasRecord("version")')
    says = said_of(with_weight(Tensor.to_sparse), "m.pth", tmp_path)
    assert "1 tensor is sparse (3.weight), which load_state_dict does not copy" in says
    assert "no name or shape needs repair" not in says


def test_a_list_is_indexed_by_a_number_and_a_refusal_is_said_once(tmp_path: Path) -> None:
    assert "the weights lie under [0]['net'], not at the top" in said_of(saved([{"net": state()}]), "m.pth", tmp_path)
    says = said_of(in_safetensors(state(), tmp_path) + bytes(9), "m.safetensors", tmp_path)
    assert says.count("incomplete metadata") == 1 and "torch" not in says


@pytest.mark.parametrize("kind", ["packed again, no version", "a second folder", "bytes behind a safetensors"])
def test_the_lines_for_what_no_loader_reads_export_it_first(kind: str, tmp_path: Path) -> None:
    name, data = FILES[kind](tmp_path)
    (tmp_path / name).write_bytes(data)
    report = diagnose(open_checkpoint(tmp_path / name), target())
    assert report.plan is not None and report.plan.format == ""


def test_files_of_an_older_torch_were_refused_though_torch_loads_them(tmp_path: Path) -> None:
    assert said_of(saved(uncounted()), "m.pth", tmp_path) == (
        "8 of 9 tensors fit net as they are; 1 num_batches_tracked that the file lacks stays as the model has it."
    )
    assert said_of(saved(one_element(state())), "m.pth", tmp_path) == (
        "All 9 tensors fit net as they are; 1 tensor of one element is taken for a number."
    )
    (tmp_path / "m.pth").write_bytes(saved(uncounted()))
    assert diagnose(open_checkpoint(tmp_path / "m.pth"), target()).says.startswith("8 of 9 tensors fit net as they are")
    assert "Fails as it is. 8 of 9" in said_of(saved(deleted()), "m.pth", tmp_path)


@pytest.mark.parametrize("kind", WITHOUT)
def test_a_file_without_named_weights_has_a_sentence_and_it_is_so(kind: str, tmp_path: Path) -> None:
    says = said_of(saved(WITHOUT[kind]()), "m.pth", tmp_path)
    assert says.startswith("Fails as it is: ")
    try:
        read, error = torch.load(tmp_path / "m.pth"), ""
        net().load_state_dict(read)
    except (RuntimeError, TypeError, AttributeError, pickle.UnpicklingError) as caught:
        error = str(caught)
    assert error
    quoted = re.search(r'(?:says|ends with) "(.+?)"', says)
    assert quoted is None or quoted[1].replace("'", "") in error.replace("'", ""), error


@pytest.mark.parametrize("kind", [kind for kind in WITHOUT if "optimizer" in kind and "state" not in kind])
def test_a_pickled_optimizer_is_no_network(kind: str, tmp_path: Path) -> None:
    (tmp_path / "m.pth").write_bytes(saved(WITHOUT[kind]()))
    checkpoint = open_checkpoint(tmp_path / "m.pth")
    assert checkpoint.weights is None
    model = next(a.says for a in summarise_reports(inspect(checkpoint)).answers if a.topic is Topic.MODEL)
    tensors, kind = (24, "Adam") if "nothing" not in kind else (6, "SGD")
    assert model.startswith(f"This is only an optimizer ({kind}, {tensors} tensors): 6 parameters of a network are in")


def test_a_dict_of_an_unknown_class_is_a_state_dict(tmp_path: Path) -> None:
    (tmp_path / "m.pth").write_bytes(saved(Named({**state(), "epoch": 3, 7: torch.zeros(2)})))
    weights = open_checkpoint(tmp_path / "m.pth").weights
    assert weights is not None and [t.name for t in weights.tensors] == list(state())
    assert (weights.others, weights.odd_keys) == (("epoch",), (("7", "int"),))


def test_a_key_that_is_no_text_was_green(tmp_path: Path) -> None:
    says = said_of(saved({**state(), 7: torch.zeros(2), None: 1}), "m.pth", tmp_path)
    assert "load_state_dict ends with \"'int' object has no attribute 'startswith'\"" in says
    assert "once 2 keys that are no text (7, None) are left out" in says
    with pytest.raises(AttributeError, match="'int' object has no attribute 'startswith'"):
        net().load_state_dict(torch.load(tmp_path / "m.pth"))


def test_of_two_archives_in_a_row_torch_reads_none_and_that_is_said(tmp_path: Path) -> None:
    says = said_of(renamed(str, first="archive/x") + renamed(without_folder), "m.pth", tmp_path)
    assert "invalid header or archive is corrupted" in says or "all 9 tensors fit net" in says
    data = saved({"x": torch.zeros(60_000)}) + renamed(lambda name: "other/" + without_folder(name))
    says = said_of(data, "m.pth", tmp_path)
    with pytest.raises(RuntimeError, match="invalid header or archive is corrupted"):
        torch.load(tmp_path / "m.pth")
    assert 'torch.load ends with "PytorchStreamReader failed reading zip archive: invalid header' in says


def test_weights_under_a_number_are_reached_by_the_number(tmp_path: Path) -> None:
    assert "the weights lie under [0], not at the top" in said_of(saved({0: state()}), "m.pth", tmp_path)
    (tmp_path / "n.pth").write_bytes(saved({"nets": {1: state()}}))
    report = diagnose(open_checkpoint(tmp_path / "n.pth"), target())
    assert report.plan is not None and report.plan.access == ("nets", 1)


def test_the_number_1_and_the_text_1_are_two_keys(tmp_path: Path) -> None:
    (tmp_path / "m.pth").write_bytes(saved({1: torch.zeros(2), "1": torch.ones(3), 2: torch.zeros(4)}))
    checkpoint = open_checkpoint(tmp_path / "m.pth")
    assert {t.name: t.shape for t in checkpoint.tensors} == {"1 (int)": (2,), "1": (3,), "2": (4,)}
    assert checkpoint.weights is not None
    assert checkpoint.weights.odd_keys == (("1", "int"), ("2", "int"))


def test_weights_at_the_top_are_not_said_to_lie_elsewhere(tmp_path: Path) -> None:
    for value in ({"state_dict": state(), **state()}, {**state(), "model": net()}):
        says = said_of(saved(value), "m.pth", tmp_path)
        assert "not at the top" not in says
        assert "once 1 value that is no tensor" in says
    larger = {**state(), "model": {k: v.double() for k, v in state().items()}}
    says = said_of(saved(larger), "m.pth", tmp_path)
    assert "the weights taken lie under ['model']; 9 tensors at the top are refused for what lies beside them" in says


@pytest.mark.parametrize("kind", REPACKED)
def test_an_archive_packed_again_says_torchs_words_and_reads_every_number(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "m.pth"
    path.write_bytes(REPACKED[kind]())
    try:
        torch.load(path)
        words = ""
    except (RuntimeError, OSError) as error:
        words = str(error)
    says = said_of(path.read_bytes(), "m.pth", tmp_path)
    quoted = re.search(r'torch\.load ends with "(.+?)\.?"(:|\. By)', says)
    assert (quoted is not None) == bool(words), says
    assert quoted is None or quoted[1] in words
    assert "all 9 tensors fit net" in says or "All 9 tensors fit net as they are" in says
    checkpoint = open_checkpoint(path)
    assert checkpoint.format == "torch-zip"
    for info in checkpoint.weights.tensors if checkpoint.weights else ():
        assert np.array_equal(read_array(checkpoint, info), state()[info.name].numpy())


def test_bytes_behind_an_archive_are_not_called_cut_short(tmp_path: Path) -> None:
    (tmp_path / "m.pth").write_bytes(saved(state()) + bytes(200_000))
    checkpoint = open_checkpoint(tmp_path / "m.pth")
    assert {f.id for f in checkpoint.findings} >= {"refused-archive", "trailing-data"}
    assert "cut-short" not in {f.id for f in checkpoint.findings}
    says = said_of(saved(state()) + bytes(200_000), "m.pth", tmp_path)
    assert "200 kB lie behind the archive, and torch does not look so far back for its end" in says


def test_half_a_file_under_a_wrapper_is_not_just_lossless(tmp_path: Path) -> None:
    data = saved({f"module.{name}": tensor for name, tensor in state().items()})[:-1500]
    (tmp_path / "m.pth").write_bytes(data)
    report = diagnose(open_checkpoint(tmp_path / "m.pth"), target())
    assert report.compared.endswith("of the file's tensors are not whole.")
    assert "But torch.load ends with" in report.says


def said_of(data: bytes, name: str, tmp_path: Path) -> str:
    (tmp_path / name).write_bytes(data)
    checkpoint = open_checkpoint(tmp_path / name)
    answers = summarise_reports(inspect(checkpoint, target=target())).answers
    return next(answer.says for answer in answers if answer.topic is Topic.LOADING)


def test_what_only_newer_torch_refuses_is_not_said_of_older_ones(tmp_path: Path) -> None:
    says = said_of(saved(state(), **OLD), "m.pth", tmp_path)
    assert says.startswith('Fails as it is: torch.load says "Unsupported operand 149" since torch 2.6.')
    assert says.endswith("a torch before 2.6 loads it as it is.")
    nested = said_of(saved({"model": state(), "args": argparse.Namespace()}), "n.pth", tmp_path)
    assert "since torch 2.6; the weights lie under ['model']" in nested and "loads it as it is" not in nested


def test_a_plain_pickle_is_refused_by_every_torch(tmp_path: Path) -> None:
    says = said_of(pickle.dumps(state()), "m.pkl", tmp_path)
    assert 'since torch 2.6, and before "Invalid magic number; corrupt file?"' in says
    assert "loads it as it is" not in says


@pytest.mark.parametrize("suffix", ["pth", "safetensors"])
def test_types_that_older_torch_has_not_say_which_one_is_needed(suffix: str, tmp_path: Path) -> None:
    eight = {k: v.to(torch.float8_e4m3fn) if v.is_floating_point() else v for k, v in state().items()}
    data = saved(eight) if suffix == "pth" else in_safetensors(eight, tmp_path)
    assert "it needs torch 2.2 or later" in said_of(data, f"m.{suffix}", tmp_path)
    half = {k: v.half() for k, v in state().items()}
    assert "or later" not in said_of(saved(half), "h.pth", tmp_path)
