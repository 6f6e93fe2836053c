"""What is known about a global name in a pickle.

KNOWN says that this package understands the name and that a real load would only make data of it. DANGEROUS says that
the name runs code, opens files or reaches other names. Everything else is UNKNOWN, which is no praise: lists of bad
names are always incomplete. Here nothing is ever imported, whatever the verdict.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from inspector.checkpoint.dtypes import STORAGE_DTYPES, find_dtype
from inspector.checkpoint.types import GlobalUse, GlobalVerdict
from inspector.readers.unpickle.globals.lists import (
    BUILTINS_DATA,
    DANGEROUS_LOOKS,
    DANGEROUS_MODULES,
    DANGEROUS_PREFIXES,
    KNOWN_CLASS_MODULES,
    KNOWN_CLASS_NAME,
    KNOWN_CLASSES,
    KNOWN_LOOKS,
    KNOWN_NAMES,
    METHODS,
    MODULES_LOOK,
    OTHER_DTYPES,
    RUNNERS,
    SYSTEM,
    TENSOR_CLASS,
    WEIGHTS_ONLY,
)
from inspector.readers.unpickle.meanings.table import MEANINGS

_PARTIAL = "functools.partial"
# Modules of the names that are known here: a pickle that names one itself can reach, or change, all that is in it.
_MODULES = frozenset(
    ".".join(steps[:n])
    for steps in (name.split(".") for name in (*MEANINGS, *KNOWN_NAMES, *KNOWN_CLASSES, *WEIGHTS_ONLY))
    for n in range(2, len(steps))
    if not steps[n - 1][:1].isupper()
)
_STORAGES = frozenset({"UntypedStorage", "TypedStorage", "_UntypedStorage", "_TypedStorage"})


def judge(module: str, name: str) -> tuple[GlobalVerdict, str]:
    """The verdict on "module.name" and the reason in a few words.

    A name with dots is followed attribute by attribute from protocol 4 on, through everything that a module happens
    to have imported. So it is known only where the very name is, and never by the look of it.
    """
    full = f"{module}.{name}"
    if module == "copyreg extension":
        return GlobalVerdict.UNKNOWN, "a code that only the writer's program can resolve"
    if module == "builtins" and name in BUILTINS_DATA:
        return GlobalVerdict.KNOWN, "a Python data type, exception or measure"
    if module.startswith("torch.multiprocessing"):
        return GlobalVerdict.DANGEROUS, "attaches to the shared memory of other processes"
    if full in MEANINGS or full in KNOWN_NAMES:
        return GlobalVerdict.KNOWN, "makes a tensor, a container or a constant"
    if _is_plain_torch(module, name):
        return GlobalVerdict.KNOWN, "a type of element, tensor or storage"
    reached = _reaches(module, name)
    if reached:
        return GlobalVerdict.DANGEROUS, reached
    looks = ((KNOWN_CLASS_MODULES, KNOWN_CLASS_NAME), *KNOWN_LOOKS)
    if full in KNOWN_CLASSES or any(where.fullmatch(module) and what.fullmatch(name) for where, what in looks):
        return GlobalVerdict.KNOWN, "a class of modules or optimizers; loading it imports its code"
    return GlobalVerdict.UNKNOWN, "not known here; a load imports it and may run it"


_TOPS = frozenset(
    name.partition(".")[0] for name in (*MEANINGS, *KNOWN_NAMES, *KNOWN_CLASSES, *WEIGHTS_ONLY, *DANGEROUS_PREFIXES)
)


def may_exist(module: str) -> bool:
    """Whether a module of this name is Python's own or known here by any name in it."""
    top = module.partition(".")[0]
    return top in sys.stdlib_module_names or top in DANGEROUS_MODULES or top in _TOPS


def settle_wrappers(uses: list[GlobalUse]) -> list[GlobalUse]:
    """functools.partial is as harmless as what it can wrap: known where every other name of the file is known.

    A pickle reaches callables by name only, so a partial cannot hold one that is not in the list. Whole modules of
    vision transformers and ConvNeXts are full of partial(LayerNorm, eps=...).
    """
    if any(u.verdict is not GlobalVerdict.KNOWN and u.name != _PARTIAL for u in uses):
        return uses
    why = "wraps a callable with arguments; the callables this file names are all known"
    return [replace(u, verdict=GlobalVerdict.KNOWN, why=why) if u.name == _PARTIAL else u for u in uses]


_MOST_STEPS = 16  # Classes within classes have three or four; every step is looked up by itself.


def _is_plain_torch(module: str, name: str) -> bool:
    if module in ("torch", "torch.cuda") and name in STORAGE_DTYPES:
        return True
    if module in ("torch.storage", "torch") and name in _STORAGES:
        return True
    if TENSOR_CLASS.fullmatch(f"{module}.{name}") or OTHER_DTYPES.fullmatch(f"{module}.{name}"):
        return True
    return module == "torch" and find_dtype(name) is not None


def _reaches(module: str, name: str) -> str:
    """Why a global is dangerous, "" when nothing says so."""
    steps = name.split(".")
    if len(steps) > _MOST_STEPS:
        return f"reaches through a name of {len(steps)} steps"
    why = _reaches_itself(module, name)
    if why:
        return why
    # `torch.nn.functional.torch.load`: a package that another module has imported, and everything in it.
    # Many import one under a private name, `_sys` for sys.
    ways = [(way, ".".join(steps[n + 1 :])) for n, step in enumerate(steps[:-1]) for way in {step, step.lstrip("_")}]
    if any(_reaches_itself(way, rest) for way, rest in ways):
        return "reaches a module that runs code through another one"
    return ""


def _reaches_itself(module: str, name: str) -> str:
    top = module.partition(".")[0]
    if top == "builtins":
        return f"{name[:80]} can run code or reach other names"
    full = f"{module}.{name}"
    for prefix, why in DANGEROUS_PREFIXES.items():
        if full == prefix or full.startswith(prefix + "."):
            return why
    if top in DANGEROUS_MODULES:
        return f"functions of {top} run code, open files or reach other names"
    for look, why in DANGEROUS_LOOKS:
        if look.fullmatch(full):
            return why
    steps = name.split(".")
    inner = next((part for part in [*module.split(".")[1:], *steps] if part in SYSTEM), None)
    inner = inner or next((step for step in steps if step.startswith("_") and step.lstrip("_") in SYSTEM), None)
    if inner:
        return f"reaches {inner} through another module"
    if any(len(step) > 4 and step.startswith("__") and step.endswith("__") for step in steps):
        return "reaches into an object by a name with double underscores"
    if steps[-1] in RUNNERS:
        return f"{steps[-1]} runs what it is given"
    owner = full.split(".")[-2]
    if steps[-1] in METHODS and owner.lstrip("_")[:1].isupper():
        return f"{owner[:80]}.{steps[-1]} opens files or loads what it is given"
    if full in _MODULES or MODULES_LOOK.fullmatch(full):
        return "is a whole module, with everything in it"
    return ""


def weights_only_allows(module: str, name: str) -> bool:
    """Whether torch.load(weights_only=True) of torch 2.15 accepts the name without being told to."""
    full = f"{module}.{name}"
    if full in WEIGHTS_ONLY or TENSOR_CLASS.fullmatch(full) or OTHER_DTYPES.fullmatch(full):
        return True
    if module in ("torch", "torch.cuda") and name in STORAGE_DTYPES:
        return module == "torch" or not name.startswith("Q")
    if module == "torch.storage":
        return name in ("UntypedStorage", "TypedStorage")
    return module == "torch" and "." not in name and find_dtype(name) is not None
