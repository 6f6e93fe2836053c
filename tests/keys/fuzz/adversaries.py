"""What an adversary does to a file, with the truth kept: where each tensor belongs, or that nothing tells any more.

A *lie* is a change that leaves names and shapes as they are and puts other numbers there: two equal layers exchanged
under each other's names, rows of a kernel permuted. No reader of the file can know, and so its places are not judged.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import torch

from benchmarks.keybench.corruptions_words import invented, renumbered, synonyms


@dataclass(frozen=True)
class Row:
    """A tensor of the file. place: where it belongs in the target, None where it belongs nowhere.

    crossed: of several tensors that were fused in another order than the library of that name has, their places.
    """

    key: str
    place: str | None
    value: torch.Tensor
    crossed: tuple[str, ...] = ()


@dataclass
class Scene:
    """rows: the file, in its order. goal: the target with what is right there. lied: places that nothing tells of any
    more. unjudged: places whose numbers are not in the file, as of a head for other classes. laid_out: some tensors lie
    otherwise than in torch already; twice turned, they would lie as torch's under names that say otherwise.
    """

    rows: list[Row]
    goal: dict[str, torch.Tensor]
    lied: set[str] = field(default_factory=set)
    unjudged: set[str] = field(default_factory=set)
    ordered: bool = True
    laid_out: bool = False


Adversary = Callable[[Scene, random.Random], bool]


def _rename(scene: Scene, new: Callable[[str], str]) -> bool:
    """All keys of the file by `new`; False, and nothing done, where two would have one name or none changes."""
    names = [new(row.key) for row in scene.rows]
    if len(set(names)) < len(names) or names == [row.key for row in scene.rows]:
        return False
    scene.rows = [replace(row, key=name) for row, name in zip(scene.rows, names, strict=True)]
    return True


def _prefixes(names: Iterable[str]) -> list[str]:
    return sorted({".".join(n.split(".")[:i]) for n in names for i in range(1, n.count(".") + 1)})


_WRAPPERS = ("module", "model", "_orig_mod", "net", "encoder", "decoder", "backbone", "student", "layers", "0")


def wrapped(scene: Scene, rng: random.Random) -> bool:
    word = rng.choice(_WRAPPERS)
    return _rename(scene, lambda name: f"{word}.{name}")


def wrapped_below(scene: Scene, rng: random.Random) -> bool:
    """A segment that may be one of the network's own, in the middle of some names."""
    start = rng.choice(_prefixes(row.key for row in scene.rows) or [""])
    word = rng.choice((*_WRAPPERS, *(row.key.split(".")[0] for row in scene.rows[:20])))
    return _rename(scene, lambda n: f"{start}.{word}{n[len(start) :]}" if n.startswith(f"{start}.") else n)


def target_wrapped(scene: Scene, rng: random.Random) -> bool:
    """The same in the target: all that is known of places is renamed along."""
    word = rng.choice(_WRAPPERS)
    return _target_renamed(scene, lambda name: f"{word}.{name}")


def target_by_synonyms(scene: Scene, rng: random.Random) -> bool:
    return _target_renamed(scene, synonyms(rng))


def _target_renamed(scene: Scene, new: Callable[[str], str]) -> bool:
    table = {name: new(name) for name in scene.goal}
    if len(set(table.values())) < len(table):
        return False
    scene.goal = {table[name]: value for name, value in scene.goal.items()}
    scene.rows = [
        replace(row, place=table[row.place] if row.place else None, crossed=tuple(table[x] for x in row.crossed))
        for row in scene.rows
    ]
    scene.lied = {table[name] for name in scene.lied}
    scene.unjudged = {table[name] for name in scene.unjudged}
    return True


def by_synonyms(scene: Scene, rng: random.Random) -> bool:
    return _rename(scene, synonyms(rng))


def numbered_otherwise(scene: Scene, rng: random.Random) -> bool:
    return _rename(scene, renumbered(rng))


def counted_from_behind(scene: Scene, rng: random.Random) -> bool:
    """layers.-1 is the last of all, as Python counts; or the first is layers.-1, which no one counts from."""
    numbers: dict[str, set[int]] = {}
    for row in scene.rows:
        for found in re.finditer(r"(?<=\.)\d+(?=\.)", row.key):
            numbers.setdefault(row.key[: found.start()], set()).add(int(found[0]))
    shift = rng.random() < 0.5

    def new(name: str) -> str:
        return re.sub(
            r"(?<=\.)\d+(?=\.)",
            lambda f: str(int(f[0]) - (1 if shift else len(numbers[name[: f.start()]]))),
            name,
            count=1,
        )

    return _rename(scene, new)


def words_invented(scene: Scene, rng: random.Random) -> bool:
    return _rename(scene, invented(rng, rng.choice((0.2, 0.5, 1.0)), lambda name: name))


def scrambled(scene: Scene, rng: random.Random) -> bool:
    """Every module under a name drawn by chance, with or without the last names."""
    made: dict[str, str] = {}
    leaves = rng.random() < 0.6

    def new(name: str) -> str:
        module, _, leaf = name.rpartition(".")
        word = made.setdefault(module, f"m{rng.randrange(10**6):06d}")
        return f"{word}.{leaf if leaves else f'x{rng.randrange(10**6):06d}'}"

    return _rename(scene, new)


_NORM_WORDS = (
    ({"norm1": "pre_norm", "norm2": "post_norm"}, {"norm1": "ln_attn", "norm2": "ln_mlp"}),
    ({"norm1": "zz_norm", "norm2": "aa_norm"}, {"norm1": "norm_b", "norm2": "norm_a"}),
    ({"norm1": "norms.1", "norm2": "norms.0"}, {"norm1": "norm_pre", "norm2": "norm_post"}),
)


def norms_renamed(scene: Scene, rng: random.Random) -> bool:
    """The norms of a block under words of before and after, or under such as tell nothing, or that lie."""
    table = rng.choice(rng.choice(_NORM_WORDS))
    alike = {"input_layernorm": "norm1", "post_attention_layernorm": "norm2", "bn1": "norm1", "bn2": "norm2"}
    old = {row.key for row in scene.rows}

    def new(name: str) -> str:
        return ".".join(table.get(alike.get(s, s), s) if f".{s}." in f".{name}" else s for s in name.split("."))

    done = _rename(scene, new)
    if done and "norms.1" in table.values():
        scene.lied |= {row.place for row in scene.rows if row.place and ".norms." in f".{row.key}"}
    return done and {row.key for row in scene.rows} != old


def _modules(scene: Scene) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in scene.rows:
        if row.place is not None:
            found.setdefault(row.place.rpartition(".")[0], []).append(row)
    return found


def _form(rows: Iterable[Row]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple(sorted((str(r.place).rpartition(".")[2], tuple(r.value.shape)) for r in rows))


def exchanged(scene: Scene, rng: random.Random) -> bool:
    """Two layers of equal shape change their numbers, under each other's names: a lie."""
    forms: dict[object, list[str]] = {}
    modules = _modules(scene)
    for name, rows in modules.items():
        forms.setdefault(_form(rows), []).append(name)
    fitting = [names for names in forms.values() if len(names) > 1]
    if not fitting:
        return False
    one, other = rng.sample(rng.choice(fitting), 2)
    by_place = {row.place: row for row in scene.rows}
    lied = set()
    for name, away in ((one, other), (other, one)):
        for row in modules[name]:
            place = f"{away}.{str(row.place).rpartition('.')[2]}"
            if place in by_place:
                lied |= _held_in(scene, place, row.value)
    if not lied:
        return False
    values = {row.place: row.value for row in scene.rows}
    swap = {one: other, other: one}

    def taken(row: Row) -> Row:
        module, _, leaf = str(row.place).rpartition(".")
        away = values.get(f"{swap.get(module, '')}.{leaf}")
        return row if away is None or module not in swap else replace(row, value=away)

    scene.rows = [taken(row) if row.place is not None else row for row in scene.rows]
    scene.lied |= lied
    return True


def _held_in(scene: Scene, place: str, value: torch.Tensor) -> set[str]:
    """The place, and its neighbours where several of them lie in one tensor of the file."""
    if place not in scene.goal or value.numel() <= scene.goal[place].numel():
        return {place}
    above, leaf = place.rpartition(".")[0].rpartition(".")[0], place.rpartition(".")[2]
    return {name for name in scene.goal if name.startswith(f"{above}.") and name.rpartition(".")[2] == leaf}


def order_shuffled(scene: Scene, rng: random.Random) -> bool:
    """The names tell, the order lies."""
    how = rng.choice(("sorted", "sorted", "reversed", "shuffled", "two"))
    rows = list(scene.rows)
    if how == "sorted":
        rows.sort(key=lambda row: row.key)
        scene.ordered = rng.random() < 0.5
    elif how == "reversed":
        rows.reverse()
    elif how == "shuffled":
        rng.shuffle(rows)
    else:
        alike = [i for i, r in enumerate(rows) if sum(r.value.shape == x.value.shape for x in rows) > 1]
        if len(alike) < 2:
            return False
        i, j = rng.sample(alike, 2)
        rows[i], rows[j] = rows[j], rows[i]
    changed = [r.key for r in rows] != [r.key for r in scene.rows]
    scene.rows = rows
    return changed


def channels_permuted(scene: Scene, rng: random.Random) -> bool:
    """Rows of one tensor in another order: a lie."""
    fitting = [i for i, row in enumerate(scene.rows) if row.place and row.value.dim() and row.value.shape[0] > 1]
    i = rng.choice(fitting)
    row = scene.rows[i]
    scene.rows[i] = replace(row, value=row.value.flip(0).contiguous())
    scene.lied |= _held_in(scene, str(row.place), row.value)
    return True


_TABLE = re.compile(r"embed|token|pos_|wte|wpe")


def transposed(scene: Scene, rng: random.Random) -> bool:
    """Linear layers as (in, out): all of them, or some. Where every shape stays as it is, a lie."""
    linear = [
        i for i, r in enumerate(scene.rows) if r.place and r.value.dim() == 2 and not _TABLE.search(r.place + r.key)
    ]
    if not linear or scene.laid_out:
        return False
    scene.laid_out = True
    some = linear if rng.random() < 0.6 else rng.sample(linear, max(1, len(linear) // 2))
    telling = any(scene.rows[i].value.shape[0] != scene.rows[i].value.shape[1] for i in some)
    for i in some:
        row = scene.rows[i]
        scene.rows[i] = replace(row, value=row.value.t().contiguous())
        if not telling:
            scene.lied.add(str(row.place))
    return True


def half_channels_last(scene: Scene, rng: random.Random) -> bool:
    """Kernels as (h, w, in, out) or (out, h, w, in) under their own names. Where no shape changes, a lie."""
    axes = rng.choice(((2, 3, 1, 0), (0, 2, 3, 1)))
    kernels = [i for i, r in enumerate(scene.rows) if r.place and r.value.dim() == 4]
    if not kernels or scene.laid_out:
        return False
    scene.laid_out = True
    telling = any(scene.rows[i].value.permute(axes).shape != scene.rows[i].value.shape for i in kernels)
    for i in kernels:
        row = scene.rows[i]
        scene.rows[i] = replace(row, value=row.value.permute(axes).contiguous())
        if not telling:
            scene.lied.add(str(row.place))
    return True
