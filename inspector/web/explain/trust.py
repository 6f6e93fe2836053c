"""Can this map be trusted: measured as a job, each number beside maps that know nothing, and in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st
from PIL import Image

from inspector.cam.report import Explanation
from inspector.errors import ExplainError
from inspector.render.curves import curve_figure
from inspector.units import human_duration
from inspector.web import jobs
from inspector.web.explain import looking
from inspector.web.explain.answer import Naming
from inspector.web.explain.looking import Recipe, Subject
from inspector.web.explain.pictures import TYPES
from inspector.web.text import escaped

if TYPE_CHECKING:
    from torch import Tensor

    from inspector.cam.trust.assess import Trust
    from inspector.progress import Progress

_WORDS = {"random": "random map", "centre": "centred Gaussian", "edges": "edges of the picture"}
_MASK_MEASURES = (
    ("energy", "Energy in the mask", "Share of the heat that lies on the thing.", True),
    ("pointing", "Pointing game", "1 when the hottest place lies on the thing.", True),
)


def show_trust(subject: Subject, recipe: Recipe, made: Explanation, naming: Naming) -> None:
    """Estimate, then the work, then the table and the curves."""
    from inspector.cam.look import Kind
    from inspector.cam.trust.assess import Trust, assess, cost

    seen = looking.look_at(subject)
    if seen.kind is not Kind.CLASSES:
        st.info("These measures change the picture and watch a class's probability, so they are for classifiers.")
        return
    if recipe.options.fusion or recipe.options.augmented or recipe.options.eigen_smooth:
        st.caption("Measured without smoothing, augmentation and fusion.")
    mask, mask_key = _choose_mask(made)
    own = max(1, seen.passes(recipe.method, recipe.layer))
    passes = cost() * (own if own > 1 else 1)
    key = ("trust", subject.key, recipe.layer, recipe.method, recipe.target, naming.answer, mask_key)
    if not jobs.is_known(key) and jobs.finished(key, Trust) is None:
        st.markdown(
            "Is this map better than a random one, a blob in the middle, the edges of the picture? Does it change when "
            "the model forgets what it learned?"
        )
        about = human_duration(passes * seen.forward_seconds)
        if not st.button(f"Measure it · about {about}", key="measure-trust", icon=":material/science:", type="primary"):
            return

    def work(progress: Progress) -> Trust:
        return assess(
            seen.twin(),
            seen.batch,
            layer=recipe.layer if recipe.layer.path else None,
            target=recipe.target,
            method=recipe.method,
            mask=mask,
            answer=naming.answer,
            progress=progress,
        )

    found = jobs.await_job(key, Trust, work, title="Measuring the map and three that know nothing")
    if found is not None:
        _show(found)
        _agreement(subject, recipe, naming)


def _show(found: Trust) -> None:
    from inspector.cam.trust.measures import MEASURES

    measures = [(m.id, m.title, m.says, m.higher) for m in MEASURES]
    measures += [m for m in _MASK_MEASURES if any(name == m[0] for name, _ in found.rows[0].values)]
    measures = [m for m in measures if any(name == m[0] for name, _ in found.rows[0].values)]
    st.html(trust_table(found, measures))
    for _, says in found.refused:
        st.caption(says)
    left, right = st.columns(2)
    for place, which, title in ((left, "insertion", "Insertion"), (right, "deletion", "Deletion")):
        lines = [(_WORDS.get(row.of, "this map"), dict(row.curves).get(which, ())) for row in found.rows]
        lines = [(name, points) for name, points in lines if points]
        if lines:
            place.plotly_chart(
                curve_figure(lines, title=title, x="share of pixels, the hottest first", y="probability"),
                key=f"curve-{which}",
                config={"displayModeBar": False},
            )
    if found.stages:
        points = tuple((float(stage.modules), stage.correlation) for stage in found.stages)
        last = found.stages[-1].correlation
        verdict = (
            "The map hardly changes when the model forgets what it learned, so it does not show that."
            if last > 0.5
            else "The map changes when the model forgets what it learned, as it should."
        )
        st.plotly_chart(
            curve_figure(
                [("rank correlation with the trained model's map", points)],
                title="Randomised from the answer down",
                x="modules whose weights were replaced",
                y="rank correlation",
                lowest=-1.0,
            ),
            key="curve-randomised",
            config={"displayModeBar": False},
        )
        st.caption(f"{verdict} At the end the correlation is {_number(last)}; 0 is no likeness.")


def trust_table(found: Trust, measures: list[tuple[str, str, str, bool | None]]) -> str:
    """One row a measure, one column a map, the verdict in words; as HTML."""
    heads = "".join(f'<th class="mi-num">{escaped(_WORDS.get(row.of, "this map"))}</th>' for row in found.rows)
    lines = []
    for name, title, says, higher in measures:
        values = [dict(row.values).get(name) for row in found.rows]
        cells = "".join(f'<td class="mi-num">{_number(value)}</td>' for value in values)
        lines.append(
            f"<tr><td><b>{escaped(title)}</b><br><small>{escaped(says)}</small></td>{cells}"
            f"<td>{escaped(judgement(values, higher))}</td></tr>"
        )
    return (
        '<div class="mi-scroll"><table class="mi-table" data-table="trust"><thead><tr><th>Measure</th>'
        f"{heads}<th>This map is</th></tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def judgement(values: list[float | None], higher: bool | None) -> str:
    """Where the first value stands among the others, in words. higher: whether more is better, None for neither."""
    own, others = values[0], [v for v in values[1:] if v is not None and not math.isnan(v)]
    side = {True: "higher is better", False: "lower is better", None: "neither is better"}[higher]
    if own is None or math.isnan(own) or higher is None or not others:
        return side
    beaten = sum((own > other) if higher else (own < other) for other in others)
    says = {len(others): "better than all of them", 0: "better than none of them"}.get(
        beaten, f"better than {beaten} of {len(others)}"
    )
    return f"{says} ({side})"


def _agreement(subject: Subject, recipe: Recipe, naming: Naming) -> None:
    """How alike the methods rank the places of this layer."""
    from inspector.cam.methods import METHODS
    from inspector.cam.trust.agreement import rank_correlation

    maps: list[tuple[str, Tensor]] = []
    for method in METHODS:
        if method.arithmetic is None:
            continue
        try:
            made = looking.explained(
                subject, Recipe(method=method.id, layer=recipe.layer, target=recipe.target), naming
            )
        except ExplainError:
            continue
        import torch

        maps.append((method.title, torch.from_numpy(made.raw)))
    names = [name for name, _ in maps]
    values = [[rank_correlation(a, b) for _, b in maps] for _, a in maps]
    from inspector.render.curves import matrix_figure

    st.markdown("**Do the methods agree?**")
    st.caption(
        f"Rank correlation of the maps at {recipe.layer.path}, before ReLU: 1 is the same order of places, -1 the "
        "reverse."
    )
    st.plotly_chart(matrix_figure(names, values), key="agreement", config={"displayModeBar": False})


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
        mask = mask_of(upload.getvalue(), made)
        return mask, str(upload.file_id)


def mask_of(data: bytes, made: Explanation) -> Tensor:
    """(H, W) of bool at the model's input size: where the mask's picture is brighter than half.

    Raises ExplainError when it is no picture, of another size, or marks nothing that the model saw.
    """
    import torch

    from inspector.cam.picture import open_picture, upright

    mask = upright(open_picture(data)).convert("L")
    crop, (height, width) = made.crop, made.heat.shape
    if mask.size != (crop.picture_width, crop.picture_height):
        raise ExplainError(
            f"The mask has {mask.width} x {mask.height} pixels, the picture {crop.picture_width} x "
            f"{crop.picture_height}.",
            hint="Draw it on the picture itself.",
        )
    box = (crop.left, crop.top, crop.left + crop.width, crop.top + crop.height)
    seen = mask.transform((width, height), Image.Transform.EXTENT, box, Image.Resampling.BILINEAR)
    found = torch.from_numpy(np.array(seen) > 127)
    if not bool(found.any()):
        raise ExplainError("The mask marks nothing that the model saw.", hint="Bright is where the thing is.")
    return found


def _number(value: float | None) -> str:
    return "" if value is None else "none" if math.isnan(value) else f"{value:.3f}"
