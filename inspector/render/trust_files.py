"""The numbers of trust as a table for a spreadsheet: every value, every point of a curve, a row each."""

from __future__ import annotations

from inspector.cam.trust.assess import Trust
from inspector.render.spreadsheet import Cell, csv_text

COLUMNS = ("kind", "measure", "of", "x", "value")


def trust_csv(trust: Trust) -> str:
    """kind: "value" (no x), "spread" (likewise, of several draws of noise), "curve" (x: share of pixels),
    "randomised" (x: modules replaced, of: the last of them), "agreement" (measure, of: the two methods). Numbers that
    are none are empty."""
    rows: list[tuple[Cell, ...]] = []
    for row in trust.rows:
        rows += [("value", measure, row.of, None, value) for measure, value in row.values]
        rows += [("spread", measure, row.of, None, value) for measure, value in row.spreads]
    for row in trust.rows:
        for measure, points in row.curves:
            rows += [("curve", measure, row.of, x, y) for x, y in points]
    rows += [("randomised", "rank-correlation", s.down_to, s.modules, s.correlation) for s in trust.stages]
    if trust.agreement is not None:
        methods = trust.agreement.methods
        for one, values in zip(methods, trust.agreement.correlations, strict=True):
            rows += [("agreement", one, other, None, value) for other, value in zip(methods, values, strict=True)]
    return csv_text(COLUMNS, rows)
