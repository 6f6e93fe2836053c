"""Where each tensor of an adapter belongs in its base: by name, all of them in one way, and by shape.

PEFT names layers as the model object does; the base's file may have one wrapper more or less. One change of prefix that
places all layers is taken, and only if it is the only one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.checkpoint.types import TensorInfo
from inspector.errors import ExportError
from inspector.exports.adapter import Adapter, Pair
from inspector.units import human_shape

_MOST_SEGMENTS = 3
Infos = Mapping[str, TensorInfo]


def layers_of(adapter: Adapter, infos: Infos) -> dict[str, tuple[TensorInfo, bool]]:
    """Layer -> (the weight it changes, whether that lies the other way round: inputs first).

    Raises ExportError for a layer without a certain place, or whose weight has another shape.
    """
    modules = {name.removesuffix(".weight") for name in infos if name.endswith(".weight")}
    layers = [pair.layer for pair in adapter.pairs]
    rename = _flat_names(layers, modules) if adapter.flat else _prefixed(layers, modules)
    places = {pair.layer: infos[f"{rename[pair.layer]}.weight"] for pair in adapter.pairs}
    if len({info.name for info in places.values()}) < len(places):
        raise ExportError("Two layers of the adapter would change the same weight.")
    ways = {pair.layer: _ways(pair, places[pair.layer]) for pair in adapter.pairs}
    open_ = [pair for pair in adapter.pairs if len(ways[pair.layer]) > 1]
    if open_:
        told = _how_matrices_lie(adapter, ways, infos)
        for pair in open_:
            ways[pair.layer] = (told,)
    return {layer: (places[layer], ways[layer][0]) for layer in places}


def places_of(adapter: Adapter, infos: Infos) -> list[tuple[str, TensorInfo]]:
    """(name in the base, tensor that takes its place). Raises ExportError for one that has none, or another shape,
    unless the config lists its module as saved whole."""
    modules = {name.removesuffix(".weight") for name in infos if name.endswith(".weight")}
    layers = [pair.layer for pair in adapter.pairs]
    rename = {} if adapter.flat else _prefixed(layers, modules)
    made = []
    for name, theirs in adapter.whole:
        place = _moved(name, rename)
        ours = infos.get(place)
        if name not in adapter.new:
            if ours is None:
                raise ExportError(f"{theirs.name[:200]} of the adapter has no place in the base.")
            if ours.shape != theirs.shape:
                shapes = f"{human_shape(theirs.shape)}, and {human_shape(ours.shape)} in the base"
                raise ExportError(f"{theirs.name[:200]} is {shapes}.")
        made.append((place, theirs))
    return made


def _moved(name: str, rename: Mapping[str, str]) -> str:
    """The name with the change of prefix that the layers have."""
    for layer, place in rename.items():
        if layer == place:
            return name
        if layer.endswith(f".{place}"):
            return name.removeprefix(layer.removesuffix(place))
        return place.removesuffix(layer) + name
    return name


def _prefixed(layers: Sequence[str], modules: set[str]) -> dict[str, str]:
    if all(layer in modules for layer in layers):
        return {layer: layer for layer in layers}
    ways: list[dict[str, str]] = []
    for count in range(1, _MOST_SEGMENTS + 1):
        shorter = {layer: ".".join(layer.split(".")[count:]) for layer in layers}
        ways.append(shorter if len({tuple(layer.split(".")[:count]) for layer in layers}) == 1 else {})
    for prefix in sorted({".".join(m.split(".")[:n]) for m in modules for n in range(1, _MOST_SEGMENTS + 1)}):
        longer = {layer: f"{prefix}.{layer}" for layer in layers}
        ways += [longer] if longer[layers[0]] in modules else []
    whole = [way for way in ways if way and all(place in modules for place in way.values())]
    if len(whole) == 1:
        return whole[0]
    lost = next(layer for layer in layers if layer not in modules)
    if whole:
        first, second = (way[lost] for way in whole[:2])
        raise ExportError(f"{lost[:120]} of the adapter could be {first[:120]} or {second[:120]} of the base.")
    raise ExportError(
        f"{lost[:120]} of the adapter is not in the base, and no change of prefix places all layers.",
        hint="Is it the adapter's own base model, under the names that it has in memory?",
    )


def _flat_names(layers: Sequence[str], modules: set[str]) -> dict[str, str]:
    """lora_unet_down_blocks_0_conv -> down_blocks.0.conv: the one module whose name reads so without its dots."""
    by_flat: dict[str, list[str]] = {}
    for module in modules:
        by_flat.setdefault(module.replace(".", "_"), []).append(module)
    found: dict[str, str] = {}
    for layer in layers:
        bare = layer.split("_", 2)[2] if layer.startswith("lora_") and layer.count("_") >= 2 else layer
        places = by_flat.get(bare, [])
        if len(places) != 1:
            which = f"could be {places[0]} or {places[1]}" if places else "is not in the base"
            raise ExportError(f"{layer[:120]} of the adapter {which}.")
        found[layer] = places[0]
    return found


def _ways(pair: Pair, info: TensorInfo) -> tuple[bool, ...]:
    """In which ways the product can be added: as it is (False), transposed (True), or either. Raises for neither."""
    shape, down, up = info.shape, pair.down.shape, pair.up.shape
    if pair.embedding:
        if shape == (down[1], up[0]) and len(down) == 2:
            return (True,)
    elif len(shape) > 2:
        # A convolution; grouped ones have other shapes and are refused by that.
        if shape == (up[0], *down[1:]) and all(n == 1 for n in up[2:]):
            return (False,)
    elif len(shape) == 2 and all(n == 1 for n in (*up[2:], *down[2:])):
        made = (up[0], down[1])
        ways = tuple(way for way, each in ((False, made), (True, made[::-1])) if each == shape)
        if ways:
            return ways
    product = f"{human_shape(up)} times {human_shape(down)}"
    raise ExportError(f"{info.name} is {human_shape(shape)} in the base, and {pair.layer[:120]} adds {product}.")


def _how_matrices_lie(adapter: Adapter, ways: Mapping[str, tuple[bool, ...]], infos: Infos) -> bool:
    """Whether square matrices have their inputs first, as GPT-2's Conv1D: no shape of theirs tells.

    The other adapted matrices tell, and so do biases beside matrices of the base. They must agree with the config.
    """
    flat = [p for p in adapter.pairs if not p.embedding and len(p.down.shape) == 2]
    seen = {ways[p.layer][0] for p in flat if len(ways[p.layer]) == 1}
    for name, info in infos.items():
        bias = infos.get(f"{name.removesuffix('.weight')}.bias")
        if name.endswith(".weight") and len(info.shape) == 2 and info.shape[0] != info.shape[1] and bias is not None:
            seen |= {way for way in (False, True) if bias.shape == (info.shape[way],)}
    told = adapter.turned
    if seen and seen != {told}:
        raise ExportError(
            f"fan_in_fan_out is {told} in the adapter's config, and other matrices of the model lie "
            f"{'both ways' if len(seen) > 1 else 'the other way'}: which way square ones do is not certain.",
            hint="Merge it with PEFT itself, which sees the classes of the layers.",
        )
    return told
