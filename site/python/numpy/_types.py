"""Types of elements: NumPy's names, sizes and kinds, and how each is read from bytes."""

from __future__ import annotations

import struct


class NotHere(Exception):
    """Replaced by `inspector.errors.MissingLibrary` where the package is there: see `refuse`."""


def refuse(what: str) -> Exception:
    """What to raise for anything of NumPy that is not here: an answer of the program, never a wrong number."""
    try:
        from inspector.errors import MissingLibrary
    except ImportError:
        return NotHere(what)
    return MissingLibrary(
        f"This needs NumPy ({what}), which a browser page does not have.",
        hint="The app does it: make app, or pip install . and inspector on the command line.",
    )


class generic:
    """Base of the scalar types. Called, they give plain Python numbers, rounded as the type rounds."""

    dtype: dtype


class dtype:
    """Of one element. char: of `struct`, "" for types without one number."""

    def __init__(self, name: str, kind: str, itemsize: int, char: str, order: str = "<") -> None:
        self.name, self.kind, self.itemsize, self.char, self.order = name, kind, itemsize, char, order
        self.type = _SCALARS.get(name, generic)

    def newbyteorder(self, order: str) -> dtype:
        return dtype(self.name, self.kind, self.itemsize, self.char, ">" if order == ">" else "<")

    @property
    def str(self) -> str:
        return f"{'|' if self.itemsize == 1 else self.order}{self.kind}{self.itemsize}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, dtype | str | type):
            return NotImplemented
        known = as_dtype(other)
        return (self.kind, self.itemsize, self.order) == (known.kind, known.itemsize, known.order)

    def __hash__(self) -> int:
        return hash((self.kind, self.itemsize, self.order))

    def __repr__(self) -> str:
        return f"dtype('{self.name}')"


_SCALARS: dict[str, type[generic]] = {}
_KNOWN = {
    "bool": ("b", 1, "?"),
    **{f"int{8 * n}": ("i", n, char) for n, char in ((1, "b"), (2, "h"), (4, "i"), (8, "q"))},
    **{f"uint{8 * n}": ("u", n, char) for n, char in ((1, "B"), (2, "H"), (4, "I"), (8, "Q"))},
    **{f"float{8 * n}": ("f", n, char) for n, char in ((2, "e"), (4, "f"), (8, "d"))},
    "complex64": ("c", 8, ""),
    "complex128": ("c", 16, ""),
}
_BY_CODE = {f"{kind}{size}": name for name, (kind, size, _) in _KNOWN.items()}


def _scalar_type(name: str) -> type[generic]:
    kind, size, char = _KNOWN[name]

    def make(cls: type[generic], value: object = 0) -> object:
        if kind == "f":
            return round_to(char, float(value))  # type: ignore[arg-type]
        if kind in "iu":
            return wrap(int(value), kind, size)  # type: ignore[call-overload]
        if kind == "b":
            return bool(value)
        raise refuse(f"numpy.{name}")

    return type("bool_" if name == "bool" else name, (generic,), {"__new__": make, "_name": name})


def round_to(char: str, value: float) -> float:
    """To the nearest of the type; what is too large becomes infinite."""
    if char == "d":
        return value
    try:
        return struct.unpack(f"<{char}", struct.pack(f"<{char}", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def wrap(value: int, kind: str, size: int) -> int:
    """As whole numbers of this size wrap around."""
    value &= (1 << (8 * size)) - 1
    return value - (1 << (8 * size)) if kind == "i" and value >> (8 * size - 1) else value


for _name in _KNOWN:
    _SCALARS[_name] = _scalar_type(_name)
SCALARS = _SCALARS


def as_dtype(given: object) -> dtype:
    """A type as NumPy's functions take it: a name, a code ("<f4", "V12"), a scalar type, or a Python type."""
    if isinstance(given, dtype):
        return given
    if given in (bool, int, float):
        given = {bool: "bool", int: "int64", float: "float64"}[given]  # type: ignore[index]
    name = getattr(given, "_name", given)
    if not isinstance(name, str):
        raise refuse(f"the type {name!r}")
    order = ">" if name[:1] == ">" else "<"
    bare = name.lstrip("<>|=")
    bare = "bool" if bare in ("?", "bool_") else bare
    bare = _BY_CODE.get(bare, bare)
    if bare in _KNOWN:
        return dtype(bare, *_KNOWN[bare], order)
    if bare[:1] == "V" and bare[1:].isdigit():
        return dtype(f"void{8 * int(bare[1:])}", "V", int(bare[1:]), "")
    raise refuse(f"the type {name!r}")
