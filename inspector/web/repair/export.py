"""Writing the repaired file: held against what the visitor gave, with its optimizer where that is wanted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import streamlit as st

from inspector.architectures.types import Target, TargetKind
from inspector.checkpoint.types import StateRole
from inspector.errors import ExportError
from inspector.exports.report import ExportReport
from inspector.keys.report import RepairPlan
from inspector.web import reports, writing
from inspector.web.repair import own_code
from inspector.web.repair.proofs import Against
from inspector.web.session import Hand
from inspector.web.text import plain
from inspector.web.writing import Options


@dataclass(frozen=True, slots=True, kw_only=True)
class _Training:
    """Whether the optimizer is written along; by_kind: the visitor's yes to groups by kind of parameter."""

    optimizer: bool = False
    by_kind: bool = False


def show_export(hand: Hand, plan: RepairPlan, target: Target, asked: str, against: Against) -> None:
    """Choose, write, check, hand out. against: a file is only written if these answers agree, too."""
    options = writing.choose_options()
    training = _ask_training(hand, plan, target)
    if training.optimizer:
        options = Options(writer="pth", dtype="", shard_size="")
    slot = f"written/{hand.sha256}/{asked}/{against}/{options}/{training}"
    export = partial(_export, hand, plan, target, options, training, against)
    stem = f"{writing.stem_of(hand.name)}_repaired"
    writing.write_button(slot, lambda: writing.write(export, options, name="repaired", stem=stem))


def _ask_training(hand: Hand, plan: RepairPlan, target: Target) -> _Training:
    checkpoint = reports.checkpoint_of(hand)
    if not any(s.role is StateRole.OPTIMIZER for s in checkpoint.state_dicts):
        return _Training()
    if not st.checkbox(
        "With its optimizer: one .pth in which the optimizer's state follows the renamed parameters",
        key="optimizer",
        help="A whole training checkpoint, to go on training from; format, type and files above do not apply.",
    ):
        return _Training()
    question = _open_groups(hand, plan, target)
    by_kind = bool(question) and st.checkbox(
        plain(f"The optimizer's groups were made by kind of parameter: {question}"),
        key="optimizer-groups",
        help="Other groups would fit the file as well, and this is what only its author knows.",
    )
    return _Training(optimizer=True, by_kind=by_kind)


def _open_groups(hand: Hand, plan: RepairPlan, target: Target) -> str:
    """What is to be confirmed about the optimizer's groups, "" for nothing."""
    from inspector.exports.optimizer import plan_optimizers

    try:
        with reports.torch_lock:
            goings = plan_optimizers(reports.checkpoint_of(hand), plan, target)
    except ExportError:
        return ""  # Writing says it.
    return "; ".join(going.map.asks for going in goings if going.map.asks)


def _export(
    hand: Hand,
    plan: RepairPlan,
    target: Target,
    options: Options,
    training: _Training,
    against: Against,
    destination: Path,
) -> ExportReport:
    from inspector.exports.export import export_repaired

    if target.kind is TargetKind.CODE:
        own_code.check_agreed(target)
    return export_repaired(
        reports.checkpoint_of(hand),
        plan,
        target,
        destination,
        writer=options.writer,
        dtype=options.dtype or None,
        shard_nbytes=options.shard_nbytes,
        optimizer=training.optimizer,
        groups_by_kind=training.by_kind,
        compared=against.opened(),
    )
