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
from inspector.readers.unpickle.globals.lists import KNOWN_CLASS_MODULES, KNOWN_CLASS_NAME
from inspector.readers.unpickle.globals.verdicts import judge, weights_only_allows


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


_RUNS_CODE = """
    numexpr.evaluate sympy.sympify sympy.parsing.sympy_parser.parse_expr sympy.parsing.sympy_parser.eval_expr
    sympy.lambdify sympy.utilities.lambdify.lambdify hydra.utils.instantiate hydra.utils.get_method hydra.utils.call
    hydra._internal.utils._locate jsonpickle.decode mako.template.Template jinja2.Template jinja2.environment.Template
    typing.ForwardRef._evaluate annotationlib.ForwardRef.evaluate ptyprocess.PtyProcess.spawn
    pandas.compat.pickle_compat.load sklearn.externals.joblib.load sklearn.externals.joblib.numpy_pickle.load
    joblib.load numpy.lib.format.read_array torch._C._jit_import torch._C.import_ir_module
    torch._C.import_ir_module_from_buffer torch._C._jit_compile torch._C.CompilationUnit
    torch.distributed.launcher.api.launch_agent
    torch.distributed.nn.jit.instantiator.instantiate_non_scriptable_remote_module_template
    cython.inline Cython.Build.Inline.cython_inline pyximport.install importlib_metadata.EntryPoint.load new.function
    thread.start_new_thread invoke.run accelerate.commands.launch.launch_command transformers.pipeline
    transformers.AutoModel.from_pretrained mlflow.pyfunc.load_model bentoml.load keras.models.load_model
    tensorflow.keras.models.load_model spacy.load numpy.ctypeslib.load_library copy._reconstruct
    pathlib.Path.write_text pathlib.PosixPath.write_bytes pathlib.PosixPath.unlink pathlib._local.PosixPath.rename
    pathlib.Path.touch fsspec.open torch.UntypedStorage.from_file torch.storage.UntypedStorage.from_file
    torch.FloatStorage.from_file torch._C.PyTorchFileWriter numpy.ndarray.tofile numpy.ndarray.dump
    numpy.core.memmap.memmap numpy._core.memmap.memmap safetensors.torch.save_file numpy.genfromtxt pandas.read_csv
    pandas.core.frame.DataFrame.to_csv torchvision.datasets.utils.download_url huggingface_hub.snapshot_download
    xmlrpclib.ServerProxy uu.decode
"""
_THROUGH_ANOTHER = """
    collections:_sys.modules collections:_sys.modules.get argparse:_sys typing:_sys enum:bltns enum:bltns.exec
    torch._tensor:copyreg tempfile:_shutil.rmtree reprlib:builtins.exec
"""


@pytest.mark.parametrize("full", _RUNS_CODE.split())
def test_a_name_that_runs_code_or_writes_files_is_an_error_and_not_merely_unknown(full: str) -> None:
    steps = full.split(".")
    split = next((n for n, step in enumerate(steps) if step[:1].isupper() and n), len(steps) - 1)
    assert judge(".".join(steps[:split]), ".".join(steps[split:]))[0] is GlobalVerdict.DANGEROUS
    assert judge(".".join(steps[:-1]), steps[-1])[0] is GlobalVerdict.DANGEROUS


@pytest.mark.parametrize("spelled", _THROUGH_ANOTHER.split())
def test_a_module_reached_under_its_private_name_in_another_is_an_error(spelled: str) -> None:
    assert judge(*spelled.split(":"))[0] is GlobalVerdict.DANGEROUS


def test_classes_beside_functions_that_run_code_stay_what_they_are() -> None:
    quiet = (
        "pathlib.Path pathlib.PosixPath pathlib.PurePosixPath pathlib._local.PosixPath numpy.ndarray torch.FloatStorage"
    )
    assert {judge(*full.rsplit(".", 1))[0] for full in quiet.split()} == {GlobalVerdict.KNOWN}
    others = "sympy.core.numbers.Integer pandas.core.frame.DataFrame transformers.BertModel PIL.Image.Image"
    assert {judge(*full.rsplit(".", 1))[0] for full in others.split()} == {GlobalVerdict.UNKNOWN}


def test_a_name_in_bytes_is_judged_as_the_text_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.pkl").write_bytes(b"\x80\x04C\x05posixC\x06system\x93C\x02id\x85R.")
    assert verdicts(open_checkpoint(tmp_path / "a.pkl")) == {GlobalVerdict.DANGEROUS}


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
