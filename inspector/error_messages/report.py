"""What a pasted error message was understood as."""

from __future__ import annotations

from dataclasses import dataclass, field

from inspector.checkpoint.types import Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLists:
    """What one `load_state_dict` error lists; names as the message spells them.

    model: the class that was loaded into ("ResNet"), "" when the text does not say. missing: the model has them, the
    state dict has not. unexpected: the other way round. reshaped: (name, shape in the file, shape in the model).
    cut: which of the lists break off ("missing", "unexpected", "mismatches"): by dots, the end of the text, our limits.
    unsized: names of another shape, where the shapes are cut off. pasted: which of the lists stand in the text; one
    that does not says nothing, for messages are pasted in halves. headed: the words before the lists stand there.
    """

    model: str = ""
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    reshaped: tuple[tuple[str, Shape, Shape], ...] = ()
    cut: tuple[str, ...] = ()
    unsized: tuple[str, ...] = ()
    pasted: tuple[str, ...] = field(default=(), compare=False)
    headed: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Cause:
    """One of several causes that fit. kind: as of an error; says: what it would be; sign: by what one can tell."""

    kind: str
    says: str
    sign: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Renaming:
    """One rule that explains names of both lists. says: 'drop the segment "module"'; count: how many names."""

    rule: str
    says: str
    count: int
    examples: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyEvidence:
    """What the lists show.

    renamings: rules that turn unexpected names into missing ones, by names alone. explained: how many unexpected
    names they place. left_missing, left_unexpected: what no rule places, batch counters left out.
    model_is, file_is: torchvision builders whose names agree with the lists; () when none does or too many do.
    """

    lists: KeyLists
    renamings: tuple[Renaming, ...]
    explained: int
    left_missing: tuple[str, ...]
    left_unexpected: tuple[str, ...]
    model_is: tuple[str, ...] = ()
    file_is: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PastedError:
    """One error in the text.

    kind: stable and kebab-case. quote: the words it was recognised by, shortened. says: what it means, one sentence.
    why: how it comes about. steps: what to do, in order. patch: Python lines for the loading code, "" when none can
    be said. keys: for lists of keys. causes: those that fit when the pasted part does not tell one from the other,
    the likelier first, () when it does. asks: the part that would tell the cause is not there.
    ours: False for files and errors of another framework. line: of the pasted text, for a fault of pasted code, whose
    `patch` is the corrected line; 0 for messages.
    """

    kind: str
    quote: str
    says: str
    why: str
    steps: tuple[str, ...]
    patch: str = ""
    keys: KeyEvidence | None = None
    causes: tuple[Cause, ...] = ()
    asks: bool = False
    ours: bool = True
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PastedReport:
    """Everything recognised in a text, in its order.

    says: the answer in one sentence. file: what the file beside it adds. code: lines that load that file into the
    model of the error, "" when they cannot be said. skipped: what was not read.
    """

    says: str
    errors: tuple[PastedError, ...]
    file: tuple[str, ...] = ()
    code: str = ""
    skipped: tuple[str, ...] = ()
