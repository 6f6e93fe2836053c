"""Code that text names or spells: settings that call functions, pickles in metadata.

Text runs nothing by itself. But programs call what `_target_` names (Hydra, NeMo), and some
decode what they find; so what such text would run is told, and of what nothing runs it is said why.
Source: CVE-2025-23304 (targets in NeMo's settings).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence

from inspector.checkpoint.types import GlobalUse, GlobalVerdict, Reach
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
PROGRAM_IN_TEXT = FindingKind(
    "program-in-text", Severity.INFO, "Text of the file is a program", also=(Severity.NOTICE, Severity.WARNING)
)
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


def observe_constants(root: Value, imported: Sequence[GlobalUse]) -> list[Finding]:
    """Program text among the values of a pickle, as far as they are shown. imported: the names that a load imports."""
    plain: list[str] = []
    handed: dict[GlobalVerdict, list[tuple[str, list[str]]]] = {}
    # Beside each value, what a load hands it to: the calls around it that are not known to be harmless.
    left: list[tuple[Value, dict[str, GlobalVerdict]]] = [(root, {})]
    while left:
        value, callers = left.pop()
        if value.inert:
            callers = callers | _callers(value)
        if value.kind is ValueKind.TEXT and _SCRIPT.search(value.says):
            if callers:
                worst = min(callers.values(), key=lambda verdict: verdict.order)
                names = [name for name, verdict in callers.items() if verdict is worst]
                handed.setdefault(worst, []).append((value.says, names))
            else:
                plain.append(value.says)
        if value.children:
            left += [(child, callers) for _, child in reversed(value.children)]
    found = [_handed_texts(verdict, texts) for verdict, texts in handed.items()]
    if plain:
        found.append(_plain_texts(plain, [use.name for use in imported if _may_take(use)]))
    return found


def _callers(value: Value) -> dict[str, GlobalVerdict]:
    """What this value's parts are handed to, where it stands for a call: the name called, and those among its arguments
    (`map(eval, texts)`)."""
    names = [value.type_name, *(child.says for _, child in value.children if child.kind is ValueKind.GLOBAL)]
    judged = {name: judge(*name.rpartition(".")[::2])[0] for name in names}
    return {name: verdict for name, verdict in judged.items() if verdict is not GlobalVerdict.KNOWN}


def _may_take(use: GlobalUse) -> bool:
    """Whether it may be called with what else the file holds: what stands at several places is shown at one."""
    return use.verdict is not GlobalVerdict.KNOWN and use.reach in (Reach.RUNS, Reach.MAY_RUN)


def _handed_texts(verdict: GlobalVerdict, handed: Sequence[tuple[str, Sequence[str]]]) -> Finding:
    dangerous = verdict is GlobalVerdict.DANGEROUS
    texts = [text for text, _ in handed]
    names = list(dict.fromkeys(name for _, names in handed for name in names))
    to = ", ".join(name[:80] for name in names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
    are = "is" if len(texts) == 1 else "are"
    does = "which can run program text." if dangerous else "of which it is not known here what is done with a text."
    return PROGRAM_IN_TEXT.found(
        f"{counted(len(texts), 'text')} of the file {are} program text, first {texts[0][:60]!r}, and an ordinary load "
        f"would hand {'it' if len(texts) == 1 else 'them'} to {to}, {does} Nothing was run here.",
        severity=Severity.WARNING if dangerous else Severity.NOTICE,
        subjects=tuple(name[:200] for name in names[:_LISTED]),
        evidence=_texts(texts),
        remedy="Do not load the file with pickle or torch.load(weights_only=False); it can be converted here.",
    )


def _plain_texts(texts: Sequence[str], beside: Sequence[str]) -> Finding:
    says = (
        f"{counted(len(texts), 'text')} of the file {'is' if len(texts) == 1 else 'are'} program text, first "
        f"{texts[0][:60]!r}. "
    )
    if not beside:
        return PROGRAM_IN_TEXT.found(
            f"{says}It is inert: unpickling makes a text of it and runs nothing.",
            evidence=_texts(texts),
            remedy="Only a program that takes it for code would run it.",
        )
    return PROGRAM_IN_TEXT.found(
        f"{says}It stands as a value where it is shown; but a load also imports "
        f"{', '.join(n[:80] for n in beside[:3])}, and whether that is handed it elsewhere was not followed.",
        severity=Severity.NOTICE,
        evidence=_texts(texts),
        remedy="Do not load the file with pickle or torch.load(weights_only=False), whoever sent it.",
    )


def _texts(texts: Sequence[str]) -> tuple[tuple[str, str | int], ...]:
    return (("texts", len(texts)), *((f"text {n}", text[:200]) for n, text in enumerate(texts[:_LISTED], 1)))


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
