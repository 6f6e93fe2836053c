"""What an index.json or the names of shards say: which file should hold which tensor.

Source: huggingface_hub, serialization of state dicts (index format and shard names); transformers' loading of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from inspector.checkpoint.source import ByteSource
from inspector.errors import CorruptFile, LimitExceeded
from inspector.limits import Limits
from inspector.readers.plain_json import parse_json, whole

# "model.safetensors.index.json", "pytorch_model.bin.index.json"; with a variant "model.safetensors.index.fp16.json".
INDEX_NAME = re.compile(r"(?P<stem>.+)\.index(\.[\w-]{1,32})?\.json")
SHARD_NAME = re.compile(
    r"(?P<stem>.+?)[-_](?P<number>\d{1,5})-of-(?P<count>\d{1,5})"
    r"(?P<ending>(\.[\w-]{1,32})?\.(safetensors|bin|pt|pth|ckpt))"
)
_INDEX_NBYTES = 64_000_000
_MOST_SHARDS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardName:
    """A name like "model-00002-of-00005.safetensors". family: the name without its number."""

    stem: str
    number: int
    count: int
    ending: str

    @property
    def family(self) -> tuple[str, int, str]:
        """Equal for the shards of one checkpoint."""
        return self.stem, self.count, self.ending


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardIndex:
    """name: of the index file, "" where there is none. weight_map: tensor -> file, as written. total_nbytes: as the
    metadata say, None where they do not. metadata: the plain values in them. twice: tensors named twice.
    unusable: entries whose file is no text."""

    name: str
    nbytes: int
    weight_map: dict[str, str]
    total_nbytes: int | None = None
    metadata: tuple[tuple[str, str], ...] = ()
    twice: tuple[str, ...] = ()
    unusable: tuple[str, ...] = ()
    files: tuple[str, ...] = field(default=())


def shard_name(path: str) -> ShardName | None:
    """What a file's name says about its place among shards; None when it is no shard's name."""
    match = SHARD_NAME.fullmatch(path)
    if match is None or int(match["count"]) < 1:
        return None
    return ShardName(stem=match["stem"], number=int(match["number"]), count=int(match["count"]), ending=match["ending"])


def looks_like_index(head: bytes) -> bool:
    """Whether the first bytes of a file are JSON with a weight_map."""
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{" and b'"weight_map"' in head


def read_index(source: ByteSource, name: str, limits: Limits) -> ShardIndex:
    """Raises CorruptFile for what is no index, LimitExceeded for one that is too large."""
    if source.size > min(limits.header_nbytes, _INDEX_NBYTES):
        raise LimitExceeded(f"{name} has {source.size:,} bytes; an index is read up to {_INDEX_NBYTES:,}.")
    value, twice = parse_json(source.read(0, source.size), name, most_values=limits.tensors, limits=limits)
    found = value.get("weight_map") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(found, dict) or not found:
        raise CorruptFile(f"{name} is JSON, but has no weight_map.", hint="Get it again from its source.")
    good = {key: file for key, file in found.items() if isinstance(file, str)}
    files = tuple(dict.fromkeys(good.values()))
    if len(files) > _MOST_SHARDS:
        raise LimitExceeded(f"{name} names {len(files):,} files; the limit is {_MOST_SHARDS:,}.")
    metadata = value.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    total = metadata.get("total_size")
    if isinstance(total, float) and total.is_integer():
        total = int(total)  # Some versions of transformers summed floats.
    return ShardIndex(
        name=name,
        nbytes=source.size,
        weight_map=good,
        total_nbytes=total if type(total) is int and total >= 0 else None,
        metadata=tuple(
            (f"{name}: {key[:100]}", whole(str(v))[:200])
            for key, v in list(metadata.items())[:50]
            if isinstance(v, str | int | float | bool)
        ),
        twice=twice,
        unusable=tuple(key for key in found if key not in good),
        files=files,
    )


def families(paths: Iterable[str]) -> dict[tuple[str, int, str], dict[int, str]]:
    """Shards by family and number, from their names."""
    found: dict[tuple[str, int, str], dict[int, str]] = {}
    for path in paths:
        name = shard_name(path)
        if name is not None:
            found.setdefault(name.family, {}).setdefault(name.number, path)
    return found


def gaps(numbers: Mapping[int, str], count: int) -> tuple[int, list[int]]:
    """How many of 1 .. count are missing, and the first twenty of them. Shards count from 1, in some files from 0."""
    first = 0 if 0 in numbers and count not in numbers else 1
    missing = count - sum(first <= number < first + count for number in numbers)
    listed: list[int] = []
    number = first
    while len(listed) < min(20, missing) and number < first + count:
        if number not in numbers:
            listed.append(number)
        number += 1
    return missing, listed
