"""Lines that let torch.load(weights_only=True) make what a file names, for names that are known to be harmless.

torch names one refused global at a time, and the object it belongs to needs others: a number of numpy also its type,
that type's own class, and a name that numpy 1 and 2 write differently. So an answer allows the whole family of a name.
The sets were read off torch 2.15 with numpy 2.4, and files of numpy 1.26. Its test makes a file of each kind, provokes
the refusal and runs the lines. Names may be given with a value since torch 2.6.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from inspector.checkpoint.types import GlobalVerdict
from inspector.readers.unpickle.globals.verdicts import judge

_LOAD = '    checkpoint = torch.load(path, map_location="cpu", weights_only=True)\n'


@dataclass(frozen=True, slots=True)
class Family:
    """Globals that come together. names: a pattern of them. needs: ids of families whose globals they hold.

    lines: Python that adds them to `allowed`, after `imports`. says: what they are, in a few words.
    """

    id: str
    says: str
    names: str
    lines: str
    imports: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


_NUMPY = """\
try:
    from numpy._core import multiarray
except ImportError:  # numpy 1
    from numpy.core import multiarray
allowed += [codecs.encode, np.dtype, np.ndarray, np.matrix, bytes]
allowed += {type(np.dtype(code)) for code in np.typecodes["All"]}
allowed += [(scalar, f"numpy.{name}") for name, scalar in np.sctypeDict.items() if str(name).isidentifier()]
for name in ("scalar", "_reconstruct"):  # under the names that numpy 2 and numpy 1 write
    allowed += [(getattr(multiarray, name), f"numpy.{core}.multiarray.{name}") for core in ("_core", "core")]
"""
_RANDOM = """\
allowed += [np.random.RandomState, np.random.Generator, bit_generator.SeedSequence]
allowed += [*_pickle.BitGenerators.values(), getattr(bit_generator, "__pyx_unpickle_SeedSequence")]
allowed += [getattr(_pickle, f"__{what}_ctor") for what in ("randomstate", "generator", "bit_generator")]
"""
_MASKED = """\
allowed += [numpy.ma.core._mareconstruct]
allowed += [(numpy.ma.MaskedArray, f"numpy.ma.{name}") for name in ("MaskedArray", "core.MaskedArray")]
"""
_CONTAINERS = """\
def as_dict(*arguments):  # weights_only fills no defaultdict, so it comes back as a dict
    return {}


def as_list(items=(), maxlen=None):  # and a deque as a list
    return list(items)


allowed += [(as_dict, "collections.defaultdict"), (as_list, "collections.deque"), (..., "builtins.Ellipsis")]
allowed += [dict, list, tuple, set, frozenset, slice, range, int, float, complex, bool, str, bytes]
"""
_PATHS = """\
for name in ("PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath"):  # the pure ones, which touch no disk
    pure = getattr(pathlib, name if name.startswith("Pure") else f"Pure{name}")
    allowed += [(pure, f"pathlib.{name}"), (pure, f"pathlib._local.{name}")]
"""
_SETTINGS = """\
allowed += [argparse.Namespace, types.SimpleNamespace]
"""
_TIMES = """\
allowed += [datetime.datetime, datetime.date, datetime.time, datetime.timedelta, datetime.timezone]
"""
_NUMBERS = """\
allowed += [decimal.Decimal, fractions.Fraction, uuid.UUID, uuid.SafeUUID]
"""
_OMEGACONF = """\
allowed += [omegaconf.DictConfig, omegaconf.ListConfig, (typing.Any, "typing.Any")]
allowed += [kind for kind in (*vars(base).values(), *vars(nodes).values()) if isinstance(kind, type)]
"""
_ANY = """\
allowed += [(typing.Any, "typing.Any")]
try:  # OmegaConf's settings name it; without OmegaConf, what else is in the file may do
    from omegaconf import DictConfig, ListConfig, base, nodes
except ImportError:
    pass
else:
    allowed += [DictConfig, ListConfig]
    allowed += [kind for kind in (*vars(base).values(), *vars(nodes).values()) if isinstance(kind, type)]
"""
_MODULES = """\
def below(cls):
    return [cls, *(kind for inner in cls.__subclasses__() for kind in below(inner))]


# Every module class that is imported: import the code that the model is made of first, such as torchvision.
allowed += [*below(torch.nn.Module), torch.nn.functional.relu, torch.nn.functional.gelu, functools.partial]
"""
_OPTIMIZERS = """\
def kinds(*modules):
    return [kind for module in modules for kind in vars(module).values() if isinstance(kind, type)]


allowed += kinds(torch.optim, torch.optim.lr_scheduler)
"""
FAMILIES: tuple[Family, ...] = (
    Family(
        "numpy",
        "numbers and arrays of numpy",
        r"numpy\.(?:_?core\.multiarray\.(?:scalar|_reconstruct)|dtype|ndarray|matrix|dtypes\.\w{1,40}DType|dtype\[\w+\]"
        r"|u?int(?:8|16|32|64|c|p|_)?|float(?:16|32|64|128|_)?|complex(?:64|128|256|_)?|bool_?|str_|bytes_|object_|void"
        r"|datetime64|timedelta64|longdouble|clongdouble|longlong|ulonglong)",
        _NUMPY,
        ("import codecs", "import numpy as np"),
    ),
    Family(
        "numpy-random",
        "states of numpy's random numbers",
        r"numpy\.random\.(?:_pickle\.__\w{1,20}_ctor|_(?:mt19937|pcg64|philox|sfc64)\.\w{1,20}|mtrand\.RandomState"
        r"|_generator\.Generator|bit_generator\.(?:SeedSequence|__pyx_unpickle_SeedSequence))",
        _RANDOM,
        ("import numpy as np", "from numpy.random import _pickle, bit_generator"),
        ("numpy",),
    ),
    Family(
        "numpy-masked",
        "masked arrays of numpy",
        r"numpy\.ma\.(?:core\.)?(?:MaskedArray|_mareconstruct)",
        _MASKED,
        ("import numpy.ma",),
        ("numpy",),
    ),
    Family(
        "containers",
        "plain types and containers of Python",
        r"collections\.(?:defaultdict|deque)"
        r"|(?:builtins\.)?(?:dict|list|tuple|set|frozenset|slice|range|int|float|complex|bool|str|bytes|Ellipsis)",
        _CONTAINERS,
    ),
    # torch before 2.6 asks for it where a file has bytes.
    Family("bytes", "bytes", r"_codecs\.encode", "allowed += [codecs.encode]\n", ("import codecs",)),
    Family("paths", "paths", r"pathlib\.(?:_local\.)?(?:Pure)?(?:Posix|Windows)Path", _PATHS, ("import pathlib",)),
    Family(
        "settings",
        "settings of a program",
        r"argparse\.Namespace|types\.SimpleNamespace",
        _SETTINGS,
        ("import argparse", "import types"),
        ("numpy", "containers", "paths", "times"),
    ),
    Family(
        "times", "dates and times", r"datetime\.(?:datetime|date|time|timedelta|timezone)", _TIMES, ("import datetime",)
    ),
    Family(
        "numbers",
        "numbers of Python",
        r"decimal\.Decimal|fractions\.Fraction|uuid\.(?:UUID|SafeUUID)",
        _NUMBERS,
        ("import decimal", "import fractions", "import uuid"),
    ),
    Family(
        "omegaconf",
        "settings of OmegaConf",
        r"omegaconf\.(?:dictconfig|listconfig|base|nodes)\.\w{1,40}",
        _OMEGACONF,
        ("import typing", "import omegaconf", "from omegaconf import base, nodes"),
        ("containers",),
    ),
    Family(
        "any",
        "the type of any value",
        r"typing\.Any",
        _ANY,
        ("import typing",),
        ("containers",),
    ),
    Family(
        "modules",
        "a whole model",
        r"torch\.nn\.(?:modules|quantized|parallel)\.[\w.]{1,80}|torch\.optim\.swa_utils\.AveragedModel|torch\.nn\.functional\.(?:relu|gelu)"
        r"|torchvision\.(?:models|ops)\.[\w.]{1,80}",
        _MODULES,
        ("import functools",),
        ("containers",),
    ),
    Family(
        "optimizers",
        "a whole optimizer or scheduler",
        r"torch\.optim\.[\w.]{1,80}",
        _OPTIMIZERS,
        (),
        ("containers",),
    ),
)
# Names of classes that are modules, by how they are called and where they are kept.
_MODEL = re.compile(
    r"(?:^|[._])(?:models?|modules?|networks?|nets?|nn|layers?)\.|(?:Model|Net|Module|Layer|Block)\w{0,8}$"
)


def find_family(name: str) -> Family | None:
    """The family of a global as torch names it ("numpy.dtype", "slice" for builtins.slice)."""
    return next((family for family in FAMILIES if re.fullmatch(family.names, name)), None)


def lines_that_allow(names: Sequence[str]) -> str:
    """Lines that load a file with these globals, and those that come with them; "" when one must not be allowed."""
    wanted: dict[str, None] = {}
    own: dict[str, None] = {}
    for name in dict.fromkeys(names):
        family = find_family(name)
        if family is None:
            module, _, last = name.rpartition(".")
            # No lines that allow a name which runs whatever it is given.
            if not module or judge(module, last)[0] is GlobalVerdict.DANGEROUS:
                return ""
            own[name] = None
        else:
            wanted |= dict.fromkeys((*family.needs, family.id))
    if not wanted and not own:
        return ""
    if own:
        # What a class of one's own holds is not known: settings are made of these, and a model of modules.
        wanted |= dict.fromkeys(("numpy", "containers", "paths", "times"))
        if any(_MODEL.search(name) for name in own):
            wanted["modules"] = None
    families = [family for family in FAMILIES if family.id in wanted]
    tops = {name.partition(".")[0] for name in names if name.startswith("torchvision.")}
    imports = {"import torch", *(f"import {top}" for top in tops), *(line for one in families for line in one.imports)}
    if own:
        imports |= {"import collections", "import importlib"}
    code = "\n".join(sorted(imports, key=lambda line: (line.startswith("from"), line))) + "\n\n"
    code += f"allowed = []  # {', '.join(family.says for family in families) or 'code of others'}\n"
    code += (_of_others(own) if own else "") + "\n".join(family.lines for family in families)
    return f"{code}\nwith torch.serialization.safe_globals(allowed):\n{_LOAD}"


# torch fills exactly dict, OrderedDict, Counter and list, whatever is allowed; OrderedDict also takes attributes.
_FILLED = """\
class AsDict:  # weights_only fills no other kinds of dict and list than Python's own, so they come back as these
    def __new__(cls, *arguments):
        return collections.OrderedDict(*(one for one in arguments if isinstance(one, (dict, list))))


class AsList:
    def __new__(cls, *arguments):
        return list(*arguments[:1])


def as_filled(kind):
    if isinstance(kind, type) and issubclass(kind, dict):
        return AsDict
    return AsList if isinstance(kind, type) and issubclass(kind, (list, collections.deque)) else kind


"""


def _of_others(names: Iterable[str]) -> str:
    listed = "".join(f"    {name!r},\n" for name in names)
    return (
        f"\n\n{_FILLED}"
        "# Code of others, which runs when the file is read: only if you trust it and the file.\n"
        f"for name in [\n{listed}]:\n"
        '    module, _, last = name.rpartition(".")\n'
        "    allowed.append((as_filled(getattr(importlib.import_module(module), last)), name))\n\n"
    )
