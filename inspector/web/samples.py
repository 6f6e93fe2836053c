"""The sample files that pages offer: read from sample_models/manifest.json, opened like any other file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from inspector.errors import ReadError
from inspector.installed import sample_sources, samples_folder
from inspector.web import session
from inspector.web.store import Stored, the_store


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One sample. id: its key in the manifest. title: what its button says. says: one sentence on hover. page: the
    page that it is for, by its name, where it is no checkpoint to be opened; "" for any file."""

    id: str
    title: str
    file: str
    says: str
    page: str = ""

    @property
    def path(self) -> Path:
        return samples_folder() / "files" / self.file


@lru_cache(maxsize=1)
def all_samples() -> tuple[Sample, ...]:
    """Every sample of the manifest, in its order; empty when there is no manifest."""
    sources = sample_sources()
    if sources is None:
        return ()
    try:
        manifest = json.loads((sources / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ()
    entries = manifest.get("files", ()) if isinstance(manifest, dict) else ()
    return tuple(
        Sample(
            id=str(e["id"]),
            title=str(e["title"]),
            file=str(e["file"]),
            says=str(e["says"]),
            page=str(e.get("page", "")),
        )
        for e in entries
    )


def chips() -> tuple[Sample, ...]:
    """What the Open page offers: the samples whose file has been derived."""
    return tuple(sample for sample in all_samples() if sample.path.is_file())


def some(ids: Iterable[str]) -> tuple[Sample, ...]:
    """The samples of these ids that are here, in this order."""
    by_id = {sample.id: sample for sample in all_samples()}
    return tuple(by_id[i] for i in ids if i in by_id)


def store(sample: Sample) -> Stored:
    """Take a sample up in the content store. Raises ReadError when its file has not been derived."""
    if not sample.path.is_file():
        raise ReadError(
            f"The sample {sample.file} has not been made yet.", hint="Run: python sample_models/build.py derive"
        )
    return the_store().refer(sample.path, name=sample.file, owner=session.owner())
