"""The Overview page's rows and numbers, from the reports. No drawing here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from inspector.checkpoint.layout import nbytes_lost
from inspector.checkpoint.types import Checkpoint, Part, StateRole
from inspector.errors import InspectorError
from inspector.flops.report import CostReport
from inspector.health.report import HealthReport
from inspector.inspection import Inspection, Question
from inspector.overview import Answer, Overview, Topic, summarise_reports
from inspector.params.report import ParameterReport
from inspector.render.answer_words import answer_word, types_line
from inspector.units import human_bytes, human_count, human_input, human_macs
from inspector.web import reports, states
from inspector.web.components import Figure, Verdict
from inspector.web.session import Hand
from inspector.web.text import escaped, mono

#: Where the reasons of an answer stand: (page, what its link says).
_PAGES = {
    Topic.MODEL: ("pages/architecture.py", "Architecture"),
    Topic.LOADING: ("pages/repair.py", "Repair"),
    Topic.CODE: ("pages/contents.py", "Contents"),
    Topic.NOTICED: ("pages/weights.py", "Weights"),
}
_CONTENTS = ("pages/contents.py", "Contents")
_NO_WEIGHTS = {Topic.MODEL: _CONTENTS, Topic.LOADING: _CONTENTS, Topic.NOTICED: ("", "")}


def overview_of_hand(hand: Hand, checkpoint: Checkpoint, measured: HealthReport | None) -> Overview:
    """The answer about the file in hand. measured: what its numbers say, once its numbers were read."""
    return summarise_reports(inspection_of_hand(hand, checkpoint, measured))


def inspection_of_hand(hand: Hand, checkpoint: Checkpoint, measured: HealthReport | None) -> Inspection:
    """What was asked of the file in hand, for the answer and for the report."""
    recognition = keys = None
    skipped: tuple[tuple[str, str], ...] = ()
    if checkpoint.weights is not None:
        recognition, target = reports.recognition_of(hand), reports.own_target(hand)
        try:
            keys = reports.keys_of(hand, target) if target is not None else None
        except InspectorError as error:
            skipped = ((Question.KEYS.value, str(error)),)
    return Inspection(
        checkpoint=checkpoint,
        state=states.meant_state(checkpoint),
        recognition=recognition,
        keys=keys,
        health=measured,
        skipped=skipped,
    )


def bare_rows(answers: Iterable[Answer]) -> list[Verdict]:
    """Each answer alone, where there is no file yet whose pages could give reasons."""
    return [_bare(answer) for answer in answers]


def _bare(answer: Answer) -> Verdict:
    how = answer_word(answer) if answer.severity else "Not examined"
    return Verdict(word=answer.topic.value.capitalize(), says=answer.says, severity=answer.severity, how=how)


def rows(checkpoint: Checkpoint, answers: Iterable[Answer]) -> list[Verdict]:
    """Each answer with the way to its reasons."""
    pages = _PAGES if checkpoint.weights is not None else _PAGES | _NO_WEIGHTS
    return [
        replace(
            _bare(answer),
            says=f"{answer.says} Choose one on the Repair page."
            if answer.topic is Topic.LOADING and answer.severity is None
            else answer.says,
            page=pages[answer.topic][0],
            link=pages[answer.topic][1],
        )
        for answer in answers
    ]


def numbers(hand: Hand, checkpoint: Checkpoint) -> list[Figure]:
    """The row under the verdict."""
    if checkpoint.weights is None:
        return figures_of(checkpoint, None)
    return figures_of(checkpoint, reports.parameters_of(hand), _macs(costs_of_hand(hand)))


def figures_of(checkpoint: Checkpoint, counts: ParameterReport | None, macs: Figure | None = None) -> list[Figure]:
    """The same from reports in hand. counts: None where there are no weights."""
    if checkpoint.weights is None or counts is None:
        nbytes = sum(t.nbytes for t in checkpoint.tensors)
        return [
            Figure(label="tensors", says=str(len(checkpoint.tensors))),
            Figure(label="of numbers", says=human_bytes(nbytes), exact=f"{nbytes:,} bytes"),
        ]
    total = counts.total
    weights_nbytes = total.parameter_nbytes + total.buffer_nbytes
    held, exact = human_bytes(weights_nbytes), f"{weights_nbytes:,} bytes"
    own = next((state for state in checkpoint.state_dicts if state.path == counts.state_dict), checkpoint.weights)
    lost = nbytes_lost(own.tensors, checkpoint.storages) if own is not None else 0
    if lost:
        # Of a file that was cut the header still tells the whole.
        here = weights_nbytes - lost
        held, exact = f"{human_bytes(here)} of {held}", f"{here:,} of {exact}"
    found = [
        Figure(label="parameters", says=human_count(total.parameters), exact=f"{total.parameters:,}"),
        Figure(label="weights and buffers", says=held, exact=exact),
        Figure(
            label="element type" if len(counts.dtypes) == 1 else "element types",
            says=types_line([dtype for dtype, _, _ in counts.dtypes]),
            exact=", ".join(dtype for dtype, _, _ in counts.dtypes) if len(counts.dtypes) > 1 else "",
        ),
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
    if macs is not None:
        found.append(macs)
    found += [Figure(label=key, says=value) for key, value in checkpoint.metadata if key in {"epoch", "step"}]
    return found


def costs_of_hand(hand: Hand) -> CostReport | None:
    """What one forward pass costs of what the file is for sure; None for others."""
    recognition = reports.recognition_of(hand)
    if recognition.best is None or not recognition.best.exact:
        return None
    try:
        return reports.costs_of(recognition.best.spec)
    except InspectorError:
        # The Architecture page says why; the overview leaves the figure out.
        return None


def _macs(costs: CostReport | None) -> Figure | None:
    if costs is None:
        return None
    at = human_input(costs.input_shape[1:])
    return Figure(label=f"MACs at {at}", says=human_macs(costs.macs), exact=f"{costs.macs:,}")


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
