"""Convert: the same tensors in another format, type or number of files; and a LoRA adapter merged into them."""

import streamlit as st

from inspector.web import converting, merging, reports, states
from inspector.web.components import need_file, title
from inspector.web.guard import said

title("Convert", "The same tensors, in another format, type or number of files?")
hand = need_file(
    "The weights as .safetensors or .pth, in another element type, in shards, or with a LoRA adapter merged into them.",
    "training-checkpoint",
    "legacy-dataparallel",
)
checkpoint = reports.checkpoint_of(hand)
state = states.choose_state(checkpoint, models_only=True)
if state is None:
    st.info("The file holds no state dict, so there is nothing to write.", icon=":material/info:")
    st.stop()

st.header("As it is")
st.caption("Every tensor under its own name, bit for bit unless another element type is chosen; no target is needed.")
with said():
    converting.show_convert(hand, state)

st.header("Merged into its base" if merging.is_adapters(state) else "With a LoRA adapter")
with said():
    merging.show_merge(hand, checkpoint, state)
