"""All corruptions, in the order in which they are reported. A new one is one line in one of the lists.

The first lists were looked at while the engine was made. Of what was added later one half, drawn by chance from the
sorted names, is held out: its figures are reported apart, on all networks.
"""

from __future__ import annotations

import random
from functools import lru_cache

from benchmarks.keybench.corruptions_frameworks import FRAMEWORK_KINDS
from benchmarks.keybench.corruptions_habits import HABITS
from benchmarks.keybench.corruptions_names import NAMES
from benchmarks.keybench.corruptions_spelling import SPELLING
from benchmarks.keybench.corruptions_tensors import TENSORS
from benchmarks.keybench.corruptions_training import TRAINING
from benchmarks.keybench.corruptions_words import WORDS
from benchmarks.keybench.damage import Corruption

ADDED: tuple[Corruption, ...] = (*SPELLING, *TRAINING, *HABITS, *FRAMEWORK_KINDS)
CORRUPTIONS: tuple[Corruption, ...] = (*NAMES, *TENSORS, *WORDS, *ADDED)


@lru_cache
def held_kinds() -> frozenset[str]:
    """Names of the corruptions that are held out."""
    names = sorted(corruption.name for corruption in ADDED)
    random.Random("keybench: kinds").shuffle(names)
    return frozenset(names[: len(names) // 2])
