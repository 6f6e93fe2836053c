"""Counters come and go without loss; a large tensor under such a name does not."""

from __future__ import annotations

from inspector.keys.diagnose import diagnose
from inspector.keys.report import Cost, StepKind

NET = {"bn.weight": (4,), "bn.bias": (4,), "bn.running_mean": (4,), "bn.running_var": (4,)}


def test_extra_counters_are_left_out(file_of, target_of):
    more = {"bn.num_batches_tracked": (), "n_averaged": (), "bn.total_ops": (1,), "bn.total_params": (1,)}
    plan = diagnose(file_of(NET | more), target_of(NET)).plan
    assert plan.complete and {s.source for s in plan.steps if s.kind is StepKind.DROP} == set(more)
    assert all(s.cost is Cost.LOSSLESS for s in plan.steps)


def test_missing_counters_start_at_zero(file_of, target_of):
    plan = diagnose(file_of(NET), target_of(NET | {"bn.num_batches_tracked": ()})).plan
    fill = plan.steps[-1]
    assert plan.complete
    assert (fill.kind, fill.value, fill.target, fill.shape) == (StepKind.FILL, "zero", "bn.num_batches_tracked", ())


def test_missing_statistics_are_no_bookkeeping(file_of, target_of):
    plan = diagnose(file_of({n: s for n, s in NET.items() if "var" not in n}), target_of(NET)).plan
    assert not plan.complete and plan.missing == ("bn.running_var",)


def test_many_numbers_under_a_counters_name_need_acceptance(file_of, target_of):
    plan = diagnose(file_of(NET | {"bn.total_ops": (64, 64)}), target_of(NET)).plan
    assert plan.needs_accept == ("extra-tensors",)


SIZES = {"input_resolution": (), "context_length": (), "vocab_size": ()}


def test_the_sizes_in_clips_archives_are_left_out(file_of, target_of):
    plan = diagnose(file_of(NET | SIZES), target_of(NET)).plan
    assert plan.complete and {s.source for s in plan.steps if s.kind is StepKind.DROP} == set(SIZES)


def test_they_do_not_hide_what_names_mean(file_of, target_of):
    # Words place a whole file only: three numbers beside it are no part of the network.
    ours = {f"visual.transformer.resblocks.0.{name}": (6,) for name in ("ln_1.weight", "ln_1.bias", "ln_2.weight")}
    ours |= {"visual.transformer.resblocks.0.mlp.c_fc.weight": (8, 6), "visual.transformer.resblocks.0.ln_2.bias": (6,)}
    names = {"visual.transformer.resblocks": "vision_model.layers", "ln_1": "layer_norm1", "ln_2": "layer_norm2"}
    theirs = {}
    for name, shape in ours.items():
        for one, other in (names | {"c_fc": "fc1"}).items():
            name = name.replace(one, other)
        theirs[name] = shape
    assert diagnose(file_of(ours), target_of(theirs)).plan.complete
    plan = diagnose(file_of(ours | SIZES), target_of(theirs)).plan
    assert plan.complete and not plan.ambiguities


def test_a_size_that_the_target_has_is_not_made_up(file_of, target_of):
    plan = diagnose(file_of(NET), target_of(NET | {"context_length": ()})).plan
    assert plan is None or (not plan.complete and plan.missing == ("context_length",))
