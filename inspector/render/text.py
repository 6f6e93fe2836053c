"""Reports as rich renderables for a terminal: the answer first, then why, then the rest.

Every text that came from a file goes through `safe`: terminal control characters are shown, not obeyed, and rich's
markup is not interpreted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text

from inspector.checkpoint.digest import digested
from inspector.checkpoint.producer import producer_of
from inspector.checkpoint.types import GlobalVerdict
from inspector.findings import Finding, Severity, ranked
from inspector.render.proof_words import proof_word
from inspector.render.visible import one_line
from inspector.units import counted, human_bytes, human_count, human_shape, human_share, shorten_middle

if TYPE_CHECKING:
    from inspector.architectures.structure.types import Structure
    from inspector.architectures.types import ArchitectureSpec, OptionValue, Recognition
    from inspector.cam.report import Explanation, LayerProposal, Score
    from inspector.checkpoint.types import Checkpoint, StateDict
    from inspector.checkpoint.values import Value
    from inspector.keys.report import Verification
    from inspector.params.report import ParameterReport
    from inspector.weights.report import WeightsReport

STYLE = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.NOTICE: "cyan", Severity.INFO: "dim"}
_SHOWN = 12
_PARTS = 40
_ROWS = 2_000  # Of a table with folded cells.


def safe(text: str) -> str:
    """Text from a file as rich shows it: on one line, control characters written out, markup escaped."""
    return escape(one_line(text))


def table(*columns: str, right: Iterable[int] = ()) -> Table:
    """An empty table in the house style; right: indices of the number columns."""
    made = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    at = set(right)
    for i, column in enumerate(columns):
        made.add_column(column, justify="right" if i in at else "left", overflow="fold")
    return made


def pairs(rows: Sequence[tuple[str, str]]) -> Table:
    """Label and value in two columns."""
    made = Table(box=None, pad_edge=False, show_header=False, show_edge=False)
    made.add_column(style="bold", no_wrap=True)
    made.add_column(overflow="fold")
    for label, value in rows:
        made.add_row(label, value)
    return made


def findings_text(findings: Sequence[Finding]) -> RenderableType:
    """Worst first: severity, sentence, remedy."""
    if not findings:
        return Text("No findings.", style="dim")
    made = table("", "")
    for finding in ranked(findings):
        style = STYLE[finding.severity]
        remedy = f"\n[dim]{safe(finding.remedy)}[/dim]" if finding.remedy else ""
        made.add_row(f"[{style}]{finding.severity.value}[/]", f"{safe(finding.says)} [dim]({finding.id})[/dim]{remedy}")
    made.show_header = False
    return made


def checkpoint_text(checkpoint: Checkpoint) -> RenderableType:
    """What the file is and what is in it."""
    origin = checkpoint.origin
    nbytes = sum(s.nbytes for s in checkpoint.storages.values())
    here = sum(min(s.present_nbytes, s.nbytes) for s in checkpoint.storages.values())
    held = human_bytes(nbytes) if here == nbytes else f"{human_bytes(here)} of their {human_bytes(nbytes)}"
    rows = [
        ("File", f"{safe(origin.name)}, {human_bytes(origin.nbytes)}"),
        ("Format", safe(checkpoint.format_says)),
        ("Holds", f"{counted(len(checkpoint.tensors), 'tensor')}, {held}"),
    ]
    producer = producer_of(checkpoint)
    if producer:
        rows.insert(2, ("Written by", safe(producer)))
    if origin.sha256:
        what = digested(checkpoint)
        rows.append(("sha256", f"{origin.sha256} ({safe(what)})" if what else origin.sha256))
    parts: list[RenderableType] = [pairs(rows)]
    if checkpoint.state_dicts:
        made = table("State dict", "Role", "Tensors", "Elements", "Why", right=(2, 3))
        for state in checkpoint.state_dicts:
            elements = sum(t.numel for t in state.tensors)
            made.add_row(
                safe(state.label), state.role.value, f"{len(state.tensors):,}", human_count(elements), safe(state.why)
            )
        parts += ["", made]
    if checkpoint.parts:
        made = table("File", "Size", "What it is", right=(1,))
        for part in checkpoint.parts[:_PARTS]:
            made.add_row(safe(shorten_middle(part.name, 60)), human_bytes(part.nbytes), safe(part.says))
        parts += ["", made]
        if len(checkpoint.parts) > _PARTS:
            parts.append(f"[dim]and {len(checkpoint.parts) - _PARTS:,} more files[/dim]")
    if checkpoint.metadata:
        parts += [
            "",
            pairs([(safe(shorten_middle(k, 44)), safe(shorten_middle(v, 120))) for k, v in checkpoint.metadata]),
        ]
    if checkpoint.globals:
        known = [g for g in checkpoint.globals if g.verdict is GlobalVerdict.KNOWN]
        other = [g for g in checkpoint.globals if g.verdict is not GlobalVerdict.KNOWN]
        parts += ["", f"[bold]Code[/bold]  {_globals_sentence(len(other), len(known))}"]
        if other:
            made = table("Global", "Verdict", "Times", "Place", "Arguments", right=(2,))
            for use in other[:_SHOWN]:
                style = "bold red" if use.verdict is GlobalVerdict.DANGEROUS else "yellow"
                place = safe(shorten_middle(use.place or "the root", 40))
                arguments = safe(shorten_middle(use.arguments, 60))
                made.add_row(f"[{style}]{safe(use.name)}[/]", use.verdict.value, str(use.count), place, arguments)
            parts.append(made)
            if len(other) > _SHOWN:
                parts.append(f"[dim]and {len(other) - _SHOWN} more[/dim]")
    if checkpoint.code:
        total = sum(text.nbytes for text in checkpoint.code)
        says = f"{counted(len(checkpoint.code), 'piece')} of program text, {human_bytes(total)}: shown, never run."
        parts += ["", f"[bold]Program[/bold]  {says} Print it with --code."]
    parts += ["", findings_text(checkpoint.findings)]
    parts += [f"[dim]Not examined: {safe(what)}[/dim]" for what in checkpoint.skipped]
    return Group(*parts)


def code_text(checkpoint: Checkpoint) -> RenderableType:
    """The program text in the file, piece by piece."""
    if not checkpoint.code:
        return Text("The file holds no program text.", style="dim")
    pieces: list[RenderableType] = []
    for piece in checkpoint.code:
        extent = "" if piece.whole else ", its beginning"
        pieces.append(f"[bold]{safe(piece.name)}[/bold]  {human_bytes(piece.nbytes)}{extent}")
        pieces.append(Text("\n".join(one_line(line.expandtabs(4)) for line in piece.text.splitlines())))
        pieces.append("")
    return Group(*pieces)


def _globals_sentence(other: int, known: int) -> str:
    if other:
        unknown = counted(other, "global")
        return f"{unknown} that unpickling would import beyond the {known} known ones. Nothing was executed here."
    return f"{counted(known, 'global')}, all known rebuild functions. Nothing was executed here."


def tree_text(root: Value, *, depth: int = 3) -> RenderableType:
    """The tree of values, to a depth."""
    from rich.tree import Tree

    def label(name: str, value: Value) -> str:
        mark = " [bold red]not executed[/]" if value.inert else ""
        return f"[bold]{safe(shorten_middle(name, 60))}[/] [dim]{safe(value.type_name)}[/] {safe(value.says)}{mark}"

    def grow(tree: Tree, value: Value, left: int) -> None:
        for name, child in value.children[: 60 if left else 0]:
            grow(tree.add(label(name, child)), child, left - 1)
        hidden = max(value.size, len(value.children)) - (60 if left else 0)
        if left and hidden > 0:
            tree.add(f"[dim]and {hidden:,} more[/dim]")

    top = Tree(label("file", root))
    grow(top, root, depth)
    return top


class _Lines:
    """A long table in columns of one width: rich lays out every cell by itself, half a millisecond a row."""

    def __init__(self, heads: Sequence[str], rows: Sequence[Sequence[str]], right: Iterable[int]) -> None:
        self.rows = [heads, *rows]
        self.right = frozenset(right)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        widths = [max(map(len, column)) for column in zip(*self.rows, strict=True)]
        for number, row in enumerate(self.rows):
            cells = [
                cell.rjust(width) if at in self.right else cell.ljust(width)
                for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            yield Segment(" ".join(cells).rstrip() + "\n", None if number else Style(bold=True))


def tensors_text(state: StateDict) -> RenderableType:
    """Every tensor of a state dict."""
    heads = ("Tensor", "Shape", "Type", "Elements", "Bytes")
    if len(state.tensors) > _ROWS:
        return _Lines(
            heads,
            [
                (one_line(t.name), human_shape(t.shape), t.dtype, f"{t.numel:,}", human_bytes(t.nbytes))
                for t in state.tensors
            ],
            right=(3, 4),
        )
    made = table(*heads, right=(3, 4))
    for tensor in state.tensors:
        made.add_row(
            safe(tensor.name), human_shape(tensor.shape), tensor.dtype, f"{tensor.numel:,}", human_bytes(tensor.nbytes)
        )
    return made


def recognition_text(recognition: Recognition) -> RenderableType:
    """The answer, the candidates with their evidence, what is odd."""
    parts: list[RenderableType] = [f"[bold]{safe(recognition.answer)}[/bold]"]
    if recognition.official:
        official = recognition.official
        parts.append(f"Official weights: {official.name} ({safe(official.file_name)}), by digest.")
    if recognition.candidates:
        made = table("Candidate", "Score", "Fit", "Missing", "Extra", "Reshaped", right=(1, 2, 3, 4, 5))
        for c in recognition.candidates:
            made.add_row(
                c.spec.label,
                f"{c.score:.3f}",
                f"{len(c.matched):,}",
                f"{len(c.missing):,}",
                f"{len(c.extra):,}",
                f"{len(c.reshaped):,}",
            )
        parts += ["", made]
        parts += [
            f"[dim]{c.spec.label} has twins: {', '.join(c.twins)}[/dim]" for c in recognition.candidates if c.twins
        ]
    best = recognition.best
    if best is not None and len(best.spec.assumed) > 1:
        parts.append(f"[dim]{len(best.spec.assumed)} settings are assumed; identify --assumed lists them.[/dim]")
    if recognition.findings:
        parts += ["", findings_text(recognition.findings)]
    return Group(*parts)


def assumed_text(recognition: Recognition) -> RenderableType:
    """Every setting of the likeliest architecture that no shape tells, and the target that confirms all of them; of
    what no architecture fits in all tensors, what its description leaves open."""
    best, structure = recognition.best, recognition.structure
    parts: list[RenderableType] = [*([_settings_text(best.spec)] if best is not None and best.spec.assumed else [])]
    if structure is not None:
        parts += ["", _open_text(structure)] if parts else [safe(recognition.says), "", _open_text(structure)]
    if parts:
        return Group(*parts)
    return "Nothing is assumed." if best is not None else safe(recognition.says)


def _open_text(structure: Structure) -> RenderableType:
    from inspector.architectures.structure.questions import REASONS

    made = table("No shape tells", "Why", "What confirms it")
    for one in structure.open:
        made.add_row(safe(one), safe(REASONS[one].why), safe(REASONS[one].confirm))
    return made


def _settings_text(spec: ArchitectureSpec) -> RenderableType:
    made = table("Setting", "Assumed", "Why")
    for one in spec.assumed:
        made.add_row(one.name, safe(_option_text(one.value)), safe(one.why))
    written = "&".join(f"{one.name}={_option_text(one.value)}" for one in spec.assumed)
    confirmed = f"{spec.label}{'&' if '?' in spec.label else '?'}{written}"
    return Group(made, "", "If these are right, this target confirms them:", safe(confirmed))


def _option_text(value: OptionValue) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def parameters_text(report: ParameterReport, *, depth: int = 2) -> RenderableType:
    """Counts per module, to a depth."""
    total = report.total
    trainable = "not in the file" if report.trainable is None else f"{report.trainable:,}"
    rows = [
        ("Parameters", f"{total.parameters:,} ({human_bytes(total.parameter_nbytes)})"),
        ("Trainable", trainable),
        ("Buffers", f"{total.buffers:,} ({human_bytes(total.buffer_nbytes)})"),
        ("Told apart by", report.role_source.value),
    ]
    if report.optimizer_nbytes:
        rows.append(("Optimizer", human_bytes(report.optimizer_nbytes)))
    made = table("Module", "Parameters", "Buffers", "Bytes", right=(1, 2, 3))
    for module in report.modules:
        if module.depth <= depth:
            name = "  " * module.depth + (module.path.rpartition(".")[2] or "the whole model")
            nbytes = module.parameter_nbytes + module.buffer_nbytes
            made.add_row(safe(name), f"{module.parameters:,}", f"{module.buffers:,}", human_bytes(nbytes))
    return Group(pairs(rows), "", made)


def weights_text(report: WeightsReport) -> RenderableType:
    """One line of statistics per tensor."""
    made = table("Tensor", "Shape", "Min", "Mean", "Std", "Max", "Zero", "NaN+Inf", right=(2, 3, 4, 5, 6, 7))
    for column in made.columns:
        column.no_wrap = True
    for t in report.tensors:
        bad = "bold red" if t.nan or t.infinite else ""
        made.add_row(
            safe(shorten_middle(t.name, 26)),
            human_shape(t.shape),
            f"{t.minimum:.2g}",
            f"{t.mean:.2g}",
            f"{t.std:.2g}",
            f"{t.maximum:.2g}",
            human_share(t.zero / t.numel) if t.numel else "",
            f"{t.nan}+{t.infinite}" if t.nan or t.infinite else "",
            style=bad,
        )
    parts: list[RenderableType] = [made]
    for says, names in report.decodings:
        first = safe(shorten_middle(names[0], 60))
        more = f" and {counted(len(names) - 1, 'other tensor')}" if len(names) > 1 else ""
        parts.append(f"[dim]Measured of {first}{more}: {safe(says)}[/dim]")
    parts += [f"[dim]{safe(name)} was not measured: {safe(why)}[/dim]" for name, why in report.skipped]
    return Group(*parts)


def verification_text(verification: Verification, *, of_part: bool = False) -> RenderableType:
    """One line per proof. of_part: of a file that holds a part of its network."""
    styles = {"info": "green", "error": "bold red", "warning": "yellow", "notice": "yellow", "unknown": "dim"}
    words = {
        "holds": "passed",
        "holds for the part": "passed for the part",
        "fails": "failed",
        "not possible here": "not possible",
    }
    told = [(*proof_word(proof, of_part=of_part), proof.says) for proof in verification.proofs]
    return pairs([(f"[{styles[tone]}]{words.get(word, word)}[/]", safe(says)) for word, tone, says in told])


def explanation_text(explanation: Explanation, written: Sequence[str]) -> RenderableType:
    """The classes, the map's range, what was assumed."""
    from inspector.cam.advice import note
    from inspector.cam.describe import place_says
    from inspector.cam.layers.layouts import layer_name
    from inspector.cam.methods import method_named
    from inspector.render.scores import READ_AS, share_text

    prep = explanation.preprocessing
    layer = explanation.layer
    place = place_says(layer, explanation.options)
    rows = [
        ("Explains", f"{_class_name(explanation.target)}, {share_text(explanation.target)}"),
        # Pixels and boxes say themselves what their score is.
        ("Answer", READ_AS[explanation.answer] if explanation.asked == "class" else safe(explanation.asked)),
        ("Layer", f"{safe(layer_name(layer))} ({safe(layer.kind)}), {_read(layer)}: {safe(layer.reason)}"),
        *((("Place", place),) if place else ()),
        ("Method", explanation.method),
        (
            "Raw range",
            f"{explanation.raw_minimum:.4g} .. {explanation.raw_maximum:.4g}, "
            f"{human_share(explanation.negative_share)} negative",
        ),
        ("Input", safe(prep.source)),
    ]
    hint = note(method_named(explanation.method), layer)
    if hint:
        rows.append(("Note", hint))
    if written:
        rows.append(("Written", ", ".join(safe(name) for name in written)))
    numbers = all(score.probability is None for score in explanation.scores)
    made = table("Output", "Number", right=(1,)) if numbers else table("Class", "Probability", "Logit", right=(1, 2))
    for score in explanation.scores:
        made.add_row(_class_name(score), share_text(score), *(() if numbers else (f"{score.logit:.3f}",)))
    parts: list[RenderableType] = [pairs(rows), "", made]
    if explanation.findings:
        parts += ["", findings_text(explanation.findings)]
    return Group(*parts)


def _read(layer: LayerProposal) -> str:
    """The grid, and the layout where somebody gave it."""
    from inspector.cam.layers.layouts import layout_text

    given = f" as {layout_text(layer)}" if layer.layout_given else ""
    return f"{layer.grid[0]}x{layer.grid[1]}{given}"


def _class_name(score: Score) -> str:
    return f"{score.index} {safe(score.name)}" if score.name else f"class {score.index}"
