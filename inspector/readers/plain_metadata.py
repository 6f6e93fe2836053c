"""The plain values beside the weights: epoch, learning rate, settings, loss scale, best score. From the shown tree."""

from __future__ import annotations

import json
import re

from inspector.checkpoint.values import Value, ValueKind

_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_SIMPLE = {ValueKind.NUMBER, ValueKind.TEXT, ValueKind.BOOLEAN, ValueKind.NONE}
_SETTINGS = frozenset(
    [
        "hyper_parameters",
        "hparams",
        "args",
        "config",
        "cfg",
        "opt",
        "options",
        "meta",
        "metadata",
        "param_groups",
        "train_args",
        "hyperparameters",
    ]
)
# State of the training: scalers (torch, apex, Lightning), schedules and callbacks, of one level or two.
_TRAINING = re.compile(r"scaler|scaling_state|^amp$|^MixedPrecision|sched|^callbacks$", re.IGNORECASE)
_MOST_METADATA = 200
_MOST_ITEMS = 1000
_MOST_INNER = 8


def metadata_of(root: Value) -> tuple[tuple[str, str], ...]:
    """(key, value as text) of the plain values beside the weights: directly in the file's own mapping, in its
    settings, in the parameter groups of an optimizer, and in scalers and schedules. Nested keys are joined with dots.
    """
    found: list[tuple[str, str]] = []
    if root.kind is not ValueKind.MAPPING:
        return ()
    _simple(found, "", root)
    for label, child in root.children:
        if not child.children:
            continue
        if label.lower() in _SETTINGS:
            _simple(found, f"{label}.", child)
        groups = next((c for k, c in child.children if k == "param_groups"), None)
        if groups is not None:
            for number, group in groups.children[:4]:
                _simple(found, f"{label}.param_groups.{number}.", group)
        elif _TRAINING.search(label[:200]):
            _simple(found, f"{label}.", child)
            for name, inner in child.children[:_MOST_INNER]:
                _simple(found, f"{label}.{name}.", inner)
    return tuple(found)


def _simple(found: list[tuple[str, str]], prefix: str, value: Value) -> None:
    """Add the plain values directly in a mapping or object."""
    for label, child in _content(value):
        if len(found) >= _MOST_METADATA:
            return
        child = _inner(child)
        if child.kind in _SIMPLE:
            found.append((f"{prefix}{label}", child.says))
        elif _is_short_list(child):
            # Class names, mean and std: written as JSON, so that whoever needs the items can have them.
            items = [c.says if c.kind is ValueKind.TEXT else json.loads(c.says) for _, c in child.children]
            found.append((f"{prefix}{label}", json.dumps(items, ensure_ascii=False)))


def _content(value: Value) -> tuple[tuple[str, Value], ...]:
    """The entries of a mapping; of an omegaconf object those of its content (omegaconf/dictconfig.py)."""
    if value.kind is ValueKind.OBJECT and value.type_name.startswith("omegaconf."):
        return next((c.children for k, c in value.children if k == "_content"), value.children)
    return value.children


def _inner(value: Value) -> Value:
    """The value that an omegaconf node holds (omegaconf/nodes.py)."""
    if value.kind is ValueKind.OBJECT and value.type_name.startswith("omegaconf.nodes."):
        return next((c for k, c in value.children if k == "_val"), value)
    return value


def _is_short_list(value: Value) -> bool:
    """A list of texts, or of finite numbers, that is shown whole."""
    if value.kind is not ValueKind.SEQUENCE or not 0 < value.size == len(value.children) <= _MOST_ITEMS:
        return False
    items = [child for _, child in value.children]
    texts = all(c.kind is ValueKind.TEXT for c in items)
    return texts or all(c.kind is ValueKind.NUMBER and _NUMBER.fullmatch(c.says) for c in items)
