"""docs/health.md: what is checked of the numbers, what weights alone cannot tell, and every threshold.

A threshold's meaning is the comment above it, its findings are those of the checks whose code names it.
"""

from __future__ import annotations

import dataclasses
import importlib
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from inspector.findings import FindingKind
from inspector.health.checks import CHECKS
from inspector.health.spectrum_findings import SPECTRUM_KINDS
from inspector.health.thresholds import DEFAULTS, Thresholds

HEALTH = Path(__file__).resolve().parents[1] / "inspector" / "health"
_FIELD = re.compile(r"((?:    #: .*\n)+)    (\w+): ")
_USE = re.compile(r"\b(?:limits|thresholds)\.(\w+)")
# It tells many checks where not to look, each by the threshold that the check goes by itself.
_FOR_MANY = "screens"
_IMPORT = re.compile(r"from inspector\.health\.([\w.]+) import")
_MORE = 4


def _explains() -> str:
    kinds = (kind for check in CHECKS for kind in check.kinds if kind.explains)
    return "\n".join(f"- `{kind.id}`: {', '.join(f'`{one}`' for one in kind.explains)}" for kind in kinds)


_TEXT = f"""# Health of a checkpoint's numbers

Every number of a file is read once, a tensor at a time; then {len(CHECKS)} checks ask what was measured. The Weights
page shows what they found, `stats` prints it, `check` gates by it, `examine` gives it to Python. Nothing is run.

## What is checked

- **Numbers**: NaN and infinity, weights that are constant, too large, unlike their like or not spread around zero,
  values that a cast to float16 would lose, clipped and sparse tensors, stretches as a broken download or disk leaves
  them.
- **Layers**: outputs that are dead, repeated or far stronger than their neighbours, layers that are copies of each
  other, layers still as they were initialised, batch norms that never saw data or whose variance, scale or shift is
  off, embeddings with rows that were never trained.
- **Parts that belong together**: averaged weights beside the trained ones, tied weights, the two halves of an
  adapter, packed and re-parametrised weights.
- **Training**: an optimizer's moments against its parameters, steps and counters, gradient scalers, what is missing
  to resume.
- **Spectra**, where they are asked for (the button "Spectrum" at a tensor, `stats --spectra`, `check --spectra`):
  spectral norm, stable rank, effective rank and the exponent alpha of a power law. They cost a hundred times what all
  other checks do. What alpha says of a network is contested.

A check knows what a tensor is for (its role, from its name, shape, type and neighbours) and leaves alone what it does
not know. Each finding says its number, its threshold and when it is harmless; [findings.md](findings.md) lists them.

What one finding explains is not said a second time of the same tensors:

{_explains()}

## What is left out

A report says what nobody looked at and why (`not_examined`): tensors without numbers of their own (quantised blocks,
sparse ones), those that could not be read, and what a check passed over for its size: a closer look at more than 8
million elements, near copies among more than 1,024 rows, comparing bytes beyond `compared_nbytes`, spectra of more
than 67 million elements. With a shorter side above 4,096 a matrix has a norm and a stable rank alone.

**Weights alone do not tell** how accurate a network is, whether it over-fits, was poisoned or has forgotten
something, and what becomes of real data on the way; for that there are `trace` and heat maps. A file without findings
is not proved good.

## Leaving findings out, changing thresholds

On the Weights page "Muted" leaves a kind out, and stands in the address of the page. `check` takes `--ignore` and
`--select`, and `inspector.toml` for a project, by path if need be ([check.md](check.md)):

```toml
[check]
ignore = ["sparse-weights"]

[thresholds]
large = 5000.0
dead_warning = 0.05
```

Whoever selects a kind that another explains hears of that one too; to leave out the one that explains does not bring
the explained back.

In Python: `examine(checkpoint, thresholds=Thresholds(large=5000.0))`.

## Thresholds

| Name | Default | What it is | Findings of the check that goes by it |
| --- | --- | --- | --- |
"""


def health_page() -> str:
    """Markdown. Raises LookupError for a threshold without a comment, or that no check names."""
    says = {
        name: " ".join(line.strip().removeprefix("#: ") for line in lines.splitlines())
        for lines, name in _FIELD.findall((HEALTH / "thresholds.py").read_text(encoding="utf-8"))
    }
    users = _users()
    rows = []
    for field in dataclasses.fields(Thresholds):
        if field.name not in says or not users[field.name]:
            raise LookupError(f"{field.name}: a threshold needs a comment (#:) above it and a check that goes by it.")
        ids = sorted(f"`{kind.id}`" for kind in users[field.name])
        shown = ", ".join(ids[:_MORE]) + (f" and {len(ids) - _MORE} more" if len(ids) > _MORE else "")
        rows.append(f"| `{field.name}` | {_shown(getattr(DEFAULTS, field.name))} | {says[field.name]} | {shown} |")
    return _TEXT + "\n".join(rows) + "\n"


def _shown(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if value < 1e6 else f"{value:.0e}"


def _users() -> dict[str, set[FindingKind]]:
    """Threshold -> kinds of the checks whose file, or one that it leans on, names it."""
    texts = {
        path.relative_to(HEALTH).with_suffix("").as_posix(): path.read_text("utf-8") for path in HEALTH.rglob("*.py")
    }
    named = {module: set(_USE.findall(text)) for module, text in texts.items()}
    users: dict[str, set[FindingKind]] = defaultdict(set)
    for module in texts:
        kinds = _kinds(module)
        for other in _below(module, texts) if kinds else ():
            for name in named[other]:
                users[name].update(kinds)
    return users


def _below(module: str, texts: Mapping[str, str]) -> set[str]:
    """The module, and those of health that it imports, and what these import."""
    found, left = set[str](), [module]
    while left:
        one = left.pop()
        if one in texts and one not in found and one != _FOR_MANY:
            found.add(one)
            left += [name.replace(".", "/") for name in _IMPORT.findall(texts[one])]
    return found


def _kinds(module: str) -> tuple[FindingKind, ...]:
    if module == "spectrum_findings":
        return SPECTRUM_KINDS
    if not module.startswith("checks/") or module.endswith("__init__"):
        return ()
    kinds: tuple[FindingKind, ...] = importlib.import_module(f"inspector.health.{module.replace('/', '.')}").CHECK.kinds
    return kinds
