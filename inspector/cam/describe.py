"""One map as a report: what the answer was, the raw range, what is wrong with the map, what computed it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata

import torch
from torch import Tensor, nn

from inspector.cam.empty_maps import judge, judge_fused
from inspector.cam.report import Crop, Explanation, LayerProposal, Made, Options, Preprocessing, Score
from inspector.cam.targets.answers import AnswerKind
from inspector.cam.targets.questions import A_CLASS, Asked, Question
from inspector.cam.targets.readings import shares_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What all explanations of a model share.

    preprocessing: of its pictures. categories: class names in output order; ignored when their count is not that of the
    outputs. top: how many classes of the answer are told. question: what is scored, where that is no class
    (`targets/questions.py`). answer: how the scores are meant (`targets/answers.py`).
    """

    preprocessing: Preprocessing
    categories: tuple[str, ...] = ()
    top: int = 5
    question: Question = A_CLASS
    answer: AnswerKind = AnswerKind.ONE


def explanation_of(
    model: nn.Module,
    batch: Tensor,
    made: Made,
    *,
    crop: Crop,
    setting: Setting,
    index: int = 0,
    asked: Asked | None = None,
    seconds: float = 0.0,
) -> Explanation:
    """The report on one picture of maps that were made already.

    batch: (N, C, H, W), prepared. crop: the rectangle of the picture that it shows. asked: the setting's question as it
    stands for this batch, None for a class.
    """
    maps, parts = made.maps, made.parts
    raw = maps.raw[index].float()
    exact = raw[torch.isfinite(raw)].double()
    mass = float(exact.abs().sum())
    logits = maps.logits[index]
    scores: tuple[Score, ...]
    if asked is not None and asked.labels:
        scores = (_of_detector(logits, asked.labels[index], setting.categories),)
        target = scores[0]
    else:
        read = _score_reader(logits, setting.categories, setting.answer)
        scores = tuple(map(read, _best_first(logits)[: max(setting.top, 1)]))
        target = read(int(maps.targets[index]))
    own = batch[index : index + 1]
    of_box = asked is not None and bool(asked.labels)
    if parts:
        findings = judge_fused(model, own, parts, maps, index, target, of_box=of_box)
    else:
        findings = judge(model, own, maps, index, target, of_box=of_box)
    return Explanation(
        heat=maps.heat[index].float().clamp(0, 1).numpy().copy(),
        raw=raw.numpy().copy(),
        logits=logits.float().numpy().copy(),
        method=maps.method,
        layer=maps.layer,
        layers=tuple(part.layer for part in parts) or (maps.layer,),
        target=target,
        asked="class" if asked is None else asked.names[index],
        pixels_of=None if asked is None else asked.pixels_of,
        box="" if asked is None else asked.box,
        place=asked.places[index] if asked is not None and asked.places else None,
        answer=setting.answer,
        options=made.options,
        scores=scores,
        raw_minimum=float(exact.min()) if exact.numel() else float("nan"),
        raw_maximum=float(exact.max()) if exact.numel() else float("nan"),
        negative_share=float(exact[exact < 0].abs().sum() / mass) if mass > 0 else 0.0,
        preprocessing=setting.preprocessing,
        crop=crop,
        findings=findings,
        versions=versions(),
        seconds=seconds,
    )


def scores_of(logits: Tensor, categories: Sequence[str] = (), answer: AnswerKind = AnswerKind.ONE) -> tuple[Score, ...]:
    """Every class, best first. logits: (classes,)."""
    return tuple(map(_score_reader(logits, categories, answer), _best_first(logits)))


def _best_first(logits: Tensor) -> list[int]:
    exact = torch.nan_to_num(logits.detach().double(), nan=-torch.inf)
    order: list[int] = torch.argsort(exact, descending=True, stable=True).tolist()
    return order


def _score_reader(logits: Tensor, categories: Sequence[str], answer: AnswerKind) -> Callable[[int], Score]:
    """What tells a class's score by its index: a report wants a few of thousands, and many maps are made of one
    answer."""
    exact = logits.detach().double()
    shares = shares_of(exact, answer)
    named = categories if len(categories) == exact.numel() else ()

    def read(index: int) -> Score:
        return Score(
            index=index,
            name=named[index] if named else None,
            logit=float(exact[index]),
            probability=None if shares is None else float(shares[index]),
        )

    return read


def place_says(layer: LayerProposal, options: Options) -> str:
    """Where the cells of a layer are drawn, in a sentence; "" for a map that has no cells."""
    if not layer.path or layer.grid == layer.shape:
        return ""
    if not options.aligned:
        return ""
    if layer.centres is None:
        return "Where its cells look cannot be told from the network, so they are spread evenly over the picture."
    (down, across), (step_down, step_across) = layer.centres.first, layer.centres.step
    return (
        f"Each cell is drawn where it looks: the first {down:g} pixels down and {across:g} across the model's input, "
        f"the next ones {step_down:g} and {step_across:g} further."
    )


@lru_cache(maxsize=1)
def versions() -> tuple[tuple[str, str], ...]:
    """What computed this, for repeating it. Read once: each look at a package's metadata parses a file."""
    found = []
    for name in ("model-inspector", "torch", "torchvision", "numpy", "pillow"):
        try:
            found.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            continue
    return tuple(found)


def _of_detector(logits: Tensor, label: int, categories: Sequence[str]) -> Score:
    """How sure it is of the box, over the detections that cover it. logits: (1,)."""
    value = float(logits[0])
    name = categories[label] if 0 <= label < len(categories) else None
    return Score(index=label, name=name, logit=value, probability=min(max(value, 0.0), 1.0))
