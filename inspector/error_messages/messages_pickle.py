"""Messages about a file's pickle: what torch's restricted mode refuses, and code that is not there."""

from __future__ import annotations

from inspector.error_messages.message import Message, Q
from inspector.error_messages.report import Cause
from inspector.error_messages.safe_globals import lines_that_allow

_NAME = r"[A-Za-z_][\w.]{0,200}"
_LISTED = (
    "Open the file here first: every global in it is listed, and none is run. So does "
    "torch.serialization.get_unsafe_globals_in_checkpoint(path)."
)
_BETTER = "Better for good: save model.state_dict() alone, or take the weights out with the repair."
_UNSAFE = "weights_only=False runs whatever the file says; only for files whose maker you trust."


MESSAGES: tuple[Message, ...] = (
    Message(
        kind="unsupported-global",
        patterns=(
            rf"Unsupported global: GLOBAL (?P<name>{_NAME}) was not an allowed",
            r"safe_globals\(\[(?P<name>[A-Za-z_]\w{0,99}(?:\.\w{1,100}){1,8})\]\)",
            r"Unsupported global: GLOBAL",
            r"was not an allowed global",
            r"safe_globals\(\[\w",
            r"to allowlist this global",
        ),
        says="The file's pickle names {name}, which torch.load does not call with weights_only=True.",
        brief="The file's pickle names a global that torch.load does not call with weights_only=True; its name is cut "
        "off.",
        why="Since torch 2.6 weights_only=True is the default; it builds tensors and plain containers alone. The file "
        "holds an object of another class: settings, a whole model, numpy numbers.",
        steps=(
            _LISTED,
            "If you trust this name and its library, allow it for this load, with all that comes along with it.",
            "Should another name be refused then, paste both messages together: the lines allow all names of a text.",
            _BETTER,
            _UNSAFE,
        ),
        lines=lines_that_allow,
        hides=("weights-only",),
        example="WeightsUnpickler error: Unsupported global: GLOBAL numpy.core.multiarray.scalar was not an allowed "
        "global by default. Please use `torch.serialization.add_safe_globals([scalar])`",
    ),
    Message(
        kind="unsupported-build",
        patterns=(
            r"an only (?:build|create new object for) [^<>]{1,100}but got "
            rf"<class {Q}(?P<name>{_NAME})(?:\[\w{{1,40}}\])?{Q}>",
            rf"call reduce for unrecognized function <(?:class|function|built-in function) {Q}(?P<name>{_NAME}){Q}",
            r"an only build Tensor",
            r"an only create new object for nn\.Parameter",
            r"or types allowlisted via",
        ),
        says="The file's pickle makes a {name}, which weights_only=True allows only when told to.",
        brief="The file's pickle makes an object that weights_only=True allows only when told to; which, is cut off.",
        why="The class stands in no list of the file: it is the type of an object that an allowed function gave back, "
        "as numpy's dtypes are.",
        steps=("Allow the class as well, with all that comes along with it.", _BETTER, _UNSAFE),
        lines=lines_that_allow,
        hides=("weights-only", "unsupported-global"),
        example="WeightsUnpickler error: Can only build Tensor, Parameter, OrderedDict or types allowlisted via "
        "`add_safe_globals`, but got <class 'numpy.dtypes.Float64DType'>",
    ),
    Message(
        kind="unsupported-filling",
        patterns=(
            rf"an only (?:append to|extend) lists, but got <class {Q}(?P<name>{_NAME})",
            rf"an only SETITEMS? for dict[^<>]{{1,100}}but got <class {Q}(?P<name>{_NAME})",
            r"an only SETITEMS? for dict",
        ),
        says="The file holds a {name}, which weights_only=True makes but does not fill.",
        brief="The file holds a container that weights_only=True does not fill.",
        why="torch fills lists, dicts, OrderedDicts and Counters alone, whatever else is allowed.",
        steps=("Let it come back as a dict or list of Python's own, under its own name.", _BETTER, _UNSAFE),
        lines=lines_that_allow,
        hides=("weights-only",),
        example="WeightsUnpickler error: Can only SETITEMS for dict, collections.OrderedDict, collections.Counter, but "
        "got <class 'collections.defaultdict'>",
    ),
    Message(
        kind="blocked-global",
        patterns=(
            rf"Trying to load unsupported GLOBAL (?P<name>{_NAME}) whose module (?P<module>{_NAME}) is blocked",
            r"Trying to load unsupported GLOBAL",
            r"whose module \w{1,40} is blocked",
        ),
        says="The file's pickle would call {name}; torch refuses everything of {module}, and it cannot be allowed.",
        brief="The file's pickle would call what torch refuses altogether, and it cannot be allowed.",
        why="No checkpoint needs it: such a name runs commands or reads files.",
        steps=("Do not load this file with weights_only=False.", "Open it here: what it would have run is shown."),
        hides=("weights-only",),
        example="Trying to load unsupported GLOBAL posix.system whose module posix is blocked.",
    ),
    Message(
        kind="unsupported-operand",
        patterns=(r"Unsupported operand (?P<operand>[0-9]{1,4})\b", r"Unsupported operand"),
        says="The pickle uses opcode {operand}, which torch's restricted reader does not know.",
        brief="The pickle uses an opcode that torch's restricted reader does not know.",
        why="The number is a byte. As the file's first it says what the file is: 118 ('v') a Git LFS pointer, 60 ('<') "
        "a web page, 10 or 123 a text or JSON, 31 gzip, 72 HDF5, 80 a picture (PNG) or a text, 255 a JPEG, 147 a .npy, "
        "0 zeros, another letter a text. 149 is a pickle of protocol 4, which another program than torch.save wrote.",
        steps=(
            "Look at its size and first line, or open the file here: it says what the file is.",
            "For 118: git lfs pull. For 60: download it again, signed in and by the file's own link.",
            "For 149, if it is a checkpoint: save it again with torch.save and the default protocol 2.",
        ),
        hides=("weights-only",),
        example="Weights only load failed. ... WeightsUnpickler error: Unsupported operand 149",
    ),
    Message(
        kind="unsupported-class",
        patterns=(r"Unsupported class (?P<name>[\w.]{1,200})",),
        says="The file's pickle would make a {name}, which weights_only=True does not.",
        why="Only tensors and plain containers are made in that mode, and torch before 2.4, whose words these are, "
        "can allow nothing else.",
        steps=(
            "Update torch: from 2.6 on a class can be allowed for one load, and the message then says how.",
            "Open the file here: its globals are listed, and the weights can be taken out.",
            _UNSAFE,
        ),
        hides=("weights-only",),
        example="WeightsUnpickler error: Unsupported class numpy.dtype",
    ),
    Message(
        kind="dtensor-import",
        patterns=(r"torch\.distributed\.tensor`{0,2} must be imported", r"must be imported to load DTensors"),
        says="The file holds tensors of several processes (DTensor), whose code is not imported yet.",
        why="torch allows them once torch.distributed.tensor is imported.",
        steps=("Import it before torch.load.", "Open the file here to see which part of the tensors it has."),
        patch="import torch.distributed.tensor\n\n"
        'checkpoint = torch.load(path, map_location="cpu", weights_only=True)\n',
        hides=("weights-only",),
        example="``torch.distributed.tensor`` must be imported to load DTensors",
    ),
    Message(
        kind="explicit-pickle-module",
        patterns=(r"not safely load weights when explicit pickle_module is specified", r"explicit pickle_module"),
        says="torch.load was given a pickle_module, which weights_only=True does not take.",
        why="The restricted mode has its own reader; another pickle module would run what the file says.",
        steps=(
            "Leave pickle_module out.",
            "If that module is needed, the file is no plain checkpoint: open it here, and take the weights out.",
        ),
        patch='checkpoint = torch.load(path, map_location="cpu", weights_only=True)\n',
        hides=("weights-only",),
        example="RuntimeError: Can not safely load weights when explicit pickle_module is specified",
    ),
    Message(
        kind="weights-only",
        patterns=(
            r"Weights only load failed",
            r"WeightsUnpickler error",
            r"with `?weights_only`? set to `?False`? will likely succeed",
            r"This file can still be loaded, to do so you have",
            r"the default value of the `?weights_only`? argument",
            r"to load with `?weights_only ?= ?True`? please check the recommended steps",
            r"learn more about types accepted by default with weights_only",
        ),
        says="torch.load refused the file in its restricted mode, weights_only=True.",
        why="Since torch 2.6 that is the default. The file holds more than tensors and plain "
        "containers, or is none of torch's.",
        steps=(
            'The line after it names the reason ("Unsupported global", "Unsupported operand"): paste it too.',
            "Open the file here: every global in it is listed, and none is run.",
        ),
        asks=True,
        example="_pickle.UnpicklingError: Weights only load failed. This file can still be loaded, "
        "to do so you have two options",
    ),
    Message(
        kind="torchscript-weights-only",
        patterns=(r"Cannot use `{0,2}weights_only ?= ?True`{0,2} with TorchScript archives",),
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
        patterns=(r"Cannot use `{0,2}weights_only ?= ?True`{0,2} with files saved in the legacy \.?tar format",),
        says="The file is a tar, or full of zeros, which weights_only=True does not read.",
        why="torch before 0.1.10 wrote tars. An ordinary .tar of a folder, and a download that left nothing but zeros, "
        "look the same to it.",
        steps=(
            "Look inside: tar -tf lists the files. Unpack an ordinary .tar, and load the file that it holds.",
            "Open it here: it says which of them it is, and the reader knows torch's own tar format.",
        ),
        causes=(
            Cause("tar-weights-only", "torch wrote it, in 2016 or 2017.", "tar -tf lists sys_info, pickle, storages"),
            Cause("ordinary-tar", "It is an ordinary .tar of files.", "tar -tf lists other names"),
            Cause("zero-filled", "It is full of zeros.", "tar -tf lists nothing"),
        ),
        hides=("weights-only",),
        example="Cannot use ``weights_only=True`` with files saved in the legacy .tar format.",
    ),
    Message(
        kind="newer-torch-file",
        patterns=(
            rf"get attribute {Q}(?P<name>_rebuild_\w{{1,60}}|_get_layout|UntypedStorage|TypedStorage){Q} on <module",
            rf"module{Q} (?:{Q}[\w.]{{1,40}}{Q} )?(?:object )?has no attribute {Q}(?P<name>_rebuild_\w{{1,60}}){Q}",
            r"attribute [\"'`]?_rebuild_\w",
        ),
        says="The file was written by a newer torch than yours: {name} is not in it.",
        brief="The file was written by a newer torch than yours.",
        why="Tensors are stored by the name of the function that makes them again; newer releases have new ones. Newer "
        "ones read old files, not the other way round.",
        steps=(
            "Update torch.",
            "Or convert the file here: it is written for every torch since 1.6 (or before, if asked).",
        ),
        hides=("missing-class", "attribute-cut"),
        example="AttributeError: Can't get attribute '_rebuild_parameter' on <module 'torch._utils' from 'a.py'>",
    ),
    Message(
        kind="missing-class",
        patterns=(rf"get attribute {Q}(?P<name>[\w.]{{1,200}}){Q} on <module {Q}(?P<module>[\w.*]{{1,200}}){Q}",),
        says="The file is a whole pickled object; it names a class {name} in {module} that is not there now.",
        why="torch.save(model) stores where the class was, not the class. In a script that place is __main__.",
        steps=(
            "Open it here: weights and module tree are read without the class, and written as a state dict.",
            "Or define or import that class under that module before torch.load, if you trust the file.",
            "Save model.state_dict() next time.",
        ),
        hides=("attribute-cut",),
        example="AttributeError: Can't get attribute 'Net' on <module '__main__' from 'a.py'>",
    ),
    Message(
        kind="attribute-cut",
        patterns=(r"Can'?t get attribute",),
        says="The file's pickle names what is not in its module now; what and where, is cut off.",
        why="Pickle stores where a class or function was, not what it is.",
        steps=(
            "Open the file here: the weights are read without that code, and written as a state dict.",
            "Paste the whole line.",
        ),
        causes=(
            Cause(
                "missing-class",
                "A whole model was pickled, and its class is not imported.",
                "the module in the message is __main__ or one of your own",
            ),
            Cause(
                "newer-torch-file",
                "A newer torch than yours wrote the file.",
                "the module is torch._utils and the name begins with _rebuild",
            ),
        ),
        example="AttributeError: Can't get attribute",
    ),
    Message(
        kind="numpy-2-file",
        patterns=(
            rf"No module named {Q}(?P<name>numpy\._core(?:\.[\w.]{{1,80}})?)",
            r"numpy\.random\._\w{2,10}\.\w{2,12}[\"'`]{0,2}>? is not a known BitGenerator",
        ),
        says="The file was written with numpy 2, and your numpy is older.",
        why="numpy 2 calls numpy.core numpy._core; numbers, arrays and random states are pickled under that name.",
        steps=(
            "Update numpy: 2 reads files of both; 1.26 reads plain numbers and arrays of 2, no random states.",
            "Or open the file here: its tensors are read without numpy, and written.",
        ),
        hides=("missing-module", "module-cut"),
        example="ModuleNotFoundError: No module named 'numpy._core'",
    ),
    Message(
        kind="missing-module",
        patterns=(
            r"No module named [\"'`](?P<name>[\w.]{1,200})[\"'`]",
            r"No module named (?P<name>\w[\w.]{0,200})(?=[\s,)])",
        ),
        says="A module {name} is needed and cannot be imported here.",
        why="If this came out of torch.load, the file is a pickled object that names a class in it: the code of "
        "whoever saved it, or a library that is not installed.",
        steps=(
            "Open the file here: weights are read without that module, and written as a state dict.",
            "Or run from the repository that has it, or install the library it belongs to.",
        ),
        hides=("module-cut",),
        example="ModuleNotFoundError: No module named 'models'",
    ),
    Message(
        kind="module-cut",
        patterns=(r"No module named", r"ModuleNotFoundError"),
        says="A module is needed that cannot be imported here; its name is cut off.",
        why="The name tells a library that is not installed from the code of whoever saved the file.",
        steps=("Paste the whole line.", "Open the file here: weights are read without any of its code."),
        asks=True,
        example="ModuleNotFoundError: No module named",
    ),
)
