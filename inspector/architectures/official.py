"""Published weights files, recognised by digest; and file names that carry a digest, checked against the content.

torchvision's file names end in the first hex digits of the file's sha256, which torch.hub checks after a download
("resnet18-f37072fd.pth"). The table of names and class names is from torchvision's weights enums; see
`scripts/build_index.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from inspector.architectures.store import read_data
from inspector.architectures.types import ArchitectureSpec, OfficialFile
from inspector.checkpoint.types import Origin
from inspector.findings import Finding, FindingKind, Severity

DIGEST_DIFFERS = FindingKind("digest-differs", Severity.WARNING, "The digest differs from the file's name")
DIGEST_NOT_COMPUTED = FindingKind("digest-not-computed", Severity.INFO, "The digest in the file's name was not checked")
DIGEST_AGREES = FindingKind("digest-agrees", Severity.INFO, "The digest agrees with the file's name")

# The last "-" and at least eight hex digits before the extension: eight is the shortest that torch.hub's own names use.
_DIGEST_IN_NAME = re.compile(r"-([0-9a-f]{8,64})\.")
# The oldest quantised files are written with an underscore: "resnet18_fbgemm_16fa66dd.pth".
_DIGEST_IN_PUBLISHED = re.compile(r"[-_]([0-9a-f]{8,64})\.[a-z]+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One entry of torchvision's weights enums.

    digest: the first hex digits of the file's sha256. transforms: the published preprocessing as facts: "kind",
    "resize_size", "crop_size", "mean", "std", "interpolation", "frames". min_size: smallest picture (height, width).
    is_default: what torchvision itself takes as DEFAULT for this builder.
    """

    name: str
    spec: ArchitectureSpec
    file_name: str
    digest: str
    categories: tuple[str, ...]
    transforms: dict[str, Any]
    min_size: tuple[int, int] | None
    is_default: bool


@lru_cache(maxsize=1)
def published_files() -> tuple[Published, ...]:
    """Every weights file that torchvision publishes, in the order of its builders."""
    data = read_data("torchvision-weights.json.gz")
    return tuple(
        Published(
            name=entry["name"],
            spec=ArchitectureSpec(
                library="torchvision", name=entry["builder"], options=tuple(sorted(entry["options"].items()))
            ),
            file_name=entry["file"],
            digest=found.group(1) if (found := _DIGEST_IN_PUBLISHED.search(entry["file"])) else "",
            categories=tuple(data["categories"][entry["categories"]]) if entry["categories"] is not None else (),
            transforms=entry["transforms"],
            min_size=tuple(entry["min_size"]) if entry["min_size"] else None,
            is_default=entry["default"],
        )
        for entry in data["weights"]
    )


def find_official(origin: Origin, builders: Sequence[str] = ()) -> OfficialFile | None:
    """The published file that this is by digest, None when it is none or its digest was not computed.

    builders: what names and shapes say, when they say anything; eight hex digits alone can agree by chance.
    """
    if origin.sha256 is None:
        return None
    for published in published_files():
        if not published.digest or not origin.sha256.startswith(published.digest):
            continue
        if builders and published.spec.name not in builders:
            continue
        return OfficialFile(
            name=published.name,
            spec=published.spec,
            file_name=published.file_name,
            categories=published.categories,
        )
    return None


def _is_published(file_name: str) -> bool:
    return any(published.file_name == file_name for published in published_files())


def check_name(origin: Origin) -> tuple[Finding, ...]:
    """Whether a digest in the file's name agrees with its content; nothing when the name carries none.

    Digits alone are taken for a digest only when they agree, or when torchvision publishes a file of that name.
    """
    claims: list[str] = _DIGEST_IN_NAME.findall(origin.name)
    if not claims:
        return ()
    claimed = claims[-1]
    if claimed.isdecimal() and not _is_published(origin.name) and not (origin.sha256 or "").startswith(claimed):
        return ()  # a date or a step count: "model-20240131.pth"
    if origin.sha256 is None:
        return (
            DIGEST_NOT_COMPUTED.found(
                f"The name claims a digest that begins with {claimed}; the file's own was not computed.",
                evidence=(("claimed", claimed),),
            ),
        )
    evidence = (("claimed", claimed), ("sha256", origin.sha256))
    if origin.sha256.startswith(claimed):
        return (
            DIGEST_AGREES.found(
                f"The file's digest agrees with its name: its sha256 begins with {claimed}.",
                evidence=evidence,
            ),
        )
    return (
        DIGEST_DIFFERS.found(
            f"The name claims a digest that begins with {claimed}, but the file's sha256 begins with "
            f"{origin.sha256[: len(claimed)]}.",
            evidence=evidence,
            remedy="It was changed, saved again, or cut short after it was named; download it again if it should be "
            "the published file.",
        ),
    )
