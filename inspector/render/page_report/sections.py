"""The page's sections, each from the report's own fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from inspector.file_report.report import FileReport, ParameterFacts, TensorFacts
from inspector.findings import Finding, Severity
from inspector.render.answer_words import answer_word, types_line
from inspector.render.html_text import escaped
from inspector.render.page_report.depth import depth_figure
from inspector.render.page_report.module_sizes import module_sizes
from inspector.render.page_report.proofs import proofs_table
from inspector.render.page_report.strip import fingerprint_strip
from inspector.render.page_report.words import (
    LOADING_WORDS,
    WORDS,
    drawing,
    facts,
    folded,
    mono,
    more,
    section,
    table,
    tone,
)
from inspector.units import counted, human_bytes, human_count, human_input, human_macs, human_shape, human_share

# What is shown of lists that have no bound; the JSON has all.
_OF_A_KIND, _FINDINGS, _SUBJECTS = 5, 60, 12
_METADATA, _PARTS, _MODULES, _TENSORS, _VALUE = 60, 60, 300, 300, 300
_OPEN_MODULES = 24


def answers(report: FileReport) -> str:
    """The Overview's sentences."""
    rows = "".join(
        f'<div class="answer {tone(a.severity)}"><b>{escaped(a.topic.value.capitalize())}</b>'
        f'<span class="tone">{answer_word(a)}</span><span>{escaped(a.says)}</span></div>'
        for a in report.answers
    )
    return f'<div class="answers">{rows}</div>'


def numbers(report: FileReport) -> str:
    """How large it is, in a row."""
    found = report.parameters
    row = [(f"{report.file.tensors:,}", "tensors in the file")]
    if found is not None:
        total = found.modules[0]
        nbytes = total.parameter_nbytes + total.buffer_nbytes
        row = [(human_count(total.parameters), "parameters"), (human_bytes(nbytes), "weights and buffers")]
        says = "element type" if len(found.dtypes) == 1 else "element types"
        row += [(types_line([t.dtype for t in found.dtypes]), says), (f"{total.tensors:,}", "tensors")]
        row += [(human_bytes(found.optimizer_nbytes), "optimizer")] if found.optimizer_nbytes else []
    model = report.model
    if model is not None and model.macs is not None:
        row.append((human_macs(model.macs), f"MACs at {human_input(model.macs_input)}"))
    cells = "".join(f"<div><b>{escaped(says)}</b><span class=soft>{escaped(what)}</span></div>" for says, what in row)
    return f'<div class="numbers">{cells}</div>'


def findings(report: FileReport) -> str:
    """Worst first, each with what to do."""
    if not report.findings:
        return section("Findings", "<p>None.</p>")
    kinds: Counter[tuple[Severity, str]] = Counter()
    shown: list[Finding] = []
    for finding in report.findings:
        kinds[finding.severity, finding.id] += 1
        if kinds[finding.severity, finding.id] <= _OF_A_KIND and len(shown) < _FINDINGS:
            shown.append(finding)
    cards = "".join(map(card, shown))
    return section("Findings", cards + more(len(report.findings) - len(shown), "finding"))


def card(finding: Finding, words: Mapping[Severity, str] = WORDS) -> str:
    """One finding: how bad, what, what to do, and what it rests on behind a click."""
    lines = [f"<li>{escaped(label)}: {mono(str(value))}</li>" for label, value in finding.evidence]
    lines += [f"<li>{mono(subject)}</li>" for subject in finding.subjects[:_SUBJECTS]]
    if len(finding.subjects) > _SUBJECTS:
        lines.append(f"<li>and {len(finding.subjects) - _SUBJECTS:,} more</li>")
    evidence = folded("Evidence", f"<ul>{''.join(lines)}</ul>", printed=True) if lines else ""
    remedy = f'<p class="soft">{escaped(finding.remedy)}</p>' if finding.remedy else ""
    return (
        f'<div class="finding {tone(finding.severity)}"><p><span class="tone">{words[finding.severity]}</span> '
        f"{escaped(finding.says)} <span class=soft>({escaped(finding.id)})</span></p>{remedy}{evidence}</div>"
    )


def the_file(report: FileReport) -> str:
    """Format, size, digest, producer, parts, metadata."""
    file = report.file
    rows = [
        ("Name", mono(file.name)),
        ("Format", f"{escaped(file.format_says)} <span class=soft>({escaped(file.format)})</span>"),
        ("Size", f"{escaped(human_bytes(file.nbytes))} <span class=soft>({file.nbytes:,} bytes)</span>"),
        ("SHA-256", f"<code>{escaped(file.sha256)}</code>" if file.sha256 else "not computed"),
    ]
    rows += [("The digest is", escaped(file.digest_of))] if file.digest_of else []
    rows += [("Written by", escaped(file.producer) or "not known")]
    rows += [("Weights at", mono(" / ".join(file.state_dict) or "the file itself"))] if report.tensors else []
    inside = facts(rows)
    if file.parts:
        parts = table(
            ("File", "Size", "What it is"),
            [(mono(p.name), human_bytes(p.nbytes), escaped(p.says)) for p in file.parts[:_PARTS]],
            numeric=(1,),
        )
        inside += folded(f"Made of {counted(len(file.parts), 'file')}", parts + more(len(file.parts) - _PARTS, "file"))
    if file.metadata:
        values = [(mono(key, 60), escaped(_cut(value))) for key, value in file.metadata[:_METADATA]]
        listed = table(("What", "Value"), values) + more(len(file.metadata) - _METADATA, "value")
        says = f"Beside the weights: {counted(len(file.metadata), 'value')}"
        inside += folded(says, listed, printed=len(file.metadata) <= _METADATA)
    return section("The file", inside)


def architecture(report: FileReport) -> str:
    """What it was recognised as, or what is told of a network that nobody knows; sizes by module."""
    model, inside = report.model, ""
    if model is not None:
        rows = [("Architecture", mono(model.label)), ("Evidence", escaped(model.says))]
        rows += [("Published as", escaped(model.official))] if model.official else []
        rows += [("Also fits", ", ".join(mono(twin) for twin in model.twins[:8]))] if model.twins else []
        inside = facts(rows)
    elif report.claims:
        inside = f"<ul>{''.join(f'<li>{escaped(claim)}</li>' for claim in report.claims)}</ul>"
    if report.parameters is not None:
        inside += _modules(report.parameters)
    return section("Architecture", inside)


def _modules(found: ParameterFacts) -> str:
    inside = drawing(module_sizes(found.modules), "Bytes by module, in the file's order.")
    total = max(1, found.modules[0].parameters)
    rows = [
        (
            mono(m.path or "whole model"), escaped((m.kind or "").rpartition(".")[2]), f"{m.tensors:,}",
            human_count(m.parameters), human_share(m.parameters / total),
            human_bytes(m.parameter_nbytes + m.buffer_nbytes),
        )
        for m in found.modules[:_MODULES]
    ]  # fmt: skip
    heads = ("Module", "Kind", "Tensors", "Parameters", "Share", "Bytes")
    listed = table(heads, rows, numeric=(2, 3, 4, 5)) + more(len(found.modules) - _MODULES, "module")
    says = f"Parameters by module: {counted(len(found.modules), 'module')}"
    inside += folded(says, listed, printed=len(rows) <= _OPEN_MODULES)
    return inside + f'<p class="soft">Parameters are told from buffers by {escaped(found.role_source.value)}.</p>'


def repair(report: FileReport) -> str:
    """How it loads: rules, counts, what was verified, the lines."""
    found = report.repair
    if found is None:
        return ""
    inside = f"<p>Against {mono(found.target)}: {escaped(found.says)}</p>"
    if found.refusal and found.refusal != found.says:
        inside += f'<p class="error tone">{escaped(found.refusal)}</p>'
    inside += (
        f'<p class="soft">By name and shape: {found.matched:,} fit, {found.missing:,} missing, '
        f"{found.unexpected:,} unexpected, {found.reshaped:,} of another shape.</p>"
    )
    if found.rules:
        rows = [
            (
                escaped(rule.says), escaped(rule.cost.value), f"{rule.count:,}",
                "<br>".join(f"{mono(a, 44)} → {mono(b, 44)}" if b else mono(a, 60) for a, b in rule.examples),
            )
            for rule in found.rules
        ]  # fmt: skip
        inside += "<h3>Rules</h3>" + table(("Rule", "Cost", "Keys", "For example"), rows, numeric=(2,))
    if found.placed:
        placed = ", ".join(f"{p.evidence}: {p.tensors:,}" for p in found.placed)
        inside += f"<p>Why each tensor belongs there: {escaped(placed)}.</p>"
    if found.left_over:
        names = "".join(f"<li>{mono(name)}</li>" for name in found.left_over[:_SUBJECTS])
        inside += f"<h3>Left over</h3><ul>{names}</ul>" + more(len(found.left_over) - _SUBJECTS, "name")
    # What stands above as a rule or as the answer is not said again.
    said = {rule.id for rule in found.rules}, {found.says, found.refusal}
    left = [f for f in found.findings if f.id not in said[0] and f.says not in said[1]]
    # The answers above count errors and warnings of the file itself; these are about loading it, in its answer's words.
    inside += "".join(card(finding, LOADING_WORDS) for finding in left[:_FINDINGS])
    if found.proofs:
        inside += f"<h3>Verified</h3>{proofs_table(found.proofs)}"
        failed = sum(proof.passed is False for proof in found.proofs)
        if failed:
            says = f"{counted(failed, 'proof fails', 'proofs fail')}: a repair like this is not written."
            inside += f'<p class="error tone">{says}</p>'
    elif found.not_verified:
        inside += f'<p class="soft">{escaped(found.not_verified)}</p>'
    if found.code:
        inside += f"<h3>Python</h3><pre>{escaped(found.code)}</pre>"
    return section("Loading it", inside)


def weights(report: FileReport) -> str:
    """The numbers: fingerprint, sizes by depth, a table."""
    if not report.tensors:
        return ""
    inside = ""
    if report.fingerprint is not None:
        inside += drawing(fingerprint_strip(report.fingerprint), f"Fingerprint: {report.fingerprint.scale}.")
    sick = {name for f in report.findings if f.severity in (Severity.ERROR, Severity.WARNING) for name in f.subjects}
    says = "Root mean square of each weight; ringed: named by an error or a warning."
    inside += drawing(depth_figure(report.tensors, sick), says)
    heads = ("Tensor", "Shape", "Type", "Minimum", "Mean", "Maximum", "Deviation", "Zero", "NaN")
    rows = [_tensor(tensor) for tensor in report.tensors[:_TENSORS]]
    listed = table(heads, rows, numeric=range(3, 9)) + more(len(report.tensors) - _TENSORS, "tensor")
    return section("Weights", inside + folded(f"Every tensor: {len(report.tensors):,}", listed))


def _tensor(tensor: TensorFacts) -> tuple[str, ...]:
    first = (mono(tensor.name, 60), escaped(human_shape(tensor.shape)), escaped(tensor.dtype))
    found = tensor.numbers
    if found is None:
        return (*first, "", "", "", "", "", "")
    moments = (found.minimum, found.mean, found.maximum, found.std)
    values = ("none" if value is None else f"{value:.4g}" for value in moments)
    return (*first, *values, f"{found.zero:,}", f"{found.nan + found.infinite:,}" if found.nan + found.infinite else "")


def not_examined(report: FileReport) -> str:
    """What nobody looked at, and why."""
    if not report.not_examined:
        return ""
    rows = [(mono(what, 60), escaped(_cut(why))) for what, why in report.not_examined[:_METADATA]]
    return section("Not examined", table(("What", "Why"), rows) + more(len(report.not_examined) - _METADATA, "entry"))


def _cut(text: str) -> str:
    return text if len(text) <= _VALUE else text[: _VALUE - 1] + "…"
