"""What is asked of the picture: method, layer, how its output is read, and what is done with the map."""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from inspector.cam.inputs.picture import input_shape
from inspector.cam.layers.layouts import layer_name, layout_text, with_layout
from inspector.cam.report import LayerProposal, Options, Preprocessing
from inspector.errors import InspectorError
from inspector.units import counted, human_shape
from inspector.web.explain import looking, pictures
from inspector.web.explain.choices import choose_one
from inspector.web.explain.labels import short_names
from inspector.web.explain.slots import layer_slot, method_slot
from inspector.web.guard import show_error
from inspector.web.session import Hand
from inspector.web.text import plain

LAYOUTS = {"NCHW": "channels first", "NHWC": "channels last", "NLC": "tokens"}
FUSIONS = {"": "one layer", "mean": "mean of all", "maximum": "maximum of all", "product": "product of all"}
_MOST_TOKENS = 10_000


def layers_of(hand: Hand, preprocessing: Preprocessing) -> tuple[LayerProposal, ...]:
    """The proposed ones, and those that the visitor named. Raises ExplainError where there is no map at all."""
    shape = _shape(preprocessing)
    found = looking.proposals(hand, shape)
    named: list[str] = st.session_state.get(_named_key(hand), [])
    # By path and call: one that is named again, with another layout, stands in its own place.
    by_name = {layer_name(layer): layer for layer in found}
    for path in named:
        layer = looking.layer_named(hand, shape, path)
        by_name[layer_name(layer)] = layer
    asked = str(st.session_state.get(layer_slot(hand), ""))
    if asked and asked not in by_name:
        # Of an address: a layer that somebody named, on a page of before. What is none is not chosen.
        with suppress(InspectorError):
            layer = looking.layer_named(hand, shape, asked)
            by_name[layer_name(layer)] = layer
            st.session_state[_named_key(hand)] = [*named, asked]
    return tuple(by_name.values())


def _shape(preprocessing: Preprocessing) -> tuple[int, int, int]:
    """(C, H, W) as the layers are traced with: of the picture in hand where its own proportions reach the model."""
    picture = pictures.picture_in_hand()
    if picture is None or preprocessing.crop is not None:
        return input_shape(preprocessing)
    return looking.input_shape(picture, preprocessing)


def choose_layer(hand: Hand, layers: tuple[LayerProposal, ...]) -> LayerProposal:
    """One of them, with its reason."""
    by_name = {layer_name(layer): layer for layer in layers}
    short = short_names(list(by_name))
    words = {
        name: f"{short[name]} · {layer.grid[0]}x{layer.grid[1]}" + (" · suggested" if layer.rank == 1 else "")
        for name, layer in by_name.items()
    }
    name = choose_one(
        "Layer",
        words,
        layer_slot(hand),
        first=layer_name(layers[0]),
        says="Whose output is looked at. Others can be named under Layer and options.",
    )
    return by_name[name or layer_name(layers[0])]


def choose_method(hand: Hand) -> str:
    """One of all methods, with what it shows."""
    titles = {method.id: method.title for method in looking.methods()}
    first = next(iter(titles))
    return choose_one("Method", titles, method_slot(hand), first=first) or first


def advise(method: str, layer: LayerProposal) -> None:
    """A word where another method is known to do better at such a layer, or another tool's maps are others."""
    from inspector.cam.advice import note

    says = note(looking.method_named(method), layer)
    if says:
        st.caption(says)


def edit_options(hand: Hand, preprocessing: Preprocessing, layer: LayerProposal) -> tuple[LayerProposal, Options]:
    """How the layer's output is read as it was found, and what is done with the map; open to change."""
    read = f"{LAYOUTS[_layout_chosen(hand, layer)]}, {human_shape(layer.shape)}"
    with st.popover("Layer and options", icon=":material/layers:", width="stretch"):
        st.caption(f"{plain(layer_name(layer))}: {read}. {plain(layer.reason)}")
        _name_another(hand, preprocessing)
        layer = _edit_layout(hand, layer)
        smooth, copies, align, fusion = st.columns(4, vertical_alignment="bottom")
        eigen = smooth.toggle(
            "Eigen smoothing",
            key="eigen-smooth",
            persist_state="session",
            help="The strongest pattern over the channels instead of their sum.",
        )
        augmented = copies.toggle(
            "Augmentation",
            key="augmented",
            persist_state="session",
            help="Mean over three brightnesses, each also mirrored: seven maps.",
        )
        aligned = align.toggle(
            "Aligned cells",
            key="aligned",
            persist_state="session",
            help="Each cell at the centre of what it sees, not spread evenly.",
        )
        how = fusion.selectbox(
            "Layers together",
            list(FUSIONS),
            format_func=FUSIONS.__getitem__,
            key="fusion",
            persist_state="session",
            help="The maps of all layers of the list as one.",
        )
    return layer, Options(eigen_smooth=eigen, augmented=augmented, aligned=aligned, fusion=how or "")


def _layout_key(hand: Hand, layer: LayerProposal) -> str:
    return f"{hand.sha256[:12]}-{layer_name(layer)}-{layout_text(layer)}"


def _layout_chosen(hand: Hand, layer: LayerProposal) -> str:
    """As it will be read: the box below has not been drawn yet, but what was chosen in it stands in the session."""
    chosen = st.session_state.get(f"layout-{_layout_key(hand, layer)}")
    return chosen if chosen in LAYOUTS else layer.layout


def _edit_layout(hand: Hand, layer: LayerProposal) -> LayerProposal:
    """The layout as found; another one where it holds as many numbers."""
    key = _layout_key(hand, layer)
    kind, before, rows, columns = st.columns(4)
    fitting = [name for name in LAYOUTS if (name == "NLC") == (len(layer.shape) == 2)]
    layout = kind.selectbox(
        "Output is",
        fitting,
        fitting.index(layer.layout),
        format_func=LAYOUTS.__getitem__,
        key=f"layout-{key}",
        persist_state="session",
    )
    if layout != "NLC":
        return with_layout(layer, layout or layer.layout)
    length = layer.shape[0]
    prefix = before.number_input(
        "Tokens before the patches",
        0,
        length - 1,
        layer.prefix_tokens,
        key=f"prefix-{key}",
        persist_state="session",
        help="Class and register tokens.",
    )
    high = rows.number_input("Rows", 1, _MOST_TOKENS, layer.grid[0], key=f"rows-{key}", persist_state="session")
    wide = columns.number_input(
        "Columns", 1, _MOST_TOKENS, layer.grid[1], key=f"columns-{key}", persist_state="session"
    )
    if prefix + high * wide != length:
        st.warning(
            f"{prefix} + {high} x {wide} tokens are {prefix + high * wide}, the layer puts out {length}: "
            "the layout as found is used.",
            icon=":material/warning:",
        )
        return layer
    return with_layout(layer, f"{prefix}+{high}x{wide}")


def _name_another(hand: Hand, preprocessing: Preprocessing) -> None:
    key = f"another-{hand.sha256[:12]}"
    named: list[str] = st.session_state.get(_named_key(hand), [])

    def add() -> None:
        path = str(st.session_state.get(key, "")).strip()
        if not path:
            return
        try:
            shape = _shape(preprocessing)
            layer = looking.layer_named(hand, shape, path)
        except InspectorError as error:
            st.session_state[f"{key}-error"] = error
            return
        st.session_state[_named_key(hand)] = [*(one for one in named if one != path), path]
        st.session_state[layer_slot(hand)] = layer_name(layer)
        st.session_state[key] = ""

    st.text_input(
        "Another layer by its name",
        key=key,
        on_change=add,
        placeholder="layer3.0.conv2",
        help="Any module whose output has height and width; “relu:0” is the first call of one that is called often.",
    )
    error = st.session_state.pop(f"{key}-error", None)
    if isinstance(error, InspectorError):
        show_error(error)
    if named:
        st.caption(f"{counted(len(named), 'layer')} named here: {plain(', '.join(named))}")


def _named_key(hand: Hand) -> str:
    return f"named-layers-{hand.sha256[:12]}"
