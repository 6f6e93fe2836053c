"""Targets, rows and exports of the Repair page."""

from __future__ import annotations

import secrets
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import streamlit as st

from inspector.architectures.types import ArchitectureSpec, Candidate, Target, TargetKind
from inspector.checkpoint.types import StateDict
from inspector.errors import UsageError
from inspector.exports.report import ExportReport
from inspector.findings import Finding
from inspector.keys.report import Ambiguity, Cost, KeyReport, Proof, RepairPlan, RuleUse, Verification
from inspector.units import counted, human_shape
from inspector.web import reports
from inspector.web.session import Hand
from inspector.web.text import escaped, mono, plain
from inspector.web.trees import arrow, badge
from inspector.web.uploads import the_store

_LISTED = 500
_AT_ONCE = 20


def builder_names() -> list[str]:
    """Every architecture that can be named as a target: "torchvision/resnet18"."""
    from inspector.architectures.index import load_index

    return list(load_index().builders)


def named_target(name: str, candidate: Candidate | None) -> Target:
    """A model of the index; classes and input channels follow the file."""
    from inspector.architectures.targets import parse_target

    return parse_target(name, candidate=candidate)


def file_target(other: Hand) -> Target:
    """The names and shapes of another file this session opened."""
    from inspector.architectures.targets import target_of_checkpoint

    return target_of_checkpoint(reports.checkpoint_of(other), other.name)


def pasted_target(text: str) -> Target:
    """One name per line, as `print(*model.state_dict(), sep="\\n")` writes them. Raises UsageError without any."""
    from inspector.architectures.targets import target_of_keys

    names = dict.fromkeys(line.strip() for line in text.splitlines() if line.strip())
    if not names:
        raise UsageError("There is no name in the list.", hint="Paste one key per line.")
    return target_of_keys(tuple(names), "the pasted list")


@dataclass(slots=True)
class Answers:
    """What the visitor accepted and chose for one file and target.

    asked: every question that came up; an answered one is no longer open, but its answer must stay changeable.
    """

    accept: set[str] = field(default_factory=set)
    choose: dict[str, str] = field(default_factory=dict)
    asked: dict[str, Ambiguity] = field(default_factory=dict)

    @property
    def as_key(self) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
        """The same in an order of its own, for caches."""
        return tuple(sorted(self.accept)), tuple(sorted(self.choose.items()))


def answers_for(hand: Hand, state: StateDict, target: Target) -> Answers:
    """The session's answers for this file, state dict and target."""
    slot = f"answers/{hand.sha256}/{state.path}/{target.label}"
    held = st.session_state.setdefault(slot, Answers())
    return held if isinstance(held, Answers) else Answers()


def ask(plan: RepairPlan | None, answers: Answers) -> None:
    """Open questions and lossy rules; a new answer makes a new diagnosis."""
    before = answers.as_key
    answers.asked.update({question.id: question for question in (plan.ambiguities if plan else ())})
    for question in answers.asked.values():
        options = dict(question.options)
        held = answers.choose.get(question.id)
        chosen = st.radio(
            plain(question.question),
            list(options),
            format_func=lambda option, options=options: plain(options[option]),
            index=list(options).index(held) if held in options else None,
            key=f"choose-{question.id}",
        )
        if chosen is not None:
            answers.choose[question.id] = chosen
    waiting = plan.needs_accept if plan else ()
    for use in plan.rules if plan else ():
        # What a choice above already settles needs no second yes.
        if use.id in answers.accept or use.id in waiting:
            why = "changes the weights" if use.cost is Cost.LOSSY else "no name confirms it"
            label = plain(f"Accept: {use.says} ({why})")
            if st.checkbox(label, value=use.id in answers.accept, key=f"accept-{use.id}"):
                answers.accept.add(use.id)
            else:
                answers.accept.discard(use.id)
    if answers.as_key != before:
        st.rerun()


def rule_row(use: RuleUse) -> tuple[str, ...]:
    """One rule with its count and up to three examples, as HTML cells."""
    examples = "<br>".join(arrow(source, target) if target else mono(source, 70) for source, target in use.examples)
    tone = badge("lossless", "info") if use.cost is Cost.LOSSLESS else badge("lossy", "warning")
    return escaped(use.says), tone, f"{use.count:,}", examples


def certificate(plan: RepairPlan) -> str:
    """How many placed tensors rest on what, in one line."""
    return " · ".join(f"{kind.value}: {count:,}" for kind, count in plan.certificate)


def left_over(report: KeyReport, plan: RepairPlan | None) -> list[tuple[str, str]]:
    """(what, names as HTML) of what the plan does not solve; empty when everything is."""
    missing = plan.missing if plan else report.missing
    rows: list[tuple[str, str]] = []
    if missing:
        rows.append((f"{counted(len(missing), 'key')} missing", _names(missing)))
    if plan is None and report.unexpected:
        rows.append((f"{counted(len(report.unexpected), 'key')} unexpected", _names(report.unexpected)))
    if plan is None and report.reshaped:
        shown = [
            f"{mono(name, 60)} {human_shape(have)} in the file, {human_shape(want)} in the target"
            for name, have, want in report.reshaped[:_LISTED]
        ]
        says = f"{counted(len(report.reshaped), 'tensor')} of another shape"
        rows.append((says, _folded(shown, len(report.reshaped), "<br>")))
    return rows


def _names(names: tuple[str, ...]) -> str:
    return _folded([mono(name, 90) for name in names[:_LISTED]], len(names), " ")


def _folded(shown: list[str], total: int, between: str) -> str:
    """The first ones, and the others behind a click; of thousands, some hundreds."""
    first, rest = shown[:_AT_ONCE], shown[_AT_ONCE:]
    if not rest:
        return between.join(first)
    left_out = f"{between}and {total - len(shown):,} more" if total > len(shown) else ""
    return (
        f"{between.join(first)}<details><summary>and {total - _AT_ONCE:,} more</summary>"
        f"{between.join(rest)}{left_out}</details>"
    )


def beside(report: KeyReport) -> list[Finding]:
    """The findings that the page does not say already as answer, question, rule or list of names."""
    plan = report.plan
    said = {report.says, report.refusal, *(a.question for a in (plan.ambiguities if plan else ()))}
    elsewhere = {"missing-tensors", *(use.id for use in (plan.rules if plan else ()))}
    return [f for f in report.findings if f.says not in said and f.id not in elsewhere]


def proof_row(proof: Proof) -> tuple[str, str]:
    """One proof, as HTML cells."""
    word, tone = {True: ("holds", "info"), False: ("fails", "error"), None: ("not possible here", "notice")}[
        proof.passed
    ]
    return badge(word, tone), escaped(proof.says)


@st.cache_resource(max_entries=24, show_spinner="Verifying with a strict load …")
def verified(sha256: str, name: str, _plan: RepairPlan, target: Target, asked: str) -> Verification:
    """asked: what distinguishes this plan from others of the same file and target (accepted rules, choices)."""
    from inspector.keys.verify import verify_plan

    checkpoint = reports.checkpoint_of(Hand(sha256=sha256, name=name))
    with reports.torch_lock:
        return verify_plan(checkpoint, _plan, target)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """An exported file on the server, to be downloaded. path: never a visitor's name."""

    path: Path
    file_name: str
    report: ExportReport


def export(hand: Hand, plan: RepairPlan, target: Target, *, writer: str, dtype: str | None, stem: str) -> Written:
    """Write, read back and verify. Raises ExportError, and then leaves nothing."""
    from inspector.exports.export import export_repaired

    ending = ".safetensors" if writer == "safetensors" else ".pth"
    the_store().sweep()
    folder = the_store().exports / secrets.token_hex(12)
    folder.mkdir(parents=True, mode=0o700)
    destination = folder / f"repaired{ending}"
    report: ExportReport | None = None
    try:
        with reports.torch_lock:
            report = export_repaired(reports.checkpoint_of(hand), plan, target, destination, writer=writer, dtype=dtype)
    finally:
        if report is None:
            shutil.rmtree(folder, ignore_errors=True)
    return Written(path=destination, file_name=f"{stem}{ending}", report=report)


def spec_of(target: Target) -> ArchitectureSpec | None:
    """How to build the target; None for files and key lists."""
    return target.spec if target.kind is TargetKind.ARCHITECTURE else None


def stem_of(name: str) -> str:
    """ "shapes_dp.pth.tar" -> "shapes_dp": the name without the endings that say a format."""
    stem = name
    for _ in range(3):
        base, dot, ending = stem.rpartition(".")
        if not dot or not base or ending.lower() not in _ENDINGS:
            break
        stem = base
    return stem


_ENDINGS = {"pth", "pt", "ckpt", "bin", "th", "tar", "safetensors", "pkl", "model", "zip"}


def writer_ids() -> list[str]:
    """The formats that can be written, in their order."""
    from inspector.exports.writers import WRITERS

    return [writer.id for writer in WRITERS]


def writer_label(writer_id: str) -> str:
    """As a person reads it."""
    return _LABELS.get(writer_id, writer_id)


_LABELS = {"safetensors": ".safetensors", "pth": ".pth", "pth-legacy": ".pth for torch before 1.6"}


def code_of(plan: RepairPlan, name: str) -> str:
    """The Python lines that do the same."""
    from inspector.keys.code import python_code

    return python_code(plan, file_name=name)
