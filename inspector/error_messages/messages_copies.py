"""Messages about what load_state_dict was given, and about a tensor of the right shape that it could not copy."""

from __future__ import annotations

from inspector.error_messages.message import Message, Q
from inspector.error_messages.report import Cause

_NAMED = rf"While copying the parameter named {Q}(?P<name>[^\s\"'`,]{{1,512}})"
_SIZE = r"torch\.Size\(\[[0-9, ]{0,200}\]\)"
_ASSIGN = "model.load_state_dict(state, strict=True, assign=True)  # since torch 2.1\n"

MESSAGES: tuple[Message, ...] = (
    Message(
        kind="path-as-state-dict",
        patterns=(
            rf"Expected state_dict to be dict-like, got <class {Q}"
            rf"(?P<type>str|bytes|pathlib\.[\w.]{{1,40}}|_io\.\w{{1,40}}){Q}>",
        ),
        says="load_state_dict was given a {type}, such as the file's path, instead of a dictionary of tensors.",
        why="load_state_dict reads no files: torch.load comes first.",
        steps=("Load the file, and pass what torch.load returns.",),
        patch='loaded = torch.load(path, map_location="cpu", weights_only=True)\nmodel.load_state_dict(loaded)\n',
        hides=("not-dict-like",),
        example="TypeError: Expected state_dict to be dict-like, got <class 'str'>.",
    ),
    Message(
        kind="none-as-state-dict",
        patterns=(rf"Expected state_dict to be dict-like, got <class {Q}NoneType",),
        says="load_state_dict was given None: whatever was to return the state dict returned nothing.",
        why="A function without return, .get() with a key that is not there, or an entry that was saved as None.",
        steps=("Look where the value comes from; print the keys of the loaded file, or open it here.",),
        hides=("not-dict-like",),
        example="TypeError: Expected state_dict to be dict-like, got <class 'NoneType'>.",
    ),
    Message(
        kind="model-as-state-dict",
        patterns=(
            rf"Expected state_dict to be dict-like, got <class {Q}"
            r"(?P<type>(?!torch\.(?:Tensor|FloatTensor)|torch\.nn\.parameter|numpy\.)\w{1,99}(?:\.\w{1,99}){1,9})"
            rf"{Q}>",
        ),
        says="load_state_dict was given a whole object, a {type}, instead of a dictionary of tensors.",
        why="The file holds a pickled model, or the model itself was passed.",
        steps=(
            "If it is a model, pass its state_dict(); loaded stands for what was passed.",
            "Open the file here: the weights of a pickled model are read without its code, and written.",
        ),
        patch="model.load_state_dict(loaded.state_dict())\n",
        hides=("not-dict-like",),
        example="TypeError: Expected state_dict to be dict-like, got <class 'torchvision.models.resnet.ResNet'>.",
    ),
    Message(
        kind="not-dict-like",
        patterns=(
            rf"Expected state_dict to be dict-like, got <class {Q}(?P<type>[\w.]{{1,200}})",
            r"Expected state_dict to be dict",
        ),
        says="load_state_dict was given a {type} instead of a dictionary of tensors.",
        brief="load_state_dict was given something else than a dictionary of tensors.",
        why="A path, a whole model, a list or a single tensor was passed: torch.load comes first, and of a model its "
        "state_dict().",
        steps=("Print what is passed; a list or tuple may have the state dict as one of its entries.",),
        patch="print(type(loaded), loaded)  # loaded: what was passed\n",
        example="TypeError: Expected state_dict to be dict-like, got <class 'tuple'>.",
    ),
    Message(
        kind="copied-to-meta",
        patterns=(
            r"copying from a non-meta parameter in the checkpoint to a meta parameter in the current model",
            r"copying from a non-meta parameter",
        ),
        says="Nothing was loaded: the model has no numbers of its own (meta device), so copying into it does nothing.",
        why="It was built empty, to be given the file's tensors instead of copies of them.",
        steps=("Load with assign=True.",),
        patch=_ASSIGN,
        example="UserWarning: for fc.weight: copying from a non-meta parameter in the checkpoint to a meta parameter "
        "in the current model, which is a no-op.",
    ),
    Message(
        kind="not-a-tensor",
        patterns=(
            rf"{_NAMED}.{{1,700}}expected torch\.Tensor or Tensor-like object from checkpoint but received "
            rf"<class \\?{Q}(?P<type>[\w.]{{1,100}})",
            rf"{_NAMED}.{{1,700}}expected torch\.Tensor or Tensor-like object",
            r"expected torch\.Tensor or Tensor-like object from checkpoint",
        ),
        says="{name} is of type {type} in the state dict, and load_state_dict takes tensors alone.",
        brief="The state dict holds something else than a tensor under one of its names.",
        why="Whoever made the state dict put an array, a number or a list where a tensor belongs.",
        steps=("Make tensors of such values before loading; torch.as_tensor takes numbers, lists and arrays.",),
        patch="state = {{key: torch.as_tensor(value) for key, value in state.items()}}\n"
        "model.load_state_dict(state, strict=True)\n",
        hides=("copy-failed",),
        example='While copying the parameter named "a.weight", expected torch.Tensor or Tensor-like object from '
        "checkpoint but received <class 'numpy.ndarray'>",
    ),
    Message(
        kind="meta-checkpoint",
        patterns=(rf"{_NAMED}.{{1,700}}an exception occurred.{{1,20}}Cannot copy out of meta tensor",),
        says="{name} has no numbers in the state dict: it is on the meta device there.",
        why="The state dict was taken from a model that was built empty or whose weights are offloaded, or it was "
        'loaded with map_location="meta".',
        steps=("Load the file itself to the CPU, and pass that.",),
        patch='state = torch.load(path, map_location="cpu", weights_only=True)\nmodel.load_state_dict(state)\n',
        hides=("meta-tensor", "copy-failed"),
        example='While copying the parameter named "fc.weight", whose dimensions in the model are torch.Size([2, 2]) '
        "and whose dimensions in the checkpoint are torch.Size([2, 2]), an exception occurred : ('Cannot copy out of "
        "meta tensor; no data!',).",
    ),
    Message(
        kind="meta-tensor",
        patterns=(r"Cannot copy out of meta tensor",),
        says="A tensor without numbers (on the meta device) was to be copied.",
        why="The model was built empty, or the state dict was taken from one that was.",
        steps=("Paste the whole message. Load the file itself to the CPU, and pass it with assign=True.",),
        patch=f'state = torch.load(path, map_location="cpu", weights_only=True)\n{_ASSIGN}',
        causes=(
            Cause("meta-copy", "The model is empty, and was moved before it was loaded.", "the code calls .to()"),
            Cause("meta-checkpoint", "The state dict is of an empty model.", "it says: While copying the parameter"),
        ),
        hides=("copy-failed",),
        example="NotImplementedError: Cannot copy out of meta tensor; no data!",
    ),
    Message(
        kind="inference-tensor",
        patterns=(
            r"Inplace update to inference tensor outside InferenceMode is not allowed",
            r"Inplace update to inference tensor",
        ),
        says="The model's parameters were made under torch.inference_mode(), and cannot be written to outside of it.",
        why="load_state_dict copies into the parameters that are there.",
        steps=("Build the model outside of inference_mode, or put the file's tensors in the place of its own.",),
        patch=_ASSIGN,
        hides=("copy-failed",),
        example="Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone",
    ),
    Message(
        kind="overlapping-parameter",
        patterns=(r"more than one element of the written-to tensor refers to a single memory location",),
        says="A tensor of the model is an expanded view, whose elements share memory, so nothing can be written to it.",
        why="It was made with expand() (or a broadcast) and kept as a parameter or buffer.",
        steps=(
            "Clone it where the model makes it: .expand(...).clone().",
            "Or put the file's tensors in the place of the model's.",
        ),
        patch=_ASSIGN,
        hides=("copy-failed",),
        example="unsupported operation: more than one element of the written-to tensor refers to a single memory "
        "location. Please clone() the tensor before performing the operation.",
    ),
    Message(
        kind="copy-failed",
        patterns=(
            rf"{_NAMED}{Q}, whose dimensions in the model are (?P<size>{_SIZE}) and whose dimensions in the checkpoint "
            r"are (?P=size), an exception occurred ?: ?\([\"'](?P<reason>[^\"')]{1,160})",
            rf"{_NAMED}{Q}, whose dimensions in the model are (?P<size>{_SIZE}) and whose dimensions in the checkpoint "
            r"are (?P=size)",
        ),
        says='torch could not copy {name}, though both sides have its shape; why, is in the quoted words: "{reason}".',
        brief="torch could not copy a tensor, though both sides have its shape; the words that say why are cut off.",
        why="load_state_dict shows the exception that it met while copying; it is not about names or shapes.",
        steps=(
            "Paste what stands behind the quoted words, too.",
            "Load to the CPU first, and move the model later: that leaves devices out of it.",
        ),
        asks=True,
        example='While copying the parameter named "fc.weight", whose dimensions in the model are torch.Size([2, 2]) '
        "and whose dimensions in the checkpoint are torch.Size([2, 2]), an exception occurred : ('x',).",
    ),
)
