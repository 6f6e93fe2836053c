"""A question about all files of an audit."""

from __future__ import annotations

from pathlib import Path

from inspector.catalogue.listing import Asked, answer
from inspector.catalogue.open import Answer, open_catalogue
from inspector.catalogue.parts import PartFolder
from inspector.jobs.bench import Bench

# Within the job's own walls, with room for its rows in Python.
_MEMORY, _THREADS, _SECONDS = "700MB", 2, 60.0


def answered(bench: Bench, folder: Path, state: str, asked: Asked) -> Answer:
    """Its answer. state: of the catalogue, by which the answer is known until it changes. Raises as `open_catalogue`
    and `Catalogue.ask`."""
    del bench, state
    with open_catalogue(PartFolder(folder), threads=_THREADS, memory=_MEMORY) as catalogue:
        return answer(catalogue, asked, seconds=_SECONDS)
