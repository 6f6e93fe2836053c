"""Every architecture under every corruption, by every tool."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from benchmarks.keybench.architectures import HELD_SEEDS, OPEN_SEEDS, Architecture
from benchmarks.keybench.corruptions import CORRUPTIONS, held_kinds
from benchmarks.keybench.damage import Answer, Corruption, Damaged
from benchmarks.keybench.engine import run_engine
from benchmarks.keybench.files import plain_target
from benchmarks.keybench.models import Reference, tables_of
from benchmarks.keybench.numbers import fingerprints
from benchmarks.keybench.pairs import pairs
from benchmarks.keybench.peers import Peer, judge_within, run_peer
from benchmarks.keybench.score import Outcome, Score, judge
from inspector.architectures.targets import target_of
from inspector.architectures.types import ArchitectureSpec, Target

OURS = "this engine"


@dataclass(frozen=True)
class Settings:
    """only: corruptions to run, all when empty. Slow peers see files of up to slow_tensors, for slow_seconds each.

    held_out: what is held out of the kinds as well. every: of the cases one in so many, evenly over kinds and networks.
    """

    peers: tuple[Peer, ...] = ()
    only: Collection[str] = ()
    slow_tensors: int = 125
    slow_seconds: float = 10.0
    logits: bool = True
    held_out: bool = True
    every: int = 1


def is_case(corruption: Corruption, case: Damaged) -> bool:
    """Whether it changes anything: a corruption that does not is no case, but for the one that means not to."""
    if not case.file:
        return False
    same = list(case.file) == list(case.truth) and all(case.file[n] is case.truth[n] for n in case.file)
    return not same or corruption is CORRUPTIONS[0]


def run(architectures: list[Architecture], settings: Settings) -> Iterator[Score]:
    torch.set_num_threads(1)
    for architecture in architectures:
        reference = Reference(replace(architecture, size=architecture.size if settings.logits else 0))
        tables = tables_of(architecture)
        seeds = HELD_SEEDS if architecture.held_out else OPEN_SEEDS
        for seed in seeds:
            own = fingerprints(architecture, seed, tables)
            if seed == seeds[0]:
                reference.learn(own)
            for corruption in CORRUPTIONS:
                if settings.only and corruption.name not in settings.only:
                    continue
                if (seed != seeds[0] and not corruption.drawn) or not _is_taken(corruption, architecture, settings):
                    continue
                chance = random.Random(zlib.crc32(f"{architecture.name} {corruption.name} {seed}".encode()))
                case = corruption.make(own, chance)
                if is_case(corruption, case):
                    agrees = reference.agrees if seed == seeds[0] else lambda _: None
                    yield from _one(corruption, architecture, seed, case, own, agrees, settings)


def _is_taken(corruption: Corruption, architecture: Architecture, settings: Settings) -> bool:
    if corruption.name in held_kinds() and not settings.held_out:
        return False
    # By a number of its own, so that another kind or network more changes nothing for those that were there.
    return zlib.crc32(f"{corruption.name} {architecture.name}".encode()) % settings.every == 0


def run_one(architecture: Architecture, settings: Settings) -> list[Score]:
    """One architecture whole, for a process of its own."""
    return list(run([architecture], settings))


def run_pairs(settings: Settings) -> list[Score]:
    """The files of one network for the target of another."""
    torch.set_num_threads(1)
    found: list[Score] = []
    for corruption, architecture, case in pairs():
        if (not settings.only or corruption.name in settings.only) and _is_taken(corruption, architecture, settings):
            found += _one(corruption, architecture, 0, case, {}, lambda _: None, settings)
    return found


def _one(
    corruption: Corruption,
    architecture: Architecture,
    seed: int,
    case: Damaged,
    own: Mapping[str, Tensor],
    agrees: Callable[[Mapping[str, Tensor]], bool | None],
    settings: Settings,
) -> Iterator[Score]:
    target = _target(architecture, case)
    alone, outcome = run_engine(corruption, case, target)
    score = _score(OURS, corruption, architecture, seed, case, outcome)
    score = replace(score, silent=score.silent or judge(case, alone, corruption.expects)[2])
    exact = corruption.expects is Answer.REPAIR and not case.computed and case.truth.keys() == own.keys()
    exact = exact and all(torch.equal(tensor, own[name]) for name, tensor in case.truth.items())  # pruned ones are not
    if outcome.strict and exact and case.placeable == case.truth.keys() and corruption.name != "float16":
        score = replace(score, logits=agrees(outcome.placed))
    yield score
    for peer in settings.peers:
        if not peer.slow:
            yield _score(peer.name, corruption, architecture, seed, case, run_peer(peer, case))
        elif len(case.file) <= settings.slow_tensors and not (corruption.drawn and seed % 2):
            verdict, late = judge_within(peer, case, corruption.expects, settings.slow_seconds)
            right, wrong, silent, strict, refused, seconds = verdict
            made = Outcome(placed={}, strict=strict, refused=refused, seconds=seconds, timed_out=late)
            blank = _score(peer.name, corruption, architecture, seed, case, made)
            yield replace(blank, right=right, wrong=wrong, silent=silent)


def _target(architecture: Architecture, case: Damaged) -> Target:
    """The architecture itself where the case is about it, with all that is known of it; else names and shapes."""
    plain = {tensor.name: tensor.shape for tensor in architecture.tensors}
    library, _, name = architecture.name.rpartition(" as ")[2].rpartition("/")
    if library and plain == case.goal:
        return target_of(ArchitectureSpec(library=library, name=name))
    return plain_target(case.goal)


def _score(
    tool: str, corruption: Corruption, architecture: Architecture, seed: int, case: Damaged, outcome: Outcome
) -> Score:
    right, wrong, silent = judge(case, outcome, corruption.expects)
    return Score(
        tool=tool,
        corruption=corruption.name,
        architecture=architecture.name,
        seed=seed,
        held_out=architecture.held_out or corruption.name in held_kinds(),
        expects=corruption.expects,
        simple=corruption.simple,
        tensors=len(case.file),
        placeable=len(case.placeable),
        right=right,
        wrong=len(wrong),
        strict=outcome.strict,
        silent=silent,
        refused=outcome.refused,
        timed_out=outcome.timed_out,
        told=outcome.told,
        asked=outcome.asked,
        open=outcome.open,
        rules=outcome.rules,
        seconds=outcome.seconds,
        evidence=outcome.evidence,
        wrong_keys=wrong[:3],
    )
