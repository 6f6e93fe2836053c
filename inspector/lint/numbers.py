"""What the numbers of an opened checkpoint say, as findings, and which numbers nobody read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from inspector.checkpoint.data import why_unreadable
from inspector.checkpoint.dtypes import find_dtype
from inspector.checkpoint.types import Checkpoint, StateDict, TensorInfo
from inspector.findings import Finding, FindingKind, Severity
from inspector.health.report import HealthReport
from inspector.health.thresholds import Thresholds
from inspector.survey.described import NumbersSeen
from inspector.survey.kinds import INTERNAL_ERROR
from inspector.units import counted, human_bytes, shorten_middle

NUMBERS_LEFT = FindingKind("numbers-left", Severity.NOTICE, "A file's numbers were left unread, for its size")
PASSED_OVER = FindingKind("checks-passed-over", Severity.INFO, "Checks passed over numbers, for their size")
NUMBERS_UNREAD = FindingKind(
    "numbers-unread", Severity.ERROR, "Numbers of a tensor could not be read", also=(Severity.INFO,)
)
_NAMED = 3
# Views of the same bytes (expanded masks, tied weights) are read once for each; a few bytes can be shown as petabytes.
_MOST_VIEWS, _MOST_NBYTES = 16, 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NumbersCheck:
    """Asked about each checkpoint. up_to_nbytes: of numbers that are still read, None for any. spectra: singular
    values too. digests: of each tensor's bytes, for whoever keeps them."""

    thresholds: Thresholds
    up_to_nbytes: int | None = None
    spectra: bool = False
    digests: bool = False

    def __call__(self, checkpoint: Checkpoint, seen: NumbersSeen | None = None) -> tuple[Finding, ...]:
        """The findings. seen: told that the numbers were read, and of each tensor's digest. Raises nothing for what the
        file contains: a check that fails is a finding itself."""
        # Imported by the processes that read, and by no others.
        from inspector.health.examine import examine_sets

        nbytes = sum(tensor.nbytes for tensor in checkpoint.tensors)
        if not nbytes:
            return ()
        if self.up_to_nbytes is not None and nbytes > self.up_to_nbytes:
            says = f"Its {human_bytes(nbytes)} of numbers were not read: up to {human_bytes(self.up_to_nbytes)} are."
            return (NUMBERS_LEFT.found(says, evidence=(("nbytes", nbytes), ("up_to_nbytes", self.up_to_nbytes))),)
        held = sum(storage.nbytes for storage in checkpoint.storages.values())
        if nbytes > _MOST_VIEWS * held + _MOST_NBYTES:
            says = f"Its tensors show {human_bytes(nbytes)} of numbers, and the file holds {human_bytes(held)}."
            return (NUMBERS_UNREAD.found(says, evidence=(("nbytes", nbytes), ("held_nbytes", held))),)
        try:
            digested = partial(_tell, seen, checkpoint) if self.digests and seen is not None else None
            reports = examine_sets(checkpoint, thresholds=self.thresholds, spectra=self.spectra, digested=digested)
            if seen is not None and digested is None:
                seen({})
        except Exception as error:  # noqa: BLE001 - a gate must not be passed because a file crashed its guard
            says = f"Checking its numbers failed in a way that it should not ({type(error).__name__}: {error})."
            return (INTERNAL_ERROR.found(says[:500], remedy="Please report this."),)
        found = {(f.id, f.says): f for state, report in reports for f in _of_set(checkpoint, state, report)}
        return (*found.values(), *find_unread(checkpoint, reports), *_passed_over(reports))


def _tell(seen: NumbersSeen, checkpoint: Checkpoint, digest: Callable[[TensorInfo], tuple[str, bool]]) -> None:
    seen({tensor.path: digest(tensor) for tensor in checkpoint.tensors})


def _of_set(checkpoint: Checkpoint, state: StateDict | None, report: HealthReport) -> Iterator[Finding]:
    """The findings of one set; beside the likeliest weights, said with the set's name where it is about its tensors."""
    from inspector.health.checks import OF_THE_FILE  # numpy only where numbers are read

    own = {name for name, _ in report.roles}
    for finding in report.findings:
        shared = finding.id in OF_THE_FILE or not own.issuperset(finding.subjects)
        if state is None or state is checkpoint.weights or shared:
            yield finding
        else:
            yield replace(finding, says=f"In {shorten_middle(state.label, 60)}: {finding.says}")


def find_unread(checkpoint: Checkpoint, reports: Iterable[tuple[StateDict | None, HealthReport]]) -> Iterator[Finding]:
    """One finding for what should have had numbers, one for what has none by its type."""
    tensors = {tensor.name: tensor for tensor in checkpoint.tensors}
    broken: list[tuple[str, str]] = []
    without: list[tuple[str, str]] = []
    for name, why in dict.fromkeys(pair for _, report in reports for pair in report.unread):
        tensor = tensors.get(name)
        (broken if tensor is None or _should_have_numbers(checkpoint, tensor) else without).append((name, why))
    for missed, severity in ((broken, Severity.ERROR), (without, Severity.INFO)):
        if missed:
            says = f"{counted(len(missed), 'tensor')} could not be examined, the first: {missed[0][1]}"
            names = tuple(shorten_middle(name, 120) for name, _ in missed[:_NAMED])
            yield NUMBERS_UNREAD.found(says, severity=severity, subjects=names, evidence=(("tensors", len(missed)),))


def _passed_over(reports: tuple[tuple[StateDict | None, HealthReport], ...]) -> Iterator[Finding]:
    missed = tuple(dict.fromkeys(pair for _, report in reports for pair in report.passed_over))
    if missed:
        first = "; ".join(f"{shorten_middle(what, 300)} ({why})" for what, why in missed[:_NAMED])
        more = f"; and {len(missed) - _NAMED:,} more" if len(missed) > _NAMED else ""
        yield PASSED_OVER.found(f"Passed over: {first}{more}.", evidence=(("entries", len(missed)),))


def _should_have_numbers(checkpoint: Checkpoint, tensor: TensorInfo) -> bool:
    dtype = find_dtype(tensor.dtype)
    if dtype is None or why_unreadable(tensor) or tensor.dtype.startswith("complex"):
        return False
    storage = checkpoint.storages.get(tensor.storage_id or "")
    held = storage is None or storage.offset is not None or storage.inline is not None
    return held and (dtype.native or (dtype.floating and not tensor.dtype.endswith("_x2")))
