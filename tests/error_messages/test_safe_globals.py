"""The lines that allow what torch refused are run on a file that torch refuses: they load it."""

from __future__ import annotations

import argparse
import collections
import datetime
import decimal
import fractions
import functools
import pathlib
import types
import uuid
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision
from torch import nn

from inspector.checkpoint.types import GlobalVerdict
from inspector.error_messages.explain import explain_error
from inspector.error_messages.safe_globals import FAMILIES, find_family, lines_that_allow
from inspector.readers import open_checkpoint
from inspector.readers.unpickle.globals.verdicts import judge


class Settings:
    """Settings of somebody's training, which hold all kinds of things."""


def _settings() -> Settings:
    made = Settings()
    made.__dict__.update(lr=np.float32(0.1), out=Path("runs"), names=collections.defaultdict(list, {"a": [1]}))
    return made


def _optimizer() -> torch.optim.Optimizer:
    layer = nn.Linear(2, 2)
    optimizer = torch.optim.Adam(layer.parameters())
    layer(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    return optimizer


VALUES: dict[str, Callable[[], Any]] = {
    "a number of numpy": lambda: np.float64(1.5),
    "a whole number of numpy": lambda: np.int64(3),
    "a truth of numpy": lambda: np.bool_(True),
    "an array": lambda: np.arange(6.0).reshape(2, 3),
    "an empty array": lambda: np.array([]),
    "an array of words": lambda: np.array(["a", "bc"]),
    "an array of objects": lambda: np.array([1, "a"], dtype=object),
    "records": lambda: np.zeros(2, dtype=[("a", "f8"), ("b", "i4")]),
    "times of numpy": lambda: np.array(["2020-01-01"], dtype="datetime64[D]"),
    "a type of numpy": lambda: np.dtype("float16"),
    "a class of numpy": lambda: np.float32,
    "the state of random numbers": lambda: np.random.RandomState(0).get_state(),
    "random numbers": lambda: np.random.RandomState(0),
    "a generator": lambda: np.random.default_rng(0),
    "another generator": lambda: np.random.Generator(np.random.Philox(1)),
    "a masked array": lambda: np.ma.array([1.0, 2.0], mask=[False, True]),
    "a filled defaultdict": lambda: collections.defaultdict(list, {"a": [1, 2]}),
    "an empty defaultdict": lambda: collections.defaultdict(dict),
    "a deque": lambda: collections.deque([1, 2], maxlen=5),
    "a slice": lambda: slice(1, 2),
    "a range": lambda: range(3),
    "a frozenset": lambda: frozenset([1]),
    "a plain type": lambda: int,
    "three dots": lambda: ...,
    "a path": lambda: Path("a/b"),
    "paths of another system": lambda: [pathlib.PureWindowsPath("c:/a"), pathlib.PurePosixPath("/b")],
    "a command line": lambda: argparse.Namespace(path=Path("a"), lr=np.float32(1), n=3),
    "a namespace": lambda: types.SimpleNamespace(a=1),
    "times": lambda: [datetime.datetime.now(datetime.UTC), datetime.date(2020, 1, 1), datetime.timedelta(1)],
    "exact numbers": lambda: [decimal.Decimal("1.5"), fractions.Fraction(1, 2)],
    "an identity": lambda: uuid.UUID(int=3),
    "a module": lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU()),
    "attention": lambda: nn.TransformerEncoderLayer(4, 2, activation="gelu"),
    "a whole ResNet": lambda: torchvision.models.resnet18(num_classes=2),
    "a whole EfficientNet": lambda: torchvision.models.efficientnet_b0(num_classes=2),
    "an optimizer": _optimizer,
    "a scheduler": lambda: torch.optim.lr_scheduler.StepLR(_optimizer(), 1),
    "settings of one's own": _settings,
}


def _refusal(path: Path) -> str:
    with pytest.raises(Exception, match="Weights only load failed") as error:
        torch.load(path, weights_only=True)
    return str(error.value)


@pytest.mark.parametrize("what", VALUES)
def test_the_lines_load_the_file_that_was_refused(what: str, tmp_path: Path) -> None:
    path = tmp_path / "a.pth"
    torch.save({"value": VALUES[what](), "weight": torch.ones(2)}, path)
    (error,) = explain_error(_refusal(path)).errors
    assert error.patch
    before = len(torch.serialization.get_safe_globals())
    scope: dict[str, Any] = {"path": path}
    exec(error.patch, scope)
    assert torch.equal(scope["checkpoint"]["weight"], torch.ones(2))
    assert len(torch.serialization.get_safe_globals()) == before


@pytest.mark.parametrize("what", ["a number of numpy", "an array", "random numbers", "a masked array"])
def test_what_comes_back_is_the_same(what: str, tmp_path: Path) -> None:
    value = VALUES[what]()
    torch.save(value, tmp_path / "a.pth")
    scope: dict[str, Any] = {"path": tmp_path / "a.pth"}
    exec(explain_error(_refusal(scope["path"])).errors[0].patch, scope)
    if isinstance(value, np.random.RandomState):
        assert scope["checkpoint"].randint(1000) == value.randint(1000)
    else:
        assert np.ma.allequal(scope["checkpoint"], value)


def test_a_file_written_under_the_other_numpy(tmp_path: Path) -> None:
    # numpy 1 and 2 write numpy.core and numpy._core; lines of a pickle end with a line break, so a name may change.
    torch.save({"lr": np.float64(2.5), "all": np.arange(3.0)}, tmp_path / "new.pth")
    path = tmp_path / "old.pth"
    with zipfile.ZipFile(tmp_path / "new.pth") as new, zipfile.ZipFile(path, "w") as old:
        for member in new.namelist():
            data = new.read(member)
            assert (b"numpy._core" in data) is member.endswith("data.pkl")
            old.writestr(member, data.replace(b"numpy._core", b"numpy.core"))
    text = _refusal(path)
    assert "numpy.core.multiarray" in text
    scope: dict[str, Any] = {"path": path}
    exec(explain_error(text).errors[0].patch, scope)
    assert scope["checkpoint"]["lr"] == 2.5


def test_the_class_of_a_type_is_asked_for_last(tmp_path: Path) -> None:
    torch.save(np.float64(1), tmp_path / "a.pth")
    with (
        torch.serialization.safe_globals([np.dtype, np._core.multiarray.scalar]),
        pytest.raises(Exception, match="Can only build Tensor") as error,
    ):
        torch.load(tmp_path / "a.pth")
    (found,) = explain_error(str(error.value)).errors
    assert found.kind == "unsupported-build"
    assert "numpy.dtypes.Float64DType" in found.says
    exec(found.patch, {"path": tmp_path / "a.pth"})


@pytest.mark.parametrize("made", [collections.defaultdict(list, {1: [2]}), collections.deque([1])])
def test_a_container_that_torch_never_fills(made: Any, tmp_path: Path) -> None:
    torch.save(made, tmp_path / "a.pth")
    with (
        torch.serialization.safe_globals([type(made), list]),
        pytest.raises(Exception, match="Can only") as error,
    ):
        torch.load(tmp_path / "a.pth")
    (found,) = explain_error(str(error.value)).errors
    assert found.kind == "unsupported-filling"
    scope: dict[str, Any] = {"path": tmp_path / "a.pth"}
    exec(found.patch, scope)
    assert scope["checkpoint"] in ({1: [2]}, [1])


def test_several_refusals_in_one_text_are_allowed_together(tmp_path: Path) -> None:
    torch.save({"a": np.float64(1), "b": fractions.Fraction(1, 2)}, tmp_path / "a.pth")
    text = "".join(
        f"Unsupported global: GLOBAL {name} was not an allowed global by default.\n"
        for name in ("numpy._core.multiarray.scalar", "fractions.Fraction")
    )
    scope: dict[str, Any] = {"path": tmp_path / "a.pth"}
    exec(explain_error(text).errors[0].patch, scope)
    assert scope["checkpoint"]["b"] == fractions.Fraction(1, 2)


def test_with_the_file_beside_it_all_its_globals_are_allowed(tmp_path: Path) -> None:
    path = tmp_path / "a.pth"
    torch.save({"args": argparse.Namespace(when=datetime.date(2020, 1, 1)), "n": fractions.Fraction(1, 2)}, path)
    report = explain_error(_refusal(path), checkpoint=open_checkpoint(path))
    assert "3 globals that weights_only=True refuses" in report.file[1]
    scope: dict[str, Any] = {}
    exec(report.code.replace("'a.pth'", repr(str(path))), scope)
    assert scope["checkpoint"]["args"].when == datetime.date(2020, 1, 1)


@pytest.mark.parametrize(
    "name",
    [
        "getattr",
        "type",
        "eval",
        "builtins.getattr",
        "functools.partial",
        "numpy.load",
        "numpy.f2py.compile",
        "os.system",
    ],
)
def test_a_dangerous_name_gets_no_lines(name: str) -> None:
    assert lines_that_allow([name]) == ""
    assert lines_that_allow(["numpy.dtype", name]) == ""


def test_no_family_has_a_dangerous_name() -> None:
    for name in ("numpy.loadtxt", "numpy.save", "numpy.ma.mrecords", "numpy.random.seed", "collections.namedtuple"):
        assert find_family(name) is None
    harmless = [
        "numpy.dtype",
        "argparse.Namespace",
        "pathlib.PosixPath",
        "collections.deque",
        "datetime.date",
        "uuid.UUID",
    ]
    for name in harmless:
        assert judge(*name.rsplit(".", 1))[0] is not GlobalVerdict.DANGEROUS
        assert find_family(name) is not None
    assert len({family.id for family in FAMILIES}) == len(FAMILIES)
    assert {need for family in FAMILIES for need in family.needs} <= {family.id for family in FAMILIES}


def test_settings_of_omegaconf(tmp_path: Path) -> None:
    omegaconf = pytest.importorskip("omegaconf")
    torch.save(omegaconf.OmegaConf.create({"a": [1, {"b": 2.5}], "c": "${a}"}), tmp_path / "a.pth")
    scope: dict[str, Any] = {"path": tmp_path / "a.pth"}
    exec(explain_error(_refusal(scope["path"])).errors[0].patch, scope)
    assert scope["checkpoint"].a[1].b == 2.5


def test_a_whole_model_with_a_wrapped_callable(tmp_path: Path) -> None:
    # Vision transformers keep functools.partial(LayerNorm, eps=...); it may come only where a model is allowed.
    net = nn.Sequential(nn.Linear(1, 1))
    net.norm = functools.partial(nn.LayerNorm, eps=1e-6)  # type: ignore[assignment]
    torch.save(net, tmp_path / "a.pth")
    scope: dict[str, Any] = {"path": tmp_path / "a.pth"}
    exec(explain_error(_refusal(scope["path"])).errors[0].patch, scope)
    assert scope["checkpoint"].norm.keywords == {"eps": 1e-6}


class OwnOrdered(collections.OrderedDict[str, Any]):
    pass


class OwnDict(dict[str, Any]):
    """As yacs and easydict have it: entries, and attributes beside them."""

    def __init__(self, **entries: Any) -> None:
        super().__init__(entries)
        self.frozen = True


class OwnDefaults(collections.defaultdict[str, Any]):
    pass


class OwnList(list[Any]):
    pass


OWN = {
    "an ordered one": lambda: OwnOrdered(a=torch.ones(2)),
    "a dict with attributes": lambda: OwnDict(a=torch.ones(2)),
    "defaults": lambda: OwnDefaults(list, {"a": torch.ones(2)}),
    "a list inside": lambda: {"a": torch.ones(2), "b": OwnList([1, 2])},
}


@pytest.mark.parametrize("what", OWN)
def test_own_kinds_of_dict_and_list_come_back_filled(what: str, tmp_path: Path) -> None:
    path = tmp_path / "a.pth"
    torch.save(OWN[what](), path)
    report = explain_error(_refusal(path), checkpoint=open_checkpoint(path))
    for code in (report.errors[0].patch, report.code.replace("'a.pth'", "path")):
        scope: dict[str, Any] = {"path": path}
        exec(code, scope)
        assert torch.equal(scope["checkpoint"]["a"], torch.ones(2))
        assert scope["checkpoint"].get("b", [1, 2]) == [1, 2]
    assert not any("no state dict in the file" in line for line in report.file)


@pytest.mark.parametrize("what", OWN)
def test_lines_after_a_failed_filling_do_not_fail_in_the_same_way(what: str, tmp_path: Path) -> None:
    path = tmp_path / "a.pth"
    torch.save(OWN[what](), path)
    kinds = [OwnOrdered, OwnDict, OwnDefaults, OwnList, list]
    with torch.serialization.safe_globals(kinds), pytest.raises(Exception, match="Can only") as error:
        torch.load(path)
    (found,) = explain_error(str(error.value)).errors
    assert found.kind == "unsupported-filling"
    scope: dict[str, Any] = {"path": path}
    exec(found.patch, scope)
    assert torch.equal(scope["checkpoint"]["a"], torch.ones(2))


def test_any_type_needs_no_library_that_may_be_missing(tmp_path: Path) -> None:
    path = tmp_path / "a.pth"
    torch.save({"a": Any, "w": torch.ones(2)}, path)
    scope: dict[str, Any] = {"path": path}
    exec(explain_error(_refusal(path)).errors[0].patch, scope)
    assert scope["checkpoint"]["a"] is Any
