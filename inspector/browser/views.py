"""The page's views of one file, each made of the report that the app and the command line show."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from inspector.browser.documents import own_target
from inspector.browser.pieces import finding_cards, globals_table, own_words, tensor_rows
from inspector.checkpoint.types import GlobalVerdict
from inspector.errors import InspectorError, MissingLibrary
from inspector.file_report.make import report_of
from inspector.graph.types import CARRIES_GRAPH
from inspector.inspection import HEADER_QUESTIONS, inspect
from inspector.overview import load_that_runs, unfollowed
from inspector.render.html_text import escaped
from inspector.render.page_report import sections
from inspector.render.page_report.words import folded, section, table
from inspector.render.tree_html import module_branch, tree_html, value_branch
from inspector.render.visible import visible
from inspector.units import counted, human_bytes

if TYPE_CHECKING:
    from inspector.architectures.types import Target
    from inspector.checkpoint.types import Checkpoint
    from inspector.file_report.report import FileReport
    from inspector.graph.types import Drawn
    from inspector.inspection import CountedNumbers, Inspection
    from inspector.keys.report import KeyReport

# Characters of one piece of code.
_MOST_CODE = 100_000


@dataclass
class Opened:
    """A file in hand, and what was asked of it already.

    untried: why there are no keys, where the page lacks something.
    """

    checkpoint: Checkpoint
    inspection: Inspection
    report: FileReport
    target: Target | None = None
    keys: KeyReport | None = None
    untried: MissingLibrary | None = None
    accept: tuple[str, ...] = ()
    choose: dict[str, str] = field(default_factory=dict)
    partial: bool = False
    graph_read: bool = False
    drawn: Drawn | None = None

    def close(self) -> None:
        """Let go of the file."""
        self.checkpoint.source.close()

    def learn(self, counted: CountedNumbers) -> None:
        """What was counted of the numbers is in every view, and in the report, from now on."""
        self.inspection = replace(self.inspection, counted=counted)
        self.report = report_of(self.inspection)


def open_path(path: str, member: str = "") -> Opened:
    """By the headers alone; with a member, that file of the archive at the path. Raises as `open_checkpoint`."""
    from inspector.readers import open_checkpoint

    if member:
        from inspector.browser.members import taken_out

        source = taken_out(path, member)
        try:
            checkpoint = open_checkpoint(source)
        except BaseException:
            source.close()
            raise
    else:
        checkpoint = open_checkpoint(path)
    inspection = inspect(checkpoint, HEADER_QUESTIONS)
    return Opened(checkpoint=checkpoint, inspection=inspection, report=report_of(inspection))


def overview(opened: Opened) -> dict[str, Any]:
    """What is it, does it load, would it run code, what was noticed."""
    report, checkpoint = opened.report, opened.checkpoint
    return {
        "name": visible(checkpoint.origin.name),
        "line": [report.file.format_says, human_bytes(report.file.nbytes)],
        "answers": own_words(sections.answers(report)),
        "topics": [answer.topic.value for answer in report.answers],
        "numbers": sections.numbers(report),
        "findings": finding_cards(
            report.findings, checkpoint, {f.id for f in report.repair.findings} if report.repair else ()
        ),
        "about": own_words(sections.the_file(report) + sections.not_examined(report)),
        "weights": bool(report.tensors),
        "graph": checkpoint.format in CARRIES_GRAPH,
        "tensors": len(checkpoint.tensors),
    }


def contents(opened: Opened) -> dict[str, Any]:
    """What lies around the tensors, and which code an ordinary load would run."""
    checkpoint = opened.checkpoint
    known = [use for use in checkpoint.globals if use.verdict is GlobalVerdict.KNOWN]
    others = [use for use in checkpoint.globals if use.verdict is not GlobalVerdict.KNOWN]
    inside = f"<p>{escaped(_code_says(checkpoint))}</p>{globals_table(others)}"
    if known:
        inside += folded(counted(len(known), "known name"), globals_table(known))
    program = "".join(
        folded(f"{visible(piece.name)}, {human_bytes(piece.nbytes)}", f"<pre>{escaped(piece.text[:_MOST_CODE])}</pre>")
        for piece in checkpoint.code
    )
    if program:
        program = f"<p>It lies in the file and was read as text. None of it was run.</p>{program}"
    skipped = table(("What and why",), [(escaped(own_words(said)),) for said in checkpoint.skipped])
    return {
        "html": section("Code named in the file", inside)
        + section("Program text", program)
        + section("Values", tree_html([value_branch(checkpoint.origin.name, checkpoint.root)]))
        + (section("Not examined", skipped) if checkpoint.skipped else "")
    }


def _code_says(checkpoint: Checkpoint) -> str:
    if checkpoint.globals:
        from inspector.checkpoint.types import Reach

        called = sum(use.called and use.reach is not Reach.LEAVES for use in checkpoint.globals)
        says = f"{counted(len(checkpoint.globals), 'global')}, {called} of them called by {load_that_runs(checkpoint)}."
        return f"{says} Nothing was executed here: they were read as text."
    ends = unfollowed(checkpoint)
    if ends:
        return f"{ends} Up to there it names no code."
    return "The file names no code: there is nothing in it that a load could run."


def tensors(opened: Opened) -> dict[str, Any]:
    """Every tensor's row, of the weights or of one other state dict."""
    checkpoint = opened.checkpoint
    weights = checkpoint.weights
    sets = [{"label": visible(state.label), "role": state.role.value, **tensor_rows(state.tensors)}
            for state in checkpoint.state_dicts]  # fmt: skip
    chosen = next((n for n, state in enumerate(checkpoint.state_dicts) if state is weights), 0)
    if not sets and checkpoint.tensors:
        sets = [{"label": "all", "role": "", **tensor_rows(checkpoint.tensors)}]
    return {"sets": sets, "chosen": chosen}


def architecture(opened: Opened) -> dict[str, Any]:
    """What it was recognised as, sizes by module, the tree."""
    state = opened.checkpoint.weights
    html = own_words(sections.architecture(opened.report))
    told = opened.inspection.recognition.structure if opened.inspection.recognition else None
    if told is not None and told.claims:
        from inspector.architectures.structure.wording import notation

        rows = [(escaped(claim.says), escaped(claim.evidence)) for claim in told.claims]
        inside = f"<p>{escaped(told.counts)}</p>" + table(("From names and shapes", "Evidence"), rows)
        legend = notation(told.claims)
        inside += f'<p class="soft">{escaped(legend)}</p>' if legend else ""
        html += section("What names and shapes tell", inside)
        html += f'<p class="soft">No shape tells {escaped("; ".join(told.open))}.</p>' if told.open else ""
    if state is not None:
        html += section("Modules", tree_html([module_branch(state.modules)], open_depth=1, heads=("elements",)))
    return {"html": html}


def repair(opened: Opened) -> dict[str, Any]:
    """Why it does not load, and what would make it: for the target that was chosen, or the file's own."""
    from inspector.keys.diagnose import diagnose

    checkpoint = opened.checkpoint
    # Of another target nothing may be written by what was found of the last one.
    opened.keys = opened.untried = None
    try:
        target = opened.target or own_target(checkpoint, checkpoint.weights)
        keys = diagnose(checkpoint, target, accept=opened.accept, choose=opened.choose, partial=opened.partial)
    except MissingLibrary as error:
        opened.untried = error
        return _no_diagnosis(f"Not tried here: {error.says}", error.hint)
    except InspectorError as error:
        return _no_diagnosis(error.says, error.hint)
    opened.keys = keys
    report = report_of(replace(opened.inspection, keys=keys), spec=target.spec)
    plan = keys.plan
    questions = [
        {"id": one.id, "says": one.question, "options": [list(option) for option in one.options],
         "chosen": opened.choose.get(one.id, "")}
        for one in (plan.ambiguities if plan else ())
    ]  # fmt: skip
    return {
        "target": visible(keys.target),
        "html": own_words(sections.repair(report)),
        "questions": questions,
        "accepts": list(plan.needs_accept) if plan else [],
        "ready": plan is not None and plan.complete,
        "loads": keys.loads,
    }


def _no_diagnosis(says: str, hint: str) -> dict[str, Any]:
    """The form for another target stays."""
    html = f'<p>{escaped(own_words(says))}</p><p class="soft">{escaped(own_words(hint))}</p>'
    return {"target": "", "html": html, "questions": [], "accepts": [], "ready": False, "loads": False}
