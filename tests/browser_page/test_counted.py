"""Every file that a test of the readers makes, and every sample: what the page counts of its numbers is what
`inspector stats` says, and the finding about NaN and infinity is the health check's; in Node, on the page's arrays."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from inspector.browser.pieces import finding_cards
from inspector.checkpoint.layout import is_plain_float
from inspector.errors import InspectorError
from inspector.health.examine import examine
from inspector.readers import open_checkpoint
from tests.browser_page.asking import files_in
from tests.browser_page.nodes import ask_in_node

if TYPE_CHECKING:
    from inspector.checkpoint.types import Checkpoint
    from inspector.weights.report import TensorStatistics

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("site-page"), pytest.mark.timeout(1800)]
# What a finding explains is not said again on the command line (health/examine.py): there another one says it.
EXPLAINS = ("byte-order",)


def _bits(numel: int, kind: torch.dtype) -> torch.Tensor:
    """Any bits: every kind of NaN, of subnormal numbers and of zeros."""
    nbytes = numel * kind.itemsize
    return torch.randint(0, 256, (nbytes,), dtype=torch.uint8, generator=torch.Generator().manual_seed(0)).view(kind)


_PATTERNS = torch.arange(1 << 16, dtype=torch.int32).to(torch.uint16)
# The page counts 4 MB at a time.
_PIECE = 4 << 20
ODD = {
    "float16": _PATTERNS.view(torch.float16),
    "bfloat16": _PATTERNS.view(torch.bfloat16),
    "float32": _bits(_PIECE // 4 * 2 + 5, torch.float32),
    "float64": _bits(_PIECE // 8 + 3, torch.float64),
    "turned": _bits(2000, torch.float32).view(40, 50).t(),
    "every_second": _bits(2000, torch.float64)[1::2],
    "nan": torch.full((3, 2), math.nan),
    "infinite": torch.full((5,), -math.inf, dtype=torch.float16),
    "late": torch.cat([-torch.zeros(_PIECE // 4), torch.tensor([math.nan])]),
}


def _natively(checkpoint: Checkpoint) -> tuple[list[list[Any]], list[dict[str, Any]], bool]:
    """Counts as the page lists them, its cards, and whether the command line knows more or says it otherwise."""
    health = examine(checkpoint, checkpoint.weights, whole=False)
    plain = {tensor.path for tensor in (checkpoint.weights or checkpoint).tensors if is_plain_float(tensor)}
    counts = [_fields(one) for one in health.weights.tensors if one.path in plain]
    findings = [finding for finding in health.findings if finding.id == "non-finite"]
    explained = any(finding.id in EXPLAINS for finding in health.findings)
    # What has to be decoded is not counted in the page.
    decoded = {one.name for one in health.weights.tensors if one.path not in plain}
    more = explained or any(decoded.intersection(finding.subjects) for finding in findings)
    return counts, finding_cards(findings, checkpoint), more


def _fields(one: TensorStatistics) -> list[Any]:
    # JSON knows no NaN.
    extremes = [None if math.isnan(value) else value for value in (one.minimum, one.maximum)]
    return [one.name, one.numel, one.nan, one.infinite, one.zero, *extremes, one.first_non_finite]


def _compared(dist: Path, made: Path, files: Sequence[Path]) -> tuple[Counter[str], list[tuple[str, Any, Any]]]:
    opened: list[tuple[Path, Checkpoint]] = []
    questions: list[dict[str, Any]] = []
    for path in files:
        try:
            opened.append((path, open_checkpoint(path)))
        except InspectorError:
            continue
        at = f"/work/{path.relative_to(made).as_posix()}"
        questions += [{"ask": name, "path": at} for name in ("open", "numbers", "close")]
    answers = ask_in_node(dist, made, questions)[1::3]
    counts: Counter[str] = Counter(files=len(opened))
    other: list[tuple[str, Any, Any]] = []
    for (path, checkpoint), answer in zip(opened, answers, strict=True):
        if answer.get("deep"):
            counts["too deep"] += 1
            continue
        rows, cards, more = _natively(checkpoint)
        checkpoint.source.close()
        told = answer["value"]
        counts["tensors"] += len(rows)
        counts["with NaN or infinity"] += sum(bool(row[2] + row[3]) for row in rows)
        if rows != told["counts"]:
            other.append((path.name, rows, told["counts"]))
        if told["findings"] == cards:
            counts["findings alike"] += len(cards)
        elif more:
            counts["the command line says more"] += 1
        else:
            other.append((path.name, cards, told["findings"]))
    return counts, other


def test_counts_are_those_of_the_statistics(dist: Path, made: Path) -> None:
    files = [path for folder in sorted(made.iterdir()) if folder.is_dir() for path in files_in(folder)]
    counts, other = _compared(dist, made, files)
    print(f"Node: {dict(counts)}, {len(other)} differ")
    assert counts["tensors"] > 1000
    assert other == []


def test_odd_numbers_of_each_type_in_several_pieces(dist: Path, tmp_path: Path) -> None:
    for name, tensor in ODD.items():
        torch.save({"a.weight": torch.ones(3), "b.weight": tensor}, tmp_path / f"{name}.pth")
    counts, other = _compared(dist, tmp_path, files_in(tmp_path))
    assert other == []
    assert counts["with NaN or infinity"] == counts["findings alike"] == len(ODD)


def test_squares_of_zeros_and_infinities_are_left_to_the_app(dist: Path, tmp_path: Path) -> None:
    """Whether it is a mask decides how bad it is, and takes NumPy."""
    torch.save({"m": torch.full((4, 4), -math.inf).triu(1), "w": torch.ones(2)}, tmp_path / "mask.pth")
    asked = [{"ask": name, "path": "/work/mask.pth"} for name in ("open", "numbers")]
    told = ask_in_node(dist, tmp_path, asked)[1]["value"]
    assert told["findings"] == [] and "It may be a mask" in told["html"]
    assert told["counts"][0] == ["m", 16, 0, 6, 10, 0.0, 0.0, 3 - 2]
