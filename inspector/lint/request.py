"""What is checked, and what counts: all that a check is told, in one object."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from inspector.findings import Severity
from inspector.health.thresholds import DEFAULTS, Thresholds


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """Findings that do not count in some files.

    paths: patterns with * (also over folders), relative to the settings' own folder. ignore: ids, as `Settings.ignore`.
    """

    paths: tuple[str, ...]
    ignore: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What counts. From `inspector.toml`, from the command line, or both.

    fail_on: the least severity that makes a check fail. select, ignore: ids of findings, beginnings of ids
    ("dangerous") or patterns with *; nothing selected is all of them. weights_up_to: bytes of numbers in one file that
    are still read; None for any size. source: the file of settings, "" without one. folder: its place, for the
    overrides.
    """

    fail_on: Severity = Severity.ERROR
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    weights_up_to: int | None = None
    thresholds: Thresholds = DEFAULTS
    overrides: tuple[Override, ...] = ()
    source: str = ""
    folder: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    """paths: files and folders. base: the folder that paths in the report are relative to, where they lie in it.

    git: look also at what git keeps for itself (`.git`). headers: leave the numbers unread. spectra: singular values of
    the weights too, which takes long. baseline: a file of known findings that do not count. learn: all that is found is
    known from now on, and does not count either. digest: add the sha256 of each checkpoint. jobs: processes that read
    side by side. pointers_pass: a Git LFS pointer is a note and no error, since it is what a repository holds.
    """

    paths: tuple[Path, ...]
    base: Path
    settings: Settings = Settings()
    git: bool = False
    headers: bool = False
    spectra: bool = False
    baseline: Path | None = None
    learn: bool = False
    digest: bool = False
    jobs: int = 1
    pointers_pass: bool = True
