"""What the model answers: its columns by name, as shares, confidences or numbers, and which one is asked about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from inspector.cam.report import Explanation, Score
from inspector.cam.targets.answers import AnswerKind, infer_answer
from inspector.render.scores import READ_AS, share_text
from inspector.web import reports
from inspector.web.session import Hand
from inspector.web.text import escaped, plain

if TYPE_CHECKING:
    from inspector.cam.live import Look

_BARS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """How the answer is read. names: of the classes in output order, () where nobody names them. answer: how the scores
    are meant."""

    names: tuple[str, ...] = ()
    answer: AnswerKind = AnswerKind.ONE


def stated_names(hand: Hand) -> tuple[str, ...]:
    """What the file, its digest or a file beside it calls the classes."""
    from inspector.cam.inputs.classes import class_names

    return class_names(reports.recognition_of(hand), reports.checkpoint_of(hand))


def class_count(seen: Look, hand: Hand) -> int:
    """How many names are needed: one for each column, or for each label that the detector could give."""
    from inspector.cam.live import Kind

    if seen.kind is not Kind.BOXES:
        return len(seen.logits)
    return max(len(stated_names(hand)), 1 + max(box.label for box in seen.boxes))


def named(seen: Look, naming: Naming) -> tuple[str, ...]:
    """A name for each column, () where there is none."""
    from inspector.cam.live import Kind

    if seen.kind is Kind.BOXES:
        return tuple(f"{_called(box.label, naming)}, box {number}" for number, box in enumerate(seen.boxes, start=1))
    return naming.names if len(naming.names) == len(seen.logits) else ()


def scores_of(seen: Look, naming: Naming) -> tuple[Score, ...]:
    """Every column, best first; of a segmentation those classes that the model sees somewhere, by their share of the
    picture."""
    from inspector.cam.describe import scores_of as class_scores
    from inspector.cam.live import Kind

    names = named(seen, naming)
    if seen.kind is Kind.CLASSES:
        return class_scores(seen.logits, names, naming.answer)
    shares = [box.score for box in seen.boxes] if seen.kind is Kind.BOXES else list(seen.shares)
    scores = [
        Score(index=k, name=names[k] if names else None, logit=logit, probability=share)
        for k, (logit, share) in enumerate(zip(seen.logits.double().tolist(), shares, strict=True))
    ]
    order = sorted(range(len(scores)), key=lambda k: -shares[k])
    return tuple(scores[k] for k in order if seen.kind is Kind.BOXES or shares[k] > 0)


def asked_label(made: Explanation) -> str:
    """What a map is of: a class by its name or index, a box with its number too."""
    label = class_label(made.target)
    return f"{label}, box {made.box.partition(':')[0]}" if made.box else label


def class_label(score: Score) -> str:
    """Its name, else its index."""
    return score.name if score.name else f"class {score.index}"


def choose_columns(seen: Look, scores: tuple[Score, ...], key: str) -> tuple[int, int | None]:
    """(the column asked about, another one beside it or None)."""
    from inspector.cam.live import Kind

    by_index = {score.index: score for score in scores}
    what = {Kind.CLASSES: "Class", Kind.PIXELS: "Pixels of", Kind.BOXES: "Box"}[seen.kind]
    order = list(by_index)
    first, second = st.columns(2)
    chosen = first.selectbox(
        what,
        order,
        index=order.index(seen.best) if seen.best in by_index else 0,
        format_func=lambda i: f"{class_label(by_index[i])} · {share_text(by_index[i])}",
        key=f"class-{key}",
        help="Type to search among all of them.",
    )
    target = order[0] if chosen is None else int(chosen)
    other = second.selectbox(
        "Compare with",
        [i for i in order if i != target],
        index=None,
        format_func=lambda i: f"{class_label(by_index[i])} · {share_text(by_index[i])}",
        placeholder="no other" if len(order) > 1 else "there is no other",
        key=f"other-{key}-{target}",
        disabled=len(order) < 2,
        help="Its map beside the first one, and the difference of both.",
    )
    return target, None if other is None else int(other)


def score_bars(scores: tuple[Score, ...]) -> str:
    """Top classes as bars, as HTML; plain numbers without."""
    numbers = all(score.probability is None for score in scores)
    rows = "".join(
        f"<span>{escaped(class_label(score))}</span>{_bar(score)}"
        f'<span title="score {score.logit:.6g}">{share_text(score)}</span>'
        for score in scores[:_BARS]
    )
    return f'<div class="mi-scores{" mi-plain" if numbers else ""}">{rows}</div>'


def _bar(score: Score) -> str:
    if score.probability is None:
        return "<i></i>"
    return f'<i><i style="width:{100 * min(1.0, max(0.0, score.probability)):.2f}%"></i></i>'


def edit_naming(hand: Hand, count: int) -> Naming:
    """Names and how the answer is read as they are stated, open to change. count: of the classes."""
    start, stated = stated_names(hand), infer_answer(reports.checkpoint_of(hand))
    held = f"names-{hand.sha256}"
    kept: tuple[str, ...] = st.session_state.get(held, start)
    source = "set on this page" if kept != start else "stated by the file" if start else "nobody names them"
    with st.expander(f"Classes · {source}", icon=":material/label:"):
        how = st.selectbox(
            "The answer is",
            list(AnswerKind),
            list(AnswerKind).index(stated),
            format_func=READ_AS.__getitem__,
            key=f"reading-{hand.sha256}",
            help="One class of several: shares add up to 100 %. Several labels: each has its own. Numbers: no shares.",
        )
        kept = _edit_names(hand, kept, count)
    st.session_state[held] = kept
    return Naming(names=kept if len(kept) == count else (), answer=how or stated)


def _edit_names(hand: Hand, kept: tuple[str, ...], count: int) -> tuple[str, ...]:
    from inspector.cam.inputs.classes import names_in_text

    turn = f"names-turn-{hand.sha256}"
    left, right = st.columns([3, 2])
    upload = right.file_uploader(
        "Names from a file",
        type=["txt", "json", "csv"],
        key=f"names-file-{hand.sha256}",
        max_upload_size=5,
        help="One name per line, or a JSON list, or a JSON object from index to name.",
    )
    if upload is not None and st.session_state.get(f"{turn}-id") != upload.file_id:
        st.session_state[f"{turn}-id"] = upload.file_id
        ending = ".json" if upload.name.lower().endswith(".json") else ""
        found = names_in_text(upload.getvalue().decode("utf-8-sig", "replace"), ending)
        kept = found or kept
        if not found:
            right.warning(f"{plain(upload.name)} holds no class names.", icon=":material/warning:")
        # Another box: the text of the one before belongs to the visitor's typing.
        st.session_state[turn] = st.session_state.get(turn, 0) + 1
    text = left.text_area(
        "Names, one per line", "\n".join(kept), height=180, key=f"names-text-{hand.sha256}-{st.session_state.get(turn)}"
    )
    lines = tuple(line.strip() for line in (text or "").splitlines() if line.strip())
    if lines and len(lines) != count:
        right.warning(f"{len(lines)} names for {count} classes: they are not used.", icon=":material/warning:")
    return lines


def _called(label: int, naming: Naming) -> str:
    return naming.names[label] if label < len(naming.names) else f"class {label}"
