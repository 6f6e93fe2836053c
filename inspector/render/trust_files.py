"""The numbers of trust as a table for a spreadsheet: every value, every point of a curve, a row each."""

from __future__ import annotations

import csv
import io

from inspector.cam.trust.assess import Trust

COLUMNS = ("kind", "measure", "of", "x", "value")


def trust_csv(trust: Trust) -> str:
    """kind: "value" (no x), "curve" (x: share of pixels), "randomised" (x: modules replaced, of: the last of them),
    "agreement" (measure, of: the two methods). Numbers that are none are empty."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    for row in trust.rows:
        rows.writerows(("value", measure, row.of, "", _number(value)) for measure, value in row.values)
    for row in trust.rows:
        for measure, points in row.curves:
            rows.writerows(("curve", measure, row.of, _number(x), _number(y)) for x, y in points)
    for stage in trust.stages:
        rows.writerow(
            ("randomised", "rank-correlation", _text(stage.down_to), stage.modules, _number(stage.correlation))
        )
    if trust.agreement is not None:
        methods = trust.agreement.methods
        for one, values in zip(methods, trust.agreement.correlations, strict=True):
            rows.writerows(("agreement", one, other, "", _number(v)) for other, v in zip(methods, values, strict=True))
    return text.getvalue()


def _text(name: str) -> str:
    """A name of a module, that no spreadsheet takes for a formula."""
    return f"'{name}" if name.startswith(("=", "+", "-", "@", "\t", "\r")) else name


def _number(value: float) -> str:
    return "" if value != value else repr(float(value))
