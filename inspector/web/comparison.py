"""Two files held against each other, as the Compare page shows it: the answer, a strip of all tensors, a table."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from inspector.checkpoint.types import Checkpoint, StateDict
from inspector.compare.optimizer_names import EntryNames, agreed, entry_names
from inspector.compare.report import Diff, OtherChange, Relation, Side, TensorDiff
from inspector.jobs.job import Job
from inspector.jobs.kinds.table import sized
from inspector.render import compare_figures as plots
from inspector.render.diff_words import both_shapes, both_types, largest_change, relation_word, tensor_name, tensor_note
from inspector.render.spreadsheet import csv_text
from inspector.units import counted, human_bytes
from inspector.web import jobs, measuring, reports, states
from inspector.web.charts import draw_chart
from inspector.web.session import Hand
from inspector.web.text import escaped, mono, plain, visible
from inspector.web.trees import table, table_height

_MOST_OTHERS = 200
# Of the first file's optimizer and the second's.
Names = tuple[EntryNames, EntryNames]


def compare(hand: Hand, state: StateDict | None, other: Hand, other_state: StateDict | None) -> Diff | None:
    """The report when it is done, else None, and progress is drawn. Raises what the work raises."""
    nbytes = sum(t.nbytes for one in (hand, other) for t in reports.checkpoint_of(one).tensors)
    job = Job(
        kind=sized("difference", nbytes),
        arguments=(reports.file_of(hand, state), reports.file_of(other, other_state)),
        near=hand.sha256,
    )
    found: Diff | None = jobs.await_job(job, title="Comparing every tensor")
    return found


def choose_other_state(
    checkpoint: Checkpoint, apart_from: StateDict | None, like: StateDict | None
) -> StateDict | None:
    """The second file's state dict; of the same file another one than the first's. like: the first's, whose counterpart
    is proposed."""
    # By path: the same file under another name is opened anew.
    taken = apart_from.path if apart_from is not None else None
    offered = [s for s in checkpoint.state_dicts if len(s.tensors) > 1 and s.path != taken]
    weights = next((s for s in offered if s is checkpoint.weights), None)
    of_its_kind = [s for s in offered if like is not None and (s.path, s.role) == (like.path, like.role)]
    preferred = of_its_kind[0] if of_its_kind else weights
    if len(offered) < 2:
        return preferred or (offered[0] if offered else None)
    index = next((n for n, s in enumerate(offered) if s is preferred), 0)
    chosen = st.selectbox(
        "State dict of the second",
        range(len(offered)),
        index=index,
        format_func=lambda n: visible(states.state_label(offered[n])),
        key=f"other-state-{checkpoint.origin.sha256}-{like.path if like is not None else ''}",
        width=420,
    )
    return offered[chosen] if chosen is not None else None


def draw_answer(diff: Diff) -> None:
    """What the two are to each other, and by what that is known."""
    st.html(f'<p class="mi-answer"><b>{escaped(visible(diff.says))}</b></p>')
    st.caption(plain(visible(diff.alignment.says)))
    for verdict in diff.verdicts:
        word = "Proved" if verdict.proved else "A likeness"
        icon = "verified" if verdict.proved else "join_inner"
        with st.expander(f"{word}: {verdict.title.lower()}", icon=f":material/{icon}:"):
            if verdict.says not in diff.says:
                st.markdown(plain(visible(verdict.says)))
            rows = [("Tested", escaped(visible(verdict.test)))]
            if verdict.number is not None:
                number = f"{verdict.number:.4g}"
                beside = f", said from {verdict.threshold:.4g} on" if verdict.threshold is not None else ""
                rows.append(("Number", escaped(number + beside)))
            rows.append(("It would be refuted by", escaped(visible(verdict.refuted_by))))
            table(("", ""), rows, key=f"verdict-{verdict.id}")


def draw_sides(diff: Diff) -> None:
    """Both files in a line each."""
    table(
        ("", "File", "Format", "State dict", "Tensors", "Parameters", "Bytes"),
        [_side_row("First", diff.a), _side_row("Second", diff.b)],
        key="sides",
    )


def _side_row(word: str, side: Side) -> tuple[str, ...]:
    state = side.state if side.path else "the file itself"
    return (
        escaped(word), mono(side.name, 60), escaped(visible(side.format_says)), mono(state, 40),
        f"{side.tensors:,}", f"{side.parameters:,}", escaped(human_bytes(side.nbytes)),
    )  # fmt: skip


def draw_strip(diff: Diff) -> None:
    """How far each tensor moved."""
    draw_chart(plots.strip_figure(diff), key="strip", alt="Change of every tensor, by layer")


#: The columns of the page's table, in the order of what is asked first.
_SHOWN = (
    "Tensor", "Parameter", "What", "Relative L2", "Changed %", "Cosine", "Largest change", "Shape", "Type", "Note",
)  # fmt: skip


def frame_of(tensors: Sequence[TensorDiff], names: Names) -> pd.DataFrame:
    """A row per tensor, in the first file's order. names: of an optimizer's entries."""
    return pd.DataFrame([_row(tensor, names) for tensor in tensors])


def names_of(hand: Hand, state: StateDict | None, other: Hand, its: StateDict | None) -> Names:
    """Which parameters the entries of two optimizers belong to, by either file."""
    return entry_names(reports.checkpoint_of(hand), state), entry_names(reports.checkpoint_of(other), its)


def _row(tensor: TensorDiff, names: Names) -> dict[str, object]:
    numbers = tensor.numbers
    named = {"Parameter": visible(agreed(*names, tensor.name))} if any(one.of for one in names) else {}
    return {
        "Tensor": visible(tensor_name(tensor)),
        **named,
        "What": relation_word(tensor),
        "Shape": both_shapes(tensor),
        "Type": both_types(tensor),
        "Relative L2": numbers.relative if numbers is not None and not numbers.one_sided else None,
        "Cosine": numbers.cosine if numbers is not None and not numbers.one_sided else None,
        "Changed %": 100 * numbers.changed / numbers.n if numbers is not None and numbers.n else None,
        "Largest change": largest_change(tensor),
        "Note": visible(tensor_note(tensor)),
    }


def draw_table(diff: Diff, names: Names) -> TensorDiff | None:
    """The tensors, filtered; the one whose row is chosen. names: of an optimizer's entries."""
    present = [relation for relation in Relation if diff.totals.count(relation)]
    usual = [relation for relation in present if relation is not Relation.SAME]
    left, right = st.columns([3, 4])
    wanted = left.multiselect(
        "What", present, default=usual or present, format_func=str, key=f"diff-what-{diff.b.sha256}"
    )
    text = right.text_input("Name contains", key="diff-name", placeholder="a part of it")
    asked = [t for t in diff.tensors if t.relation in wanted or t.is_only_renamed]
    kept = [t for t in asked if text.casefold() in f"{t.name} {agreed(*names, t.name)}".casefold()]
    st.caption(f"{counted(len(kept), 'tensor')} of {len(diff.tensors):,}. A chosen row shows both histograms.")
    for word, one in zip(("first", "second"), names, strict=True):
        if one.why_not:
            st.caption(plain(f"The entries of the {word} file's optimizer are numbers without names: {one.why_not}."))
    if not kept:
        return None
    event = st.dataframe(
        frame_of(kept, names),
        hide_index=True,
        key="diff-table",
        height=table_height(len(kept), 440),
        on_select="rerun",
        selection_mode="single-row",
        # Where nothing can be measured; "None" stood there.
        placeholder="",
        # How far it moved in sight of a telephone.
        column_order=_SHOWN,
        column_config={
            "Relative L2": st.column_config.NumberColumn(format="%.4g", help="|second - first| / |first|."),
            "Cosine": st.column_config.NumberColumn(format="%.6f"),
            "Changed %": st.column_config.NumberColumn(format="%.1f", help="Of its elements."),
        },
        alt="What differs, per tensor",
    )
    rows = event.selection.rows
    return kept[rows[0]] if rows and rows[0] < len(kept) else None


def draw_histograms(
    chosen: TensorDiff, hand: Hand, state: StateDict | None, other: Hand, its: StateDict | None
) -> None:
    """Both histograms of one pair over each other."""
    if chosen.a is None or chosen.b is None:
        st.caption("Only one of the files has it.")
        return
    logarithmic = st.toggle("Logarithmic counts", value=True, key="diff-log")
    found = []
    for one, chosen_state, side in ((hand, state, chosen.a), (other, its, chosen.b)):
        checkpoint = reports.checkpoint_of(one)
        tensors = chosen_state.tensors if chosen_state is not None else checkpoint.tensors
        found.append(measuring.tensor_statistics(one, next(t for t in tensors if t.name == side.name)))
    draw_chart(
        plots.overlay_figure(found[0], found[1], logarithmic=logarithmic),
        key="diff-histograms",
        alt=f"Histograms of {chosen.name} in both files",
    )


def draw_others(diff: Diff) -> None:
    """What differs beside the numbers."""
    if diff.others:
        st.header("Beside the weights")
        rows = [
            (escaped(str(o.kind)), _where(o), mono(o.a or "-", 60), mono(o.b or "-", 60))
            for o in diff.others[:_MOST_OTHERS]
        ]
        table(("What", "Where", "First", "Second"), rows, key="others")
        if len(diff.others) > _MOST_OTHERS:
            st.caption(f"{len(diff.others) - _MOST_OTHERS:,} further ones are in the JSON.")
    if diff.skipped:
        st.header("Not compared")
        table(("What",), [(escaped(visible(what)),) for what in diff.skipped], key="not-compared")


def _where(other: OtherChange) -> str:
    named = f"<br>{mono(other.parameter, 60)}" if other.parameter else ""
    return f"{mono(other.where, 60)}{named}" if other.where else ""


def csv_of(diff: Diff, names: Names) -> str:
    """The table to take along."""
    frame = frame_of(diff.tensors, names)
    return csv_text(list(frame.columns), frame.itertuples(index=False, name=None))
