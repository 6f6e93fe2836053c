"""Every operation is listed and found by its steps; the list imports no torch; one tensor can be made alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import inspector.keys.operations as operations
from inspector.errors import KeysDoNotFit
from inspector.keys.operations import OPERATIONS, by_operation, operation_of
from inspector.keys.operations.entry import Moment
from inspector.keys.report import Cost, Evidence, Step, StepKind
from tests.raw import make_one


def step(kind, source="a", target="b", **more):
    given = {"rule": "", "reason": "", "cost": Cost.LOSSLESS, "evidence": Evidence.RULE}
    return Step(kind=kind, source=source, target=target, **(given | more))


def test_every_file_is_listed_once_and_no_two_answer_for_one_step():
    files = [p for p in Path(operations.__file__).parent.glob("*.py") if "\nOPERATION = " in p.read_text()]
    assert len(files) == len(OPERATIONS) == len({x.id for x in OPERATIONS})
    ways = [(kind, x.way) for x in OPERATIONS for kind in x.kinds]
    assert len(set(ways)) == len(ways) and {kind for kind, _ in ways} == set(StepKind)


def test_what_makes_a_tensor_can_be_written_down_and_the_rest_is_dropped():
    for entry in OPERATIONS:
        if StepKind.DROP in entry.kinds:
            assert entry.make is None and (entry.check is None) == (entry.lines is None)
        else:
            assert entry.make is not None
            # A renaming is written by the rules.
            assert entry.lines is not None or entry.id == "keep"


def test_a_step_that_nobody_knows_is_an_error():
    with pytest.raises(KeyError):
        operation_of(step(StepKind.ADAPT, value="as-you-like"))


def test_the_lines_need_no_torch():
    code = "import sys, inspector.keys.operations; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_one_tensor_is_made_of_its_own_sources_alone():
    held = {"a": torch.arange(6.0).reshape(2, 3), "c": torch.ones(1, 3)}
    asked = []

    def load(name):
        asked.append(name)
        return held[name]

    made = make_one(step(StepKind.MERGE, more=("c",)), load)
    assert asked == ["a", "c"] and torch.equal(made, torch.cat([held["a"], held["c"]]))
    assert torch.equal(make_one(step(StepKind.PERMUTE, axes=(1, 0)), load), held["a"].t())
    assert make_one(step(StepKind.FILL, source=None, value="zero", shape=()), load).dtype is torch.int64
    with pytest.raises(KeysDoNotFit, match="left out"):
        make_one(step(StepKind.DROP, target=None), load)


def test_steps_of_one_operation_are_written_together():
    steps = [step(StepKind.RESHAPE, shape=(3,)), step(StepKind.KEEP), step(StepKind.RESHAPE, target="c", shape=(3,))]
    found = {entry.id: len(own) for entry, own in by_operation(steps)}
    assert found == {"keep": 1, "reshape": 2} and operation_of(steps[0]).moment is Moment.TARGET
