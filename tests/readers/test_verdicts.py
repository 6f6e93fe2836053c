"""Verdicts on names: none is known by its look, and ordinary files raise no alarm."""

from __future__ import annotations

import argparse
import builtins
import collections
import datetime
import decimal
import importlib
import io
import pathlib
import pkgutil
import uuid
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
import torchvision
from torch._weights_only_unpickler import _get_allowed_globals
from torch.distributed.checkpoint.metadata import Metadata, TensorProperties

from inspector.checkpoint.types import Checkpoint, GlobalVerdict
from inspector.findings import Severity
from inspector.readers import open_checkpoint
from inspector.readers.unpickle.verdict_lists import KNOWN_CLASS_MODULES, KNOWN_CLASS_NAME
from inspector.readers.unpickle.verdicts import judge, weights_only_allows


def verdicts(checkpoint: Checkpoint) -> set[GlobalVerdict]:
    return {g.verdict for g in checkpoint.globals}


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("torch.nn.modules.conv", "Conv2d.__init__.__globals__"),
        ("torch.nn.modules.module", "os"),
        ("torch.nn.modules.module", "torch.hub.load"),
        ("torch.nn.modules.container", "operator.attrgetter"),
        ("torch.nn.modules.linear", "F"),
        ("torch.nn.modules.rnn", "_VF"),
        ("torch.nn.modules.conv", "Conv2d.load_state_dict"),
        ("torch.optim.lr_scheduler", "types.FunctionType"),
        ("torch.optim.optimizer", "functools.partial"),
        ("torch.optim", "lr_scheduler.types.CodeType"),
        ("torchvision.models.resnet", "partial"),
        ("torchvision.models.resnet", "torch.load"),
        ("torchvision.models.resnet", "_resnet"),
        ("torchvision.models.feature_extraction", "GraphModule"),
        ("torch.ao.nn.quantized.modules.conv", "torch.hub.load"),
        ("torch.nn.quantized.modules", "torch.jit.load"),
        ("__torch__", "a.b.os.system"),
        ("torch", "storage._load_from_bytes"),
        ("torch.library", "os.system"),
        ("torch._utils", "sys.modules"),
        ("collections", "_sys.modules"),
        ("collections", "OrderedDict.__class__"),
        ("numpy", "__builtins__"),
        ("numpy", "size.__globals__"),
    ],
)
def test_names_that_wear_a_known_one(module: str, name: str) -> None:
    assert judge(module, name)[0] is not GlobalVerdict.KNOWN


def test_modules_known_by_their_look_hold_no_class_from_elsewhere() -> None:
    """Every name that the patterns let pass, asked of the installed torch and torchvision for where it comes from."""
    ours = ("torch", "torchvision", "typing", "typing_extensions", "collections", "enum", "builtins", "types")
    strangers, seen = set(), 0
    for package in (torch.nn.modules, torch.optim, torchvision.models, torchvision.ops, torch.ao.nn):
        names = [package.__name__, *(m.name for m in pkgutil.walk_packages(package.__path__, package.__name__ + "."))]
        for name in filter(KNOWN_CLASS_MODULES.fullmatch, names):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                module = importlib.import_module(name)
            for attribute, value in vars(module).items():
                if not KNOWN_CLASS_NAME.fullmatch(attribute):
                    continue
                seen += 1
                home = str(getattr(value, "__module__", None) or type(value).__module__)
                risky = isinstance(value, type) and attribute in ("FunctionType", "CodeType", "MethodType", "Popen")
                if home.partition(".")[0] not in ours or risky or isinstance(value, type(torch)):
                    strangers.add((name, attribute, home))
    assert seen > 500 and not strangers


# -- the quiet twins --------------------------------------------------------------------------------------------------


def test_ordinary_files_raise_no_alarm(tmp_path: Path) -> None:
    values = {
        "numpy": [np.float64(1.5), np.int64(3), np.arange(4), np.random.default_rng(0).bit_generator.state],
        "namespace": argparse.Namespace(lr=0.1, path=pathlib.Path("runs")),
        "time": [datetime.datetime(2024, 1, 2), datetime.timedelta(1), datetime.date(2024, 1, 1)],
        "other": [decimal.Decimal("1.5"), uuid.UUID(int=5), collections.Counter("aab"), {1, 2}, slice(1, 2), 1j],
        "buffer": io.BytesIO(b"x"),
        "metadata": Metadata({}),
        "properties": TensorProperties(),
    }

    for name, value in values.items():
        torch.save({"w": torch.ones(2), name: value}, tmp_path / "a.pt")
        checkpoint = open_checkpoint(tmp_path / "a.pt")
        assert verdicts(checkpoint) == {GlobalVerdict.KNOWN}, (name, checkpoint.globals)


def test_an_enumeration_of_a_project_is_unknown_and_no_alarm(tmp_path: Path) -> None:

    torch.save({"w": torch.ones(2), "mode": torchvision.transforms.InterpolationMode.BILINEAR}, tmp_path / "a.pt")
    assert GlobalVerdict.DANGEROUS not in verdicts(open_checkpoint(tmp_path / "a.pt"))


@pytest.mark.parametrize("name", ["resnet18", "convnext_tiny", "swin_t", "mobilenet_v3_small", "densenet121"])
def test_whole_models_raise_no_alarm(name: str, tmp_path: Path) -> None:
    with torch.device("meta"):
        model = getattr(torchvision.models, name)()
    torch.save(model, tmp_path / "m.pt")
    assert GlobalVerdict.DANGEROUS not in verdicts(open_checkpoint(tmp_path / "m.pt"))


def test_whole_modules_optimizers_and_schedulers_are_known(tmp_path: Path) -> None:
    layers = [torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.LSTM(4, 4), torch.nn.MultiheadAttention(4, 2)]
    model = torch.nn.Sequential(*layers, torch.nn.TransformerEncoderLayer(4, 2, 8))
    torch.save(model, tmp_path / "m.pt")
    assert verdicts(open_checkpoint(tmp_path / "m.pt")) == {GlobalVerdict.KNOWN}
    optimizer = torch.optim.AdamW(model.parameters())
    torch.save({"o": optimizer, "s": torch.optim.lr_scheduler.StepLR(optimizer, 3).state_dict()}, tmp_path / "o.pt")
    assert GlobalVerdict.DANGEROUS not in verdicts(open_checkpoint(tmp_path / "o.pt"))


def test_what_weights_only_allows_is_what_torch_allows() -> None:
    """The installed torch's own list, name by name; and none of it is a stranger here."""
    names = [name.rpartition(".")[::2] for name in _get_allowed_globals()]
    assert [n for n in names if not weights_only_allows(*n)] == []
    assert [n for n in names if judge(*n)[0] is not GlobalVerdict.KNOWN] == []
    allowed = set(_get_allowed_globals())
    for full in (
        "builtins.slice",
        "torch._utils._rebuild_nested_tensor",
        "torch._utils._rebuild_sparse_csr_tensor",
        "torch.storage._UntypedStorage",
        "numpy.dtype",
        "collections.defaultdict",
        "torch.cuda.QInt8Storage",
    ):
        assert full not in allowed and not weights_only_allows(*full.rpartition(".")[::2]), full


@pytest.mark.parametrize("name", ["Ellipsis", "NotImplemented", "len", "ValueError", "ExceptionGroup", "memoryview"])
def test_a_builtin_that_only_makes_or_measures_data_is_harmless(name: str) -> None:
    """sklearn's vectorisers hold such names, and each was said to run code."""
    assert judge("builtins", name)[0] is GlobalVerdict.KNOWN
    raw = f"\x80\x02}}X\x01\x00\x00\x00kc__builtin__\n{name}\ns.".encode("latin-1")
    assert Severity.ERROR not in {f.severity for f in open_checkpoint(raw, name="x.pkl").findings}


def test_every_builtin_that_is_no_data_stays_dangerous() -> None:
    """Of all that this Python has: exceptions and a few types and measures are data, and nothing else may be."""
    harmless = {name for name in dir(builtins) if judge("builtins", name)[0] is GlobalVerdict.KNOWN}
    exceptions = {n for n, v in vars(builtins).items() if isinstance(v, type) and issubclass(v, BaseException)}
    assert exceptions <= harmless
    assert harmless - exceptions == {
        *(
            "set",
            "frozenset",
            "list",
            "tuple",
            "dict",
            "bytes",
            "bytearray",
            "complex",
            "slice",
            "range",
            "int",
            "float",
        ),
        *("str", "bool", "object", "memoryview", "Ellipsis", "NotImplemented", "len", "abs", "round", "divmod", "ord"),
        *("chr", "bin", "hex", "oct", "hash", "callable", "isinstance", "issubclass"),
    }
