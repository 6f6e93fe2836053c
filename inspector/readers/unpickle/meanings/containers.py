"""Python's containers and small constants, and torch's sizes, devices and layouts, as pickles call for them."""

from __future__ import annotations

from inspector.readers.unpickle.stand_ins import NOT_UNDERSTOOD, Group, Mapping, Meaning, Named


def _pairs(value: object) -> list[tuple[object, object]] | None:
    if isinstance(value, Mapping):
        return list(value.pairs)
    if not isinstance(value, list | tuple):
        return None
    pairs: list[tuple[object, object]] = []
    for item in value:
        if not isinstance(item, list | tuple) or len(item) != 2:
            return None
        pairs.append((item[0], item[1]))
    return pairs


def _dict_like(kind: str, *, factory: bool = False) -> Meaning:
    def meaning(args: tuple[object, ...]) -> object:
        made = Mapping(kind)
        rest = args
        if factory and args:
            # The factory is only named: a real defaultdict calls it for keys that are missing.
            made.extra, rest = args[0], args[1:]
        if len(rest) > 1:
            return NOT_UNDERSTOOD
        if rest:
            pairs = _pairs(rest[0])
            if pairs is None:
                return NOT_UNDERSTOOD
            made.pairs = pairs
        return made

    return meaning


def _group(kind: str) -> Meaning:
    def meaning(args: tuple[object, ...]) -> object:
        if not args:
            return Group(kind)
        items = args[0].items if isinstance(args[0], Group) else args[0]
        if len(args) > 2 or not isinstance(items, list | tuple):
            return NOT_UNDERSTOOD
        return Group(kind, list(items))

    return meaning


def _text_call(kind: str) -> Meaning:
    """A constant shown as its call: slice(0, 3, None), complex(1, 2)."""

    def meaning(args: tuple[object, ...]) -> object:
        if len(args) > 3 or not all(a is None or type(a) in (int, float, str) for a in args):
            return NOT_UNDERSTOOD
        parts = [repr(a[:60]) if isinstance(a, str) else str(a)[:60] for a in args]
        return Named(kind, f"{kind.rpartition('.')[2]}({', '.join(parts)})")

    return meaning


def _torch_device(args: tuple[object, ...]) -> object:
    if not 1 <= len(args) <= 2 or type(args[0]) is not str or not all(type(a) is int for a in args[1:]):
        return NOT_UNDERSTOOD
    return Named("torch.device", ":".join(str(a)[:40] for a in args))


def _layout(args: tuple[object, ...]) -> object:
    ok = len(args) == 1 and type(args[0]) is str
    return Named("torch.layout", str(args[0])[:60]) if ok else NOT_UNDERSTOOD


def _encode(args: tuple[object, ...]) -> object:
    """_codecs.encode(text, 'latin1'): how protocol 2 writes bytes."""
    if len(args) == 2 and type(args[0]) is str and args[1] in ("latin1", "latin-1", "raw_unicode_escape"):
        try:
            return args[0].encode("latin-1")
        except UnicodeEncodeError:
            return NOT_UNDERSTOOD
    return NOT_UNDERSTOOD


def _bytes(args: tuple[object, ...]) -> object:
    if not args:
        return b""
    if len(args) == 1 and isinstance(args[0], bytes):
        return args[0]
    if len(args) == 2 and type(args[0]) is str:
        return _encode((args[0], "latin-1"))
    return NOT_UNDERSTOOD


CONTAINER_MEANINGS: dict[str, Meaning] = {
    "torch.serialization._get_layout": _layout,
    "torch.Size": _group("torch.Size"),
    "torch.device": _torch_device,
    "collections.OrderedDict": _dict_like("collections.OrderedDict"),
    "collections.Counter": _dict_like("collections.Counter"),
    "collections.defaultdict": _dict_like("collections.defaultdict", factory=True),
    "builtins.dict": _dict_like("dict"),
    "collections.deque": _group("collections.deque"),
    "builtins.set": _group("set"),
    "builtins.frozenset": _group("frozenset"),
    "builtins.complex": _text_call("complex"),
    "builtins.slice": _text_call("slice"),
    "builtins.range": _text_call("range"),
    "builtins.bytes": _bytes,
    "builtins.bytearray": _bytes,
    "_codecs.encode": _encode,
}
