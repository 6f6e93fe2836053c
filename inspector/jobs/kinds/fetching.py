"""A file behind an address, fetched whole into the store's own place for what is on its way."""

from __future__ import annotations

from inspector.jobs.bench import Bench
from inspector.jobs.subjects import FetchAsked
from inspector.remote.download import Downloaded, download


def fetched(bench: Bench, asked: FetchAsked) -> Downloaded:
    """Raises as `download`."""
    return download(asked.parts, asked.place, asked.policy, most_nbytes=asked.most_nbytes, progress=bench.progress)
