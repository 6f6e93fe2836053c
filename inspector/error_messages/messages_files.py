"""Messages about the file itself: what it is, and whether it is whole."""

from __future__ import annotations

from inspector.error_messages.message import Message, Q
from inspector.error_messages.report import Cause

_LOAD = 'torch.load(path, map_location="cpu", weights_only=True)\n'
_FETCH = "Compare its size with the original's and fetch it again."
_SALVAGE = "Open it here: it says at which byte it ends and which tensors are whole; --salvage writes those."

MESSAGES: tuple[Message, ...] = (
    Message(
        kind="newer-archive",
        patterns=(
            r"is a zip archive \(did you mean to use torch\.jit\.load",
            r"is a zip archive \(?did you mean",
            r"did you mean to use torch\.jit\.load",
        ),
        says="Your torch is older than 1.6 and the file is in the zip format that 1.6 introduced, or "
        "it is TorchScript.",
        why="torch 1.4 and 1.5 take every zip for TorchScript.",
        steps=(
            "Update torch to 1.6 or newer.",
            "Or convert the file here to .pth for torch before 1.6; torch.jit.load helps only if it is TorchScript.",
        ),
        patch="# On a machine with torch 1.6 or newer:\n"
        + f"checkpoint = {_LOAD}"
        + "torch.save(checkpoint, new_path, _use_new_zipfile_serialization=False)\n",
        example="RuntimeError: net.pth is a zip archive (did you mean to use torch.jit.load()?)",
    ),
    Message(
        kind="not-a-pickle",
        patterns=(rf"nvalid load key, {Q}(?P<key>\\x[0-9a-f]{{2}}|[^\s'\"`*]|')(?![\w])", r"nvalid load key"),
        says="The file begins with {key}, so it is no pickle.",
        brief="The file begins with a byte that no pickle begins with.",
        why="Often it is a stand-in for the file: 'v' is a Git LFS pointer, '<' a web page, '{{' JSON, '\\x00' a "
        "truncated download or a safetensors file, '\\x1f' gzip, 'H' HDF5, '\\xff' JPEG, another letter a text.",
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
        patterns=(r"nvalid magic number; corrupt file", r"nvalid magic number"),
        says="The file is a pickle, but not one that torch.save wrote.",
        why="pickle.dump, joblib or another library wrote it, or its beginning is damaged.",
        steps=("Open it here: it says what wrote it.", "Load it with the library that wrote it, if you trust it."),
        example="RuntimeError: Invalid magic number; corrupt file?",
    ),
    Message(
        kind="torch-file-in-pickle",
        patterns=(
            r"A load persistent id instruction was encountered",
            r"no persistent_load function was specified",
            r"persistent id instruction",
        ),
        says="A pickle names something that lies beside it, and its reader knows of no such thing.",
        why="torch.save puts the tensors' numbers beside the pickle, where pickle.load does not look. A picture (PNG) "
        "or a text with P in front makes torch.load(weights_only=False) say the same.",
        steps=(
            "Load the file with torch.load.",
            "If you unpacked it: take the .pth or .pt itself, or zip the whole folder again without compression.",
        ),
        patch=f"checkpoint = {_LOAD}",
        causes=(
            Cause(
                "torch-file-in-pickle",
                "pickle.load was given a file of torch.save, or the data.pkl out of one.",
                "the code calls pickle.load",
            ),
            Cause(
                "not-a-pickle",
                "torch.load was given another kind of file, such as a PNG picture.",
                "the code calls torch.load with weights_only=False",
            ),
        ),
        example="_pickle.UnpicklingError: A load persistent id instruction was encountered,\nbut no persistent_load "
        "function was specified.",
    ),
    Message(
        kind="no-central-directory",
        patterns=(
            r"PytorchStreamReader failed reading zip archive: (?P<what>failed finding central directory|"
            r"(?:invalid|not a)[^.,?\n]{1,60}|[^.,?\n]{1,60})",
            r"failed finding central directory",
            r"failed reading zip archive",
        ),
        says="The zip archive cannot be read: {what}.",
        brief="The zip archive cannot be read.",
        why="A zip's directory stands at its end, so a download or copy that stopped early has none. "
        "Sometimes the file is no archive at all.",
        steps=(_FETCH, _SALVAGE),
        hides=("archive-cut", "archive-damaged"),
        example="PytorchStreamReader failed reading zip archive: failed finding central directory",
    ),
    Message(
        kind="unreadable-record",
        patterns=(
            r"PytorchStreamReader failed reading file (?P<name>[\w./-]{1,200}): ?\w",
            r"failed reading file data",
        ),
        says="A member of the archive, {name}, cannot be read.",
        brief="A member of the archive cannot be read.",
        why="The directory at its end is there, and what it points to is damaged: a broken copy, a bad disk, or a "
        "network drive that failed.",
        steps=(_FETCH, "Open it here: damaged members are named, and --salvage writes what is whole."),
        hides=("archive-cut", "archive-damaged"),
        example="RuntimeError: PytorchStreamReader failed reading file data/36: file read failed",
    ),
    Message(
        kind="no-torchscript",
        patterns=(r"failed locating file constants\.pkl", r"locating file constants\.pkl"),
        says="torch.jit.load was given a file of torch.save.",
        why="constants.pkl is in TorchScript programs alone; this file holds a state dict or a pickled model.",
        steps=(
            "Load it with torch.load.",
            "For C++, Java or a mobile app: build the model, load the weights, and write it with torch.jit.trace(...)"
            ".save().",
            "Open it here: it says which of them the file is.",
        ),
        patch=f"checkpoint = {_LOAD}",
        hides=("missing-record", "archive-cut"),
        example="RuntimeError: PytorchStreamReader failed locating file constants.pkl: file not found",
    ),
    Message(
        kind="missing-record",
        patterns=(r"PytorchStreamReader failed locating file (?P<name>[^\s:]{1,200}): file",),
        says="The archive has no member {name}.",
        why="It is no file of torch.save (another zip), was repacked, or a member was lost.",
        steps=("Open it here: members and missing tensors are listed.",),
        hides=("archive-cut",),
        example="PytorchStreamReader failed locating file data.pkl: file not found",
    ),
    Message(
        kind="archive-damaged",
        patterns=(r"invalid header or archive is corrupted",),
        says="The zip archive is damaged: its directory, or a member of it.",
        why="A download, an upload or a copy was not complete, or the disk failed.",
        steps=(_FETCH, _SALVAGE),
        causes=(
            Cause("no-central-directory", "The archive's end is not there.", 'the message has "reading zip archive"'),
            Cause("unreadable-record", "A member inside is damaged.", 'the message has "reading file data/..."'),
        ),
        hides=("archive-cut",),
        example="invalid header or archive is corrupted",
    ),
    Message(
        kind="archive-cut",
        patterns=(r"PytorchStreamReader failed", r"_open_zipfile_reader"),
        says="torch could not read the zip archive; why, is cut off.",
        why="The words behind it tell a download that stopped from a file that is none of torch.save's.",
        steps=("Paste the whole line.", "Open the file here: it says what the file is and whether it is whole."),
        asks=True,
        example="RuntimeError: PytorchStreamReader failed",
    ),
    Message(
        kind="foreign-archive",
        patterns=(
            r"Expected hasRecord\(\"version\"\) to be true",
            r"hasRecord\(",
            r"file in archive is not in a subdirectory",
        ),
        says="The file is a zip archive, but not one of torch.save.",
        why="torch.save puts a version record and everything else into one folder of the archive. A folder "
        "or a .pth was zipped, the archive was repacked, or another program wrote it.",
        steps=(
            "Open it here: it says what the archive holds.",
            "If a .pth lies inside, unzip it and load that.",
            "Arrays of numpy (.npz) are read by numpy.load.",
        ),
        example='RuntimeError: Expected hasRecord("version") to be true, but got false.',
    ),
    Message(
        kind="cut-file",
        patterns=(
            r"unexpected EOF, expected (?P<n>[0-9]{1,20}) more bytes",
            r"unexpected EOF, expected",
            r"[0-9] more bytes\. The file might be corrupted",
            r"The file might be corrupted",
        ),
        says="The file ends {n} bytes too early.",
        brief="The file ends too early.",
        why="A download, a copy or the saving itself stopped, often because the disk was full.",
        steps=("Fetch it again and compare sizes.", "Open it here: whole tensors can be salvaged."),
        example="RuntimeError: unexpected EOF, expected 4 more bytes. The file might be corrupted.",
    ),
    Message(
        kind="cut-pickle",
        patterns=(r"(?:EOFError: )?Ran out of input",),
        says="The file is empty or its pickle breaks off.",
        why="Saving or copying stopped; or the file was read once already and not rewound; or it is "
        "being written right now.",
        steps=("Look at its size.", "Fetch it again, or use file.seek(0) before the second torch.load of one handle."),
        example="EOFError: Ran out of input",
    ),
    Message(
        kind="cut-or-other-file",
        patterns=(r"pickle data was truncated",),
        says="The pickle breaks off, or the file is none and was read as one.",
        why="Saving or copying stopped; or it is a text, a GIF or another file whose first letter a pickle could have.",
        steps=("Look at its size and first line.", "Fetch it again.", "Open it here: it says what the file is."),
        causes=(
            Cause("cut-pickle", "The file is cut.", "it is smaller than the original"),
            Cause("not-a-pickle", "It is another kind of file, such as a text.", "its first line can be read"),
        ),
        example="_pickle.UnpicklingError: pickle data was truncated",
    ),
    Message(
        kind="silent-end",
        patterns=(r"EOFError:? ?(?:\Z|(?=Traceback|During handling|The above|```))",),
        says="What was read ends too early, and the message does not say what it was.",
        why="torch.load(weights_only=True) says no more about a file that is empty or breaks off; nor does a pipe "
        "between processes.",
        steps=("Look at the file's size, and fetch it again if it is empty or too small.",),
        causes=(
            Cause("cut-pickle", "The file is empty or cut.", "the traceback goes through torch.load"),
            Cause("worker-died", "Another process, such as a DataLoader's, died.", "it goes through multiprocessing"),
        ),
        example="EOFError: ",
    ),
    Message(
        kind="unsound-pickle",
        patterns=(
            r"unpickling stack underflow",
            r"could not find MARK",
            r"unsupported pickle protocol: (?![345](?![0-9]))[0-9]",
        ),
        says="What was read is no sound pickle: another kind of file, or a damaged one.",
        why='Other files can begin as a pickle could: .npy, an archive, a text such as "Not Found".',
        steps=(
            "Look at its size and first line; a .npy file is read by numpy.load.",
            "Open it here: it names what the file is.",
        ),
        causes=(
            Cause("not-a-pickle", "It is another kind of file.", "its first line is a text, or names its kind"),
            Cause("damaged-pickle", "It is a damaged one.", "its size is not the original's, or it was read before"),
        ),
        example="_pickle.UnpicklingError: could not find MARK",
    ),
    Message(
        kind="not-seekable",
        patterns=(
            rf"(?P<type>\w{{1,100}}){Q} object has no attribute {Q}seek{Q}\. You can only torch\.load",
            r"You can only torch\.load from a file that is seekable",
        ),
        says="torch.load was given a {type}, which is neither a path nor a file in which one can jump.",
        brief="torch.load was given something that is neither a path nor a file in which one can jump.",
        why="It reads a file's end first. A download or a member of an archive has to be read into memory before; a "
        "model is loaded already.",
        steps=("Read a stream into memory first. If what was passed is a model, leave torch.load out.",),
        patch="import io\n\ncheckpoint = torch.load(io.BytesIO(stream.read()), "
        'map_location="cpu", weights_only=True)\n',
        example="AttributeError: 'ZipExtFile' object has no attribute 'seek'. You can only torch.load from a file that "
        "is seekable.",
    ),
    Message(
        kind="tar-without-storages",
        patterns=(r"filename [\"'`]{0,3}storages[\"'`]{0,3} not found",),
        says="The file was taken for a tar of torch before 0.1.10, and it is none: storages is not in it.",
        why="It is an ordinary .tar of a folder, or full of zeros, which reads as an empty one.",
        steps=("Unpack it and load the file inside; or fetch it again, if it is a download that left zeros.",),
        causes=(
            Cause("ordinary-tar", "It is an ordinary .tar.", "tar -tf lists its files"),
            Cause("zero-filled", "It is a download that left zeros.", "tar -tf lists nothing"),
        ),
        example="KeyError: \"filename 'storages' not found\"",
    ),
    Message(
        kind="storage-size",
        patterns=(
            r"storage has wrong (?:byte )?size: expected (?P<want>-?[0-9]{1,20}) got (?P<got>-?[0-9]{1,20})",
            r"storage has wrong (?:byte )?size",
        ),
        says="A tensor's numbers are not as many as the file announces: {want} expected, {got} there.",
        brief="A tensor's numbers are not as many as the file announces.",
        why="The file is damaged, or another process wrote to it while it was saved.",
        steps=("Fetch it again; in distributed training let one process save.", "Open it here to see which tensor."),
        example="RuntimeError: storage has wrong size: expected -4934180888905747925 got 64",
    ),
    Message(
        kind="safetensors-header-too-large",
        patterns=(r"HeaderTooLarge", r"header too large"),
        says="The file is no safetensors file, its first bytes are damaged, or its header is longer than 100 MB.",
        why="The first eight bytes are the header's length. A .pth, a Git LFS pointer or a web page renamed to "
        ".safetensors give an impossible one; a million tensors in one file give one beyond the limit.",
        steps=("Open it here: it names what the file is.", "Fetch it again, or load it with what it is."),
        causes=(
            Cause(
                "safetensors-header-too-large",
                "It is no safetensors file: a pointer, a web page, a .pth or a damaged download.",
                "its first line is text, its size is not the original's, or it was never opened before",
            ),
            Cause(
                "safetensors-many-tensors",
                "Its header is beyond 100 MB, as with a million tensors; save them in several files.",
                "the same file was just written here, and has gigabytes",
            ),
        ),
        hides=("safetensors-cut",),
        example="safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge",
    ),
    Message(
        kind="safetensors-header",
        patterns=(
            r"(?:InvalidHeaderDeserialization|InvalidHeaderLength|InvalidHeaderStart|HeaderTooSmall)",
            r"(?:invalid JSON in header|header too small|invalid header length|invalid UTF-8 in header|"
            r"invalid start character in header)",
        ),
        says="The header of the safetensors file cannot be read.",
        why="The file was cut or damaged, or another program wrote a header that is not as the format says.",
        steps=("Fetch it again and compare sizes.", "Open it here: the place in the header is named."),
        hides=("safetensors-cut",),
        example="safetensors_rust.SafetensorError: Error while deserializing header: InvalidHeaderDeserialization",
    ),
    Message(
        kind="safetensors-incomplete",
        patterns=(r"MetadataIncompleteBuffer", r"incomplete metadata, file not fully covered"),
        says="The safetensors file is shorter or longer than its header says.",
        why="A download or copy stopped early.",
        steps=("Fetch it again and compare sizes.", "Open it here: whole tensors can be salvaged."),
        hides=("safetensors-cut",),
        example="safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer",
    ),
    Message(
        kind="safetensors-cut",
        patterns=(r"Error while deserializing header", r"safetensors_rust"),
        says="The header of the safetensors file was refused; why, is cut off.",
        why="The word behind it tells a file of another kind from one that stopped early.",
        steps=("Paste the whole line.", "Open the file here: it says what the file is and whether it is whole."),
        asks=True,
        example="safetensors_rust.SafetensorError: Error while deserializing header:",
    ),
    Message(
        kind="shared-memory",
        patterns=(
            r"Some tensors share memory, this will lead to duplicate memory on disk",
            r"Some tensors share memory",
        ),
        says="save_file refuses tensors that share memory, such as tied embeddings.",
        why="The safetensors format has no way to say that two names are one tensor.",
        steps=(
            "save_model keeps one of the names and load_model ties them again.",
            "Or clone one of them, which stores it twice; the files written here declare ties in the metadata.",
        ),
        patch="from safetensors.torch import load_model, save_model\n\nsave_model(model, "
        "path)\nload_model(model, path)\n",
        example="RuntimeError: Some tensors share memory, this will lead to duplicate memory on disk "
        "and potential differences when loading them again",
    ),
    Message(
        kind="hidden-by-transformers",
        patterns=(
            r"Unable to load weights from (?:the )?pytorch checkpoint file",
            r"load a PyTorch model from a TF 2\.0 checkpoint",
            r"please set from_tf ?= ?True",
        ),
        says="transformers could not read the weights; the error beneath, which says why, it does not show.",
        why="Nearly always a download that stopped, a Git LFS pointer, or a torch older than the file. It has "
        "nothing to do with TensorFlow.",
        steps=(
            "Look at the file's size; compare it with the repository's and fetch it again.",
            "Open it here: it says what the file is and whether it is whole.",
            "Or load it by itself with torch.load: that shows the error beneath.",
        ),
        patch=f"checkpoint = {_LOAD}",
        example="OSError: Unable to load weights from pytorch checkpoint file for 'a' at 'pytorch_model.bin'. If you "
        "tried to load a PyTorch model from a TF 2.0 checkpoint, please set from_tf=True.",
    ),
    Message(
        kind="needs-newer-torch",
        patterns=(r"we now require users to upgrade torch to at least v?(?P<version>2\.[0-9])", r"CVE-2025-32434"),
        says="transformers no longer loads pickled weights with your torch, which has a known hole.",
        why="torch.load before 2.6 can be made to run code even with weights_only=True (CVE-2025-32434).",
        steps=("Update torch to 2.6 or newer.", "Or load safetensors: convert the file here to .safetensors."),
        example="ValueError: Due to a serious vulnerability issue in `torch.load`, even with `weights_only=True`, we "
        "now require users to upgrade torch to at least v2.6 in order to use the function.",
    ),
)
