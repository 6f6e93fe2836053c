"""How often is a map wrongly called no better than noise, and noise better than noise?

    python -m benchmarks.cam.chance [--pictures 100] [--draws 3] [--seed 83000023]

Fresh shapes; random maps other than those that the test draws itself, of other smoothness too; the samples' true maps,
and which of them point at the shape of a picture that is answered rightly; maps that should not pass. Asserts that at
most 5 % of the random maps pass, and at most 5 % of the samples' true maps fail: of 100 pictures or more as counted, of
fewer unless the 95 % interval (Wilson's) lies above. Figures are reported of a seed that nothing was chosen by.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from benchmarks.cam.localise import SAMPLES, Subject, load, score
from inspector.cam.engine.maps import heat_maps
from inspector.cam.engine.scene import open_scene
from inspector.cam.engine.tensors import normalise
from inspector.cam.trust.baselines import edges, halved, random_map
from inspector.cam.trust.chance import LEVEL, PROMISED, RANDOM_MAPS, chance, cover_parts, of_noise, share_as_good
from inspector.cam.trust.intervals import Interval, wilson
from inspector.cam.trust.measure import Case

# Of the pictures; the random maps' begin far from those of the test's own noise.
SEED = 83_000_023
FIRST_MAP = 1_700_000_000
# As many as the figures are of; fewer are held against their interval.
ENOUGH = 100
WORDS = ("better", "noise", "still")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Of one map. kind: what it is. word: one of `WORDS`. fresh: whether it is noise of this picture alone. right:
    whether the picture is answered rightly and the map points at its shape."""

    kind: str
    word: str
    fresh: bool = False
    right: bool = False


def noises(size: tuple[int, int], grid: tuple[int, int], seed: int) -> dict[str, Tensor]:
    """Kind -> one map (H, W) of noise: two that the test has as well, and others that it has not."""
    smooth, fine = halved(grid), (2 * grid[0], 2 * grid[1])
    return {
        "noise on the grid": random_map(size, grid, seed),
        "smooth noise": random_map(size, smooth, seed),
        "finer noise": random_map(size, fine, seed),
        "smoother noise": random_map(size, halved(smooth), seed),
        "peaks of noise": random_map(size, grid, seed + 1) ** 4,
        "peaks of smooth noise": random_map(size, smooth, seed + 1) ** 4,
    }


def known_noise(subject: Subject) -> list[list[Tensor]]:
    """What the test holds every map against: the same for all pictures."""
    grid, size = subject.layer.grid, (subject.batch.shape[2], subject.batch.shape[3])
    return [[random_map(size, cells, n) for n in range(RANDOM_MAPS)] for cells in (grid, halved(grid))]


def own_maps(subject: Subject, model: nn.Module, number: int) -> dict[str, Tensor]:
    """Kind -> (H, W): of the model, for its answer and another one; of the picture alone."""
    picture = subject.batch[number : number + 1]
    best = int(model(picture).argmax())
    found = {}
    for method in dict.fromkeys((SAMPLES[subject.name], "grad-cam")):
        for kind, target in ((method, best), (f"{method}, wrong class", (best + 1) % 4)):
            found[kind] = heat_maps(model, picture, layer=subject.layer, targets=target, method=method).heat[0]
    return found | {
        "colours of the picture": normalise(picture.double().mean(dim=1))[0],
        "edges of the picture": edges(picture[0]),
    }


def verdicts(
    subject: Subject, model: nn.Module, number: int, draws: int, known: Sequence[Sequence[Tensor]]
) -> Iterator[Verdict]:
    """Of every map of one picture, all of them held against the answer that the model gives."""
    picture = subject.batch[number : number + 1]
    size, grid = (picture.shape[2], picture.shape[3]), subject.layer.grid
    best = int(model(picture).argmax())
    maps = [(kind, heat, False) for kind, heat in own_maps(subject, model, number).items()]
    maps += [(f"{kind}, the same for all", heat, False) for kind, heat in noises(size, grid, FIRST_MAP - 2).items()]
    for draw in range(draws):
        seed = FIRST_MAP + 2 * (number * draws + draw)
        maps += [(kind, heat, True) for kind, heat in noises(size, grid, seed).items()]
    with open_scene(model, picture, [], best) as scene:
        covered = cover_parts(Case(scene=scene, heat=maps[0][1], at_once=16))
    moves = chance(covered, maps[0][1], [some[:2] for some in known], shares=True).moves
    others = [of_noise(covered, some) for some in known]
    for kind, heat, fresh in maps:
        own = float(covered.correlations(heat[None])[0])
        share = max(share_as_good(own, some) for some in others)
        word = "still" if not moves else "better" if share <= LEVEL else "noise"
        right = best == subject.labels[number] and score(heat, subject.masks[number])[1] > 0
        yield Verdict(kind=kind, word=word, fresh=fresh, right=right)


def keeps(says: str, failed: Sequence[bool], *, enough: int = ENOUGH) -> str:
    """Prints the share of them; what broke the promise, "" where at most `PROMISED` failed or too few to tell did."""
    share: Interval = wilson([float(one) for one in failed])
    print(f"{says}: {sum(failed)} of {len(failed):,}, {share.mean:.1%} ({share.low:.1%} to {share.high:.1%})")
    most = share.mean if len(failed) >= enough else share.low
    return "" if most <= PROMISED else f"{says}: {share.mean:.1%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=ENOUGH)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    print(f"{'sample':<24} {'model':<10} {'map':<40} {'maps':>5} " + " ".join(f"{word:>7}" for word in WORDS))
    found: dict[tuple[str, str], list[Verdict]] = defaultdict(list)
    for name in SAMPLES:
        subject = load(name, options.pictures, "cpu", seed=options.seed)
        known = known_noise(subject)
        for state, model, count in (
            ("trained", subject.trained, options.pictures),
            ("untrained", subject.untrained, max(1, options.pictures // 10)),
        ):
            for number in range(count):
                found[name, state] += verdicts(subject, model, number, options.draws, known)
            for kind in dict.fromkeys(one.kind for one in found[name, state]):
                words = [one.word for one in found[name, state] if one.kind == kind]
                shares = [words.count(word) / len(words) for word in WORDS]
                print(
                    f"{name:<24} {state:<10} {kind:<40} {len(words):5d} " + " ".join(f"{s:7.1%}" for s in shares),
                    flush=True,
                )
    trained = [one for name in SAMPLES for one in found[name, "trained"]]
    fresh = [one.word == "better" for one in trained if one.fresh]
    broken = [keeps("random maps that pass", fresh, enough=1000)]
    for name, method in SAMPLES.items():
        own = [one for one in found[name, "trained"] if one.kind == method]
        broken.append(keeps(f"{name}: true maps that fail", [one.word != "better" for one in own]))
        right = [one for one in own if one.right]
        broken.append(keeps(f"{name}: of those that point at the shape", [one.word != "better" for one in right]))
        praised = [one.word == "better" for one in found[name, "untrained"]]
        broken.append(keeps(f"{name}, untrained: maps that pass", praised, enough=1000))
    assert not any(broken), [says for says in broken if says]


if __name__ == "__main__":
    main()
