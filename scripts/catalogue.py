"""Every known way in which a file and a model miss each other, and what becomes of it here.

For docs/catalogue.md and for the tests: each class has a test of its own number. Collected from the issues of some
eighty projects.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """What becomes of a class, at best: where two ways fit, whatever is repaired is asked about."""

    REPAIRED = "repaired"
    ASKED = "asked"
    REFUSED = "refused"
    TOLD = "told"
    UNDETECTABLE = "cannot be told"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One class. number: for the tests. what: how it shows. by: the rule, finding or part that answers."""

    number: int
    what: str
    outcome: Outcome
    by: str


R, A, X, T, U = Outcome.REPAIRED, Outcome.ASKED, Outcome.REFUSED, Outcome.TOLD, Outcome.UNDETECTABLE
_TABLE: tuple[tuple[str, Outcome, str], ...] = (
    ("a whole training checkpoint given as the weights", R, "state dicts found by content; wrapper-dict"),
    ("weights under an unusual name (params, net_state)", R, "state dicts found by content"),
    ("weights under a name that is wrapped itself", R, "state dicts found by content"),
    ("a list or tuple of state dicts", R, "state dicts found by content"),
    ("a pickled module instead of tensors", R, "read without running it"),
    ("an optimizer's moments beside each weight", T, "optimizer-among-weights, extra-tensors"),
    ("two sets of weights in one dict", A, "twins"),
    ("an average under names without dots (LitEma)", R, "separators, twins"),
    ("tensors of a loss, a metric or a probe", T, "loss-or-metric, extra-tensors"),
    ("values that are no tensors among the weights", R, "not-tensors, extra-state"),
    ("numpy arrays as values", R, "the pickle reader"),
    ("module. before every name", R, "wrapper-segment"),
    ("the model is wrapped and the file is not", R, "wrapper-segment, other-depth"),
    ("module. several times", R, "wrapper-segment"),
    ("module. in the middle of names", R, "wrapper-segment"),
    ("_orig_mod. of torch.compile, either side", R, "wrapper-segment"),
    ("_orig_mod. and module. in any order", R, "wrapper-segment"),
    ("_forward_module. of Lightning Fabric", R, "wrapper-segment"),
    ("names cut by a fixed number of characters", R, "truncated-names"),
    ("_fsdp_wrapped_module. at every level", R, "wrapper-segment"),
    ("fairscale's _fpw_module. and flat parameters", X, "wrapper-segment; flat parameters refused"),
    ("_checkpoint_wrapped_module. of activation checkpointing", R, "wrapper-segment"),
    ("an averaged model: module. and n_averaged", R, "wrapper-segment, bookkeeping-buffers"),
    ("the attribute of a Lightning module before every name", R, "wrapper-segment"),
    ("a list's number before every name (sentence-transformers)", R, "wrapper-segment"),
    ("with or without the name of the base model", R, "wrapper-segment"),
    (
        "a detector's file for a backbone, or the reverse",
        R,
        "wrapper-segment; extra-tensors, unasked for a whole module",
    ),
    ("batch counters on one side only", R, "bookkeeping-buffers"),
    ("a FLOP counter's total_ops and total_params, either side", R, "bookkeeping-buffers"),
    ("position_ids on one side only", R, "computed-buffers"),
    ("rotary frequencies on one side only", R, "computed-buffers"),
    ("Swin's index and mask buffers on one side only", R, "computed-buffers, extra-tensors"),
    ("GPT-2's causal mask, called bias", R, "computed-buffers"),
    ("running statistics on one side only", R, "running-statistics with consent; unused-statistics, no-statistics"),
    ("pruning masks", R, "folded-weights"),
    ("private states (_extra_state)", T, "extra-state, not-tensors"),
    ("an auxiliary head on one side only", T, "auxiliary-branch"),
    ("a projection head of self-supervised training", T, "projection-head"),
    ("gamma and beta of norms", R, "norm-aliases"),
    ("scale, kernel, moving_mean, g and b", R, "norm-aliases, matrix-aliases"),
    ("norm.1 for norm1 (old DenseNets)", R, "joined-segments"),
    ("linear_1 for 0 in an MLP block", R, "mlp-names"),
    ("weight norm's old and new names", R, "parametrizations"),
    ("spectral norm's old and new names", R, "parametrizations"),
    ("a plain weight for a normed one, or the reverse", R, "folded-weights"),
    ("numbers of a Sequential that moved", A, "index-shift"),
    ("a Sequential nested or unrolled, gaps in its numbers", R, "nested-numbers, index-shift"),
    ("Swin's reduction in the neighbouring stage", R, "moved-parts"),
    ("blocks in chunks", R, "nested-numbers"),
    ("old and new names of a whole family (ESRGAN)", R, "other-words; esrgan-names"),
    ("the same network in another library", R, "other-library; same-order with consent, layout rules"),
    ("Caffe2's names", X, "refused with what converts them"),
    ("other separators than dots", R, "separators"),
    ("other spelling of a part of the names", R, "other-words; related-names, same-order with consent"),
    ("another number of classes; one class more", R, "followed by shapes where left open; head-mismatch with consent"),
    ("another number of input channels", R, "followed by shapes where left open; first-convolution with consent"),
    ("position embeddings of another grid", R, "position-grid with consent"),
    ("an extra prefix token", A, "prefix-tokens; one too few refused"),
    ("relative positions of another window", R, "window-size with consent"),
    ("another size of the network", X, "refused, and named where known"),
    ("another depth of the network", X, "refused or other-depth, and named where known"),
    ("a 1x1 convolution for a linear layer", R, "unit-dimensions"),
    ("a convolution for a fully connected layer", A, "unit-dimensions, flattened-kernel"),
    ("transposed linear layers", A, "transposed"),
    ("channels last (TensorFlow, Keras)", A, "channels-last"),
    ("axes in one of several orders (spconv)", A, "channels-last, with the number of orders"),
    ("query, key and value fused or apart", A, "fused-attention, unasked where names prove the order; qkv-order"),
    ("biases of query and value without key", R, "query-value-bias with consent"),
    ("rotary halves split or interleaved", A, "rotary-halves between Meta and Hugging Face; cannot-tell: rope-layout"),
    (
        "gate and up fused under another code's name, experts fused and stacked",
        U,
        "cannot-tell: gate-up-order, stacked-experts",
    ),
    ("tied weights on one side only", R, "tied-weights, with consent where the target ties nothing"),
    ("tensors that share memory", R, "the writers: kept, or cloned and said"),
    ("a scalar as a vector of one", R, "scalar-shape"),
    ("one tensor-parallel rank", X, "refused, with the number of ranks"),
    ("empty placeholders of ZeRO-3, either side", X, "refused, with what to run"),
    ("one process's part of a distributed tensor", X, "refused"),
    ("another floating-point type; scaled float8", T, "dtype-differs; scales refused"),
    ("int8 weights with scale and zero point", X, "refused"),
    ("weights packed by GPTQ or bitsandbytes", X, "refused, with who packed them"),
    ("complex tensors", T, "complex-tensors"),
    ("a full save with adapters in it (PEFT)", T, "wrapper-segment, adapter-inside"),
    ("an adapter's own name inside the names", R, "wrapper-segment"),
    ("an adapter alone", X, "refused, with rank and layers"),
    ("a module whose own name is like a wrapper's or adapter's", R, "left alone"),
    ("pickles from a GPU, old and new archives", R, "the readers"),
    ("a part of the network only", T, "missing-tensors"),
    ("nothing in common (strict=False loads nothing)", X, "refused, with 0 of n"),
    ("numbers in another order inside one tensor (patch merging, shift and scale)", R, "inner-order, libraries.md"),
    ("parts of one model saved apart (encoder and decoder, G and D, backbone and head)", R, "parts-apart"),
    (
        "gate and value of a gated layer fused or apart",
        A,
        "fused-gates, unasked where names prove the order; gate-up-order",
    ),
    ("layers, experts or an ensemble's networks stacked in one tensor, or numbered", R, "stacked-layers"),
    ("one matrix of query, key and value under a name that several orders have", A, "fused-order"),
    ("another part of the same system (text for vision, critic for actor)", A, "rename, related-names"),
    ("numbers about the weights under their names (gradients, deltas, moments)", X, "refused, with what they are"),
    ("recurrent layers of Keras, or with their gates apart", R, "recurrent-gates"),
    ("learned positions of longer texts", R, "fewer-positions with consent"),
    ("batch norms folded into their layers, on one side", X, "refused, with the norm and its layer"),
    ("layers of one recurrent module, or a module per layer", R, "recurrent-layers"),
    (
        "numbers of nn.Sequential(*net.children()); a row counted from its other end",
        R,
        "children-by-number, index-shift",
    ),
    ("kernels over pictures for kernels over films", R, "inflated-kernels with consent"),
    ("the first blocks of a deeper network", A, "fewer-blocks"),
    ("every row of layers counted from 1 where the target counts from 0", R, "counted-from"),
    ("a picture that another library flattens or unfolds place by place", A, "flatten-order, unfold-order"),
    ("numbers of which the file says beside them that they are no weights", A, "stated-beside"),
    ("one tensor that the file stores once under two names", R, "one-storage"),
    ("gates of a recurrent layer whose order stands in its names", R, "gate-letters"),
    ("foreign names in no order, where each shape is there once", A, "same-shape with consent"),
    ("layers in an order against the numbers in their names", A, "against-numbers"),
)

CATALOGUE: tuple[Mismatch, ...] = tuple(Mismatch(n, *row) for n, row in enumerate(_TABLE, 1))


def tally() -> dict[Outcome, int]:
    """How many classes end in each outcome."""
    return {outcome: sum(1 for entry in CATALOGUE if entry.outcome is outcome) for outcome in Outcome}
