"""What a file says beside its tensors that these are: gradients, deltas, importances, layers in reversed order.

Names and shapes fit all the same (`{"state_dict": ..., "is_delta": True}`, a safetensors file with `kind: fisher
information`), so it is asked, with the words quoted. Only of what says of the numbers what they are: a training's
settings say how they were made ("gradient checkpointing").
"""

from __future__ import annotations

import re

from inspector.checkpoint.level_words import NO_WRAPPERS, is_about_weights, is_not_as_used, words_in
from inspector.keys.checks.entry import Context, refusing
from inspector.keys.checks.signs import ask_whether_weights

# A sentence, and not a log, a licence or a configuration; readers cut a longer one to so many characters.
_LONGEST = 200
_MOST_ENTRIES = 1000
_TRUE = frozenset({"true", "yes", "1"})
# is_delta, is_gradient
_IS = re.compile(r"(?:is|are|holds|contains)_(?:an?_|the_)?(\w+)")
# delta_from, gradient_of, subtract_from; a model's or an epoch's name stands there.
_OF_ANOTHER = re.compile(
    r"(?:deltas?|diffs?|differences?|gradients?|task_vectors?|subtract(?:ed)?)_(?:from|of|to|against)"
)
_NAMED = re.compile(r"[A-Za-z]{2}")
# What is done to the numbers alone, and not to a data set (shuffled, flipped).
_DONE = re.compile("transposed|negated|inverted|permuted|scrambled|corrupted|truncated|encrypted")
_OF_WEIGHTS = re.compile(r"^(?:weights?|params?|tensors?|values?|numbers?)_(?:are_|were_)?")
# Keys that say what the numbers are; a model's, an optimizer's or a loss's kind is another thing.
_KINDS = re.compile(
    r"(?:(?:tensors?|weights?|values?|numbers?|data|content|file|checkpoint|ckpt|params?|state)_)?"
    r"(?:kind|type|content|contents|what|quantity|holds|contains|stores|format)|tensors|values|numbers|payload",
)
# The longest kind that is none of a sentence: adam second moments, diagonal of the Fisher.
_MOST_WORDS = 6
_NUMBERS = (
    r"(?:gradients?|grads?|fisher(?: information)?|hessians?|deltas?|diffs?|differences|task vectors?|importances?"
    r"|(?:first |second )?moments|exp_avg(?:_sq)?|saliency|saliencies|sensitivities|variances|momenta"
    r"|(?:pruning |binary )?masks)"
)
# A word that makes another thing of it: gradient checkpointing, Fisher-weighted averages, gradient-free training.
_NOT_BEFORE = (
    r"(?![-_ ]*(?:check|clip|accum|boost|penalt|descent|free|revers|based|weighted|merg|averag|scal|norm|sync|centr"
    r"|track|rule|debias|flow|model|net|encod|decod|head|cam|guid|mask|loss|sched|noise))"
)
_OF_A_KIND = re.compile(rf"\b{_NUMBERS}\b{_NOT_BEFORE}|^(?:ewc|si) importance", re.IGNORECASE)
_SAYS = re.compile(
    r"\b(?:not|no|never) (?:the |real |actual |trained |final |model |usable |plain |a )*weights\b"
    r"(?![-_ ]*(?:and|decay|norm|tied|tying|shar))"
    r"|\bdo not (?:load|use (?:it|this|these|them))\b|\bweights?[- ](?:deltas?|diffs?|differences?|gradients?)\b"
    r"|\b(?:delta|difference|diff)[- ]weights\b"
    r"|\b(?:these|this|they|it|those|numbers|values|tensors|weights|entries|contents?|file)"
    r" (?:is|are|hold|holds|contain|contains|store|stores)"
    rf" (?:only |just |the |a |an |all |adam |adam's |accumulated |raw |mean |averaged |diagonal |summed )*{_NUMBERS}\b"
    rf"{_NOT_BEFORE}",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"\b(?:no|not|never|without|non)\b", re.IGNORECASE)
_ORDER = re.compile(r"(?:layers?|modules?|blocks?|stages?|weights?|tensors?|keys?|rows?)_?order")
_ORDERS = NO_WRAPPERS | {"shuffled", "permuted", "scrambled", "backward", "last"}


def _asked(context: Context) -> str:
    return ask_whether_weights(context, "stated-beside", _stated(context), yes="yes, these are the weights")


def _stated(context: Context) -> str:
    """The first words of the file that say that its numbers are others than the weights, "" for none."""
    for key, text in context.checkpoint.own_metadata[:_MOST_ENTRIES]:
        if len(key) < _LONGEST and len(text) < _LONGEST and _says_so(key, text.strip()):
            return f'Beside the tensors the file says "{key}: {text.strip()}", which is not said of weights.'
    return ""


def _says_so(key: str, text: str) -> bool:
    if _SAYS.search(text):
        return True
    # A setting of the training is below a key of its own: args.type.
    name = key.lower().replace("-", "_").replace(" ", "_")
    if text.lower() in _TRUE:
        found = _IS.fullmatch(name)
        said = found[1] if found else name
        aside = found is not None and (is_about_weights(said) or is_not_as_used(said))
        return aside or _DONE.fullmatch(_OF_WEIGHTS.sub("", said)) is not None
    if _OF_ANOTHER.fullmatch(name):
        return text.lower() not in ("none", "false") and _NAMED.search(text) is not None
    words = words_in(text)
    if _ORDER.fullmatch(name):
        return not _ORDERS.isdisjoint(words) and words[:1] != ("first",)
    short = len(words) <= _MOST_WORDS and not _NEGATED.search(text)
    return _KINDS.fullmatch(name) is not None and short and _OF_A_KIND.search(text.replace("_", " ")) is not None


REFUSALS = (refusing(_asked),)
