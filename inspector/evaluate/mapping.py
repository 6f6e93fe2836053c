"""Which class folder is which output of the head: by names where somebody states them, by sorted order where nobody
does and the counts are equal. What fits in no way, or in two, is refused with both lists.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from inspector.cam.inputs.class_lists import list_named
from inspector.errors import UsageError
from inspector.units import counted

_IMAGENET = 1000
_WORDNET = re.compile(r"n\d{8}")
_BETWEEN = re.compile(r"[\s_\-]+")
_LISTED = 12
_HINT = "Give the class names in the order of the outputs, as the folders are called."


class By(StrEnum):
    """What the folders were matched by."""

    NAMES = "names"
    WORDNET = "wordnet"
    INDICES = "indices"
    ORDER = "order"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassMap:
    """indices: of each class folder, its output. names: of every output. says: how they were matched, a sentence.
    reordered: the outputs stand in another order than the sorted folders. missing: outputs without a folder."""

    by: By
    indices: tuple[int, ...]
    names: tuple[str, ...]
    says: str
    reordered: bool

    @property
    def missing(self) -> tuple[int, ...]:
        """Outputs without a class folder, in output order."""
        there = set(self.indices)
        return tuple(index for index in range(len(self.names)) if index not in there)


def map_classes(folders: Sequence[str], outputs: int, stated: Sequence[str] = ()) -> ClassMap:
    """folders: names of the class folders, sorted. outputs: of the head. stated: names of the outputs, () where nobody
    names them.

    Raises UsageError, with both lists, where they do not fit each other.
    """
    if outputs < 2:
        raise UsageError(
            f"The model gives {counted(outputs, 'number')} for each picture; class folders need a score for each class."
        )
    note = ""
    if stated and len(stated) != outputs:
        note = f" {len(stated):,} names are stated for {outputs:,} outputs: they are not used."
        stated = ()
    if stated:
        found = _by_names(folders, stated, "The class folders have the names that are stated for the outputs")
        if found is None and outputs == _IMAGENET and _is_imagenet(stated):
            found = _by_wordnet(folders, stated) or _by_indices(folders, stated)
        if found is None:
            raise _refused(folders, stated, outputs)
        return found
    if outputs == _IMAGENET:
        names = _imagenet()
        found = (
            _by_wordnet(folders, names)
            or _by_names(folders, names, "Nobody names the outputs; the folders are called as ImageNet-1k's classes")
            or _by_indices(folders, names)
        )
        if found is not None:
            return found
    if len(folders) != outputs:
        raise _refused(folders, (), outputs, note)
    return _by_order(folders, note)


def check_given(given: Sequence[str], outputs: int, own: Sequence[str]) -> None:
    """Raises UsageError, with both counts, where names that somebody gives for the outputs are not as many. own: those
    that the checkpoint states, () where it states none."""
    if len(given) == outputs:
        return
    states = f" The checkpoint's own names: {_few(own)}." if own else " The checkpoint names none."
    raise UsageError(
        f"{counted(len(given), 'name')} {'is' if len(given) == 1 else 'are'} given for {counted(outputs, 'output')}: "
        f"{_few(given)}.{states}",
        hint="Give one name for each output, in their order, or leave --names out.",
    )


def _by_names(folders: Sequence[str], names: Sequence[str], says: str) -> ClassMap | None:
    """None where a folder has none of the names, or one of two outputs."""
    exact, parts = _index(names, whole=True), _index(names, whole=False)
    indices: list[int] = []
    for folder in folders:
        key = _plain(folder)
        places = exact.get(key) or parts.get(key) or set()
        if len(places) != 1:
            return None
        indices += places
    if len(set(indices)) < len(indices):
        return None
    return _map(By.NAMES, indices, names, says)


def _index(names: Sequence[str], *, whole: bool) -> dict[str, set[int]]:
    """Outputs by name; not whole: by each of several words for one, as "tench, Tinca tinca" has them."""
    found: dict[str, set[int]] = defaultdict(set)
    for number, name in enumerate(names):
        for one in [name] if whole else name.split(","):
            found[_plain(one)].add(number)
    return found


def _by_wordnet(folders: Sequence[str], names: Sequence[str]) -> ClassMap | None:
    if not all(_WORDNET.fullmatch(folder) for folder in folders):
        return None
    from inspector.evaluate.wordnet_ids import WORDNET_IDS

    place = {one: number for number, one in enumerate(WORDNET_IDS)}
    strangers = [folder for folder in folders if folder not in place]
    if strangers:
        raise UsageError(
            f"The folders are called by WordNet's ids, and ImageNet-1k has no {_few(strangers)}.",
            hint="Leave these folders out, or take a model with these classes.",
        )
    says = "The folders are called by WordNet's ids, which stand for ImageNet-1k's classes"
    return _map(By.WORDNET, [place[folder] for folder in folders], names, says)


def _by_indices(folders: Sequence[str], names: Sequence[str]) -> ClassMap | None:
    numbers = _numbers(folders)
    if numbers is None or max(numbers) >= len(names):
        return None
    return _map(By.INDICES, numbers, names, "The folders are called by the numbers of ImageNet-1k's classes")


def _by_order(folders: Sequence[str], note: str) -> ClassMap:
    numbers = _numbers(folders)
    if numbers is not None and numbers != sorted(numbers):
        at = next(k for k, number in enumerate(sorted(numbers)) if number != numbers[k])
        raise UsageError(
            f"The folders are numbers whose sorted order is not that of their values ({_few(folders)}), and nobody "
            f"names the {len(folders):,} outputs: folder {folders[at]!r} may be output {at}, as ImageFolder counts, or "
            f"output {sorted(numbers).index(numbers[at])}.",
            hint=_HINT,
        )
    says = "Nobody names the outputs: they are taken for the class folders in sorted order, as ImageFolder has it"
    found = _map(By.ORDER, range(len(folders)), folders, says)
    return ClassMap(by=found.by, indices=found.indices, names=found.names, says=found.says + note, reordered=False)


def _map(by: By, indices: Sequence[int], names: Sequence[str], says: str) -> ClassMap:
    order = sorted(indices)
    reordered = list(indices) != order
    if reordered:
        at = next(k for k, index in enumerate(indices) if index != order[k])
        which = f"folder {at} is output {indices[at]}, {names[indices[at]][:80]!r}"
        says += f", in another order than the sorted folders: {which}"
    return ClassMap(by=by, indices=tuple(indices), names=tuple(names), says=says + ".", reordered=reordered)


def _numbers(folders: Sequence[str]) -> list[int] | None:
    """The folders' names as different whole numbers; None where one is none."""
    if not all(folder.isascii() and folder.isdigit() and len(folder) <= 9 for folder in folders):
        return None
    numbers = [int(folder) for folder in folders]
    return numbers if len(set(numbers)) == len(numbers) else None


def _is_imagenet(names: Sequence[str]) -> bool:
    """Whatever a library calls them in full, the first is a fish and the last is paper."""
    return "tench" in names[0].lower() and "toilet" in names[-1].lower()


def _imagenet() -> tuple[str, ...]:
    known = list_named("imagenet-1k")
    assert known is not None
    return known.names()


def _refused(folders: Sequence[str], names: Sequence[str], outputs: int, note: str = "") -> UsageError:
    theirs = f"{counted(len(folders), 'class folder')}: {_few(folders)}"
    if not names:
        return UsageError(
            f"The class folders do not fit the head. {theirs}. The head has {outputs:,} outputs, which nobody "
            f"names.{note}",
            hint=_HINT,
        )
    known = {_plain(name) for name in names}
    strangers = [folder for folder in folders if _plain(folder) not in known]
    twice = "" if strangers else " Some of these names are those of two outputs."
    which = f" Not among the outputs: {_few(strangers)}." if strangers else twice
    return UsageError(
        f"The class folders do not fit the head. {theirs}. {outputs:,} outputs: {_few(names)}.{which}", hint=_HINT
    )


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(name[:40] for name in names[:_LISTED])
    return f"{shown} and {len(names) - _LISTED:,} more" if len(names) > _LISTED else shown


def _plain(name: str) -> str:
    return _BETWEEN.sub(" ", name.strip().casefold()).strip()
