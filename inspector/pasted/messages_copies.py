"""Messages of load_state_dict about one tensor that it could not copy, though its shape is right."""

from __future__ import annotations

from inspector.pasted.message import Message, Q

_NAMED = rf"While copying the parameter named {Q}(?P<name>[^\s\"'`,]{{1,512}})"
_SIZE = r"torch\.Size\(\[[0-9, ]{0,200}\]\)"
_ASSIGN = "model.load_state_dict(state, strict=True, assign=True)  # since torch 2.1\n"

MESSAGES: tuple[Message, ...] = (
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
        hides=("meta-copy", "copy-failed"),
        example='While copying the parameter named "fc.weight", whose dimensions in the model are torch.Size([2, 2]) '
        "and whose dimensions in the checkpoint are torch.Size([2, 2]), an exception occurred : ('Cannot copy out of "
        "meta tensor; no data!',).",
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
