"""What an evaluation on class folders gives, and what it does not say."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.cam.report import Preprocessing
from inspector.cam.trust.intervals import Interval
from inspector.evaluate.mapping import ClassMap
from inspector.evaluate.metrics import Calibration

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """The checkpoint. weights: label of the state dict that ran."""

    name: str
    sha256: str
    architecture: str
    weights: str
    preprocessing: Preprocessing


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureResult:
    """One picture. label: output index of its folder. answer: of what the model is taken to have answered. rank: of the
    right class, 1 for the first, ties against the model. share, confidence: softmax shares of the right class and of
    the answer, NaN where a score is no number."""

    path: str
    label: int
    answer: int
    rank: int
    share: float
    confidence: float

    @property
    def right(self) -> bool:
        """Whether the right class is alone at the top."""
        return self.rank == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassFigures:
    """One class. folder: "" where there is none of it. support: its pictures. answered: pictures called so.

    precision, recall, f1, average_precision, area_under_roc (one class against the rest): NaN where they have no
    meaning, as recall has none without a picture. recall_interval: with 95 % confidence.
    """

    index: int
    name: str
    folder: str
    support: int
    answered: int
    right: int
    precision: float
    recall: float
    recall_interval: Interval
    f1: float
    average_precision: float
    area_under_roc: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """Means over classes with pictures, each counting the same; NaN of none. Precision of a class that was never
    answered counts as 0, as scikit-learn has it."""

    classes: int
    precision: float
    recall: float
    f1: float
    average_precision: float
    area_under_roc: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Confused:
    """Pictures of one class that got another answer. label, answer: output indices."""

    label: int
    answer: int
    pictures: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassCurves:
    """Of one class against the rest, to be drawn. precision_recall: (recall, precision). roc: (false positive rate,
    true positive rate). At most 200 points of each; areas are of all."""

    index: int
    precision_recall: Points
    roc: Points


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """One checkpoint on one set of pictures.

    pictures: that were scored. top1, top5: shares right with 95 % intervals; top5 None for heads of five classes and
    fewer. ties: pictures where another class has the score of the right one, counted as wrong. not_finite: pictures
    with a score that is no number, counted as wrong and left out of curves and calibration. confused: every error, the
    most frequent first. curves: of the classes with the lowest average precision, `MOST_CURVES` at most. worst: wrong
    answers, the surest first. rows: every picture that was scored. unread: (picture, why). left_out: (file, why) of the
    first that are no pictures; left_out_count: of how many. empty: class folders without pictures.
    """

    checkpoint: Evaluated
    data: str
    data_digest: str
    mapping: ClassMap
    pictures: int
    top1: Interval
    top5: Interval | None
    ties: int
    not_finite: int
    classes: tuple[ClassFigures, ...]
    means: Means
    confused: tuple[Confused, ...]
    calibration: Calibration
    curves: tuple[ClassCurves, ...]
    worst: tuple[PictureResult, ...]
    rows: tuple[PictureResult, ...]
    unread: tuple[tuple[str, str], ...]
    left_out: tuple[tuple[str, str], ...]
    left_out_count: int
    empty: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def wrong(self) -> int:
        """Pictures that were answered wrong."""
        return sum(not row.right for row in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two checkpoints on the same pictures. both, only_first, only_second, neither: how many have which right.
    p_value: of McNemar's exact test, two-sided. changed: pictures that one alone has right, the second's first."""

    first: str
    second: str
    pictures: int
    both: int
    only_first: int
    only_second: int
    neither: int
    p_value: float
    changed: tuple[PicturePair, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PicturePair:
    """A picture that one of two has right. first, second: their answers, by name."""

    path: str
    label: str
    first: str
    second: str
    right: str
