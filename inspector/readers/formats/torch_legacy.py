"""torch.save before 1.6: five pickles in a row, then the storages. Source: torch/serialization.py, `_legacy_load`."""

from __future__ import annotations

from dataclasses import replace

from inspector.checkpoint.source import ByteSource
from inspector.checkpoint.types import Checkpoint, Storage
from inspector.errors import CorruptFile
from inspector.findings import Finding, FindingKind, Severity
from inspector.limits import Limits
from inspector.readers.assemble import Unpickled, checkpoint_from_pickle, unpickle
from inspector.readers.checks.contents import trailing_data
from inspector.readers.checks.storage_findings import missing_storages, wrong_sizes
from inspector.readers.checks.torch_words import BROKE_OFF, unexpected_end, wrong_storage
from inspector.readers.checks.truncation import Cut
from inspector.readers.entry import Peek, Reader
from inspector.readers.finish import FileContent
from inspector.readers.unpickle.meanings.class_sources import source_texts
from inspector.readers.unpickle.nested.hidden_pickles import (
    Head,
    Hidden,
    observe_hidden,
    observe_polyglot,
    search_behind,
    search_end,
    search_numbers,
)
from inspector.readers.unpickle.stand_ins import Mapping

UNUSED_STORAGE = FindingKind("unused-storage", Severity.WARNING, "A storage that belongs to no tensor")

MAGIC = 0x1950A86A20F9469CFC6C
_MAGIC_BYTES = MAGIC.to_bytes(10, "little")
_MAGIC_TEXT = f"L{MAGIC}L\n".encode()  # As protocols 0 and 1 write it.


def _claims(peek: Peek) -> str:
    head = peek.head
    found = (head[:1] == b"\x80" and head.find(_MAGIC_BYTES, 0, 32) >= 0) or head.startswith(_MAGIC_TEXT)
    return "torch's magic number of the years before 1.6" if found else ""


def _read(peek: Peek) -> Checkpoint:
    source, limits = peek.source, peek.limits
    heads = _heads(source, limits)
    at = heads[-1].outcome.end
    info = heads[2].outcome.value
    big_endian = isinstance(info, Mapping) and info.get("little_endian") is False
    main = unpickle(source, at, source.size, limits)
    # A restricted load stumbles over the first of the five.
    if heads[0].outcome.operand is not None:
        main.outcome.operand, main.outcome.named_before = heads[0].outcome.operand, 0
    storages: dict[str, Storage] = {}
    findings: list[Finding] = []
    cut: Cut | None = None
    hidden = Hidden()
    also = [h.outcome for h in heads]
    if not main.outcome.broken:
        keys = unpickle(source, main.outcome.end, source.size, limits)
        also.append(keys.outcome)
        listed = (
            [str(k) for k in keys.outcome.value if type(k) in (str, int)]
            if isinstance(keys.outcome.value, list)
            else []
        )
        at = keys.outcome.end
        if keys.outcome.broken:
            listed, at = [], source.size
        numbers: list[Head] = []
        storages, findings, cut = _storages(source, at, listed, main, big_endian, numbers)
        hidden = _search(source, numbers, at, limits)
        if keys.outcome.broken:
            missing = sum(ref.nbytes for ref in main.storages.values())
            cut = Cut(ends_at=source.size, missing_nbytes=missing, inside="its list of storages", torch_says=BROKE_OFF)
            findings = []
    for key, ref in main.storages.items():
        if key not in storages:
            storages[key] = Storage(
                id=key, nbytes=ref.nbytes, present_nbytes=0, offset=None, device=ref.location or None
            )
    archive, at_end = search_end(source, limits)
    hidden.add(at_end)
    findings += [*observe_hidden(hidden), *observe_polyglot(archive, READER.says)]
    version = heads[1].outcome.value
    code, left_out = source_texts(main.sources)
    content = FileContent(
        format=READER.id,
        format_says=READER.says,
        storages=storages,
        findings=findings,
        skipped=left_out,
        metadata=() if version == 1001 else (("legacy protocol", str(version)[:40]),),
        code=code,
    )
    return checkpoint_from_pickle(
        main, content, source=source, limits=limits, also=also, hidden=hidden.outcomes, cut=cut
    )


def _heads(source: ByteSource, limits: Limits) -> list[Unpickled]:
    """The three pickles before the main one."""
    heads: list[Unpickled] = []
    at = 0
    for what in ("magic number", "protocol version", "system information"):
        pickle = unpickle(source, at, source.size, limits)
        if pickle.outcome.broken:
            raise CorruptFile(
                f"{source.name} is a legacy torch.save file that breaks off in its {what}: {pickle.outcome.broken}.",
                hint="Download or copy it again.",
            )
        heads.append(pickle)
        at = pickle.outcome.end
    return heads


def _search(source: ByteSource, numbers: list[Head], at: int, limits: Limits) -> Hidden:
    """Pickles in front of numbers and behind the last storage."""
    hidden = search_numbers(source, numbers, limits)
    end = max((offset + nbytes for _, offset, nbytes, _ in numbers), default=at)
    hidden.add(search_behind(source, end, source.size, limits, "behind the last storage"))
    return hidden


def _storages(
    source: ByteSource, at: int, keys: list[str], main: Unpickled, big_endian: bool, numbers: list[Head]
) -> tuple[dict[str, Storage], list[Finding], Cut | None]:
    """Walk the storages behind the pickles: per key an 8-byte element count, then the elements."""
    cut: Cut | None = None
    storages: dict[str, Storage] = {}
    needed = 0
    unknown: list[str] = []
    wrong: list[tuple[str, int, int]] = []
    for key in keys:
        ref = main.storages.get(key)
        if ref is None:
            unknown.append(key)
            # Its width is unknown, so nothing behind it can be placed.
            break
        itemsize = ref.itemsize
        declared = ref.numel * itemsize
        if at + 8 <= source.size:
            raw = source.read(at, min(10, source.size - at))
            count = int.from_bytes(raw[:8], "big" if big_endian else "little", signed=True)
            if count < 0 or count != ref.numel:
                wrong.append((key, declared, count * itemsize))
                if count < 0:
                    break
            held = count * itemsize
            numbers.append((f"storage {key[:40]}", at + 8, held, raw[8:]))
        else:
            held = declared
        present = max(0, min(held, source.size - at - 8))
        if cut is None and at + 8 + held > source.size:
            # torch reads the count, then the elements; it names what is missing of the one it is at.
            expected = at + 8 - source.size if source.size < at + 8 else at + 8 + held - source.size
            cut = Cut(
                ends_at=source.size, missing_nbytes=0, inside=f"storage {key[:40]}", torch_says=unexpected_end(expected)
            )
        storages[key] = Storage(
            id=key,
            nbytes=declared,
            present_nbytes=min(present, declared),
            offset=at + 8,
            device=ref.location or None,
            big_endian=big_endian,
        )
        at += 8 + held
        needed = at
    if cut is not None:
        cut = replace(cut, missing_nbytes=needed - source.size, missing_of="the file")
    return storages, _findings(source, needed, unknown, wrong, main, storages), cut


def _findings(
    source: ByteSource,
    needed: int,
    unknown: list[str],
    wrong: list[tuple[str, int, int]],
    main: Unpickled,
    storages: dict[str, Storage],
) -> list[Finding]:
    found: list[Finding] = []
    unplaced = [key for key in main.storages if key not in storages]
    if needed <= source.size:
        found += missing_storages(unplaced, "the list of storages")
    if wrong:
        found += wrong_sizes(wrong, wrong_storage(wrong[0][1], wrong[0][2]))
    if unknown:
        found.append(
            UNUSED_STORAGE.found(
                f"Storage {unknown[0][:40]} belongs to no tensor, so what follows it could not be placed.",
                subjects=tuple(unknown[:20]),
                remedy="Load and save the file again with torch, if you trust it.",
            )
        )
    if needed and needed < source.size and not unknown and not wrong:
        found.append(trailing_data(source.size - needed, "the last storage", "torch ignores them."))
    return found


READER = Reader(
    id="torch-legacy",
    says="legacy torch.save file (before torch 1.6)",
    suffixes=(".pth", ".pt", ".pth.tar", ".th"),
    claims=_claims,
    read=_read,
    no_index="the length of each tensor stands right before its numbers, all through the file",
)
