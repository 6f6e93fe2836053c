"""Each class of trick that got past a scanner of pickles once: nothing runs here, and the names are told.

The fixtures are harmless: unpickled for real they would create a marker file, at most. Where that is so, the control
loads them with Python's own pickle and looks for the marker. Classes by their public advisories and bug reports.
"""

from __future__ import annotations

import contextlib
import io
import pickle
import struct
import warnings
from pathlib import Path

import pytest
import torch
from hostile import call, short, stack_global, text, torch_zip

from inspector.checkpoint.types import Checkpoint, GlobalVerdict
from inspector.errors import UnknownFormat
from inspector.readers import open_checkpoint


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "marker"


def told(data: bytes, marker: Path) -> dict[str, tuple[GlobalVerdict, str, str]]:
    """Names that are not known, with verdict, place and arguments; checks that nothing ran."""
    found: dict[str, tuple[GlobalVerdict, str, str]] = {}
    for container in (data, torch_zip(data)):
        checkpoint = open_checkpoint(container)
        assert not marker.exists()
        now = {
            g.name: (g.verdict, g.place, g.arguments)
            for g in checkpoint.globals
            if g.verdict is not GlobalVerdict.KNOWN
        }
        assert not found or found == now
        found = now
    assert found, "no name was told"
    return found


def really_runs(data: bytes, marker: Path) -> bool:
    """The control: Python's own pickle on the same bytes."""
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pickle.loads(data)
    return marker.exists()


def verdicts(checkpoint: Checkpoint) -> set[GlobalVerdict]:
    return {g.verdict for g in checkpoint.globals}


# -- names ----------------------------------------------------------------------------------------------------------


def test_a_package_manager_as_gadget(marker: Path) -> None:
    data = b"\x80\x02cpip\nmain\n]" + text("install") + b"a" + text(str(marker)) + b"a\x85R."
    verdict, _, arguments = told(data, marker)["pip.main"]
    assert verdict is GlobalVerdict.DANGEROUS and "install" in arguments


def test_a_submodule_of_a_listed_module(marker: Path) -> None:
    data = b"\x80\x04" + stack_global("asyncio.unix_events", "_UnixSubprocessTransport._start") + b")R."
    assert told(data, marker)["asyncio.unix_events._UnixSubprocessTransport._start"][0] is GlobalVerdict.DANGEROUS


def test_a_resolver_of_any_name(marker: Path) -> None:
    data = b"\x80\x02" + call("pkgutil", "resolve_name", "os:system") + text(f"touch {marker}") + b"\x85R."
    verdict, _, arguments = told(data, marker)["pkgutil.resolve_name"]
    assert verdict is GlobalVerdict.DANGEROUS and arguments == "('os:system',)"
    assert really_runs(data, marker)


def test_an_import_by_function(marker: Path) -> None:
    module = call("importlib", "import_module", "os")
    data = b"\x80\x02cbuiltins\ngetattr\n(" + module + text("system") + b"tR" + text(f"touch {marker}") + b"\x85R."
    found = told(data, marker)
    assert {"importlib.import_module", "builtins.getattr"} <= set(found)
    assert {v for v, _, _ in found.values()} == {GlobalVerdict.DANGEROUS}
    assert really_runs(data, marker)


def test_an_attribute_getter(marker: Path) -> None:
    module = call("importlib", "import_module", "os")
    data = b"\x80\x02" + call("operator", "attrgetter", "system") + b"(" + module + b"tR"
    data += text(f"touch {marker}") + b"\x85R."
    assert told(data, marker)["operator.attrgetter"][0] is GlobalVerdict.DANGEROUS
    assert really_runs(data, marker)


def test_a_method_caller(marker: Path) -> None:
    getter = b"coperator\nmethodcaller\n(" + text("system") + text(f"touch {marker}") + b"tR"
    data = b"\x80\x02" + getter + b"(" + call("importlib", "import_module", "os") + b"tR."
    assert told(data, marker)["operator.methodcaller"][0] is GlobalVerdict.DANGEROUS
    assert really_runs(data, marker)


def test_a_partial_of_a_command(marker: Path) -> None:
    data = b"\x80\x02cfunctools\npartial\n(cposix\nsystem\n" + text(f"touch {marker}") + b"tR)R."
    found = told(data, marker)
    assert found["functools.partial"][0] is found["posix.system"][0] is GlobalVerdict.DANGEROUS
    assert really_runs(data, marker)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("types", "CodeType"),
        ("types", "FunctionType"),
        ("cloudpickle.cloudpickle", "_make_function"),
        ("cloudpickle.cloudpickle", "_builtin_type"),
        ("dill._dill", "_create_code"),
    ],
)
def test_builders_of_functions(module: str, name: str, marker: Path) -> None:
    assert told(b"\x80\x02" + call(module, name, "x") + b".", marker)[f"{module}.{name}"][0] is GlobalVerdict.DANGEROUS


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("torch.utils.collect_env", "run"),
        ("torch.utils.bottleneck.__main__", "run_cprofile"),
        ("torch.jit.unsupported_tensor_ops", "execWrapper"),
        ("torch._dynamo.guards", "GuardBuilder.get"),
        ("torch._inductor.codecache", "compile_file"),
        ("torch.fx.experimental.symbolic_shapes", "ShapeEnv.evaluate_guards_expression"),
        ("torch.fx.graph_module", "reduce_graph_module"),
        ("torch.utils._config_module", "ConfigModule.load_config"),
        ("torch.utils.data.datapipes.utils.decoder", "basichandlers"),
        ("torch.distributed.elastic.multiprocessing.api", "start_processes"),
        ("torch.serialization", "load"),
        ("torch.hub", "load"),
        ("numpy.f2py.crackfortran", "getlincoef"),
        ("numpy.testing._private.utils", "runstring"),
        ("numpy.lib.npyio", "load"),
        ("pandas.core.computation.eval", "eval"),
        ("lib2to3.pgen2.grammar", "Grammar.loads"),
        ("idlelib.pyshell", "ModifiedInterpreter.runcode"),
        ("_aix_support", "_read_cmd_output"),
        ("_osx_support", "_read_output"),
        ("_pyrepl.pager", "pipe_pager"),
        ("uuid", "_get_command_stdout"),
        ("test.support.script_helper", "assert_python_ok"),
        ("cgitb", "lookup"),
        ("trace", "Trace.run"),
        ("ensurepip", "_run_pip"),
        ("_interpreters", "run_string"),
        ("code", "InteractiveInterpreter.runcode"),
        ("distutils.file_util", "write_file"),
    ],
)
def test_gadgets_of_libraries(module: str, name: str, marker: Path) -> None:
    data = b"\x80\x04" + stack_global(module, name) + short("x") + b"\x85R."
    assert told(data, marker)[f"{module}.{name}"] == (GlobalVerdict.DANGEROUS, "", "('x',)")


def test_a_gadget_of_torch_runs_a_command_when_loaded(marker: Path) -> None:
    data = b"\x80\x02" + call("torch.utils.collect_env", "run", f"touch {marker}") + b"."
    assert "touch" in told(data, marker)["torch.utils.collect_env.run"][2]
    assert really_runs(data, marker)


def test_a_dotted_name_reaches_through_a_harmless_module(marker: Path) -> None:
    data = b"\x80\x04" + stack_global("torch.serialization", "os.system") + short(f"touch {marker}") + b"\x85R."
    assert told(data, marker)["torch.serialization.os.system"][0] is GlobalVerdict.DANGEROUS
    assert really_runs(data, marker)


def test_a_dotted_name_reaches_through_a_class_of_modules(marker: Path) -> None:
    name = "Conv2d.forward.__globals__.__getitem__"
    data = b"\x80\x04" + stack_global("torch.nn.modules.conv", name) + short("__builtins__") + b"\x85R."
    assert told(data, marker)[f"torch.nn.modules.conv.{name}"][0] is GlobalVerdict.DANGEROUS
    assert "exec" in pickle.loads(data)  # Python's builtins, out of a class of convolutions


# -- the machine's own bookkeeping ----------------------------------------------------------------------------------


def test_a_name_from_an_overwritten_memo(marker: Path) -> None:
    """A scanner that keeps the first value of a slot would read math.sqrt."""
    data = b"\x80\x04" + short("math") + b"q\x01" + short("sqrt") + b"q\x0200"
    data += short("os") + b"q\x01" + short("system") + b"q\x0200h\x01h\x02\x93" + short(f"touch {marker}") + b"\x85R."
    assert set(told(data, marker)) == {"os.system"}
    assert really_runs(data, marker)


def test_a_memo_of_what_is_no_constant(marker: Path) -> None:
    """MEMOIZE behind a tuple: a scanner that looks at the opcode before it stores the wrong value."""
    data = b"\x80\x04" + short("os") + b"\x94" + short("system") + b"\x94\x86\x940h\x00h\x01\x93"
    data += short(f"touch {marker}") + b"\x85R."
    assert set(told(data, marker)) == {"os.system"}
    assert really_runs(data, marker)


def test_a_name_that_is_no_text(marker: Path) -> None:
    data = b"\x80\x04" + call("os", "system", f"touch {marker}") + b"0]K\x01\x93."
    assert "os.system" in told(data, marker)
    assert really_runs(data, marker)


def test_a_memo_slot_that_was_never_filled(marker: Path) -> None:
    data = b"\x80\x04" + call("os", "system", f"touch {marker}") + b"0h\x63\x93."
    assert "os.system" in told(data, marker)
    assert really_runs(data, marker)


def test_a_stream_that_breaks_after_the_call(marker: Path) -> None:
    data = b"\x80\x02" + call("os", "system", f"touch {marker}") + b"\xff\xfe broken"
    checkpoint = open_checkpoint(data)
    assert "os.system" in told(data, marker) and "broken-pickle" in {f.id for f in checkpoint.findings}
    assert really_runs(data, marker)


def test_object_opcode_without_reduce(marker: Path) -> None:
    data = b"(cos\nsystem\n" + text(f"touch {marker}") + b"o."
    assert "os.system" in told(data, marker)
    assert really_runs(data, marker)


def test_a_call_hidden_by_build_and_pop(marker: Path) -> None:
    """The result is built upon and thrown away, so that no variable of a decompiled program uses it."""
    data = b"\x80\x02" + call("os", "system", f"touch {marker}") + b"q\x000ccollections\nOrderedDict\n)R}b."
    assert told(data, marker)["os.system"][1] == "(not in the tree: its result is thrown away)"
    assert really_runs(data, marker)


def test_build_on_a_function_of_numpy(marker: Path) -> None:
    data = b"\x80\x02cnumpy\nsize\n}" + text("x") + b"K\x01sb0cnumpy\n__builtins__\n."
    found = told(data, marker)
    assert found["numpy.__builtins__"][0] is GlobalVerdict.DANGEROUS and "numpy.size" in found


def test_extension_codes_are_told(marker: Path) -> None:
    ((name, (verdict, _, _)),) = told(b"\x80\x02\x82\x07)R.", marker).items()
    assert name == "copyreg extension.7" and verdict is GlobalVerdict.UNKNOWN


# -- a pickle inside something ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", ["pickle", "_pickle", "cPickle", "dill", "joblib", "cloudpickle"])
def test_a_pickle_in_a_pickle(module: str, marker: Path) -> None:
    inner = b"\x80\x02" + call("os", "system", f"touch {marker}") + b"."
    data = f"\x80\x03c{module}\nloads\n".encode("latin-1") + b"B" + struct.pack("<I", len(inner)) + inner + b"\x85R."
    found = told(data, marker)
    assert all(v is GlobalVerdict.DANGEROUS for v, _, _ in found.values())
    assert any(name.endswith(".loads") and "system" in arguments for name, (_, _, arguments) in found.items())
    if module in ("pickle", "_pickle"):
        assert really_runs(data, marker)


def test_torchs_own_pickle_in_a_pickle(marker: Path) -> None:
    inner = torch_zip(b"\x80\x02" + call("os", "system", f"touch {marker}") + b".")
    data = b"\x80\x03ctorch.storage\n_load_from_bytes\nB" + struct.pack("<I", len(inner)) + inner + b"\x85R."
    assert told(data, marker)["os.system"][0] is GlobalVerdict.DANGEROUS  # followed into the inner file
    assert really_runs(data, marker)


def test_the_legacy_magic_number_by_a_call(marker: Path) -> None:
    """torch compares the loaded number; a scanner that looks for the literal sees no legacy file."""
    magic = b"\x80\x02" + call("builtins", "int", str(0x1950A86A20F9469CFC6C)) + b"."
    protocol, info = pickle.dumps(1001, 2), pickle.dumps({"little_endian": True}, 2)
    data = magic + protocol + info + b"\x80\x02" + call("os", "system", f"touch {marker}") + b"." + pickle.dumps([], 2)
    checkpoint = open_checkpoint(data)
    assert not marker.exists()
    (use,) = [g for g in checkpoint.globals if g.verdict is GlobalVerdict.DANGEROUS]
    assert use.name == "os.system" and "pickle 4" in use.place
    torch.load(io.BytesIO(data), weights_only=False)
    assert marker.exists()


def test_the_name_of_the_file_does_not_matter(marker: Path, tmp_path: Path) -> None:
    for name in ("pytorch_model.bin", "weights.safetensors", "photo.png", "notes.txt", "data"):
        (tmp_path / name).write_bytes(b"\x80\x02" + call("os", "system", f"touch {marker}") + b".")
        assert GlobalVerdict.DANGEROUS in verdicts(open_checkpoint(tmp_path / name))
    assert not marker.exists()


def test_a_7z_archive_is_named() -> None:
    with pytest.raises(UnknownFormat, match=r"(?i)7-?z"):
        open_checkpoint(b"7z\xbc\xaf\x27\x1c\0\4" + b"\0" * 64)
