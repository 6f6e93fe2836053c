"""Messages about the file itself: what it is, whether it is whole, and what its pickle would run."""

from __future__ import annotations

from inspector.pasted.message import Message

_NAME = r"[A-Za-z_][\w.]{0,200}"
_LOAD = 'torch.load(path, map_location="cpu", weights_only=True)\n'

MESSAGES: tuple[Message, ...] = (
    Message(
        kind="unsupported-global",
        pattern=rf"Unsupported global: GLOBAL (?P<name>{_NAME}) was not an allowed global by default",
        says="The file's pickle names {name}, which torch.load does not call with weights_only=True.",
        why="Since torch 2.6 weights_only=True is the default; it builds tensors and plain containers alone. The file "
        "holds an object of another class: settings, a whole model, numpy numbers.",
        steps=(
            "Open the file here first: every global in it is listed, and none is run.",
            "If you trust this one name and its library, allow it for this load.",
            "Better for good: save model.state_dict() alone, or take the weights out with the repair.",
            "weights_only=False runs whatever the file says; only for files whose maker you trust.",
        ),
        patch="# Runs {name} when the file is read: only if you trust it and the file.\n"
        "import importlib\n\n"
        'module, _, name = {name!r}.rpartition(".")\n'
        "allowed = getattr(importlib.import_module(module), name)\n"
        "with torch.serialization.safe_globals([allowed]):\n"
        '    checkpoint = torch.load(path, map_location="cpu", weights_only=True)\n',
        hides=("weights-only",),
        example="WeightsUnpickler error: Unsupported global: GLOBAL numpy.core.multiarray.scalar was not an allowed "
        "global by default. Please use `torch.serialization.add_safe_globals([scalar])`",
    ),
    Message(
        kind="blocked-global",
        pattern=rf"Trying to load unsupported GLOBAL (?P<name>{_NAME}) whose module (?P<module>{_NAME}) is blocked",
        says="The file's pickle would call {name}; torch refuses everything of {module}, and it cannot be allowed.",
        why="No checkpoint needs it: such a name runs commands or reads files.",
        steps=("Do not load this file with weights_only=False.", "Open it here: what it would have run is shown."),
        hides=("weights-only",),
        example="Trying to load unsupported GLOBAL posix.system whose module posix is blocked.",
    ),
    Message(
        kind="unsupported-operand",
        pattern=r"Unsupported operand (?P<operand>[0-9]{1,4})\b",
        says="The pickle uses opcode {operand}, which torch's restricted reader does not know.",
        why="It was written with another pickle protocol or by another program than torch.save, or it is no pickle at "
        "all: a zip, a text or an HDF5 file read as one.",
        steps=(
            "Open the file here: it says what the file is.",
            "If it is a checkpoint, save it again with torch.save and the default protocol 2.",
        ),
        hides=("weights-only",),
        example="Weights only load failed. ... WeightsUnpickler error: Unsupported operand 149",
    ),
    Message(
        kind="unsupported-class",
        pattern=r"Unsupported class (?P<name>[\w.]{1,200})",
        says="The file's pickle would make a {name}, which weights_only=True does not.",
        why="Only tensors and plain containers are made in that mode.",
        steps=("Open the file here: its globals are listed.", "Save model.state_dict() alone."),
        hides=("weights-only",),
        example="WeightsUnpickler error: Unsupported class numpy.dtype",
    ),
    Message(
        kind="weights-only",
        pattern=r"Weights only load failed",
        says="torch.load refused the file in its restricted mode, weights_only=True.",
        why="Since torch 2.6 that is the default. The file holds more than tensors and plain "
        "containers, or is none of torch's.",
        steps=(
            'The line after it names the reason ("Unsupported global", "Unsupported operand"): paste it too.',
            "Open the file here: every global in it is listed, and none is run.",
        ),
        example="_pickle.UnpicklingError: Weights only load failed. This file can still be loaded, "
        "to do so you have two options",
    ),
    Message(
        kind="torchscript-weights-only",
        pattern=r"Cannot use ``weights_only=True`` with TorchScript archives",
        says="The file is a TorchScript program, not a file of torch.save.",
        why="It was written by torch.jit.save; torch.load opens it only by running torch.jit.load.",
        steps=(
            "Open it here to take its weights out without running it.",
            "Or load it as what it is, if you trust it.",
        ),
        patch='model = torch.jit.load(path, map_location="cpu")\n',
        hides=("weights-only",),
        example="Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``.",
    ),
    Message(
        kind="tar-weights-only",
        pattern=r"Cannot use ``weights_only=True`` with files saved in the legacy \.tar format",
        says="The file is in torch's tar format of before 0.1.10, which weights_only=True does not read.",
        why="torch wrote it in 2016 and 2017.",
        steps=("Open it here and export it: the reader knows that format.",),
        hides=("weights-only",),
        example="Cannot use ``weights_only=True`` with files saved in the legacy .tar format.",
    ),
    Message(
        kind="newer-archive",
        pattern=r"is a zip archive \(did you mean to use torch\.jit\.load\(\)\?\)",
        says="Your torch is older than 1.6 and the file is in the zip format that 1.6 introduced, or "
        "it is TorchScript.",
        why="torch 1.4 and 1.5 take every zip for TorchScript.",
        steps=(
            "Update torch to 1.6 or newer.",
            "Or export the file here as .pth for torch before 1.6; torch.jit.load helps only if it is TorchScript.",
        ),
        patch="# On a machine with torch 1.6 or newer:\n"
        + f"checkpoint = {_LOAD}"
        + "torch.save(checkpoint, new_path, _use_new_zipfile_serialization=False)\n",
        example="RuntimeError: net.pth is a zip archive (did you mean to use torch.jit.load()?)",
    ),
    Message(
        kind="not-a-pickle",
        pattern=r"invalid load key, '(?P<key>[^']{1,8}|\\x[0-9a-f]{2}|')'",
        says="The file begins with {key}, so it is no pickle.",
        why="Often it is a stand-in for the file: 'v' is a Git LFS pointer, '<' a web page, '{{' JSON, '\\x00' a "
        "truncated download or a safetensors file, '\\x1f' gzip, '\\x89' HDF5 or a picture.",
        steps=(
            "Look at its size and first line; a pointer has some 130 bytes.",
            "For 'v': git lfs pull. For '<': download it again, signed in and by the file's own link.",
            "Open it here: it names what the file is.",
        ),
        hides=("weights-only",),
        example="_pickle.UnpicklingError: invalid load key, 'v'.",
    ),
    Message(
        kind="bad-magic",
        pattern=r"Invalid magic number; corrupt file\?",
        says="The file is a pickle, but not one that torch.save wrote.",
        why="pickle.dump, joblib or another library wrote it, or its beginning is damaged.",
        steps=("Open it here: it says what wrote it.", "Load it with the library that wrote it, if you trust it."),
        example="RuntimeError: Invalid magic number; corrupt file?",
    ),
    Message(
        kind="no-central-directory",
        pattern=r"PytorchStreamReader failed reading zip archive: (?P<what>[^.\n]{1,120})",
        says="The zip archive cannot be read: {what}.",
        why="A zip's directory stands at its end, so a download or copy that stopped early has none. "
        "Sometimes the file is no archive at all.",
        steps=(
            "Compare its size with the original's and fetch it again.",
            "Open it here: it says at which byte it ends and which tensors are whole; --salvage writes those.",
        ),
        example="PytorchStreamReader failed reading zip archive: failed finding central directory",
    ),
    Message(
        kind="missing-record",
        pattern=r"PytorchStreamReader failed locating file (?P<name>\S{1,200}): file not found",
        says="The archive has no member {name}.",
        why="It is no file of torch.save (another zip), was repacked, or a member was lost.",
        steps=("Open it here: members and missing tensors are listed.",),
        example="PytorchStreamReader failed locating file data.pkl: file not found",
    ),
    Message(
        kind="foreign-archive",
        pattern=r"Expected hasRecord\(\"version\"\) to be true, but got false",
        says="The file is a zip archive, but not one of torch.save: its version record is missing.",
        why="A folder or a .pth was zipped, the archive was repacked, or another program wrote it.",
        steps=("Open it here: it says what the archive holds.", "If a .pth lies inside, unzip it and load that."),
        example='RuntimeError: Expected hasRecord("version") to be true, but got false.',
    ),
    Message(
        kind="cut-file",
        pattern=r"unexpected EOF, expected (?P<n>[0-9]{1,20}) more bytes",
        says="The file ends {n} bytes too early.",
        why="A download, a copy or the saving itself stopped, often because the disk was full.",
        steps=("Fetch it again and compare sizes.", "Open it here: whole tensors can be salvaged."),
        example="RuntimeError: unexpected EOF, expected 4 more bytes. The file might be corrupted.",
    ),
    Message(
        kind="cut-pickle",
        pattern=r"(?:EOFError: )?Ran out of input|pickle data was truncated",
        says="The file is empty or its pickle breaks off.",
        why="Saving or copying stopped; or the file was read once already and not rewound; or it is "
        "being written right now.",
        steps=("Look at its size.", "Fetch it again, or use file.seek(0) before the second torch.load of one handle."),
        example="EOFError: Ran out of input",
    ),
    Message(
        kind="storage-size",
        pattern=r"storage has wrong (?:byte )?size: expected (?P<want>-?[0-9]{1,20}) got (?P<got>-?[0-9]{1,20})",
        says="A tensor's numbers are not as many as the file announces: {want} expected, {got} there.",
        why="The file is damaged, or another process wrote to it while it was saved.",
        steps=("Fetch it again; in distributed training let one process save.", "Open it here to see which tensor."),
        example="RuntimeError: storage has wrong size: expected -4934180888905747925 got 64",
    ),
    Message(
        kind="safetensors-header-too-large",
        pattern=r"(?:HeaderTooLarge|header too large)",
        says="The file is no safetensors file, or its first bytes are damaged.",
        why="The first eight bytes are read as the header's length and give an impossible one; a "
        ".pth, a Git LFS pointer or a web page renamed to .safetensors do so.",
        steps=("Open it here: it names what the file is.", "Fetch it again, or load it with what it is."),
        example="safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge",
    ),
    Message(
        kind="safetensors-header",
        pattern=r"(?:InvalidHeaderDeserialization|InvalidHeaderLength|InvalidHeaderStart|HeaderTooSmall|"
        r"invalid JSON in header|header too small|invalid header length|invalid UTF-8 in header|"
        r"invalid start character in header)",
        says="The header of the safetensors file cannot be read.",
        why="The file was cut or damaged, or another program wrote a header that is not as the format says.",
        steps=("Fetch it again and compare sizes.", "Open it here: the place in the header is named."),
        example="safetensors_rust.SafetensorError: Error while deserializing header: InvalidHeaderDeserialization",
    ),
    Message(
        kind="safetensors-incomplete",
        pattern=r"(?:MetadataIncompleteBuffer|incomplete metadata, file not fully covered)",
        says="The safetensors file is shorter or longer than its header says.",
        why="A download or copy stopped early.",
        steps=("Fetch it again and compare sizes.", "Open it here: whole tensors can be salvaged."),
        example="safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer",
    ),
    Message(
        kind="shared-memory",
        pattern=r"Some tensors share memory, this will lead to duplicate memory on disk",
        says="save_file refuses tensors that share memory, such as tied embeddings.",
        why="The safetensors format has no way to say that two names are one tensor.",
        steps=(
            "save_model keeps one of the names and load_model ties them again.",
            "Or clone one of them, which stores it twice; our export declares ties in the metadata.",
        ),
        patch="from safetensors.torch import load_model, save_model\n\nsave_model(model, "
        "path)\nload_model(model, path)\n",
        example="RuntimeError: Some tensors share memory, this will lead to duplicate memory on disk "
        "and potential differences when loading them again",
    ),
    Message(
        kind="missing-class",
        pattern=r"Can't get attribute '(?P<name>[\w.]{1,200})' on <module '(?P<module>[\w.]{1,200})'",
        says="The file is a whole pickled object; it names a class {name} in {module} that is not there now.",
        why="torch.save(model) stores where the class was, not the class. In a script that place is __main__.",
        steps=(
            "Open it here: weights and module tree are read without the class, and exported as a state dict.",
            "Or define or import {name} under {module} before torch.load, if you trust the file.",
            "Save model.state_dict() next time.",
        ),
        example="AttributeError: Can't get attribute 'Net' on <module '__main__' from 'a.py'>",
    ),
    Message(
        kind="missing-module",
        pattern=r"No module named '(?P<name>[\w.]{1,200})'",
        says="A module {name} is needed and cannot be imported here.",
        why="If this came out of torch.load, the file is a pickled object that names a class in {name}: the code of "
        "whoever saved it, or a library that is not installed.",
        steps=(
            "Open the file here: weights are read without that module, and exported as a state dict.",
            "Or run from the repository that has {name}, or install the library it belongs to.",
        ),
        example="ModuleNotFoundError: No module named 'models'",
    ),
)
