"""What a parametric family is: a template of names and shapes over symbols that are solved from a file.

A template is written once, in the order of the model's own state dict, and read in both directions: `solve` finds the
symbols that a file shows, `expand` writes the names and shapes that follow from them. One file per family.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass

from inspector.architectures.types import Given, OptionValue

Size = str | int
Settings = Mapping[str, OptionValue]


@dataclass(frozen=True, slots=True)
class Row:
    """One tensor. name: "encoder.layer.{i}.output.dense.weight", with indices, or sums of them, in braces.

    A leading "@" stands for the family's base ("bert."), which files of the bare model do not have.
    shape: expressions over symbols, see `expressions`; () for a scalar.
    """

    name: str
    shape: tuple[Size, ...]
    dtype: str = "float32"
    is_buffer: bool = False


@dataclass(frozen=True, slots=True)
class Repeat:
    """Rows once per value of an index, from `start` on. count: a number, or a symbol that is solved ("blocks[s]")."""

    index: str
    count: Size
    rows: tuple[Part, ...]
    start: int = 0


@dataclass(frozen=True, slots=True)
class Optional:
    """Rows that are there as a whole or not at all. flag: a symbol, 1 as soon as one of its weights is seen."""

    flag: str
    rows: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class When:
    """Rows that are there under a condition on symbols and indices: "b == 0 and width[s] != width[s-1]"."""

    condition: str
    rows: tuple[Part, ...]


Part = Row | Repeat | Optional | When


@dataclass(frozen=True, slots=True)
class Assume:
    """An argument that the shapes do not determine, and that a forward pass depends on.

    value: what is usual; a function of the solved settings, or a constant. why: for people ("BERT's heads are 64
    wide"). stated: keys of config.json or of the file's own metadata that confirm it, the last part of their name.
    when: the argument exists only under this condition on the settings.
    fits: whether a stated value is possible for these settings (heads have to divide the width).
    """

    name: str
    value: OptionValue | Callable[[Settings], OptionValue]
    why: str
    _: KW_ONLY
    stated: tuple[str, ...] = ()
    when: Callable[[Settings], bool] | None = None
    fits: Callable[[Settings, OptionValue], bool] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """How the pictures of a family are prepared where its own repository trains it, at the family's own size.

    mean, std: of three channels, after scaling to 0..1. source: the repository, and the file in it that says so.
    classes: of the data set that it is trained on, 0 where the family serves any.
    """

    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    source: str
    interpolation: str = "bilinear"
    classes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Family:
    """One family.

    library, name: "transformers", "bert": the label is "transformers/bert?layers=12&hidden=768".
    title: for people ("BERT"). summary: what its settings amount to, as a format string ("{layers} layers").
    anchors: row names, or forms of them, that every file of the family has; asked before anything else.
    base: the prefix that "@" stands for, with its dot; "" where rows have none.
    stated: what config.json beside such files has as "model_type" or in "architectures", in lower case.
    task: as in the index; "classification" means one picture in, one tensor of logits out.
    image_size: the picture's side under some settings, None where nothing follows from the file.
    preparation: of those pictures, None where nobody has published one.
    inputs: what a forward pass takes under some settings, where that is not one picture alone.
    builder: "module:function" that builds it from (settings), "" where nothing here can.
    source: where names and order come from.
    notes: what the names imply and no shape shows, each a clause ("wq and wk are Meta's names: ...").
    form: from the settings to what is said behind the title ("under the names of BertForMaskedLM"), "" for nothing.
    """

    library: str
    name: str
    title: str
    summary: str
    rows: tuple[Part, ...]
    anchors: tuple[str, ...]
    source: str
    base: str = ""
    assumes: tuple[Assume, ...] = ()
    stated: tuple[str, ...] = ()
    task: str = "other"
    image_size: Callable[[Settings], int] | None = None
    preparation: Preparation | None = None
    inputs: Callable[[Settings], tuple[Given, ...]] | None = None
    builder: str = ""
    notes: tuple[str, ...] = ()
    form: Callable[[Settings], str] | None = None

    @property
    def label(self) -> str:
        """ "transformers/bert"."""
        return f"{self.library}/{self.name}"
