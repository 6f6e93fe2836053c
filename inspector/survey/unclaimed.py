"""Files that are no checkpoints, and what a program that follows them would still run: settings and templates beside a
model, a pickle behind something else."""

from __future__ import annotations

import re
from pathlib import Path

from inspector.checkpoint.source import BufferSource, ByteSource
from inspector.findings import Finding
from inspector.limits import Limits
from inspector.readers.checks.named_code import observe_targets
from inspector.readers.checks.templates import observe_template
from inspector.readers.opening import open_source
from inspector.readers.unpickle.nested.hidden_pickles import buried_pickle, search_buried
from inspector.survey.beginning import Beginning
from inspector.survey.settings_calls import observe_settings
from inspector.survey.spelled import observe_spelled, unescaped

_TEMPLATES = (".jinja", ".jinja2", ".j2", ".template", ".tmpl")
_SETTINGS = (".json", ".yaml", ".yml", ".toml", ".cfg", ".conf")
# They may show a pickle to their readers.
_DOCUMENTS = (".md", ".rst", ".html", ".htm", ".py", ".ipynb", ".tex", ".pdf")
_NBYTES = 8_000_000
_BYTE = re.compile(r"\\x([0-9A-Fa-f]{2})")
_TEXT_NBYTES = 1 << 20


def observe_unclaimed(where: Path | ByteSource, name: str, limits: Limits) -> list[Finding]:
    """Findings about a file that no reader claims. Raises a ReadError when it cannot be read."""
    lower = name.lower()
    source = open_source(where, limits=limits)
    beginning = Beginning(source)
    try:
        found = [] if lower.endswith(_DOCUMENTS) else _buried(source, limits)
        if lower.endswith((*_TEMPLATES, *_SETTINGS)):
            # NeMo builds its model from this file of its archive, whatever it names.
            packed = not isinstance(where, Path) and lower.endswith("model_config.yaml")
            found += _in_text(beginning.text(_NBYTES), name, packed=packed)
        if not found and not lower.endswith((*_DOCUMENTS, *_TEMPLATES)):
            found += _escaped(beginning, limits)
        spelled = observe_spelled(beginning, limits)
        return [*found, spelled] if spelled is not None else found
    finally:
        if isinstance(where, Path):
            source.close()


def _in_text(text: str, name: str, *, packed: bool) -> list[Finding]:
    """packed: the model beside it is built from it without being asked."""
    if not name.lower().endswith(_TEMPLATES):
        text = unescaped(text)
    found: list[Finding | None] = []
    if name.lower().endswith(_TEMPLATES) or "template" in text:
        found.append(observe_template(text, name))
    if "_target_" in text:
        found.append(observe_targets(text, name, strict=packed))
    found += observe_settings(text, name)
    return [finding for finding in found if finding is not None]


def _escaped(beginning: Beginning, limits: Limits) -> list[Finding]:
    """A pickle in a text that spells some of its bytes in escapes, or is of two bytes a letter."""
    text = beginning.text(_TEXT_NBYTES)
    if not beginning.is_wide and "\\" not in text:
        return []
    plain = _BYTE.sub(lambda match: chr(int(match[1], 16)), unescaped(text)).encode("latin-1", "replace")
    return _buried(BufferSource(plain, name=beginning.source.name), limits, "the unescaped text")


def _buried(source: ByteSource, limits: Limits, what: str = "") -> list[Finding]:
    found = search_buried(source, limits)
    if found is None:
        return []
    place = f"{what and f'{what} of '}{source.name[-80:]}"
    then = ": a program that skips what is before it runs that"
    remedy = "pickle.load stops at the first byte of such a file. Nothing was run here."
    return [buried_pickle(found, place, then, remedy=remedy)]
