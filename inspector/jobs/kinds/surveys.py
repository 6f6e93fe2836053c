"""A row for each of many files: in one archive, or in a folder of the server."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from inspector.checkpoint.source import PathSource
from inspector.errors import ReadError
from inspector.jobs.bench import Bench
from inspector.jobs.subjects import FileRef
from inspector.limits import DEFAULT_LIMITS
from inspector.survey.at_address import ArchiveAsked, survey_archive
from inspector.survey.copies import in_archive, in_folder, say_copies
from inspector.survey.members import survey_source
from inspector.survey.networks import network_of
from inspector.survey.report import Survey
from inspector.survey.row import Reading
from inspector.survey.survey import Place, survey_places

_READING = Reading(what=network_of, every=True)


def of_archive(bench: Bench, file: FileRef) -> Survey:
    """Its members, the row of the archive itself apart. Raises ReadError where it went meanwhile."""
    if not file.path.is_file():
        raise ReadError(f"{file.name} is not on the server any more.", hint="Drop it again on the Open page.")
    began = time.monotonic()
    source = PathSource(file.path, file.name)
    try:
        archive, *rows = survey_source(source, file.name, _READING, progress=bench.progress)
        told = say_copies(rows, in_archive(source, DEFAULT_LIMITS))
    finally:
        source.close()
    return Survey(name=file.name, rows=told, skipped=(), seconds=time.monotonic() - began, archive=archive)


def of_address(bench: Bench, asked: ArchiveAsked) -> Survey:
    """The members of an archive that stays at its address. Raises AddressError."""
    began = time.monotonic()
    archive, *rows = survey_archive(asked, _READING, progress=bench.progress)
    return Survey(name=asked.name, rows=tuple(rows), skipped=(), seconds=time.monotonic() - began, archive=archive)


def of_folder(bench: Bench, folder: Path) -> Survey:
    """Everything below a folder; what links lead to outside of it is not looked at."""
    found = survey_places((Place(where=folder),), _READING, git=False, links=False, progress=bench.progress)
    return replace(found, rows=say_copies(found.rows, in_folder(folder)))
