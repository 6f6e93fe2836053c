"""EigenCAM: the strongest pattern in the layer, whatever the class.

Source: Muhammad and Yeasin, "Eigen-CAM: Class Activation Map using Principal Components", IJCNN 2020 (arXiv
2008.00299), section III. The paper does not centre the columns.
"""

from __future__ import annotations

from torch import Tensor

from inspector.cam.method import Method


def eigen_cam(activation: Tensor, gradient: Tensor) -> Tensor:
    """The activation (N, C, h, w) itself; the engine projects it on its first right singular vector."""
    return activation


METHOD = Method(
    id="eigen-cam",
    title="EigenCAM",
    paper="Muhammad 2020, arXiv 2008.00299",
    says="The strongest pattern in the layer's output; it is the same for every class.",
    differs="Channels are not centred, as in the paper; pytorch-grad-cam subtracts each one's mean first, so that its "
    "maps differ.",
    arithmetic=eigen_cam,
    gradient=False,
    eigen=True,
)
