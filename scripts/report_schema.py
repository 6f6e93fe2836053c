"""docs/schema/report-N.json: the JSON Schema (draft 2020-12) of the report that `report` writes, from its types.

Further fields are allowed everywhere: within a version they may be added. What has a default may be absent.
"""

from __future__ import annotations

import inspect
import json
import types
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

from inspector.file_report.report import SCHEMA_NAME, VERSION, FileReport

# Counts and lengths are never below nought; numbers of a tensor are.
_NUMBER = {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]}
_PLAIN = {str: {"type": "string"}, bool: {"type": "boolean"}, int: {"type": "integer"}, type(None): {"type": "null"}}


def report_schema() -> str:
    """The schema as text."""
    made: dict[str, Any] = {}
    root = _object(FileReport, made)
    root["properties"]["schema"] = {"const": f"{SCHEMA_NAME}/{VERSION}"}
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{SCHEMA_NAME.replace('/', ':')}:{VERSION}",
        "title": f"Report about a checkpoint, version {VERSION}",
        **root,
        "$defs": dict(sorted(made.items())),
    }
    return json.dumps(whole, indent=1) + "\n"


def _schema(wanted: Any, made: dict[str, Any]) -> dict[str, Any]:
    origin, inner = get_origin(wanted), get_args(wanted)
    if origin in (Union, types.UnionType):
        kinds = [_schema(kind, made) for kind in inner]
        return {"anyOf": [kind for n, kind in enumerate(kinds) if kind not in kinds[:n]]}
    if origin is tuple and len(inner) == 2 and inner[1] is Ellipsis:
        return {"type": "array", "items": _schema(inner[0], made)}
    if origin is tuple:
        items = [_schema(kind, made) for kind in inner]
        return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}
    if is_dataclass(wanted) and isinstance(wanted, type):
        if wanted.__name__ not in made:
            made[wanted.__name__] = {}
            made[wanted.__name__] = _object(wanted, made)
        return {"$ref": f"#/$defs/{wanted.__name__}"}
    if isinstance(wanted, type) and issubclass(wanted, Enum):
        return {"enum": [one.value for one in wanted]}
    return _NUMBER if wanted is float else _PLAIN[wanted]


def _object(kind: type, made: dict[str, Any]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    shown = [field for field in fields(kind) if hints[field.name] is not bytes]
    return {
        "description": " ".join((inspect.getdoc(kind) or "").split()),
        "type": "object",
        "properties": {field.name: _schema(hints[field.name], made) for field in shown},
        "required": list(_required(kind)),
    }


def _required(kind: type) -> Iterator[str]:
    for field in fields(kind):
        if field.default is MISSING and field.default_factory is MISSING:
            yield field.name
