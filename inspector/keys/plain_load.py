"""What `model.load_state_dict(torch.load(path))` does with a file, before any name is compared.

As torch 2.6 and later do it, with `weights_only=True`; what an earlier torch, 1.13 for one, does otherwise is said with
it. `load_file` takes the place of `torch.load` for safetensors.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from inspector.checkpoint.dtypes import SINCE_TORCH, release_number
from inspector.checkpoint.types import Checkpoint, GlobalUse, GlobalVerdict, Reach, StateDict, StateRole, TensorInfo
from inspector.checkpoint.values import Value, ValueKind
from inspector.findings import Severity
from inspector.keys.loading import NEEDS_CODE, access_of, error_of, is_bare, refusal_of
from inspector.units import counted

# The release from which on `weights_only=True` is what torch.load does by itself.
_STRICT = "2.6"
_TORCH = ("torch-zip", "torch-legacy", "torch-tar", "torchscript", "pickle")
#: Formats whose objects only numpy.load(allow_pickle=True) unpickles, and torch.load never.
NUMPY = ("npz", "npy")
_OBJECTS = "object-array"
# What reads the others, as far as one call does.
_READ_BY = {
    "npz": "numpy.load does, and its arrays must become tensors",
    "npy": "numpy.load does",
    "torch-export": "torch.export.load does",
    "torch-package": "torch.package.PackageImporter does, and runs the code inside",
    "dcp": "torch.distributed.checkpoint.load does",
    "dcp-safetensors": "torch.distributed.checkpoint.load does",
    "deepspeed-zero": "DeepSpeed's zero_to_fp32 does",
    "sharded": "each of its shards has to be loaded by itself",
}
# Of findings: which release is needed.
_OLDEST = "loads-with"
_STARTS_WITH = "startswith first arg must be bytes or a tuple of bytes, not str"
_NO_STARTS_WITH = "'{}' object has no attribute 'startswith'"
# Classes by the names with which load_state_dict refuses them. What a file calls Buffer is loaded as a Tensor.
_NO_DICTS = frozenset(
    {"list", "tuple", "int", "float", "str", "bool", "NoneType", "bytes", "set", "torch.Size", "torch.device"}
    | {"torch.Tensor", "torch.nn.parameter.Parameter"}
)
# What torch.load says to a plain pickle where weights_only does not stop it first.
_NO_MAGIC = "Invalid magic number; corrupt file?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """One reason why the two lines fail: a clause without a full stop. since: the first torch of which it holds, ""
    for all."""

    says: str
    severity: Severity
    since: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainLoad:
    """call: what a plain script reads the file with. obstacles: in the order in which it meets them, () where names
    and shapes decide. note: a clause on what depends on the machine, "" for nothing. oldest: the first torch that
    reads the file at all, "" for any since 1.13."""

    call: str
    obstacles: tuple[Obstacle, ...]
    note: str = ""
    oldest: str = ""

    @property
    def since(self) -> str:
        """The torch from which on it fails, where an earlier one loads the file; "" where all do the same."""
        return max((o.since for o in self.obstacles), default="") if all(o.since for o in self.obstacles) else ""

    @property
    def severity(self) -> Severity:
        """The worst of the obstacles."""
        return max((o.severity for o in self.obstacles), key=lambda s: s.rank, default=Severity.INFO)


def plain_load(checkpoint: Checkpoint, state: StateDict | None) -> PlainLoad:
    """state: the one whose tensors are meant for the model, None for a file that holds none."""
    kind = checkpoint.format
    call = "load_file" if kind == "safetensors" else "torch.load"
    if not kind:  # names out of an error message
        return PlainLoad(call=call, obstacles=())
    obstacles = []
    if not is_bare(checkpoint.source):
        obstacles.append(Obstacle(says=f"{call} does not look into archives", severity=Severity.NOTICE))
    elif kind not in (*_TORCH, "safetensors"):
        reader = _READ_BY.get(kind)
        if any(finding.id == _OBJECTS for finding in checkpoint.findings):
            reader = 'numpy.load does, but for objects: "Object arrays cannot be loaded when allow_pickle=False"'
        says = f"torch.load does not read it ({checkpoint.format_says})" + (f": {reader}" if reader else "")
        obstacles.append(Obstacle(says=says, severity=Severity.NOTICE))
    elif kind == "safetensors" and _is_named_otherwise(checkpoint.origin.name):
        says = "torch.load knows safetensors by the ending of the name alone (seen in 2.15); load_file reads it"
        obstacles.append(Obstacle(says=says, severity=Severity.WARNING))
    elif kind in _TORCH and checkpoint.origin.name.endswith(".safetensors"):
        says = "torch.load takes a file of this name for safetensors (seen in 2.15), and this is another format"
        obstacles.append(Obstacle(says=says, severity=Severity.ERROR))
    obstacles += _damage(checkpoint, checkpoint.tensors if state is None else state.tensors, call)
    if kind in NUMPY:
        obstacles += _run_by_numpy(checkpoint)
    elif call == "torch.load":
        obstacles += _refused(checkpoint)
    if state is None:
        if kind in (*_TORCH, "safetensors"):
            obstacles += _no_state(checkpoint.root, {use.name for use in _dangerous(checkpoint)})
        return PlainLoad(call=call, obstacles=tuple(obstacles))
    obstacles += _place(checkpoint, state)
    obstacles += _odd_keys(state)
    obstacles += _no_numbers(state)
    return PlainLoad(
        call=call, obstacles=tuple(obstacles), note=_device(state, kind), oldest=_oldest(checkpoint, state, kind)
    )


def _is_named_otherwise(name: str) -> bool:
    """Whether a name's ending is another one than safetensors'; a name without any comes from no file."""
    return "." in name and not name.endswith(".safetensors")


def _no_state(root: Value, runs: Collection[str]) -> list[Obstacle]:
    """What load_state_dict makes of something that is no state dict. runs: names that can run code: what one of them
    gives back is nobody's to say."""
    if root.kind is ValueKind.MAPPING:
        says = "no tensor lies under a name of a network in it"
    elif root.kind in (ValueKind.OBJECT, ValueKind.MODULE) and root.type_name not in runs:
        says = f"it holds a whole {root.type_name.rpartition('.')[2]}, and no state dict"
    else:
        says = "what it holds is no state dict"
        if root.type_name in _NO_DICTS:
            says = f"load_state_dict ends with \"Expected state_dict to be dict-like, got <class '{root.type_name}'>\""
    return [Obstacle(says=says, severity=Severity.WARNING)]


def _damage(checkpoint: Checkpoint, tensors: Sequence[TensorInfo], call: str) -> list[Obstacle]:
    """What ends the reading of the file itself."""
    broken = partly_lost(checkpoint, tensors)
    # What safetensors says of a file ends it, whatever it is for others.
    ends = [f for f in checkpoint.findings if f.severity is Severity.ERROR or call == "load_file"]
    error, why = next(((said, dict(f.evidence).get("why", "")) for f in ends if (said := error_of(f))), ("", ""))
    if not broken and not error:
        return []
    whole = len(tensors) - len(broken)
    says = f'{call} ends with "{error}"' if error else f"{call} finds less in it than it names"
    if why:
        says += f": {why}"
    if broken:
        says += f"{';' if why else ':'} {whole:,} of {counted(len(tensors), 'tensor')} are whole"
    return [Obstacle(says=says, severity=Severity.ERROR)]


def partly_lost(checkpoint: Checkpoint, tensors: Sequence[TensorInfo]) -> list[TensorInfo]:
    """Those whose numbers the file has not, or not all of."""
    short = {s.id for s in checkpoint.storages.values() if s.present_nbytes < s.nbytes}
    return [tensor for tensor in tensors if tensor.storage_id in short]


def _dangerous(checkpoint: Checkpoint) -> list[GlobalUse]:
    return [u for u in checkpoint.globals if u.verdict is GlobalVerdict.DANGEROUS and u.reach is not Reach.LEAVES]


def _run_by_numpy(checkpoint: Checkpoint) -> list[Obstacle]:
    dangerous = _dangerous(checkpoint)
    if not dangerous:
        return []
    worst = min(dangerous, key=lambda use: list(Reach).index(use.reach))
    does = "run" if worst.reach is Reach.RUNS else "import"
    return [Obstacle(says=f"with allow_pickle=True it would {does} {worst.name}", severity=Severity.ERROR)]


def _refused(checkpoint: Checkpoint) -> list[Obstacle]:
    dangerous = _dangerous(checkpoint)
    error = refusal_of(checkpoint)
    if not error:
        return []
    if dangerous:
        worst = min(dangerous, key=lambda use: list(Reach).index(use.reach))
        does = {
            Reach.RUNS: f"and before would run {worst.name}",
            Reach.MAY_RUN: f"and before would import {worst.name} and may run it",
        }.get(worst.reach, f"for it names {worst.name}, which nothing in it calls")
        says = f"torch.load refuses it since 2.6, {does}"
        return [Obstacle(says=says, severity=Severity.ERROR)]
    says = f'torch.load says "{error.rstrip(".")}"'
    if error == _NO_MAGIC:
        return [Obstacle(says=says, severity=Severity.WARNING)]
    if checkpoint.format == "pickle":
        return [Obstacle(says=f'{says} since torch 2.6, and before "{_NO_MAGIC}"', severity=Severity.WARNING)]
    # Without the code that it needs, an earlier torch fails as well.
    alone = not any(finding.id == NEEDS_CODE for finding in checkpoint.findings)
    return [Obstacle(says=f"{says} since torch {_STRICT}", severity=Severity.WARNING, since=_STRICT if alone else "")]


def _oldest(checkpoint: Checkpoint, state: StateDict, kind: str) -> str:
    """The release that has every type of the file."""
    if kind == "safetensors":
        releases = [SINCE_TORCH[tensor.dtype] for tensor in state.tensors if tensor.dtype in SINCE_TORCH]
        return max(releases, key=release_number, default="")
    return next((str(dict(f.evidence).get("oldest", "")) for f in checkpoint.findings if f.id == _OLDEST), "")


def _place(checkpoint: Checkpoint, state: StateDict) -> list[Obstacle]:
    found = []
    if state.gathered:
        under = [f"[{part.path[-1]!r}]" for part in state.gathered if part.path]
        says = f"the model's parts lie apart, under {', '.join(under[:4])}{' ...' if under[4:] else ''}"
        found.append(Obstacle(says=says, severity=Severity.WARNING))
    elif state.path:
        keys = "".join(f"[{key!r}]" for key in access_of(checkpoint, state))
        weights = (StateRole.WEIGHTS, StateRole.EMA)
        top = next((s for s in checkpoint.state_dicts if not s.path and s.role in weights), None)
        says = f"the weights lie under {keys}, not at the top"
        if top is not None:
            # Whatever they are, what lies beside them is no tensor for any place.
            others = counted(len(top.tensors), "tensor")
            says = f"the weights taken lie under {keys}; {others} at the top are refused for what lies beside them"
        found.append(Obstacle(says=says, severity=Severity.WARNING))
    if state.is_module:
        kind = state.kind.rpartition(".")[2]
        found.append(Obstacle(says=f"it holds a whole {kind}, whose state_dict() is meant", severity=Severity.WARNING))
    return found


def _odd_keys(state: StateDict) -> list[Obstacle]:
    """load_state_dict asks every key how it begins, which only text can tell."""
    found = []
    if state.odd_versions:
        says = "load_state_dict ends at its _metadata, which is not as torch writes it"
        found.append(Obstacle(says=says, severity=Severity.WARNING))
    if state.odd_keys:
        (key, kind), *more = state.odd_keys
        which = f"{key[:80]}{f' and {len(more):,} more' if more else ''}"
        error = _STARTS_WITH if kind == "bytes" else _NO_STARTS_WITH.format(kind.rpartition(".")[2])
        says = f'load_state_dict ends with "{error}", since a key is no text ({which})'
        if state.path or not kind:
            says = f"load_state_dict ends at a key that is no text ({which})"
        found.append(Obstacle(says=says, severity=Severity.WARNING))
    return found


def _no_numbers(state: StateDict) -> list[Obstacle]:
    empty = [t for t in state.tensors if t.device == "meta"]
    arrays = [t for t in state.tensors if "numpy array" in t.note]
    found = []
    if empty:
        says = f"{counted(len(empty), 'tensor')} on the meta device have no numbers"
        found.append(Obstacle(says=says, severity=Severity.ERROR))
    if arrays:
        says = f"{counted(len(arrays), 'value is a numpy array', 'values are numpy arrays')}, not tensors"
        found.append(Obstacle(says=says, severity=Severity.WARNING))
    return found


def uncopied(tensors: Sequence[TensorInfo]) -> str:
    """Why `load_state_dict` does not copy these into the dense parameters of their names, "" where it does."""
    odd = {t.name: "sparse" for t in tensors if t.layout.startswith("sparse")}
    odd |= {t.name: "quantised" for t in tensors if t.dtype.startswith(("qint", "quint"))}
    odd |= {t.name: "nested" for t in tensors if t.layout == "jagged"}
    if not odd:
        return ""
    kinds = " or ".join(dict.fromkeys(odd.values()))
    verb = "is" if len(odd) == 1 else "are"
    return (
        f"{counted(len(odd), 'tensor')} {verb} {kinds} ({next(iter(odd))[:80]}), which load_state_dict does not copy "
        "into a dense parameter"
    )


def halved(tensors: Sequence[TensorInfo]) -> str:
    """What copying complex numbers into real parameters loses: torch does it with a warning. "" for none."""
    odd = [t.name for t in tensors if t.dtype.startswith("complex")]
    if not odd:
        return ""
    verb = "loses its" if len(odd) == 1 else "lose their"
    return f"{counted(len(odd), 'complex tensor')} ({odd[0][:80]}) {verb} imaginary half"


def _device(state: StateDict, kind: str) -> str:
    if kind not in _TORCH:
        return ""
    devices = sorted({t.device for t in state.tensors if t.device and t.device not in ("cpu", "meta")})
    return f'on a machine without {devices[0]} it needs map_location="cpu"' if devices else ""
