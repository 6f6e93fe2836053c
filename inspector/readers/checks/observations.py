"""What a reader notices about any checkpoint: shared memory, saved devices, waste, sizes that do not fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from inspector.checkpoint.dtypes import DTYPES
from inspector.checkpoint.layout import PACKED, PACKED_LAYOUTS, span_of
from inspector.checkpoint.types import GlobalUse, GlobalVerdict, Storage, TensorInfo
from inspector.findings import Finding, FindingKind, Severity
from inspector.readers.checks.torch_words import no_device, too_few_devices
from inspector.units import counted, human_bytes

SHARED_STORAGE = FindingKind("shared-storage", Severity.INFO, "Tensors share memory")
SAVED_DEVICE = FindingKind("saved-device", Severity.NOTICE, "Saved on another device than the CPU")
SAVED_SLICE = FindingKind(
    "saved-slice", Severity.NOTICE, "Slices were saved with the whole they are of", also=(Severity.WARNING,)
)
VIEW_OUTSIDE_STORAGE = FindingKind(
    "view-outside-storage", Severity.ERROR, "Tensors reach behind the end of their storage"
)
NO_DATA = FindingKind("no-data", Severity.WARNING, "Tensors have a shape and no numbers")
DANGEROUS_GLOBAL = FindingKind("dangerous-global", Severity.ERROR, "Loading would import names that can run code")
UNKNOWN_GLOBAL = FindingKind("unknown-global", Severity.WARNING, "Loading would import names that are not known")

_LISTED = 20
_WASTE_NBYTES = 4096


def observe_storages(tensors: Sequence[TensorInfo], storages: Mapping[str, Storage], name: str) -> list[Finding]:
    """Findings about storages and the views on them."""
    tensors = [t for t in tensors if t.layout not in PACKED_LAYOUTS]
    views: dict[str, list[TensorInfo]] = {}
    for tensor in tensors:
        if tensor.storage_id is not None:
            views.setdefault(tensor.storage_id, []).append(tensor)
    found = [_shared(views), _devices(tensors, name), *_reach(views, storages), _no_data(tensors)]
    return [finding for finding in found if finding is not None]


def _shared(views: Mapping[str, list[TensorInfo]]) -> Finding | None:
    groups = [group for group in views.values() if len(group) > 1 and len({t.path for t in group}) > 1]
    if not groups:
        return None
    first = groups[0]
    names = " and ".join(".".join(t.path) for t in first[:2]) + (
        f" and {len(first) - 2} more" if len(first) > 2 else ""
    )
    return SHARED_STORAGE.found(
        f"{counted(sum(map(len, groups)), 'tensor')} share memory in {counted(len(groups), 'group')}, "
        f"for example {names}.",
        subjects=tuple(t.name for group in groups for t in group)[:_LISTED],
        evidence=(("groups", len(groups)), ("tensors", sum(map(len, groups)))),
        remedy="Tied weights are normal. safetensors cannot hold them: there one name of each group is kept.",
    )


def _devices(tensors: Iterable[TensorInfo], name: str) -> Finding | None:
    counts: dict[str, int] = {}
    for tensor in tensors:
        if tensor.device not in (None, "cpu", "meta"):
            counts[str(tensor.device)] = counts.get(str(tensor.device), 0) + 1
    if not counts:
        return None
    says = ", ".join(f"{counted(n, 'tensor')} on {device}" for device, n in sorted(counts.items())[:8])
    errors = {device: no_device(device) for device in sorted(counts)[:_LISTED]}
    return SAVED_DEVICE.found(
        f"{name} was saved with {says}.",
        subjects=tuple(sorted(counts)[:_LISTED]),
        evidence=(
            *sorted(counts.items())[:_LISTED],
            *((f"error without {device}", error) for device, error in errors.items()),
            *((f"error with one {d.partition(':')[0]}", too_few_devices(d, 1)) for d in errors if _is_further(d)),
        ),
        remedy='On a machine without that device, load it with map_location="cpu"; '
        f"otherwise torch.load says: {next(iter(errors.values()))}",
    )


def _is_further(device: str) -> bool:
    """cuda:1 and up: a machine with one such device has not that one."""
    kind, _, number = device.partition(":")
    return kind in ("cuda", "xpu", "mtia") and number.isdigit() and int(number[:9]) > 0


def _reach(
    views: Mapping[str, list[TensorInfo]], storages: Mapping[str, Storage]
) -> tuple[Finding | None, Finding | None]:
    """What of the storages no view reaches, and the views that reach behind their storage's end."""
    unused: list[tuple[int, str]] = []
    outside: list[TensorInfo] = []
    extents: dict[tuple[object, ...], int] = {}
    for key, group in views.items():
        storage = storages.get(key)
        held = storage.nbytes if storage is not None else -1
        spans = [_span_nbytes(t, extents) for t in group]
        outside += [t for t, (_, end) in zip(group, spans, strict=True) if end > held and t.numel]
        if storage is None or any(t.layout != "strided" for t in group):
            continue
        left = held - _covered(spans)
        if left >= _WASTE_NBYTES and left * 20 >= held:
            unused.append((left, group[0].name))
    return _waste(unused, storages), _outside(outside)


def _span_nbytes(tensor: TensorInfo, extents: dict[tuple[object, ...], int]) -> tuple[int, int]:
    """Where in its storage the tensor begins and ends, in bytes. extents: how many elements further, of tensors asked
    before; thousands have a few shapes."""
    itemsize = DTYPES[tensor.dtype].itemsize
    if tensor.dtype in PACKED:
        first, end = span_of(tensor)
        return first * itemsize, end * itemsize
    kind = tensor.shape, tensor.stride
    if kind not in extents:
        first, end = span_of(tensor)
        extents[kind] = end - first
    return tensor.offset * itemsize, (tensor.offset + extents[kind]) * itemsize


def _covered(spans: list[tuple[int, int]]) -> int:
    """Bytes of a storage that at least one view reaches, counting the gaps inside a strided view as reached."""
    if len(spans) == 1:
        return spans[0][1] - spans[0][0]
    covered = at = 0
    for first, end in sorted(spans):
        covered += max(0, end - max(at, first))
        at = max(at, end)
    return covered


def _waste(unused: list[tuple[int, str]], storages: Mapping[str, Storage]) -> Finding | None:
    """unused: (bytes, name of a tensor) of each storage that was saved for a slice of it."""
    if not unused:
        return None
    total = sum(nbytes for nbytes, _ in unused)
    unused.sort(reverse=True)
    held = sum(s.nbytes for s in storages.values())
    return SAVED_SLICE.found(
        f"{human_bytes(total)} of {human_bytes(held)} in the file are used by no tensor: "
        f"{counted(len(unused), 'tensor is a slice', 'tensors are slices')} of a larger one that was saved whole.",
        severity=Severity.WARNING if total * 10 >= held else Severity.NOTICE,
        subjects=tuple(name for _, name in unused[:_LISTED]),
        evidence=(("wasted_nbytes", total), ("storages", len(unused))),
        remedy="Save it again with every slice cloned (tensor.clone()); converting does that.",
    )


def _outside(bad: list[TensorInfo]) -> Finding | None:
    if not bad:
        return None
    return VIEW_OUTSIDE_STORAGE.found(
        f"{counted(len(bad), 'tensor')} reach behind the end of their storage, first {bad[0].name}.",
        subjects=tuple(t.name for t in bad[:_LISTED]),
        evidence=(("tensors", len(bad)),),
        remedy="The file was damaged or made by hand; torch.load refuses it. Get it again from its source.",
    )


def _no_data(tensors: Iterable[TensorInfo]) -> Finding | None:
    empty = [t for t in tensors if t.storage_id is None and t.device == "meta"]
    if not empty:
        return None
    return NO_DATA.found(
        f"The file gives {counted(len(empty), 'tensor')} only a shape and no numbers (meta tensors), "
        f"first {empty[0].name}.",
        subjects=tuple(t.name for t in empty[:_LISTED]),
        evidence=(("tensors", len(empty)),),
        remedy="They were saved before the weights were loaded; save the model again after that.",
    )


def observe_globals(uses: Sequence[GlobalUse], *, exportable: bool = True, by_numpy: bool = False) -> list[Finding]:
    """Findings about the names a pickle would import. exportable: whether there are tensors to take out instead.
    by_numpy: whether the file is an array of numpy's, which nothing else unpickles."""
    load, so = (
        ("numpy.load(allow_pickle=True)", "with allow_pickle=True")
        if by_numpy
        else ("Loading this file with pickle", "with pickle or torch.load(weights_only=False)")
    )
    found: list[Finding] = []
    for verdict, kind, what in (
        (GlobalVerdict.DANGEROUS, DANGEROUS_GLOBAL, "can run code or reach the system"),
        (GlobalVerdict.UNKNOWN, UNKNOWN_GLOBAL, "are not known here"),
    ):
        names = [u.name for u in uses if u.verdict is verdict]
        what = what.replace("are", "is") if len(names) == 1 else what
        if names:
            found.append(
                kind.found(
                    f"{load} would import {counted(len(names), 'name')} that {what}: "
                    f"{', '.join(n[:80] for n in names[:3])}{' …' if len(names) > 3 else ''}. Nothing was run here.",
                    subjects=tuple(n[:200] for n in names[:_LISTED]),
                    evidence=(("names", len(names)),),
                    remedy=f"Do not load it {so}"
                    + (" unless you trust whoever made it" if verdict is GlobalVerdict.UNKNOWN else ", whoever sent it")
                    + ("; convert it to safetensors instead." if exportable else "."),
                )
            )
    return found
