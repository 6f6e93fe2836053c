"""LoRA's matrices: an adapter that was never trained, pairs that cannot be multiplied, and a missing scale.

W + alpha / r * B A, with A random and B zero at the start (Hu et al. 2021, 2106.09685). PiSSA (2404.02948) and LoftQ
(2310.08659) begin with B other than zero, so that nothing can be said of whether they were trained.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from inspector.checkpoint.adapter_names import adapted_layer, is_adapter_tensor, is_rank_first
from inspector.findings import Check, Finding, FindingKind, Severity
from inspector.health.phrases import listed
from inspector.health.subject import Examined, Subject
from inspector.units import counted, human_shape

NEVER_TRAINED = FindingKind(
    "adapter-never-trained", Severity.WARNING, "An adapter adds nothing", also=(Severity.NOTICE,)
)
DEAD = FindingKind("adapter-dead", Severity.WARNING, "Both matrices of an adapter are zero")
RANKS_DIFFER = FindingKind("adapter-ranks-differ", Severity.ERROR, "The matrices of an adapter cannot be multiplied")
HALF = FindingKind("adapter-half-missing", Severity.NOTICE, "An adapter has one of its two matrices")
SCALE_UNKNOWN = FindingKind("adapter-scale-unknown", Severity.INFO, "The file does not tell an adapter's scale")

# "model.layers.3" of "model.layers.3.self_attn.q_proj".
_BLOCK = re.compile(r"^.*?\.\d+(?=\.)")
# "lora_te1_text_model_encoder_layers_11_mlp_fc1", "text_model.encoder.layers.11.mlp.fc1": which block of the encoder.
_TEXT_BLOCK = re.compile(r"text_(?:model|encoder)[\w.]*?[._]layers[._](\d+)[._]")
_A = ("lora_A", "lora_embedding_A", "lora_down", "lora.down")
_B = ("lora_B", "lora_embedding_B", "lora_up", "lora.up")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Adapter:
    """One layer's pair. first: (rank, in), last: (out, rank); None where it is missing."""

    layer: str
    first: Examined | None
    last: Examined | None

    @property
    def whole(self) -> bool:
        """Whether both matrices are there."""
        return self.first is not None and self.last is not None

    @property
    def from_zero(self) -> Examined | None:
        """The matrix that PEFT begins with zeros: B, of an embedding's adapter A (peft tuners/lora/layer.py)."""
        embedding = self.first is not None and "lora_embedding_A" in self.first.name
        return self.first if embedding else self.last

    @property
    def from_random(self) -> Examined | None:
        """The other one."""
        return self.first if self.from_zero is self.last else self.last


def _find(subject: Subject) -> Iterator[Finding]:
    adapters = _adapters(subject)
    if adapters:
        yield from _zero(subject, adapters)
        yield from _ranks(adapters)
        yield from _half(adapters)
        yield from _scale(subject, adapters)


def _adapters(subject: Subject) -> list[_Adapter]:
    firsts: dict[str, Examined] = {}
    lasts: dict[str, Examined] = {}
    for one in subject.tensors:
        # A bias beside the matrix, DoRA's magnitudes and LyCORIS' own are no part of the pair.
        if not is_adapter_tensor(one.name) or len(one.tensor.shape) < 2:
            continue
        if is_rank_first(one.name):
            firsts[_pair(one.name)] = one
        elif any(f"{word}." in f"{one.name}." for word in _B):
            lasts[_pair(one.name)] = one
    keys = dict.fromkeys([*firsts, *lasts])
    return [_Adapter(layer=_layer(key), first=firsts.get(key), last=lasts.get(key)) for key in keys]


def _pair(name: str) -> str:
    """What both matrices of one adapter share: the layer, and the adapter's own name behind them."""
    layer = adapted_layer(name)
    rest = name[len(layer) + 1 :]
    for word in (*_A, *_B):
        rest = rest.removeprefix(word)
    return f"{layer}\0{rest}"


def _layer(key: str) -> str:
    return key.partition("\0")[0]


def _is_zero(one: Examined | None) -> bool:
    t = one.statistics if one is not None else None
    return t is not None and t.numel > 0 and t.zero == t.numel


def _zero(subject: Subject, adapters: list[_Adapter]) -> Iterator[Finding]:
    whole = [one for one in adapters if one.whole]
    layers = [one.layer for one in whole]
    dead = [one.layer for one in whole if _is_zero(one.first) and _is_zero(one.last)]
    idle = [one.layer for one in whole if _is_zero(one.from_zero) and not _is_zero(one.from_random)]
    if dead:
        yield DEAD.found(
            f"Both matrices of {counted(len(dead), 'adapter')} of {len(whole):,} are zero: {listed(dead)}.",
            subjects=dead,
            evidence=(("adapters", len(dead)), ("of", len(whole))),
            remedy="Each is the other's gradient, so that no training moves them. Make A random again; a rank that was "
            "pruned to nothing is harmless.",
        )
    if idle:
        every = len(idle) == len(whole)
        steps = subject.training.most_steps or 0
        blocks = [] if every else _idle_blocks(idle, layers)
        at = f", among them all of {listed(blocks)}" if blocks else ""
        done = f" after {steps:,.0f} steps" if steps > 0 else ""
        meant = steps <= 0 if every else all(_is_left_out(layer, layers) for layer in idle)
        yield NEVER_TRAINED.found(
            f"B is zero in {'all ' if every else ''}{counted(len(idle), 'adapter')}"
            + (f": the adapter adds nothing{done}." if every else f" of {len(whole):,}{at}: {listed(idle)}."),
            severity=Severity.NOTICE if meant else Severity.WARNING,
            subjects=idle,
            evidence=(("adapters", len(idle)), ("of", len(whole))),
            remedy="B begins at zero, and the first step moves it: right for an adapter that training is to start "
            "from. Otherwise it was saved before training, or no optimizer has it."
            if every
            else "B begins at zero, and the first step moves it: these layers had no gradient, as before a part that "
            "is run without gradients (checkpointing whose inputs need none). Frozen on purpose, experts that were "
            "never used, or the last block of a text encoder of which the block before is asked, they are harmless.",
        )


def _idle_blocks(idle: list[str], layers: list[str]) -> list[str]:
    """Numbered blocks in which every adapter is idle, and whose like are trained in other blocks. Of experts nothing is
    said: a batch may never use one."""
    places: dict[str, list[str]] = defaultdict(list)
    for layer in layers:
        number = _BLOCK.search(layer)
        if number is not None and "expert" not in layer:
            places[layer[: number.end()]].append(layer)
    found = [block for block, of in places.items() if len(of) > 1 and set(of) <= set(idle)]
    return found if 2 * len(found) <= len(places) else []


def _is_left_out(layer: str, layers: list[str]) -> bool:
    """Whether no gradient need reach it: an expert that no batch used, the end of a text encoder that is asked for an
    earlier block (the clip skip of Stable Diffusion)."""
    if "expert" in layer:
        return True
    mine = _TEXT_BLOCK.search(layer)
    if mine is None:
        return False
    every = map(_TEXT_BLOCK.search, layers)
    encoder = layer[: mine.start(1)]
    return int(mine[1]) == max(int(of[1]) for of in every if of is not None and of.string[: of.start(1)] == encoder)


def _ranks(adapters: list[_Adapter]) -> Iterator[Finding]:
    wrong = [
        (one.layer, one.first.tensor.shape, one.last.tensor.shape)
        for one in adapters
        if one.first is not None and one.last is not None and one.first.tensor.shape[0] != one.last.tensor.shape[1]
    ]
    if wrong:
        layer, first, last = wrong[0]
        yield RANKS_DIFFER.found(
            f"{counted(len(wrong), 'adapter')} of {len(adapters):,} cannot be multiplied: of {listed([layer])} A is "
            f"{human_shape(first)} and B {human_shape(last)}, ranks {first[0]:,} and {last[1]:,}.",
            subjects=[name for name, _, _ in wrong],
            evidence=(("adapters", len(wrong)), ("rank of A", first[0]), ("rank of B", last[1])),
            remedy="Matrices of two adapters were mixed, or one was cut to another rank: take both from one file.",
        )


def _half(adapters: list[_Adapter]) -> Iterator[Finding]:
    halves = [one for one in adapters if not one.whole]
    if halves:
        names = [matrix.name for one in halves for matrix in (one.first, one.last) if matrix is not None]
        yield HALF.found(
            f"Of {counted(len(adapters), 'adapter')}, {len(halves):,} lack one of two matrices: {listed(names)}.",
            subjects=names,
            evidence=(("halves", len(halves)), ("of", len(adapters))),
            remedy="Adapters that share a matrix keep it elsewhere. Otherwise the file is a part of one.",
        )


def _scale(subject: Subject, adapters: list[_Adapter]) -> Iterator[Finding]:
    if any("alpha" in key.lower() for key, _ in subject.checkpoint.metadata):
        return
    if any(one.last == "alpha" or one.name.endswith("_alpha") for one in subject.tensors):
        return
    ranks = sorted({one.first.tensor.shape[0] for one in adapters if one.first is not None})
    if not ranks:
        return
    shown = ", ".join(f"{rank:,}" for rank in ranks[:4])
    yield SCALE_UNKNOWN.found(
        f"{counted(len(adapters), 'adapter')} of rank {shown} and no alpha: the file does not tell what B A is "
        "multiplied by.",
        evidence=(("adapters", len(adapters)), ("rank", ranks[0])),
        remedy="PEFT keeps lora_alpha in adapter_config.json beside it; kohya's scripts take alpha = rank where there "
        "is none. With another alpha the adapter works too much or too little.",
    )


CHECK = Check(kinds=(NEVER_TRAINED, DEAD, RANKS_DIFFER, HALF, SCALE_UNKNOWN), find=_find)
