"""Which files belong to the run, and in which order they stand: names and shapes only, no tensor is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from inspector.checkpoint.training_place import Place, in_order, place_of
from inspector.checkpoint.types import Checkpoint, StateDict, TensorInfo
from inspector.compare.align import Operand, align, describe
from inspector.compare.report import Way
from inspector.compare.updates import is_real
from inspector.errors import InspectorError, UnknownFormat
from inspector.findings import Severity
from inspector.progress import Progress
from inspector.run.files import RunFile, opened
from inspector.run.report import LeftOut
from inspector.run.stated import numbers_of
from inspector.units import counted

#: Files that are looked at, and those of them that are read.
MOST_FILES = 10_000
# A file with such a name is meant as a checkpoint, whatever is in it.
_ENDINGS = (".pth", ".pt", ".ckpt", ".bin", ".th", ".tar", ".safetensors", ".pt2", ".gguf", ".onnx", ".npz", ".pkl")
# Of the run's tensors a member has to have.
_SHARE = 0.5

Signature = frozenset[tuple[str, tuple[int, ...]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A checkpoint that may be a member. state: path of the state dict, None for all tensors. names: of the run's
    tensors as this one calls them. nbytes: of its floating tensors."""

    file: RunFile
    place: Place
    state: tuple[str, ...] | None
    label: str
    file_nbytes: int
    nbytes: int
    signature: Signature
    stated: Mapping[str, float]
    names: Mapping[str, str] = field(default_factory=dict)
    way: Way = Way.NAMES

    def tensors(self, checkpoint: Checkpoint) -> tuple[TensorInfo, ...]:
        """Of the opened file, those that are meant."""
        state = self.state_dict(checkpoint)
        return tuple(tensor for tensor in (state.tensors if state else checkpoint.tensors) if _counts(tensor))

    def state_dict(self, checkpoint: Checkpoint) -> StateDict | None:
        """The state dict that is meant."""
        return next((s for s in checkpoint.state_dicts if s.path == self.state), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """members: in order. left_out: what is no member. passed: (name, why) of what is no checkpoint."""

    members: tuple[Candidate, ...]
    ordered_by: str
    left_out: tuple[LeftOut, ...]
    passed: tuple[tuple[str, str], ...]


def gather(files: Sequence[RunFile], state: str, progress: Progress) -> Gathered:
    """state: label or last key of the state dict that is meant in each file, "" for the likeliest weights."""
    found: list[Candidate] = []
    left: list[LeftOut] = []
    passed: list[tuple[str, str]] = []
    for number, file in enumerate(files[:MOST_FILES]):
        progress(number, None, f"opening {file.name}")
        try:
            with opened(file) as checkpoint:
                one = _candidate(file, checkpoint, state)
        except InspectorError as error:
            if isinstance(error, UnknownFormat) and not file.asked and not file.name.lower().endswith(_ENDINGS):
                passed.append((file.name, error.says))
            else:
                left.append(LeftOut(name=file.name, why=error.says, broken=True))
            continue
        if isinstance(one, Candidate):
            found.append(one)
        elif isinstance(one, LeftOut) or file.asked:
            left.append(one if isinstance(one, LeftOut) else LeftOut(name=file.name, why=one, broken=False))
        else:
            passed.append((file.name, one))
    if len(files) > MOST_FILES:
        passed.append((f"{len(files) - MOST_FILES:,} further files", f"only {MOST_FILES:,} are looked at."))
    order, by = in_order([(one.file.name, one.place) for one in found])
    kept, others = _belonging([found[position] for position in order])
    if others:
        # What is none of the run does not count for what orders it.
        again, by = in_order([(one.file.name, one.place) for one in kept])
        kept = [kept[position] for position in again]
    return Gathered(members=tuple(kept), ordered_by=by, left_out=(*left, *others), passed=tuple(passed))


def _candidate(file: RunFile, checkpoint: Checkpoint, wanted: str) -> Candidate | LeftOut | str:
    """Why it is none, where it is none."""
    state = checkpoint.weights
    errors = [finding for finding in checkpoint.findings if finding.severity is Severity.ERROR]
    if state is None and not checkpoint.tensors and errors:
        return LeftOut(name=file.name, why=errors[0].says, broken=True)
    if wanted:
        fits = [
            s for s in checkpoint.state_dicts if wanted in (s.label, ".".join(s.path), s.path[-1] if s.path else "")
        ]
        if len(fits) != 1:
            return f'It has {counted(len(fits), "state dict")} called "{wanted}".'
        (state,) = fits
    if state is None:
        return "It has no set of weights."
    tensors = [tensor for tensor in state.tensors if _counts(tensor)]
    if not tensors:
        return "None of its tensors holds floating-point numbers."
    return Candidate(
        file=file,
        place=place_of(checkpoint),
        state=state.path,
        label=state.label if state.path else "",
        file_nbytes=checkpoint.origin.nbytes,
        nbytes=sum(tensor.nbytes for tensor in tensors),
        signature=frozenset((tensor.name, tensor.shape) for tensor in tensors),
        stated=numbers_of(checkpoint, state.path),
    )


def _counts(tensor: TensorInfo) -> bool:
    """Whether its numbers are followed."""
    return is_real(tensor) and tensor.layout == "strided" and tensor.numel > 0


def _belonging(found: Sequence[Candidate]) -> tuple[list[Candidate], list[LeftOut]]:
    """What has the tensors that most of them have; the first of these says how they are called."""
    if not found:
        return [], []
    counts = Counter(one.signature for one in found)
    most = max(counts.values())
    first = next(one for one in found if counts[one.signature] == most)
    pairing: dict[Signature, tuple[dict[str, str], Way, str]] = {}
    kept: list[Candidate] = []
    left: list[LeftOut] = []
    for one in found:
        if one.signature not in pairing:
            pairing[one.signature] = _paired(first, one)
        names, way, says = pairing[one.signature]
        if len(names) < _SHARE * len(first.signature):
            shared = f"Of the {counted(len(first.signature), 'tensor')} of {first.file.name} it has {len(names):,}"
            left.append(LeftOut(name=one.file.name, why=f"{shared}. {says}", broken=False))
        else:
            kept.append(replace(one, names=names, way=way))
    return kept, left


def _paired(first: Candidate, one: Candidate) -> tuple[dict[str, str], Way, str]:
    """(the run's name -> its own, by what, in words), of tensors with the same shape."""
    if first.signature == one.signature:
        return {name: name for name, _ in first.signature}, Way.NAMES, ""
    try:
        with opened(first.file) as a, opened(one.file) as b:
            pairs = align(_operand(first, a), _operand(one, b))
            says = describe(pairs).says
    except InspectorError as error:
        return {}, Way.NONE, error.says
    names = {x.name: y.name for x, y in pairs.pairs() if x.shape == y.shape}
    return names, pairs.way, says


def _operand(one: Candidate, checkpoint: Checkpoint) -> Operand:
    return Operand(checkpoint=checkpoint, state=one.state_dict(checkpoint), tensors=one.tensors(checkpoint))
