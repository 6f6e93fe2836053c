"""Does the file's name, or what the file says of itself, name another network than the weights fit?

Only whole words count ("resnet50-best.pth", not "myresnet50.pth"), in any spelling ("ResNet-50"), and only builders of
the index. Quiet where one of the names fits, and where a name may mean a part or another spelling of the network.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from math import prod

from inspector.architectures.claims import KEYS, labels_named
from inspector.architectures.index import LIBRARIES, Entry, Index
from inspector.architectures.match import describe, shapes_for
from inspector.architectures.types import ArchitectureSpec, Candidate
from inspector.checkpoint.types import Checkpoint, StateDict
from inspector.findings import Finding, FindingKind, Severity

NAMED_OTHERWISE = FindingKind(
    "named-otherwise", Severity.WARNING, "It is named after another network than its weights fit"
)

# Of a worse match one cannot say that the name is wrong.
LEAST_SCORE = 0.9
# Two spellings of one network, in two libraries, differ by a few buffers.
SAME_SIZE = 0.005
# Squashed names below this ("dla34" has five) are words of people, too.
SHORTEST_NAME = 5
MOST_WORDS = 8  # of one builder's name
MOST_WORDS_OF_FILE = 40
# Words before a name that say what the file is not.
_DENYING = frozenset({"not", "no", "non", "isnt", "never", "without", "instead", "than", "vs", "versus", "unlike"})
# Where a training script keeps its own settings; "teacher.arch" is about another network.
_SETTINGS = frozenset(
    {"args", "opt", "cfg", "config", "hparams", "hyper_parameters", "hyperparameters", "meta", "metadata", "model_args"}
)


def check_claims(checkpoint: Checkpoint, state: StateDict, best: Candidate, index: Index) -> tuple[Finding, ...]:
    """One finding at most for the file's name, and one for what stands in it. best: what the weights fit."""
    if best.score < LEAST_SCORE:
        return ()
    total = sum(tensor.numel for tensor in state.tensors)
    name = checkpoint.origin.name.replace("\\", "/").rpartition("/")[2]
    inside = dict(_claimed_inside(checkpoint, index))
    claims = [("The file's name", list(_claimed_by_name(name, index)), name)]
    claims += [(f'"{key}" in the file', [label], "") for key, label in inside.items()]
    found = []
    for where, labels, text in claims:
        if not labels or any(_fits(label, best, total, index, text) for label in labels):
            continue
        found.append(_differs(where, labels[0], best))
    return tuple(found)


def _differs(where: str, label: str, best: Candidate) -> Finding:
    claimed = label.partition("/")[2]
    fits = describe(ArchitectureSpec(library=best.spec.library, name=best.spec.name))
    return NAMED_OTHERWISE.found(
        f"{where} says {claimed}, but the weights are those of {fits}.",
        subjects=(claimed, best.spec.name),
        evidence=(("named", claimed), ("fits", best.spec.name)),
        remedy=f"Build {best.spec.name} to load it; if it should be {claimed}, this is another file than you think.",
    )


def _claimed_inside(checkpoint: Checkpoint, index: Index) -> Iterator[tuple[str, str]]:
    """(key, label) of what the file says of itself."""
    for name, text in checkpoint.own_metadata:
        *parents, key = name.split(".")
        if key in KEYS and _SETTINGS.issuperset(parents):
            yield from ((name, label) for label in labels_named(text, index, LIBRARIES))


def _claimed_by_name(name: str, index: Index) -> Iterator[str]:
    """Labels of the builders that whole words of a file's name make, the longest from each place on."""
    known = _squashed_names(index)
    words = re.findall(r"[a-z0-9]+", name.lower())[:MOST_WORDS_OF_FILE]
    at = 0
    while at < len(words):
        for stop in range(min(len(words), at + MOST_WORDS), at, -1):
            label = known.get("".join(words[at:stop]))
            if label is not None:
                # "not_resnet18" and "better-than-resnet50" speak of another file.
                if not at or words[at - 1] not in _DENYING:
                    yield label
                at = stop - 1
                break
        at += 1


@lru_cache(maxsize=2)
def _squashed_names(index: Index) -> dict[str, str]:
    """ "vitb16" -> "torchvision/vit_b_16": the first library's where both have one of that spelling."""
    names: dict[str, str] = {}
    for label in sorted(index.builders, key=lambda label: LIBRARIES.index(label.partition("/")[0])):
        squashed = squash(label.partition("/")[2])
        if len(squashed) >= SHORTEST_NAME:
            names.setdefault(squashed, label)
    return names


def squash(name: str) -> str:
    """A name without case, dashes and underscores, which people write as they like."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _fits(label: str, best: Candidate, total: int, index: Index, text: str) -> bool:
    """Whether a builder may be what the file is. total: elements of the file's tensors. text: the whole file name."""
    library, _, name = label.partition("/")
    own, claimed = squash(best.spec.name), squash(name)
    if claimed in [squash(twin.partition("/")[2]) for twin in (f"/{best.spec.name}", *best.twins)]:
        return True
    entry, other = index.find(name, library=library), index.of(best.spec)
    if entry is None:
        return True
    if other is None:
        # A family of any size has its kind for a name: "resnet" in resnet20, "unet" in unet_resnet50.
        return own in claimed or own in squash(text) or _near_size(entry, best.spec, total)
    # A part of its name: fasterrcnn_resnet50_fpn has a resnet50 in it.
    is_part = re.search(rf"{claimed}(?![0-9])" if claimed[-1].isdigit() else claimed, own) is not None
    return is_part or entry.layout.number == other.layout.number or _near_size(entry, best.spec, total)


def _near_size(entry: Entry, spec: ArchitectureSpec, total: int) -> bool:
    """Whether the builder has as many numbers, with the classes and channels that the file shows."""
    elements = sum(map(prod, shapes_for(entry, spec)))
    return abs(elements - total) <= SAME_SIZE * max(total, 1)
