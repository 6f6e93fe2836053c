"""The sentences about forty files of real programs are what the installed torch does with them."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch

from benchmarks.bench_plain_load import disagreements, misquoted, overview_of
from benchmarks.plain_load.files import FILES, MOST_SENT, shapes_of, write
from benchmarks.plain_load.run_torch import outcome

# What `make test` runs of them; the others wait for `make thorough`.
FEW = (
    "Lightning",
    "whole module",
    "half a file",
    "protocol 4",
    "8-bit floats",
    "of a GPU",
    "numpy values",
    "PEFT adapter",
)


def test_there_are_twenty_and_twenty() -> None:
    assert (len(MOST_SENT), len(FILES)) == (20, 40)


@pytest.mark.parametrize("kind", FILES)
def test_a_sentence_is_what_happens(kind: str, tmp_path: Path, thorough: bool) -> None:
    if not thorough and kind not in FEW:
        pytest.skip("runs with --thorough")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = write(FILES[kind], tmp_path)
        shapes = {name: list(pair) for name, pair in shapes_of(FILES[kind]).items()}
        says = overview_of(path).get("loading", "")
        assert disagreements(says, torch.__version__, outcome(str(path), shapes)) == []


@pytest.mark.parametrize(
    ("says", "version", "happened", "count"),
    [
        ("All 3 tensors fit x as they are; no name or shape needs repair.", "1.13.0", ("AttributeError", None), 1),
        ("All 3 tensors fit x as they are; it needs torch 2.2 or later.", "1.13.0", ("AttributeError", None), 0),
        ('Fails as it is: torch.load says "Unsupported operand 149". By name', "1.13.0", ("", ""), 2),
        ('Fails as it is: torch.load says "X" since torch 2.6. a torch before 2.6 loads it as it is.', "1.1", ("", ""), 0),  # noqa: E501
        ("Not checked: no known architecture to load it into.", "2.15.0", ("", "Missing key(s)"), 0),
    ],
)  # fmt: skip
def test_the_comparison_sees_what_is_not_so(
    says: str, version: str, happened: tuple[str, str | None], count: int
) -> None:
    assert len(disagreements(says, version, happened)) == count


@pytest.mark.parametrize(("read", "count"), [("EOFError: ", 0), ("Ran out of input", 0), ("KeyError: 'x'", 1), ("", 1)])
def test_the_comparison_reads_what_is_said_to_no_checkpoint(read: str, count: int) -> None:
    says = "a.pth is empty. Do it again. (torch.load says “EOFError” or “Ran out of input” to it.)"
    assert len(misquoted(says, "2.15.0", (read, None))) == count
