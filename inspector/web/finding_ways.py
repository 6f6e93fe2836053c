"""Findings with the way to what they speak of: a tensor's numbers, the repair, the code that a file names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import streamlit as st

from inspector.checkpoint.types import Checkpoint
from inspector.errors import InspectorError
from inspector.findings import Finding, Severity, ranked
from inspector.health.checks.non_finite import NON_FINITE
from inspector.health.report import HealthReport
from inspector.readers.checks.torch_versions import WEIGHTS_ONLY_REFUSES
from inspector.readers.checks.truncation import CUT_SHORT, DAMAGED_DIRECTORY
from inspector.readers.formats.script.findings import TORCHSCRIPT
from inspector.readers.formats.script.model_json import TORCHSCRIPT_LEGACY
from inspector.readers.formats.torch_package import TORCH_PACKAGE
from inspector.readers.single_file import OPENED_INSIDE
from inspector.units import shorten_middle
from inspector.web import addresses, next_steps, reports, states
from inspector.web.components import finding_cards
from inspector.web.session import NAME_QUERY, QUERY, TENSOR_QUERY, Hand
from inspector.web.text import plain

_ROWS = 12
_CUT = (CUT_SHORT.id, DAMAGED_DIRECTORY.id)
# What tells to convert it here.
_TAKEN_OUT = (WEIGHTS_ONLY_REFUSES.id, TORCHSCRIPT.id, TORCHSCRIPT_LEGACY.id, TORCH_PACKAGE.id)
_TENSORS = 3
_LONGEST = 200  # characters of a name that an address carries


def draw_findings(
    hand: Hand, checkpoint: Checkpoint, findings: Iterable[Finding], measured: HealthReport | None
) -> None:
    """Worst first, the first of them each with its links. measured: what its numbers say, where they were read."""
    listed = ranked(findings)
    of_keys = _ids_of_keys(hand, checkpoint)
    of_numbers = {f.id for f in measured.findings} if measured is not None else set()
    state = states.meant_state(checkpoint) or checkpoint.weights
    tensors = {t.name for t in state.tensors} if state is not None else set()
    code = {use.name for use in checkpoint.globals}
    for n, finding in enumerate(listed[:_ROWS]):
        with st.container(gap=None, key=f"finding-{n}"):
            finding_cards([finding])
            if finding.id == OPENED_INSIDE.id and finding.severity is Severity.NOTICE:
                addresses.offer_others(hand)
            if finding.id in _TAKEN_OUT and state is not None:
                next_steps.link_to_weights()
            named = [name for name in finding.subjects if name in tensors and len(name) <= _LONGEST][:_TENSORS]
            if finding.id == NON_FINITE.id and finding.severity is Severity.ERROR and state is not None:
                next_steps.link_without_broken(hand)
            if finding.id in _CUT:
                with st.container(horizontal=True, gap="small"):
                    next_steps.link_to_salvage(hand)
                    _link("pages/repair.py", "Repair the part that is whole", "build", {})
            elif finding.id in of_keys:
                _link("pages/repair.py", "Repair", "build", {})
            elif code.intersection(finding.subjects):
                _link("pages/contents.py", "Contents", "account_tree", {})
            elif named:
                page = "pages/weights.py" if finding.id in of_numbers else "pages/tensors.py"
                with st.container(horizontal=True, gap="small"):
                    for name in named:
                        _link(
                            page,
                            plain(shorten_middle(name, 40)),
                            "data_array",
                            {QUERY: hand.sha256, NAME_QUERY: hand.name, TENSOR_QUERY: name},
                        )
    finding_cards(listed[_ROWS:])


def _link(page: str, label: str, icon: str, query: dict[str, Any]) -> None:
    st.page_link(page, label=label, icon=f":material/{icon}:", query_params=query or None)


def _ids_of_keys(hand: Hand, checkpoint: Checkpoint) -> set[str]:
    """Of what the Repair page speaks of."""
    if checkpoint.weights is None:
        return set()
    target = reports.own_target(hand)
    try:
        return {f.id for f in reports.keys_of(hand, target).findings} if target is not None else set()
    except InspectorError:
        return set()
