"""For test suites: one assertion that a model holds a file's weights. No plugin, nothing to configure."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn

    from inspector.loaded.choose import Rename
    from inspector.loaded.report import LoadedReport
    from inspector.loaded.weights import Source


def assert_loaded(
    model: nn.Module,
    source: Source,
    *,
    state: str = "",
    rename: Rename | None = None,
    leave_out: Collection[str] = (),
) -> LoadedReport:
    """Fail with the whole report unless every tensor of the model is the file's; the report where it is.

    Arguments as of `inspector.check_loaded`. Raises AssertionError, and ReadError or UsageError as that does.
    """
    from inspector.loaded.check import check_loaded

    # pytest leaves this frame out of what it shows.
    __tracebackhide__ = True
    report = check_loaded(model, source, state=state, rename=rename, leave_out=leave_out)
    if not report.holds:
        raise AssertionError(str(report))
    return report
