"""Swin's downsample belongs to the stage before or to the stage after."""

from __future__ import annotations

from inspector.keys.diagnose import diagnose


def swin(first: int, *, same: bool = False) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for n in range(4):
        width = 4 if same else 4 * 2**n
        found |= {f"layers.{n}.blocks.{i}.norm1.weight": (width,) for i in range(2)}
        if n < 3:
            out = 8 if same else 2 * width
            found |= {f"layers.{n + first}.downsample.reduction.weight": (out, 4 * width)}
            found |= {f"layers.{n + first}.downsample.norm.weight": (4 * width,)}
    return found


def moved(name: str, by: int) -> str:
    parts = name.split(".")
    return ".".join([parts[0], str(int(parts[1]) + by), *parts[2:]]) if parts[2] == "downsample" else name


def test_the_reduction_goes_to_the_neighbouring_stage(file_of, target_of, placed_as):
    for first, goal in ((0, swin(1)), (1, swin(0))):
        by = 1 if first else -1
        report = diagnose(file_of({f"module.{n}": s for n, s in swin(first).items()}, ordered=False), target_of(goal))
        assert report.plan.complete, report.says
        assert placed_as(report) == {n: f"module.{moved(n, by)}" for n in goal}
        assert {use.id for use in report.plan.rules} == {"moved-parts", "wrapper-segment"}


def test_where_equal_names_fit_too_the_user_is_asked(file_of, target_of, placed_as):
    ours, goal = swin(0, same=True), swin(1, same=True)
    report = diagnose(file_of(ours, ordered=False), target_of(goal))
    assert not report.plan.complete and "moved-parts" in [q.id for q in report.plan.ambiguities]
    chosen = diagnose(file_of(ours, ordered=False), target_of(goal), choose={"moved-parts": "moved"})
    assert chosen.plan.complete and placed_as(chosen) == {n: moved(n, -1) for n in goal}


def test_stages_that_all_moved_are_another_matter(file_of, target_of):
    goal = swin(1)
    ours = {".".join(["layers", str(int(n.split(".")[1]) + 1), *n.split(".")[2:]]): s for n, s in goal.items()}
    report = diagnose(file_of(ours, ordered=False), target_of(goal))
    assert report.plan is None or not any(use.id == "moved-parts" for use in report.plan.rules)


def test_the_same_convention_stays(file_of, target_of):
    assert diagnose(file_of(swin(0)), target_of(swin(0))).plan.rules == ()
