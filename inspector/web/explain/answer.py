"""What the model answers: its columns by name, as shares, confidences or numbers, and which one is asked about."""

from __future__ import annotations

import numpy as np
import streamlit as st

from inspector.cam.columns import Kind
from inspector.cam.report import Explanation, Score
from inspector.cam.targets.answers import AnswerKind, infer_answer
from inspector.jobs.subjects import Naming, Seen
from inspector.render.scores import READ_AS, share_text
from inspector.web import reports
from inspector.web.explain.choices import choose_one, settled
from inspector.web.explain.pictures import Picture
from inspector.web.explain.slots import beside_slot, class_slot
from inspector.web.session import Hand
from inspector.web.text import escaped, plain

_BARS = 5
_ASSUMED = "preprocessing assumed: with another, the answer is another"
_SUGGESTED = ":material/lightbulb:"


def stated_names(hand: Hand) -> tuple[str, ...]:
    """What the file, its digest or a file beside it calls the classes."""
    from inspector.cam.inputs.classes import class_names

    return class_names(reports.recognition_of(hand), reports.checkpoint_of(hand))


def class_count(seen: Seen, hand: Hand) -> int:
    """How many names are needed: one for each column, or for each label that the detector could give."""
    if seen.kind is not Kind.BOXES:
        return len(seen.logits)
    return max(len(stated_names(hand)), 1 + max(box.label for box in seen.boxes))


def named(seen: Seen, naming: Naming) -> tuple[str, ...]:
    """A name for each column, () where there is none."""
    if seen.kind is Kind.BOXES:
        return tuple(f"{_called(box.label, naming)}, box {number}" for number, box in enumerate(seen.boxes, start=1))
    return naming.names if len(naming.names) == len(seen.logits) else ()


def scores_of(seen: Seen, naming: Naming) -> tuple[Score, ...]:
    """Every column, best first; of a segmentation those classes that the model sees somewhere, by their share of the
    picture."""
    names = named(seen, naming)
    if seen.kind is Kind.CLASSES:
        shares = dict(seen.shares)[naming.answer]
        # What is no number comes last; equal scores in their own order.
        order = np.argsort(-np.nan_to_num(seen.logits, nan=-np.inf), kind="stable").tolist()
    else:
        boxes = seen.kind is Kind.BOXES
        shares = np.array([box.score for box in seen.boxes] if boxes else seen.pixels)
        order = [k for k in np.argsort(-shares, kind="stable").tolist() if boxes or shares[k] > 0]
    return tuple(
        Score(
            index=k,
            name=names[k] if names else None,
            logit=float(seen.logits[k]),
            probability=None if shares is None else float(shares[k]),
        )
        for k in order
    )


def asked_label(made: Explanation) -> str:
    """What a map is of: a class by its name or index, a box with its number too."""
    label = class_label(made.target)
    return f"{label}, box {made.box.partition(':')[0]}" if made.box else label


def class_label(score: Score) -> str:
    """Its name, else its index."""
    return score.name if score.name else f"class {score.index}"


def choose_columns(seen: Seen, scores: tuple[Score, ...], hand: Hand, picture: Picture) -> tuple[int, int | None]:
    """(the column asked about, another one beside it or None)."""
    words = {score.index: f"{class_label(score)} · {share_text(score)}" for score in scores}
    what = {Kind.CLASSES: "Class", Kind.PIXELS: "Pixels of", Kind.BOXES: "Box"}[seen.kind]
    best = seen.best if seen.best in words else next(iter(words))
    chosen = choose_one(what, words, class_slot(hand, picture), first=best, says="Type to search among all of them.")
    target = best if chosen is None else chosen
    other = choose_one(
        "Compare with",
        {index: says for index, says in words.items() if index != target},
        beside_slot(hand, picture),
        first=None,
        placeholder="no other" if len(words) > 1 else "there is no other",
        says="Its map beside the first one, and the difference of both.",
    )
    return target, other


def score_bars(scores: tuple[Score, ...], *, assumed: bool = False) -> str:
    """Top classes as bars, as HTML; plain numbers without. assumed: whether nobody states how the pictures were
    prepared, on which they depend."""
    numbers = all(score.probability is None for score in scores)
    rows = "".join(
        f"<span>{escaped(class_label(score))}</span>{_bar(score)}"
        f'<span title="score {score.logit:.6g}">{share_text(score)}</span>'
        for score in scores[:_BARS]
    )
    note = f"<small>{_ASSUMED}</small>" if assumed else ""
    return f'<div class="mi-scores{" mi-plain" if numbers else ""}">{rows}{note}</div>'


def _bar(score: Score) -> str:
    if score.probability is None:
        return "<i></i>"
    return f'<i><i style="width:{100 * min(1.0, max(0.0, score.probability)):.2f}%"></i></i>'


def edit_naming(hand: Hand, count: int) -> Naming:
    """Names and how the answer is read as they are stated, open to change. count: of the classes."""
    start, stated = stated_names(hand), infer_answer(reports.checkpoint_of(hand))
    kept: tuple[str, ...] = st.session_state.get(_held(hand), start)
    with settled(f"classes: {_source(kept, start)}", icon=":material/label:"):
        how = st.selectbox(
            "The answer is",
            list(AnswerKind),
            list(AnswerKind).index(stated),
            format_func=READ_AS.__getitem__,
            key=f"reading-{hand.sha256}",
            persist_state="session",
            help="One class of several: shares add up to 100 %. Several labels: each has its own. Numbers: no shares.",
        )
        _edit_names(hand, kept, count)
    return Naming(names=kept if len(kept) == count else (), answer=how or stated)


def kept_names(hand: Hand) -> tuple[str, ...]:
    """The names that are in use: set on the page, else as they are stated."""
    kept: tuple[str, ...] = st.session_state.get(_held(hand), stated_names(hand))
    return kept


# Names that are neither stated nor a well-known list's go to the command in a file.
NAMES_FILE = "classes.json"


def names_option(names: tuple[str, ...], stated: tuple[str, ...]) -> str:
    """What `--names` is given: the id of a list that was taken, the file beside it, "" where the file says them."""
    from inspector.cam.inputs.class_lists import list_holding

    if not names or names == stated:
        return ""
    suggested = list_holding(names)
    return suggested.id if suggested else NAMES_FILE


def _held(hand: Hand) -> str:
    """Where the names stand that were set on the page."""
    return f"names-{hand.sha256}"


def _source(kept: tuple[str, ...], start: tuple[str, ...]) -> str:
    """Who says what the classes are called."""
    from inspector.cam.inputs.class_lists import list_holding

    if kept == start:
        return "stated in the file" if start else "nobody names them"
    suggested = list_holding(kept)
    return f"{suggested.title} (suggested)" if suggested else "set on this page"


def suggest_names(hand: Hand, count: int) -> None:
    """Well-known lists with as many names, for the visitor to take; nothing where the classes have names."""
    from inspector.cam.inputs.class_lists import ClassList, lists_of, suggestion

    def take(one: ClassList) -> None:
        _set_names(hand, one.names())

    fitting = () if kept_names(hand) else lists_of(count)
    if not fitting:
        return
    with st.container(key="suggested-names", gap="xsmall"):
        st.caption(suggestion(count))
        for one in fitting:
            st.button(f"Use {one.title}'s names", key=f"use-{one.id}", on_click=take, args=(one,), icon=_SUGGESTED)


def _set_names(hand: Hand, names: tuple[str, ...]) -> None:
    st.session_state[_held(hand)] = names
    # Another box: the text of the one before belongs to the visitor's typing.
    turn = f"names-turn-{hand.sha256}"
    st.session_state[turn] = st.session_state.get(turn, 0) + 1


def _edit_names(hand: Hand, kept: tuple[str, ...], count: int) -> None:
    """Both take what was given before the page is drawn again, so that what stands above it says the same."""
    from inspector.cam.inputs.classes import names_in_text

    turn = st.session_state.get(f"names-turn-{hand.sha256}")
    box, file = f"names-text-{hand.sha256}-{turn}", f"names-file-{hand.sha256}"
    refused = f"names-refused-{hand.sha256}"

    def typed() -> None:
        lines = str(st.session_state[box] or "").splitlines()
        st.session_state[_held(hand)] = tuple(line.strip() for line in lines if line.strip())

    def given() -> None:
        upload = st.session_state[file]
        st.session_state.pop(refused, None)
        if upload is None:
            return
        ending = ".json" if upload.name.lower().endswith(".json") else ""
        found = names_in_text(upload.getvalue().decode("utf-8-sig", "replace"), ending)
        if found:
            _set_names(hand, found)
        else:
            st.session_state[refused] = upload.name

    left, right = st.columns([3, 2])
    right.file_uploader(
        "Names from a file",
        type=["txt", "json", "csv"],
        key=file,
        max_upload_size=5,
        help="One name per line, or a JSON list, or a JSON object from index to name.",
        on_change=given,
    )
    if refused in st.session_state:
        right.warning(f"{plain(st.session_state[refused])} holds no class names.", icon=":material/warning:")
    left.text_area("Names, one per line", "\n".join(kept), height=180, key=box, on_change=typed)
    if kept and len(kept) != count:
        right.warning(f"{len(kept)} names for {count} classes: they are not used.", icon=":material/warning:")


def _called(label: int, naming: Naming) -> str:
    return naming.names[label] if label < len(naming.names) else f"class {label}"
