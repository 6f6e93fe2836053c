"""Attention by the names of its projections: one each, keys and values in one, or all three in one."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum

from inspector.architectures.structure.paths import above
from inspector.architectures.structure.types import CONVOLUTIONS, Claim, Layer, LayerKind, Topic

_TOKENS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_NUMBER = re.compile(r"\d+")
# Said beside the one word that tells: "w_qs", "query_projection", "to_q", "linear_q".
_BESIDE = frozenset({"w", "to", "proj", "projection", "projections", "linear", "lin", "layer", "fc", "dense", "conv"})
_PROJECTING = CONVOLUTIONS | {LayerKind.LINEAR, LayerKind.MATRIX}
_CROSS = re.compile(r"cross|enc_?dec|encoder_?attn|encoder_?attention", re.I)
_MOST = 6
# Told by their width as well.
_JOINT = frozenset({"c_attn", "in_proj"})


class Role(StrEnum):
    QUERY = "query"
    KEY = "key"
    VALUE = "value"
    PAIR = "key and value"
    ALL = "query, key and value"


_ROLES = {
    **dict.fromkeys(("q", "qs", "query", "queries"), Role.QUERY),
    **dict.fromkeys(("k", "ks", "key", "keys"), Role.KEY),
    **dict.fromkeys(("v", "vs", "value", "values"), Role.VALUE),
    **dict.fromkeys(("kv", "kvs", "keyvalue"), Role.PAIR),
    **dict.fromkeys(("qkv", "wqkv", "querykeyvalue"), Role.ALL),
    **dict.fromkeys(("wq",), Role.QUERY),
    **dict.fromkeys(("wk",), Role.KEY),
    **dict.fromkeys(("wv",), Role.VALUE),
}


def role_of(layer: Layer) -> Role | None:
    """By the one word of its last name that is left without "proj", "to" and their like."""
    if layer.kind not in _PROJECTING or not layer.inputs or not layer.outputs:
        return None
    last = layer.path.rpartition(".")[2]
    if last in _JOINT and layer.outputs == 3 * layer.inputs:
        return Role.ALL
    words = [word.lower() for word in _TOKENS.findall(last)]
    return _ROLES.get("".join(word for word in words if word not in _BESIDE))


def by_module(layers: Sequence[Layer]) -> dict[str, dict[Role, Layer]]:
    """Projections of each module that has enough of them to be attention's, in the file's order."""
    found: dict[str, dict[Role, Layer]] = {}
    for layer in layers:
        role = role_of(layer)
        if role is not None:
            found.setdefault(layer.path.rpartition(".")[0], {}).setdefault(role, layer)
    thirds: dict[str, set[int | None]] = {path: set() for path, roles in found.items() if Role.ALL in roles}
    for layer in layers if thirds else ():
        for path in above(layer.path):
            if path in thirds:
                thirds[path].add(layer.inputs)
    return {path: roles for path, roles in found.items() if _is_whole(roles, thirds.get(path, set()))}


def _is_whole(roles: Mapping[Role, Layer], taken: Collection[int | None]) -> bool:
    """taken: what layers of the module take. A joint projection is three of one width where it is thrice as wide as
    deep, or a layer behind takes a third; it may have fewer keys than queries else."""
    key, value, joint = (roles.get(role) for role in (Role.KEY, Role.VALUE, Role.ALL))
    if Role.QUERY in roles and Role.PAIR in roles:
        return True
    if Role.QUERY in roles and key is not None and value is not None:
        # A vector of scores is called v as well (Bahdanau 2015, eq. 6).
        return key.inputs == value.inputs and (value.outputs or 0) > 1
    third, rest = divmod(joint.outputs or 0, 3) if joint is not None else (0, 1)
    return joint is not None and not rest and (third == joint.inputs or third in taken)


def projections(layers: Sequence[Layer]) -> Iterator[Claim]:
    """One claim for modules of one pattern of names and one build: "6 modules like decoder.0.attn have ..."."""
    groups: dict[tuple[object, ...], list[tuple[str, Mapping[Role, Layer]]]] = {}
    for path, roles in by_module(layers).items():
        widths = tuple((role, layer.inputs, layer.outputs) for role, layer in roles.items())
        groups.setdefault((_NUMBER.sub("*", path), widths), []).append((path, roles))
    merged: dict[tuple[object, ...], list[tuple[str, Mapping[Role, Layer]]]] = {}
    for (pattern, _), group in groups.items():
        # Levels of several widths are of one pattern; each width would be a line of its own.
        merged.setdefault((pattern, tuple(group[0][1])), []).extend(group)
    for group in list(merged.values())[:_MOST]:
        path, first = group[0]
        said = list(dict.fromkeys(_widths(one) for _, one in group))
        which = path or "the network"
        if len(group) > 1:
            which = f"{len(group):,} modules, {path} to {group[-1][0]},"
        has = "have" if len(group) > 1 else "has"
        cross = " (cross-attention by its name)" if _CROSS.search(path.rpartition(".")[2]) else ""
        yield Claim(
            topic=Topic.PROJECTIONS,
            says=f"{which} {has} attention's projections{cross}: {' / '.join(said)}.",
            evidence="; ".join(f"{layer.path.rpartition('.')[2]} {layer.evidence}" for layer in first.values()),
            value=len(group),
            path=path,
        )
    yield from _pairs(layers)


def _widths(roles: Mapping[Role, Layer]) -> str:
    """ "query, key, value 192-192", "query, key and value in one, 32 to 3 x 128"."""
    joint = roles.get(Role.ALL)
    if joint is not None:
        assert joint.outputs
        return f"{Role.ALL} in one, {joint.inputs:,} to 3 x {joint.outputs // 3:,}"
    said: dict[str, list[str]] = {}
    for role, layer in roles.items():
        assert layer.outputs
        ends = f"{layer.inputs:,}-{layer.outputs:,}"
        if role is Role.PAIR and layer.outputs % 2 == 0:
            said.setdefault(f"{layer.inputs:,} to 2 x {layer.outputs // 2:,}", []).append(f"{role} in one,")
        else:
            said.setdefault(ends, []).append(role)
    return ", ".join(f"{', '.join(names)} {ends}" for ends, names in said.items())


def _pairs(layers: Sequence[Layer]) -> Iterator[Claim]:
    """Keys and values in one that are narrower than queries by a whole number: shared between heads."""
    for path, roles in by_module(layers).items():
        query, pair = roles.get(Role.QUERY), roles.get(Role.PAIR)
        if query is None or pair is None or not query.outputs or not pair.outputs or pair.outputs % 2:
            continue
        each = pair.outputs // 2
        times, rest = divmod(query.outputs, each)
        if times > 1 and not rest and query.inputs == pair.inputs:
            yield Claim(
                topic=Topic.ATTENTION,
                says=f"{path} likely shares each key and value between {times} heads (grouped-query attention).",
                evidence=f"{_last(query)} puts out {query.outputs:,}, {_last(pair)} 2 x {each:,}",
                value=times,
                path=path,
            )
            return


def _last(layer: Layer) -> str:
    return layer.path.rpartition(".")[2]
