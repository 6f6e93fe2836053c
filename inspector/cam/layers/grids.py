"""Which axes of a layer's output are height and width, and how tokens lie: decided by evidence, or not at all.

Convolutions and poolings over places know their axes. The grids that they put out, and those that are one of these
made smaller by a whole number (Swin's merged patches), are the only ones that another output is read as: eight heads
of fifteen tokens with 32 numbers each are no map, though 8 x 15 has a picture's proportions.
"""

from __future__ import annotations

from dataclasses import dataclass

from inspector.cam.engine.trace import Trace, TracedCall

MOST_PREFIX_TOKENS = 16
# Beside a grid that no convolution put out: none, a class token, a distilled one too, one with four registers.
_USUAL_PREFIXES = (0, 1, 2, 5)

Grid = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grids:
    """What one forward pass shows of its grids.

    seen: put out by convolutions and poolings over places, in order. derived: those of them that are of whole pictures,
    or the picture itself where there are none (patches that are cut out first), made smaller by whole numbers.
    shown: those of the derived that a layer puts out which knows its channels (a linear layer, a norm, a convolution of
    single places). whole: those of the seen that are of whole pictures. cut: where there are none, those of the derived
    that such a layer puts out as tokens (patches that a linear layer makes). rows: shapes of three axes that some layer
    puts out which has its channels last. picture: (H, W). channels_last: some maps are so.
    """

    seen: tuple[Grid, ...]
    derived: frozenset[Grid]
    shown: frozenset[Grid]
    whole: tuple[Grid, ...]
    cut: tuple[Grid, ...]
    rows: frozenset[tuple[int, ...]]
    picture: Grid
    channels_last: bool

    @classmethod
    def of(cls, trace: Trace) -> Grids:
        _, height, width = trace.input_shape
        picture = (height, width)
        seen: dict[Grid, bool] = {}
        for call in trace.calls:
            if call.over_places and len(call.shape) == 4 and is_scaled((call.shape[2], call.shape[3]), picture):
                grid = call.shape[2], call.shape[3]
                seen[grid] = seen.get(grid, False) or call.shape[0] == trace.batch
        derived: set[Grid] = set()
        whole = [grid for grid, of_pictures in seen.items() if of_pictures]
        for rows, columns in whole or (picture,):
            for factor in range(2, max(rows, columns) + 1):
                derived.add((rows // factor, columns // factor))
                derived.add((-(-rows // factor), -(-columns // factor)))
        known = frozenset(grid for grid in derived if min(grid) > 0)
        maps = [call for call in trace.calls if call.channels and len(call.shape) == 4]
        first = {(call.shape[2], call.shape[3]) for call in maps if call.channels == "first"}
        last = {(call.shape[1], call.shape[2]) for call in maps if call.channels == "last"}
        shapes = {call.shape: None for call in trace.calls if call.channels == "last" and len(call.shape) == 3}
        cut = [] if whole else [_fitting(known, picture, length) for _, length, _ in shapes]
        return cls(
            seen=tuple(seen),
            derived=known,
            shown=known & (first | last),
            whole=tuple(whole),
            cut=tuple(fitting[0] for fitting in cut if len(fitting) == 1),
            rows=frozenset(shapes),
            picture=picture,
            channels_last=bool(last & (known | seen.keys())),
        )

    def read(self, call: TracedCall) -> tuple[str, int, Grid] | None:
        """(layout, prefix tokens, grid) of what this call put out, None when it has no grid or several would do."""
        if len(call.shape) == 4:
            return self._map(call)
        # One number for each token is a pooled vector or a weighting.
        if len(call.shape) == 3 and call.shape[2] > 1:
            return self._tokens(call)
        return None

    def _map(self, call: TracedCall) -> tuple[str, int, Grid] | None:
        _, a, b, c = call.shape
        first = 0 if call.channels == "last" else self._trust((b, c))
        last = 0 if call.channels == "first" else self._trust((a, b))
        if first > last or (first and first == last and not self.channels_last):
            return "NCHW", 0, (b, c)
        return ("NHWC", 0, (a, b)) if last > first else None

    def _trust(self, grid: Grid) -> int:
        if not self.whole:
            return int(is_scaled(grid, self.picture))
        return 2 if grid in self.seen else int(grid in self.shown)

    def _tokens(self, call: TracedCall) -> tuple[str, int, Grid] | None:
        found = self._count(call.shape[1])
        if found is None:
            return None
        trust, prefix, grid = found
        # Tokens may also be the last axis, behind the channels.
        other = None if call.shape in self.rows else self._count(call.shape[2])
        return None if other is not None and other[0] > trust else ("NLC", prefix, grid)

    def _count(self, length: int) -> tuple[int, int, Grid] | None:
        """(trust, prefix tokens, grid) of so many tokens."""
        for grid in reversed(self.seen):
            if grid != (1, 1) and length == grid[0] * grid[1]:
                return 4, 0, grid
        # Rounding up and down may give two grids of as many cells: then neither.
        fitting = _fitting(self.derived, self.picture, length)
        if fitting:
            return (3, 0, fitting[0]) if len(fitting) == 1 else None
        for grid in reversed(self.whole or self.cut):
            extra = length - grid[0] * grid[1]
            if grid != (1, 1) and 0 < extra <= MOST_PREFIX_TOKENS:
                return 2, extra, grid
        for prefix in _USUAL_PREFIXES[1:]:
            fitting = _fitting(self.derived, self.picture, length - prefix)
            if fitting:
                return (1, prefix, fitting[0]) if len(fitting) == 1 else None
        return None


def _fitting(grids: frozenset[Grid], picture: Grid, cells: int) -> list[Grid]:
    """Those of so many cells, of more than one, that have the picture's proportions."""
    return [grid for grid in grids if cells == grid[0] * grid[1] > 1 and is_scaled(grid, picture)]


def is_scaled(grid: Grid, picture: Grid) -> bool:
    """Whether one stride of at least 1 explains both sides, give or take a cell for padding and rounding."""
    strides = [(side / (cells + 1), side / max(cells - 1, 0.5)) for cells, side in zip(grid, picture, strict=True)]
    lowest = max(low for low, _ in strides)
    highest = min(high for _, high in strides)
    return lowest < highest and all(cells <= side + 2 for cells, side in zip(grid, picture, strict=True))
