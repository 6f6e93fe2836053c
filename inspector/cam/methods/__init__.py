"""The ways to make a map from what a layer put out. Order: as they are offered, the suggested one first."""

from __future__ import annotations

from inspector.cam.method import Method
from inspector.cam.methods import (
    ablation_cam,
    attention_rollout,
    cam,
    counterfactual,
    eigen_cam,
    eigen_grad_cam,
    element_wise,
    finer_cam,
    grad_cam,
    grad_cam_plus_plus,
    gradient_rollout,
    guided_backpropagation,
    guided_grad_cam,
    hires_cam,
    integrated_gradients,
    layer_cam,
    le_grad,
    occlusion,
    saliency,
    score_cam,
    smooth_grad,
    smooth_grad_cam_plus_plus,
    xgrad_cam,
)
from inspector.errors import UsageError

METHODS: tuple[Method, ...] = (
    grad_cam.METHOD,
    hires_cam.METHOD,
    layer_cam.METHOD,
    grad_cam_plus_plus.METHOD,
    xgrad_cam.METHOD,
    element_wise.METHOD,
    eigen_cam.METHOD,
    eigen_grad_cam.METHOD,
    finer_cam.METHOD,
    counterfactual.METHOD,
    cam.METHOD,
    smooth_grad_cam_plus_plus.METHOD,
    ablation_cam.METHOD,
    score_cam.METHOD,
    occlusion.METHOD,
    saliency.METHOD,
    smooth_grad.METHOD,
    integrated_gradients.METHOD,
    guided_grad_cam.METHOD,
    guided_backpropagation.METHOD,
    attention_rollout.METHOD,
    gradient_rollout.METHOD,
    le_grad.METHOD,
)


def method_named(name: str, methods: tuple[Method, ...] = METHODS) -> Method:
    """The entry with this id. Raises UsageError naming the choices."""
    for method in methods:
        if method.id == name:
            return method
    raise UsageError(f"There is no method {name!r}.", hint=f"Methods: {', '.join(m.id for m in methods)}.")
