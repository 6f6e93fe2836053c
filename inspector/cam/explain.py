"""Where does this model look: pictures in, heat maps with everything needed to judge and repeat them out."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from PIL import Image
from torch import Tensor, nn

from inspector.cam.describe import Setting, explanation_of
from inspector.cam.engine.combine import FUSIONS
from inspector.cam.engine.maps import Targets
from inspector.cam.engine.tensors import shape_of
from inspector.cam.inputs.preprocess import prepare
from inspector.cam.report import PLAIN, Crop, Explanation, LayerProposal, Options, Preprocessing
from inspector.cam.runnable import mixes_pictures
from inspector.cam.spec import MapRequest, MapSpec, unfused
from inspector.cam.targets.answers import AnswerKind
from inspector.cam.targets.questions import A_CLASS, Question
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

    layer: a name ("layer4", "relu:0" for the first call of a shared module, "norm=NHWC" with a layout:
    `layers/layouts.py`), a proposal, None for the suggested one.
    layers: those that `options.fusion` makes one map of; () for the proposed ones.
    target: class index, None for the model's best. categories: class names in output order; ignored when their count
    is not that of the outputs. question: what is scored, where that is no class (`targets/questions.py`). answer:
    how the scores are meant (`targets/answers.py`).
    Raises ExplainError and its kinds, UsageError for options that mean nothing together. The model is left as it was.
    """
    if layers and not options.fusion:
        raise unfused()
    if layer is not None and options.fusion in FUSIONS:
        raise UsageError("A fusion takes several layers.", hint="Give them as `layers`.")
    wanted = tuple(layers) if layer is None else (layer,)
    setting = Setting(
        preprocessing=preprocessing, categories=tuple(categories), top=top, question=question, answer=answer
    )
    request = MapRequest(method=method, layers=wanted, options=options)
    (explanation,) = explain_many(model, [picture], request, setting, targets=target, progress=progress)
    return explanation


def explain_many(
    model: nn.Module,
    pictures: Iterable[Image.Image],
    request: MapRequest,
    setting: Setting,
    *,
    targets: Targets = None,
    batch_size: int = BATCH,
    progress: Progress = silent,
) -> Iterator[Explanation]:
    """One heat map of each picture, in their order.

    Pictures may come one by one and have any size: neighbours whose inputs are of one size share a forward pass, at
    most `batch_size` of them, and no more than these are held; one alone where the model would mix them.
    targets: one class for all, or one for each. Raises as `explain` does.
    `seconds` is each picture's share.
    """
    wanted = None if targets is None or isinstance(targets, int) else [int(one) for one in targets]
    if wanted is not None and isinstance(pictures, Sequence) and len(wanted) != len(pictures):
        raise UsageError(f"{len(wanted)} targets were given for {len(pictures)} pictures.")
    work = _Work(model, request, setting)
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
        ready = prepare(picture, setting.preprocessing)
        if waiting and (len(waiting) >= together or ready[0].shape != waiting[0][0].shape):
            yield from flush()
        waiting.append(ready)
    yield from flush()


@dataclass(frozen=True, slots=True)
class _Work:
    """What is the same for every batch of `explain_many`. specs: by input shape, found once."""

    model: nn.Module
    request: MapRequest
    setting: Setting
    specs: dict[tuple[int, int, int], MapSpec] = field(default_factory=dict)

    def explained(
        self, ready: Sequence[tuple[Tensor, Crop]], targets: Targets, progress: Progress
    ) -> Iterator[Explanation]:
        """The reports on pictures whose inputs are of one size."""
        start = time.perf_counter()
        batch = torch.cat([tensor for tensor, _ in ready])
        question = self.setting.question
        asked = question.ask(self.model, batch, [crop for _, crop in ready])
        if targets is not None and not question.of_class:
            raise UsageError("What is asked about says the class already.", hint="Leave the class out.")
        columns = targets if asked.columns is None else asked.columns
        spec = self._spec(shape_of(batch))
        maps = spec.make(self.model, batch, targets=columns, read=asked.read, progress=progress)
        seconds = (time.perf_counter() - start) / len(ready)
        for index, (_, crop) in enumerate(ready):
            yield explanation_of(
                self.model, batch, maps, crop=crop, setting=self.setting, index=index, asked=asked, seconds=seconds
            )

    def _spec(self, shape: tuple[int, int, int]) -> MapSpec:
        if shape not in self.specs:
            request = self.request.by_name if self.specs else self.request
            self.specs[shape] = request.at(self.model, shape)
        return self.specs[shape]
