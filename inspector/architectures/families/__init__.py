"""Parametric families: architectures whose sizes are solved from the file, one file each."""

from inspector.architectures.families.bert import FAMILY as BERT
from inspector.architectures.families.cifar_resnet import BOTTLENECK, FOUR_STAGES, THREE_STAGES
from inspector.architectures.families.cifar_vgg import FAMILY as CIFAR_VGG
from inspector.architectures.families.entry import Family
from inspector.architectures.families.unet import FAMILY as UNET
from inspector.architectures.families.vgg import FAMILY as VGG

# In this order families with the same names are offered; more special ones stand before more general ones.
FAMILIES: tuple[Family, ...] = (
    VGG,
    CIFAR_VGG,
    THREE_STAGES,
    FOUR_STAGES,
    BOTTLENECK,
    UNET,
    BERT,
)


def find_family(library: str, name: str) -> Family | None:
    """The family of a spec, None when it is none."""
    return next((family for family in FAMILIES if (family.library, family.name) == (library, name)), None)
