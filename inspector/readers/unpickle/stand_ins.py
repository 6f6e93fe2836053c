"""What the pickle machine makes instead of objects: inert records that nothing can call.

They compare and hash by identity, hold plain lists, and never run code of the file. Python's own None, bool, int,
float, str, bytes, list and tuple stand for themselves. Dictionaries do not: hashing a hostile key can take quadratic
time (colliding integers) or overflow the C stack (deep tuples), so a `Mapping` is a list of pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from inspector.checkpoint.dtypes import DTYPES

Meaning = Callable[[tuple[object, ...]], object]


class NotUnderstood:
    """What a meaning returns when the arguments are not those of the real function.

    why: in a few words, after "it was not made because"; "" where an unknown call is nothing to report.
    """

    __slots__ = ("why",)

    def __init__(self, why: str = "") -> None:
        self.why = why


NOT_UNDERSTOOD = NotUnderstood()


@dataclass(slots=True, eq=False)
class Use:
    """How one global name is used in a pickle.

    holder: the first record that was made with it. followed: calls whose own pickle was followed in turn.
    altered: the pickle sets attributes or items of what it imports by this name, for everybody who uses it afterwards.
    written: module and name as they stand in the pickle, where a load imports others by them (Python 2's names).
    """

    module: str
    name: str
    count: int = 0
    calls: int = 0
    arguments: str = ""
    holder: object = None
    followed: int = 0
    altered: bool = False
    written: tuple[str, str] | None = None


@dataclass(slots=True, eq=False)
class GlobalRef:
    """A name a real unpickler would import. One object per name and pickle."""

    module: str
    name: str
    use: Use
    meaning: Meaning | None = None

    @property
    def full(self) -> str:
        """ "module.name" as written, with Python 2's builtins under their present name."""
        return f"{self.module}.{self.name}"


@dataclass(slots=True, eq=False)
class Call:
    """A call that was not made: REDUCE, NEWOBJ, INST or OBJ on something without a known meaning.

    states: what BUILD would have set. items, pairs: what APPENDS, ADDITEMS and SETITEMS would have added.
    why: why a known function could not make what it is there for, "" where there is nothing to report.
    """

    callee: object
    args: object
    how: str
    kwargs: object = None
    why: str = ""
    states: list[object] = field(default_factory=list)
    items: list[object] = field(default_factory=list)
    pairs: list[tuple[object, object]] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Mapping:
    """A dict or one of its known relatives. attributes: what BUILD set on it (`_metadata` of a state dict)."""

    kind: str = "dict"
    pairs: list[tuple[object, object]] = field(default_factory=list)
    attributes: object = None
    extra: object = None

    def get(self, key: str) -> object:
        """The last value under a text key, None when there is none."""
        for k, v in reversed(self.pairs):
            if type(k) is str and k == key:
                return v
        return None


@dataclass(slots=True, eq=False)
class Group:
    """A set, frozenset, deque, torch.Size ...: a typed bag of items."""

    kind: str
    items: list[object] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Named:
    """A constant that is known by its text: torch.float32, device('cuda:0'), a layout, a slice."""

    kind: str
    text: str


@dataclass(slots=True, eq=False)
class BytesAt:
    """A long bytes constant left in the file. offset: absolute, in the machine's source."""

    offset: int
    nbytes: int


@dataclass(slots=True, eq=False)
class PersistentRef:
    """A persistent id that is none of torch's."""

    pid: object


@dataclass(slots=True, eq=False)
class StorageRef:
    """One storage as persistent ids declare it.

    key: of the archive member or of the legacy key list. dtype: None for untyped storages. numel: elements (bytes if
    untyped). view: (offset, size) in elements inside the root storage, legacy files only.
    """

    key: str
    dtype: str | None
    type_name: str
    location: str
    numel: int
    view: tuple[int, int] | None = None

    @property
    def itemsize(self) -> int:
        """Bytes per element; an untyped storage counts bytes."""
        return DTYPES[self.dtype].itemsize if self.dtype else 1

    @property
    def nbytes(self) -> int:
        """What it declares to hold."""
        return self.numel * self.itemsize


@dataclass(slots=True, eq=False)
class TensorStub:
    """A tensor as a rebuild function would make it. storage: None when the file has no bytes for it."""

    storage: StorageRef | ArrayBytes | None
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...] | None = None
    offset: int = 0
    requires_grad: bool | None = None
    layout: str = "strided"
    is_parameter: bool | None = None
    kind: str = "torch.Tensor"
    device: str | None = None
    note: str = ""
    nbytes: int | None = None
    extra: list[object] = field(default_factory=list)
    recipe: Recipe | None = None
    why: str = ""


@dataclass(slots=True, eq=False)
class Recipe:
    """How a tensor's elements follow from what is stored, where they are not simply it; see `types.Encoding`.

    parts: dense tensors of the same file, without a recipe of their own.
    """

    scheme: str = ""
    parts: tuple[TensorStub, ...] = ()
    scale: float = 1.0
    zero_point: int = 0
    axis: int = 0
    coalesced: bool | None = None
    conjugated: bool = False
    negated: bool = False


@dataclass(slots=True, eq=False)
class Labelled:
    """Something that belongs to a tensor, with the name it is shown under."""

    label: str
    value: object


@dataclass(slots=True, eq=False)
class NumpyDtype:
    """numpy.dtype(code) with the byte order that BUILD sets: "<", ">", "|" or "=".

    fields: (name, byte order, code) of a structured type. unit: of dates and durations. state: what BUILD set, once.
    """

    code: str
    order: str = "="
    structured: bool = False
    fields: tuple[tuple[str, str, str], ...] = ()
    unit: str = ""
    state: tuple[object, ...] = ()


@dataclass(slots=True, eq=False)
class ArrayBytes:
    """Elements of a numpy array inside the pickle itself: bytes in hand, or where they lie in the file."""

    data: bytes | BytesAt
    big_endian: bool = False


# Classes that stand for an array: joblib's own, and the copy that scikit-learn carried until 0.22.
WRAPPERS = (
    "joblib.numpy_pickle.NumpyArrayWrapper",
    "sklearn.externals.joblib.numpy_pickle.NumpyArrayWrapper",
)


@dataclass(slots=True, eq=False)
class WrappedArray:
    """joblib's stand-in for an array whose bytes follow in the stream. name: of its class. built: they were read."""

    name: str
    built: bool = False


@dataclass(slots=True, eq=False)
class ArrayStub:
    """A numpy array before BUILD has filled it, or one whose elements are Python objects."""

    kind: str = "numpy.ndarray"
    tensor: TensorStub | None = None
    note: str = ""
    extra: list[object] = field(default_factory=list)


def text_of(value: object, width: int = 120) -> str:
    """A value in short, at most about `width` characters; never recurses deeper than three levels."""
    text = _brief(value, 3, width)
    return text if len(text) <= width else text[: width - 1] + "…"


def _brief(value: object, depth: int, width: int) -> str:
    kind = type(value)
    if value is None or kind is bool or kind is float:
        return repr(value)
    if kind is int:
        return int_text(value)  # type: ignore[arg-type]
    if kind is str:
        cut = value[: width + 1]  # type: ignore[index]
        return repr(cut)
    if isinstance(value, bytes | bytearray):
        return repr(bytes(value[: width + 1]))
    if isinstance(value, list | tuple):
        return _brief_items(list(value[:8]), len(value), "[]" if kind is list else "()", depth, width)
    if isinstance(value, Group):
        return value.kind + _brief_items(value.items[:8], len(value.items), "()", depth, width)
    if isinstance(value, Mapping):
        return f"{value.kind} of {len(value.pairs)}"
    if isinstance(value, GlobalRef):
        return value.full
    if isinstance(value, Named):
        return value.text
    if isinstance(value, Call):
        callee = _brief(value.callee, depth - 1, width) if depth else "…"
        return f"{callee}{_brief(value.args, depth - 1, width) if depth else '(…)'}"
    if isinstance(value, TensorStub):
        return f"tensor {'x'.join(map(str, value.shape[:8])) or 'scalar'} {value.dtype}"
    if isinstance(value, StorageRef):
        return f"storage {value.key[:20]}"
    if isinstance(value, NumpyDtype):
        return f"dtype({value.code})"
    if isinstance(value, BytesAt):
        return f"{value.nbytes:,} bytes"
    return kind.__name__


def _brief_items(items: list[object], n: int, brackets: str, depth: int, width: int) -> str:
    if depth <= 0:
        return f"{brackets[0]}…{brackets[1]}"
    parts: list[str] = []
    left = width
    for item in items:
        if left < 0:  # What is behind the width is cut off anyway, and costs most of the time.
            break
        parts.append(_brief(item, depth - 1, left))
        left -= len(parts[-1])
    if n > len(parts):
        parts.append("…")
    comma = "," if brackets == "()" and n == 1 else ""
    return f"{brackets[0]}{', '.join(parts)}{comma}{brackets[1]}"


def int_text(n: int) -> str:
    """An integer as text; Python refuses to write out very long ones."""
    return str(n) if n.bit_length() < 4096 else f"an integer of {n.bit_length():,} bits"
