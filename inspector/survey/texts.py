"""Settings and templates that lie beside checkpoints: what a program that follows them would run."""

from __future__ import annotations

import re
from pathlib import Path

from inspector.checkpoint.source import ByteSource
from inspector.findings import Finding
from inspector.readers.noticed.named_code import observe_targets, observe_template
from inspector.readers.opening import open_source

_TEMPLATES = (".jinja", ".jinja2", ".j2", ".template", ".tmpl")
_SETTINGS = (".json", ".yaml", ".yml", ".toml", ".cfg", ".conf")
_NBYTES = 8_000_000
_ESCAPED = re.compile(r"\\u([0-9A-Fa-f]{4})")


def observe_text(where: Path | ByteSource, name: str) -> list[Finding]:
    """Findings about a text that is no checkpoint, by its name. Raises a ReadError when it cannot be read."""
    lower = name.lower()
    if not lower.endswith((*_TEMPLATES, *_SETTINGS)):
        return []
    source = open_source(where)
    try:
        text = source.read(0, min(source.size, _NBYTES)).decode("utf-8", "replace")
    finally:
        if isinstance(where, Path):
            source.close()
    if lower.endswith(_SETTINGS):
        text = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
    found: list[Finding | None] = []
    if lower.endswith(_TEMPLATES) or "template" in text:
        found.append(observe_template(text, name))
    if "_target_" in text:
        found.append(observe_targets(text, name))
    return [finding for finding in found if finding is not None]
