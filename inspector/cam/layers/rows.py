"""Do a transformer's tokens lie row by row? Found by changing the picture and looking which tokens change.

Nothing in a shape tells it: Hiera sorts its tokens by windows of windows before the first attention, and a map that
is read row by row then shows heat in the wrong places. What enters the first attention has seen its own patch alone or
a little around it, so only the part before it has to run.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from inspector.cam.engine.capture import borrowed, first_tensor, like_the_model, unwrap
from inspector.cam.engine.tensors import spatial, working_precision
from inspector.cam.report import LayerProposal
from inspector.errors import ExplainError

# As shares of the height and width, off every symmetry.
_PLACES = ((0.11, 0.73), (0.29, 0.38), (0.47, 0.91), (0.66, 0.16), (0.85, 0.57))


class _Reached(Exception):
    """Carries the layer's output."""

    def __init__(self, output: Tensor | None) -> None:
        super().__init__()
        self.output = output


def in_rows(model: nn.Module, layer: LayerProposal, input_shape: tuple[int, int, int]) -> bool:
    """Whether changed patches change their own tokens at this layer; also True where nothing can be seen.

    layer: of tokens, before any attention over them. input_shape: (C, H, W). Runs the model up to the layer, six small
    changes of one picture of noise at once, and leaves it as it was.
    """
    (rows, columns), (_, height, width) = layer.grid, input_shape
    cells = [(int(rows * down), int(columns * right)) for down, right in _PLACES]
    noise = torch.Generator().manual_seed(0)
    pictures = torch.randn(input_shape, generator=noise).repeat(1 + len(cells), 1, 1, 1)
    for picture, (row, column) in zip(pictures[1:], cells, strict=True):
        top, bottom = row * height // rows, -(-(row + 1) * height // rows)
        left, right = column * width // columns, -(-(column + 1) * width // columns)
        patch = picture[:, top:bottom, left:right]
        patch += 3 * torch.randn(patch.shape, generator=noise)
    output = _output_of(unwrap(model), layer, pictures)
    if output is None:
        return True
    try:
        tokens = spatial(working_precision(output), layer)[0]
    except ExplainError:
        return True
    changes = (tokens[1:] - tokens[:1]).abs().sum(dim=1).flatten(1)
    if tokens.shape[0] != len(pictures) or not bool(torch.isfinite(changes).all() and (changes.amax(dim=1) > 0).all()):
        return True
    found = [divmod(most, columns) for most in changes.argmax(dim=1).tolist()]
    elsewhere = sum(max(abs(r - row), abs(c - column)) > 1 for (r, c), (row, column) in zip(found, cells, strict=True))
    return bool(2 * elsewhere < len(cells))


def _output_of(model: nn.Module, layer: LayerProposal, pictures: Tensor) -> Tensor | None:
    """The layer's output at the asked call, nothing where the model has no numbers or cannot take several pictures."""
    if any(parameter.is_meta for parameter in model.parameters()):
        return None
    calls = 0

    def stop(_module: nn.Module, _args: object, output: object) -> None:
        nonlocal calls
        calls += 1
        if calls > layer.call:
            raise _Reached(first_tensor(output))

    with borrowed(model), torch.inference_mode(False), torch.no_grad():
        handle = model.get_submodule(layer.path).register_forward_hook(stop)
        try:
            model(like_the_model(pictures, model))
        except _Reached as reached:
            return reached.output
        except (RuntimeError, TypeError, ValueError):
            return None
        finally:
            handle.remove()
    return None
