"""Settings in text that make their loader import or call: tags of YAML, jsonpickle's keys, a repository's own code.

Sources: PyYAML's constructor (yaml.unsafe_load), jsonpickle's tags, transformers' dynamic_module_utils (auto_map).
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from inspector.checkpoint.types import GlobalVerdict
from inspector.findings import Finding, FindingKind, Severity
from inspector.readers.unpickle.globals.verdicts import judge
from inspector.units import counted

TAGGED_CALL = FindingKind(
    "tagged-call", Severity.WARNING, "Settings name calls that a loader makes", also=(Severity.ERROR,)
)
REPOSITORY_CODE = FindingKind("repository-code", Severity.NOTICE, "The config names code of the repository")

_TAG = re.compile(r"!\S{0,60}?(?:object/apply|object/new|object|name|module):([A-Za-z_][\w.]{0,300})")
_DIRECTIVE = re.compile(r"^%TAG\s+\S+\s+\S*python/", re.MULTILINE)
_JSONPICKLE = re.compile(r"\"py/(object|type|class|function|mod|repr)\"\s*:\s*[\[{\s]*\"?([^\"\]}]{0,300})")
_AUTO_MAP = re.compile(r"\"auto_map\"\s*:\s*\{([^{}]{0,4000})\}")
_TARGET = re.compile(r":\s*\[?\s*\"([^\"]{1,200})\"")


def observe_settings(text: str, name: str) -> list[Finding]:
    """Findings about a settings file. text: with its escapes taken off."""
    lower = name.lower()
    found: list[Finding | None] = []
    # YAML reads JSON too, and tags in it.
    if lower.endswith((".yaml", ".yml")) or "!!python/" in text:
        found.append(_tags(text, name))
    if '"py/' in text:
        found.append(_jsonpickle(text, name))
    if lower.endswith(".json") and '"auto_map"' in text:
        found.append(_auto_map(text, name))
    return [finding for finding in found if finding is not None]


def _tags(text: str, name: str) -> Finding | None:
    # A tag is part of an address, and may spell its letters as %6f.
    lines = unquote(text) if "%" in text else text
    names = _TAG.findall(lines) if "!" in lines else []
    if _DIRECTIVE.search(lines):
        names += re.findall(r"!\S*?([A-Za-z_][\w.]+)", lines)
    return _called(names, name, "tags", "yaml.unsafe_load, and yaml.load of PyYAML before 5.1, make")


def _jsonpickle(text: str, name: str) -> Finding | None:
    pairs = _JSONPICKLE.findall(text)
    names = [value.replace("/", ".") if kind == "repr" else value for kind, value in pairs if "." in value]
    if any(kind == "repr" for kind, _ in pairs):
        names.insert(0, "builtins.eval")
    return _called(names, name, "keys of jsonpickle", "jsonpickle.decode makes")


def _called(names: list[str], name: str, what: str, who: str) -> Finding | None:
    """The finding about names that a loader would import, None when all are known."""
    verdicts = {full: judge(*full.strip(".").rpartition(".")[::2])[0] for full in dict.fromkeys(names) if full}
    bad = [full for full, verdict in verdicts.items() if verdict is GlobalVerdict.DANGEROUS]
    others = [full for full, verdict in verdicts.items() if verdict is GlobalVerdict.UNKNOWN]
    if not bad and not others:
        return None
    shown = bad or others
    return TAGGED_CALL.found(
        f"{name[:80]} has {what} that name {', '.join(full[:80] for full in shown[:3])}: {who} such calls.",
        severity=Severity.ERROR if bad else Severity.WARNING,
        subjects=tuple(full[:200] for full in shown[:20]),
        evidence=(("names", len(shown)),),
        remedy="Read it with yaml.safe_load or json. Nothing was called here.",
    )


def _auto_map(text: str, name: str) -> Finding | None:
    classes = [target for match in _AUTO_MAP.findall(text) for target in _TARGET.findall(match)]
    if not classes:
        return None
    return REPOSITORY_CODE.found(
        f"{name[:80]} names {counted(len(classes), 'class', 'classes')} of the repository's own code, first "
        f"{classes[0][:80]}: transformers imports that code with trust_remote_code=True.",
        subjects=tuple(classes[:20]),
        evidence=(("classes", len(classes)),),
        remedy="Read the code before you allow it; without trust_remote_code nothing of it is run.",
    )
