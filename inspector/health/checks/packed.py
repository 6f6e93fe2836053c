"""GPTQ and AWQ: do the packed weights, zero points, scales and group indices of a layer agree?

GPTQ (AutoGPTQ, GPTQModel, 2210.17323): qweight (in * bits / 32, out), qzeros (groups, out * bits / 32), scales
(groups, out), g_idx (in). AWQ (AutoAWQ, 2306.00978): qweight (in, out * bits / 32), qzeros and scales alike; its gemv
layout has outputs first. int32 holds several numbers each.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.phrases import listed
from inspector.health.subject import Examined, Subject
from inspector.units import counted, human_shape
from inspector.weights.report import TensorStatistics

PACKED_LAYERS = FindingKind("packed-layers", Severity.INFO, "Layers are packed as GPTQ or AWQ packs them")
PACKED_SHAPES = FindingKind(
    "packed-shapes", Severity.ERROR, "Parts of a packed layer do not fit together", also=(Severity.NOTICE,)
)
GROUP_INDEX = FindingKind(
    "packed-group-index", Severity.ERROR, "A packed layer's group index is wrong", also=(Severity.NOTICE,)
)
PACKED_SCALES = FindingKind(
    "packed-scales", Severity.NOTICE, "Scales of packed layers are zero or negative", also=(Severity.WARNING,)
)

_BITS = (2, 3, 4, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layer:
    """format: "GPTQ", "AWQ", "AWQ (gemv)", "" where the shapes fit none. inputs, bits: 0 then."""

    module: str
    qweight: Examined
    scales: Examined
    qzeros: Examined | None
    g_idx: Examined | None
    format: str
    bits: int = 0
    inputs: int = 0

    @property
    def groups(self) -> int:
        """Rows of the scales."""
        return self.scales.tensor.shape[0]

    @property
    def shapes(self) -> str:
        """The parts with their shapes."""
        parts = (("qweight", self.qweight), ("qzeros", self.qzeros), ("scales", self.scales), ("g_idx", self.g_idx))
        return ", ".join(f"{name} {human_shape(one.tensor.shape)}" for name, one in parts if one is not None)


def _find(subject: Subject) -> Iterator[Finding]:
    layers = [*_layers(subject)]
    known = [layer for layer in layers if layer.format]
    if known:
        yield _described(subject, known)
    yield from _shapes(layers, known)
    yield from _indices(subject, known)
    yield from _scales(subject, layers)


def _layers(subject: Subject) -> Iterator[_Layer]:
    for one in subject.called(lambda last: last == "qweight"):
        scales = subject.beside(one, "scales")
        if scales is None or one.tensor.dtype != "int32":
            continue
        if len(one.tensor.shape) != 2 or len(scales.tensor.shape) != 2 or not scales.tensor.numel:
            continue
        qzeros, g_idx = subject.beside(one, "qzeros"), subject.beside(one, "g_idx")
        name, bits, inputs = _format(one, scales, qzeros, g_idx)
        yield _Layer(
            module=one.module,
            qweight=one,
            scales=scales,
            qzeros=qzeros,
            g_idx=g_idx,
            format=name,
            bits=bits,
            inputs=inputs,
        )


def _format(
    qweight: Examined, scales: Examined, qzeros: Examined | None, g_idx: Examined | None
) -> tuple[str, int, int]:
    """(format, bits, inputs) where all shapes agree on it, ("", 0, 0) where they fit none."""
    rows, columns = qweight.tensor.shape
    groups, outputs = scales.tensor.shape
    zeros = qzeros.tensor.shape if qzeros is not None else None
    index = g_idx.tensor.shape if g_idx is not None else None
    for bits in _BITS:
        inputs = rows * 32 // bits
        packed = outputs * bits // 32
        if columns == outputs and rows * 32 % bits == 0 and 0 < groups <= inputs:
            # Without zero points and index, nothing tells the bits: any would do.
            told = (zeros is not None and zeros == (groups, packed)) or (zeros is None and index is not None)
            if told and index in (None, (inputs,)):
                return "GPTQ", bits, inputs
        if index is not None or zeros is None:
            continue
        if columns == packed and outputs * bits % 32 == 0 and zeros == (groups, packed) and rows % groups == 0:
            return "AWQ", bits, rows
        # Outputs first; groups are rounded up to whole words.
        first = groups == rows == zeros[0] and zeros[1] * 32 // bits == outputs
        if first and columns * 32 % bits == 0:
            return "AWQ (gemv)", bits, columns * 32 // bits
    return "", 0, 0


def _described(subject: Subject, known: Sequence[_Layer]) -> Finding:
    formats = Counter((layer.format, layer.bits) for layer in known)
    (name, bits), _ = formats.most_common(1)[0]
    sizes = sorted({-(-layer.inputs // layer.groups) for layer in known if layer.format != "AWQ (gemv)"})
    zeros = _zero_points(known, bits)
    return PACKED_LAYERS.found(
        f"{counted(len(known), 'layer')} packed as {name} with {bits} bits"
        + (f", in groups of {', '.join(f'{size:,}' for size in sizes[:3])} inputs" if sizes else "")
        + f"{zeros}.",
        subjects=[layer.module for layer in known],
        evidence=(("layers", len(known)), ("bits", bits), ("group size", sizes[0] if sizes else 0)),
        remedy="Load it with the library that packed it.",
    )


def _zero_points(known: Sequence[_Layer], bits: int) -> str:
    """GPTQ's first format stores zero points less one, its second as they are; symmetric ones are one number."""
    if bits == 3:  # Its numbers cross words.
        return ""
    middle = 1 << (bits - 1)
    values = set()
    for layer in known:
        t = layer.qzeros.statistics if layer.qzeros is not None else None
        if t is None or not t.numel or t.minimum != t.maximum:
            return ""
        values.add(int(t.minimum) & 0xFFFFFFFF)
    for stored, says in ((middle - 1, "less one (GPTQ's first format)"), (middle, "as they are")):
        if values == {sum(stored << at for at in range(0, 32, bits))}:
            return f", symmetric, zero points stored {says}"
    return ""


def _shapes(layers: Sequence[_Layer], known: Sequence[_Layer]) -> Iterator[Finding]:
    wrong = [layer for layer in layers if not layer.format]
    if not wrong:
        return
    # Other libraries use the same names: only beside layers that fit is one that does not fit an error.
    proved = len(known) > len(wrong)
    yield PACKED_SHAPES.found(
        f"The parts of {counted(len(wrong), 'packed layer')} of {len(layers):,} fit neither GPTQ nor AWQ: "
        f"{wrong[0].module} has {wrong[0].shapes}.",
        severity=Severity.ERROR if proved else Severity.NOTICE,
        subjects=[layer.module for layer in wrong],
        evidence=(("layers", len(wrong)), ("of", len(layers))),
        remedy="All parts of a layer must come from one quantisation: take it anew from where it was packed. "
        "Repacked layouts (Marlin, ExLlama) differ on purpose.",
    )


def _indices(subject: Subject, known: Sequence[_Layer]) -> Iterator[Finding]:
    outside: list[str] = []
    uneven: list[str] = []
    lost: list[str] = []
    ordered = [layer for layer in known if layer.groups > 1 and layer.g_idx is not None and layer.g_idx.statistics]
    other = any(layer.g_idx.statistics.maximum > 0 for layer in ordered if layer.g_idx and layer.g_idx.statistics)
    for layer in known:
        t = layer.g_idx.statistics if layer.g_idx is not None else None
        if layer.g_idx is None or t is None or not t.numel:
            continue
        if t.minimum < 0 or t.maximum >= layer.groups:
            outside.append(layer.module)
            continue
        if t.maximum == 0:
            # All zero stands for the plain order in files of some tools, where it is so in all layers.
            if layer.groups > 1 and (other or subject.setting("desc_act") == "true"):
                lost.append(layer.module)
            continue
        array = subject.array(layer.g_idx)
        if array is None:
            continue
        counts = np.bincount(array.astype(np.int64), minlength=layer.groups)
        size = -(-layer.inputs // layer.groups)
        if not (counts[:-1] == size).all() or counts.max() > size:
            uneven.append(layer.module)
    if lost:
        why = "desc_act is true beside them" if subject.setting("desc_act") == "true" else "in other layers it is not"
        yield GROUP_INDEX.found(
            f"g_idx of {counted(len(lost), 'packed layer')} is zero throughout, and {why}: {listed(lost)}.",
            subjects=lost,
            evidence=(("layers", len(lost)), ("of", len(known))),
            remedy="It says which row of the scales an input uses: all inputs use the first row now, and the layer "
            "answers noise. The order that act-order chose is lost: take the file anew from where it was packed.",
        )
    if outside:
        yield GROUP_INDEX.found(
            f"g_idx of {counted(len(outside), 'packed layer')} points outside its groups: {listed(outside)}.",
            subjects=outside,
            evidence=(("layers", len(outside)), ("of", len(known))),
            remedy="It says which row of the scales an input uses. Scales and index are of two quantisations.",
        )
    if uneven:
        yield GROUP_INDEX.found(
            f"g_idx of {counted(len(uneven), 'packed layer')} fills its groups unevenly: {listed(uneven)}.",
            severity=Severity.NOTICE,
            subjects=uneven,
            evidence=(("layers", len(uneven)), ("of", len(known))),
            remedy="Also with act-order, every group has as many inputs. Harmless where a tool merged layers.",
        )


def _scales(subject: Subject, layers: Sequence[_Layer]) -> Iterator[Finding]:
    found: dict[Severity, list[tuple[str, TensorStatistics]]] = defaultdict(list)
    for layer in layers:
        t = layer.scales.statistics
        if t is not None and t.finite and (t.minimum <= 0 or t.zero):
            group = t.zero > 0 and _has_zero_group(subject, layer)
            found[Severity.WARNING if group else Severity.NOTICE].append((layer.module, t))
    for severity, scales in found.items():
        zero, lowest = sum(t.zero for _, t in scales), min(t.minimum for _, t in scales)
        whole = ", among them all those of a group of inputs" if severity is Severity.WARNING else ""
        yield PACKED_SCALES.found(
            f"Scales of {counted(len(scales), 'packed layer')} are not above zero: {zero:,} zeros{whole}, the lowest "
            f"{lowest:.3g}; {listed([module for module, _ in scales])}.",
            severity=severity,
            subjects=[module for module, _ in scales],
            evidence=(("layers", len(scales)), ("zeros", zero), ("lowest", lowest), ("threshold", 0)),
            remedy="Under a scale of zero a whole group of weights is zero: below what float16 holds, not calibrated, "
            "lost, or pruned. AutoRound writes negative scales on purpose; GPTQ and AWQ do not.",
        )


def _has_zero_group(subject: Subject, layer: _Layer) -> bool:
    """Whether all outputs have a scale of zero for one group of inputs."""
    array = subject.array(layer.scales)
    axis = 0 if layer.format == "AWQ (gemv)" else 1
    return array is not None and bool((array == 0).all(axis=axis).any()) and bool((array != 0).any())


CHECK = Check(kinds=(PACKED_LAYERS, PACKED_SHAPES, GROUP_INDEX, PACKED_SCALES), find=_find)
