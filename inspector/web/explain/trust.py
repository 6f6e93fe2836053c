"""Can this map be trusted: measured as a job, each number beside maps that know nothing, and in words."""

from __future__ import annotations

import streamlit as st

from inspector.cam.report import Explanation
from inspector.jobs.job import Job
from inspector.jobs.subjects import Naming, Wanted
from inspector.render.curves import curve_figure, matrix_figure
from inspector.render.panels import TrustPanel
from inspector.units import human_duration
from inspector.web import jobs
from inspector.web.charts import draw_chart
from inspector.web.explain.looking import Subject
from inspector.web.explain.pictures import TYPES, Picture
from inspector.web.text import escaped, plain
from inspector.web.trees import scrolled


def show_trust(subject: Subject, target: int, made: Explanation, naming: Naming) -> None:
    """Estimate, then the work, then the table and the curves."""
    mask = _choose_mask()
    wanted = Wanted.of(made)
    job = subject.job("trust", wanted, target, naming, mask.ref if mask is not None else None)
    if not jobs.is_known(job) and not jobs.offer(lambda: _offer(subject.job("trust-cost", wanted, target))):
        return
    found: TrustPanel | None = jobs.await_job(job, title="Measuring")
    if found is not None:
        _show(found)
        _files(found, made)


def _offer(cost: Job) -> bool:
    st.markdown(
        "Is this map better than noise, a blob in the middle, the edges of the picture? Does it change when the model "
        "forgets what it learned? Do other methods agree?"
    )
    about = human_duration(jobs.ask(cost, says="Timing one pass"))
    return st.button(f"Measure it · about {about}", key="measure-trust", icon=":material/science:", type="primary")


def _show(found: TrustPanel) -> None:
    st.markdown(f"**{plain(found.summary)}**")
    st.caption("Of one picture. Several pictures of each class tell more about a model than one.")
    st.html(trust_table(found))
    for why in found.refused:
        st.caption(plain(why))
    with st.container(horizontal=True):
        for one in found.curves:
            draw_chart(
                curve_figure(one.lines, title=one.title, x=one.x, y=one.y, limited=one.limited),
                key=f"curve-{one.key}",
                alt=one.title,
                width=400,  # two of them side by side on most screens
            )
    if found.void:
        st.warning(plain(found.void))
    if found.forgotten:
        st.markdown("**Does it change when the model forgets?**")
        st.caption(plain(found.forgetting))
        draw_chart(
            curve_figure(
                [("rank correlation", ((0.0, 1.0), *found.forgotten))],
                title="",
                x="modules whose weights were replaced, from the answer down",
                y="rank correlation",
                lowest=-1.0,
            ),
            key="curve-randomised",
            alt="Rank correlation with the first map as the model forgets",
        )
    if found.agreement is not None:
        names, correlations = found.agreement
        st.markdown("**Do the methods agree?**")
        st.caption(
            f"Rank correlation of the maps at {plain(found.layer)}, before ReLU: 1 is the same order of places, 0 no "
            "likeness, -1 the reverse. Empty where a map is the same everywhere."
        )
        draw_chart(matrix_figure(names, correlations), key="agreement", alt="Rank correlation of the methods' maps")


def _files(found: TrustPanel, made: Explanation) -> None:
    stem = f"trust-{made.method}-{made.target.index}"
    with st.container(horizontal=True, key="trust-files"):
        for text, data, name in (
            ("Numbers (CSV)", found.csv, f"{stem}.csv"),
            ("Report (JSON)", found.json, f"{stem}.json"),
        ):
            st.download_button(text, data, file_name=name, on_click="ignore", icon=":material/download:", key=name)


def trust_table(found: TrustPanel) -> str:
    """One row a measure that was taken, one column a map, the verdict in words; as HTML."""
    heads = "".join(f'<th class="mi-num">{escaped(head)}</th>' for head in found.heads)
    lines = []
    for line in found.lines:
        cells = "".join(f'<td class="mi-num">{escaped(value)}{_small(spread)}</td>' for value, spread in line.cells)
        lines.append(
            f"<tr><td><b>{escaped(line.title)}</b><br><small>{escaped(line.says)}</small></td>{cells}"
            f"<td>{escaped(line.verdict)}</td></tr>"
        )
    return (
        f'{scrolled("how the map was measured")}<table class="mi-table" data-table="trust"><thead><tr><th>Measure</th>'
        f"{heads}<th>Verdict</th></tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def _small(spread: str) -> str:
    return f"<br><small>{escaped(spread)}</small>" if spread else ""


def _choose_mask() -> Picture | None:
    with st.expander("A mask of where the thing is (optional)", icon=":material/select_all:"):
        upload = st.file_uploader(
            "Mask picture",
            type=TYPES,
            key="mask",
            max_upload_size=50,
            help="Of the picture's own size: bright where the thing is. It adds the energy and the pointing game.",
        )
        return Picture(name="mask", data=upload.getvalue()) if upload is not None else None
