"""Weights that are one number throughout: a layer of zeros passes nothing on, and no gradient back where its neighbour
is zero too.

Many begin so on purpose: the second matrix of LoRA (arXiv:2106.09685), ControlNet's zero convolutions (2302.05543),
adaLN-zero (2212.09748), the last norm of a residual branch (1706.02677), offsets of deformable layers (1703.06211),
heads of vision transformers. Biases, shifts, statistics, layer scales and new norms are constant in every new model.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.phrases import listed, shown
from inspector.health.roles import Role
from inspector.health.subject import Examined, Subject
from inspector.weights.report import TensorStatistics

ZERO_WEIGHT = FindingKind("zero-weight", Severity.WARNING, "All numbers of a weight are zero", also=(Severity.NOTICE,))
CONSTANT_WEIGHT = FindingKind(
    "constant-weight", Severity.WARNING, "All numbers of a tensor are the same", also=(Severity.NOTICE,)
)

# Layers that libraries begin at zero, bias included.
_BEGIN_AT_ZERO = re.compile(
    r"controlnet|zero_conv|zero_module|input_hint_block|middle_block_out|adaln|ada_ln|modulation|(^|\.)norm\w*\.linear\."
    r"|(^|\.)out\.2\.|final_layer\.|(^|[._])(heads?|fc|classifier)\d*\.|fixup|bbox_embed|conv_out\.|zero_init"
)
# The last layer of a residual branch begins at zero in all blocks or in none.
_BRANCH_END = re.compile(
    r"(^|\.)(proj_out|out_layers\.3|to_out(\.0)?|fc2|conv[23]|c?_?proj|out_proj|o_proj|down_proj|linear2|fc_out)\."
)
# These begin at zero beside a bias that does not.
_OFFSETS = re.compile(r"offset|attention_weights\.")
# Numbers of blocks and lists, not those that tell one layer of a block from another: "layer#.#.conv2.weight".
_NUMBER = re.compile(r"\d+(?=\.[^.]+\.)|(?:^|(?<=\.))\d+(?=\.[^.]+$)")

Measured = tuple[Examined, TensorStatistics]


class _Places:
    """The tensors of every place that blocks repeat: "layers.#.fc.weight"."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    @cached_property
    def _of(self) -> Mapping[str, Sequence[TensorStatistics]]:
        # Nearly always nothing is constant, and nobody asks.
        found: dict[str, list[TensorStatistics]] = defaultdict(list)
        for one, t in self._subject.measured():
            if one.role is Role.NORM_SCALE or one.role.is_weight:
                found[_NUMBER.sub("#", one.name)].append(t)
        return found

    def others_trained(self, one: Examined) -> bool:
        """Whether at least half of those at its place in other blocks are more than one number."""
        others = [t for t in self._of[_NUMBER.sub("#", one.name)] if t.path != one.tensor.path]
        trained = sum(bool(t.finite) and t.minimum != t.maximum for t in others)
        return trained > 0 and trained * 2 >= len(others)

    def is_repeated(self, one: Examined) -> bool:
        """Whether other blocks have one at its place."""
        return len(self._of[_NUMBER.sub("#", one.name)]) > 1


def _find(subject: Subject) -> Iterator[Finding]:
    groups: dict[tuple[bool, Severity], list[Measured]] = defaultdict(list)
    places = _Places(subject)
    columns = subject.columns
    for one, t in subject.those((columns.numel >= 2) & columns.whole & ~columns.varied):
        zero = t.minimum == 0
        severity = _of_zero(subject, one, places) if zero else _of_constant(one)
        if severity is not None:
            groups[zero, severity].append((one, t))
    for (zero, severity), tensors in groups.items():
        yield _zeros(severity, tensors) if zero else _constants(severity, tensors)


def _of_constant(one: Examined) -> Severity | None:
    if len(one.tensor.shape) < 2:
        return None
    if one.role.is_weight or one.role is Role.EMBEDDING:
        return Severity.WARNING
    return Severity.NOTICE if one.role in (Role.OTHER, Role.POSITION) else None


def _of_zero(subject: Subject, one: Examined, places: _Places) -> Severity | None:
    if one.role is Role.NORM_SCALE:
        return Severity.WARNING if places.others_trained(one) else Severity.NOTICE
    # What an adapter that was never trained means is for the check of adapters.
    if len(one.tensor.shape) < 2 or one.role is Role.LORA_B:
        return None
    if one.role is Role.EMBEDDING:
        return Severity.WARNING
    if not one.role.is_weight:
        return Severity.NOTICE if one.role in (Role.OTHER, Role.POSITION) else None
    begins = _begins_at_zero(subject, one, places) and not places.others_trained(one)
    return Severity.NOTICE if begins else Severity.WARNING


def _begins_at_zero(subject: Subject, one: Examined, places: _Places) -> bool:
    if _OFFSETS.search(one.name):
        return True
    bias = subject.beside(one, "bias")
    if bias is not None and bias.statistics is not None and bias.statistics.rms != 0:
        return False
    return bool(_BEGIN_AT_ZERO.search(one.name) or (_BRANCH_END.search(one.name) and places.is_repeated(one)))


def _zeros(severity: Severity, tensors: Sequence[Measured]) -> Finding:
    one, t = tensors[0]
    names = [other.name for other, _ in tensors]
    begins = severity is Severity.NOTICE
    return ZERO_WEIGHT.found(
        f"All {t.numel:,} numbers of {shown(one.name)} are 0."
        if len(names) == 1
        else f"All numbers of {len(names):,} tensors are 0: {listed(names)}.",
        severity=severity,
        subjects=names,
        evidence=(("tensors", len(names)), ("numel", sum(each.numel for _, each in tensors)), ("largest", 0.0)),
        remedy="Such layers begin at zero in several libraries, so that a branch adds nothing at first: harmless in a "
        "new network, and a sign in a trained one that no training reached them."
        if begins
        else "What comes in does not get through. Layers that begin at zero on purpose and pruned ones look so; "
        "otherwise look at how the file was written, or take the tensor from an earlier checkpoint.",
    )


def _constants(severity: Severity, tensors: Sequence[Measured]) -> Finding:
    one, t = tensors[0]
    names = [other.name for other, _ in tensors]
    first = f"All {t.numel:,} numbers of {shown(one.name)} are {t.minimum:.4g}"
    return CONSTANT_WEIGHT.found(
        f"{first}." if len(names) == 1 else f"{first}; one number each also in {listed(names[1:])}.",
        severity=severity,
        subjects=names,
        evidence=(("value", t.minimum), ("tensors", len(names))),
        remedy="Training rarely leaves a weight like this; fixed averaging filters are like this on purpose. Look at "
        "how it was written or initialised.",
    )


CHECK = Check(kinds=(ZERO_WEIGHT, CONSTANT_WEIGHT), find=_find)
