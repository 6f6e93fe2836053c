"""Messages of versions that do not fit: of torch, Python or a library, between who saved and who loads."""

from __future__ import annotations

from inspector.error_messages.message import Message, Q
from inspector.error_messages.report import Cause

_STATS = '("running_mean", "running_var", "num_batches_tracked")'

MESSAGES: tuple[Message, ...] = (
    Message(
        kind="newer-format",
        patterns=(
            r"Attempted to read a PyTorch file with version (?P<version>[0-9]{1,4}), but the maximum supported version "
            r"for reading is (?P<most>[0-9]{1,4})",
            r"kMaxSupportedFileFormatVersion",
        ),
        says="The file is in version {version} of torch's format, and your torch reads up to {most}.",
        brief="The file is in a newer version of torch's format than your torch reads.",
        why="A newer torch wrote it; newer ones read old files, not the other way round.",
        steps=("Update torch.", "Or convert the file here for older ones."),
        example="Attempted to read a PyTorch file with version 3, but the maximum supported version for reading is 2.",
    ),
    Message(
        kind="newer-protocol",
        patterns=(r"unsupported pickle protocol: (?P<protocol>[345])(?![0-9])",),
        says="The file was pickled with protocol {protocol}, which your Python does not know.",
        why="Protocol 5 came with Python 3.8, 4 with 3.4 and 3 with Python 3.",
        steps=("Use a newer Python.", "Or save it again there with pickle_protocol=2, torch's own default."),
        example="ValueError: unsupported pickle protocol: 5",
    ),
    Message(
        kind="older-whole-model",
        patterns=(
            rf"{Q}(?P<type>Upsample){Q} object has no attribute {Q}(?P<name>recompute_scale_factor)",
            rf"{Q}(?P<type>GELU){Q} object has no attribute {Q}(?P<name>approximate)",
        ),
        says="The file is a whole pickled model of an older torch, whose {type} had no {name} yet.",
        why="torch.save(model) stores the fields of each module as they were; newer code asks for newer fields.",
        steps=(
            "Give the modules what they lack, with the value that the older torch behaved like.",
            "Save model.state_dict() next time; or open the file here and convert it.",
        ),
        patch="for module in model.modules():\n"
        "    if isinstance(module, torch.nn.Upsample):\n"
        '        vars(module).setdefault("recompute_scale_factor", None)\n'
        "    if isinstance(module, torch.nn.GELU):\n"
        '        vars(module).setdefault("approximate", "none")\n',
        example="AttributeError: 'Upsample' object has no attribute 'recompute_scale_factor'",
    ),
    Message(
        kind="instance-norm-statistics",
        patterns=(
            r"Unexpected running stats buffer\(s\).{1,4000}for (?P<type>\w{1,60}) with track_running_stats ?= ?False",
            r"Unexpected running stats buffer",
        ),
        says="The file has running statistics of {type}, which the model's does not keep.",
        brief="The file has running statistics of instance normalisations, which the model's do not keep.",
        why="Before torch 0.4 they were kept by default; since then only with track_running_stats=True, where the "
        "outputs depend on them.",
        steps=(
            "If the file was made with torch before 0.4, which did not use them, load without them.",
            "If it was trained with track_running_stats=True, build the model so.",
        ),
        patch="wanted = set(model.state_dict())\n"
        "state = {{key: value for key, value in state.items() if key in wanted or not key.endswith(" + _STATS + ")}}\n"
        "model.load_state_dict(state, strict=True)\n",
        example='Unexpected running stats buffer(s) "0.running_mean" and "0.running_var" for InstanceNorm2d with '
        "track_running_stats=False.",
    ),
    Message(
        kind="python-2-strings",
        patterns=(r"ascii[\"'`]{0,3} codec can[\"'`]?t decode byte",),
        says="Bytes were read as ASCII text and are none.",
        why="Python 2 pickled texts as bytes; Python 3 takes them for ASCII unless told otherwise.",
        steps=("Pass the encoding; latin1 reads any byte.",),
        patch='checkpoint = torch.load(path, map_location="cpu", encoding="latin1", weights_only=True)\n',
        causes=(
            Cause("python-2-strings", "The file was pickled by Python 2.", "the traceback goes through pickle or load"),
            Cause("ascii-locale", "A text file was opened where the system's encoding is ASCII.", "it shows open()"),
        ),
        example="UnicodeDecodeError: 'ascii' codec can't decode byte 0xfc in position 0: ordinal not in range(128)",
    ),
    Message(
        kind="safetensors-without-format",
        patterns=(
            r"safetensors archive passed at \S{1,300} does not contain the valid metadata",
            r"does not contain the valid metadata",
        ),
        says="The safetensors file names no framework that this library accepts, and it asks for one.",
        why="Its metadata has no entry format with a value such as pt; nothing is wrong with the tensors.",
        steps=("Write it again with that entry, or update transformers, whose newer releases do without.",),
        patch="from safetensors.torch import load_file, save_file\n\n"
        'save_file(load_file(path), new_path, metadata={{"format": "pt"}})\n',
        example="OSError: The safetensors archive passed at model.safetensors does not contain the valid metadata. "
        "Make sure you save your model with the `save_pretrained` method.",
    ),
    Message(
        kind="no-weights-file",
        patterns=(
            r"does not appear to have a file named (?P<name>[\w.-]{1,60}\.(?:bin|safetensors|h5|ckpt|msgpack))",
            r"no file named (?P<name>[\w.-]{1,60}\.(?:bin|safetensors|h5|ckpt|msgpack)).{0,300}found in directory",
        ),
        says="transformers looked for {name} (or one of its other names), and no such file is there.",
        why="The folder or repository holds another kind of weights: an adapter, another file name, a subfolder, or "
        "nothing but the settings.",
        steps=(
            "List its files. With adapter_config.json it is an adapter: load its base model, then PeftModel.",
            "For weights under another name or in a subfolder, pass subfolder=... or load the file itself.",
        ),
        example="OSError: x does not appear to have a file named pytorch_model.bin, model.safetensors, tf_model.h5",
    ),
)
