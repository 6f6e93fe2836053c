"""What a file says beside its tensors that these are: gradients, deltas, importances, numbers before training, numbers
off by a factor, layers in reversed order.

Names and shapes fit all the same (`{"state_dict": ..., "is_delta": True}`, a safetensors file with `kind: fisher
information`), so it is asked, with the words quoted. Only of what says of the numbers what they are: a training's
settings say how they were made ("gradient checkpointing"). Four forms say it: a key that names what they are and is
true (`untrained`), one that names what weights are and is false (`trained`), one that asks for a kind (`content`) or
for another side (`delta_from`) and is answered, and a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from inspector.checkpoint.level_words import NO_WRAPPERS, is_about_weights, is_not_as_used, words_in
from inspector.keys.checks.entry import Context, refusing
from inspector.keys.checks.signs import ask_whether_weights
from inspector.keys.checks.whole_numbers import are_whole
from inspector.keys.placing.stated_layouts import FALSE, TRUE, as_key, says_turned
from inspector.keys.rules import square_parts, transposed

# A sentence, and not a log, a licence or a configuration; readers cut a longer one to so many characters.
_LONGEST = 200
_MOST_ENTRIES = 1000
_NUMBERS_KEY = r"(?:weights?|params?|parameters?|tensors?|values?|numbers?)"
_MODEL = rf"(?:(?:{_NUMBERS_KEY}|model|net|network|state)_)?"
# is_delta, is_gradient
_IS = re.compile(r"(?:is|are|holds|contains)_(?:an?_|the_)?(\w+)")
# The same without the verb, of words that no setting of a training is called: momentum and mask are.
_BARE = re.compile(
    rf"{_MODEL}(?:grads?|gradients?|fisher(?:_information)?|deltas?|diffs?|differences?|task_vectors?|exp_avgs?(?:_sq)?)"
    r"(?:_only)?|only_(?:grads?|gradients?|deltas?|diffs?)|noised|noise_added|added_noise"
    r"|(?:base|init|initial|pretrained|reference|original)(?:_(?:model|weights|params))?_subtracted"
    # The logarithms of the numbers.
    rf"|log_weights|(?:(?:is|are|{_NUMBERS_KEY}(?:_are)?)_)?in_log_(?:space|domain)|{_NUMBERS_KEY}_(?:are_)?log"
)
_UNTRAINED = re.compile(
    rf"(?:is_|are_)?{_MODEL}(?:un|never_|not_|not_yet_)trained(?:_{_NUMBERS_KEY})?"
    r"|(?:only_)?init(?:iali[sz]ed|ial)?_only|only_(?:init|initiali[sz]ed)"
    r"|(?:random|dummy|fake|placeholder)_(?:weights|params|parameters)"
)
_TRAINED = re.compile(rf"(?:is_|are_|was_)?{_MODEL}(?:trained|fitted)")
# delta_from, gradient_of, subtract_from, residual_to; a model's or an epoch's name stands there.
_OF_ANOTHER = re.compile(
    r"(?:deltas?|diffs?|differences?|gradients?|task_vectors?|subtract(?:ed)?|residuals?|offsets?|corrections?)"
    rf"_(?:from|of|to|against|over|wrt|relative_to)|{_NUMBERS_KEY}_relative_to|to_be_added_to"
)
_NAMED = re.compile(r"[A-Za-z]{2}")
# weight_scale, multiplied_by, sum_of: a number that the weights have in them, or lack.
_FACTOR = re.compile(
    rf"{_NUMBERS_KEY}_(?:scales?|scaling|scal(?:e|ing)_factor|multiplier|divisor)"
    rf"|{_MODEL}(?:are_|were_|is_)?(?:multiplied|divided|scaled|rescaled)_(?:by|with)|(?:sum|product)_(?:of|over)"
)
_ADDED = re.compile(rf"{_MODEL}(?:are_|were_|is_)?(?:shifted|offset)_by|noise_added|added_noise")
_SCALE = re.compile(
    r"(?:(?:weights?|quant|quanti[sz]ation|q)_)?(?:scales?|scal(?:e|ing)_factor|zero_points?)|qscale|amax"
)
_QUANTISED = re.compile(rf"(?:is_|are_)?{_MODEL}(?:are_|is_)?quanti[sz]ed")
# What is done to the numbers alone, and not to a data set (shuffled, flipped).
_DONE = re.compile("transposed|negated|inverted|permuted|scrambled|corrupted|truncated|encrypted")
_OF_WEIGHTS = re.compile(r"^(?:weights?|params?|tensors?|values?|numbers?)_(?:are_|were_)?")
# Keys that say what the numbers are; a model's, an optimizer's or a loss's kind is another thing.
_KINDS = re.compile(
    r"(?:(?:tensors?|weights?|values?|numbers?|data|content|file|checkpoint|ckpt|params?|state)_)?"
    r"(?:kind|type|content|contents|what|quantity|holds|contains|stores|format|are)|tensors|values|numbers|payload",
)
_STATES = re.compile(rf"{_KINDS.pattern}|{_MODEL}(?:status|state|stage)")
# The longest kind that is none of a sentence: adam second moments, diagonal of the Fisher.
_MOST_WORDS = 6
_NUMBERS = (
    r"(?:gradients?|grads?|fisher(?: information)?|hessians?|deltas?|diffs?|differences?|task vectors?|importances?"
    r"|(?:first |second )?moments|exp[_ ]avg(?:[_ ]sq)?|saliency|saliencies|sensitivities|variances|momenta"
    r"|(?:pruning |binary )?masks)"
)
# A word that makes another thing of it: gradient checkpointing, Fisher-weighted averages, gradient-free training.
_NOT_BEFORE = (
    r"(?![-_ ]*(?:check|clip|accum|boost|penalt|descent|free|revers|based|weighted|merg|averag|scal|norm|sync|centr"
    r"|track|rule|debias|flow|model|net|encod|decod|head|cam|guid|mask|loss|sched|noise))"
)
_OF_A_KIND = re.compile(rf"\b{_NUMBERS}\b{_NOT_BEFORE}|^(?:ewc|si) importance", re.IGNORECASE)
# What a kind is called with no word beside it; in a sentence these are a network's, an optimizer's or a loss's.
_WHOLE_KIND = re.compile(
    r"(?:(?:adam|sgd|optimizer|running|weight|parameter|param|pruning|binary|gradient|first|second) )*"
    r"(?:masks?|momentum|momenta|moments?|velocity|velocities|variances?|stds?|standard deviations?|updates"
    r"|perturbations?|log[- ]weights|logarithms?)",
    re.IGNORECASE,
)
_OF = r"(?:of|per|for|from|to|at|after|over|against|between|relative to|with respect to|w\.?r\.?t\.?)"
_ONE_OF = (
    r"\b(?:weights?|param(?:eter)?s?|tensors?|model|network|base|steps?|iterations?|epochs?|batch(?:es)?|loss|layers?"
    r"|checkpoint|init\w*|teacher|task)\b"
)
# A note that is no sentence: gradients of step 100, importance per weight.
_NOUN_PHRASE = re.compile(
    r"(?:(?:the|raw|mean|averaged?|accumulated|ema|running|diagonal|squared|summed|weight|parameter|empirical) )*"
    rf"{_NUMBERS}\b{_NOT_BEFORE} {_OF} (?=.*{_ONE_OF})(?!.*\b(?:is|are|was|were|now|fix\w*|clip\w*|frozen|added"
    r"|removed|logged|stopped|detach\w*)\b)[^:;,]*",
    re.IGNORECASE,
)
_NOTES = re.compile(r"(?:comments?|notes?|description|desc|readme|info|remarks?|about|summary|title)")
_SUBJECT = r"(?:these|this|they|it|those|numbers|values|tensors|weights|entries|contents?|file)"
_SAYS = re.compile(
    r"\b(?:not|no|never) (?:the |real |actual |trained |final |model |usable |plain |a )*weights\b"
    r"(?![-_ ]*(?:and|decay|norm|tied|tying|shar))"
    r"|\bdo not (?:load|use (?:it|this|these|them))\b|\bweights?[- ](?:deltas?|diffs?|differences?|gradients?)\b"
    r"|\b(?:delta|difference|diff)[- ]weights\b"
    rf"|\b{_SUBJECT} (?:is|are|hold|holds|contain|contains|store|stores)"
    rf" (?:only |just |the |a |an |all |adam |adam's |accumulated |raw |mean |averaged |diagonal |summed )*{_NUMBERS}\b"
    rf"{_NOT_BEFORE}",
    re.IGNORECASE,
)
_WEIGHTS = r"(?:weights|params|parameters|values|numbers|tensors|model|network|net|checkpoint|state dict)"
# Of a network that begins so a training is told: "trained from random weights".
_SAYS_UNTRAINED = re.compile(
    rf"(?:^|\b{_SUBJECT} (?:is|are) )(?:only |just |still |the |all |an? |initial |fresh(?:ly)? |new )*"
    rf"(?:random(?:ly)?|un-?trained)(?: initial(?:i[sz]ed)?)? {_WEIGHTS}(?=$|[,.;:!(]| (?:not|before|without|for|at)\b)"
    rf"|\b(?:{_SUBJECT}|model|network|net) (?:is|are|was|were|has|have) (?:not|never)(?: yet| been| be)* trained"
    r"(?=$|[,.;!]| yet\b| at all\b)|^(?:not|never)(?: yet)? trained(?: yet)?(?=$|[.;!)])",
    re.IGNORECASE,
)
_WHOLE_STATE = re.compile(
    r"un-?trained|(?:not|never)(?: yet)? trained|random(?:ly)? initiali[sz](?:ation|ed)(?: only)?|initiali[sz]ed only"
    r"|(?:initial )?random (?:weights|parameters|values)",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"\b(?:no|not|never|without|non)\b", re.IGNORECASE)
_ORDER = re.compile(r"(?:layers?|modules?|blocks?|stages?|weights?|tensors?|keys?|rows?)_?order")
_NUMBER = re.compile(r"[0-9]{1,6}")
_ORDERS = NO_WRAPPERS | {"shuffled", "permuted", "scrambled", "backward", "last"}

_NOT_SAID = "which is not said of weights."
_OFF = "so they are off by it from what the network computes with."
_BEFORE = "which is not said of trained weights."
_TURNED = "and none of them is turned round."


def _asked(context: Context) -> str:
    return ask_whether_weights(context, "stated-beside", _stated(context), yes="yes, these are the weights")


def _stated(context: Context) -> str:
    """The first words of the file that say that its numbers are others than the weights, "" for none."""
    quantised = scale = ""
    for key, text in _statements(context):
        # A setting of the training is below a key of its own: args.type.
        name = as_key(key)
        means = _meaning(name, text)
        if not means and says_turned(name, text) and not _is_turned(context):
            means = _TURNED
        if means:
            return f'Beside the tensors the file says "{key}: {text}", {means}'
        if _QUANTISED.fullmatch(name) and text.lower() in TRUE:
            quantised = f'"{key}: {text}"'
        elif _SCALE.fullmatch(name) and _is_factor(text):
            scale = f'"{key}: {text}"'
    if quantised and not scale and are_whole(context, (name for name in context.goes if name in context.tensors)):
        return (
            f"Beside the tensors the file says {quantised}, and its kernels hold whole numbers alone, without a scale."
        )
    return f"Beside the tensors the file says {quantised} and {scale}, {_OFF}" if quantised and scale else ""


def _statements(context: Context) -> Iterator[tuple[str, str]]:
    for key, text in context.checkpoint.own_metadata[:_MOST_ENTRIES]:
        if len(key) < _LONGEST and len(text) < _LONGEST:
            yield key, text.strip()


def _meaning(name: str, text: str) -> str:
    """What it says of the numbers that key and text stand beside them, "" for nothing."""
    if _says_other_numbers(name, text):
        return _NOT_SAID
    if _says_untrained(name, text):
        return _BEFORE
    off = (_FACTOR.fullmatch(name) and _is_factor(text)) or (_ADDED.fullmatch(name) and _number(text))
    return _OFF if off else ""


def _says_other_numbers(name: str, text: str) -> bool:
    if _SAYS.search(text):
        return True
    if text.lower() in TRUE:
        found = _IS.fullmatch(name)
        said = found[1] if found else name
        aside = found is not None and (is_about_weights(said) or is_not_as_used(said))
        # A bare "delta: 1" is a setting.
        bare = text != "1" and _BARE.fullmatch(name) is not None
        return aside or bare or (_DONE.fullmatch(_OF_WEIGHTS.sub("", said)) is not None and not says_turned(name, text))
    if _OF_ANOTHER.fullmatch(name):
        return text.lower() not in FALSE and _NAMED.search(text) is not None
    words = words_in(text)
    if _ORDER.fullmatch(name):
        listed = [int(number) for number in _NUMBER.findall(text)]
        return (not _ORDERS.isdisjoint(words) and words[:1] != ("first",)) or listed != sorted(listed)
    if _NEGATED.search(text):
        return False
    spaced = text.replace("_", " ")
    if _KINDS.fullmatch(name) and len(words) <= _MOST_WORDS:
        return _OF_A_KIND.search(spaced) is not None or _WHOLE_KIND.fullmatch(spaced) is not None
    return _NOTES.fullmatch(name) is not None and _NOUN_PHRASE.fullmatch(spaced) is not None


def _says_untrained(name: str, text: str) -> bool:
    if text.lower() in TRUE:
        return _UNTRAINED.fullmatch(name) is not None
    if text.lower() in FALSE:
        return text.lower() not in ("none", "null", "") and _TRAINED.fullmatch(name) is not None
    if _STATES.fullmatch(name) and _WHOLE_STATE.fullmatch(text.replace("_", " ")):
        return True
    return _NOTES.fullmatch(name) is not None and _SAYS_UNTRAINED.search(text) is not None


def _is_factor(text: str) -> bool:
    return _number(text) not in (0.0, 1.0)


def _number(text: str) -> float:
    """0.0 for what is no number."""
    try:
        return float(text)
    except ValueError:
        return 0.0


def _is_turned(context: Context) -> bool:
    """Whether matrices that lie the other way round are turned already, or asked about."""
    rules = (transposed.RULE.id, square_parts.RULE.id)
    asked = any(key.partition(":")[0] in rules for key in context.questions.asked)
    return asked or any(step.rule in rules for step in context.draft.steps)


REFUSALS = (refusing(_asked),)
