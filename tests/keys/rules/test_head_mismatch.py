"""Another number of classes: opt-in, never padded; another width is not that."""

from __future__ import annotations

from inspector.keys.diagnose import diagnose
from inspector.keys.report import StepKind


def net(classes, width=8):
    return {"conv.weight": (width, 3, 3, 3), "fc.weight": (classes, width), "fc.bias": (classes,)}


def test_a_head_waits_for_acceptance_and_then_stays_initial(file_of, target_of):
    waiting = diagnose(file_of(net(10)), target_of(net(4))).plan
    assert waiting.needs_accept == ("head-mismatch",) and not waiting.complete
    plan = diagnose(file_of(net(10)), target_of(net(4)), accept=["head-mismatch"]).plan
    assert plan.complete
    fills = {s.target: (s.value, s.shape) for s in plan.steps if s.kind is StepKind.FILL}
    assert fills == {"fc.weight": ("initial", (4, 8)), "fc.bias": ("initial", (4,))}
    assert {s.source for s in plan.steps if s.kind is StepKind.DROP} == {"fc.weight", "fc.bias"}


def test_another_width_is_refused(file_of, target_of):
    assert diagnose(file_of(net(10, 16)), target_of(net(10)), accept=["head-mismatch"]).plan is None


def test_where_the_architecture_names_its_head_nothing_else_is_one(file_of, target_of):
    goal = target_of(net(4), heads=("other.weight",))
    assert diagnose(file_of(net(10)), goal, accept=["head-mismatch"]).plan is None


def test_an_equal_head_is_kept(file_of, target_of):
    assert diagnose(file_of(net(4)), target_of(net(4)), accept=["head-mismatch"]).plan.rules == ()


def test_a_head_of_another_name_and_count_is_offered(file_of, target_of):
    ours = {"conv.weight": (8, 3, 3, 3), "heads.head.weight": (7, 8), "heads.head.bias": (7,)}
    plan = diagnose(file_of(ours), target_of(net(3))).plan
    assert plan.needs_accept == ("head-mismatch",) and not plan.missing
    reasons = [step.reason for step in plan.steps if step.kind is StepKind.FILL]
    assert all("7 classes, the target one for 3" in reason for reason in reasons) and len(reasons) == 2
    # Of one count it is another name, and of another name it is no head.
    for name, classes in (("heads.head", 3), ("proj", 7)):
        other = {"conv.weight": (8, 3, 3, 3), f"{name}.weight": (classes, 8), f"{name}.bias": (classes,)}
        found = diagnose(file_of(other), target_of(net(3))).plan
        assert found is None or "head-mismatch" not in {use.id for use in found.rules}, name


def test_a_table_of_more_positions_is_no_head(file_of, target_of):
    goal = {"position_embeddings.weight": (20, 8), **net(3)}
    report = diagnose(file_of({**goal, "position_embeddings.weight": (22, 8)}), target_of(goal))
    assert report.plan is None and "22x8 in the file" in report.refusal


def test_heads_for_each_of_several_boxes_go_by_their_classes(file_of, target_of):
    """torchvision's box predictor has four numbers a class, SSD as many rows as it has boxes at a level."""
    body = {"body.weight": (8, 3, 3, 3)}

    def heads(name, rows):
        sizes = (("weight", (rows, 8)), ("bias", (rows,)))
        return {f"{name}.{last}": shape for last, shape in sizes}

    def rcnn(classes):
        return body | heads("roi.cls_score", classes) | heads("roi.bbox_pred", 4 * classes)

    def ssd(classes):
        return body | {n: s for i in range(6) for n, s in heads(f"conf.{i}", (4 + i % 2 * 2) * classes).items()}

    for net_of in (rcnn, ssd):
        plan = diagnose(file_of(net_of(21)), target_of(net_of(5))).plan
        assert plan.needs_accept == ("head-mismatch",) and not plan.missing
    # Rows that change for another reason are no classes.
    other = rcnn(5) | heads("roi.bbox_pred", 20 + 3)
    assert diagnose(file_of(rcnn(21)), target_of(other)).plan is None


def test_a_head_called_embedding_has_a_bias_and_is_no_table(file_of, target_of):
    goal = {"conv.weight": (8, 3, 3, 3), "rnn.1.embedding.weight": (5, 8), "rnn.1.embedding.bias": (5,)}
    ours = {**goal, "rnn.1.embedding.weight": (9, 8), "rnn.1.embedding.bias": (9,)}
    assert diagnose(file_of(ours), target_of(goal)).plan.needs_accept == ("head-mismatch",)
