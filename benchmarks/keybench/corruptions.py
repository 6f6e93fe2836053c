"""All corruptions, in the order in which they are reported. A new one is one line in one of the lists."""

from __future__ import annotations

from benchmarks.keybench.corruptions_names import NAMES
from benchmarks.keybench.corruptions_tensors import TENSORS
from benchmarks.keybench.corruptions_words import WORDS
from benchmarks.keybench.damage import Corruption

CORRUPTIONS: tuple[Corruption, ...] = (*NAMES, *TENSORS, *WORDS)
