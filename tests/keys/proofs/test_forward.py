"""A forward pass that proves the keys still says when its answers are absurd."""

from __future__ import annotations

import pytest

from inspector.keys.proofs.forward import judge_answer


@pytest.mark.parametrize(
    ("spread", "what"),
    [(3.9e24, "absurdly large"), (float("inf"), "absurdly large"), (1e-20, "as good as constant")],
)
def test_a_proof_that_holds_says_that_its_answers_are_absurd(spread: float, what: str) -> None:
    proof = judge_answer((1, 3, 8, 8), (1, 10), True, spread, {})
    assert proof.passed is True
    end = f"standard deviation {spread:.3g}, which is {what}: the keys fit, but look at the weights themselves."
    assert proof.says.endswith(end)


@pytest.mark.parametrize("spread", [0.98, 30.0, 2e-4])
def test_ordinary_answers_are_just_measured(spread: float) -> None:
    proof = judge_answer((1, 3, 8, 8), (1, 10), True, spread, {})
    assert proof.passed is True and proof.says.endswith(f", finite, standard deviation {spread:.3g}.")
