"""Small networks that were really trained, and what the checks say of what was saved."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim import lr_scheduler, swa_utils

from inspector.findings import Check, Finding, Severity
from inspector.health.examine import examine
from inspector.health.subject import Subject
from inspector.readers import open_checkpoint

Schedule = Callable[[torch.optim.Optimizer], Any]

# Every optimizer of torch.optim that dense gradients can be given to, with settings under which five steps stay finite.
OPTIMIZERS: Mapping[str, dict[str, Any]] = {
    "Adam": {"amsgrad": True},
    "AdamW": {},
    "Adamax": {},
    "NAdam": {},
    "RAdam": {},
    "SGD": {"lr": 0.1, "momentum": 0.9, "nesterov": True},
    "RMSprop": {"momentum": 0.9, "centered": True},
    "Adagrad": {},
    "Adadelta": {},
    "ASGD": {},
    "Rprop": {},
    "LBFGS": {"lr": 0.005, "max_iter": 4},
    "Adafactor": {},
    "Muon": {},
}

SCHEDULES: Mapping[str, Schedule] = {
    "LambdaLR": lambda o: lr_scheduler.LambdaLR(o, lambda n: 0.9**n),
    "MultiplicativeLR": lambda o: lr_scheduler.MultiplicativeLR(o, lambda _: 0.9),
    "StepLR": lambda o: lr_scheduler.StepLR(o, 2),
    "MultiStepLR": lambda o: lr_scheduler.MultiStepLR(o, [2, 3]),
    "ConstantLR": lambda o: lr_scheduler.ConstantLR(o),
    "LinearLR": lambda o: lr_scheduler.LinearLR(o),
    "ExponentialLR": lambda o: lr_scheduler.ExponentialLR(o, 0.9),
    "PolynomialLR": lambda o: lr_scheduler.PolynomialLR(o, 20),
    "CosineAnnealingLR": lambda o: lr_scheduler.CosineAnnealingLR(o, 20),
    "SequentialLR": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.ConstantLR(o), lr_scheduler.ExponentialLR(o, 0.9)], [2]
    ),
    "ChainedScheduler": lambda o: lr_scheduler.ChainedScheduler(
        [lr_scheduler.ConstantLR(o), lr_scheduler.ExponentialLR(o, 0.9)]
    ),
    "ReduceLROnPlateau": lambda o: lr_scheduler.ReduceLROnPlateau(o),
    "CyclicLR": lambda o: lr_scheduler.CyclicLR(o, 0.01, 0.1, cycle_momentum=False),
    "CosineAnnealingWarmRestarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 3),
    "OneCycleLR": lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=30, cycle_momentum=False),
    "SWALR": lambda o: swa_utils.SWALR(o, 0.05),
}


class Net(nn.Module):
    """An embedding, a convolution with its norm, two matrices: (batch, length) of tokens to (batch, 5)."""

    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(50, 8, padding_idx=0)
        self.conv = nn.Conv1d(8, 16, 3, padding=1)
        self.bn = nn.BatchNorm1d(16)
        self.fc = nn.Linear(16, 16)
        self.head = nn.Linear(16, 5)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        found = self.emb(tokens).transpose(1, 2)
        found = torch.relu(self.bn(self.conv(found))).mean(-1)
        answer: torch.Tensor = self.head(torch.tanh(self.fc(found)))
        return answer


class Run:
    """A training that can be saved at any time. optimizer: a name of OPTIMIZERS; schedule: of SCHEDULES, or "".

    Tokens are 1 to 39 of 50, so that rows 0 and 40 to 49 of the embedding never have a gradient.
    """

    def __init__(
        self, optimizer: str = "AdamW", schedule: str = "", *, grouped: bool = False, frozen: Iterable[str] = ()
    ) -> None:
        torch.manual_seed(0)
        self.model = Net()
        for name, parameter in self.model.named_parameters():
            parameter.requires_grad_(name not in set(frozen))
        chosen = [p for p in self.model.parameters() if p.requires_grad and (p.ndim == 2 or optimizer != "Muon")]
        groups: list[Any] = chosen
        if grouped and optimizer not in ("LBFGS", "Muon"):
            vectors, others = ([p for p in chosen if (p.ndim < 2) is small] for small in (True, False))
            groups = [{"params": vectors, "weight_decay": 0.0}, {"params": others, "lr": 1e-4}]
        self.optimizer = getattr(torch.optim, optimizer)(groups, **OPTIMIZERS[optimizer])
        self.schedule = SCHEDULES[schedule](self.optimizer) if schedule else None
        self.steps = self.epochs = 0

    def _loss(self) -> torch.Tensor:
        tokens = torch.randint(1, 40, (16, 7), generator=torch.Generator().manual_seed(self.steps))
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(tokens), tokens.sum(1) % 5)
        loss.backward()
        return loss

    def step(self, count: int = 1) -> Run:
        """So many steps of the optimizer."""
        for _ in range(count):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if isinstance(self.optimizer, torch.optim.LBFGS):
                    self.optimizer.step(self._loss)
                else:
                    self._loss()
                    self.optimizer.step()
            self.steps += 1
        return self

    def epoch(self, count: int = 1, *, per: int = 4) -> Run:
        """So many epochs of a few steps, the schedule stepped behind each."""
        for _ in range(count):
            self.step(per)
            if self.schedule is not None:
                plateau = isinstance(self.schedule, lr_scheduler.ReduceLROnPlateau)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    self.schedule.step(*([1.0] if plateau else []))
            self.epochs += 1
        return self

    def saved(self, **more: object) -> dict[str, Any]:
        """As scripts save it; a copy, which may be damaged."""
        found: dict[str, Any] = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "epoch": self.epochs,
            **more,
        }
        if self.schedule is not None:
            found["scheduler"] = self.schedule.state_dict()
        return copied(found)

    def lightning(self) -> dict[str, Any]:
        """As Lightning saves it."""
        return copied(
            {
                "epoch": self.epochs,
                "global_step": self.steps,
                "pytorch-lightning_version": "2.4.0",
                "state_dict": {f"net.{name}": tensor for name, tensor in self.model.state_dict().items()},
                "loops": {},
                "callbacks": {},
                "optimizer_states": [self.optimizer.state_dict()],
                "lr_schedulers": [self.schedule.state_dict()] if self.schedule is not None else [],
                "hyper_parameters": {"lr": 0.1},
            }
        )


def copied(saved: dict[str, Any]) -> dict[str, Any]:
    """A copy through torch.save: shared storages stay shared, and the running model is left alone."""
    stream = io.BytesIO()
    torch.save(saved, stream)
    stream.seek(0)
    found: dict[str, Any] = torch.load(stream, weights_only=False)  # Made a line above.
    return found


def findings(tmp_path: Path, saved: Mapping[str, Any], check: Check[Subject] | None = None) -> tuple[Finding, ...]:
    """What all checks say of it, or one of them."""
    path = tmp_path / "run.pt"
    torch.save(saved, path)
    found = examine(open_checkpoint(path)).findings
    ids = {kind.id for kind in check.kinds} if check is not None else set()
    return tuple(one for one in found if check is None or one.id in ids)


def one(found: tuple[Finding, ...], ident: str) -> Finding:
    """The only finding of that id."""
    matches = [finding for finding in found if finding.id == ident]
    assert len(matches) == 1, [finding.id for finding in found]
    return matches[0]


def loud(found: tuple[Finding, ...]) -> list[str]:
    """Warnings and errors: id and sentence."""
    return [f"{f.id}: {f.says}" for f in found if f.severity in (Severity.WARNING, Severity.ERROR)]
