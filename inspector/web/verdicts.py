"""The overview's answers in words, from the reports. No drawing here."""

from __future__ import annotations

from inspector.architectures.types import Recognition
from inspector.checkpoint.types import Checkpoint, GlobalUse, GlobalVerdict, Part, StateRole
from inspector.errors import InspectorError
from inspector.findings import Finding, Severity, worst
from inspector.units import counted, human_bytes, human_count, human_macs
from inspector.web import reports
from inspector.web.components import Figure, Verdict, count_words
from inspector.web.session import Hand
from inspector.web.text import escaped, mono
from inspector.weights.observe import observe_weights
from inspector.weights.report import WeightsReport


def rows(hand: Hand, checkpoint: Checkpoint, findings: tuple[Finding, ...]) -> list[Verdict]:
    """Model, Loading, Code, Noticed."""
    found = [_identity(hand, checkpoint)]
    if checkpoint.weights is not None:
        found.append(_loading(hand))
    return [*found, _code(checkpoint), _noticed(checkpoint, findings)]


def all_findings(hand: Hand, checkpoint: Checkpoint, measured: WeightsReport | None) -> tuple[Finding, ...]:
    """What the reader, the recognition and the statistics noticed, each id and sentence once."""
    recognition = reports.recognition_of(hand) if checkpoint.weights is not None else None
    together = (
        *checkpoint.findings,
        *(recognition.findings if recognition else ()),
        *(observe_weights(measured) if measured else ()),
    )
    return tuple({(f.id, f.says): f for f in together}.values())


def _identity(hand: Hand, checkpoint: Checkpoint) -> Verdict:
    if checkpoint.weights is None:
        says = f"{checkpoint.format_says} with {counted(len(checkpoint.tensors), 'tensor')}, but no state dict."
        return Verdict(word="Model", says=says, severity=Severity.NOTICE, page="pages/contents.py", link="Contents")
    recognition = reports.recognition_of(hand)
    severity = Severity.INFO if recognition.best else Severity.NOTICE
    return Verdict(
        word="Model", says=recognition.says, severity=severity, page="pages/architecture.py", link="Architecture"
    )


def _loading(hand: Hand) -> Verdict:
    target = reports.own_target(hand)
    if target is None:
        return Verdict(
            word="Loading",
            says="Not checked: no known architecture to load it into. Choose one on the Repair page.",
            severity=None,
            page="pages/repair.py",
            link="Repair",
        )
    try:
        report = reports.keys_of(hand, target)
    except InspectorError as error:
        return Verdict(word="Loading", says=str(error), severity=Severity.ERROR, page="pages/repair.py", link="Repair")
    mended = report.plan is not None and report.plan.complete
    severity = Severity.INFO if report.loads else Severity.WARNING if mended else Severity.ERROR
    says = report.says if report.loads or not mended else f"Fails as it is. {report.says}"
    if report.plan is not None and not report.plan.format:
        # The names fit, but torch.load and its like do not read what was opened: a GGUF file, an archive of files.
        says += " No plain loader reads this container: export it first."
        severity = Severity.NOTICE if severity is Severity.INFO else severity
    return Verdict(word="Loading", says=says, severity=severity, page="pages/repair.py", link="Repair")


def _code(checkpoint: Checkpoint) -> Verdict:
    uses = checkpoint.globals
    by_verdict = {v: [u for u in uses if u.verdict is v] for v in GlobalVerdict}
    dangerous, unknown = by_verdict[GlobalVerdict.DANGEROUS], by_verdict[GlobalVerdict.UNKNOWN]
    if dangerous:
        says = f"An ordinary load would run {_names(dangerous)}. Nothing was executed here."
        severity = Severity.ERROR
    elif unknown:
        says = f"{counted(len(uses), 'global')}, {len(unknown)} not known: {_names(unknown)}. Nothing was executed."
        severity = Severity.NOTICE
    elif uses:
        says = f"{counted(len(uses), 'global')}, all known to torch's own files. Nothing was executed."
        severity = Severity.INFO
    else:
        says, severity = "The file names no code at all.", Severity.INFO
    return Verdict(word="Code", says=says, severity=severity, page="pages/contents.py", link="Contents")


def _names(uses: list[GlobalUse]) -> str:
    names = [use.name for use in uses[:3]]
    more = f" and {len(uses) - 3} more" if len(uses) > 3 else ""
    return ", ".join(names) + more


def _noticed(checkpoint: Checkpoint, findings: tuple[Finding, ...]) -> Verdict:
    words = count_words(findings)
    return Verdict(
        word="Noticed",
        says=words[0].upper() + words[1:] + ".",
        severity=worst(findings) or Severity.INFO,
        page="pages/weights.py" if checkpoint.weights is not None else "",
        link="Weights",
    )


def numbers(hand: Hand, checkpoint: Checkpoint) -> list[Figure]:
    """The row under the verdict."""
    if checkpoint.weights is None:
        nbytes = sum(t.nbytes for t in checkpoint.tensors)
        return [
            Figure(label="tensors", says=str(len(checkpoint.tensors))),
            Figure(label="of numbers", says=human_bytes(nbytes), exact=f"{nbytes:,} bytes"),
        ]
    counts = reports.parameters_of(hand)
    total = counts.total
    weights_nbytes = total.parameter_nbytes + total.buffer_nbytes
    found = [
        Figure(label="parameters", says=human_count(total.parameters), exact=f"{total.parameters:,}"),
        Figure(label="weights and buffers", says=human_bytes(weights_nbytes), exact=f"{weights_nbytes:,} bytes"),
        Figure(label="element type", says=", ".join(dtype for dtype, _, _ in counts.dtypes[:3])),
        Figure(label="tensors", says=f"{total.tensors:,}"),
    ]
    if counts.optimizer_nbytes:
        found.append(
            Figure(
                label="optimizer",
                says=human_bytes(counts.optimizer_nbytes),
                exact=f"{counts.optimizer_nbytes:,} bytes",
            )
        )
    macs = _macs(reports.recognition_of(hand))
    if macs is not None:
        found.append(macs)
    found += [Figure(label=key, says=value) for key, value in checkpoint.metadata if key in {"epoch", "step"}]
    return found


def _macs(recognition: Recognition) -> Figure | None:
    if recognition.best is None or not recognition.best.exact:
        return None
    spec = recognition.best.spec
    try:
        report = reports.costs_of(spec)
    except InspectorError:
        # The Architecture page says why; the overview leaves the figure out.
        return None
    _, *size = report.input_shape
    at = f"{size[-2]}x{size[-1]}" if len(size) > 1 else f"{size[0]} tokens"
    return Figure(label=f"MACs at {at}", says=human_macs(report.macs), exact=f"{report.macs:,}")


def metadata_row(key: str, value: str) -> tuple[str, str]:
    """A row of the metadata table, as HTML."""
    return mono(key, 40), escaped(value if len(value) <= 300 else value[:299] + "…")


def part_row(part: Part) -> tuple[str, str, str]:
    """A row of the table of files, as HTML."""
    return mono(part.name, 60), escaped(human_bytes(part.nbytes)), escaped(part.says)


def roles(checkpoint: Checkpoint) -> str:
    """ "weights, EMA and optimizer": which groups of tensors the file holds."""
    names = {
        StateRole.WEIGHTS: "weights",
        StateRole.EMA: "EMA",
        StateRole.OPTIMIZER: "optimizer",
        StateRole.TRAINING: "training state",
    }
    held = [names[role] for role in names if any(s.role is role for s in checkpoint.state_dicts)]
    return ", ".join(held)
