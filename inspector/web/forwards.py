"""What the Architecture page asks about one forward pass: of a known architecture, or of what one's own code builds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from inspector.architectures.types import ArchitectureSpec
from inspector.flops.memory_report import MemoryReport
from inspector.flops.report import CostReport
from inspector.flops.timing_report import TimingReport
from inspector.graph.types import Drawn
from inspector.jobs.job import Job
from inspector.web import jobs, own_code, reports


class Forward(Protocol):
    """One pass with one input. Each method asks the workers, and raises what they raise."""

    @property
    def key(self) -> str:
        """Of the network, its input and its batch, for what is kept about it."""

    def costs(self, *, real: bool = False) -> CostReport:
        """real: with random numbers."""

    def drawn(self) -> Drawn:
        """The boxes of its graph."""

    def memory(self, optimizer: str, precision: str) -> MemoryReport:
        """The peak of one pass, or of a step with an optimizer."""

    def timing(self) -> TimingReport:
        """Measured on the server."""


@dataclass(frozen=True, slots=True)
class Known:
    """Of an architecture that can be built."""

    spec: ArchitectureSpec
    size: tuple[int, ...] | None
    batch: int

    @property
    def key(self) -> str:
        return f"{self.spec.label}-{self.size}-{self.batch}"

    def costs(self, *, real: bool = False) -> CostReport:
        return reports.costs_of(self.spec, self.size, self.batch, real=real)

    def drawn(self) -> Drawn:
        found: Drawn = jobs.ask(Job(kind="drawing", arguments=(self.spec, self.size)), says="Following one pass")
        return found

    def memory(self, optimizer: str, precision: str) -> MemoryReport:
        job = Job(kind="memory", arguments=(self.spec, self.size, self.batch, (optimizer, precision)))
        found: MemoryReport = jobs.ask(job, says="Following what is held")
        return found

    def timing(self) -> TimingReport:
        job = Job(kind="timing", arguments=(self.spec, self.size, self.batch))
        found: TimingReport = jobs.ask(job, says="Timing the modules")
        return found


@dataclass(frozen=True, slots=True)
class Own:
    """Of what a person's code builds, which that person agreed to run. size: None for what its layers seem to take."""

    source: own_code.Source
    size: tuple[int, ...] | None
    batch: int

    @property
    def key(self) -> str:
        return f"{self.source.factory.text}-{self.source.sha256[:12]}-{self.size}-{self.batch}"

    def costs(self, *, real: bool = False) -> CostReport:
        return self._report("random" if real else "", None, False)

    def drawn(self) -> Drawn:
        found: Drawn = own_code.report("code-drawing", self.source, self.size)
        return found

    def memory(self, optimizer: str, precision: str) -> MemoryReport:
        found = self._report("", (optimizer, precision), False).memory
        assert found is not None
        return found

    def timing(self) -> TimingReport:
        found = self._report("random", None, True).timing
        assert found is not None
        return found

    def _report(self, values: str, memory: tuple[str, str] | None, timed: bool) -> CostReport:
        found: CostReport = own_code.report("code-costs", self.source, self.size, self.batch, values, memory, timed)
        return found
