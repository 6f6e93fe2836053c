"""Finer-CAM: why this class and not the ones that are most like it.

Source: Zhang and others, "Finer-CAM: Spotting the Difference Reveals Finer Details for Visual Explanation", CVPR 2025
(arXiv 2501.11309), equation 4: Grad-CAM of the score minus gamma times the score of similar classes, averaged over the
three nearest; gamma 0.6 is the paper's.
"""

from __future__ import annotations

from inspector.cam.method import Method, Unit
from inspector.cam.methods.grad_cam import grad_cam
from inspector.cam.targets.objectives import against_nearest

METHOD = Method(
    id="finer-cam",
    title="Finer-CAM",
    paper="Zhang 2025, arXiv 2501.11309",
    says="Places that tell the class from the three classes with the nearest scores.",
    arithmetic=grad_cam,
    objective=against_nearest,
    per_channel=True,
    unit=Unit.PARTS,
)
