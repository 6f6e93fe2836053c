"""Plain values that are calls in a pickle: dates, paths, decimals, identifiers, states of random generators.

Each becomes its text, computed here from checked arguments. Source: the `__reduce__` of each class in CPython's Lib and
of numpy/random/_pickle.py.
"""

from __future__ import annotations

import datetime

from inspector.readers.unpickle.stand_ins import NOT_UNDERSTOOD, Call, GlobalRef, Mapping, Meaning, Named, text_of

_MOST_TEXT = 4096
# What torch before 2.4 wrote for the method in a state dict of OneCycleLR: getattr(class or scheduler, name).
_STATIC_METHODS = {"torch.optim.lr_scheduler.OneCycleLR": ("_annealing_cos", "_annealing_linear")}


def takes_static_method(module: str, args: object) -> bool:
    """Whether a call of getattr only fetches a method of torch that computes with numbers."""
    if module != "builtins" or type(args) is not tuple or len(args) != 2:
        return False
    owner, name = args
    if isinstance(owner, Call) and owner.args == ():  # The scheduler itself, which torch before 1.13 wrote.
        owner = owner.callee
    return isinstance(owner, GlobalRef) and type(name) is str and name in _STATIC_METHODS.get(owner.full, ())


def _raw(value: object, n: int) -> bytes | None:
    """The n bytes of a packed date: bytes, or text where Python 2 wrote it."""
    if isinstance(value, str) and len(value) == n:
        try:
            value = value.encode("latin-1")
        except UnicodeEncodeError:
            return None
    return value if isinstance(value, bytes) and len(value) == n else None


def _numbers(args: tuple[object, ...], most: int) -> list[int] | None:
    numbers = [a for a in args if type(a) is int and a.bit_length() < 64]
    return numbers if len(numbers) == len(args) and 0 < len(args) <= most else None


def _date(args: tuple[object, ...]) -> object:
    raw, numbers = _raw(args[0], 4) if len(args) == 1 else None, _numbers(args, 3)
    if raw is not None:
        numbers = [raw[0] * 256 + raw[1], raw[2], raw[3]]
    if numbers is None or len(numbers) != 3:
        return NOT_UNDERSTOOD
    try:
        return Named("datetime.date", datetime.date(*numbers).isoformat())
    except (ValueError, OverflowError):
        return NOT_UNDERSTOOD


def _datetime(args: tuple[object, ...]) -> object:
    zone = args[1] if len(args) == 2 and isinstance(args[1], Named) else None
    raw = _raw(args[0], 10) if len(args) == 1 or zone is not None else None
    numbers = _numbers(args, 7)
    if raw is not None:
        # The highest bit of the month is `fold`.
        numbers = [raw[0] * 256 + raw[1], raw[2] & 127, *raw[3:7], int.from_bytes(raw[7:10], "big")]
    if numbers is None or len(numbers) < 3:
        return NOT_UNDERSTOOD
    year, month, day, hour, minute, second, microsecond = [*numbers, 0, 0, 0, 0][:7]
    try:
        made = datetime.datetime(year, month, day, hour, minute, second, microsecond)
    except (ValueError, OverflowError):
        return NOT_UNDERSTOOD
    return Named("datetime.datetime", str(made) + (f" {zone.text}" if zone else ""))


def _time(args: tuple[object, ...]) -> object:
    raw, numbers = _raw(args[0], 6) if 1 <= len(args) <= 2 else None, _numbers(args, 4)
    if raw is not None:
        numbers = [raw[0] & 127, raw[1], raw[2], int.from_bytes(raw[3:6], "big")]
    try:
        hour, minute, second, microsecond = [*(numbers or [24]), 0, 0, 0][:4]
        return Named("datetime.time", str(datetime.time(hour, minute, second, microsecond)))
    except (ValueError, OverflowError):
        return NOT_UNDERSTOOD


def _timedelta(args: tuple[object, ...]) -> object:
    numbers = _numbers(args, 3)
    try:
        return Named("datetime.timedelta", str(datetime.timedelta(*numbers))) if numbers else NOT_UNDERSTOOD
    except (ValueError, OverflowError):
        return NOT_UNDERSTOOD


def _timezone(args: tuple[object, ...]) -> object:
    if not 1 <= len(args) <= 2 or not isinstance(args[0], Named) or args[0].kind != "datetime.timedelta":
        return NOT_UNDERSTOOD
    name = args[1][:60] if len(args) == 2 and isinstance(args[1], str) else ""
    offset = args[0].text.removesuffix(":00")
    return Named("datetime.timezone", name or ("UTC" if offset == "0:00" else f"UTC+{offset}"))


def _path(kind: str) -> Meaning:
    def meaning(args: tuple[object, ...]) -> object:
        if len(args) > 256 or not all(type(a) is str for a in args):
            return NOT_UNDERSTOOD
        parts = [a for a in args if isinstance(a, str)]
        separator = "\\" if "Windows" in kind else "/"
        rooted = bool(parts) and parts[0].endswith(separator)
        text = parts[0] + separator.join(parts[1:]) if rooted else separator.join(parts)
        return Named(kind, text[:_MOST_TEXT] or ".")

    return meaning


def _number_text(kind: str, most: int) -> Meaning:
    def meaning(args: tuple[object, ...]) -> object:
        fits = 1 <= len(args) <= most and all(type(a) in (int, str) for a in args)
        if not fits:
            return NOT_UNDERSTOOD
        return Named(kind, "/".join(str(a)[:60] if isinstance(a, str) else text_of(a, 60) for a in args))

    return meaning


_UUID = "uuid.UUID"


def _uuid(args: tuple[object, ...]) -> object:
    return Named(_UUID, "") if not args else NOT_UNDERSTOOD


def build_plain(target: Named, state: object) -> bool:
    """BUILD on a plain value: a UUID gets its number."""
    number = state.get("int") if isinstance(state, Mapping) and target.kind == _UUID else None
    if type(number) is not int or not 0 <= number < 1 << 128:
        return False
    digits = f"{number:032x}"
    target.text = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    return True


def _generator(args: tuple[object, ...]) -> object:
    """numpy.random's constructors: (bit generator or its class or name, ...). BUILD sets the state."""
    if not args or len(args) > 2:
        return NOT_UNDERSTOOD
    made = Mapping("numpy.random state")
    first = args[0]
    if isinstance(first, Mapping):
        return first
    if isinstance(first, GlobalRef | str | bytes):
        name = first.name if isinstance(first, GlobalRef) else text_of(first, 40).strip("'")
        made.pairs.append(("bit generator", name[:60]))
        return made
    return NOT_UNDERSTOOD


PLAIN_MEANINGS: dict[str, Meaning] = {
    "datetime.date": _date,
    "datetime.datetime": _datetime,
    "datetime.time": _time,
    "datetime.timedelta": _timedelta,
    "datetime.timezone": _timezone,
    **{
        f"{module}.{name}": _path(f"pathlib.{name}")
        for module in ("pathlib", "pathlib._local")
        for name in ("PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath", "Path", "PurePath")
    },
    "decimal.Decimal": _number_text("decimal.Decimal", 1),
    "fractions.Fraction": _number_text("fractions.Fraction", 2),
    _UUID: _uuid,
    "numpy.random._pickle.__randomstate_ctor": _generator,
    "numpy.random._pickle.__bit_generator_ctor": _generator,
    "numpy.random._pickle.__generator_ctor": _generator,
}
