"""Parametric families: architectures whose sizes are solved from the file, one file each."""

from inspector.architectures.families.bert import FAMILY as BERT
from inspector.architectures.families.entry import Family

# In this order families with the same names are offered; more special ones stand before more general ones.
FAMILIES: tuple[Family, ...] = (BERT,)


def find_family(library: str, name: str) -> Family | None:
    """The family of a spec, None when it is none."""
    return next((family for family in FAMILIES if (family.library, family.name) == (library, name)), None)
