"""A user who knows the file answers every question about it truthfully, and the repair is compared with the truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from inspector.architectures.types import Target, TargetKind, TargetTensor
from inspector.checkpoint.types import Checkpoint
from inspector.errors import KeysDoNotFit, UsageError
from inspector.keys.apply import apply_plan
from inspector.keys.diagnose import diagnose
from tests.keys.fuzz.libraries import Network

Saved = Callable[..., Checkpoint]
_ROUNDS = 60


@dataclass(frozen=True)
class Told:
    """complete: a repair that passes a strict load. wrong: places with other numbers in it. asked: what was asked."""

    complete: bool
    wrong: tuple[str, ...]
    asked: tuple[str, ...]
    says: str


def repair_truthfully(net: Network, saved: Saved) -> Told:
    """What comes out when each question is answered with what is so; acceptances that it is right to give are given."""
    checkpoint = saved({name: t.contiguous() for name, t in net.ours.items()}, ordered=True)
    if net.container == "numpy":
        states = tuple(
            replace(s, tensors=tuple(replace(t, note="numpy array inside the pickle") for t in s.tensors))
            for s in checkpoint.state_dicts
        )
        checkpoint = replace(checkpoint, state_dicts=states, format="pickle")
    elif net.container == "mlx":
        checkpoint = replace(checkpoint, metadata=(("format", "mlx"),))
    tensors = tuple(TargetTensor(name=n, shape=tuple(t.shape), dtype="float32") for n, t in net.goal.items())
    target = Target(label="the target", kind=TargetKind.FILE, tensors=tensors)
    answers: dict[str, str] = {}
    accept: tuple[str, ...] = ()
    asked: dict[str, None] = {}
    report = diagnose(checkpoint, target)
    for _ in range(_ROUNDS):
        plan = report.plan
        if plan is None or plan.complete:
            break
        before = (dict(answers), accept)
        asked |= dict.fromkeys(q.id.partition(":")[0] for q in plan.ambiguities)
        known = {**net.answers, **_orders(net), "symmetric": "in-order", "rename": "as-placed", "rival": "as-placed"}
        kinds = {q.id.partition(":")[0] for q in plan.ambiguities}
        answers |= {key: answer for key, answer in known.items() if key.partition(":")[0] in kinds}
        accept = tuple(dict.fromkeys((*accept, *(r for r in plan.needs_accept if r == "same-order"))))
        if (answers, accept) == before:
            break
        report, answers = _asked_again(checkpoint, target, accept, answers)
    plan = report.plan
    if plan is None or not plan.complete:
        return Told(False, (), tuple(asked), report.says)
    try:
        made = apply_plan(checkpoint, plan)
    except KeysDoNotFit:
        return Told(False, (), tuple(asked), report.says)
    wrong = [name for name, truth in net.goal.items() if name not in made or not torch.equal(made[name], truth)]
    return Told(True, tuple(wrong), tuple(asked), report.says)


def _orders(net: Network) -> dict[str, str]:
    """Where a kernel lies as the others do, or as torch has it."""
    own = ("torch", "paddle", "gpt2")
    return {
        f"kernel-order:{module}": "as-it-is" if library in own else "as-the-others"
        for module, library in net.libraries.items()
    }


def _asked_again(checkpoint, target, accept, answers):
    """A place that is not asked about is left out of the answers."""
    answers = dict(answers)
    while True:
        try:
            return diagnose(checkpoint, target, accept=accept, choose=answers), answers
        except UsageError as error:
            gone = next((key for key in answers if f'"{key}"' in str(error)), None)
            if gone is None:
                gone = next(k for k in answers if f'"{answers[k]}"' in str(error))
            del answers[gone]
