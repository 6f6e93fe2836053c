"""Opens every file, asks what is wrong with it, and leaves out what does not count."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from inspector.findings import Finding
from inspector.lint.baseline import fingerprints_of, path_from, read_baseline
from inspector.lint.kinds import ALWAYS, OF_NUMBERS, OF_SPECTRA, find_ids, with_explaining
from inspector.lint.numbers import NUMBERS_LEFT, NumbersCheck
from inspector.lint.report import Checked, CheckedFile, CheckReport, KnownFinding
from inspector.lint.request import CheckRequest
from inspector.path_text import path_text
from inspector.progress import Progress, silent
from inspector.survey.kinds import NOT_EXAMINED
from inspector.survey.report import RowKind, Survey, SurveyRow
from inspector.survey.row import Reading
from inspector.survey.survey import Place, survey_places


def check(
    request: CheckRequest, *, each: Callable[[SurveyRow], None] | None = None, progress: Progress = silent
) -> Checked:
    """Look at every file of the request: what its headers say and, unless `headers`, what its numbers say.

    each: called with every row as soon as it is there, before anything is left out. progress: in files.
    Raises UsageError for ids that no finding has and a baseline that is none, ReadError for paths where nothing is.
    """
    check_request(request)
    survey = survey_places(
        places_of(request), reading_of(request), git=request.git, jobs=request.jobs, each=each, progress=progress
    )
    return judge(request, survey)


def check_request(request: CheckRequest) -> None:
    """Raise UsageError for ids that no finding has and a baseline that is none: before anything is read."""
    _Filter(request)
    if request.baseline is not None:
        read_baseline(request.baseline)


def places_of(request: CheckRequest) -> list[Place]:
    """What is looked at, with what the rows call it."""
    return [Place(where=path, shown=shown_path(path, request.base)) for path in request.paths]


def reading_of(request: CheckRequest, *, digests: bool = False) -> Reading:
    """How each file is read for it. digests: of the tensors, too, where numbers are read and a digest is asked for."""
    settings = request.settings
    more = None
    if not request.headers:
        more = NumbersCheck(
            thresholds=settings.thresholds,
            up_to_nbytes=settings.weights_up_to,
            spectra=request.spectra,
            digests=digests and request.digest,
        )
    return Reading(digest=request.digest, more=more, pointers_pass=request.pointers_pass)


def judge(request: CheckRequest, survey: Survey) -> Checked:
    """What of it counts. Raises as `check_request`."""
    settings = request.settings
    filters = _Filter(request)
    known = read_baseline(request.baseline) if request.baseline is not None else {}
    pairs = [filters.checked(row, known) for row in _rows(survey)]
    files = tuple(file for file, _ in pairs)
    report = CheckReport(
        files=files,
        fail_on=settings.fail_on,
        headers=request.headers,
        weights_up_to=settings.weights_up_to,
        settings=settings.source,
        baseline=request.baseline.as_posix() if request.baseline is not None else "",
        gone=filters.gone(known, survey),
        skipped=survey.skipped,
        seconds=survey.seconds,
    )
    heard = tuple((file.path, findings) for file, findings in pairs if findings)
    return Checked(report=report, survey=survey, heard=heard)


def shown_path(path: Path, base: Path) -> str:
    """Relative to base where it lies in it ("" for base itself), else absolute; with "/"."""
    place, root = Path(os.path.abspath(path)), Path(os.path.abspath(base))
    if place == root:
        return ""
    return path_text((place.relative_to(root) if place.is_relative_to(root) else place).as_posix())


def _rows(survey: Survey) -> Iterator[SurveyRow]:
    """All rows, and one more for what was left out: nobody knows what lies there."""
    yield from survey.rows
    if survey.incomplete:
        finding = NOT_EXAMINED.found(f"Not everything was looked at: {' '.join(survey.skipped)}")
        yield SurveyRow(path=".", nbytes=0, kind=RowKind.UNREADABLE, findings=(finding,))


class _Filter:
    """What counts, by the settings and the baseline of a request."""

    def __init__(self, request: CheckRequest) -> None:
        settings = request.settings
        self._request = request
        # Who waits for NaN must hear of bytes the other way round, which say it all.
        self._select = with_explaining(find_ids(settings.select, "select")) | ALWAYS if settings.select else None
        self._ignore = find_ids(settings.ignore, "ignore")
        self._overrides = [(one.paths, find_ids(one.ignore, "check.overrides")) for one in settings.overrides]
        self._folder = settings.folder if settings.folder is not None else request.base

    def checked(self, row: SurveyRow, known: dict[str, KnownFinding]) -> tuple[CheckedFile, tuple[Finding, ...]]:
        """The file with what counts; and that with what is known."""
        ignored = self._ignored_in(row.path)
        heard = tuple(finding for finding in row.findings if self._is_heard(finding, ignored))
        in_baseline = fingerprints_of(self._known_path(row.path), heard)
        counts = [one not in known and not self._request.learn for one in in_baseline]
        prints = fingerprints_of(row.path, heard)
        file = CheckedFile(
            path=row.path,
            nbytes=row.nbytes,
            kind=row.kind,
            format=row.format,
            member=row.member,
            findings=tuple(finding for finding, new in zip(heard, counts, strict=True) if new),
            fingerprints=tuple(one for one, new in zip(prints, counts, strict=True) if new),
            known=len(heard) - sum(counts),
            muted=len(row.findings) - len(heard),
            sha256=row.sha256,
        )
        return file, heard

    def gone(self, known: dict[str, KnownFinding], survey: Survey) -> tuple[KnownFinding, ...]:
        """Entries of the baseline that this check would have found again, were they still there."""
        found: set[str] = set()
        unread: set[str] = set()
        for row in survey.rows:
            path = self._known_path(row.path)
            found.update(fingerprints_of(path, row.findings))
            if any(finding.id == NUMBERS_LEFT.id for finding in row.findings):
                unread.add(path)
        looked = {self._known_path(row.path) for row in survey.rows}
        folders = [
            self._known_path(shown_path(path, self._request.base)) for path in self._request.paths if path.is_dir()
        ]
        return tuple(
            entry
            for print_, entry in known.items()
            if print_ not in found
            and self._would_be_heard(entry, entry.path in unread)
            and (entry.path in looked or any(_is_below(entry.path, folder) for folder in folders))
        )

    def _known_path(self, path: str) -> str:
        baseline = self._request.baseline
        return path_from(baseline, self._request.base, path) if baseline is not None else path

    def _would_be_heard(self, entry: KnownFinding, unread: bool) -> bool:
        if entry.id in OF_NUMBERS and (self._request.headers or unread):
            return False
        if entry.id in OF_SPECTRA and not self._request.spectra:
            return False
        return entry.id not in self._ignore and (self._select is None or entry.id in self._select)

    def _ignored_in(self, path: str) -> frozenset[str]:
        inside = Path(os.path.relpath(self._request.base / path, self._folder)).as_posix()
        chosen = [ids for paths, ids in self._overrides if any(fnmatch.fnmatchcase(inside, one) for one in paths)]
        return self._ignore.union(*chosen)

    def _is_heard(self, finding: Finding, ignored: frozenset[str]) -> bool:
        return finding.id not in ignored and (self._select is None or finding.id in self._select)


def _is_below(path: str, folder: str) -> bool:
    return not path.startswith("../") if folder == "." else path.startswith(f"{folder}/")
