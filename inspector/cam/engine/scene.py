"""A model lent for one batch of pictures: what its layers put out, what the score thinks of that, and further passes.

Methods read it. The first pass keeps every asked layer; one backward per objective gives the gradients of all of them.
Whatever runs the model again goes through here, so that progress, cancelling and giving back are in one place.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from inspector.cam.engine.capture import Capture, Place, capture, like_the_model
from inspector.cam.engine.replay import Replay
from inspector.cam.engine.tensors import spatial, target_indices, working_precision
from inspector.cam.report import LayerProposal
from inspector.cam.runnable import differentiating, mixes_pictures
from inspector.cam.targets.objectives import Objective
from inspector.cam.targets.readings import Reading, class_scores
from inspector.progress import Progress, silent

# Pictures that go through the model together in further passes.
CHUNK = 16


class Pass:
    """One forward of the lent model and what can be differentiated of it.

    logits: (N, classes), at least float32, in the graph.
    """

    def __init__(self, lent: Capture, batch: Tensor) -> None:
        self._lent = lent
        self.logits = working_precision(lent.forward(batch))
        self._outputs = dict(lent.outputs)
        self._gradients: dict[Objective | None, dict[Place, Tensor]] = {}

    def anew(self) -> Pass:
        """The same forward, to be differentiated for other targets: what was kept is shared, gradients are not."""
        twin = copy.copy(self)
        twin._gradients = {}
        return twin

    def activation(self, layer: LayerProposal) -> Tensor:
        """(N, C, h, w), at least float32, out of the graph."""
        return _split(self._outputs[place_of(layer)].detach(), layer)[0]

    def tokens(self, layer: LayerProposal) -> Tensor:
        """The layer's output as it came, out of the graph."""
        return self._outputs[place_of(layer)].detach()

    def gradients(
        self, targets: Tensor, objective: Objective | None = None, *, keep_graph: bool = False
    ) -> dict[Place, Tensor]:
        """d score / d output of every kept layer, from one backward. targets: (N,)."""
        if objective not in self._gradients:
            scores = own_scores(self.logits, targets) if objective is None else objective(self.logits, targets)
            found = self._lent.gradients(scores.sum(), self._outputs, keep_graph=keep_graph)
            self._gradients[objective] = found
        return self._gradients[objective]


class Scene:
    """Made by `open_scene`, valid inside it.

    model: unwrapped, lent. batch: (N, C, H, W), as it was given. layers: whose outputs were kept.
    targets: (N,) class indices. progress: called before each further pass; raising from it stops the work.
    seed: for methods that draw. aligned: for those that enlarge a map themselves (`Options`).
    """

    def __init__(
        self,
        lent: Capture,
        batch: Tensor,
        layers: Sequence[LayerProposal],
        targets: int | Sequence[int] | Tensor | None,
        progress: Progress,
        seed: int,
        aligned: bool,
    ) -> None:
        self.model: nn.Module = lent.model
        self.batch = batch
        self.layers = tuple(layers)
        self.progress = progress
        self.seed = seed
        self.aligned = aligned
        self._lent = lent
        self._first = Pass(lent, batch)
        self._expected: tuple[Objective | None, ...] = ()
        self._differentiated: set[Objective | None] = set()
        self.targets = target_indices(self.logits.detach(), targets).to(self.logits.device)

    @property
    def logits(self) -> Tensor:
        """(N, classes) of the first pass, at least float32."""
        return self._first.logits

    @property
    def shown(self) -> tuple[float, float]:
        """Share of the height and width of what the network was given that shows the picture; less than 1 where a
        detector pads."""
        return self._lent.shown

    @property
    def read(self) -> Reading:
        """How answers become scores."""
        return self._lent.read

    def expect(self, objectives: Sequence[Objective | None]) -> None:
        """Say which scores will be differentiated, so that the graph is freed with the last of them."""
        self._expected = tuple(dict.fromkeys(objectives))

    def activation(self, layer: LayerProposal) -> Tensor:
        """(N, C, h, w), at least float32, out of the graph."""
        return self._first.activation(layer)

    def tokens(self, layer: LayerProposal) -> Tensor:
        """The layer's output as it came: (N, C, h, w), (N, h, w, C) or (N, tokens, C)."""
        return self._first.tokens(layer)

    def gradient(self, layer: LayerProposal, objective: Objective | None = None) -> Tensor:
        """(N, C, h, w), d score / d activation; all layers of one objective come from one backward."""
        return _split(self._gradients(objective)[place_of(layer)], layer)[0]

    def prefix_gradient(self, layer: LayerProposal, objective: Objective | None = None) -> Tensor:
        """(N, P, C), the same at class and register tokens; P is 0 for maps."""
        return _split(self._gradients(objective)[place_of(layer)], layer)[1]

    def towards(self, targets: int | Sequence[int] | Tensor | None) -> Scene:
        """This scene for other targets: the forward is shared, its graph is kept, each objective costs one backward.

        Usable for activations and gradients also after the model was given back. Raises TargetOutOfRange.
        """
        twin = copy.copy(self)
        twin._first = self._first.anew()
        twin._expected, twin._differentiated = (), set()
        twin.targets = target_indices(self.logits.detach(), targets).to(self.logits.device)
        return twin

    def rescored(self, logits: Tensor, targets: int | Sequence[int] | Tensor | None) -> Scene:
        """This scene with other scores (N, K) from the graph of its forward: of a box, of the pixels of a class.

        Raises TargetOutOfRange.
        """
        twin = self.towards(0)
        twin._first.logits = working_precision(logits)
        twin.targets = target_indices(twin.logits.detach(), targets).to(twin.logits.device)
        return twin

    def scores(self, logits: Tensor) -> Tensor:
        """(N,) of the targets, from (N, classes)."""
        return own_scores(logits, self.targets)

    def again(self, batch: Tensor) -> Pass:
        """Another captured forward, of other pictures of the same number and size."""
        return Pass(self._lent, batch)

    def answer(self, pictures: Tensor, index: int) -> Tensor:
        """(M, classes) of changed copies (M, C, H, W) of one picture of the batch, without a graph."""
        made = []
        step = 1 if mixes_pictures(self.model) else CHUNK
        with torch.no_grad():
            for start in range(0, pictures.shape[0], step):
                part = pictures[start : start + step]
                answer = self.model(like_the_model(part, self.model))
                made.append(working_precision(self._lent.read(answer, [index] * part.shape[0])))
        return torch.cat(made)

    def input_gradient(self, batch: Tensor) -> tuple[Tensor, Tensor]:
        """((N, classes) scores, (N, C, H, W) d score / d input) of the batch or a changed copy, at least float32."""
        start = like_the_model(batch, self.model).requires_grad_()
        logits = working_precision(self._lent.read(self.model(start), range(batch.shape[0])))
        scores = own_scores(logits, self.targets)
        if not scores.requires_grad:
            return logits.detach(), torch.zeros_like(working_precision(start.detach()))
        with differentiating():
            (found,) = torch.autograd.grad(scores.sum(), [start])
        return logits.detach(), working_precision(found)

    def replay(self, layer: LayerProposal, index: int) -> Replay:
        """What is behind the layer, to be run on changed outputs of it, for one picture of the batch."""
        return Replay(self.model, place_of(layer), self.batch[index : index + 1], index, self._lent.read)

    def noise(self, index: int) -> Tensor:
        """(N, C, H, W) standard normal numbers, the same for the same seed and index on every device."""
        generator = torch.Generator().manual_seed(self.seed * 100_003 + index)
        made = torch.randn(tuple(self.batch.shape[1:]), generator=generator, dtype=torch.float64)
        return made.to(self.batch).expand_as(self.batch)

    def _gradients(self, objective: Objective | None) -> dict[Place, Tensor]:
        waiting = [o for o in self._expected if o not in self._differentiated and o is not objective]
        self._differentiated.add(objective)
        keep = bool(waiting) or objective not in self._expected
        return self._first.gradients(self.targets, objective, keep_graph=keep)


@contextmanager
def open_scene(
    model: nn.Module,
    batch: Tensor,
    layers: Sequence[LayerProposal],
    targets: int | Sequence[int] | Tensor | None = None,
    *,
    read: Reading = class_scores,
    progress: Progress = silent,
    seed: int = 0,
    aligned: bool = False,
) -> Iterator[Scene]:
    """Lend the model, run the batch once and keep what the layers put out.

    batch: (N, C, H, W), prepared. targets: one class for all, one for each, None for each picture's best class.
    read: what the scores are (`targets/readings.py`).
    Raises as `capture` and its forward do. The model is left as it was.
    """
    with capture(model, [place_of(layer) for layer in layers], read=read) as lent:
        yield Scene(lent, batch, layers, targets, progress, seed, aligned)


def place_of(layer: LayerProposal) -> Place:
    """Where its output is captured."""
    return Place(layer.path, layer.call)


def own_scores(logits: Tensor, targets: Tensor) -> Tensor:
    """(N,) of the targets, from (N, classes)."""
    return logits.gather(1, targets[:, None])[:, 0]


def _split(tensor: Tensor, layer: LayerProposal) -> tuple[Tensor, Tensor]:
    return spatial(working_precision(tensor), layer)
