"""Normalisations: their width, and batch statistics of a single value."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

from inspector.doctor.causes.entry import Cause
from inspector.doctor.causes.statements import written_argument
from inspector.doctor.report import Diagnosis
from inspector.doctor.scene import Scene
from inspector.units import counted, human_shape


def find_single_value(scene: Scene) -> Diagnosis | None:
    """Batch statistics of one value for each channel."""
    if "more than 1 value per channel" not in scene.text:
        return None
    # A layer of its own file calls batch_norm, too.
    operand = next((t for t in (scene.given, *scene.operands) if isinstance(t, Tensor)), None)
    shape = scene.told(operand) if operand is not None else "it"
    runs = scene.trials.runs_with_numbers(scene.args, scene.kwargs, training=False)
    return Diagnosis(
        cause="batch-norm-of-one",
        says=f"{scene.path} is in training and has one value for each channel: {shape}. A batch of 1 has no spread.",
        fix="Train with batches of two or more (drop_last=True in the DataLoader), or call eval() to predict.",
        code="model.eval()",
        tried=("the same input in evaluation: runs through",) if runs else (),
    )


def find_width(scene: Scene) -> Diagnosis | None:
    """A norm made for another width."""
    layer, x = scene.layer, scene.given
    if not isinstance(x, Tensor):
        return None
    if isinstance(layer, nn.LayerNorm | nn.RMSNorm):
        return _of_last(scene, tuple(layer.normalized_shape), x)
    if isinstance(layer, _BatchNorm | _InstanceNorm) and x.dim() > 1:
        return _of_second(scene, layer.num_features, x)
    if isinstance(layer, nn.GroupNorm) and x.dim() > 1:
        return _of_second(scene, layer.num_channels, x)
    return None


def _of_last(scene: Scene, wants: tuple[int, ...], x: Tensor) -> Diagnosis | None:
    got = tuple(x.shape[-len(wants) :])
    if got == wants:
        return None
    says = f"{scene.path} takes {human_shape(wants)} last and received {scene.told(x)}."
    if len(wants) == 1 and x.dim() > 2 and x.shape[1] == wants[0]:
        order = ("0, 2, 3, 1", "0, 3, 1, 2") if x.dim() == 4 else ("0, 2, 1", "0, 2, 1")
        fix = (
            "The channels stand second here: put them last before it, and back behind it; or take nn.GroupNorm(1, ...)."
        )
        code = f"{_written(scene, x, f'permute({order[0]})')}.permute({order[1]})"
        return Diagnosis(cause="norm-width", says=says, fix=fix, code=code)
    fix = f"Make it for {human_shape(got)}, or let what comes before give {human_shape(wants)}."
    return Diagnosis(cause="norm-width", says=says, fix=fix)


def _of_second(scene: Scene, wants: int, x: Tensor) -> Diagnosis | None:
    layer = scene.layer
    bare = isinstance(layer, _InstanceNorm) and not layer.affine and not layer.track_running_stats
    if x.shape[1] == wants or bare:
        return None
    says = f"{scene.path} takes {counted(wants, 'channel')} in the second dimension and received {scene.told(x)}."
    fix, code = f"Make it for {counted(x.shape[1], 'channel')}, or let what comes before give {wants:,}.", ""
    if x.shape[-1] == wants and x.dim() == 3:
        fix, code = "They stand last here: transpose before and after.", _written(scene, x, "transpose(1, 2)")
        code += ".transpose(1, 2)"
    return Diagnosis(cause="norm-width", says=says, fix=fix, code=code)


def _written(scene: Scene, x: Tensor, call: str) -> str:
    """The norm's own call in the failing line, with what it is given changed so."""
    given = scene.variable_of(x) or written_argument(scene) or "x"
    path = scene.call.path if scene.call is not None else ""
    name = f"self.{path.rpartition('.')[2]}" if path.rpartition(".")[2].isidentifier() else "norm"
    return f"{name}({given}.{call})"


# torch names it itself, before anything else is tried: larger pictures would run as well, and are no cause.
SINGLE_VALUE = Cause(kinds=("batch-norm-of-one",), find=find_single_value)
CAUSES = (Cause(kinds=("norm-width",), find=find_width),)
