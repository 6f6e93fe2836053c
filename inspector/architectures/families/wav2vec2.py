"""wav2vec 2.0 and HuBERT, as transformers names them; without their bases both have the same tensors."""

from __future__ import annotations

from inspector.architectures.families.entry import Family, Optional, Part, Repeat, Row
from inspector.architectures.families.rows import linear, norm
from inspector.architectures.families.usual import activation, epsilon, heads

CONV = "@feature_extractor.conv_layers.{c}"
LAYER = "@encoder.layers.{i}"
POSITIONS = "@encoder.pos_conv_embed.conv"


def encoder() -> tuple[Part, ...]:
    """The part that both have."""
    return (
        Optional("masked", (Row("@masked_spec_embed", ("hidden",)),)),
        Repeat(
            "c",
            "convolutions",
            (
                Row(f"{CONV}.conv.weight", ("conv_width[c]", "conv_width[c-1] if c > 0 else 1", "conv_kernel[c]")),
                Optional("conv_bias", (Row(f"{CONV}.conv.bias", ("conv_width[c]",)),)),
                # Group norm stands behind the first convolution alone, layer norm behind every one.
                Optional("conv_norm[c]", norm(f"{CONV}.layer_norm", "conv_width[c]")),
            ),
        ),
        *norm("@feature_projection.layer_norm", "conv_width[convolutions-1]"),
        *linear("@feature_projection.projection", "hidden", "conv_width[convolutions-1]"),
        Row(f"{POSITIONS}.bias", ("hidden",)),
        Optional(
            "weight_norm",
            (
                Row(f"{POSITIONS}.weight_g", (1, 1, "position_kernel")),
                Row(f"{POSITIONS}.weight_v", ("hidden", "position_width", "position_kernel")),
            ),
        ),
        # torch 2 and transformers 4.30 keep weight norm as a parametrisation.
        Optional(
            "parametrised",
            (
                Row(f"{POSITIONS}.parametrizations.weight.original0", (1, 1, "position_kernel")),
                Row(f"{POSITIONS}.parametrizations.weight.original1", ("hidden", "position_width", "position_kernel")),
            ),
        ),
        *norm("@encoder.layer_norm", "hidden"),
        Repeat(
            "i",
            "layers",
            (
                *linear(f"{LAYER}.attention.k_proj", "hidden", "hidden"),
                *linear(f"{LAYER}.attention.v_proj", "hidden", "hidden"),
                *linear(f"{LAYER}.attention.q_proj", "hidden", "hidden"),
                *linear(f"{LAYER}.attention.out_proj", "hidden", "hidden"),
                *norm(f"{LAYER}.layer_norm", "hidden"),
                *linear(f"{LAYER}.feed_forward.intermediate_dense", "mlp", "hidden"),
                *linear(f"{LAYER}.feed_forward.output_dense", "hidden", "mlp"),
                *norm(f"{LAYER}.final_layer_norm", "hidden"),
            ),
        ),
    )


def tops() -> tuple[Part, ...]:
    """The heads that both have."""
    return (
        Optional("lm_head", linear("lm_head", "vocab", "hidden")),
        Optional("projector", linear("projector", "projection", "hidden")),
        Optional("classifier", linear("classifier", "num_classes", "projection if projector else hidden")),
    )


ANCHORS = ("@encoder.layers.{i}.attention.q_proj.weight", "@feature_extractor.conv_layers.{c}.conv.weight")
SUMMARY = "{layers} layers, hidden {hidden}, feed-forward {mlp}, {convolutions} convolutions"
ASSUMES = (
    heads("attention heads of wav2vec 2.0 are 64 wide", "num_attention_heads"),
    activation("gelu", "wav2vec 2.0", "hidden_act"),
    epsilon(1e-5, "wav2vec 2.0", "layer_norm_eps"),
)

FAMILY = Family(
    library="transformers",
    name="wav2vec2",
    title="a wav2vec 2.0 encoder",
    summary=SUMMARY,
    base="wav2vec2.",
    anchors=ANCHORS,
    source="transformers 4.57, models/wav2vec2/modeling_wav2vec2.py",
    stated=("wav2vec2",),
    rows=(
        *encoder(),
        Optional(
            "quantizer",
            (
                Row("quantizer.codevectors", (1, "codes", "code_width")),
                *linear("quantizer.weight_proj", "codes", "conv_width[convolutions-1]"),
                *linear("project_hid", "projected", "hidden"),
                *linear("project_q", "projected", "code_total"),
            ),
        ),
        *tops(),
    ),
    assumes=ASSUMES,
)

HUBERT = Family(
    library="transformers",
    name="hubert",
    title="a HuBERT encoder",
    summary=SUMMARY,
    base="hubert.",
    anchors=ANCHORS,
    source="transformers 4.57, models/hubert/modeling_hubert.py",
    stated=("hubert",),
    rows=(*encoder(), *tops()),
    assumes=ASSUMES,
)

FAMILIES = (FAMILY, HUBERT)
