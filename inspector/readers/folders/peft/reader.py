"""A PEFT adapter: adapter_config.json and adapter_model.safetensors or .bin.

An adapter is small matrices for layers of another model. Source: the PEFT documentation, "Checkpoint format".
"""

from __future__ import annotations

from dataclasses import replace

from inspector.checkpoint.types import Checkpoint, Part
from inspector.errors import CorruptFile, ReadError, UnknownFormat
from inspector.findings import Finding, FindingKind, Severity
from inspector.readers.entry import FolderPeek, FolderReader
from inspector.readers.finish import with_findings
from inspector.readers.folder import Folder
from inspector.readers.folders.peft.checks import adapter_facts, observe_adapter
from inspector.readers.plain_json import parse_json
from inspector.readers.single_file import is_mixed

ADAPTER_CONFIG = FindingKind("adapter-config", Severity.WARNING, "The adapter's config cannot be used")
TWO_ADAPTER_FILES = FindingKind("two-adapter-files", Severity.NOTICE, "Two files hold an adapter")

CONFIG = "adapter_config.json"
FILES = ("adapter_model.safetensors", "adapter_model.bin")
_CONFIG_NBYTES = 1_000_000
_MOST_VALUES = 50_000


def _claims(peek: FolderPeek) -> str:
    folder = peek.folder
    there = [name for name in (CONFIG, *FILES) if folder.size_of(name) is not None]
    if not there or not (set(there) & set(FILES) or not _has_weights(folder)):
        return ""
    return "" if _is_collection(folder) else " and ".join(there)


def _is_collection(folder: Folder) -> bool:
    try:
        return is_mixed(folder.top())
    except ReadError:
        return False


def _has_weights(folder: Folder) -> bool:
    """Whether something else in the folder may be what is meant: a merged model saved with its adapter's config."""
    try:
        return any(name.lower().endswith((".safetensors", ".bin", ".pt", ".pth", ".ckpt")) for name in folder.top())
    except ReadError:
        return True


def _read(peek: FolderPeek) -> Checkpoint:
    folder = peek.folder
    there = [name for name in FILES if folder.size_of(name) is not None]
    if not there:
        raise UnknownFormat(
            f"{folder.name} has {CONFIG}, but no adapter_model.safetensors or .bin beside it.",
            hint="Copy the adapter's weights into the folder; they are a few megabytes.",
        )
    checkpoint = peek.open_inner(there[0])
    config, trouble = read_config(folder)
    findings = [*observe_adapter(checkpoint, config), *trouble]
    if len(there) > 1:
        findings.append(
            TWO_ADAPTER_FILES.found(
                f"{there[1]} lies beside {there[0]} and was not opened: loaders take the first.",
                remedy="Delete the one that is older.",
            )
        )
    facts = adapter_facts(checkpoint, config)
    rank = dict(facts).get("adapter rank", "")
    parts = [
        Part(name=there[0], nbytes=folder.size_of(there[0]) or 0, says=f"the adapter, {checkpoint.format_says}"),
        *(Part(name=name, nbytes=folder.size_of(name) or 0, says="not opened", opened=False) for name in there[1:]),
    ]
    adapter = replace(
        checkpoint,
        format=READER.id,
        format_says=f"PEFT adapter ({dict(facts)['adapter type']}{f', rank {rank}' if rank else ''}), "
        f"{checkpoint.format_says}",
        metadata=(*facts, *checkpoint.metadata),
        parts=(*parts, *checkpoint.parts),
    )
    return with_findings(adapter, findings)


def read_config(folder: Folder) -> tuple[dict[str, object], list[Finding]]:
    """adapter_config.json as an object, {} where there is none that can be read, and the finding about that."""
    nbytes = folder.size_of(CONFIG)
    why = "is not there"
    if nbytes is not None:
        try:
            if nbytes > _CONFIG_NBYTES:
                raise CorruptFile(f"it has {nbytes:,} bytes")
            source = folder.open(CONFIG)
            value, _ = parse_json(source.read(0, source.size), CONFIG, most_values=_MOST_VALUES)
            source.close()
            if isinstance(value, dict):
                return value, []
            why = "is no JSON object"
        except ReadError as error:
            why = f"cannot be read: {error.says[:200]}"
    finding = ADAPTER_CONFIG.found(
        f"{CONFIG} {why}; rank and scale of the adapter are not known from it.",
        remedy="Loaders need it: get it from where the adapter came from.",
    )
    return {}, [finding]


def adapter_beside(checkpoint: Checkpoint, folder: Folder) -> Checkpoint:
    """The same for an adapter file that was opened by itself, with its config beside it."""
    config, _ = read_config(folder)
    return with_findings(checkpoint, observe_adapter(checkpoint, config)) if config else checkpoint


READER = FolderReader(
    id="peft",
    says="PEFT adapter",
    layout=f"{CONFIG}, adapter_model.safetensors or .bin",
    claims=_claims,
    read=_read,
)
