"""Class lists that everybody knows: offered where a model has as many classes, never taken without being asked for.

A model with ten classes may be of any ten things. So a list is a suggestion, and whoever shows its names says that.
Sources: the CIFAR data sets' own order (Krizhevsky, "Learning Multiple Layers of Features from Tiny Images", 2009:
alphabetical for CIFAR-100); ImageNet's in the order of torchvision's published weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

_CIFAR_10 = "airplane automobile bird cat deer dog frog horse ship truck"
_CIFAR_100 = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can castle
caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin elephant flatfish
forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster man maple_tree motorcycle
mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree plain plate poppy porcupine
possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk skyscraper snail snake spider squirrel streetcar
sunflower sweet_pepper table tank telephone television tiger tractor train trout tulip turtle wardrobe whale willow_tree
wolf woman worm
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassList:
    """id: as `--names` takes it. count: of its classes. names: what gives them, in output order."""

    id: str
    title: str
    count: int
    names: Callable[[], tuple[str, ...]]


def _written(text: str) -> Callable[[], tuple[str, ...]]:
    return lambda: tuple(name.replace("_", " ") for name in text.split())


def _imagenet() -> tuple[str, ...]:
    from inspector.architectures.facts import categories
    from inspector.architectures.types import ArchitectureSpec

    return categories(ArchitectureSpec(library="torchvision", name="resnet50"))


CLASS_LISTS: tuple[ClassList, ...] = (
    ClassList(id="cifar-10", title="CIFAR-10", count=10, names=_written(_CIFAR_10)),
    ClassList(id="cifar-100", title="CIFAR-100", count=100, names=_written(_CIFAR_100)),
    ClassList(id="imagenet-1k", title="ImageNet-1k", count=1000, names=_imagenet),
)


def lists_of(count: int) -> tuple[ClassList, ...]:
    """Those with so many classes."""
    return tuple(one for one in CLASS_LISTS if one.count == count)


def list_named(wanted: str) -> ClassList | None:
    """The one with this id."""
    return next((one for one in CLASS_LISTS if one.id == wanted), None)


def list_holding(names: tuple[str, ...]) -> ClassList | None:
    """The one whose names these are."""
    return next((one for one in lists_of(len(names)) if one.names() == names), None)


def suggestion(count: int) -> str:
    """What to say of a model with so many classes that nobody names; "" where no list fits."""
    titles = " or ".join(one.title for one in lists_of(count))
    return f"Nobody names the classes; there are {count:,}, as many as {titles} has: perhaps those." if titles else ""
