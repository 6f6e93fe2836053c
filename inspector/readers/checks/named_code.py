"""Code that text names or spells: settings that call functions, pickles in metadata.

Text runs nothing by itself. But programs call what `_target_` names (Hydra, NeMo), and some
decode what they find; so what such text would run is told, and of what nothing runs it is said why.
Source: CVE-2025-23304 (targets in NeMo's settings).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence

from inspector.checkpoint.types import GlobalVerdict
from inspector.checkpoint.values import Value, ValueKind
from inspector.findings import Finding, FindingKind, Severity
from inspector.limits import Limits
from inspector.readers.checks.templates import observe_template
from inspector.readers.unpickle.globals.verdicts import judge
from inspector.readers.unpickle.machine.machine import calls_importable
from inspector.readers.unpickle.nested.encoded import decodings, may_hide_pickle
from inspector.readers.unpickle.unpickling import unpickle_bytes
from inspector.units import counted

CONFIGURED_CALL = FindingKind("configured-call", Severity.ERROR, "Settings ask for calls that no model needs")
PICKLE_IN_METADATA = FindingKind(
    "pickle-in-metadata", Severity.NOTICE, "A pickle in the metadata", also=(Severity.WARNING, Severity.ERROR)
)
PROGRAM_IN_TEXT = FindingKind("program-in-text", Severity.INFO, "Text of the file is a program")
PROGRAM_IN_METADATA = FindingKind("program-in-metadata", Severity.INFO, "The metadata hold program text")
ADDRESS_IN_METADATA = FindingKind("address-in-metadata", Severity.INFO, "The metadata hold an address")

_LISTED = 20
_TRIAL_OPCODES = 100_000
_TRIAL_NBYTES = 4 << 20
_TARGET = re.compile(r"""["']?_target_["']?\s*[:=]\s*["']?([^\s"',}\]#]{1,300})""")
# Hydra's own look a name up and do not call it.
_HARMLESS_TARGETS = frozenset(
    {
        *("functools.partial", "os.path.join", "os.path.expanduser", "pathlib.Path", "collections.OrderedDict"),
        *("math.sqrt", "os.getenv", "os.environ.get"),
        *("hydra.utils.get_method", "hydra.utils.get_class", "hydra.utils.get_object", "hydra.utils.get_static_method"),
    }
)
# What fetches a model or data by a name, or opens tables: training settings are full of it.
_LOADS = re.compile(
    r"(\w+\.)+(from_pretrained|load_from_checkpoint)|(transformers|datasets|huggingface_hub|spacy|mlflow|pandas|sklearn|keras"
    r"|tensorflow|fsspec|safetensors|omegaconf|PIL|torchvision)(\.\w+)+"
)
_SCRIPT = re.compile(
    r"<script|javascript:|\bon(?:error|load|click|focus|mouse\w+)\s*=|<iframe|\bimport\s+(?:os|sys|subprocess|socket|ctypes|builtins)\b"
    r"|\b(?:eval|exec|__import__|system|popen)\s*\(|\b(?:pickle|marshal|dill|torch|base64|ctypes)\.\w+\s*\("
    r"|(?:rm\s+-rf|\bwget\s|\bcurl\s|\bchmod\s|powershell)|#!/|\bos\.\w+\s*\(|\bsubprocess\.\w+",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"\b(?:https?|ftp|file)://[^\s\"'<>]{3,200}", re.IGNORECASE)


def observe_targets(text: str, where: str, *, strict: bool) -> Finding | None:
    """Settings that name a function of Python's own, or one that runs code, to be called.

    strict: any function that is not known, where settings of a finished model name classes.
    """
    bad = [target for target in dict.fromkeys(_TARGET.findall(text)) if _is_bad_target(target, strict=strict)]
    if not bad:
        return None
    return CONFIGURED_CALL.found(
        f"{where[:80]} asks for {counted(len(bad), 'call')} that no model needs, first {bad[0][:80]}: a program "
        "that builds the model from these settings makes it.",
        subjects=tuple(target[:200] for target in bad[:_LISTED]),
        evidence=(("calls", len(bad)),),
        remedy="Nothing was called here. Hydra and NeMo call whatever `_target_` names.",
    )


def _is_bad_target(target: str, *, strict: bool) -> bool:
    module, _, name = target.rpartition(".")
    if target in _HARMLESS_TARGETS or not module or (not strict and _LOADS.fullmatch(target)):
        return False
    if "${" in target:
        return strict or target.startswith("${")
    top = target.partition(".")[0]
    verdict = judge(module, name)[0]
    foreign = top in sys.stdlib_module_names or top == "hydra" or (strict and not name[:1].isupper())
    return verdict is GlobalVerdict.DANGEROUS or (verdict is not GlobalVerdict.KNOWN and foreign)


def observe_metadata(pairs: Iterable[tuple[str, str]], limits: Limits, what: str) -> list[Finding]:
    """Pickles, programs and addresses in the texts beside the weights. what: the kind of file, for people."""
    pickles: list[str] = []
    names: list[str] = []
    worst = Severity.NOTICE
    scripts: list[str] = []
    addresses: list[str] = []
    templates: dict[str, Finding] = {}
    for key, text in pairs:
        if "template" in key.lower() and (template := observe_template(text, key)) is not None:
            templates.setdefault(template.id, template)
        for spelled in _pickles(text, limits):
            pickles.append(key)
            for module, name in spelled:
                verdict = judge(module, name)[0]
                if verdict is not GlobalVerdict.KNOWN:
                    names.append(f"{module}.{name}")
                    grave = Severity.ERROR if verdict is GlobalVerdict.DANGEROUS else Severity.WARNING
                    worst = max(worst, grave, key=lambda severity: severity.rank)
        if _SCRIPT.search(text):
            scripts.append(key)
        elif _ADDRESS.search(text):
            addresses.append(key)
    found = [_pickles_finding(pickles, names, worst)] if pickles else []
    found += templates.values()
    for keys, kind, is_what in (
        (scripts, PROGRAM_IN_METADATA, "program text"),
        (addresses, ADDRESS_IN_METADATA, "an address"),
    ):
        if keys:
            found.append(_inert(keys, kind, is_what, what))
    return found


def observe_constants(root: Value) -> list[Finding]:
    """Program text among the plain values of a pickle, as far as they are shown."""
    left, found = [root], []
    while left:
        value = left.pop()
        if value.kind is ValueKind.TEXT and _SCRIPT.search(value.says):
            found.append(value.says)
        left += [child for _, child in value.children]
    if not found:
        return []
    return [
        PROGRAM_IN_TEXT.found(
            f"{counted(len(found), 'text')} of the file {'is' if len(found) == 1 else 'are'} program text, first "
            f"{found[0][:60]!r}. It is inert: unpickling makes a text of it and runs nothing.",
            evidence=(("texts", len(found)), *((f"text {n}", text[:200]) for n, text in enumerate(found[:20], 1))),
            remedy="Only a program that takes it for code would run it.",
        )
    ]


def _pickles(text: str, limits: Limits) -> Iterable[Sequence[tuple[str, str]]]:
    """The names of each pickle that a text is or spells."""
    trial = limits.trial(opcodes=_TRIAL_OPCODES, nbytes=_TRIAL_NBYTES)
    plain = [text.encode("latin-1", "replace")] if may_hide_pickle(text[:100].encode("latin-1", "replace")) else []
    for raw in (*plain, *decodings(text)):
        outcome = unpickle_bytes(raw, trial).outcome
        if calls_importable(outcome) or (not outcome.broken and outcome.uses):
            yield [(use.module, use.name) for use in outcome.uses.values()]


def _pickles_finding(keys: Sequence[str], names: Sequence[str], worst: Severity) -> Finding:
    named = f" It would import {', '.join(n[:80] for n in dict.fromkeys(names[:3]))}." if names else ""
    return PICKLE_IN_METADATA.found(
        f"There is a pickle in the metadata {keys[0][:80]!r}; whoever decodes and loads that runs it.{named}",
        severity=worst,
        subjects=tuple(key[:200] for key in keys[:_LISTED]),
        evidence=(("pickles", len(keys)),),
        remedy="No ordinary program keeps a pickle there. Nothing was run here.",
    )


def _inert(keys: Sequence[str], kind: FindingKind, is_what: str, what: str) -> Finding:
    return kind.found(
        f"{counted(len(keys), 'text')} of the metadata {'holds' if len(keys) == 1 else 'hold'} {is_what}, first "
        f"{keys[0][:80]!r}. It is inert: a loader of {what} keeps metadata as text, runs nothing of it and fetches "
        "nothing.",
        subjects=tuple(key[:200] for key in keys[:_LISTED]),
        evidence=(("texts", len(keys)),),
        remedy="A page that shows it unescaped, or a person who follows it, is another matter.",
    )
