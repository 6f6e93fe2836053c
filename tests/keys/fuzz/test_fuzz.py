"""A slice of random networks under random damages: no complete repair has a tensor of another place in it.

Many thousands more were run by hand, with the same code; what they found has tests of its own beside the rules.
"""

from __future__ import annotations

import pytest

from tests.keys.fuzz.judge import judge, make_case

MODES = ({}, {"accept": True}, {"accept": True, "partial": True})


@pytest.mark.parametrize("seed", [f"slice-{i}" for i in range(20)])
def test_no_tensor_goes_where_another_belongs(seed, saved):
    case = make_case(seed)
    for mode in MODES:
        verdict = judge(case, saved, **mode)
        assert verdict.wrong == (), (case.damages, mode)


def test_the_judge_sees_two_tensors_that_changed_places(saved):
    """Damage that no name shows passes for whole: the judge must tell, or it would tell nothing."""
    seeds = (f"judge-{i}" for i in range(50))
    case = next(c for c in map(make_case, seeds) if "norm.weight" in {t.name for t in c.goal} and len(c.damages) == 1)
    names = {t.name: t for t in case.goal}
    norm, bias = names["norm.weight"], names["norm.bias"]
    lying = {norm.name: bias.value, bias.name: norm.value}
    ours = [type(t)(t.name, t.place, lying.get(t.name, t.value)) for t in case.goal]
    verdict = judge(type(case)(case.seed, (), ours, case.goal, ordered=True), saved)
    assert verdict.complete and set(verdict.wrong) == {norm.name, bias.name}


def test_most_cases_are_repaired_or_the_slice_would_prove_nothing(saved):
    done = [judge(make_case(f"slice-{i}"), saved, accept=True).complete for i in range(20)]
    assert sum(done) >= 5
