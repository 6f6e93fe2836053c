"""Adversaries that change which tensors there are, and how they lie: layouts, fused, split, under colliding names."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import torch

from tests.keys.fuzz.adversaries import Row, Scene, _modules, _rename

# Last names of another library: matrix and kernel, bias, norm weight, norm bias, mean, variance, embedding.
_LEAVES = {
    "keras": ("kernel", "bias", "gamma", "beta", "moving_mean", "moving_variance", "embeddings"),
    "flax": ("kernel", "bias", "scale", "bias", "mean", "var", "embedding"),
    "haiku": ("w", "b", "scale", "offset", "average", "var", "embeddings"),
}


def _roles(scene: Scene) -> dict[str, int]:
    """Which of the seven a place is; none for what only torch has."""
    made = {}
    for module, rows in _modules(scene).items():
        sizes = {str(row.place).rpartition(".")[2]: row.value.dim() for row in rows}
        for leaf, ndim in sizes.items():
            at = f"{module}.{leaf}"
            if leaf == "weight" and ndim > 1:
                made[at] = 6 if re.search(r"embed", module) and ndim == 2 and "bias" not in sizes else 0
            elif leaf == "weight":
                made[at] = 2
            elif leaf == "bias":
                made[at] = 3 if sizes.get("weight") == 1 else 1
            elif leaf in ("running_mean", "running_var"):
                made[at] = 4 + (leaf == "running_var")
    return made


def library(scene: Scene, rng: random.Random) -> bool:
    """The whole file as Keras, Flax or Haiku writes it, names and layouts. Where nothing shows it, a lie.

    Transposed convolutions are left as torch has them: nobody can know, and what is there is asked about elsewhere.
    """
    kind = rng.choice(tuple(_LEAVES))
    roles = _roles(scene)
    if scene.laid_out or any(row.place and re.search(r"\.up$", row.place.rpartition(".")[0]) for row in scene.rows):
        return False
    rows = []
    for row in scene.rows:
        role = roles.get(str(row.place))
        if row.key.endswith("num_batches_tracked"):
            continue
        if row.place is None or role is None or not re.search(r"\.(weight|bias|running_\w+)$", row.key):
            rows.append(row)
            continue
        value = row.value
        if role == 0:
            value = value.permute(2, 3, 1, 0) if value.dim() == 4 else value.t()
        key = f"{row.key.rpartition('.')[0]}.{_LEAVES[kind][role]}"
        rows.append(replace(row, key=key, value=value.contiguous()))
    if kind == "flax":
        rows = [
            replace(r, key=f"{'batch_stats' if roles.get(str(r.place)) in (4, 5) else 'params'}/{r.key}") for r in rows
        ]
        rows = [replace(r, key=r.key.replace(".", "/")) for r in rows]
    elif kind == "haiku":
        rows = [replace(r, key=_haiku(r.key)) for r in rows]
    if len({row.key for row in rows}) < len(rows):
        return False
    scene.rows, scene.laid_out = rows, True
    return True


def _haiku(key: str) -> str:
    module, _, leaf = key.rpartition(".")
    return f"net/~/{module.replace('.', '/')}/{leaf}"


def foreign_words(scene: Scene, rng: random.Random) -> bool:
    """Last names of another library, on tensors that lie as torch has them: running_mean and its like still tell.

    Where nothing but such names is left, they lie.
    """
    table = rng.choice(({"weight": "kernel"}, {"weight": "w", "bias": "b"}, {"weight": "kernel", "bias": "beta"}))
    norms = rng.random() < 0.5
    roles = _roles(scene)
    places = {row.key: row.place for row in scene.rows}

    def new(name: str) -> str:
        module, _, leaf = name.rpartition(".")
        role = roles.get(str(places[name]))
        if role in (0, 1) and module:
            return f"{module}.{table.get(leaf, leaf)}"
        if norms and role in (2, 3):
            return f"{module}.{ {'weight': 'gamma', 'bias': 'beta'}.get(leaf, leaf) }"
        return name

    if scene.laid_out or not _rename(scene, new):
        return False
    scene.laid_out = True
    # Any matrix that is no square, or any statistics of torch's, is as torch has it and shows it.
    matrices = [r.value for r in scene.rows if r.place and roles.get(r.place) == 0]
    shown = any(v.dim() == 2 and v.shape[0] != v.shape[1] for v in matrices)
    shown = shown or any(v.dim() == 4 and v.permute(2, 3, 1, 0).shape != v.shape for v in matrices)
    shown = shown or any(r.key.endswith("running_mean") for r in scene.rows)
    if not shown:
        scene.lied |= {str(r.place) for r in scene.rows if r.place and roles.get(r.place) == 0}
    return True


def second_set(scene: Scene, rng: random.Random) -> bool:
    """A second set of weights, whole or in part, under a prefix."""
    prefix = rng.choice(("ema", "teacher", "model_ema.module", "momentum_encoder", "encoder", "model", "old"))
    copies = [
        Row(f"{prefix}.{r.key}", None, _other(r.value)) for r in scene.rows if rng.random() < rng.choice((1, 0.5))
    ]
    first = rng.random() < 0.5
    rows = [*copies, *scene.rows] if first else [*scene.rows, *copies]
    return _with(scene, rows)


def _other(value: torch.Tensor) -> torch.Tensor:
    return value * 0.5 + 3 if value.is_floating_point() else value + 3


def _with(scene: Scene, rows: list[Row]) -> bool:
    if len({row.key for row in rows}) < len(rows) or len(rows) == len(scene.rows):
        return False
    scene.rows = rows
    return True


def strays(scene: Scene, rng: random.Random) -> bool:
    """Tensors of something else whose names begin or end as the network's own do (pytorch#123510)."""
    like = rng.sample([r for r in scene.rows if r.place], min(4, len(scene.rows) // 2))
    made = []
    for row in like:
        first, _, rest = row.key.partition(".")
        word = rng.choice((f"{first}.{first}", f"{first}_", f"{first}_ema", "aux", f"{first}.copy"))
        made.append(Row(f"{word}.{rest}", None, _other(row.value)))
    if rng.random() < 0.3:
        made.append(Row("queue", None, torch.rand(7, 5)))
    return _with(scene, [*scene.rows, *{r.key: r for r in made}.values()])


def _joined(scene: Scene, groups: dict[str, list[int]], whole: str, order: list[int] | None) -> bool:
    """Tensors of one module as one. order: of the parts, None for their own."""
    rows: list[Row] = []
    gone = {i for indices in groups.values() for i in indices[1:]}
    first = {indices[0]: key for key, indices in groups.items()}
    for i, row in enumerate(scene.rows):
        if i in first:
            parts = [scene.rows[j] for j in groups[first[i]]]
            parts = parts if order is None else [parts[j] for j in order]
            head, _, leaf = row.key.rpartition(".")
            key = f"{head.rpartition('.')[0]}.{whole}.{leaf}"
            # The truth stays with the places; the row as a whole belongs to all of them.
            crossed = () if order is None else tuple(str(p.place) for p in parts)
            if len(set(crossed)) == 1:  # the target has them in one, too, and the file another order under that name
                scene.lied |= set(crossed)
            rows.append(Row(key, row.place, torch.cat([p.value for p in parts]), crossed))
        elif i not in gone:
            rows.append(row)
    return bool(groups) and _with(scene, rows)


def fused(scene: Scene, rng: random.Random) -> bool:
    """Query, key and value in one tensor, or gate and up; in another order, only an answer can tell that it is none."""
    for parts, whole, orders in (
        (("q_proj", "k_proj", "v_proj"), "qkv", (None, None, [1, 2, 0])),
        (("gate_proj", "up_proj"), "gate_up_proj", (None, [1, 0])),
    ):
        groups: dict[str, list[int]] = {}
        for i, row in enumerate(scene.rows):
            for n, part in enumerate(parts):
                if row.place and f".{part}." in row.key:
                    groups.setdefault(row.key.replace(f".{part}.", f".{whole}."), [-1] * len(parts))[n] = i
        groups = {key: indices for key, indices in groups.items() if -1 not in indices}
        if groups:
            return _joined(scene, groups, whole, rng.choice(orders))
    return False


def split(scene: Scene, rng: random.Random) -> bool:
    """What the target has in one piece, in three. Fused in another order before, each lies under another's name."""
    rows: list[Row] = []
    words = rng.choice((("q_proj", "k_proj", "v_proj"), ("to_q", "to_k", "to_v"), ("part_b", "part_a", "part_c")))
    for row in scene.rows:
        found = re.fullmatch(r"(.*\.)(?:qkv\.|in_proj_)(weight|bias)", row.key)
        if found is None or row.place is None or row.value.shape[0] % 3:
            rows.append(row)
            continue
        if words[0] != "part_b":  # a word that means one of the three
            scene.lied |= set(row.crossed)
        rows += [
            Row(f"{found[1]}{word}.{found[2]}", row.place, part.contiguous())
            for word, part in zip(words, row.value.chunk(3), strict=True)
        ]
    return _with(scene, rows)


def head_changed(scene: Scene, rng: random.Random) -> bool:
    """A head for other classes: its numbers belong nowhere."""
    heads = [r for r in scene.rows if r.place and re.search(r"(^|\.)(fc|head|generator|outc)\.\w+$", r.place)]
    if not heads or any(r.place in scene.unjudged for r in heads):
        return False
    size = rng.choice((2, 11))
    rows = []
    for row in scene.rows:
        if row in heads:
            scene.unjudged.add(str(row.place))
            row = replace(row, place=None, value=torch.rand(size, *row.value.shape[1:]))
        rows.append(row)
    scene.rows = rows
    return True


def dtype(scene: Scene, rng: random.Random) -> bool:
    kind = rng.choice((torch.float16, torch.float64))
    cast = {n: v.to(kind) if v.is_floating_point() else v for n, v in scene.goal.items()}
    scene.rows = [replace(r, value=r.value.to(kind) if r.value.is_floating_point() else r.value) for r in scene.rows]
    scene.goal = cast
    return True


def some_missing(scene: Scene, rng: random.Random) -> bool:
    """A few tensors, or a module of one of them."""
    victims = rng.sample([r for r in scene.rows if r.place], rng.choice((1, 1, 3)))
    start = str(victims[0].key).rpartition(".")[0] if rng.random() < 0.5 else None
    kept = [r for r in scene.rows if r not in victims and not (start and r.key.startswith(f"{start}."))]
    return len(kept) > 3 and _with(scene, kept)


def no_counters(scene: Scene, rng: random.Random) -> bool:
    return _with(scene, [r for r in scene.rows if not r.key.endswith("num_batches_tracked")])


def tied(scene: Scene, rng: random.Random) -> bool:
    """The head is the embedding, and the file has it once, or under both names."""
    table, head = "model.embed_tokens.weight", "lm_head.weight"
    own = {row.place: row for row in scene.rows}
    if table not in own or head not in own or table in scene.lied or own[table].value.shape != own[head].value.shape:
        return False
    scene.goal[head] = scene.goal[table]
    if scene.laid_out:  # a square head among matrices that lie (in, out), and itself as the table lies
        scene.lied.add(head)
    if rng.random() < 0.5:
        scene.rows = [r for r in scene.rows if r.place != head]
    else:
        scene.rows = [replace(r, value=own[table].value) if r.place == head else r for r in scene.rows]
    return True
