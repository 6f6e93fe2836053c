"""A card as the hub's README with its metadata block, and as a CycloneDX 1.6 bill of materials."""

from __future__ import annotations

import json
import re
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from inspector.cards.report import CardReport
from inspector.findings import Finding
from inspector.installed import own_version
from inspector.render.visible import visible
from inspector.units import counted, human_bytes, human_count, shorten_middle

_LISTED, _WIDEST = 20, 120
# What the hub calls the libraries that it knows by a name of their own.
_HUB_LIBRARIES = {"timm": "timm", "transformers": "transformers", "diffusers": "diffusers"}


def card_markdown(card: CardReport) -> str:
    """README.md for a model hub: metadata block first, then what the file shows and what it does not."""
    lines = [*_metadata(card), "", f"# {_plain(card.name)}", "", _first_sentence(card), ""]
    lines += ["| | |", "| --- | --- |", *(f"| {label} | {_cell(value)} |" for label, value in _facts(card)), ""]
    lines += ["## Files", "", "| File | Size | SHA-256 |", "| --- | --- | --- |"]
    lines += [f"| {_cell(f.name)} | {human_bytes(f.nbytes)} | `{f.sha256 or 'not read'}` |" for f in card.files]
    lines += [f"\nNot read: {_plain(what)}." for what in card.skipped]
    if card.metadata:
        lines += ["", "## What the file says of itself", "", "| What | Value |", "| --- | --- |"]
        lines += [f"| {_cell(key)} | {_cell(value)} |" for key, value in card.metadata[:_LISTED]]
        if len(card.metadata) > _LISTED:
            lines.append(f"| and {len(card.metadata) - _LISTED:,} more | |")
    lines += ["", "## Noticed", "", *(_noticed(card.findings) or ["Nothing in the headers."])]
    if card.signature is not None:
        lines += ["", "## Signature", "", _plain(card.signature.says)]
    lines += ["", "## Not known from the file", "", f"{', '.join(card.unknown)}: to be filled in by its author.", ""]
    return "\n".join(lines)


def _metadata(card: CardReport) -> list[str]:
    """The block between two rules; values as JSON, which YAML takes."""
    pairs: list[tuple[str, object]] = []
    if card.model is not None:
        library = _HUB_LIBRARIES.get(card.model.library)
        pairs += [("library_name", library)] if library else []
        pairs += [("pipeline_tag", card.model.task)] if card.model.task else []
        pairs.append(("tags", [card.model.library, card.model.name]))
    return ["---", *(f"{key}: {json.dumps(value)}" for key, value in pairs), "---"]


def _first_sentence(card: CardReport) -> str:
    if card.part:
        return _plain(card.part)
    if card.model is not None:
        return _plain(card.model.says)
    return _plain(card.near) if card.near else "No known architecture was recognised in it."


def _facts(card: CardReport) -> list[tuple[str, str]]:
    types = ", ".join(f"{dtype} ({human_count(n)})" for dtype, n in card.dtypes)
    facts = [
        ("Architecture", card.model.label if card.model else ""),
        ("Published as", card.model.official if card.model else ""),
        ("Parameters", f"{card.parameters:,} ({human_count(card.parameters)})" if card.parameters else ""),
        ("Buffers", f"{card.buffers:,} elements" if card.buffers else ""),
        ("Element types", types),
        ("Tensors", f"{card.tensors:,}"),
        ("Format", card.format),
        ("Written by", card.producer),
    ]
    return [(label, value) for label, value in facts if value]


def _noticed(findings: tuple[Finding, ...]) -> list[str]:
    lines = [f"- **{f.severity.value}** {_plain(f.says)}" for f in findings[:_LISTED]]
    more = len(findings) - _LISTED
    return [*lines, f"- and {counted(more, 'more', 'more')}"] if more > 0 else lines


def _plain(text: str) -> str:
    """Text from a file as Markdown shows it, and nothing else. An underscore inside a word marks nothing."""
    shown = " ".join(visible(text).split())
    return re.sub(r"[\\`*\[\]<>#|&~]|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])", r"\\\g<0>", shown)


def _cell(text: str) -> str:
    """Not longer than a line of a table bears."""
    return _plain(shorten_middle(text, _WIDEST))


def card_cyclonedx(card: CardReport) -> dict[str, Any]:
    """CycloneDX 1.6 JSON (https://cyclonedx.org/docs/1.6/json): one component of type machine-learning-model.

    No timestamp, and a serial number from the digests: the same file gives the same document.
    """
    serial = uuid5(NAMESPACE_URL, "|".join(f.sha256 or f.name for f in card.files) or card.name)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {
            "tools": {
                "components": [{"type": "application", "name": "model-inspector", "version": own_version()}],
            },
        },
        "components": [_component(card)],
    }


def _component(card: CardReport) -> dict[str, Any]:
    component: dict[str, Any] = {"type": "machine-learning-model", "bom-ref": "model", "name": visible(card.name)}
    if len(card.files) == 1 and card.files[0].sha256:
        component["hashes"] = [{"alg": "SHA-256", "content": card.files[0].sha256}]
    elif len(card.files) > 1:
        component["components"] = [
            {
                "type": "file",
                "bom-ref": f"file-{n}",
                "name": visible(file.name),
                **({"hashes": [{"alg": "SHA-256", "content": file.sha256}]} if file.sha256 else {}),
            }
            for n, file in enumerate(card.files)
        ]
    parameters: dict[str, Any] = {}
    if card.model is not None:
        parameters["modelArchitecture"] = card.model.label
        parameters["architectureFamily"] = card.model.name
        if card.model.task:
            parameters["task"] = card.model.task
    if parameters:
        component["modelCard"] = {"modelParameters": parameters}
    component["properties"] = [{"name": f"model-inspector:{name}", "value": value} for name, value in _properties(card)]
    return component


def _properties(card: CardReport) -> list[tuple[str, str]]:
    found = [
        ("format", card.format),
        ("producer", card.producer),
        ("nbytes", str(sum(f.nbytes for f in card.files))),
        ("tensors", str(card.tensors)),
        ("parameters", str(card.parameters)),
        ("buffers", str(card.buffers)),
        *((f"elements:{dtype}", str(n)) for dtype, n in card.dtypes),
        *((f"finding:{f.id}", f"{f.severity.value}: {f.says}") for f in card.findings[:_LISTED]),
    ]
    if card.signature is not None:
        found.append(("signature", card.signature.says))
    return [(visible(name), visible(value)) for name, value in found if value]
