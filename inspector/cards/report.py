"""The facts of a card: only what the file shows; what it does not is listed, not made up."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from inspector.findings import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFile:
    """One file of the checkpoint. sha256: hex digits, "" where it was not read."""

    name: str
    nbytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownModel:
    """What it was recognised as. label: "torchvision/resnet18?num_classes=4". says: the answer with its evidence.

    official: name of the published file that this is byte for byte, "" for others. classes: outputs, None where there
    are none to count. task: as the hub calls it, "" where the architecture does not decide it. settings: names and
    values.
    """

    library: str
    name: str
    label: str
    says: str
    official: str = ""
    classes: int | None = None
    task: str = ""
    settings: tuple[tuple[str, str], ...] = ()


class SignedAs(StrEnum):
    """What became of one entry of a signature's list, or of one of our files."""

    EQUAL = "equal"
    DIFFERS = "differs"
    UNLISTED = "not in the signature"
    ABSENT = "not here"
    NOT_COMPARED = "not compared"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureReport:
    """A signature of OpenSSF model signing, compared with our digests by its list. Its own signature is not checked.

    name: of the file. entries: (file, what became of it). refusal: why its list could not be read, "" where it was.
    """

    name: str
    entries: tuple[tuple[str, SignedAs], ...] = ()
    refusal: str = ""

    @property
    def agrees(self) -> bool:
        """Whether everything listed is here and equal, and everything here is listed."""
        return not self.refusal and bool(self.entries) and all(how is SignedAs.EQUAL for _, how in self.entries)

    @property
    def says(self) -> str:
        """One sentence; never that the model is signed."""
        if self.refusal:
            return f"{self.name} was not compared: {self.refusal}."
        if self.agrees:
            return f"The digests in {self.name} are those of the files; whose signature it is was not checked."
        count = sum(how is not SignedAs.EQUAL for _, how in self.entries)
        return f"{self.name} does not list what is here: {count:,} of {len(self.entries):,} files do not agree."


@dataclass(frozen=True, slots=True, kw_only=True)
class CardReport:
    """One checkpoint. name: without its suffix. producer: library that wrote it, "" where unknown. parameters,
    buffers: elements of the likeliest weights. dtypes: (type, elements). metadata: what the file says of itself.
    model: None where nothing was recognised. part: what larger thing it is only a part of. findings: of the headers,
    worst first. unknown: what a card asks for and no checkpoint tells. signature: None where none lies beside it.
    near: what architecture it is near and is not, "" where there is none. skipped: what was not read, and why.
    """

    name: str
    format: str
    producer: str
    files: tuple[CardFile, ...]
    tensors: int
    parameters: int
    buffers: int
    dtypes: tuple[tuple[str, int], ...]
    metadata: tuple[tuple[str, str], ...]
    model: KnownModel | None
    part: str
    findings: tuple[Finding, ...]
    unknown: tuple[str, ...]
    signature: SignatureReport | None = None
    near: str = ""
    skipped: tuple[str, ...] = ()
