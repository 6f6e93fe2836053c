"""A checkpoint as the file declares it: the types every reader fills and every slice asks.

Frozen, without torch objects, so that they can be cached and sent to worker processes. Tensor bytes stay in the file:
`checkpoint.source` and each `Storage` say where they are (see `data.py` for reading them).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from inspector.checkpoint.source import ByteSource
from inspector.checkpoint.values import Value
from inspector.findings import Finding
from inspector.short_repr import short_repr

Shape = tuple[int, ...]
# A path as Python indexes it: lists by position, and keys that need not be text.
Access = tuple[str | int | float | bytes | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Which file this is.

    name: what the visitor called it, for display only, never used as a path.
    nbytes: its length. sha256: hex digest, None until somebody computed it (`digest.py`).
    """

    name: str
    nbytes: int
    sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """One block of memory that tensors are views of; equal id means shared memory.

    nbytes: its declared length, uncompressed. present_nbytes: how many of them the file really holds (less when the
    file is cut short). offset: where its bytes begin in the file, None when they are not in it (meta tensors).
    deflated_nbytes: compressed length when the bytes at `offset` are a raw deflate stream, else None.
    skipped_nbytes: what the inflated stream holds before the storage's first byte (a header), which does not count.
    device: where it was when saved ("cpu", "cuda:1"), None where the format does not tell.
    big_endian: byte order of its elements.
    inline: the bytes themselves, for numpy arrays that a pickle writes as escaped text; None for all others.
    """

    id: str
    nbytes: int
    present_nbytes: int
    offset: int | None
    deflated_nbytes: int | None = None
    skipped_nbytes: int = 0
    device: str | None = None
    big_endian: bool = False
    inline: bytes | None = None

    def moved(self, key: str, offset: int | None) -> Storage:
        """The same under another id, beginning elsewhere; see `TensorInfo.moved`."""
        return Storage(
            id=key,
            nbytes=self.nbytes,
            present_nbytes=self.present_nbytes,
            offset=offset,
            deflated_nbytes=self.deflated_nbytes,
            skipped_nbytes=self.skipped_nbytes,
            device=self.device,
            big_endian=self.big_endian,
            inline=self.inline,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """How a tensor's elements follow from what the file stores, where they are not simply that.

    scheme: "per_tensor_affine", "per_channel_affine", a sparse layout, "nested", or "" for dense elements.
    parts: the dense tensors it is made of: indices and values of a sparse tensor (compressed indices, plain indices,
    values for the compressed layouts), scales and zero points of a quantised one.
    scale, zero_point: of a tensor quantised as a whole. axis: of one quantised per channel.
    coalesced: of a sparse COO tensor, None where the file does not tell.
    conjugated, negated: the stored numbers are the conjugate, or the negative, of the tensor's.
    """

    scheme: str = ""
    parts: tuple[TensorInfo, ...] = ()
    scale: float = 1.0
    zero_point: int = 0
    axis: int = 0
    coalesced: bool | None = None
    conjugated: bool = False
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorInfo:
    """One tensor as the file declares it.

    name: its key in its state dict ("layer1.0.conv1.weight"), or its dotted path when it is in none.
    path: the keys from the root of the file to it; keys themselves may contain dots.
    shape: sizes; () for a scalar. dtype: a name from `dtypes.DTYPES`.
    stride, offset: in elements, into the storage; stride is None for layouts without one (sparse).
    nbytes: numel x itemsize, the bytes of the elements it shows.
    device: where it was when saved. requires_grad: as saved; always False in a state dict, None where not in the file.
    layout: "strided", "sparse_coo", ... Only strided tensors can be read as bytes.
    is_parameter: True for an nn.Parameter of a pickled module, False for its buffers, None where not in the file.
    note: what else is to be said ("quantised per channel", "meta tensor: no data"), "" for ordinary tensors.
    encoding: how its elements follow from what is stored; None for ordinary tensors.
    """

    name: str
    path: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    storage_id: str | None
    offset: int = 0
    stride: tuple[int, ...] | None = None
    device: str | None = None
    requires_grad: bool | None = None
    layout: str = "strided"
    is_parameter: bool | None = None
    note: str = ""
    encoding: Encoding | None = None

    @property
    def numel(self) -> int:
        """Number of elements; 1 for a scalar."""
        count = 1
        for n in self.shape:
            count *= n
        return count

    def moved(self, name: str, path: tuple[str, ...], storage_id: str | None) -> TensorInfo:
        """The same tensor under another name, at another place. `replace`, which asks each field by its name, makes the
        opening of shards with 95,000 tensors a tenth longer (5.9 s of processor time for 5.35)."""
        return TensorInfo(
            name=name,
            path=path,
            shape=self.shape,
            dtype=self.dtype,
            nbytes=self.nbytes,
            storage_id=storage_id,
            offset=self.offset,
            stride=self.stride,
            device=self.device,
            requires_grad=self.requires_grad,
            layout=self.layout,
            is_parameter=self.is_parameter,
            note=self.note,
            encoding=self.encoding,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleNode:
    """A module of the model: by name from a state dict's keys, with class and settings from a pickled module.

    name: its last segment, "" for the root. path: its dotted name, "" for the root.
    kind: full class name ("torch.nn.modules.conv.Conv2d"), None when only keys are known.
    hyperparameters: (name, value as text) from the pickled module's attributes.
    tensors: those directly in this module. children: in file order.
    """

    __repr__ = short_repr

    name: str
    path: str
    kind: str | None = None
    hyperparameters: tuple[tuple[str, str], ...] = ()
    tensors: tuple[TensorInfo, ...] = ()
    children: tuple[ModuleNode, ...] = ()


class StateRole(StrEnum):
    """What a group of tensors is for, decided from where it is and what is in it.

    TRAINING: state of a gradient scaler, a schedule, random generators, a callback; never weights.
    """

    WEIGHTS = "weights"
    EMA = "ema"
    OPTIMIZER = "optimizer"
    TRAINING = "training"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """One set of named tensors as a part of a model.

    prefix: what stands before its names there ("encoder."), "" for a part at the top. path: of the set in the file.
    access: the same as Python indexes it. is_module: it is a pickled module's.
    """

    prefix: str
    path: tuple[str, ...]
    access: Access
    is_module: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StateDict:
    """One set of named tensors in the file: a mapping name -> tensor, or a pickled module's parameters and buffers.

    path: keys from the root to it, () when the file itself is the state dict.
    role and why: what it is taken for and the evidence in one sentence.
    tensors: in the file's order; `TensorInfo.name` is the key. others: keys whose values are not tensors.
    kind: type of the container ("collections.OrderedDict") or class of the module ("torchvision.models.resnet.ResNet").
    ordered: whether the order is the model's own (pickles keep it, safetensors re-orders).
    modules: the module tree; with classes and hyperparameters where the file holds a pickled module.
    versions: torch's `_metadata` (module path, version), () where the file has none.
    odd_versions: `_metadata` is there and not what torch writes, so that no load gets past it.
    odd_keys: (as Python writes it, its type) of keys that are no text; what lies under them is in none of the above.
    access: the path as Python indexes it, () where it is the path itself.
    gathered: the sets that it is made of, under the prefix of each, where they lie apart; title: how it is named then.
    """

    __repr__ = short_repr

    path: tuple[str, ...]
    role: StateRole
    why: str
    kind: str
    tensors: tuple[TensorInfo, ...]
    modules: ModuleNode
    others: tuple[str, ...] = ()
    ordered: bool = True
    is_module: bool = False
    versions: tuple[tuple[str, int], ...] = ()
    odd_versions: bool = False
    odd_keys: tuple[tuple[str, str], ...] = ()
    access: Access = ()
    gathered: tuple[Gathered, ...] = ()
    title: str = ""

    @property
    def label(self) -> str:
        """How pages and commands name it: "state_dict", "model / ema", or "the file itself"."""
        if self.title:
            return self.title
        return " / ".join(self.path) if self.path else "the file itself"


class GlobalVerdict(StrEnum):
    """What is known about a global name in a pickle. None of them says that the file is harmless."""

    KNOWN = "known"
    DANGEROUS = "dangerous"
    UNKNOWN = "unknown"

    @property
    def order(self) -> int:
        """0 for the worst."""
        return (GlobalVerdict.DANGEROUS, GlobalVerdict.UNKNOWN, GlobalVerdict.KNOWN).index(self)


class Reach(StrEnum):
    """What an ordinary load does with a name that a pickle of the file has."""

    RUNS = "runs"  # It calls it, or changes it for everybody who uses it afterwards.
    MAY_RUN = "may run"  # It imports it, and what else it calls may be handed it.
    NAMES = "names"  # It imports it and provably calls it nowhere: a value, or thrown away.
    LEAVES = "leaves"  # Only a pickle has it that no loader of the format reads.


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalUse:
    """A global that a real unpickle would import, and call if `called`. Here it was neither.

    name: "module.attribute" as written. place: where in the tree it first sits ("optimizer.state.0", "" at the root).
    arguments: the start of the call's arguments as text. count: how often it occurs.
    why: the reason for the verdict in a few words. reach: how far a load goes with it.
    """

    name: str
    verdict: GlobalVerdict
    place: str
    arguments: str
    called: bool
    count: int
    why: str
    reach: Reach = Reach.MAY_RUN

    def joined(self, other: GlobalUse) -> GlobalUse:
        """The same name of two pickles: how often in both, and the worse of what a load does with it."""
        reach = min(self.reach, other.reach, key=list(Reach).index)
        return replace(self, count=self.count + other.count, called=self.called or other.called, reach=reach)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One of several files that a checkpoint is made of, or one beside it that was read as evidence.

    name: relative to the folder. says: what it is ("safetensors file, 112 tensors", "read as evidence", "missing").
    opened: whether its whole content is in this report, so that it needs none of its own.
    """

    name: str
    nbytes: int
    says: str
    opened: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceText:
    """Program text that lies in the file: shown, never run.

    name: of the archive member, or the class it belongs to. text: its beginning. nbytes: of the whole.
    """

    name: str
    text: str
    nbytes: int

    @property
    def whole(self) -> bool:
        """Whether all of it is in `text`; a line end at the very end does not count."""
        return len(self.text.encode("utf-8", "replace")) + 1 >= self.nbytes


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class Checkpoint:
    """Everything that the headers of a file say.

    format: entry id of the reader ("torch-zip"); format_says: the same for people ("torch.save zip archive").
    root: the tree of Python values around the tensors (for safetensors: a mapping of tensors).
    tensors: every tensor in the file, in file order. storages: by id.
    state_dicts: the most likely weights first; empty for a bare tensor or list.
    metadata: (key, value as text) found beside the weights: epoch, lr, versions, safetensors' __metadata__.
    globals: what an unpickle would import, worst first. findings: what the reader noticed.
    skipped: what was not examined, and why. parts: the files it is made of, where they are several.
    code: program text in the file. unread: other files of the folder or archive whose format may name code, which
    nobody here read for it: the globals say nothing of them.
    """

    __repr__ = short_repr

    origin: Origin
    format: str
    format_says: str
    root: Value
    tensors: tuple[TensorInfo, ...]
    storages: dict[str, Storage] = field(default_factory=dict)
    state_dicts: tuple[StateDict, ...] = ()
    metadata: tuple[tuple[str, str], ...] = ()
    globals: tuple[GlobalUse, ...] = ()
    findings: tuple[Finding, ...] = ()
    skipped: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    code: tuple[SourceText, ...] = ()
    unread: tuple[str, ...] = ()
    source: ByteSource

    @property
    def own_metadata(self) -> tuple[tuple[str, str], ...]:
        """The metadata that the checkpoint itself holds, without what files beside it say ("config.json: ...")."""
        beside = tuple(f"{part.name}: " for part in self.parts)
        return tuple(pair for pair in self.metadata if not pair[0].startswith(beside))

    @property
    def weight_sets(self) -> tuple[StateDict, ...]:
        """Every state dict that may be meant as weights (averages, the halves of a GAN), the likeliest first."""
        wanted = (StateRole.WEIGHTS, StateRole.EMA, StateRole.OTHER)
        return tuple(s for role in wanted for s in self.state_dicts if s.role is role and s.tensors)

    @property
    def weights(self) -> StateDict | None:
        """The state dict most likely meant as the model's weights, None when there is none."""
        return next(iter(self.weight_sets), None)
