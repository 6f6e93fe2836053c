"""Which feature maps somebody wants, and how they are drawn. Nothing heavy: options of a command are made of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inspector.doctor.report import CallRecord, Trace

MOST_SHOWN = 64


class Side(StrEnum):
    """Of a module's call."""

    OUTPUT = "output"
    INPUT = "input"


class Order(StrEnum):
    """Of the channels. VARIANCE: the strongest first."""

    VARIANCE = "variance"
    NUMBER = "number"


class Scale(StrEnum):
    """From which value to which the colours go. CHANNEL: of each by itself. SHARED: of all channels together."""

    CHANNEL = "channel"
    SHARED = "shared"


@dataclass(frozen=True, slots=True, kw_only=True)
class MapsAsked:
    """Which tensor of a pass, and which of its channels.

    path: of the module, "" for the model. time: which call of it, from 1; None for the last. tensor: which of several,
    from 0. most: channels that are shown.
    """

    path: str
    time: int | None = None
    side: Side = Side.OUTPUT
    tensor: int = 0
    order: Order = Order.VARIANCE
    most: int = MOST_SHOWN


def proposed_call(trace: Trace) -> CallRecord | None:
    """The last call that gives a map with height and width, to begin with; None where there is none."""
    calls = [call for call in trace.calls if call.ended and call.outputs and len(call.outputs[0].shape) == 4]
    return next((call for call in reversed(calls) if min(call.outputs[0].shape[2:]) > 1), None)
