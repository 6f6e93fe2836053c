"""The channels of a module as pictures, of a model whose architecture is known: one pass, one tensor kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from inspector.doctor.maps_asked import MapsAsked, Side
from inspector.doctor.maps_report import Axes, FeatureMaps
from inspector.doctor.run import Wish, arguments_for
from inspector.errors import ExplainError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import nn

    from inspector.architectures.types import ArchitectureSpec
    from inspector.doctor.feature_maps import Seen


def feature_maps_of(
    model: nn.Module, label: str, spec: ArchitectureSpec | None, wish: Wish, asked: MapsAsked
) -> FeatureMaps:
    """As `trace_known` runs it. Raises as that and as `doctor.feature_maps.map_features`.

    Where the operators of the pass do not tell how a tensor lies, what the heat maps know of layers does: channels
    last, and tokens whose grid of patches is certain.
    """
    from inspector.doctor.feature_maps import map_features

    args, kwargs, input_from = arguments_for(model, spec, wish)
    read = _reader(model, args, kwargs, asked)
    return map_features(
        model, args, kwargs, asked, label=label, input_from=input_from, training=wish.training, read=read
    )


def features_of(
    model: nn.Module, spec: ArchitectureSpec | None, wish: Wish, asked: MapsAsked
) -> tuple[NDArray[np.float32], int | None]:
    """(one value per channel of a module's tensor, which column of the answer is the largest), of one picture.

    The column is None where the answer is no row of scores. Raises as `feature_maps_of`.
    """
    from torch import Tensor

    from inspector.doctor.feature_maps import pooled_features

    args, kwargs, _ = arguments_for(model, spec, wish)
    found, output = pooled_features(model, args, kwargs, asked, read=_reader(model, args, kwargs, asked))
    scores = output if isinstance(output, Tensor) and output.dim() == 2 and output.shape[1] > 1 else None
    return found.numpy(), None if scores is None else int(scores[0].argmax())


def _reader(
    model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], asked: MapsAsked
) -> Callable[[Seen], Axes | None]:
    """What the heat maps know of how a layer's tensor lies."""
    picture = args[0].shape[1:] if len(args) == 1 and not kwargs and args[0].dim() == 4 else None

    def read(seen: Seen) -> Axes | None:
        from inspector.cam.layers.proposals import find_axes

        if picture is None:
            return None
        # A call's first tensor is the one whose channels its kind knows.
        own = asked.side is Side.OUTPUT and asked.tensor == 0
        try:
            found = find_axes(model, seen.path, seen.time - 1 if own else None, seen.shape, tuple(picture))
        except ExplainError:
            return None
        if found is None:
            return None
        layout, prefix, grid = found
        patches = "the network's patches lie so" if layout == "NLC" else "the network's other maps have these places"
        return Axes(layout=layout, grid=grid, prefix_tokens=prefix, because=patches)

    return read
