"""One matrix as embedding and as output layer: given once where the target has both, or twice where it has one.

A language model ties the two, and a file may hold either. No shape tells a tied output layer from one that is missing,
so filling it from the embedding needs consent, unless the target itself says that they are one tensor. A second copy is
left out when it is one, number for number, which is looked at when the plan is applied.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.keys.operations.drop_copy import LEAVE_OUT
from inspector.keys.placing.roles import split_name
from inspector.keys.placing.tree import Leaf
from inspector.keys.report import Cost, Evidence, Step, StepKind
from inspector.keys.rules.entry import Leftovers, Rule

# What output layers and embeddings of language models are called in transformers, GPT-NeoX, Llama's and GPT-2's own
# code, and T5, whose encoder and decoder share one embedding.
HEADS = ("lm_head", "embed_out", "output", "decoder", "proj_out", "output_projection", "embed_tokens", "shared", "wte")
EMBEDDINGS = (
    "embed_tokens",
    "wte",
    "word_embeddings",
    "shared",
    "tok_embeddings",
    "embed_in",
    "token_embedding",
    "tokens_embed",
    "embed",
    "embedding",
    "embeddings",
    "emb",
    "tok_emb",
    "token_emb",
    "word_embedding",
    "token_embeddings",
)


def is_embedding(name: str) -> bool:
    module, leaf = split_name(name)
    return leaf == "weight" and split_name(module)[1] in EMBEDDINGS


def _is_square(leaf: Leaf) -> bool:
    # It may be stored the other way round, which another rule decides.
    return len(set(leaf.shape or ())) < 2


def is_head(leaf: Leaf) -> bool:
    module, last = split_name(leaf.name)
    return last == "weight" and split_name(module)[1] in HEADS and len(leaf.shape or ()) == 2


def _steps(left: Leftovers) -> Iterator[Step]:
    # Where an embedding went under no change of its numbers.
    there = [link for link in left.settled if is_embedding(link.target.name) and not _is_square(link.target)]
    for place in left.missing:
        group = next((names for names in left.target.ties if place.name in names), ())
        declared = [link for link in left.settled if link.target.name in group] if group else []
        own = declared or ([link for link in there if is_head(place) and link.target.shape == place.shape])
        if len(own) == 1 or declared:
            yield Step(
                kind=StepKind.TIE,
                source=own[0].source.name,
                target=place.name,
                rule=RULE.id,
                reason=f"The file has no {place.name}: tied to {own[0].target.name}, it is the same matrix.",
                cost=Cost.LOSSLESS,
                evidence=Evidence.RULE if declared else Evidence.CHOSEN,
                shape=place.shape,
                declared=bool(declared),
            )
    for leaf in left.extra:
        same = [link for link in there if is_head(leaf) and link.source.shape == leaf.shape]
        if len(same) != 1:
            continue
        lossy = left.questions.told(RULE.id, (LEAVE_OUT,)) == LEAVE_OUT
        yield Step(
            kind=StepKind.DROP,
            source=leaf.name,
            target=None,
            rule=RULE.id,
            reason=f"The target has {same[0].target.name} once: left out"
            + (" by the user's choice." if lossy else " if it is the same, number for number."),
            cost=Cost.LOSSY if lossy else Cost.LOSSLESS,
            evidence=Evidence.CHOSEN if lossy else Evidence.RULE,
            value="" if lossy else "copy",
            beside=() if lossy else (same[0].source.name,),
            declared=True,  # by its numbers, or by the user's choice
        )


RULE = Rule(
    id="tied-weights",
    title="Tied embeddings",
    says=(
        "Fills an output layer that the file lacks from the embedding it is tied to; leaves out a second copy, if it "
        "is one number for number. Filling needs `--accept` where the target does not tie them itself."
    ),
    cost=Cost.LOSSLESS,
    done="tied matrices are filled or left out",
    consent=True,
    steps=_steps,
)
