"""What is known about a global name in a pickle.

KNOWN says that this package understands the name and that a real load would only make data of it. DANGEROUS says that
the name runs code, opens files or reaches other names. Everything else is UNKNOWN, which is no praise: lists of bad
names are always incomplete. Here nothing is ever imported, whatever the verdict.
"""

from __future__ import annotations

import re
from dataclasses import replace

from inspector.checkpoint.dtypes import STORAGE_DTYPES, find_dtype
from inspector.checkpoint.types import GlobalUse, GlobalVerdict
from inspector.readers.unpickle.meanings import MEANINGS

# Top-level modules of which every function is a way to run code, reach the system or the network, or resolve names.
_DANGEROUS_MODULES = frozenset(
    [
        "os",
        "posix",
        "posixpath",
        "nt",
        "ntpath",
        "subprocess",
        "_posixsubprocess",
        "sys",
        "runpy",
        "importlib",
        "imp",
        "pkgutil",
        "pty",
        "socket",
        "_socket",
        "ssl",
        "shutil",
        "webbrowser",
        "ctypes",
        "_ctypes",
        "cffi",
        "pickle",
        "_pickle",
        "cPickle",
        "pickletools",
        "dill",
        "cloudpickle",
        "joblib",
        "marshal",
        "shelve",
        "code",
        "codeop",
        "asyncio",
        "multiprocessing",
        "threading",
        "_thread",
        "concurrent",
        "operator",
        "_operator",
        "requests",
        "urllib",
        "urllib2",
        "http",
        "httplib",
        "aiohttp",
        "ftplib",
        "smtplib",
        "telnetlib",
        "xmlrpc",
        "socketserver",
        "pip",
        "ensurepip",
        "venv",
        "timeit",
        "cProfile",
        "profile",
        "pstats",
        "pdb",
        "bdb",
        "doctest",
        "trace",
        "tempfile",
        "signal",
        "inspect",
        "types",
        "gc",
        "linecache",
        "platform",
        "distutils",
        "setuptools",
        "site",
        "sysconfig",
        "builtins",
        "__builtin__",
        "_io",
        "io",
        "fileinput",
        "glob",
        "pathlib2",
        "zipimport",
        "zipapp",
        "antigravity",
        "idlelib",
        "lib2to3",
        "commands",
        "popen2",
        "pydoc",
        "unittest",
        "test",
        "nose",
        "pytest",
        "IPython",
        "jinja2",
        "yaml",
        "sqlite3",
        "dbm",
        "mmap",
        "resource",
        "_winapi",
        "winreg",
        "msvcrt",
        "_interpreters",
        "_xxsubinterpreters",
        "interpreters",
        "faulthandler",
        "atexit",
        "sched",
        "logging",
        "curses",
        "readline",
        "rlcompleter",
        "tkinter",
        "turtle",
        "crypt",
        "getpass",
        "paramiko",
        "fabric",
        "psutil",
    ]
)
_DANGEROUS_PREFIXES = {
    "torch.hub": "fetches and runs code from the network",
    "torch.load": "loads another pickle",
    "torch.jit": "compiles or runs code",
    "torch.storage._load_from_bytes": "loads another pickle that is inside this one",
    "torch.utils.collect_env": "runs commands",
    "torch.utils.bottleneck": "runs code",
    "torch.utils.data.datapipes.utils.decoder": "loads other pickles",
    "torch.utils.cpp_extension": "compiles and loads code",
    "torch._dynamo": "compiles and runs code",
    "torch._inductor": "compiles and runs code",
    "torch._functorch": "compiles and runs code",
    "torch.fx.experimental.symbolic_shapes": "evaluates text as code",
    "torch.package": "imports code from an archive",
    "torch.serialization.load": "loads another pickle",
    "torch.ops.load_library": "loads a binary library",
    "torch.classes.load_library": "loads a binary library",
    "torch.distributed.rpc": "runs code in other processes",
    "torch.testing": "runs code",
    "numpy.f2py": "compiles and runs code",
    "numpy.testing": "runs code",
    "numpy.distutils": "runs commands",
    "numpy.load": "loads another pickle",
    "pandas.read_pickle": "loads another pickle",
    "functools.partial": "wraps another callable",
    "functools.reduce": "calls another callable",
    "itertools.starmap": "calls another callable",
    "ast.literal_eval": "evaluates text",
}
_PARTIAL = "functools.partial"
_BUILTINS_DATA = frozenset(
    [
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
        "str",
        "bool",
        "object",
        "NoneType",
    ]
)
_KNOWN_CLASSES = re.compile(
    r"torch\.nn\.modules\.\w+\.[A-Z]\w*|torchvision\.models\.[\w.]+\.[A-Z_]\w*|torch\.nn\.parameter\.\w*Parameter"
    r"|torch\.nn\.utils\.parametrize\.Parametri\w+|torch\.optim\.(\w+\.)*[A-Z]\w*|__torch__\.[\w.]+"
    r"|torch\.nn\.parallel\.(data_parallel|distributed)\.(DataParallel|DistributedDataParallel)"
    r"|torch\.nn\.quantized\.[\w.]+|torch\.ao\.nn\.[\w.]+"
)
_KNOWN_NAMES = frozenset(
    [
        "argparse.Namespace",
        "datetime.datetime",
        "datetime.date",
        "datetime.time",
        "datetime.timedelta",
        "datetime.timezone",
        "pathlib.PosixPath",
        "pathlib.WindowsPath",
        "pathlib.PurePosixPath",
        "pathlib.PureWindowsPath",
        "pathlib._local.PosixPath",
        "decimal.Decimal",
        "uuid.UUID",
        "fractions.Fraction",
        "numpy.ndarray",
        "numpy.matrix",
        "copyreg._reconstructor",
        "copyreg.__newobj__",
        "copyreg.__newobj_ex__",
        "types.SimpleNamespace",
        "torch.Tensor",
        "torch._C._TensorMeta",
        "torch.Generator",
        "torch.per_tensor_affine",
        "torch.per_channel_affine",
        "torch.per_tensor_symmetric",
        "torch.per_channel_symmetric",
        "torch.per_channel_affine_float_qparams",
        "torch.strided",
        "torch.sparse_coo",
        "torch.sparse_csr",
        "torch.sparse_csc",
        "torch.sparse_bsr",
        "torch.sparse_bsc",
        "torch.preserve_format",
        "torch.contiguous_format",
        "torch.channels_last",
        "torch.FloatTensor",
        "torch.DoubleTensor",
        "torch.HalfTensor",
        "torch.LongTensor",
        "torch.IntTensor",
        "torch.ShortTensor",
        "torch.CharTensor",
        "torch.ByteTensor",
        "torch.cuda.FloatTensor",
        "torch.cuda.HalfTensor",
        "torch.cuda.LongTensor",
        "torch._utils._rebuild_device_tensor_from_numpy",
        "torch._utils._rebuild_xla_tensor",
        "torch.autograd.variable.Variable",
        "torch.nn.backends.thnn._get_thnn_function_backend",
        "torch.jit._pickle.build_intlist",
        "torch.jit._pickle.build_tensorlist",
        "torch.jit._pickle.build_doublelist",
        "torch.jit._pickle.build_boollist",
        "torch.jit._pickle.build_tensor_from_id",
        "torch.jit._pickle.restore_type_tag",
        "numpy.random._pickle.__randomstate_ctor",
        "numpy.random._pickle.__bit_generator_ctor",
        "numpy.random._pickle.__generator_ctor",
        "collections.abc.OrderedDict",
    ]
)
# What torch.load(weights_only=True) allows beside tensors, storages and dtypes (torch/_weights_only_unpickler.py).
_WEIGHTS_ONLY = frozenset(
    [
        "collections.OrderedDict",
        "collections.Counter",
        "builtins.set",
        "builtins.bytearray",
        "builtins.complex",
        "builtins.slice",
        "torch.Size",
        "torch.device",
        "torch.Tensor",
        "torch.nn.parameter.Parameter",
        "torch.serialization._get_layout",
        "_codecs.encode",
        "torch._utils._rebuild_tensor",
        "torch._utils._rebuild_tensor_v2",
        "torch._utils._rebuild_tensor_v3",
        "torch._utils._rebuild_parameter",
        "torch._utils._rebuild_parameter_with_state",
        "torch._utils._rebuild_qtensor",
        "torch._utils._rebuild_sparse_tensor",
        "torch._utils._rebuild_sparse_csr_tensor",
        "torch._utils._rebuild_nested_tensor",
        "torch._utils._rebuild_meta_tensor_no_storage",
        "torch._utils._rebuild_device_tensor_from_numpy",
        "torch._utils._rebuild_device_tensor_from_cpu_tensor",
        "torch._utils._rebuild_wrapper_subclass",
        "torch._tensor._rebuild_from_type_v2",
    ]
)


def judge(module: str, name: str) -> tuple[GlobalVerdict, str]:
    """The verdict on "module.name" and the reason in a few words."""
    full = f"{module}.{name}"
    if module == "copyreg extension":
        return GlobalVerdict.UNKNOWN, "a code that only the writer's program can resolve"
    if module == "builtins" and name in _BUILTINS_DATA:
        return GlobalVerdict.KNOWN, "a Python data type"
    if full in MEANINGS or full in _KNOWN_NAMES:
        return GlobalVerdict.KNOWN, "makes a tensor, a container or a constant"
    if _is_plain_torch(module, name):
        return GlobalVerdict.KNOWN, "a type of element or storage"
    reached = _reaches(module, name)
    if reached:
        return GlobalVerdict.DANGEROUS, reached
    if _KNOWN_CLASSES.fullmatch(full):
        return GlobalVerdict.KNOWN, "a class of modules or optimizers; loading it imports its code"
    return GlobalVerdict.UNKNOWN, "not known here; a load imports it and may run it"


def settle_wrappers(uses: list[GlobalUse]) -> list[GlobalUse]:
    """functools.partial is as harmless as what it can wrap: known where every other name of the file is known.

    A pickle reaches callables by name only, so a partial cannot hold one that is not in the list. Whole modules of
    vision transformers and ConvNeXts are full of partial(LayerNorm, eps=...).
    """
    if any(u.verdict is not GlobalVerdict.KNOWN and u.name != _PARTIAL for u in uses):
        return uses
    why = "wraps a callable with arguments; the callables this file names are all known"
    return [replace(u, verdict=GlobalVerdict.KNOWN, why=why) if u.name == _PARTIAL else u for u in uses]


def _is_plain_torch(module: str, name: str) -> bool:
    if module in ("torch", "torch.cuda") and name in STORAGE_DTYPES:
        return True
    if module in ("torch.storage", "torch") and name in (
        "UntypedStorage",
        "TypedStorage",
        "_UntypedStorage",
        "_TypedStorage",
    ):
        return True
    return module == "torch" and find_dtype(name) is not None


def _reaches(module: str, name: str) -> str:
    top = module.partition(".")[0]
    if top == "builtins":
        return f"{name} can run code or reach other names"
    if top in _DANGEROUS_MODULES:
        return f"functions of {top} run code, open files or reach other names"
    full = f"{module}.{name}"
    for prefix, why in _DANGEROUS_PREFIXES.items():
        if full == prefix or full.startswith((prefix + ".", prefix + "._")):
            return why
    inner = next((part for part in [*module.split(".")[1:], *name.split(".")[:-1]] if part in _SYSTEM), None)
    if inner:
        return f"reaches {inner} through another module"
    if "__" in name.removeprefix("__torch__") and "." in name:
        return "reaches into an object by a dotted name"
    return ""


_SYSTEM = frozenset(
    {"os", "sys", "subprocess", "builtins", "__builtins__", "importlib", "posix", "ctypes", "shutil", "runpy"}
)


def weights_only_allows(module: str, name: str) -> bool:
    """Whether torch.load(weights_only=True) accepts the name without being told to."""
    return (
        f"{module}.{name}" in _WEIGHTS_ONLY
        or _is_plain_torch(module, name)
        or (module == "torch" and name.startswith(("per_tensor", "per_channel")))
    )
