"""What is to be said about a torch.export program before anybody loads it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from inspector.findings import Finding, FindingKind, Severity
from inspector.readers.formats.export.program import ProgramFacts
from inspector.readers.formats.script.findings import (
    COMPUTING,
    NETWORK,
    SCRIPT_CUSTOM_OPERATORS,
    SCRIPT_REACHES_SYSTEM,
    reach_of,
)
from inspector.units import counted

TORCH_EXPORT = FindingKind("torch-export", Severity.NOTICE, "A torch.export archive")
NATIVE_CODE = FindingKind("native-code", Severity.ERROR, "The archive holds compiled code")
EXPORT_CONFIG = FindingKind("export-config", Severity.ERROR, "Entries of the archive do not fit")
EXPORT_ODD_CODE = FindingKind("export-odd-code", Severity.ERROR, "Text to be evaluated that is more than arithmetic")
EXPORT_GUARDS = FindingKind("export-guards", Severity.NOTICE, "Guards that are run as Python text")

_LISTED = 20
_TARGET = re.compile(r"torch\.ops\.(\w+)\.(\w+)(?:\.\w+)?|_operator\.[a-z]\w*|math\.[a-z]\w*")
_HIGHER = re.compile(
    r"torch\.(?:ops\.higher_order|_higher_order_ops)\.\w+|torch\.sym_\w+|torch\._sym_sqrt|torch\.autograd\.grad_mode\.\w+"
)


def observe_program(facts: ProgramFacts, model: str) -> list[Finding]:
    """Findings about what a load or a call of the program would do."""
    found: list[Finding] = []
    odd = list(facts.odd)
    reaching: list[str] = []
    custom: list[str] = []
    for target in facts.operators:
        matched = _TARGET.fullmatch(target)
        if matched is None:
            if not _HIGHER.fullmatch(target):
                odd.append(f'the target "{target[:80]}"')
        elif matched[1]:
            name = f"{matched[1]}::{matched[2]}"
            if reach_of(name):
                reaching.append(name)
            elif matched[1] not in COMPUTING and matched[1] not in NETWORK and matched[1] != "higher_order":
                custom.append(name)
    if odd:
        found.append(
            EXPORT_ODD_CODE.found(
                f"{model}: {counted(len(odd), 'text')} that torch.export.load evaluates as Python, or looks up as "
                f"a function of torch, say something else than arithmetic and operators, first {odd[0]}.",
                subjects=tuple(o[:200] for o in odd[:_LISTED]),
                evidence=(("texts", len(odd)),),
                remedy="Do not load it with torch.export.load. It can be converted here.",
            )
        )
    if reaching:
        found.append(
            SCRIPT_REACHES_SYSTEM.found(
                f"{model} calls {counted(len(reaching), 'operator')} that reach files or other processes: "
                f"{', '.join(n[:80] for n in reaching[:3])}. {reaching[0][:80]} {reach_of(reaching[0])}.",
                subjects=tuple(reaching[:_LISTED]),
                evidence=(("operators", len(reaching)),),
                remedy="Do not run it unless you trust whoever made it; convert it instead.",
            )
        )
    if custom:
        found.append(
            SCRIPT_CUSTOM_OPERATORS.found(
                f"{model} calls {counted(len(custom), 'operator')} of libraries beside torch: "
                f"{', '.join(n[:80] for n in custom[:3])}{' …' if len(custom) > 3 else ''}. What they do is not in the "
                "file.",
                subjects=tuple(custom[:_LISTED]),
                evidence=(("operators", len(custom)),),
                remedy="torch.export.load needs the library that registers them; exporting the tensors does not.",
            )
        )
    if facts.guards:
        found.append(
            EXPORT_GUARDS.found(
                f"{model} carries {counted(len(facts.guards), 'guard')} as Python text, which "
                f"ExportedProgram.module() runs; first {facts.guards[0][:100]}.",
                evidence=(("guards", len(facts.guards)),),
                remedy="They are shown as text among the code. Read them before you load the program.",
            )
        )
    return found


def export_finding(models: int) -> Finding:
    """The sentence under every torch.export file."""
    return TORCH_EXPORT.found(
        f"This is a torch.export archive ({counted(models, 'program')}), not a plain checkpoint; its tensors are "
        "shown, its graph is shown as text and was not run.",
        evidence=(("programs", models),),
        remedy="torch.export.load evaluates text and unpickles objects of the file, without a restricted mode. "
        "Convert it here instead.",
    )


def native_finding(members: Sequence[str]) -> Finding:
    """Compiled code in the archive."""
    return NATIVE_CODE.found(
        f"The archive holds {counted(len(members), 'member')} of compiled code, first {members[0][:120]}. "
        "What it does cannot be read here.",
        subjects=tuple(m[:200] for m in members[:_LISTED]),
        evidence=(("members", len(members)),),
        remedy="Loading the package runs it with your rights: only do that if you trust whoever made it.",
    )


def config_finding(problems: Sequence[str]) -> Finding:
    """Weights that the archive names but does not have as named."""
    return EXPORT_CONFIG.found(
        f"{counted(len(problems), 'entry', 'entries')} of the archive do not fit: {problems[0]}.",
        subjects=tuple(p[:200] for p in problems[:_LISTED]),
        evidence=(("entries", len(problems)),),
        remedy="Those tensors cannot be shown; get the file again from its source.",
    )
