"""What torch 2.15 and safetensors say when they refuse a file, in their own words.

An owner has seen the sentence and looks for it. tests/readers/test_torch_versions.py provokes each of them on the
installed version and compares; earlier versions may word them otherwise.
"""

from __future__ import annotations

# caffe2/serialize/inline_container.cc, when the end of the archive is not there.
NO_DIRECTORY = "PytorchStreamReader failed reading zip archive: failed finding central directory."
NO_HEADER = "PytorchStreamReader failed reading zip archive: invalid header or archive is corrupted."
# The same search, over the beginning of a small file: the operating system's words.
NO_SEEK = "[Errno 22] Invalid argument"
NOT_COVERED = "Error while deserializing header: incomplete metadata, file not fully covered"
# What it says of a header before it looks at the length of the file; behind it comes what.
BAD_HEADER = "Error while deserializing header"
# Python's pickle, on a stream that ends too early.
BROKE_OFF = "pickle data was truncated"
NOT_LEGACY = "Invalid magic number; corrupt file?"
SCRIPT = "Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``."
TAR = "Cannot use ``weights_only=True`` with files saved in the legacy .tar format."
# torch 1.4 and 1.5, which could not read the archives of 1.6 (torch/serialization.py of 1.5; 2.15 has it still).
TOO_NEW_ARCHIVE = "is a zip archive (did you mean to use torch.jit.load()?)"
_TO_CPU = (
    "If you are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') "
    "to map your storages to the CPU."
)
_BACKENDS = frozenset({"cuda", "xpu", "mtia"})
_UNREGISTERED = frozenset({"hpu", "privateuseone"})


def invalid_offset(name: str) -> str:
    """safetensors, of the first tensor that does not begin where the one before it ends. name: "" where which of
    several that is was left to chance."""
    return f"{BAD_HEADER}: invalid offset for tensor" + (f" `{name}`" if name else "")


def unexpected_end(nbytes: int) -> str:
    """torch/csrc/serialization.cpp, when a storage of a legacy file is cut."""
    return f"unexpected EOF, expected {nbytes} more bytes. The file might be corrupted."


def wrong_record(declared: int, held: int) -> str:
    """An archive's member of another size; the sentence goes on with the element type."""
    return f"record size ({held} bytes) does not match expected size ({declared} bytes"


def wrong_storage(declared: int, held: int) -> str:
    """A storage of a legacy file with another element count."""
    return f"storage has wrong byte size: expected {held} got {declared}"


def missing_record(key: str) -> str:
    """A member that is not in the archive."""
    return f"PytorchStreamReader failed locating file data/{key}: file not found."


def unsupported_global(module: str, name: str) -> str:
    """torch/_weights_only_unpickler.py; it leaves out the module of Python's builtins."""
    full = name if module == "builtins" else f"{module}.{name}"
    return f"Unsupported global: GLOBAL {full} was not an allowed global by default."


def blocked_global(module: str, name: str) -> str:
    """The same for modules that cannot even be allowed."""
    return f"Trying to load unsupported GLOBAL {module}.{name} whose module {module} is blocked."


def unsupported_operand(opcode: int) -> str:
    """An opcode that torch's restricted unpickler does not have, as a decimal number."""
    return f"Unsupported operand {opcode}"


def no_module(module: str) -> str:
    """Python's import of a module that is not installed, or whose parent is not."""
    return f"No module named '{module.partition('.')[0]}'"


def no_attribute(module: str, name: str) -> str:
    """Python's pickle, for a class that the module does not have (the sentence goes on)."""
    return f"Can't get attribute '{name}' on <module '{module}'"


def no_device(device: str) -> str:
    """torch/serialization.py, `default_restore_location`, on a machine without that device."""
    kind = device.partition(":")[0]
    if kind in _BACKENDS:
        return (
            f"Attempting to deserialize object on a {kind.upper()} device but torch.{kind}.is_available() is False. "
            f"{_TO_CPU}"
        )
    if kind in _UNREGISTERED:
        return f"The {kind.upper()} device module is not registered. {_TO_CPU}"
    if kind == "mps":
        return f"torch.UntypedStorage(): Storage device not recognized: {kind}"
    return f"don't know how to restore data location of torch.storage.UntypedStorage (tagged with {device})"


def too_few_devices(device: str, count: int) -> str:
    """The same on a machine with fewer devices of that kind than the file's number asks for."""
    kind, _, number = device.partition(":")
    return (
        f"Attempting to deserialize object on {kind.upper()} device {number} but torch.{kind}.device_count() is "
        f"{count}. Please use torch.load with map_location to map your storages to an existing device."
    )
