"""EigenGradCAM: the strongest pattern in gradient times activation, so that the class counts.

Source: Gildenblat and contributors, pytorch-grad-cam, which has the name and no paper: EigenCAM's projection
(arXiv 2008.00299) of gradient times activation.
"""

from __future__ import annotations

from inspector.cam.method import Method, Unit
from inspector.cam.methods.hires_cam import hires_cam

METHOD = Method(
    id="eigen-grad-cam",
    title="EigenGradCAM",
    paper="EigenCAM (Muhammad 2020, arXiv 2008.00299) of gradient times activation",
    says="The strongest pattern in what the layer adds to the class.",
    arithmetic=hires_cam,
    eigen=True,
    unit=Unit.PARTS,
)
