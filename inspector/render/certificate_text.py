"""A certificate for a terminal: the sentence, what speaks against a place, then every tensor with its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType

from inspector.checkpoint.bookkeeping import is_bookkeeping
from inspector.keys.certificate.types import Certificate, Standing
from inspector.keys.proofs.places import judge_places
from inspector.render.text import safe, table

if TYPE_CHECKING:
    from inspector.keys.certificate.types import Testimony

_ORDER = (Standing.CONTRADICTED, Standing.PROVED, Standing.OPEN)
_STYLES = {Standing.CONTRADICTED: "bold red", Standing.PROVED: "green", Standing.OPEN: "dim"}


def certificate_text(certificate: Certificate) -> RenderableType:
    """Contradictions first; counters of batches, which are the same everywhere, are left out."""
    proof = judge_places(certificate)
    parts: list[RenderableType] = [f"[bold]{safe(proof.says if proof is not None else '')}[/]"]
    parts += [f"[bold red]{safe(sentence)}[/]" for sentence in certificate.broken]
    made = table("Tensor", "", "Why")
    shown: list[Testimony] = [one for one in certificate.tensors if not is_bookkeeping(one.name)]
    for one in sorted(shown, key=lambda one: _ORDER.index(one.standing)):
        made.add_row(safe(one.name), f"[{_STYLES[one.standing]}]{one.standing.value}[/]", safe(one.reason))
    return Group(*parts, "", made)
