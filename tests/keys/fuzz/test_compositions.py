"""Random small networks under one to four adversaries: no complete repair is wrong where something in the file tells.

Seed "compositions"; `make thorough` runs the first 20,000, `scripts/fuzz_compositions.py` as many as are asked for.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
import torch

from tests.keys.fuzz import compositions
from tests.keys.fuzz.adversaries import Row, Scene
from tests.keys.fuzz.adversaries_tensors import fused, split
from tests.keys.fuzz.compositions import Outcome, make, run

_PARTS, _CASES = 8, 20_000
_EACH = _CASES // _PARTS
# In `make thorough` a part is minutes: each may have a worker of its own.
_MARKED = [pytest.param(part, marks=pytest.mark.xdist_group(f"compositions {part}")) for part in range(_PARTS)]


@pytest.mark.parametrize("part", _MARKED)
def test_no_composition_is_wrong_in_silence(part, seeds, saved):
    for n in seeds(5, full=_EACH):
        verdict = run(f"compositions-{part * _EACH + n}", saved)
        assert verdict.outcome is not Outcome.WRONG, (part * _EACH + n, verdict)


def test_many_are_right_or_the_rest_would_prove_nothing(saved):
    found = [run(f"compositions-{n}", saved).outcome for n in range(20)]
    assert sum(x in (Outcome.RIGHT, Outcome.ANSWERED) for x in found) >= 6


def test_a_lie_that_is_taken_for_the_truth_is_seen(saved, monkeypatch):
    """Two equal layers exchanged under each other's names: with the lie kept secret the judge must call it wrong."""
    plain = next(n for n in range(999) if make(f"judge-{n}")[1][1:] == ("exchanged",))
    assert run(f"judge-{plain}", saved).outcome is Outcome.NOTHING_TELLS
    monkeypatch.setattr(compositions, "make", lambda seed: (replace(make(seed)[0], lied=set()), make(seed)[1]))
    verdict = run(f"judge-{plain}", saved)
    assert verdict.outcome is Outcome.WRONG
    assert set(verdict.wrong) == make(f"judge-{plain}")[0].lied


def test_parts_that_were_fused_in_another_order_and_cut_again_are_a_lie():
    """They lie under each other's names, and no name tells. In torch's order each is where its name says."""
    lies = set()
    for n in range(60):
        rng = random.Random(n)
        goal = {f"attn.{x}_proj.weight": torch.full((3, 3), float(i)) for i, x in enumerate("qkv")}
        scene = Scene(rows=[Row(name, name, value) for name, value in goal.items()], goal=goal)
        assert fused(scene, rng) and split(scene, rng)
        own = [float(row.value.mean()) for row in scene.rows]
        told = "part_b" not in scene.rows[0].key
        assert scene.lied == (set(goal) if told and own != [0, 1, 2] else set())
        lies.add(bool(scene.lied))
    assert lies == {True, False}


def test_a_whole_that_was_cut_and_joined_in_another_order_is_a_lie():
    """The target has it in one under that name: no shape and no question can show in which order its parts lie."""
    lies = set()
    for n in range(30):
        rng = random.Random(n)
        goal = {"attn.qkv.weight": torch.arange(18.0).reshape(6, 3)}
        scene = Scene(rows=[Row(name, name, value) for name, value in goal.items()], goal=goal)
        if split(scene, rng) and fused(scene, rng):
            same = torch.equal(scene.rows[0].value, goal["attn.qkv.weight"])
            assert scene.lied == (set() if same else set(goal))
            lies.add(same)
    assert lies == {True, False}


def test_a_whole_whose_parts_were_turned_before_they_were_joined_is_no_silent_one(saved):
    """Case 18,759: the other squares are asked about, and the one matrix of query, key and value had torch's shape."""
    verdict = run("compositions-18759", saved)
    assert verdict.done == ("vision_transformer", "split", "transposed", "fused")
    assert verdict.outcome is Outcome.ANSWERED and "transposed-parts" in verdict.asked
