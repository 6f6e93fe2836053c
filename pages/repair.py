"""Repair: why does it not load, and how does it load?"""

import streamlit as st

from inspector.architectures.types import Target
from inspector.keys.report import RepairPlan
from inspector.units import human_bytes
from inspector.web import pasting, repairing, reports, session
from inspector.web.components import finding_cards, need_file, quiet, title
from inspector.web.guard import said
from inspector.web.session import Hand
from inspector.web.text import escaped, mono, plain, visible
from inspector.web.trees import table


def choose_target(hand: Hand, own: Target | None) -> Target | None:
    """What it should fit: the recognised model, another one, another file, or a list of keys."""
    others = [r.hand for r in session.recent() if r.hand.sha256 != hand.sha256]
    ways = {"own": "the recognised model", "named": "another model", "keys": "a list of keys", "file": "another file"}
    if own is None:
        # Nobody knows its model by name, so the visitor's own list of keys is the likelier target.
        st.caption("The file was not recognised. Compare it with the keys of your own model, or with another file.")
        ways = dict(sorted(ways.items(), key=lambda way: way[0] == "named"))
    offered = [way for way in ways if (way != "own" or own) and (way != "file" or others)]
    way = st.segmented_control(
        "Compare with", offered, format_func=ways.__getitem__, default=offered[0], required=True, key="target-way"
    )
    if way == "own":
        return own
    if way == "named":
        best = reports.recognition_of(hand).best
        name = st.selectbox(
            "Model",
            repairing.builder_names(),
            index=None,
            placeholder="type to search torchvision and timm",
            key="target-name",
        )
        return repairing.named_target(name, best) if name else None
    if way == "file":
        at = st.selectbox("File", range(len(others)), format_func=lambda i: others[i].name, key="target-file")
        return repairing.file_target(others[at]) if at is not None else None
    text = st.text_area("One key per line", placeholder='print(*model.state_dict(), sep="\\n")', key="target-keys")
    return repairing.pasted_target(text) if text and text.strip() else None


def export(hand: Hand, plan: RepairPlan, target: Target, asked: str) -> None:
    """Write the repaired file, check it, and hand it out."""
    st.subheader("Export")
    writer_box, dtype_box, go = st.columns([3, 2, 1.6], vertical_alignment="bottom")
    writer = writer_box.segmented_control(
        "Format",
        repairing.writer_ids(),
        format_func=repairing.writer_label,
        default="safetensors",
        required=True,
        key="writer",
    )
    dtype = dtype_box.selectbox(
        "Element type", ("", "float32", "float16", "bfloat16"), format_func=lambda d: d or "as stored", key="dtype"
    )
    slot = f"written/{hand.sha256}/{asked}/{writer}/{dtype}"
    if go.button("Write and verify", type="primary", key="write", icon=":material/save:") and writer:
        with st.spinner("Writing and reading back …"):
            stem = f"{repairing.stem_of(hand.name)}_repaired"
            st.session_state[slot] = repairing.export(hand, plan, target, writer=writer, dtype=dtype or None, stem=stem)
    written = st.session_state.get(slot)
    if not isinstance(written, repairing.Written):
        return
    report = written.report
    st.html(
        f"<p>{mono(written.file_name)} {human_bytes(report.nbytes)}, {report.tensors:,} tensors, "
        f"sha256 {mono(report.sha256[:16])}</p>"
    )
    table(
        ("Proof", "Read back from the file"),
        [repairing.proof_row(p) for p in report.verification.proofs],
        key="export-proofs",
    )
    if report.lost:
        st.caption(plain(f"Left out of this file: {', '.join(report.lost)}."))
    st.download_button(
        f"Download {plain(written.file_name)}",
        written.path.read_bytes,
        file_name=written.file_name,
        on_click="ignore",
        mime="application/octet-stream",
        icon=":material/download:",
        key="download",
    )


title("Repair", "Why does it not load, and how does it load?")
hand = need_file(
    "What keeps the file from loading, the plan that makes it fit, proof that it does, and the file.",
    "legacy-dataparallel",
    "training-checkpoint",
)
checkpoint = reports.checkpoint_of(hand)
state = reports.choose_state(checkpoint, models_only=True)
if state is None:
    st.info("The file holds no state dict, so there are no keys to repair.", icon=":material/info:")
    st.stop()

target: Target | None = None
with said():
    target = choose_target(hand, reports.own_target(hand, state))
with st.expander("Paste the error that loading it gave", icon=":material/content_paste:"):
    pasting.paste_box("repair", checkpoint)
if target is None:
    st.stop()

answers = repairing.answers_for(hand, state, target)
accept, choose = answers.as_key
report = reports.keys_of(hand, target, state, accept=accept, choose=choose)
plan = report.plan
icon = '<span class="mi-icon" aria-hidden="true">block</span> ' if report.refusal else ""
st.html(
    f'<p class="mi-answer">{icon}{escaped(report.says)}</p>'
    f"<p>Target {mono(target.label)}, {len(target.tensors):,} tensors.</p>"
)
if report.refusal and report.refusal != report.says:
    st.warning(plain(report.refusal), icon=":material/block:")
repairing.ask(plan, answers)

if plan is not None and plan.rules:
    st.subheader("Rules")
    table(
        ("Rule", "Cost", "Keys", "For example"),
        [repairing.rule_row(use) for use in plan.rules],
        numeric=(2,),
        key="rules",
    )
if plan is not None and plan.certificate:
    st.caption(plain(f"Why each tensor belongs there: {repairing.certificate(plan)}"))
rest = repairing.left_over(report, plan)
st.subheader("Left over")
if rest:
    table(("What", "Which"), rest, key="left-over")
else:
    quiet("Nothing missing, nothing unexpected, no other shapes.")
finding_cards(repairing.beside(report))

if plan is not None and plan.complete:
    asked = f"{target.label}/{'.'.join(state.path)}/{accept}/{choose}"
    st.subheader("Verified")
    with said():
        proof = repairing.verified(hand.sha256, hand.name, plan, target, asked)
        table(("Proof", "How"), [repairing.proof_row(p) for p in proof.proofs], key="proofs")
    with said():
        export(hand, plan, target, asked)
    st.subheader("Python")
    with said():
        st.code(visible(repairing.code_of(plan, hand.name)), language="python")
