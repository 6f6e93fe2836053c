"""What hides the words of names and can be undone by looking at one side alone, or at both: other separators, counters
that are no numbers, a letter too few.

TensorFlow writes slashes and ends a variable's name with :0. Keras counts from nothing (dense, dense_1), others in
letters (bn_a, bn_b). A word that one author misspelt (mutihead_attn) says what the other's says. None of this is done
to the plan's names: the sides are only read so, and only a sure reading counts.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence

from inspector.keys.placing.synonyms import WORDS
from inspector.keys.placing.tree import Leaf

_VARIABLE = re.compile(r":[0-9]+$")
_LETTER = re.compile(r"(.*[a-z0-9])_([a-h])")
_COUNTER = re.compile(r"(.*[A-Za-z0-9])_([1-9][0-9]{0,3})")
_NUMBERED = re.compile(r"(.*?)_?([0-9]{1,4})")
NUMBER_WORDS = (
    ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"),
)
_WORD = re.compile(
    rf"([A-Za-z][A-Za-z0-9_]*?)_({'|'.join(NUMBER_WORDS[0])})|({'|'.join(NUMBER_WORDS[1])})_([A-Za-z][A-Za-z0-9_]*)",
    re.IGNORECASE,
)
# What Keras calls layers that nobody named. Elsewhere a name without a number may be of another kind (ln beside ln_1).
_KERAS = re.compile(
    r"dense|conv[123]d(_transpose)?|(depthwise_|separable_)conv[12]d|(batch|layer|group)_normalization|embedding|lstm"
    r"|gru|simple_rnn|multi_head_attention|prelu|p_re_lu"
)
# What Flax calls modules that nobody named, by their class, and what Haiku's MLP calls its layers: both count from 0.
_FROM_ZERO = re.compile(r"([A-Z][A-Za-z]*[a-z][A-Za-z]*|linear)_(0|[1-9][0-9]{0,2})")
# Shorter words are near too many others.
_SHORTEST = 7


def unhidden(
    leaves: Sequence[Leaf], places: Sequence[Leaf], *, ordered: bool
) -> tuple[list[Leaf] | None, list[Leaf] | None, str]:
    """Both sides as they read, None for one that hides nothing, and what was done, "" for nothing.

    ordered: whether both stand in their networks' order. Letters count only where that agrees: norm_b may come first.
    """
    ordered = ordered and _runs_on(leaves) and _runs_on(places)
    done: dict[str, None] = {}
    made: list[list[str]] = []
    for side in (leaves, places):
        names = [leaf.name for leaf in side]
        for says, change in (
            ("write dots for slashes", dotted),
            ("count from one in numbers what is counted in letters, words or from nothing", _counted),
        ):
            changed = change(names, ordered)
            if changed != names and len(set(changed)) == len(names):
                done[says] = None
                names = changed
        for says, named in (("name layers by their letters", _lettered), ("name the parts of blocks", _parts_named)):
            changed = named(names, side)
            if changed != names and len(set(changed)) == len(names):
                done[says] = None
                names = changed
        made.append(names)
    for ours, theirs in ((0, 1), (1, 0)):
        changed = _from_one(made[ours])
        if changed != made[ours] and not any(_ZERO.search(name) for name in made[theirs]):
            done["count from one what is counted from zero"] = None
            made[ours] = changed
    spelled = _spelled_alike(made[0], made[1])
    if spelled != made[0] and len(set(spelled)) == len(spelled):
        done["put a misspelt word right"] = None
        made[0] = spelled
    sides = [
        [Leaf(name, leaf.shape) for name, leaf in zip(names, side, strict=True)]
        if any(name != leaf.name for name, leaf in zip(names, side, strict=True))
        else None
        for names, side in zip(made, (leaves, places), strict=True)
    ]
    return sides[0], sides[1], ", ".join(done)


def _runs_on(side: Sequence[Leaf]) -> bool:
    """Whether nothing shows that the side stands in another order than its network's: numbers run up, and a weight
    comes before its bias. A file may have been written from behind."""
    last: dict[str, int] = {}
    begun: set[str] = set()
    before = ""
    for leaf in side:
        module, _, own = leaf.name.rpartition(".")
        # What stands in the module of the one before has its numbers.
        segments = leaf.name.split(".") if module != before or own.isdecimal() else ()
        before = module
        for n, segment in enumerate(segments):
            if segment.isdecimal() and len(segment) < 5:
                above = ".".join(segments[:n])
                if int(segment) < last.get(above, 0):
                    return False
                last[above] = int(segment)
        if own == "bias":
            begun.add(module)
        elif own == "weight" and module in begun:
            return False
    return True


def _said_once(names: Sequence[str]) -> list[str]:
    """Keras 2's h5 files have a layer's name as a group and again as the scope in it: dense_1/dense_1/kernel:0."""
    split = [name.split("/") for name in names]
    twice = [len(path) > 2 and path[0] == path[1] for path in split]
    return ["/".join(path[1:]) for path in split] if all(twice) else list(names)


def dotted(names: Sequence[str], ordered: bool = True) -> list[str]:
    """TensorFlow's names as torch would write them; output_weights beside output_bias is a layer."""
    if not any("/" in name for name in names):
        return list(names)
    dotted = [_VARIABLE.sub("", name).replace("/", ".") if "/" in name else name for name in _said_once(names)]
    there = set(dotted)
    made = []
    for name in dotted:
        for last, other in (("weights", "bias"), ("bias", "weights")):
            stem = name.removesuffix(f"_{last}")
            if stem != name and f"{stem}_{other}" in there:
                name = f"{stem}.{last.removesuffix('s') if last == 'weights' else last}"
                break
        made.append(name)
    return made


def _counted(names: Sequence[str], ordered: bool) -> list[str]:
    """Modules beside each other that are counted a, b, c, or nothing, 1, 2: in numbers from 1 on."""
    below: dict[tuple[str, ...], dict[str, None]] = {}
    for module in _modules(names):
        path = tuple(module.split("."))
        for n, segment in enumerate(path):
            below.setdefault(path[:n], {})[segment] = None
    other: dict[tuple[str, ...], dict[str, str]] = {}
    for place, segments in below.items():
        found = _from_nothing(segments) | _in_words(segments) | (_in_letters(segments) if ordered else {})
        if found and len({found.get(segment, segment) for segment in segments}) == len(segments):
            other[place] = found
    if not other:
        return list(names)
    paths = [tuple(name.split(".")) for name in names]
    return [
        ".".join(other.get(path[:n], {}).get(s, s) if n < len(path) - 1 else s for n, s in enumerate(path))
        for path in paths
    ]


def _modules(names: Iterable[str]) -> dict[str, None]:
    """What stands before the last dot of each name that has one, each once."""
    parted = [name.rpartition(".") for name in names]
    return dict.fromkeys([module for module, dot, _ in parted if dot])


# What a letter and a number call a layer whose weight has so many axes.
_INITIAL = re.compile(r"([cbnl])([0-9]{1,3})")
_INITIALS = {"c": ("conv", (3, 4, 5)), "b": ("norm", (1,)), "n": ("norm", (1,)), "l": ("fc", (2,))}


def _lettered(names: Sequence[str], side: Sequence[Leaf]) -> list[str]:
    """c1, b1, l1 as conv1, norm1, fc1, where every layer that is called so has a weight with that layer's axes."""
    said = {module for module in _modules(names) if _INITIAL.fullmatch(module.rpartition(".")[2])}
    if not said:
        return list(names)
    axes: dict[str, int] = {}
    for name, leaf in zip(names, side, strict=True):
        module, _, own = name.rpartition(".")
        if module in said and own == "weight":
            axes[module] = len(leaf.shape or ())
    letters = {module.rpartition(".")[2][0] for module in said}
    fits = all(axes.get(module) in _INITIALS[module.rpartition(".")[2][0]][1] for module in said)
    # A letter alone may be any name; two kinds of layers under the letters of both are no chance.
    if len(letters) < 2 or {"b", "n"} <= letters or not fits:
        return list(names)
    made = []
    for name in names:
        module, _, own = name.rpartition(".")
        above, dot, last = module.rpartition(".")
        made.append(f"{above}{dot}{_INITIALS[last[0]][0]}{last[1:]}.{own}" if module in said else name)
    return made


# The residual blocks of OpenAI's guided diffusion, which CompVis took over, as diffusers' converter calls their parts.
_OF_A_BLOCK = {
    "in_layers.0": "norm1",
    "in_layers.2": "conv1",
    "out_layers.0": "norm2",
    "out_layers.3": "conv2",
    "emb_layers.1": "time_emb_proj",
    "skip_connection": "conv_shortcut",
}
_PART = re.compile(r"(.*)\.(in_layers\.[02]|out_layers\.[03]|emb_layers\.1|skip_connection)\.(weight|bias)")


def _parts_named(names: Sequence[str], side: Sequence[Leaf]) -> list[str]:
    """The numbered parts of blocks that have all four of them, as another author names them."""
    if not any(".in_layers." in name for name in names):
        return list(names)
    below: dict[str, set[str]] = {}
    found = [_PART.fullmatch(name) for name in names]
    for part in found:
        if part is not None:
            below.setdefault(part[1], set()).add(part[2])
    whole = {block for block, parts in below.items() if set(list(_OF_A_BLOCK)[:4]) <= parts}
    return [
        f"{part[1]}.{_OF_A_BLOCK[part[2]]}.{part[3]}" if part is not None and part[1] in whole else name
        for name, part in zip(names, found, strict=True)
    ]


def against_the_count(links: Sequence[tuple[Leaf, Leaf]]) -> bool:
    """Whether of fc, fc_1, fc_2 the one without a number goes behind the others: fc_1 was taken for the first."""
    pairs = [(leaf.name.rpartition(".")[0], place.name.rpartition(".")[0]) for leaf, place in links]
    for goes in dict(pairs), {theirs: ours for ours, theirs in pairs}:
        for module, place in goes.items():
            found = _COUNTER.fullmatch(module) if "_" in module else None
            bare = goes.get(found[1]) if found is not None else None
            if not bare:
                continue
            here, there = _NUMBERED.fullmatch(place), _NUMBERED.fullmatch(bare)
            if here is not None and there is not None and here[1] == there[1] and int(here[2]) < int(there[2]):
                return True
    return False


def _from_nothing(segments: Sequence[str] | dict[str, None]) -> dict[str, str]:
    groups: dict[str, list[int]] = {}
    for segment in segments:
        found = _COUNTER.fullmatch(segment)
        if found is not None and found[1] in segments and _KERAS.fullmatch(found[1]):
            groups.setdefault(found[1], []).append(int(found[2]))
    made: dict[str, str] = {}
    for stem, numbers in groups.items():
        if sorted(numbers) == list(range(1, len(numbers) + 1)):
            made |= {f"{stem}_{n}": f"{stem}_{n + 1}" for n in numbers} | {stem: f"{stem}_1"}
    return made


# A module whose name ends in 0, and no number of a list.
_ZERO = re.compile(r"[A-Za-z]_?0\.")


def _from_one(names: Sequence[str]) -> list[str]:
    """Conv_0, Conv_1 as Conv_1, Conv_2: norm_1 is the second there, and of two roles in a target that counts from 1."""
    below: dict[tuple[str, str], set[int]] = {}
    for path in _modules(names):
        above, _, module = path.rpartition(".")
        if found := _FROM_ZERO.fullmatch(module):
            below.setdefault((above, found[1]), set()).add(int(found[2]))
    rows = {row for row, numbers in below.items() if sorted(numbers) == list(range(len(numbers)))}
    if not rows:
        return list(names)
    made = []
    for name in names:
        module, _, own = name.rpartition(".")
        above, dot, last = module.rpartition(".")
        found = _FROM_ZERO.fullmatch(last)
        if found is None or (above, found[1]) not in rows:
            made.append(name)
        elif len(below[above, found[1]]) == 1:
            # The only one of its class is none of several.
            made.append(f"{above}{dot}{found[1]}.{own}")
        else:
            made.append(f"{above}{dot}{found[1]}_{int(found[2]) + 1}.{own}")
    return made


def _in_words(segments: Iterable[str]) -> dict[str, str]:
    """conv_one, conv_two; first_conv, second_conv: counted from the first without a gap."""
    groups: dict[tuple[str, int], dict[int, str]] = {}
    for segment in segments:
        found = _WORD.fullmatch(segment)
        if found is not None:
            kind = 0 if found[2] else 1
            word = (found[2] or found[3]).lower()
            groups.setdefault((found[1] or found[4], kind), {})[NUMBER_WORDS[kind].index(word) + 1] = segment
    return {
        segment: f"{stem}_{number}"
        for (stem, _), row in groups.items()
        if len(row) > 1 and sorted(row) == list(range(1, len(row) + 1))
        for number, segment in row.items()
    }


def _in_letters(segments: Sequence[str] | dict[str, None]) -> dict[str, str]:
    """segments: as they come first."""
    groups: dict[str, list[str]] = {}
    for segment in segments:
        found = _LETTER.fullmatch(segment)
        if found is not None:
            groups.setdefault(found[1], []).append(found[2])
    made: dict[str, str] = {}
    for stem, letters in groups.items():
        if len(letters) > 1 and letters == [chr(ord("a") + n) for n in range(len(letters))]:
            made |= {f"{stem}_{letter}": f"{stem}_{ord(letter) - ord('a') + 1}" for letter in letters}
    return made


def _spelled_alike(ours: Sequence[str], theirs: Sequence[str]) -> list[str]:
    """The file's names with the target's spelling of a word that only one letter tells from it, on either side once."""
    here = {segment for module in _modules(ours) for segment in module.split(".")}
    there = {segment for module in _modules(theirs) for segment in module.split(".")}
    near = _misspelt(here - there, there - here)
    known = {a: b for a, b in near if sum(x == a for x, _ in near) == 1 == sum(y == b for _, y in near)}
    if not known:
        return list(ours)
    return [".".join(known.get(segment, segment) for segment in name.split(".")) for name in ours]


def _misspelt(ours: Iterable[str], theirs: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of names in which all words but one are equal, and that one is misspelt.

    Only those are compared that could be: a pair each of thousands of names would take longer than all the rest.
    """
    known: dict[tuple[Hashable, ...], list[tuple[str, str]]] = {}
    for name in theirs:
        for place, word in _words_in(name):
            known.setdefault(place, []).append((name, word))
    return [
        (name, other)
        for name in ours
        for place, word in _words_in(name)
        for other, its in known.get(place, ())
        if word != its and _is_misspelt(word, its)
    ]


def _words_in(name: str) -> Iterator[tuple[tuple[Hashable, ...], str]]:
    """Each long word of a name after what must be equal around it: the rest, its first letter and its last."""
    pieces = re.findall(r"[a-z]+|[0-9]+", name.lower())
    for at, word in enumerate(pieces):
        if len(word) >= _SHORTEST:
            yield (tuple(pieces[:at]), word[0], word[-1], tuple(pieces[at + 1 :])), word


def _is_misspelt(one: str, other: str) -> bool:
    """Whether one word of several letters has one letter more, or two neighbours exchanged, inside of it.

    Another letter is another word (content and context), and so is another beginning (typical and atypical) or end.
    """
    short, long = sorted((one, other), key=len)
    if short in WORDS and long in WORDS:
        return False
    if len(long) == len(short) + 1:
        return any(long[:i] + long[i + 1 :] == short for i in range(1, len(long) - 1))
    at = next((i for i, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), 0)
    return len(short) == len(long) and short[:at] + short[at + 1 : at + 2] + short[at] + short[at + 2 :] == long
