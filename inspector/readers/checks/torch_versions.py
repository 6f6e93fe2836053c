"""Which torch can load a file, how, and what it says where it cannot.

A file that any torch since 1.6 loads as it stands, on any machine, gets no finding. Sources: torch/serialization.py,
torch/_weights_only_unpickler.py, and the pull requests that brought an element type or rebuild function. Each release
below was looked up in the wheels themselves: the first whose torch/_C/__init__.pyi, _utils.py, _tensor.py or
storage.py has the name, and the release before it, which has not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from inspector.checkpoint.dtypes import SINCE_TORCH, release_number
from inspector.checkpoint.types import GlobalVerdict, Storage, TensorInfo
from inspector.findings import Evidence, Finding, FindingKind, Severity
from inspector.readers.checks import torch_words
from inspector.readers.unpickle.globals.lists import DANGEROUS_MODULES, WEIGHTS_ONLY_BLOCKED
from inspector.readers.unpickle.globals.python2 import weights_only_name
from inspector.readers.unpickle.globals.verdicts import judge, weights_only_allows
from inspector.readers.unpickle.stand_ins import Use
from inspector.units import counted

NOT_FOR_TORCH_LOAD = FindingKind("not-for-torch-load", Severity.INFO, "torch.load does not read this format")
LOADS_WITH = FindingKind("loads-with", Severity.INFO, "It needs a certain release of torch or later")
WEIGHTS_ONLY_REFUSES = FindingKind("weights-only-refuses", Severity.NOTICE, "torch.load(weights_only=True) refuses it")
NEEDS_CODE = FindingKind("needs-code", Severity.NOTICE, "A real load needs code of other packages")
BIG_ENDIAN = FindingKind("big-endian", Severity.NOTICE, "Numbers are stored big-endian")

_LISTED = 20
_MOST_ALLOWED = 12
# Names that an import statement brings and that suffice. What numpy writes does not.
_IMPORTED = re.compile(r"(?!numpy\b)([A-Za-z_]\w*\.)*[A-Za-z_]\w{0,80}", re.ASCII)
_NAMES = {
    "torch._utils._rebuild_tensor_v3": "2.2",  # pytorch/pytorch#114662
    "torch._tensor._rebuild_from_type_v2": "1.10",
    "torch._utils._rebuild_parameter_with_state": "2.0",
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": "2.6",
    "torch.storage.UntypedStorage": "2.0",
    "torch.storage._UntypedStorage": "1.12",
}
# What torch.load says to a whole format, and what loads it instead.
_FORMATS = {
    "torchscript": (torch_words.SCRIPT, "torch.jit.load reads it, and runs the program inside."),
    "torch-tar": (torch_words.TAR, "torch.load(weights_only=False) reads it, and runs whatever it names."),
    "pickle": (torch_words.NOT_LEGACY, "It was written by pickle, not by torch.save."),
}
#: Formats whose pickles numpy alone reads.
OF_NUMPY = frozenset({"npz", "npy"})
_NOT_LOADED = "Do not allow or load what it names: some of it can run code."
# Code that is there wherever torch is.
_INSTALLED = frozenset({"torch", "numpy", "typing_extensions", "sympy", "networkx", "jinja2", "fsspec", "filelock"})
_STANDARD_NAMES = """
builtins collections copyreg _codecs argparse datetime pathlib decimal uuid fractions enum functools itertools typing
random re math string json copy abc contextlib weakref zoneinfo ast dataclasses numbers warnings __torch__
"""
_STANDARD = frozenset({"copyreg extension", *_STANDARD_NAMES.split()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What decides how a file loads. uses: in the order of the stream. operand: the first that weights_only refuses.
    named_before: how many of the uses come before it."""

    format_id: str
    uses: Sequence[Use]
    tensors: Sequence[TensorInfo]
    storages: Mapping[str, Storage]
    protocol: int
    operand: int | None
    named_before: int = 0


def observe_loading(loaded: Loaded) -> list[Finding]:
    """Findings "loads-with", "weights-only-refuses", "needs-code" and "big-endian"."""
    # numpy's files are nothing that torch.load reads in any way.
    weights_only = _weights_only(loaded) if loaded.format_id not in OF_NUMPY else None
    found = [_format(loaded), _oldest(loaded), weights_only, _code(loaded), _byte_order(loaded)]
    return [finding for finding in found if finding is not None]


def _format(loaded: Loaded) -> Finding | None:
    error, instead = _FORMATS.get(loaded.format_id, ("", ""))
    if not error:
        return None
    if loaded.format_id == "pickle" and _weights_only(loaded) is not None:
        # The default ends before it looks for the number, so that only the other way says this.
        return NOT_FOR_TORCH_LOAD.found(
            f'torch.load(weights_only=False), and any torch.load before 2.6, says to it: "{error}"'
            + (", after it has run what the file names." if _names_danger(loaded.uses) else "."),
            evidence=(("error without weights_only", error), ("format", loaded.format_id)),
            remedy=_NOT_LOADED if _names_danger(loaded.uses) else instead,
        )
    return NOT_FOR_TORCH_LOAD.found(
        f'torch.load, as it is called since torch 2.6, says to it: "{error}"',
        evidence=(("error", error), ("format", loaded.format_id)),
        # Nobody is told how to run what was made to be run.
        remedy=_NOT_LOADED if _names_danger(loaded.uses) else instead,
    )


def _oldest(loaded: Loaded) -> Finding | None:
    """The release that has every type and rebuild function of the file, where that is younger than archives are."""
    reasons: dict[str, str] = {}
    for tensor in loaded.tensors:
        # An array of numpy, such as the state of its random numbers, needs no type of torch.
        if tensor.dtype in SINCE_TORCH and "numpy array" not in tensor.note:
            reasons.setdefault(f"{tensor.dtype} tensors", SINCE_TORCH[tensor.dtype])
    for use in loaded.uses:
        full = f"{use.module}.{use.name}"
        if full in _NAMES:
            reasons.setdefault(full, _NAMES[full])
    if not reasons:
        return None
    oldest = max(reasons.values(), key=release_number)
    why = [what for what, release in reasons.items() if release == oldest]
    if release_number(oldest) < (2, 0):  # Years back; not worth a line.
        return None
    return LOADS_WITH.found(
        f"It loads with torch {oldest} or later: it has {' and '.join(why[:3])}.",
        evidence=(("oldest", oldest), *tuple(reasons.items())[:_LISTED]),
        remedy="With an earlier one, load it elsewhere and save the tensors in another type.",
    )


def _weights_only(loaded: Loaded) -> Finding | None:
    asked = [(u, weights_only_name(*u.written) if u.written else (u.module, u.name)) for u in loaded.uses]
    refused = [(use, pair) for use, pair in asked if not weights_only_allows(*pair)]
    names = list(dict.fromkeys(".".join(pair) for _, pair in refused))
    if not names and loaded.operand is None:
        return None
    reasons, errors = [], []
    if loaded.operand is not None:
        reasons.append(f"its pickle protocol is {loaded.protocol or '0 or 1'}")
        errors.append(torch_words.unsupported_operand(loaded.operand))
    blocked = [pair for _, pair in refused if pair[0] in WEIGHTS_ONLY_BLOCKED]
    dangerous = _names_danger([use for use, _ in refused])
    # Allowed by the name that Python 3 has, and looked for by another one.
    lost = next((".".join(pair) for use, pair in refused if pair != (use.module, use.name)), "")
    if names:
        reasons.append(f"it names {', '.join(n[:80] for n in names[:3])}{' …' if len(names) > 3 else ''}")
        module, name = refused[0][1]
        words = torch_words.blocked_global if (module, name) in blocked else torch_words.unsupported_global
        # A name is refused where it stands, an opcode too: the first of both is what torch says.
        first = next(n for n, (use, _) in enumerate(asked) if use is refused[0][0])
        errors.insert(0 if first < loaded.named_before else len(errors), words(module[:200], name[:200]))
    evidence: Evidence = (
        ("names", len(names)),
        ("protocol", loaded.protocol),
        ("error", errors[0]),
        *(
            (("add_safe_globals", ", ".join(names[:_LISTED])[:1000]),)
            if names and not blocked and not dangerous and not lost
            else ()
        ),
    )
    return WEIGHTS_ONLY_REFUSES.found(
        f"torch.load(weights_only=True), the default since torch 2.6, refuses this file: {' and '.join(reasons)}.",
        subjects=tuple(n[:200] for n in names[:_LISTED]),
        evidence=evidence,
        remedy=_way_in(loaded, names, blocked=bool(blocked), dangerous=dangerous, lost=lost),
    )


def _names_danger(uses: Sequence[Use]) -> bool:
    return any(judge(use.module, use.name)[0] is GlobalVerdict.DANGEROUS for use in uses)


def _way_in(loaded: Loaded, names: list[str], *, blocked: bool, dangerous: bool, lost: str) -> str:
    ways = []
    if any(t.storage_id is not None for t in loaded.tensors):
        ways.append("Convert it here.")
    if blocked:
        ways.append("Names of os and sys cannot be allowed, and should not be.")
    elif dangerous:
        ways.append(_NOT_LOADED)
    elif lost:
        ways.append(f"{lost[:80]} is Python 2's name, which cannot be allowed: save it again without it.")
    elif loaded.operand is not None:
        ways.append("Whoever made it can save it again with torch.save's own pickle_protocol, 2.")
    elif names:
        trust = f"If you trust {'it' if len(names) == 1 else 'them'}"
        bare = [name.removeprefix("builtins.") for name in names]
        if "collections.defaultdict" in names:
            # torch fills dict, OrderedDict and Counter alone, whatever is allowed.
            ways.append("weights_only fills no defaultdict, also where it is allowed: save it again as a plain dict.")
        elif len(names) > _MOST_ALLOWED or any(not _IMPORTED.fullmatch(name) for name in bare):
            # numpy's objects need names that stand in no pickle, and differ between its releases.
            ways.append(
                f"{trust}: the error that torch.load gives can be explained here, with the lines that allow it."
            )
        else:
            modules = ", ".join(sorted({name.rpartition(".")[0] for name in bare} - {""}))
            imports = f"import {modules}; " if modules else ""
            ways.append(f"{trust}: {imports}torch.serialization.add_safe_globals([{', '.join(bare)}]).")
    return " ".join(ways)


def _code(loaded: Loaded) -> Finding | None:
    """Classes whose code is not installed with torch: without it even weights_only=False fails."""
    modules: dict[str, list[Use]] = {}
    for use in loaded.uses:
        top = use.module.partition(".")[0]
        if top not in _INSTALLED | _STANDARD | DANGEROUS_MODULES and top.isidentifier():
            modules.setdefault(top, []).append(use)
    if not modules:
        return None
    top, (first, *_) = next(iter(modules.items()))
    error = (
        torch_words.no_attribute("__main__", first.name[:200])
        if top == "__main__"
        else torch_words.no_module(top[:200])
    )
    listed = ", ".join(f"{name[:40]}" for name in list(modules)[:4]) + (" …" if len(modules) > 4 else "")
    return NEEDS_CODE.found(
        f"A real load needs the code of {counted(len(modules), 'module')} that torch does not bring along "
        f"({listed}); without it, it ends with: {error}",
        subjects=tuple(f"{u.module}.{u.name}"[:200] for uses in modules.values() for u in uses)[:_LISTED],
        evidence=(("modules", len(modules)), ("error", error)),
        remedy="Here it is shown without that code. To load it elsewhere, have at hand what it was made with.",
    )


def _byte_order(loaded: Loaded) -> Finding | None:
    turned = sum(s.big_endian for s in loaded.storages.values())
    if not turned:
        return None
    return BIG_ENDIAN.found(
        f"{counted(turned, 'storage')} hold big-endian numbers, as mainframes write them; they are turned here.",
        evidence=(("storages", turned), ("oldest", "2.1")),
        remedy="torch before 2.1 ignores the byte order of an archive and reads wrong numbers without a word.",
    )
