"""Where does this model look: pictures in, heat maps with everything needed to judge and repeat them out."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from PIL import Image
from torch import Tensor, nn

from inspector.cam.answers import AnswerKind
from inspector.cam.combine import FUSIONS
from inspector.cam.describe import PLAIN, explanation_of
from inspector.cam.layers import find_layer
from inspector.cam.layouts import layer_text
from inspector.cam.maps import choose_layers
from inspector.cam.methods import method_named
from inspector.cam.preprocess import prepare
from inspector.cam.questions import A_CLASS, Asked, Question
from inspector.cam.report import Crop, Explanation, LayerProposal, Made, Options, Preprocessing
from inspector.cam.runnable import mixes_pictures
from inspector.cam.spec import MapSpec
from inspector.errors import UsageError
from inspector.progress import Progress, silent

# Pictures that go through the model at once, where more are given.
BATCH = 8


def explain(
    model: nn.Module,
    picture: Image.Image,
    *,
    preprocessing: Preprocessing,
    layer: LayerProposal | str | None = None,
    layers: Sequence[LayerProposal | str] = (),
    target: int | None = None,
    method: str = "grad-cam",
    categories: Sequence[str] = (),
    top: int = 5,
    options: Options = PLAIN,
    question: Question = A_CLASS,
    answer: AnswerKind = AnswerKind.ONE,
    progress: Progress = silent,
) -> Explanation:
    """One heat map of one picture.

    layer: a name ("layer4", "relu:0" for the first call of a shared module, "norm=NHWC" with a layout: `layouts.py`), a
    proposal, None for the suggested one.
    layers: those that `options.fusion` makes one map of; () for the proposed ones.
    target: class index, None for the model's best. categories: class names in output order; ignored when their count
    is not that of the outputs. question: what is scored, where that is no class (`questions.py`). answer: how the
    scores are meant (`answers.py`).
    Raises ExplainError and its kinds, UsageError for options that mean nothing together. The model is left as it was.
    """
    (found,) = explain_many(
        model,
        [picture],
        preprocessing=preprocessing,
        layer=layer,
        layers=layers,
        targets=target,
        method=method,
        categories=categories,
        top=top,
        options=options,
        question=question,
        answer=answer,
        progress=progress,
    )
    return found


def explain_batch(
    model: nn.Module,
    pictures: Sequence[Image.Image],
    *,
    preprocessing: Preprocessing,
    layer: LayerProposal | str | None = None,
    targets: int | Sequence[int] | None = None,
    method: str = "grad-cam",
    categories: Sequence[str] = (),
    top: int = 5,
    answer: AnswerKind = AnswerKind.ONE,
) -> tuple[Explanation, ...]:
    """`explain_many` of pictures that are all at hand."""
    found = explain_many(
        model,
        pictures,
        preprocessing=preprocessing,
        layer=layer,
        targets=targets,
        method=method,
        categories=categories,
        top=top,
        answer=answer,
    )
    return tuple(found)


def explain_many(
    model: nn.Module,
    pictures: Iterable[Image.Image],
    *,
    preprocessing: Preprocessing,
    layer: LayerProposal | str | None = None,
    layers: Sequence[LayerProposal | str] = (),
    targets: int | Sequence[int] | None = None,
    method: str = "grad-cam",
    categories: Sequence[str] = (),
    top: int = 5,
    options: Options = PLAIN,
    question: Question = A_CLASS,
    answer: AnswerKind = AnswerKind.ONE,
    batch_size: int = BATCH,
    progress: Progress = silent,
) -> Iterator[Explanation]:
    """One heat map of each picture, in their order; arguments as `explain`.

    Pictures may come one by one and have any size: neighbours whose inputs are of one size share a forward pass, at
    most `batch_size` of them, and no more than these are held; one alone where the model would mix them.
    targets: one class for all, or one for each.
    `seconds` is each picture's share.
    """
    wanted = None if targets is None or isinstance(targets, int) else list(targets)
    if wanted is not None and isinstance(pictures, Sequence) and len(wanted) != len(pictures):
        raise UsageError(f"{len(wanted)} targets were given for {len(pictures)} pictures.")
    work = _Work(model, preprocessing, layer, tuple(layers), method, tuple(categories), top, options, question, answer)
    waiting: list[tuple[Tensor, Crop]] = []
    done = 0
    together = 1 if mixes_pictures(model) else batch_size

    def flush() -> Iterator[Explanation]:
        nonlocal done
        if waiting:
            some = wanted[done : done + len(waiting)] if wanted is not None else targets
            progress(done, None, "looking")
            done += len(waiting)
            yield from work.explained(waiting, some, progress)
            waiting.clear()

    for picture in pictures:
        ready = prepare(picture, preprocessing)
        if waiting and (len(waiting) >= together or ready[0].shape != waiting[0][0].shape):
            yield from flush()
        waiting.append(ready)
    yield from flush()


@dataclass(frozen=True, slots=True)
class _Work:
    """What is the same for every batch of `explain_many`. places: the layers by input shape, found once."""

    model: nn.Module
    preprocessing: Preprocessing
    layer: LayerProposal | str | None
    layers: tuple[LayerProposal | str, ...]
    method: str
    categories: tuple[str, ...]
    top: int
    options: Options
    question: Question
    answer: AnswerKind
    places: dict[tuple[int, int, int], tuple[LayerProposal, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        fused = bool(self.options.fusion)
        if fused and self.options.fusion not in FUSIONS:
            raise UsageError(f"There is no fusion {self.options.fusion!r}.", hint=f"Fusions: {', '.join(FUSIONS)}.")
        if self.layers and not fused:
            raise UsageError("Several layers make one map by a fusion.", hint="Name it, or ask for a grid.")
        if fused and self.layer is not None:
            raise UsageError("A fusion takes several layers.", hint="Give them as `layers`.")
        if fused and not method_named(self.method).by_layer:
            raise UsageError(f"{method_named(self.method).title} looks at no layer, so there is nothing to fuse.")

    def explained(
        self, ready: Sequence[tuple[Tensor, Crop]], targets: int | Sequence[int] | None, progress: Progress
    ) -> Iterator[Explanation]:
        """The reports on pictures whose inputs are of one size."""
        start = time.perf_counter()
        batch = torch.cat([tensor for tensor, _ in ready])
        asked = self.question.ask(self.model, batch, [crop for _, crop in ready])
        if targets is not None and not self.question.of_class:
            raise UsageError("What is asked about says the class already.", hint="Leave the class out.")
        made = self._maps(batch, targets if asked.columns is None else asked.columns, asked, progress)
        seconds = (time.perf_counter() - start) / len(ready)
        for index, (_, crop) in enumerate(ready):
            yield explanation_of(
                self.model,
                batch,
                made.maps,
                index=index,
                crop=crop,
                preprocessing=self.preprocessing,
                categories=self.categories,
                top=self.top,
                asked=asked,
                answer=self.answer,
                options=self.options,
                parts=made.parts,
                seconds=seconds,
            )

    def _maps(self, batch: Tensor, targets: int | Sequence[int] | None, asked: Asked, progress: Progress) -> Made:
        places = self._places((batch.shape[1], batch.shape[2], batch.shape[3]))
        spec = MapSpec(method=self.method, layers=places, options=self.options)
        return spec.make(self.model, batch, targets=targets, read=asked.read, progress=progress)

    def _places(self, shape: tuple[int, int, int]) -> tuple[LayerProposal, ...]:
        if not method_named(self.method).by_layer:
            return ()
        if shape not in self.places:
            wanted: Sequence[LayerProposal | str] | None = self.layers or None
            if not self.options.fusion and self.layer is not None:
                wanted = [self.layer]
            if self.places and wanted is not None:
                # A proposal is of one input size; for another the same layer is traced again.
                wanted = [
                    find_layer(self.model, layer_text(layer), shape) if isinstance(layer, LayerProposal) else layer
                    for layer in wanted
                ]
            self.places[shape] = choose_layers(self.model, wanted, shape, None if self.options.fusion else 1)
        return self.places[shape]
