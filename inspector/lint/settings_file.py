"""`inspector.toml`: what counts in a project, and from which number on.

    [check]
    fail-on = "warning"
    select = ["non-finite", "dangerous"]
    ignore = ["wrapper-names"]
    weights-up-to = "2GB"

    [[check.overrides]]
    paths = ["old/*"]
    ignore = ["large-weight"]

    [thresholds]
    large = 5000.0

Every name and type is checked: a setting that means nothing would be believed to hold.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_type_hints

from inspector.errors import ReadError, UsageError
from inspector.findings import Severity
from inspector.health.thresholds import DEFAULTS, Thresholds
from inspector.lint.kinds import find_ids
from inspector.lint.request import Override, Settings
from inspector.side_files import PathKind, kind_of_path, read_bytes, shown_name
from inspector.units import parse_size

NAME = "inspector.toml"
_MOST_NBYTES = 256_000
_TABLES = ("check", "thresholds")
_CHECK = ("fail-on", "select", "ignore", "weights-up-to", "overrides")
_OVERRIDE = ("paths", "ignore")


def find_settings(first: Path) -> Path | None:
    """The nearest inspector.toml: in the folder that is checked first, or of the file, or in one above it."""
    here = Path(os.path.abspath(first))
    folders = [here, *here.parents] if kind_of_path(here) is PathKind.FOLDER else here.parents
    for folder in folders:
        try:
            if kind_of_path(folder / NAME) is PathKind.FILE:
                return folder / NAME
        except ReadError:  # A folder above that nobody may look into.
            continue
    return None


def read_settings(path: Path) -> Settings:
    """What the file says. Raises ReadError where it cannot be read, UsageError, with the place, for what means nothing
    in it."""
    name = shown_name(path)
    try:
        held = tomllib.loads(read_bytes(path, most_nbytes=_MOST_NBYTES).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} is no TOML: {str(error)[:200] or type(error).__name__}.") from error
    _check_names(name, held, _TABLES, "table")
    check, thresholds = _table(name, held, "check"), _table(name, held, "thresholds")
    _check_names(f"{name} [check]", check, _CHECK, "setting")
    where = f"{name} [check]"
    size = _text(where, check, "weights-up-to")
    return Settings(
        fail_on=_severity(where, check),
        select=_ids(where, check, "select"),
        ignore=_ids(where, check, "ignore"),
        weights_up_to=_size(where, size) if size else None,
        thresholds=_thresholds(f"{name} [thresholds]", thresholds),
        overrides=tuple(_overrides(name, check.get("overrides", []))),
        source=Path(os.path.abspath(path)).as_posix(),
        folder=Path(os.path.abspath(path)).parent,
    )


def _check_names(where: str, held: Mapping[str, Any], names: Iterable[str], what: str) -> None:
    for name in held:
        if name not in names:
            near = difflib.get_close_matches(name[:80], list(names), n=1, cutoff=0.5)
            hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(names)}."
            raise UsageError(f'{where}: no {what} is called "{name[:80]}".', hint=hint)


def _table(name: str, held: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    table = held.get(key, {})
    if not isinstance(table, dict):
        raise UsageError(f"{name}: {key} is no table.", hint=f"Write [{key}] and the settings below it.")
    return table


def _text(where: str, held: Mapping[str, Any], key: str) -> str:
    text = held.get(key, "")
    if not isinstance(text, str) or (key in held and not text):
        raise UsageError(f"{where}: {key} must be a text in quotes, not {_shown(held[key])}.")
    return text


def _size(where: str, text: str) -> int:
    try:
        return parse_size(text)
    except UsageError as error:
        raise UsageError(f"{where}: weights-up-to: {error.says}", hint=error.hint) from error


def _severity(where: str, held: Mapping[str, Any]) -> Severity:
    text = _text(where, held, "fail-on") or Severity.ERROR.value
    if text not in list(Severity):
        raise UsageError(
            f'{where}: fail-on is "{text[:80]}".', hint=f"It is one of {', '.join(one.value for one in Severity)}."
        )
    return Severity(text)


def _texts(where: str, held: Mapping[str, Any], key: str) -> tuple[str, ...]:
    texts = held.get(key, [])
    if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
        raise UsageError(f'{where}: {key} must be a list of texts, such as ["a", "b"], not {_shown(texts)}.')
    return tuple(texts)


def _ids(where: str, held: Mapping[str, Any], key: str) -> tuple[str, ...]:
    ids = _texts(where, held, key)
    find_ids(ids, f"{where} {key}")
    return ids


def _overrides(name: str, held: Any) -> Iterable[Override]:
    where = f"{name} [[check.overrides]]"
    if not isinstance(held, list) or not all(isinstance(one, dict) for one in held):
        raise UsageError(f"{name}: overrides is no list of tables.", hint="Write [[check.overrides]] above each.")
    for one in held:
        _check_names(where, one, _OVERRIDE, "setting")
        paths = _texts(where, one, "paths")
        if not paths:
            raise UsageError(f"{where}: paths is missing.", hint='Write paths = ["old/*"].')
        yield Override(paths=paths, ignore=_ids(where, one, "ignore"))


def _thresholds(where: str, held: Mapping[str, Any]) -> Thresholds:
    kinds = get_type_hints(Thresholds)
    _check_names(where, held, [field.name for field in dataclasses.fields(Thresholds)], "threshold")
    chosen: dict[str, Any] = {name: _number(f"{where}: {name}", value, kinds[name]) for name, value in held.items()}
    return dataclasses.replace(DEFAULTS, **chosen)


def _number(where: str, value: Any, kind: object) -> bool | int | float:
    if kind is bool and isinstance(value, bool):
        return value
    if kind is int and isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    wanted = {bool: "true or false", int: "a whole number from 0 on", float: "a finite number"}
    says = wanted.get(kind) if isinstance(kind, type) else None
    raise UsageError(f"{where} must be {says or 'left as it is'}, not {_shown(value)}.")


def _shown(value: Any) -> str:
    return repr(value)[:80]
