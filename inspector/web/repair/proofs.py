"""The verification, and what the visitor gives to hold the repair against."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from inspector.architectures.types import Target, TargetKind
from inspector.jobs.job import Job
from inspector.jobs.subjects import Held
from inspector.keys.report import RepairPlan, Verification
from inspector.web import jobs, own_code, reports, session
from inspector.web.server_paths import server_root
from inspector.web.session import Hand


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """Files of this session: one that loads into the target, and one with an input and its output."""

    reference: Hand | None = None
    pair: Hand | None = None

    def held_for(self, target: Target) -> Held:
        """The same as jobs know it, with the folder that the target's code runs in, where it is code.

        Raises ReadError for a file that is gone, UsageError for code that changed since it was agreed to.
        """
        return Held(
            reference=reports.file_of(self.reference) if self.reference else None,
            pair=reports.file_of(self.pair) if self.pair else None,
            folder=own_code.folder_of(target) if target.kind is TargetKind.CODE else server_root(),
        )


def ask_against(hand: Hand) -> Against:
    """What else to verify with; nothing where the session has no other file."""
    others = [r.hand for r in session.recent() if r.hand.sha256 != hand.sha256]
    with st.expander("Hold it against a file you trust", icon=":material/balance:"):
        if not others:
            st.caption(
                "Open a file of this network that works, or a pair (.npz, .pt, .safetensors with the tensors input and "
                "output) on the Open page, then come back: the answers are compared bit for bit."
            )
            return Against()
        left, right = st.columns(2)
        reference = left.selectbox(
            "A file that works",
            range(len(others)),
            index=None,
            format_func=lambda i: others[i].name,
            placeholder="none",
            key="reference",
        )
        pair = right.selectbox(
            "An input with its output",
            range(len(others)),
            index=None,
            format_func=lambda i: others[i].name,
            placeholder="none",
            key="pair",
        )
        return Against(
            reference=others[reference] if reference is not None else None,
            pair=others[pair] if pair is not None else None,
        )


def verified(hand: Hand, plan: RepairPlan, target: Target, asked: str, against: Against) -> Verification:
    """Every proof, computed once. asked: what tells this plan from others of the same file and target.

    Raises UsageError for a reference or pair that is none, and for code that changed since it was agreed to.
    """
    found: Verification = jobs.ask(verify_job(hand, plan, target, asked, against), says="Verifying with a strict load")
    return found


def verify_job(hand: Hand, plan: RepairPlan, target: Target, asked: str, against: Against) -> Job:
    """What `verified` asks for. Raises as it does."""
    file, held = reports.file_of(hand), against.held_for(target)
    return Job(
        kind="verify",
        arguments=(file, plan, target, held),
        known_by=(file, asked, reports.target_key(target), held),
        near=hand.sha256,
    )
