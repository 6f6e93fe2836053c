"""A model lent for one batch of pictures: what its layers put out, what the score thinks of that, and further passes.

Methods read it. The first forward keeps every asked layer; one backward per objective gives the gradients of all of
them. Whatever runs the model again goes through here, so that progress, cancelling and giving back are in one place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torch import Tensor, nn

from inspector.cam.capture import Capture, Place, capture
from inspector.cam.method import Objective
from inspector.cam.report import LayerProposal
from inspector.cam.tensors import spatial, target_indices, working_precision
from inspector.progress import Progress, silent


class Scene:
    """Made by `open_scene`, valid inside it.

    model: unwrapped, lent. batch: (N, C, H, W), as it was given. layers: whose outputs were kept.
    logits: (N, classes), at least float32, in the graph of the first forward. targets: (N,) class indices.
    progress: called before each further pass; raising from it stops the work. seed: for methods that draw.
    """

    def __init__(
        self,
        lent: Capture,
        batch: Tensor,
        layers: Sequence[LayerProposal],
        targets: int | Sequence[int] | Tensor | None,
        progress: Progress,
        seed: int,
    ) -> None:
        self.model: nn.Module = lent.model
        self.batch = batch
        self.layers = tuple(layers)
        self.progress = progress
        self.seed = seed
        self._lent = lent
        self.logits = working_precision(lent.forward(batch))
        self.targets = target_indices(self.logits.detach(), targets).to(self.logits.device)
        self._outputs = {place: tensor.detach() for place, tensor in lent.outputs.items()}
        self._gradients: dict[Objective | None, dict[Place, Tensor]] = {}
        self._last: tuple[Objective | None, ...] = ()

    def expect(self, objectives: Sequence[Objective | None]) -> None:
        """Say which scores will be differentiated, so that the graph is freed with the last of them."""
        self._last = tuple(dict.fromkeys(objectives))

    def activation(self, layer: LayerProposal) -> Tensor:
        """(N, C, h, w), at least float32, out of the graph."""
        return self._split(self._outputs[_place(layer)], layer)[0]

    def gradient(self, layer: LayerProposal, objective: Objective | None = None) -> Tensor:
        """(N, C, h, w), d score / d activation; all layers of one objective come from one backward."""
        return self._split(self._gradient(layer, objective), layer)[0]

    def prefix_gradient(self, layer: LayerProposal, objective: Objective | None = None) -> Tensor:
        """(N, P, C), the same at class and register tokens; P is 0 for maps."""
        return self._split(self._gradient(layer, objective), layer)[1]

    def own_score(self, logits: Tensor) -> Tensor:
        """(N,) of the targets, from (N, classes)."""
        return logits.gather(1, self.targets[:, None])[:, 0]

    def _gradient(self, layer: LayerProposal, objective: Objective | None) -> Tensor:
        if objective not in self._gradients:
            scores = self.own_score(self.logits) if objective is None else objective(self.logits, self.targets)
            waiting = [o for o in self._last if o not in self._gradients and o is not objective]
            keep = bool(waiting) or objective not in self._last
            self._gradients[objective] = self._lent.gradients(scores.sum(), keep_graph=keep)
        return self._gradients[objective][_place(layer)]

    def _split(self, tensor: Tensor, layer: LayerProposal) -> tuple[Tensor, Tensor]:
        return spatial(working_precision(tensor), layer)


@contextmanager
def open_scene(
    model: nn.Module,
    batch: Tensor,
    layers: Sequence[LayerProposal],
    targets: int | Sequence[int] | Tensor | None = None,
    *,
    progress: Progress = silent,
    seed: int = 0,
) -> Iterator[Scene]:
    """Lend the model, run the batch once and keep what the layers put out.

    batch: (N, C, H, W), prepared. targets: one class for all, one for each, None for each picture's best class.
    Raises as `capture` and its forward do. The model is left as it was.
    """
    with capture(model, [_place(layer) for layer in layers]) as lent:
        yield Scene(lent, batch, layers, targets, progress, seed)


def _place(layer: LayerProposal) -> Place:
    return Place(layer.path, layer.call)
