"""Names by which one sees that one side is not the plain network: flattened, quantised, adapted, pruned, normalised.

Libraries write these names, and nobody else does; so a sign on one side alone tells what that side is. With a sign on
both sides the names differ for another reason, and nothing is said here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from inspector.error_messages.halves import lone_list
from inspector.error_messages.patches import unpruned
from inspector.error_messages.report import Cause, KeyEvidence, KeyLists, PastedError
from inspector.units import counted, shorten_middle

_BRING = "Open the file here against the model: the repair works such tensors out and proves the result."


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """names: a pattern that is searched in a name. all_of: patterns that must each be found among these names.

    in_file, in_model: what that side is. for_file, for_model: what to do. lines: Python for a file that is so.
    stands_for: the last segment that the other list must have in its place, for names that others write, too.
    """

    kind: str
    names: str
    all_of: tuple[str, ...] = ()
    in_file: str
    in_model: str
    why: str
    for_file: tuple[str, ...]
    for_model: tuple[str, ...]
    lines: Callable[[], str] | None = None
    stands_for: str = ""


CONVERSIONS: tuple[Conversion, ...] = (
    Conversion(
        kind="flat-parameters",
        names=r"(?:^|\.)_?flat_param(?:_\d{1,4})?$",
        in_file="The file holds FSDP's flat parameters: the weights of each wrapped module in one row, without names",
        in_model="The model is inside FSDP, which has the weights of each wrapped module in one row, without names",
        why="FSDP flattens parameters to share them out between processes.",
        for_file=(
            "Save a full state dict where it was trained: FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT).",
            "Taking a prefix off does not help: the rows would have to be cut up and shaped.",
        ),
        for_model=("Load before the model is wrapped in FSDP, or under StateDictType.FULL_STATE_DICT.",),
    ),
    Conversion(
        kind="quantised",
        names=r"(?:^|\.)(?:_packed_params(?:\.\w{1,40}){0,2}|zero_point|scale)$",
        all_of=(r"_packed_params|zero_point",),
        in_file="The file is of a model that torch has quantised (scale, zero_point, packed parameters)",
        in_model="The model is quantised by torch (scale, zero_point, packed parameters), and the file is not",
        why="Quantised layers keep whole numbers with a scale, packed for the machine, in place of weight and bias.",
        for_file=(
            "Quantise the model in the same way (prepare and convert) before load_state_dict.",
            "Or load a file from before the quantisation.",
        ),
        for_model=("Load the file first, and quantise the model then.",),
    ),
    Conversion(
        kind="quantised",
        names=r"(?:^|\.)(?:qweight|qzeros|scales|g_idx|SCB|weight_format|weight\.(?:absmax|quant_map|nested_absmax|"
        r"nested_quant_map|quant_state\.\w{1,60}))$",
        all_of=(r"qweight|qzeros|SCB|weight_format|absmax|quant_map|quant_state",),
        in_file="The file is quantised (by GPTQ, AWQ or bitsandbytes), and the model is not",
        in_model="The model is quantised (by GPTQ, AWQ or bitsandbytes), and the file is not",
        why="These libraries keep whole numbers in a few bits, and beside them scales under names of their own.",
        for_file=("Build the model with the file's quantisation, which config.json tells, or load the original.",),
        for_model=("Load a file of the same quantisation, or build the model without it.",),
    ),
    Conversion(
        kind="lora",
        names=r"(?:^|\.)(?:lora_(?:A|B|up|down|embedding_[AB]|magnitude_vector)|base_layer)(?:\.|$)",
        all_of=(r"lora_",),
        in_file="The file has LoRA adapters, which the model has not",
        in_model="The model has LoRA adapters, which the file has not",
        why="LoRA puts two small matrices beside a weight (lora_A, lora_B) and calls the weight itself base_layer.",
        for_file=(
            "A file of adapters alone goes onto its base model: PeftModel.from_pretrained(base, folder).",
            "With the base inside: load it into the model with the same adapters, or merge_and_unload() before saving.",
        ),
        for_model=("Load the file into the base model first, and add the adapters then (get_peft_model).",),
    ),
    Conversion(
        kind="pruned",
        names=r"(?:weight|bias)\w{0,20}_(?:orig|mask)$",
        all_of=(r"_orig$", r"_mask$"),
        in_file="The file is of a pruned model: each weight is there with its mask (_orig and _mask)",
        in_model="The model is pruned, with a mask beside each weight (_orig and _mask), and the file is not",
        why="torch.nn.utils.prune keeps the original and the mask, and multiplies them each time.",
        for_file=("Multiply them, or prune.remove(...) in the model before it is saved.",),
        for_model=("Load the file first, and prune then.",),
        lines=unpruned,
    ),
    Conversion(
        kind="spectral-norm",
        names=r"weight\w{0,20}_(?:orig|u|v)$|parametrizations\.\w{1,60}\.(?:original|0\._[uv])$",
        all_of=(r"_u$",),
        in_file="The file is of a model under spectral_norm, which keeps weight_orig, weight_u and weight_v",
        in_model="The model is under spectral_norm (weight_orig, weight_u, weight_v), and the file is not",
        why="Spectral norm divides the original weight by its largest singular value each time.",
        for_file=("Put spectral_norm on the same layers of the model before loading.", _BRING),
        for_model=("Load the file first, and put spectral_norm on then.",),
    ),
    Conversion(
        kind="weight-norm",
        names=r"weight\w{0,20}_[gv]$|parametrizations\.\w{1,60}\.original[01]$",
        all_of=(r"_g$|original0$", r"_v$|original1$"),
        in_file="The file is of a model under weight_norm, which keeps length and direction of each weight",
        in_model="The model is under weight_norm (length and direction of each weight), and the file is not",
        why="Weight norm makes the weight anew each time, out of weight_g and weight_v (original0, original1).",
        for_file=("Put weight_norm on the same layers of the model before loading.", _BRING),
        for_model=("Load the file first, and put weight_norm on then.",),
    ),
    Conversion(
        kind="other-framework",
        names=r"(?:^|\.)kernel$",
        stands_for="weight",
        in_file="The file calls its matrices kernel, as Flax and Keras do, where torch says weight",
        in_model="The model calls its matrices kernel, and the file does not",
        why="Those frameworks also write them in another order: a matrix transposed, a convolution with channels last.",
        for_file=("Renaming alone loads them the wrong way round.", _BRING),
        for_model=(_BRING,),
    ),
)


def find_conversion(lists: KeyLists, quote: str) -> PastedError | None:
    """The error when one side alone has such names; None otherwise."""
    for conversion in CONVERSIONS:
        sign = re.compile(conversion.names)
        in_file = [name for name in lists.unexpected if sign.search(name)]
        in_model = [name for name in lists.missing if sign.search(name)]
        found = in_file or in_model
        other = lists.missing if in_file else lists.unexpected
        if conversion.stands_for:
            found = [n for n in found if f"{n.rpartition('.')[0]}.{conversion.stands_for}".lstrip(".") in other]
        if (
            not found
            or bool(in_file) == bool(in_model)
            or not all(any(re.search(part, name) for name in found) for part in conversion.all_of)
        ):
            continue
        return _error(conversion, lists, quote, found, in_file=bool(in_file))
    return None


def _error(conversion: Conversion, lists: KeyLists, quote: str, names: Sequence[str], *, in_file: bool) -> PastedError:
    shown = ", ".join(shorten_middle(name, 60) for name in names[:3])
    more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
    causes: tuple[Cause, ...] = ()
    if lone_list(lists) or lists.cut:
        # What is not in the text may have the same names with another prefix.
        other = "missing" if in_file else "unexpected"
        claim = f"{conversion.in_file if in_file else conversion.in_model}."
        causes = (
            Cause(conversion.kind, claim, f"no {other} key is of that kind"),
            Cause("other-names", "Both sides are so, under other names.", f"{other} keys end like these"),
        )
    steps = list(conversion.for_file if in_file else conversion.for_model)
    if lists.cut:
        steps.append("A list breaks off, so this rests on what is there: paste the whole message.")
    patch = conversion.lines() if conversion.lines is not None and in_file and not causes else ""
    return PastedError(
        kind=conversion.kind,
        quote=quote,
        says=f"{conversion.in_file if in_file else conversion.in_model}: {counted(len(names), 'key')} ({shown}{more}).",
        why=conversion.why,
        steps=tuple(steps),
        patch=patch,
        keys=KeyEvidence(
            lists=lists, renamings=(), explained=0, left_missing=lists.missing, left_unexpected=lists.unexpected
        ),
        causes=causes,
    )
