"""What a file that ends too early still holds: which tensors are whole, which are cut, and by how much."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from inspector.checkpoint.layout import fraction_lost
from inspector.checkpoint.source import ByteSource
from inspector.checkpoint.types import Storage, TensorInfo
from inspector.findings import Evidence, Finding, FindingKind, Severity
from inspector.units import counted, human_bytes, human_share

CUT_SHORT = FindingKind("cut-short", Severity.ERROR, "The file ends too early")
DAMAGED_DIRECTORY = FindingKind("damaged-directory", Severity.ERROR, "The archive's directory is damaged")

_LISTED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Where a file ends too early.

    ends_at: its length, the first byte that is not there. missing_nbytes: how many should follow, as far as the file
    itself tells. missing_of: of what these are all: of "the file", or of "the tensors", where what an archive has
    around them is gone as well and is not known. inside: what the end falls into ("storage 7", "its directory").
    torch_says: the words with which the format's own loader refuses the file. damaged: the end is there, but the
    directory cannot be read.
    """

    ends_at: int
    missing_nbytes: int
    inside: str
    torch_says: str
    damaged: str = ""
    missing_of: str = "the tensors"


def observe_cut(cut: Cut, tensors: Sequence[TensorInfo], storages: Mapping[str, Storage], name: str) -> Finding:
    """The finding about a file cut short, or about one whose directory is damaged.

    Subjects: the tensors that are cut, then those that are lost. Evidence: bytes, counts, and the percentage that is
    gone of each cut tensor.
    """
    shares = [(t, fraction_lost(t, storages)) for t in tensors]
    partly = [(t, share) for t, share in shares if 0 < share < 1]
    lost = [t for t, share in shares if share >= 1]
    whole = len(shares) - len(partly) - len(lost)
    evidence: Evidence = (
        ("ends_at", cut.ends_at),
        ("missing_nbytes", cut.missing_nbytes),
        ("present_nbytes", sum(s.present_nbytes for s in storages.values())),
        ("declared_nbytes", sum(s.nbytes for s in storages.values())),
        ("tensors_whole", whole),
        ("tensors_cut", len(partly)),
        ("tensors_lost", len(lost)),
        *((f"percent gone of {t.name[:200]}", _percent(share)) for t, share in partly[:_LISTED]),
        ("error", cut.torch_says),
    )
    return (DAMAGED_DIRECTORY if cut.damaged else CUT_SHORT).found(
        f"{_start(cut, name)} {_tensors(partly, lost, whole)}",
        subjects=tuple(t.name for t in (*(t for t, _ in partly), *lost))[:_LISTED],
        evidence=evidence,
        remedy="Download or copy it again."
        + (
            " `convert --salvage` writes the tensors that are whole into a new file, `repair --partial` under a "
            "model's names."
            if whole
            else ""
        ),
    )


def observe_missing(
    source: ByteSource, tensors: Sequence[TensorInfo], storages: Mapping[str, Storage], *, inside: str = ""
) -> list[Finding]:
    """The same where each tensor has a storage of its own, and their headers tell how long the file should be.

    inside: what the end falls into, where that is known to be cut whatever the storages say.
    """
    pairs = [(t, storages.get(t.storage_id or "")) for t in tensors]
    placed = [(t, s) for t, s in pairs if s is not None and s.offset is not None]
    missing = [(t.name, s.nbytes - s.present_nbytes) for t, s in placed if s.present_nbytes < s.nbytes]
    if not missing and not inside:
        return []
    where = inside or f"the numbers of {missing[0][0][:80]}"
    cut = Cut(ends_at=source.size, missing_nbytes=sum(n for _, n in missing), inside=where, torch_says="")
    return [observe_cut(cut, [t for t, _ in placed], storages, source.name)]


def _start(cut: Cut, name: str) -> str:
    if cut.damaged:
        return f"{cut.damaged} Its members were found without it."
    gone = (
        f"Of {cut.missing_of} {human_bytes(cut.missing_nbytes)} are missing."
        if cut.missing_nbytes
        else "No numbers are missing."
    )
    return f"{name} is cut short: it ends at byte {cut.ends_at:,}, in {cut.inside}. {gone}"


def _tensors(partly: Sequence[tuple[TensorInfo, float]], lost: Sequence[TensorInfo], whole: int) -> str:
    if not partly and not lost:
        if whole == 1:
            return "Its one tensor is whole."
        return f"All {whole:,} tensors are whole." if whole else "It shows no tensor."
    more = f" and {len(lost) - 1:,} more" if len(lost) > 1 else ""
    said = [f"{counted(len(lost), 'tensor is lost', 'tensors are lost')} ({lost[0].name}{more})"] if lost else []
    if partly:
        first, share = partly[0]
        said.append(f"{len(partly):,} cut ({human_share(share)} of {first.name} is gone)")
    return f"{', '.join(said)}, {whole:,} whole."


def _percent(share: float) -> float:
    """Two decimals, and neither 0 nor 100 for something that is there."""
    return min(99.99, max(0.01, round(100 * share, 2)))


def unplaced_storages(refs: Iterable[tuple[str, int, str]]) -> dict[str, Storage]:
    """Storages of which the file has nothing: (key, nbytes, device) each."""
    return {
        key: Storage(id=key, nbytes=nbytes, present_nbytes=0, offset=None, device=device or None)
        for key, nbytes, device in refs
    }
