"""One matrix of query, key and value that gets another code's name: whose order its rows have.

Shape and meaning are the same on both sides, so it would load. torch's `in_proj_weight`, GPT-2's `c_attn` and timm's
`qkv` have the three below each other; another code's `qkv` may be head by head (guided-diffusion's QKVAttentionLegacy),
`query_key_value` is head by head in BLOOM and GPT-NeoX and below each other in GLM, Megatron's `linear_qkv` and
InternLM2's `wqkv` are head by head, a `kqv` says its own order. Where the names around one of the two do not prove
whose it is, the user is asked. Sources: transformers modeling_bloom.py, modeling_gpt_neox.py, modeling_glm.py;
Megatron-LM core/transformer/attention.py; InternLM2 modeling_internlm2.py; guided-diffusion unet.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from inspector.keys.placing.provenance import shapes_of_names
from inspector.keys.report import FILE, TARGET, Ambiguity, Cost, Step, StepKind
from inspector.keys.rules.entry import Leftovers, Link, Rule, leave_out, settle
from inspector.keys.rules.fused_attention import LETTERS, WHOLE, letters_of, proves_order
from inspector.keys.rules.inner_order import AS_IT_IS, leaves_of_file
from inspector.keys.rules.stacked import OTHERWISE, Around, heads
from inspector.units import counted

FUSED_ORDER = "fused-order"
_PARTS = {"q": "query", "k": "key", "v": "value"}
# Names that several codes use for several orders.
_SEVERAL = frozenset({"query_key_value", "linear_qkv", "wqkv", "mixed_qkv"})
# A parameter of its own has no module's name around it.
_WHOLE = re.compile(rf"{WHOLE.pattern}|(^|\.)(w_?|to_?)?({LETTERS})$", re.IGNORECASE)

# What a name says of its tensor, behind whatever separator.
_LAST = re.compile(r"_(weight|bias|kernel)$")
_SEPARATORS = re.compile(r"[^0-9A-Za-z]+")


def _steps(left: Leftovers) -> Iterator[Step]:
    groups: dict[tuple[str, str, int], list[Link]] = {}
    changed = [link for link in (*left.settled, *left.permuted) if link.source.name != link.target.name]
    # Names are looked at by their ends, of which few differ: most targets have no such matrix.
    if not any(map(_WHOLE.search, {_end_of(link.target.name) for link in changed})):
        return
    renamed = [link for link in changed if _is_renamed(link)]
    if not renamed:
        return
    file = _around((leaf.name for leaf in leaves_of_file(left)), in_target=False)
    target = _around((tensor.name for tensor in left.target.tensors), in_target=True)
    for link in renamed:
        rows = (link.target.shape or (0,))[0]
        if _may_differ(link, left, file, target):
            groups.setdefault((_own(link.source.name), _own(link.target.name), rows), []).append(link)
    for (ours, theirs, rows), links in groups.items():
        turned = any(link.target.name in left.turned for link in links)
        fixed = rows % 3 != 0 or turned
        # Asked is of the side whose name is known for several orders, else of the one that nothing around it proves.
        in_file = _has_several(ours) or not (_has_several(theirs) or _is_proved(links[0].source.name, file, turned))
        own, other = (ours, theirs) if in_file else (theirs, ours)
        question = _question(links, own, _letters(other), rows, in_file=in_file, fixed=fixed)
        answer = left.questions.ask(question)
        if answer in (None, AS_IT_IS):
            # While it is asked, the plan is open.
            continue
        if answer == OTHERWISE:
            yield from (leave_out(link, rule=RULE.id, reason="The order of its rows is not known.") for link in links)
            continue
        order = _order(str(answer), _letters(theirs if in_file else ours))
        runs = order if in_file else [order.index(at) for at in range(len(order))]
        for link in links:
            says = f"The {'file' if in_file else 'target'} has query, key and value as {answer}."
            value = f"blocks:{'-'.join(map(str, runs))}"
            yield settle(link, rule=RULE.id, kind=StepKind.PERMUTE, reason=says, value=value)


def _question(links: Sequence[Link], own: str, usual: str, rows: int, *, in_file: bool, fixed: bool) -> Ambiguity:
    """usual: the order that the other side's name claims."""
    side, other = (FILE, TARGET) if in_file else (TARGET, FILE)
    options = [(AS_IT_IS, f"as in the {other}: change nothing")]
    letters = _letters(own)
    if letters != usual and not fixed:
        options.append((letters, f"{', '.join(_PARTS[letter] for letter in letters)} below each other"))
    # Transposed beside it, or fewer heads of key and value: no step does both.
    if not fixed and usual == "qkv":
        for number in heads(((rows // 3,),)):
            size = rows // 3 // number
            options.append((f"{number}-heads", f"head by head, {number} heads of {size} rows each"))
    options.append((OTHERWISE, "otherwise, or not known: leave them out"))
    first = links[0]
    return Ambiguity(
        id=FUSED_ORDER,
        question=(
            f"{counted(len(links), 'tensor')} of query, key and value ({first.source.name} first) become "
            f"{_own(first.target.name)}. Codes that write {own} do not agree on the order of its rows, and no shape "
            f"shows it; each loads. How does the {side} have them, if the {other} has "
            f"{_PARTS[usual[0]]}, {_PARTS[usual[1]]} and {_PARTS[usual[2]]} below each other?"
        ),
        options=tuple(options),
        side=side,
    )


def _is_renamed(link: Link) -> bool:
    ours, theirs = link.source.name, link.target.name
    if _own(ours) == _own(theirs) or _squashed(ours).endswith(_squashed(theirs)):
        return False
    # Brought together by order alone, too: that says where a matrix goes, and nothing of its rows.
    return all(_WHOLE.search(_LAST.sub(r".\1", name.replace("/", "."))) for name in (ours, theirs))


def _squashed(name: str) -> str:
    """One spelling for blocks_0_attn_qkv_weight and blocks.0.attn.qkv.weight: another separator is no other name."""
    return _SEPARATORS.sub("_", name).lower()


def _end_of(name: str) -> str:
    """Its last two words, which is what the pattern asks for."""
    return ".".join(name.rsplit(".", 2)[-2:])


def _around(names: Iterable[str], *, in_target: bool) -> Around:
    there = frozenset(names)
    return Around(shapes=shapes_of_names(there), names=there, parts=(), turned=False, in_target=in_target)


def _may_differ(link: Link, left: Leftovers, file: Around, target: Around) -> bool:
    """Whether the two names claim two orders, or one of them stands among names that prove none."""
    turned = link.target.name in left.turned
    sides = ((link.source.name, file), (link.target.name, target))
    return any(_has_several(_own(name)) or not _is_proved(name, around, turned) for name, around in sides)


def _is_proved(name: str, around: Around, turned: bool) -> bool:
    """Whether its code has the three below each other for sure."""
    return proves_order(name, replace(around, turned=turned)) == "q-k-v"


def _has_several(own: str) -> bool:
    return own in _SEVERAL or _letters(own) != "qkv"


def _own(name: str) -> str:
    """query_key_value of layers.0.query_key_value.weight, in_proj of in_proj_bias."""
    name = name.replace("/", ".")
    own = name.removesuffix("_weight").removesuffix("_bias")
    is_bare = own != name or not name.endswith((".weight", ".bias", ".kernel"))
    return own.rpartition(".")[2] if is_bare else name.rpartition(".")[0].rpartition(".")[2]


def _letters(own: str) -> str:
    """The order that a name claims; c_attn and in_proj claim the usual one."""
    return letters_of(own) or "qkv"


def _order(answer: str, usual: str) -> list[int]:
    """Which run of rows of this order stands in each place of the usual one's parts below each other."""
    number, _, kind = answer.partition("-")
    if kind == "heads":
        return [head * 3 + part for part in range(3) for head in range(int(number))]
    return [answer.index(letter) for letter in usual]


RULE = Rule(
    id="fused-order",
    title="Order of query, key and value",
    says=(
        "Asks for the order of the rows where one matrix of query, key and value gets the name of a code that may "
        "have them otherwise (head by head, or key first), and puts them into the target's."
    ),
    cost=Cost.LOSSLESS,
    done="query, key and value of {tensors} are put into the target's order",
    steps=_steps,
)
