"""What torch.load and safetensors say to a file that is none of theirs, so that who searches for it finds it here.

Only what follows from the first bytes for certain. Sources: CPython's Modules/_pickle.c, safetensors' lib.rs and
torch/_weights_only_unpickler.py; tests/readers/test_foreign.py provokes each on the installed versions.
"""

from __future__ import annotations

from inspector.readers.checks.torch_words import TAR
from inspector.readers.unpickle.machine.operands import TORCHS

# Opcodes without an argument that put something on the stack: they let a reader go on to the next byte.
_PUSHES = frozenset(b"N)]}(\x88\x89\x8f")
# Every opcode of protocols 0 to 5, as pickletools lists them.
_OPCODES = frozenset(
    b"(.0123FIJKLMNPQRSTUVXabcdeghijloprqstu)}]BC\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f"
    + bytes(range(0x90, 0x99))
    + b"G"
)
# So many zero bytes are an empty tar to Python, and torch looks for its oldest format first.
_TAR_BLOCK = 512
_HEADER_NBYTES = 100_000_000


def torch_says(head: bytes) -> tuple[str, ...]:
    """What torch.load answers, by its first bytes: with weights_only=True (the default since 2.6), and without.

    () where the first bytes do not settle it.
    """
    if not head:
        return "EOFError", "Ran out of input"
    if len(head) >= _TAR_BLOCK and not any(head[:_TAR_BLOCK]):
        return TAR, "filename 'storages' not found"
    said: list[str] = []
    first = next((byte for byte in head if byte not in _PUSHES), None)
    if first is not None and first not in TORCHS:
        said.append(f"Unsupported operand {first}")
    if first is not None and first not in _OPCODES:
        shown = chr(first) if 0x20 <= first <= 0x7E and first not in b"'\\" else f"\\x{first:02x}"
        said.append(f"invalid load key, '{shown}'.")
    return tuple(said)


def safetensors_says(head: bytes, nbytes: int) -> tuple[str, ...]:
    """What safetensors answers, as the versions since 0.6 and those before it word it. nbytes: of the file."""
    if nbytes < 8:
        return "header too small", "HeaderTooSmall"
    n = int.from_bytes(head[:8], "little")
    if n > _HEADER_NBYTES:
        return "header too large", "HeaderTooLarge"
    if n + 8 > nbytes:
        return "invalid header length", "InvalidHeaderLength"
    if 8 + n > len(head):
        return ()
    try:
        head[8 : 8 + n].decode("utf-8")
    except UnicodeDecodeError:
        return "invalid UTF-8 in header", "InvalidHeader"
    return "invalid JSON in header", "InvalidHeaderDeserialization"


def messages(head: bytes, nbytes: int, name: str) -> str:
    """A sentence with what their owner has probably read, "" where that is not known."""
    if name.lower().endswith(".safetensors"):
        said, who = safetensors_says(head, nbytes), "safetensors says"
    else:
        said, who = torch_says(head), "torch.load says"
    quoted = [f"“{words}”" for words in said]
    return f" ({who} {' or '.join(quoted)} to it.)" if quoted else ""
