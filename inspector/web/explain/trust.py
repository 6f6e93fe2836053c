"""Can this map be trusted: measured as a job, each number beside maps that know nothing, and in words."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING

import streamlit as st

from inspector.cam.report import Explanation
from inspector.render.curves import curve_figure, matrix_figure
from inspector.render.json import as_json
from inspector.render.trust_files import trust_csv
from inspector.units import human_duration
from inspector.web import jobs, reports
from inspector.web.explain import looking
from inspector.web.explain.answer import Naming
from inspector.web.explain.looking import Subject
from inspector.web.explain.pictures import TYPES
from inspector.web.text import escaped, plain

if TYPE_CHECKING:
    from torch import Tensor

    from inspector.cam.spec import MapSpec
    from inspector.cam.trust.assess import Cost, Trust
    from inspector.cam.trust.making import Maker
    from inspector.progress import Progress

_WORDS = {"random": "noise", "centre": "blob in the middle", "edges": "edges of the picture"}
_MASK_MEASURES = (
    ("energy", "Energy in the mask", "Share of the heat that lies on the thing.", True),
    ("pointing", "Pointing game", "1 where the hottest place lies on the thing, else 0.", True),
)
_PLAIN_CHART = {"displayModeBar": False}


def show_trust(subject: Subject, target: int, made: Explanation, naming: Naming) -> None:
    """Estimate, then the work, then the table and the curves."""
    from inspector.cam.spec import MapSpec
    from inspector.cam.trust.assess import Trust, assess

    mask, mask_key = _choose_mask(made)
    spec = MapSpec.of(made)
    key = ("trust", subject.key, spec, target, mask_key, naming.answer)
    known = jobs.is_known(key) or jobs.finished(key, Trust) is not None
    if not known and not jobs.offer(lambda: _offer(subject, spec, target)):
        return
    seen = looking.look_at(subject)

    def work(progress: Progress) -> Trust:
        return assess(
            seen.twin(),
            seen.batch,
            _maker(subject, spec, target),
            mask=mask,
            answer=naming.answer,
            timed=_cost(subject.key, spec, target, subject).pace,
            progress=progress,
        )

    found = jobs.await_job(key, Trust, work, title="Measuring")
    if found is not None:
        _show(found)
        _files(found, made)


def _maker(subject: Subject, spec: MapSpec, target: int) -> Maker:
    from inspector.cam.trust.making import Maker

    read, column = looking.look_at(subject).reading(target)
    return Maker(method=spec.method, layers=spec.layers, options=spec.options, target=column, read=read)


@st.cache_resource(max_entries=32, show_spinner="Timing one pass …")
def _cost(key: tuple[object, ...], spec: MapSpec, target: int, _subject: Subject) -> Cost:
    from inspector.cam.trust.assess import cost

    seen = looking.look_at(_subject)
    with reports.torch_lock:
        return cost(seen.model, seen.batch, _maker(_subject, spec, target))


def _offer(subject: Subject, spec: MapSpec, target: int) -> bool:
    st.markdown(
        "Is this map better than noise, a blob in the middle, the edges of the picture? Does it change when the model "
        "forgets what it learned? Do other methods agree?"
    )
    about = human_duration(_cost(subject.key, spec, target, subject).seconds)
    return st.button(f"Measure it · about {about}", key="measure-trust", icon=":material/science:", type="primary")


def _show(found: Trust) -> None:
    from inspector.cam.methods import method_named
    from inspector.cam.trust import verdicts
    from inspector.cam.trust.measures import MEASURES

    st.markdown(f"**{plain(verdicts.summary(found))}**")
    st.caption("Of one picture. Several pictures of each class tell more about a model than one.")
    measures = [(m.id, m.title, m.says, m.higher) for m in MEASURES]
    measures += _MASK_MEASURES
    st.html(trust_table(found, measures))
    for _, why in found.refused:
        st.caption(plain(why))
    share = found.answer != "numbers"
    with st.container(horizontal=True):
        for which, title, x in (
            ("insertion", "Insertion", "share of pixels put in, the hottest first"),
            ("deletion", "Deletion", "share of pixels taken away, the hottest first"),
        ):
            lines = [(_WORDS.get(row.of, "this map"), dict(row.curves).get(which, ())) for row in found.rows]
            lines = [(name, points) for name, points in lines if points]
            if lines:
                st.plotly_chart(
                    curve_figure(lines, title=title, x=x, y="probability" if share else "score", limited=share),
                    key=f"curve-{which}",
                    width=400,  # two of them side by side on most screens
                    config=_PLAIN_CHART,
                )
    if found.void:
        st.warning(plain(found.void))
    if found.stages:
        st.markdown("**Does it change when the model forgets?**")
        st.caption(plain(verdicts.forgetting(found)))
        points = tuple((float(stage.modules), stage.correlation) for stage in found.stages)
        st.plotly_chart(
            curve_figure(
                [("rank correlation", ((0.0, 1.0), *points))],
                title="",
                x="modules whose weights were replaced, from the answer down",
                y="rank correlation",
                lowest=-1.0,
            ),
            key="curve-randomised",
            config=_PLAIN_CHART,
        )
    if found.agreement is not None and len(found.agreement.methods) > 1:
        st.markdown("**Do the methods agree?**")
        st.caption(
            f"Rank correlation of the maps at {plain(found.layer)}, before ReLU: 1 is the same order of places, 0 no "
            "likeness, -1 the reverse. Empty where a map is the same everywhere."
        )
        names = [method_named(name).title for name in found.agreement.methods]
        st.plotly_chart(matrix_figure(names, found.agreement.correlations), key="agreement", config=_PLAIN_CHART)


def _files(found: Trust, made: Explanation) -> None:
    stem = f"trust-{made.method}-{made.target.index}"
    with st.container(horizontal=True, key="trust-files"):
        for text, data, name in (
            ("Numbers (CSV)", lambda: trust_csv(found), f"{stem}.csv"),
            ("Report (JSON)", lambda: as_json(found), f"{stem}.json"),
        ):
            st.download_button(text, data, file_name=name, on_click="ignore", icon=":material/download:", key=name)


def trust_table(found: Trust, measures: list[tuple[str, str, str, bool | None]]) -> str:
    """One row a measure that was taken, one column a map, the verdict in words; as HTML."""
    from inspector.cam.trust import verdicts

    heads = "".join(f'<th class="mi-num">{escaped(_WORDS.get(row.of, "this map"))}</th>' for row in found.rows)
    lines = []
    for name, title, says, higher in measures:
        values = [dict(row.values).get(name) for row in found.rows]
        if values[0] is None:
            continue
        spreads = [dict(row.spreads).get(name) for row in found.rows]
        cells = "".join(
            f'<td class="mi-num">{_number(value)}{_spread(spread)}</td>'
            for value, spread in zip(values, spreads, strict=True)
        )
        alone = all(value is None for value in values[1:])
        margins = [verdicts.margin(row, name) for row in found.rows[1:]]
        verdict = verdicts.steadiness(values[0]) if alone else verdicts.standing(values, higher, margins)
        if verdicts.still(found) and not alone:
            verdict = "says nothing: the answer hardly depends on the picture"
        lines.append(
            f"<tr><td><b>{escaped(title)}</b><br><small>{escaped(says)}</small></td>{cells}"
            f"<td>{escaped(verdict)}</td></tr>"
        )
    return (
        '<div class="mi-scroll"><table class="mi-table" data-table="trust"><thead><tr><th>Measure</th>'
        f"{heads}<th>Verdict</th></tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def _choose_mask(made: Explanation) -> tuple[Tensor | None, str]:
    with st.expander("A mask of where the thing is (optional)", icon=":material/select_all:"):
        upload = st.file_uploader(
            "Mask picture",
            type=TYPES,
            key="mask",
            max_upload_size=50,
            help="Of the picture's own size: bright where the thing is. It adds the energy and the pointing game.",
        )
        if upload is None:
            return None, ""
        data = upload.getvalue()
        return mask_of(data, made), hashlib.sha256(data).hexdigest()


def mask_of(data: bytes, made: Explanation) -> Tensor:
    """(H, W) of bool at the model's input size. Raises ExplainError as `mask_seen` does, and when it is no picture."""
    from inspector.cam.inputs.picture import open_picture, upright
    from inspector.cam.trust.masks import mask_seen

    return mask_seen(upright(open_picture(data)), made.crop, (made.heat.shape[0], made.heat.shape[1]))


def _spread(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"<br><small>± {value:.3f}</small>"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    # No minus before what rounds to nothing.
    return "none" if math.isnan(value) else f"{round(value, 3) + 0.0:.3f}"
