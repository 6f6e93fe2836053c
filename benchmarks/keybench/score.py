"""What a tool made of a case, judged by the numbers that stand on each place, and sums over many cases."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from benchmarks.keybench.damage import Answer, Damaged
from inspector.keys.report import Evidence

Shape = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """placed: target key -> what stands there, of the file's tensors. strict: it claims or passes a strict load.

    refused: it gave nothing at all. told: it said that names and shapes cannot show what is wrong. open: what it
    waits for. timed_out: it took longer than it was given, which counts as refused.
    """

    placed: Mapping[str, Tensor]
    strict: bool
    refused: bool = False
    seconds: float = 0.0
    rules: int = 0
    told: bool = False
    asked: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    evidence: tuple[tuple[Evidence, int], ...] = ()
    timed_out: bool = False


@dataclass(frozen=True, kw_only=True)
class Score:
    """One tool on one case. wrong_keys: the first few places with another tensor's numbers."""

    tool: str
    corruption: str
    architecture: str
    seed: int
    held_out: bool
    expects: Answer
    simple: bool
    tensors: int
    placeable: int
    right: int
    wrong: int
    strict: bool
    silent: bool
    refused: bool
    timed_out: bool
    told: bool
    asked: tuple[str, ...]
    open: tuple[str, ...]
    rules: int
    seconds: float
    evidence: tuple[tuple[Evidence, int], ...]
    wrong_keys: tuple[str, ...]
    logits: bool | None = None

    @property
    def left(self) -> int:
        """Placeable places without a tensor."""
        return self.placeable - self.right


def judge(case: Damaged, outcome: Outcome, expects: Answer) -> tuple[int, tuple[str, ...], bool]:
    """(right, wrong places, silent). A tensor is right when the numbers on its place are the ones that belong there."""
    right, wrong = 0, []
    for name, tensor in outcome.placed.items():
        if name in case.computed or name not in case.truth:
            continue
        if same(tensor, case.truth[name]):
            right += name in case.placeable
        else:
            wrong.append(name)
    # A file that nobody can repair may still be one whose shapes happen to be all different.
    lucky = right == len(case.truth)
    silent = outcome.strict and expects is not Answer.TELL and (bool(wrong) or (expects is Answer.REFUSE and not lucky))
    return right, tuple(wrong), silent


def same(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.data_ptr() == other.data_ptr() and one.stride() == other.stride():
        return True
    return torch.equal(one, other)


def loads_strictly(made: Mapping[str, Tensor], goal: Mapping[str, Shape]) -> bool:
    """Whether torch's strict load would pass: all names and shapes, but for what its own hooks forgive.

    A batch norm's missing counter is filled in for files without versions, and [1] is taken for [].
    """
    if any(name not in made and not name.endswith("num_batches_tracked") for name in goal):
        return False
    return all(
        name in goal and (tuple(tensor.shape) == goal[name] or (tuple(tensor.shape) == (1,) and goal[name] == ()))
        for name, tensor in made.items()
    )


@dataclass
class Total:
    """Over cases. whole: complete repairs or strict loads; tensors in right, wrong and placeable."""

    cases: int = 0
    whole: int = 0
    silent: int = 0
    refused: int = 0
    timed_out: int = 0
    asked: int = 0
    told: int = 0
    right: int = 0
    wrong: int = 0
    placeable: int = 0
    logits: int = 0
    logits_equal: int = 0
    rules: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    evidence: Counter[Evidence] = field(default_factory=Counter)

    def add(self, score: Score) -> None:
        self.cases += 1
        self.whole += score.strict
        self.silent += score.silent
        self.refused += score.refused
        self.timed_out += score.timed_out
        self.asked += bool(score.asked)
        self.told += score.told
        self.seconds.append(score.seconds)
        if score.expects in (Answer.REPAIR, Answer.PART):
            self.right += score.right
            self.wrong += score.wrong
            self.placeable += score.placeable
        if score.strict:
            self.evidence.update(dict(score.evidence))
        if score.strict and score.simple and score.expects is Answer.REPAIR:
            self.rules.append(score.rules)
        if score.logits is not None:
            self.logits += 1
            self.logits_equal += score.logits

    @property
    def right_share(self) -> float:
        return 100 * self.right / self.placeable if self.placeable else float("nan")

    @property
    def wrong_share(self) -> float:
        return 100 * self.wrong / self.placeable if self.placeable else float("nan")

    @property
    def median_rules(self) -> float:
        return statistics.median(self.rules) if self.rules else float("nan")


def total(scores: Iterable[Score], keep: Callable[[Score], bool] = lambda score: True) -> Total:
    made = Total()
    for score in scores:
        if keep(score):
            made.add(score)
    return made
