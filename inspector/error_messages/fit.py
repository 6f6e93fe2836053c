"""From the lists of a `load_state_dict` error to its cause and the lines that mend it.

The likeliest causes are asked first; what a cause does not explain is said. No lines are given where names alone do not
decide: a strict load with a tensor in the wrong place would be worse than the error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inspector.checkpoint.bookkeeping import is_bookkeeping
from inspector.error_messages.architecture_guess import suspect
from inspector.error_messages.blocks import find_depths, find_renumbered
from inspector.error_messages.conversions import find_conversion
from inspector.error_messages.halves import (
    HOLDERS,
    KINDS,
    WRAPPED_BY,
    counters_left,
    lone_list,
    missing_alone,
    saved_by,
    unexpected_alone,
)
from inspector.error_messages.heads import other_head
from inspector.error_messages.not_weights import is_constant, other_content
from inspector.error_messages.patches import constants_out, heads_out, into_part, leave_out, only_known, renamed
from inspector.error_messages.renamings import Level, Renamed, find_renamings, one_prefix
from inspector.error_messages.report import Cause, KeyEvidence, KeyLists, PastedError
from inspector.error_messages.shapes import explain_shapes
from inspector.units import counted, shorten_middle

_SAVED_BY = WRAPPED_BY | HOLDERS
_NAMED = 4
_PASTE_WHOLE = "paste the whole message."
_OTHER_WOULD_TELL = "The same names may stand in the other list with a prefix, or otherwise called."
_COMES_NEXT = "torch compares shapes only where names agree, so an error about shapes may follow."


def explain_lists(lists: KeyLists, quote: str) -> PastedError:
    """The cause of one error of load_state_dict."""
    content = other_content(lists, quote)
    if content is not None:
        return content
    converted = find_conversion(lists, quote)
    if converted is not None:
        return converted
    found = find_renamings(lists)
    model_is, file_is = suspect(lists)
    placed, filled = {a for a, _ in found.pairs}, {b for _, b in found.pairs}
    keys = KeyEvidence(
        lists=lists,
        renamings=found.renamings,
        explained=len(found.pairs),
        left_missing=tuple(n for n in lists.missing if n not in filled and not is_bookkeeping(n)),
        left_unexpected=tuple(n for n in lists.unexpected if n not in placed and not is_bookkeeping(n)),
        model_is=model_is,
        file_is=file_is,
    )
    explanation = _explained(keys, found)
    cut = explanation.rests_on_lists and lists.cut
    more = f"The list of {' and of '.join(lists.cut)} breaks off, so this rests on what is there: {_PASTE_WHOLE}"
    return PastedError(
        kind=explanation.kind,
        quote=quote,
        says=explanation.says,
        why=explanation.why,
        steps=(*explanation.steps, more) if cut else tuple(explanation.steps),
        patch=explanation.patch,
        keys=keys,
        causes=explanation.causes,
        asks=explanation.asks,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Explanation:
    """What becomes a `PastedError` with what was pasted; fields as there."""

    kind: str
    says: str
    why: str
    steps: Sequence[str]
    patch: str = ""
    causes: tuple[Cause, ...] = ()
    asks: bool = False
    # Where a list breaks off, this may be wrong.
    rests_on_lists: bool = True


def _explained(keys: KeyEvidence, found: Renamed) -> _Explanation:
    """By the first cause that fits."""
    lists = keys.lists
    if keys.model_is and keys.file_is and not set(keys.model_is) & set(keys.file_is):
        return _other_architecture(keys, found)
    if found.renamings:
        return _renamed(keys, found)
    if found.question:
        return _two_sets(found)
    if renumbered := find_renumbered(lists.missing, lists.unexpected):
        return _renumbered(renumbered)
    if lists.reshaped:
        return _reshaped(keys)
    if lists.unsized and not lists.missing and not lists.unexpected:
        return _shapes_cut(lists)
    depths = find_depths(lists.missing, lists.unexpected) if not lists.cut else ()
    if depths and not (keys.left_missing and keys.left_unexpected):
        return _deeper(keys)
    return _left_over(keys)


def _other_architecture(keys: KeyEvidence, found: Renamed) -> _Explanation:
    says = f"By its names the model is {_or(keys.model_is)}, and the file is {_or(keys.file_is)}."
    both = f"{counted(len(keys.lists.missing), 'missing key')}, {len(keys.lists.unexpected):,} unexpected"
    steps = ["Build the architecture of the file, or load a file of the model's architecture."]
    if found.renamings:
        steps.append(f"Then also {_and([r.says for r in found.renamings])}.")
    steps.append("Do not pass strict=False: what loads is a part of another network.")
    why = (
        f"{both} and {counted(len(keys.lists.reshaped), 'size mismatch', 'size mismatches')} agree "
        f"with these two by name and shape."
    )
    return _Explanation(kind="other-architecture", says=says, why=why, steps=steps)


def _renamed(keys: KeyEvidence, found: Renamed) -> _Explanation:
    lists = keys.lists
    how = _and([r.says for r in found.renamings])
    missing = [n for n in lists.missing if not is_bookkeeping(n)]
    whole = not keys.left_missing and not keys.left_unexpected
    which = "All" if keys.explained == len(missing) else f"{keys.explained:,} of"
    rest = [(len(keys.left_missing), "missing"), (len(keys.left_unexpected), "unexpected")]
    left = " and ".join(f"{n:,} {what}" for n, what in rest if n)
    says = f"{which} {counted(len(missing), 'missing key')} are in the file under another name: {how}."
    if len(missing) == keys.explained == 1:
        says = f"The missing key is in the file under another name: {how}."
    if not found.pairs:
        side, other = ("missing", "unexpected") if found.levels[0].added else ("unexpected", "missing")
        says = f"Of what is pasted, every {side} key has a prefix that no {other} one has: {how}."
    elif left:
        says += f" That leaves {left} ({_some([*keys.left_missing, *keys.left_unexpected])})."
    why = _why_renamed(found.levels, lists)
    steps: list[str] = []
    patch = ""
    prefix = one_prefix(dict(found.pairs)) if found.pairs else None
    if not found.certain:
        steps.append(
            "Names alone do not prove this: check it on the file, which has the shapes, before you load it so."
        )
    elif whole and prefix is not None and not prefix[0]:
        path = prefix[1].rstrip(".")
        patch = into_part(path)
        steps.append(f"Load into model.{path}, or before the model is wrapped.")
    elif whole and found.lines:
        patch = renamed(found.lines, counters=counters_left(lists))
        steps.append("Rename the keys before load_state_dict; names that fit already stay as they are.")
    elif found.lines:
        patch = renamed(found.lines, counters=counters_left(lists))
        steps.append(f"Rename the keys first; the load will then name the {left} that are left.")
    if lists.reshaped:
        steps += [f"{cause.says} {cause.step}" for cause in explain_shapes(lists.reshaped)]
    else:
        steps.append(_COMES_NEXT)
    causes: tuple[Cause, ...] = ()
    if not found.certain and (lists.cut or lists.reshaped):
        causes = (
            Cause("keys-renamed", "A module is called otherwise.", "the whole lists, and the shapes, agree with that"),
            Cause("other-architecture", "It is another network, with like names.", "other names or shapes do not fit"),
        )
        if "unexpected" in lists.cut and not all(level.added for level in found.levels):
            causes += (
                Cause(
                    "several-networks",
                    "The file holds several networks, of which this prefix is one.",
                    "the list that breaks off has the same names under another prefix",
                ),
            )
    return _Explanation(kind="keys-renamed", says=says, why=why, steps=steps, patch=patch, causes=causes)


def _why_renamed(levels: Sequence[Level], lists: KeyLists) -> str:
    known = next((level for level in levels if level.segment in _SAVED_BY), None)
    if known is None:
        return "The file and the model name the same modules differently."
    by = saved_by(known.segment, lists)
    if known.added:
        return f"The model is inside {by}, and the file was saved without it."
    return f"The file was saved from {by}, and the model is without it."


def _two_sets(found: Renamed) -> _Explanation:
    return _Explanation(
        kind="several-networks",
        says=f"The file holds more than one set of weights that fits: {found.question}",
        why="GANs, averaged weights and teachers are saved beside the network itself.",
        steps=("Say which one you want and take the keys with its prefix alone.",),
    )


def _renumbered(stems: Sequence[str]) -> _Explanation:
    where = ", ".join(f"{stem}.N" if stem else "N" for stem in stems[:4])
    return _Explanation(
        kind="renumbered",
        says=f"The numbering differs ({where}): the same names are missing under some numbers and unexpected under "
        "others.",
        why="A module was inserted, removed or moved. Names in between agree, but they may be other layers by now.",
        steps=(
            "Do not pass strict=False: it could put every layer one place off and report nothing.",
            "Bring the file: with its shapes and order it can be told whether the numbering is shifted.",
        ),
    )


def _reshaped(keys: KeyEvidence) -> _Explanation:
    lists = keys.lists
    causes = explain_shapes(lists.reshaped)
    kinds = [cause.kind for cause in causes]
    rest = [*keys.left_missing, *keys.left_unexpected]
    steps = [cause.step for cause in causes]
    if rest:
        steps.append(f"Names differ as well ({_some(rest)}), which another size alone does not explain.")
    patch = ""
    if kinds == ["head-size"] and not rest and not lists.cut:
        patch = heads_out(causes[0].names)
    why = {
        "head-size": "The file was trained on another number of classes.",
        "input-channels": "The file was trained on inputs of another kind, such as grey pictures.",
        "transposed": "Frameworks disagree about whether a linear layer's matrix is (out, in) or (in, out).",
        "empty-in-file": "Training in several processes keeps each parameter in pieces.",
        "empty-in-model": "Training in several processes keeps each parameter in pieces.",
        "packed-in-file": "One side is quantised and the other is not.",
        "packed-in-model": "One side is quantised and the other is not.",
        "other-size": "Depth, width or variant of the model are not those of the file.",
    }.get(kinds[0], "The two models were built with different arguments.")
    if keys.model_is or keys.file_is:
        named = [
            f"the {side} {_or(names)}"
            for side, names in (("model may be", keys.model_is), ("file", keys.file_is))
            if names
        ]
        steps.append(f"By name and shape {' and '.join(named)}.")
    either = causes[0].causes if len(causes) == 1 else ()
    says = " ".join(cause.says for cause in causes)
    return _Explanation(kind=kinds[0], says=says, why=why, steps=steps, patch=patch, causes=either)


def _shapes_cut(lists: KeyLists) -> _Explanation:
    return _Explanation(
        kind="shapes-cut",
        says=f"The file and the model differ in the shape of {_some(lists.unsized)}; the shapes themselves are cut "
        "off.",
        why="The shapes tell another number of classes from another vocabulary, picture size, width or variant.",
        steps=("Paste the whole line, up to the second torch.Size([...]).",),
        asks=True,
        rests_on_lists=False,
    )


def _deeper(keys: KeyEvidence) -> _Explanation:
    depths = find_depths(keys.lists.missing, keys.lists.unexpected)
    first = depths[0]
    stem = f"{first.stem}." if first.stem else ""
    blocks = counted(first.last - first.first + 1, "block")
    who, other = ("model", "file") if first.in_model else ("file", "model")
    lone = lone_list(keys.lists)
    shown = ", as far as this one list shows" if lone else ""
    says = f"The {who} has {blocks} more than the {other}: {stem}{first.first} to {stem}{first.last}{shown}."
    more = f" So it is at {len(depths) - 1:,} more places." if len(depths) > 1 else ""
    names = keys.model_is if first.in_model else keys.file_is
    steps = (
        [f"Build the model with the depth of the file ({stem}{first.first - 1} is its last block)."]
        if first.in_model
        else [f"Build the model with at least {first.last + 1} blocks under {first.stem or 'its root'}."]
    )
    if names:
        steps.append(f"By its names the {who} may be {_or(names)}.")
    causes: tuple[Cause, ...] = ()
    if lone:
        here, there = ("missing", "unexpected") if first.in_model else ("unexpected", "missing")
        causes = (
            Cause("other-depth", "It is a variant of another depth.", f"no keys are {there}"),
            Cause("other-names", "The same blocks are counted otherwise.", f"as many keys are {there} as are {here}"),
        )
    why = "It is a variant of another depth."
    return _Explanation(kind="other-depth", says=says + more, why=why, steps=steps, causes=causes)


def _left_over(keys: KeyEvidence) -> _Explanation:
    lists = keys.lists
    missing, unexpected = keys.left_missing, keys.left_unexpected
    lone = lone_list(lists)
    if not missing and not unexpected:
        return _counters(lists, lone)
    if all(is_constant(name) for name in (*missing, *unexpected)):
        return _constants(keys)
    known = (("model", keys.model_is), ("file", keys.file_is))
    named = [f"By its names the {side} may be {_or(names)}." for side, names in known if names]
    if lone:
        says, why, causes, patch = (unexpected_alone if lone == "unexpected" else missing_alone)(lists)
        return _Explanation(kind=KINDS[causes[0].kind], says=says, why=why, steps=named, patch=patch, causes=causes)
    heads = other_head(lists) if not lists.cut else None
    if heads is not None:
        says, why, causes, patch = heads
        step = "If it is the same layer, rename it; if not, leave the file's out and train the new one."
        return _Explanation(kind=causes[0].kind, says=says, why=why, steps=[*named, step], patch=patch, causes=causes)
    if missing and unexpected:
        return _Explanation(
            kind="keys-unexplained",
            says=f"The file and the model name {len(missing):,} and {len(unexpected):,} keys differently, and no rule "
            "turns one list into the other.",
            why=f"Missing begins with {_short(missing[0])}, unexpected with {_short(unexpected[0])}.",
            steps=[*named, "Bring the file: order, shapes and structure may place what names do not."],
            # Where a list breaks off, its other names may show what these do not.
            asks=bool(lists.cut),
        )
    return _one_side_left(keys, named)


def _one_side_left(keys: KeyEvidence, named: Sequence[str]) -> _Explanation:
    """Of names that one side has and the other has not. named: what is known of either by its names."""
    missing, unexpected, cut = keys.left_missing, keys.left_unexpected, keys.lists.cut
    if (missing and "unexpected" in cut) or (unexpected and "missing" in cut):
        left = missing or unexpected
        here, there = ("missing", "unexpected") if missing else ("unexpected", "missing")
        return _Explanation(
            kind="keys-unexplained",
            says=f"{counted(len(left), 'key')} {'is' if len(left) == 1 else 'are'} {here} ({_some(left)}), and the "
            f"list of {there} ones breaks off before it tells why.",
            why=_OTHER_WOULD_TELL,
            steps=[*named, "Bring the file, or the whole message."],
            asks=True,
        )
    if missing:
        return _Explanation(
            kind="partial-file",
            says=f"{counted(len(missing), 'tensor')} of the model are not in the file ({_some(missing)}); everything "
            "in the file has a place.",
            why="The file holds a part of the model.",
            steps=[
                *named,
                "Find out why they are absent: a new layer, a tied head, or a file that holds the backbone alone.",
                "If they may start untrained, load the rest and check that exactly these are left.",
            ],
            patch=only_known(missing) if not cut else "",
        )
    step = "Make sure the model is the one that was trained: an extra head or loss may be left out, a layer may not."
    return _Explanation(
        kind="extra-tensors",
        says=f"The file holds {counted(len(unexpected), 'tensor')} that the model has not ({_some(unexpected)}); "
        "nothing of the model is missing.",
        why="The file was saved from a larger model.",
        steps=[*named, step],
    )


def _counters(lists: KeyLists, lone: str) -> _Explanation:
    names = _some([*lists.missing, *lists.unexpected])
    says = f"Only counters differ: {names}. No weight is missing and none is left over."
    return _Explanation(
        kind="bookkeeping-only",
        says=f"Only counters are {lone}: {names}. None of them is a weight." if lone else says,
        why="Profilers leave total_ops and total_params behind; old files lack num_batches_tracked, and torch before "
        "0.4.1 does not know it.",
        steps=("Leave the counters out, and let those that are missing stay at zero.",),
        patch=leave_out(),
    )


def _constants(keys: KeyEvidence) -> _Explanation:
    names = [*keys.left_missing, *keys.left_unexpected]
    lasts = tuple(dict.fromkeys(name.rpartition(".")[2] for name in names))
    return _Explanation(
        kind="constant-buffers",
        says=f"Only constants differ ({_some(names)}): the model computes them when it is built, so none is lost.",
        why="Whether they are stored depends on the library's version: transformers before 4.31 stored position_ids, "
        "older ones inv_freq and masks, timm before 0.9 relative_position_index.",
        steps=(
            "Load without them, and check that nothing else is left.",
            "Or install the version that the file was saved with.",
        ),
        patch=constants_out(lasts),
    )


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(_short(name) for name in names[:3])
    return shown + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")


def _short(name: str) -> str:
    return shorten_middle(name, 60)


def _or(names: Sequence[str]) -> str:
    """One of these; of many, three."""
    if len(names) > _NAMED:
        return f"{', '.join(names[:_NAMED])} or {len(names) - _NAMED:,} more of these names"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _and(parts: Sequence[str]) -> str:
    unique = list(dict.fromkeys(parts))
    return ", ".join(unique[:-1]) + (" and " if len(unique) > 1 else "") + unique[-1]
