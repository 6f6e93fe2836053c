"""The answer about a file, in four sentences: what it is, whether it loads, what code it names, what was noticed.

Every face shows this one: `open`, the Overview page, and Python through `summarise`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from inspector.architectures.match import is_only_near
from inspector.architectures.parts import is_adapter
from inspector.architectures.structure.types import Claim, Structure
from inspector.checkpoint.nested import averaged_copies
from inspector.checkpoint.several import equal_sets
from inspector.checkpoint.types import Checkpoint, GlobalUse, GlobalVerdict, Reach, StateDict, StateRole, TensorInfo
from inspector.checkpoint.values import ValueKind, value_at
from inspector.findings import Finding, Severity, ranked, worst
from inspector.inspection import HEADER_QUESTIONS, Inspection, Question, inspect
from inspector.keys.loading import REFUSED
from inspector.keys.plain_load import NUMPY, PlainLoad, partly_lost, plain_load
from inspector.keys.report import KeyReport
from inspector.keys.sentences import NO_REPAIR, called
from inspector.units import counted, human_bytes, shorten_middle

_SETS_NAMED = 4
_NOT_READ = "the numbers have not been read"
_ARCHITECTURE = "general.architecture"
_OVER_LIMIT, _BREAKS_OFF = "pickle-over-limit", "broken-pickle"


class Topic(StrEnum):
    """What is answered, in the order in which it is shown."""

    MODEL = "model"
    LOADING = "loading"
    CODE = "code"
    NOTICED = "noticed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One sentence or two. severity: None where it was not examined."""

    topic: Topic
    says: str
    severity: Severity | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """answers: one per topic; no LOADING for names without a file. findings: all of them, each once, worst
    first. claims: what names and shapes tell of a network that nobody knows; () for others."""

    answers: tuple[Answer, ...]
    findings: tuple[Finding, ...]
    claims: tuple[Claim, ...] = ()


def summarise(checkpoint: Checkpoint, *, state: StateDict | None = None) -> Overview:
    """The answer from the headers alone: no tensor is read, no torch imported. Raises nothing.

    state: which of several state dicts is meant; None for the likeliest weights.
    """
    return summarise_reports(inspect(checkpoint, HEADER_QUESTIONS, state=state))


def summarise_reports(inspection: Inspection) -> Overview:
    """The same from what was asked already. Findings about numbers come with its `health`."""
    checkpoint = inspection.checkpoint
    findings = _all_findings(inspection)
    state = inspection.state or checkpoint.weights
    answers = [_of_several(_model(inspection), inspection)]
    if state is not None:
        answers.append(_loading(inspection, state))
    elif plain_load(checkpoint, None).obstacles:
        plain = plain_load(checkpoint, None)
        says = f"Fails as it is: {_joined(plain)}."
        answers.append(Answer(topic=Topic.LOADING, says=says, severity=plain.severity))
    told = _told(inspection)
    return Overview(
        answers=(*answers, _code(checkpoint), _noticed(inspection, findings)),
        findings=findings,
        claims=told.claims if told is not None else (),
    )


def _all_findings(inspection: Inspection) -> tuple[Finding, ...]:
    """What the reader, the recognition and the statistics noticed, each id and sentence once."""
    together = (
        *inspection.checkpoint.findings,
        *(inspection.recognition.findings if inspection.recognition else ()),
        *_of_numbers(inspection),
    )
    return ranked({(finding.id, finding.says): finding for finding in together}.values())


def _of_numbers(inspection: Inspection) -> tuple[Finding, ...]:
    examined = inspection.health or inspection.counted
    return examined.findings if examined is not None else ()


def _model(inspection: Inspection) -> Answer:
    checkpoint, recognition = inspection.checkpoint, inspection.recognition
    optimizer = next((s for s in checkpoint.state_dicts if s.role is StateRole.OPTIMIZER), None)
    if checkpoint.weights is None and optimizer is not None:
        return Answer(topic=Topic.MODEL, says=_only_optimizer(checkpoint, optimizer), severity=Severity.NOTICE)
    if checkpoint.weights is None or recognition is None:
        says = f"{checkpoint.format_says} with {counted(len(checkpoint.tensors), 'tensor')}, but no state dict."
        return Answer(topic=Topic.MODEL, says=says, severity=Severity.NOTICE)
    state, best = inspection.state or checkpoint.weights, recognition.best
    # Near a network is no network that is known.
    severity = Severity.INFO if best is not None and not is_only_near(best) else Severity.NOTICE
    told = _told(inspection)
    near = best is not None and told is not None and bool(told.likeness)
    says = f"{recognition.answer} {told.short}" if told is not None and not near else recognition.answer
    if (told is None or near) and recognition.structure is not None and recognition.structure.likeness:
        # Near one in its names, and another network by its shapes: what the body is like, and what differs.
        says = f"{says} {recognition.structure.likeness}"
    says = f"{say_of_itself(checkpoint)}{says}{_copies(checkpoint, state)}{_optimizer_share(checkpoint)}"
    broken, total = partly_lost(checkpoint, state.tensors), counted(len(state.tensors), "tensor")
    if broken:
        # A network of which half is missing is recognised by its header, and is no network to go on with.
        says = f"{says} {len(broken):,} of its {total} {'is' if len(broken) == 1 else 'are'} not whole in the file."
        severity = Severity.ERROR
    return Answer(topic=Topic.MODEL, says=says, severity=severity)


def say_of_itself(checkpoint: Checkpoint) -> str:
    """What a file says of itself, as a sentence and a space: of an ONNX model, which is a program and no state dict,
    what it takes and gives; of GGUF its own word for the architecture. "" for others."""
    held = dict(checkpoint.metadata)
    if checkpoint.format == "gguf" and held.get(_ARCHITECTURE):
        return f'The file calls its architecture "{shorten_middle(held[_ARCHITECTURE], 60)}". '
    if checkpoint.format != "onnx":
        return ""
    ends = [
        ", ".join(f"{key.removeprefix(kind)} ({value})" for key, value in checkpoint.metadata if key.startswith(kind))
        for kind in ("input ", "output ")
    ]
    count = held.get("operators", "").partition(":")[0]
    graph = f"a graph of {counted(int(count), 'operator')}" if count.isdecimal() and len(count) < 10 else "a graph"
    way = f" from {shorten_middle(ends[0], 160)} to {shorten_middle(ends[1], 160)}" if all(ends) else ""
    return f"This is an ONNX model: {graph}{way}, with its weights. "


def _of_several(answer: Answer, inspection: Inspection) -> Answer:
    """The same, beginning with the others where a file holds several networks: until somebody says which is meant, that
    is a question."""
    sets, chosen = equal_sets(inspection.checkpoint), inspection.state
    taken = chosen or inspection.checkpoint.weights
    if not sets or taken is None or all(state is not taken for state in sets):
        return answer
    named = [f'"{shorten_middle(s.label, 60)}" ({counted(len(s.tensors), "tensor")})' for s in sets[:_SETS_NAMED]]
    more = f", {len(sets) - _SETS_NAMED:,} more" if len(sets) > _SETS_NAMED else ""
    held, own = f"{', '.join(named)}{more}", shorten_middle(taken.label, 60)
    count = counted(len(sets), "set")
    if chosen is not None:
        return replace(answer, says=f'{answer.says} Of {count} of weights in the file ({held}) this is "{own}".')
    says = f'{count} of weights lie in it: {held}. Say with --state which one is meant. Of "{own}": {answer.says}'
    severity = max(Severity.WARNING, answer.severity or Severity.INFO, key=lambda one: one.rank)
    return replace(answer, says=says, severity=severity)


def _told(inspection: Inspection) -> Structure | None:
    """What nobody knows is described, and what is only near a candidate, since that may be chance; one that fits, a
    likely one by shapes, or a part of a larger thing, is an answer already."""
    recognition = inspection.recognition
    if recognition is None or recognition.alike or recognition.part:
        return None
    best = recognition.best
    if best is not None and not is_only_near(best):
        return None
    return recognition.structure


def _only_optimizer(checkpoint: Checkpoint, state: StateDict) -> str:
    total = counted(len(_once(checkpoint.tensors)), "tensor")
    holder = value_at(checkpoint.root, state.path)
    if holder is None or holder.kind is not ValueKind.OBJECT:
        return f"This is only an optimizer's state ({total}): no weights are in it."
    kind = holder.type_name.rpartition(".")[2]
    own = counted(len(_once(t for t in state.tensors if t.name.startswith("param_groups."))), "parameter")
    return f"This is only an optimizer ({kind}, {total}): {own} of a network are in it, and no name of one."


def _copies(checkpoint: Checkpoint, state: StateDict) -> str:
    """That the weights lie in the file a second time, averaged, and which of both is meant; "" where they do not."""
    copies = averaged_copies(checkpoint, state) if state.role is not StateRole.EMA else ()
    if not copies:
        return ""
    listed = ", ".join(f"{shorten_middle(where, 60)} ({counted(n, 'tensor')})" for where, n in copies[:_SETS_NAMED])
    meant = f'This is said of "{shorten_middle(state.label, 60)}". ' if state.path else ""
    return f" {meant}Averaged weights (EMA), a second copy, lie under {listed}."


def _optimizer_share(checkpoint: Checkpoint) -> str:
    """How much of the tensors' bytes is optimizer state, where that is more than a quarter; else ""."""
    states = [state for state in checkpoint.state_dicts if state.role is StateRole.OPTIMIZER]
    # A pickled optimizer holds the parameters as well, in its groups and as keys.
    weights = {key for s in checkpoint.state_dicts if s not in states for key in _once(s.tensors)}
    own = _once(tensor for state in states for tensor in state.tensors if not tensor.name.startswith("param_groups."))
    held = sum(tensor.nbytes for key, tensor in own.items() if key not in weights)
    total = sum(tensor.nbytes for tensor in _once(checkpoint.tensors).values())
    if held * 4 <= total or not held:
        return ""
    return f" {human_bytes(held)} of {human_bytes(total)} are optimizer state."


def _once(tensors: Iterable[TensorInfo]) -> dict[object, TensorInfo]:
    """Each tensor once, whatever it is called."""
    return {(t.storage_id, t.offset, t.shape) if t.storage_id is not None else t.path: t for t in tensors}


def _loading(inspection: Inspection, state: StateDict) -> Answer:
    """What `model.load_state_dict(torch.load(path))` would do, the reason first."""
    plain = plain_load(inspection.checkpoint, state)
    first = f"{_joined(plain)}. " if plain.obstacles else ""
    report = inspection.keys
    if report is not None:
        names, severity = _names_fit(report, plain)
        broken = [f for f in _of_numbers(inspection) if f.severity is Severity.ERROR]
        if report.loads and broken:
            # A strict load copies NaN like any number, so that a tick here would be read as one for the whole file.
            says = f"{counted(len(broken), 'error')} of its numbers {'is' if len(broken) == 1 else 'are'} noticed"
            names = f"{names} A load does not look at numbers: {says}."
            severity = max(severity, Severity.NOTICE, key=lambda s: s.rank)
        return Answer(
            topic=Topic.LOADING,
            says=f"Fails as it is: {first}{names}" if first else names,
            severity=max(severity, plain.severity, key=lambda s: s.rank),
        )
    if inspection.recognition is None or inspection.recognition.best is None:
        names = "The names were not compared: no known architecture to load it into."
        if first:
            return Answer(topic=Topic.LOADING, says=f"Fails as it is: {first}{names}", severity=plain.severity)
        if is_adapter({tensor.name: tensor.shape for tensor in state.tensors}):
            says = "Not checked: an adapter is no model by itself; it is added to its base, or merged into it."
            return Answer(topic=Topic.LOADING, says=says, severity=Severity.NOTICE)
        says = "Not checked: no known architecture to load it into."
        return Answer(topic=Topic.LOADING, says=says, severity=None)
    why = next((why for question, why in inspection.skipped if question == Question.KEYS), "Not checked.")
    if Question.KEYS.value in inspection.untried:
        # What is missing here is no fault of the file's.
        says = f"Fails as it is: {first}The names were not tried here: {why}" if first else f"Not tried here: {why}"
        return Answer(topic=Topic.LOADING, says=says, severity=plain.severity if first else None)
    return Answer(topic=Topic.LOADING, says=f"{first}{why}", severity=Severity.ERROR)


def _joined(plain: PlainLoad) -> str:
    return "; ".join(obstacle.says for obstacle in plain.obstacles)


def _names_fit(report: KeyReport, plain: PlainLoad) -> tuple[str, Severity]:
    """What comes of the names once the file is read."""
    if not report.loads:
        mended = report.plan is not None and report.plan.complete
        says = report.compared if report.strict or plain.obstacles else f"Fails as it is. {report.compared}"
        return says, Severity.WARNING if mended else Severity.ERROR
    held, lacks = len(report.matched) + len(report.reshaped), len(report.missing)
    total = counted(held + lacks, "tensor")
    total = f"{held:,} of {total}" if lacks else f"all {total}"
    if plain.obstacles:
        before = f"; a torch before {plain.since} loads it as it is" if plain.since else ""
        return f"By name and shape {total} fit {called(report.target)}{before}.", Severity.INFO
    how = (
        "" if plain.call == "torch.load" else f", read with {plain.call}: an older torch.load does not read this format"
    )
    notes = [f"it needs torch {plain.oldest} or later"] if plain.oldest else []
    notes += [plain.note] if plain.note else []
    severity = Severity.NOTICE if notes else Severity.INFO
    notes = [report.made_good, *notes] if report.made_good else notes
    rest = f"; {'; '.join(notes)}" if notes else "" if how else f"; {NO_REPAIR}"
    return f"{total[0].upper()}{total[1:]} fit {called(report.target)} as they are{how}{rest}.", severity


def _code(checkpoint: Checkpoint) -> Answer:
    uses = checkpoint.globals
    dangerous = [use for use in uses if use.verdict is GlobalVerdict.DANGEROUS]
    unknown = [use for use in uses if use.verdict is GlobalVerdict.UNKNOWN]
    if dangerous:
        # Named alone it stays an error: whoever calls the value runs it.
        load = load_that_runs(checkpoint)
        load = load if checkpoint.format in NUMPY else load.capitalize()
        says, severity = f"{_danger(dangerous, load)}. Nothing was executed here.", Severity.ERROR
    elif unknown:
        says = f"{counted(len(uses), 'global')}, {len(unknown)} not known: {_names(unknown)}. Nothing was executed."
        severity = Severity.NOTICE
    elif uses:
        refused = sum(int(dict(f.evidence).get("names", 0)) for f in checkpoint.findings if f.id == REFUSED)
        whose = (
            f"all known, {refused} of them not to torch's own loader" if refused else "all known to torch's own files"
        )
        says = f"{counted(len(uses), 'global')}, {whose}. Nothing was executed."
        severity = Severity.INFO
    else:
        says, severity = "The file names no code at all.", Severity.INFO
    ends = unfollowed(checkpoint)
    if ends:
        says = f"{ends} {says if uses else 'Up to there it names no code.'}"
        over = any(finding.id == _OVER_LIMIT for finding in checkpoint.findings)
        severity = max(severity, Severity.ERROR if over else Severity.WARNING, key=lambda s: s.rank)
    if checkpoint.unread:
        says = f"{_beside(checkpoint.unread)} {says if uses or ends else 'What is shown here names no code.'}"
        severity = max(severity, Severity.NOTICE, key=lambda s: s.rank)
    return Answer(topic=Topic.CODE, says=says, severity=severity)


def _beside(unread: Sequence[str]) -> str:
    """That files beside the one shown were not read for the code that they name."""
    more = f" and {len(unread) - 3:,} more" if len(unread) > 3 else ""
    named = ", ".join(shorten_middle(path, 60) for path in unread[:3])
    return (
        f"{counted(len(unread), 'other file')} beside it may name code and "
        f"{'was' if len(unread) == 1 else 'were'} not read for it: {named}{more}."
    )


def unfollowed(checkpoint: Checkpoint) -> str:
    """Where the reader stopped following a pickle that a load follows on, as a sentence; "" where it followed all."""
    found = next((f for f in checkpoint.findings if f.id in (_OVER_LIMIT, _BREAKS_OFF)), None)
    if found is None:
        return ""
    byte = int(dict(found.evidence).get("byte", 0))
    if found.id == _OVER_LIMIT:
        return f"Not all of it was followed: what comes behind byte {byte:,} may name anything."
    return f"It breaks off at byte {byte:,}."


def load_that_runs(checkpoint: Checkpoint) -> str:
    """Which load it is that follows the file's pickles, in the middle of a sentence."""
    return "numpy.load(allow_pickle=True)" if checkpoint.format in NUMPY else "an ordinary load"


def _danger(uses: Sequence[GlobalUse], load: str) -> str:
    """What a load does with names that can run code: the worst that it does, and with which."""
    reach = next(reach for reach in Reach if any(use.reach is reach for use in uses))
    meant = [use for use in uses if use.reach is reach]
    rest = [use for use in uses if use.reach is Reach.MAY_RUN]
    handed = f", and may run {_names(rest)}" if rest else ""
    names, does = _names(meant), "would run" if any(use.called for use in meant) else "names"
    return {
        Reach.RUNS: f"{load} would run {names}{handed}",
        Reach.MAY_RUN: f"{load} would import {names}, and may run it",
        Reach.NAMES: f"{load} would import {names}, which can run code; nothing in the file calls it",
        Reach.LEAVES: f"A pickle that an ordinary load does not read {does} {names}",
    }[reach]


def _names(uses: Sequence[GlobalUse]) -> str:
    more = f" and {len(uses) - 3} more" if len(uses) > 3 else ""
    return ", ".join(use.name for use in uses[:3]) + more


def _noticed(inspection: Inspection, findings: Sequence[Finding]) -> Answer:
    words = count_words(findings)
    says = words[0].upper() + words[1:]
    severity = worst(findings) or Severity.INFO
    left = _left(inspection)
    if not left:
        return Answer(topic=Topic.NOTICED, says=f"{says}.", severity=severity)
    # Until then a file full of NaN looks as well as any.
    says = f"{says} so far; {left}."
    return Answer(topic=Topic.NOTICED, says=says, severity=None if severity is Severity.INFO else severity)


def _left(inspection: Inspection) -> str:
    """Which numbers nobody has examined, "" where all were."""
    checkpoint, health, told = inspection.checkpoint, inspection.health, inspection.counted
    if health is None and told is not None:
        rest = f", {counted(told.left, 'tensor')} not at all" if told.left else ""
        verb = "was" if told.tensors == 1 else "were"
        says = (
            f"{counted(told.tensors, 'tensor')} {verb} looked at for NaN, infinity and negative variances alone{rest}"
        )
        return says if told.tensors else _NOT_READ
    if health is None:
        return _NOT_READ if checkpoint.weights is not None else ""
    others = [
        state
        for state in checkpoint.weight_sets
        if state.path != health.weights.state_dict and any(len(t.shape) > 1 for t in state.tensors)
    ]
    if not others:
        return ""
    more = f" and {counted(len(others) - 1, 'more set', 'more sets')} of weights" if len(others) > 1 else ""
    return f"the numbers of {shorten_middle(others[0].label, 60)}{more} have not been examined by themselves"


def count_words(findings: Iterable[Finding]) -> str:
    """ "no error, 2 warnings, 1 note"."""
    counts = Counter(finding.severity for finding in findings)
    words = [
        counted(counts[severity], noun) if counts[severity] else f"no {noun}"
        for severity, noun in ((Severity.ERROR, "error"), (Severity.WARNING, "warning"))
    ]
    if counts[Severity.NOTICE]:
        words.append(counted(counts[Severity.NOTICE], "note"))
    return ", ".join(words)
