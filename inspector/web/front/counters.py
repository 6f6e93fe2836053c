"""What the server counts, in Prometheus' text form.

https://prometheus.io/docs/instrumenting/exposition_formats/ (version 0.0.4)
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(slots=True, kw_only=True)
class Counters:
    """Totals by name and labels, and gauges that are asked when somebody reads them. Its methods may be called from
    several threads. Labels come from us and are few: never a visitor's word."""

    totals: dict[str, dict[tuple[tuple[str, str], ...], float]] = field(default_factory=dict)
    gauges: dict[str, Callable[[], float]] = field(default_factory=dict)
    helps: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def declare(self, name: str, says: str) -> None:
        """A total by its name and what it counts."""
        self.helps[name] = says
        self.totals.setdefault(name, {})

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        """To a total that was declared."""
        key = tuple(sorted(labels.items()))
        with self._lock:
            series = self.totals[name]
            series[key] = series.get(key, 0) + amount

    def gauge(self, name: str, says: str, value: Callable[[], float]) -> None:
        """A number as it is now."""
        self.helps[name], self.gauges[name] = says, value

    def text(self) -> str:
        """All of them."""
        with self._lock:
            totals = {name: dict(series) for name, series in self.totals.items()}
        lines: list[str] = []
        for name, series in totals.items():
            lines += [f"# HELP {name} {self.helps[name]}", f"# TYPE {name} counter"]
            lines += [f"{name}{_braced(labels)} {_plain(value)}" for labels, value in sorted(series.items())]
        for name, value in self.gauges.items():
            lines += [f"# HELP {name} {self.helps[name]}", f"# TYPE {name} gauge", f"{name} {_plain(value())}"]
        return "\n".join(lines) + "\n"


def _braced(labels: tuple[tuple[str, str], ...]) -> str:
    if not labels:
        return ""
    said = ((name, value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")) for name, value in labels)
    return "{" + ",".join(f'{name}="{value}"' for name, value in said) + "}"


def _plain(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.6f}"


# Of this process; the parts of the server declare their own beside what they count.
counters = Counters()
