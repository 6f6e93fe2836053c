"""What no tensor of the file is: no normalisation, one direction alone. Told where it would be expected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inspector.architectures.structure.types import (
    BOTH_DIRECTIONS,
    CONVOLUTIONS,
    NORMS,
    RECURRENT,
    SCALES,
    Claim,
    Layer,
    LayerKind,
    Topic,
)

_LEAST_LAYERS = 4
_OWN_NORMS = ("running_mean", "running_std", "running_var", "beta", "gamma", "norm", "moving_mean", "scale")
_WEIGHTED = CONVOLUTIONS | RECURRENT | {LayerKind.LINEAR, LayerKind.MATRIX}


def absences(layers: Sequence[Layer]) -> Iterator[Claim]:
    """A norm without weights is in no file, so "no norm with weights" is all that can be said."""
    weighted = sum(layer.kind in _WEIGHTED for layer in layers)
    norms = [layer for layer in layers if layer.kind in NORMS]
    own = any(word in layer.path.lower() for layer in layers if layer.kind is LayerKind.TENSOR for word in _OWN_NORMS)
    said = []
    if weighted >= _LEAST_LAYERS and not own:
        if not norms:
            said.append("no normalisation with weights")
        elif all(layer.kind in SCALES for layer in norms) and all(layer.kind is LayerKind.PRELU for layer in norms):
            said.append("no normalisation with weights (the slopes are PReLUs')")
    cells = [layer for layer in layers if layer.kind in RECURRENT]
    if cells and not any(BOTH_DIRECTIONS in layer.more for layer in cells):
        alone = "the recurrent layer runs" if len(cells) == 1 else f"the {len(cells):,} recurrent layers run"
        said.append(f"{alone} one way (no weights for the other direction)")
    own_kinds = {layer.kind for layer in layers if layer.kind not in NORMS}
    if weighted >= _LEAST_LAYERS and own_kinds == {LayerKind.LINEAR} and not norms:
        said.append("only linear layers")
    if weighted >= _LEAST_LAYERS and own_kinds <= CONVOLUTIONS:
        said.append("only convolutions, no linear layer")
    if said:
        text = "; ".join(said)
        yield Claim(
            topic=Topic.ABSENT,
            says=f"In the whole file: {text}.",
            evidence=f"the kinds of all {len(layers):,} layers",
            value=len(layers),
        )
