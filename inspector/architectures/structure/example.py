"""An example of what a network of unknown names takes, for whoever is asked to write it: its widths are the file's."""

from __future__ import annotations

from inspector.architectures.structure.types import CONVOLUTIONS, Layer, LayerKind, Structure, Topic

_SIDE, _STEPS, _FRAMES, _SAMPLES = 224, 20, 16, 16_000
_RECURRENT = frozenset({LayerKind.LSTM, LayerKind.GRU, LayerKind.RNN})
# The layer that is said to take something, before one that is only the first of its kind.
_TOPICS = (Topic.TAKES, Topic.RECURRENT)


def example_input(structure: Structure) -> tuple[int, ...]:
    """A shape without the batch; () where the file's layers do not tell one. Sizes that no weights hold are the usual
    ones: sides of 224, 20 steps."""
    layers = {layer.path: layer for layer in structure.layers}
    paths = [claim.path for topic in _TOPICS for claim in structure.claims if claim.topic is topic]
    named = [layers[path] for path in paths if path in layers]
    for layer in (*named, *(structure.layers if structure.ordered else ())):
        shape = _taken_by(layer)
        if shape:
            return shape
    return ()


def _taken_by(layer: Layer) -> tuple[int, ...]:
    if layer.inputs is None:
        return ()
    if layer.kind in CONVOLUTIONS:
        sizes = {1: (_SAMPLES,), 2: (_SIDE, _SIDE), 3: (_FRAMES, _SIDE // 2, _SIDE // 2)}.get(len(layer.kernel), ())
        return (layer.inputs, *sizes) if sizes else ()
    if layer.kind in _RECURRENT:
        return (_STEPS, layer.inputs)
    if layer.kind is LayerKind.EMBEDDING:
        return (_STEPS,)
    return (layer.inputs,) if layer.kind is LayerKind.LINEAR else ()
