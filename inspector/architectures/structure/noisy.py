"""Weights that are kept as a mean and a spread: noisy layers (Fortunato 2018, eq. 9), layers of Bayesian networks."""

from __future__ import annotations

import re
from collections.abc import Mapping

from inspector.checkpoint.types import Shape

_PAIR = re.compile(
    r"(?:(w|weights?|kernel|b|bias)_(mu|mean|sigma|rho|log_?var|log_?sigma|eps(?:ilon)?)|"
    r"(mu|sigma|rho|eps(?:ilon)?)_(w|weights?|kernel|b|bias))",
    re.I,
)
_CENTRES = frozenset({"mu", "mean"})
_NOISE = frozenset({"eps", "epsilon"})
NOISY = "noisy"
DRAWN = "each weight a mean and a spread"


def as_plain(tensors: Mapping[str, Shape]) -> tuple[dict[str, Shape], dict[str, str], str] | None:
    """({"weight": shape, "bias": shape}, the names that stand for them, how to call it), where every weight has a
    spread of its own shape; None elsewhere. All names that match are the layer's."""
    told: dict[str, dict[str, tuple[str, Shape]]] = {"weight": {}, "bias": {}}
    for name, shape in tensors.items():
        match = _PAIR.fullmatch(name)
        if match is not None:
            word, part = (match[1], match[2]) if match[1] else (match[4], match[3])
            told["bias" if word.lower().startswith("b") else "weight"].setdefault(part.lower(), (name, shape))
    plain: dict[str, Shape] = {}
    names: dict[str, str] = {}
    noise = False
    for what, parts in told.items():
        centre = next((parts[part] for part in parts if part in _CENTRES), None)
        spread = [shape for part, (_, shape) in parts.items() if part not in _CENTRES | _NOISE]
        if centre is None or centre[1] not in spread:
            continue
        plain[what], names[what] = centre[1], centre[0]
        noise = noise or any(part in _NOISE for part in parts)
    if len(plain.get("weight", ())) < 2:
        return None
    return plain, names, NOISY if noise else DRAWN


def is_part(name: str) -> bool:
    """Whether a tensor is called one of those."""
    return _PAIR.fullmatch(name) is not None
