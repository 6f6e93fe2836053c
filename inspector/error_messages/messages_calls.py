"""Messages of calls: what is no module yet, has no forward, or is given something that is no tensor."""

from __future__ import annotations

from inspector.error_messages.message import Message, Q

MESSAGES: tuple[Message, ...] = (
    Message(
        kind="module-before-init",
        patterns=(r"annot assign (?:module|parameter)s? before (?:Module\.)?__init__\(\) call",),
        says="A module was given parts before it was one.",
        why="The first line of its __init__ has to be super().__init__().",
        steps=("Add super().__init__() as the first line.",),
        example="AttributeError: cannot assign module before Module.__init__() call",
    ),
    Message(
        kind="no-forward",
        patterns=(
            r"is missing the required .{0,3}forward.{0,3} function",
            r"ModuleList\.forward|_forward_unimplemented",
        ),
        says="What was called has no forward.",
        why="It is a container (ModuleList, ModuleDict), its method has another name, or is indented into __init__.",
        steps=("Name the method forward, at the level of __init__.", "A list: for layer in self.layers: x = layer(x)."),
        example='NotImplementedError: Module [ModuleList] is missing the required "forward" function',
    ),
    Message(
        kind="tuple-as-input",
        patterns=(
            r"received an invalid combination of arguments - got \((?:tuple|list),",
            rf"argument {Q}input{Q} \(position 1\) must be Tensor, not (?:tuple|list)\b",
            rf"{Q}(?:tuple|list){Q} object has no attribute {Q}(?:dim|size|shape){Q}(?!\w)",
        ),
        says="A layer was given several tensors in one tuple.",
        why="LSTM, GRU and MultiheadAttention give back (output, state); nn.Sequential hands on both.",
        steps=("Take the first: output, _ = lstm(x).",),
        hides=("input-is-no-tensor",),
        example="TypeError: linear(): argument 'input' (position 1) must be Tensor, not tuple",
    ),
    Message(
        kind="input-is-no-tensor",
        patterns=(
            r"received an invalid combination of arguments - got \((?P<got>[\w.]{2,60}),",
            rf"argument {Q}input{Q} \(position 1\) must be Tensor, not (?P<got>[\w.]{{2,60}}\b)",
            rf"{Q}(?P<got>numpy\.ndarray|Image|JpegImageFile|PngImageFile){Q} object has no attribute {Q}dim{Q}(?!\w)",
        ),
        says="A layer was given {got} in place of a tensor.",
        brief="A layer was given something that is no tensor.",
        why="A picture or array has to become a tensor first.",
        steps=("torchvision.transforms.ToTensor() for pictures, torch.from_numpy() for arrays; then .unsqueeze(0).",),
        example="TypeError: conv2d() received an invalid combination of arguments - got (numpy.ndarray, Parameter, "
        "NoneType, tuple, tuple, tuple, int), but expected one of:",
    ),
    Message(
        kind="to-numpy",
        patterns=(
            r"Can.{0,3}t call numpy\(\) on (?:Tensor|Variable) that requires grad",
            r"t convert (?:cuda|mps|CUDA)[\w:]{0,6} (?:device type )?tensor to numpy",
        ),
        says="A tensor is to become an array while it is on another device or belongs to a graph of gradients.",
        why="NumPy sees the CPU's memory alone and knows no gradients.",
        steps=("x.detach().cpu().numpy()", "To predict: with torch.no_grad()."),
        example="RuntimeError: Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
    ),
)
