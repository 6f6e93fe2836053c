"""Messages of a forward: shapes, channels, types and devices that do not fit what the weights expect.

The wordings are those of torch 1.0 to 2.15: newer ones provoked (tests/error_messages/test_forward.py), older ones from
public threads and from torch's own sources of that release.
"""

from __future__ import annotations

from inspector.error_messages.message import Message, Q
from inspector.error_messages.report import Cause

_N = r"[0-9]{1,12}"
_SIZES = r"\[?(?P<sizes>[0-9]{1,9}(?:[, x]{1,3}[0-9]{1,9}){0,7})\]?"
_SHAPE_STEP = "Print x.shape in front of the layer that fails; a forward hook on every module finds which one it is."

_TYPES_WHY = (
    "NumPy makes float64 (Double), and checkpoints may be in half precision; the input has to have the type of the "
    "weights."
)
_TYPES_STEPS = ("Cast the input to the weights' type, or the model with .float(); or run under torch.autocast.",)
_TYPES_PATCH = "model = model.float()\noutput = model(inputs.float())\n"

MESSAGES: tuple[Message, ...] = (
    Message(
        kind="linear-features",
        patterns=(
            rf"mat1 and mat2 shapes cannot be multiplied \({_N}x(?P<got>{_N}) and (?P<takes>{_N})x{_N}\)",
            r"mat1 dim 1 must match mat2 dim 0",
            rf"size mismatch, m1: \[{_N} x (?P<got>{_N})\], m2: \[(?P<takes>{_N}) x {_N}\]",
            rf"size mismatch, got (?P<rows>{_N}), (?:{_N})x(?P<takes>{_N}),(?P<got>{_N})",
            r"mat1 and mat2 shapes cannot be multiplied",
        ),
        says="A linear layer, or a product of matrices, takes {takes} features and received {got}.",
        brief="A linear layer received another number of features than it takes.",
        why="Mostly a picture of another size than the network was made for: what is flattened before the head is then "
        "longer or shorter.",
        steps=(
            "Give it pictures of the size it was trained with, or pool before the head: nn.AdaptiveAvgPool2d.",
            "Flatten from the second dimension on, x.flatten(1), so that the batch stays.",
            "Between two tensors of your own one is to be transposed: a @ b.T.",
            _SHAPE_STEP,
        ),
        causes=(
            Cause(
                "not-flattened",
                "A map or sequence was not flattened, so its last axis is taken.",
                "the first number in the message is many times the batch",
            ),
            Cause("picture-size", "The picture has another size than in training.", "it is behind flatten or view"),
        ),
        example="RuntimeError: mat1 and mat2 shapes cannot be multiplied (1x4096 and 25088x4096)",
    ),
    Message(
        kind="grey-picture",
        patterns=(rf"input ?\[{_N}, 1, {_N}, {_N}\] to have 3 channels, but got 1 channels? instead",),
        says="The network takes pictures of three channels and received one of a single channel (grey).",
        why="A grey picture was opened as it is, or mode L.",
        steps=('Open it with Image.open(path).convert("RGB").', "Or repeat the channel: x.repeat(1, 3, 1, 1)."),
        hides=("convolution-channels",),
        example="RuntimeError: Given groups=1, weight of size [64, 3, 7, 7], expected input[1, 1, 224, 224] to have 3 "
        "channels, but got 1 channels instead",
    ),
    Message(
        kind="picture-with-alpha",
        patterns=(rf"input ?\[{_N}, 4, {_N}, {_N}\] to have 3 channels, but got 4 channels instead",),
        says="The network takes pictures of three channels and received four: the fourth is transparency.",
        why="A PNG with an alpha channel was opened as it is.",
        steps=('Open it with Image.open(path).convert("RGB").',),
        hides=("convolution-channels",),
        example="RuntimeError: Given groups=1, weight of size [64, 3, 7, 7], expected input[1, 4, 224, 224] to have 3 "
        "channels, but got 4 channels instead",
    ),
    Message(
        kind="channels-last",
        patterns=(rf"input\[{_N}, {_N}, {_N}, (?:1|3|4)\] to have (?:1|3|4) channels, but got {_N} channels",),
        says="The channels stand last in the input; torch wants them in front of height and width.",
        why="Pictures from NumPy, OpenCV and PIL are (height, width, channels).",
        steps=("x = x.permute(0, 3, 1, 2)", "Or make the tensor with torchvision.transforms.ToTensor()."),
        hides=("convolution-channels",),
        example="RuntimeError: Given groups=1, weight of size [64, 3, 7, 7], expected input[1, 224, 224, 3] to have 3 "
        "channels, but got 224 channels instead",
    ),
    Message(
        kind="convolution-channels",
        patterns=(
            rf"expected input ?{_SIZES} to have (?P<takes>{_N}) channels, but got (?P<got>{_N}) channels? instead",
            rf"to have (?P<takes>{_N}) channels, but got (?P<got>{_N}) channels? instead",
            rf"Given groups=(?:{_N}), weight of size",
        ),
        says="A convolution takes {takes} channels and received {got}.",
        brief="A convolution received another number of channels than it takes.",
        why="The input, or what an earlier layer gives, is as wide as another network's.",
        steps=(
            "In the first layer: look at the picture's channels and their place, (batch, channels, height, width).",
            "Further in: two parts were joined that do not belong together, or torch.cat gave more channels.",
            _SHAPE_STEP,
        ),
        example="RuntimeError: Given groups=1, weight of size [64, 256, 3, 3], expected input[1, 128, 28, 28] to have "
        "256 channels, but got 128 channels instead",
    ),
    Message(
        kind="batch-dimension",
        patterns=(
            r"Expected (?P<wants>3)-dimensional input for 3-dimensional weight.{1,60}but got (?P<got>2)-dim",
            r"Expected (?P<wants>4)-dimensional input for 4-dimensional weight.{1,60}but got (?P<got>3)-dim",
            r"Expected (?P<wants>5)-dimensional input for 5-dimensional weight.{1,60}but got (?P<got>4)-dim",
            r"expected (?P<wants>4)D input \(got (?P<got>3)D input\)",
            r"expected (?P<wants>5)D input \(got (?P<got>4)D input\)",
        ),
        says="A layer wants an input of {wants} dimensions and received {got}: the batch is missing.",
        why="A network takes (batch, channels, ...); a single picture or volume is (channels, ...).",
        steps=("x = x.unsqueeze(0)", "Or squeeze() and indexing took it away before: keep it with x[:1]."),
        hides=("input-dimensions",),
        example="ValueError: expected 4D input (got 3D input)",
    ),
    Message(
        kind="input-dimensions",
        patterns=(
            r"Expected (?P<wants>[345])-dimensional input for [345]-dimensional weight.{1,60}but got "
            r"(?P<got>[0-9])-dimensional input",
            r"Expected [23]D \(unbatched\) or [345]D \(batched\) input to conv",
            r"expected (?P<wants>[0-9](?:D or [0-9])?)D input \(got (?P<got>[0-9])D input\)",
            r"Expected [0-9]D or [0-9]D \(batch mode\) tensor",
            r"Expected [0-9]-dimensional input for [0-9]-dimensional weight",
        ),
        says="A layer wants an input of {wants} dimensions and received {got}.",
        brief="A layer received an input with another number of dimensions than it takes.",
        why="A convolution over pictures takes (batch, channels, height, width), a linear layer (batch, features), a "
        "1-d convolution (batch, channels, length); a 2-d batch norm the first, a 1-d one the other two.",
        steps=(
            "Flattened pictures: x.view(-1, channels, height, width).",
            "A single one without its batch: x.unsqueeze(0).",
            "One dimension too many: x.squeeze(), or the layer of that number of dimensions.",
        ),
        example="RuntimeError: Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [5, 7]",
    ),
    Message(
        kind="norm-width",
        patterns=(
            rf"running_mean should contain (?P<got>{_N}) elements not (?P<takes>{_N})",
            rf"weight should contain (?P<got>{_N}) elements not (?P<takes>{_N})",
            rf"Given normalized_shape=\[(?P<takes>{_N})\], expected input with shape \[\*, {_N}\], but got input of "
            rf"size ?\[(?:{_N}, ){{0,5}}(?P<got>{_N})\]",
            r"Given normalized_shape=",
            rf"number of channels in input, but got weight of shape \[(?P<takes>{_N})\] and input of shape "
            rf"\[{_N}, (?P<got>{_N})",
            r"Expected number of channels in input to be divisible by num_groups",
        ),
        says="A norm was made for a width of {takes} and received {got}.",
        brief="A norm received another width than it was made for.",
        why="The layers around it are another network's, or a dimension is at another place than it expects.",
        steps=("A layer norm takes its width last; a batch norm second.", _SHAPE_STEP),
        example="RuntimeError: running_mean should contain 128 elements not 64",
    ),
    Message(
        kind="picture-size",
        patterns=(
            rf"Input (?:height|width) \((?P<got>{_N})[^)]{{0,12}}\) doesn{Q}t match model \((?P<takes>{_N})",
            rf"Wrong image (?:height|width)! Expected (?P<takes>{_N}) but got (?P<got>{_N})",
            rf"Input image size \((?P<got>{_N})\*{_N}\) doesn{Q}t match model \((?P<takes>{_N})\*",
        ),
        says="The network takes pictures of {takes} pixels and received {got}.",
        brief="The network takes pictures of another size.",
        why="A vision transformer has a table of positions for one size.",
        steps=(
            "Resize the picture to that size.",
            "Or build the network for yours (timm: img_size=...) and resize the table of positions.",
        ),
        example="AssertionError: Input height (384) doesn't match model (224).",
    ),
    Message(
        kind="picture-too-small",
        patterns=(
            r"Kernel size can.{0,3}t be greater than actual input size",
            r"Given input size: \([0-9x]{3,40}\)\. Calculated output size: \([0-9x]{3,40}\)\. Output size is too small",
            r"Output size is too small",
            r"Calculated padded input size per channel",
        ),
        says="What reaches a layer is smaller than its kernel: the picture is too small for this network.",
        why="Each stride halves the map; after five of them 32 pixels are one.",
        steps=(
            "Give it larger pictures, 224 pixels for most networks.",
            "Height and width may also stand in other places.",
        ),
        example="RuntimeError: Calculated padded input size per channel: (1 x 1). Kernel size: (3 x 3). Kernel size "
        "can't be greater than actual input size",
    ),
    Message(
        kind="view-size",
        patterns=(rf"shape {Q}\[(?P<wanted>[-0-9, ]{{1,60}})\]{Q} is invalid for input of size (?P<got>{_N})",),
        says="{got} numbers cannot be laid out as [{wanted}].",
        why="view or reshape names sizes of a picture or batch of another size.",
        steps=(
            "Let one size follow: x.view(x.size(0), -1) or x.flatten(1).",
            "Give it pictures of the size it was made for.",
        ),
        example="RuntimeError: shape '[-1, 25088]' is invalid for input of size 18432",
    ),
    Message(
        kind="view-stride",
        patterns=(r"view size is not compatible with input tensor.{0,3}s size and stride",),
        says="view cannot lay out a tensor whose numbers do not lie one behind the other.",
        why="It was transposed, permuted or sliced before.",
        steps=("Use x.reshape(...), or x.contiguous().view(...).",),
        example="RuntimeError: view size is not compatible with input tensor's size and stride (at least one dimension "
        "spans across two contiguous subspaces). Use .reshape(...) instead.",
    ),
    Message(
        kind="cat-sizes",
        patterns=(
            rf"Sizes of tensors must match except in dimension {_N}\. Expected size (?P<takes>{_N}) but got size "
            rf"(?P<got>{_N})",
            rf"Sizes of tensors must match except in dimension {_N}\. Got (?P<takes>{_N}) and (?P<got>{_N})",
            r"Sizes of tensors must match except in dimension",
            r"Tensors must have same number of dimensions: got",
            r"zero-dimensional tensor \(at position [0-9]{1,4}\) cannot be concatenated",
        ),
        says="Tensors of {takes} and {got} places are to be joined.",
        brief="Tensors of different sizes are to be joined.",
        why="In a U-Net: a picture that cannot be halved so often without a rest comes back one pixel off.",
        steps=(
            "Pad or resize the picture to a multiple of 32.",
            "Or bring one to the size of the other: F.interpolate(x, size=skip.shape[2:]).",
        ),
        example="RuntimeError: Sizes of tensors must match except in dimension 1. Expected size 28 but got size 29 for "
        "tensor number 1 in the list.",
    ),
    Message(
        kind="broadcast-sizes",
        patterns=(
            rf"size of tensor a \((?P<one>{_N})\) must match the size of tensor b \((?P<other>{_N})\) at non-singleton "
            rf"dimension (?P<dim>{_N})",
            r"must match the size of tensor b",
        ),
        says="Two tensors meet that have {one} and {other} places in dimension {dim}.",
        brief="Two tensors meet whose sizes do not fit each other.",
        why="In a transformer mostly the tokens of a picture of another size and its table of positions; in a residual "
        "network a shortcut without its convolution.",
        steps=("Give it pictures of the size it was made for.", _SHAPE_STEP),
        causes=(
            Cause("picture-size", "The picture has another size than the table of positions.", "dimension 1 of tokens"),
            Cause("other-part", "A part of another width or stride was put in.", "dimension 1 of maps, or the last"),
        ),
        example="RuntimeError: The size of tensor a (197) must match the size of tensor b (577) at non-singleton "
        "dimension 1",
    ),
    Message(
        kind="stack-sizes",
        patterns=(
            r"stack expects each tensor to be equal size, but got",
            # Before 1.5 stack was cat along a new dimension, and said so.
            r"Sizes of tensors must match except in dimension 0\. Got",
        ),
        says="A batch is to be made of pictures of different sizes.",
        why="DataLoader puts one beside the other, and they have to be equal.",
        steps=("Crop or resize all to one size in the transforms.", "Or give the DataLoader a collate_fn of your own."),
        example="RuntimeError: stack expects each tensor to be equal size, but got [3, 224, 300] at entry 0 and "
        "[3, 224, 224] at entry 1",
    ),
    Message(
        kind="recurrent-width",
        patterns=(
            rf"input\.size\(-1\) must be equal to input_size\. Expected (?P<takes>{_N}), got (?P<got>{_N})",
            r"input\.size\(-1\) must be equal to input_size",
        ),
        says="A recurrent layer takes {takes} features in each step and received {got}.",
        brief="A recurrent layer received another number of features than it takes.",
        why="The features stand last; before them (length, batch), or (batch, length) with batch_first=True.",
        steps=(_SHAPE_STEP,),
        example="RuntimeError: input.size(-1) must be equal to input_size. Expected 128, got 64",
    ),
    Message(
        kind="recurrent-state",
        patterns=(
            r"Expected hidden(?:\[[01]\])? size [(\[](?P<takes>[0-9, ]{3,40})[)\]], got [(\[]"
            r"(?P<got>[0-9, ]{3,40})[)\]]",
            r"For (?:batched|unbatched) [23]-D input, hx and cx should also be",
            r"For (?:batched|unbatched) [23]-D input, hx should also be",
        ),
        says="A recurrent layer wants a state of [{takes}] and received [{got}].",
        brief="A recurrent layer received a state of another shape than it wants.",
        why="A state is (layers x directions, batch, width), also where batch_first=True. Mostly it is one of another "
        "batch: the last of an epoch is smaller, or batch and length stand in each other's place.",
        steps=(
            "Make it of the batch in hand: torch.zeros(layers, x.size(0 if batch_first else 1), width).",
            "Or leave it out: zeros are the default. To carry it on: DataLoader(..., drop_last=True).",
        ),
        example="RuntimeError: Expected hidden size (2, 32, 128), got [2, 64, 128]",
    ),
    Message(
        kind="matmul-sizes",
        patterns=(
            rf"Expected size for first two dimensions of batch2 tensor to be: \[{_N}, (?P<takes>{_N})\] but got: "
            rf"\[{_N}, (?P<got>{_N})\]",
            rf"Expected tensor to have size (?P<takes>{_N}) at dimension 1, but got size (?P<got>{_N}) for argument #2 "
            r".{0,2}(?:batch2|mat2)",
            r"Expected batch2_sizes\[0\] == bs",
            r"batch1 and batch2 must have same number of batches",
            rf"inconsistent tensor size, expected tensor \[{_N}\] and src \[{_N}\] to have the same number of elements",
        ),
        says="A product of matrices: the rows of one have {takes} places and the columns of the other {got}.",
        brief="Two matrices, or batches of them, do not fit to be multiplied.",
        why="One of them is to be transposed, or was already; or heads and tokens stand in each other's place.",
        steps=("In attention: q @ k.transpose(-2, -1), then @ v.", _SHAPE_STEP),
        example="RuntimeError: Expected size for first two dimensions of batch2 tensor to be: [8, 64] but got: "
        "[8, 50].",
    ),
    Message(
        kind="scalar-type",
        patterns=(
            r"expected (?:m1 and m2 to have the same dtype, but got: |(?:scalar|object of scalar) "
            r"type )(?P<want>\w{2,20})(?: but (?:found|got scalar type)| !=) (?P<found>\w{2,20})",
        ),
        says="One tensor is {want}, the other {found}.",
        why=_TYPES_WHY,
        steps=_TYPES_STEPS,
        patch=_TYPES_PATCH,
        example="RuntimeError: expected scalar type Half but found Float",
    ),
    Message(
        kind="dtype-differs",
        patterns=(
            r"mat1 and mat2 must have the same dtype, but got (?P<want>\w{2,20}) and (?P<found>\w{2,20})",
            r"mat1 and mat2 must have the same dtype",
        ),
        says="One tensor is {want}, the other {found}.",
        brief="Two tensors of different types are multiplied.",
        why=_TYPES_WHY,
        steps=_TYPES_STEPS,
        patch=_TYPES_PATCH,
        example="RuntimeError: mat1 and mat2 must have the same dtype, but got Half and Float",
    ),
    Message(
        kind="whole-numbers",
        patterns=(
            rf"not implemented for {Q}(?:torch\.)?(?P<got>Byte|Long|Int|Bool|Char|Short)(?:Tensor)?\b",
            r"not implemented for type torch\.(?P<got>Byte|Long|Int|Bool|Char|Short)Tensor",
            r"mean\(\): input dtype should be either floating point or complex dtypes\. Got (?P<got>\w{3,12}) instead",
            r"an only calculate the mean of floating types\. Got (?P<got>\w{3,12}) instead",
            r"could not infer output dtype\. Input dtype must be either a floating point or complex dtype\. Got: "
            r"(?P<got>\w{3,12})",
            r"value cannot be converted to type u?int[0-9]{1,2}_t without overflow",
        ),
        says="This operation is not made for whole numbers ({got}).",
        brief="This operation is not made for whole numbers.",
        why="Pictures read as bytes, and labels or indices that are whole, have no convolutions, means or softmax.",
        steps=("x = x.float() before it; a picture: torchvision.transforms.ToTensor().",),
        example="NotImplementedError: \"softmax_lastdim_kernel_impl\" not implemented for 'Long'",
    ),
    Message(
        kind="index-type",
        patterns=(
            r"xpected tensor for argument #1 .indices. to have (?:one of the following )?scalar types?:? Long",
            r"indices must be Long, Int",
        ),
        says="An embedding was given numbers that are no indices.",
        why="It looks up rows by whole numbers (Long or Int).",
        steps=("x = x.long()",),
        example="RuntimeError: Expected tensor for argument #1 'indices' to have one of the following scalar types: "
        "Long, Int; but got torch.FloatTensor instead (while checking arguments for embedding)",
    ),
    Message(
        kind="index-range",
        patterns=(
            r"index out of range in self",
            r"index out of range: Tried to access index",
            r"index out of range at .{1,40}TH/generic",
        ),
        says="An embedding was asked for a row that it does not have.",
        why="A token's number is beyond the vocabulary or negative (padding of -1), or the text is longer than the "
        "table of positions.",
        steps=(
            "Compare x.min() and x.max() with num_embeddings: the tokenizer may belong to another model.",
            "Cut texts at the model's length (truncation=True).",
        ),
        example="IndexError: index out of range in self",
    ),
)
