"""A layer that got what torch.cat joined in another dimension than it takes, or that took another width before."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

from inspector.doctor.causes.entry import Cause
from inspector.doctor.report import Diagnosis, Sureness
from inspector.doctor.scene import Scene
from inspector.units import counted, human_shape


def _taken(layer: nn.Module, x: Tensor) -> tuple[int, int, str] | None:
    """(dimension that has to have a certain size, that size, what it counts)."""
    if isinstance(layer, nn.Linear):
        return x.dim() - 1, layer.in_features, "feature"
    if isinstance(layer, _ConvNd) and x.dim() == len(layer.kernel_size) + 2:
        return 1, layer.in_channels, "channel"
    if isinstance(layer, _BatchNorm) and x.dim() > 1:
        return 1, layer.num_features, "channel"
    return None


def find_cat_dimension(scene: Scene) -> Diagnosis | None:
    """Parts that were joined along one dimension, and whose sizes add up in the one that the layer takes."""
    x = scene.given
    if not isinstance(x, Tensor) or not x.dim():
        return None
    taken, joined = _taken(scene.layer, x), scene.recorder.joined(x)
    if taken is None or joined is None:
        return None
    axis, wants, what = taken
    shapes, dim = joined
    if axis == dim or x.shape[axis] == wants or sum(shape[axis] for shape in shapes) != wants:
        return None
    listed = " and ".join(human_shape(shape) for shape in shapes[:4])
    batch = scene.picture.shape[0] if scene.picture is not None and scene.picture.dim() else 0
    return Diagnosis(
        cause="cat-dimension",
        says=f"{scene.path} takes {counted(wants, what)} and received {x.shape[axis]:,}: torch.cat joined {listed} in "
        f"dimension {dim}, and in dimension {axis} they make {wants:,}.",
        fix=f"Join them in dimension {axis}; without a word torch.cat takes dimension 0, which is the batch.",
        code=f"torch.cat([...], dim={axis})",
        sureness=Sureness.CERTAIN if dim == 0 and x.shape[0] != batch else Sureness.LIKELY,
    )


def find_second_width(scene: Scene) -> Diagnosis | None:
    """One layer on two branches: it took its width in an earlier call of this pass."""
    x, call = scene.given, scene.call
    if not isinstance(x, Tensor) or not x.dim() or call is None:
        return None
    taken = _taken(scene.layer, x)
    if taken is None or x.shape[taken[0]] == taken[1]:
        return None
    axis, wants, what = taken
    before = next(
        (
            record
            for record in scene.recorder.calls
            if record.ended and record.path == call.path and record.kind == type(scene.layer).__name__
        ),
        None,
    )
    if before is None:
        return None
    return Diagnosis(
        cause="shared-layer",
        says=f"{scene.path} takes {counted(wants, what)}, which it got in an earlier call of this pass, and received "
        f"{x.shape[axis]:,} now: {scene.told(x)}.",
        fix="One layer serves one width: give this branch a layer of its own, or bring both to the same size before.",
    )


CAUSES = (
    Cause(kinds=("cat-dimension",), find=find_cat_dimension),
    Cause(kinds=("shared-layer",), find=find_second_width),
)
