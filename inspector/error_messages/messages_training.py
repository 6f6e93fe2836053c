"""Messages of training: losses, labels, gradients, batches of one."""

from __future__ import annotations

from inspector.error_messages.message import Message

_N = r"[0-9]{1,12}"

MESSAGES: tuple[Message, ...] = (
    Message(
        kind="batch-norm-of-one",
        patterns=(r"Expected more than 1 value per channel when training",),
        says="A batch norm in training mode received one value per channel, of which there is no variance.",
        why="The model is in training mode and the batch has a single picture, or the last batch of an epoch has.",
        steps=("To predict: model.eval().", "To train: DataLoader(..., drop_last=True), or larger batches."),
        patch="model.eval()\n",
        example="ValueError: Expected more than 1 value per channel when training, got input size torch.Size([1, 512])",
    ),
    Message(
        kind="target-range",
        patterns=(
            rf"Target (?P<got>-?{_N}) is out of bounds",
            r"Assertion .{1,30}t >= 0 && t < n_classes",
            r"nll_loss.{1,80}Assertion .{1,10}t >= 0",
            r"Assertion .{0,2}cur_target >= 0",
        ),
        says="A label is {got}, which the model has no class for.",
        brief="A label is a number that the model has no class for.",
        why="Classes are counted from 0: with n outputs labels go to n - 1.",
        steps=("Compare labels.min() and labels.max() with the last layer's outputs.",),
        example="IndexError: Target 10 is out of bounds.",
    ),
    Message(
        kind="batch-of-targets",
        patterns=(rf"xpected input batch_size \((?P<got>{_N})\) to match target batch_size \((?P<takes>{_N})\)",),
        says="There are other numbers of answers and labels.",
        why="Something joined the batch with another dimension: view(-1, ...) where flatten(1) was meant.",
        steps=("Print the shapes of output and target before the loss.",),
        example="ValueError: Expected input batch_size (32) to match target batch_size (16).",
    ),
    Message(
        kind="target-shape",
        patterns=(
            r"Using a target size \(torch\.Size\(\[(?P<takes>[0-9, ]{0,40})\]\)\) that is different to the input size "
            r"\(torch\.Size\(\[(?P<got>[0-9, ]{0,40})\]\)\)",
            r"Using a target size \(torch",
            r"multi-target not supported",
        ),
        says="The answers are laid out as [{got}] and the labels as [{takes}].",
        brief="The answers and the labels have different shapes.",
        why="Mostly one has a dimension of 1 that the other has not. Where multi-targets are not supported, each label "
        "is to be one number and is a row of them: [n, 1], or one-hot.",
        steps=(
            "Answers of [n, 1]: output.squeeze(1), or target.unsqueeze(1).",
            "Labels of [n, 1]: target.squeeze(1); one-hot: target.argmax(1), or BCEWithLogitsLoss for several at once.",
        ),
        example="ValueError: Using a target size (torch.Size([4])) that is different to the input size "
        "(torch.Size([4, 1])) is deprecated.",
    ),
    Message(
        kind="target-type",
        patterns=(
            r"xpected target dtype to be Long or Byte, but got (?P<got>\w{3,12})",
            r"xpected (?:object of )?scalar type Long but (?:got scalar type|found) "
            r"(?P<got>Float|Double|Half|BFloat16)",
        ),
        says="Labels, or indices, are {got} and have to be whole numbers.",
        why="Losses over classes (cross_entropy, nll_loss), gather and embeddings count with Long.",
        steps=(
            "target = target.long(); in a Dataset: torch.tensor(label, dtype=torch.long).",
            "Probabilities as labels: cross_entropy takes them in the answers' shape, from torch 1.10 on.",
        ),
        hides=("scalar-type",),
        example="RuntimeError: expected scalar type Long but found Float",
    ),
    Message(
        kind="scalar-backward",
        patterns=(r"grad can be implicitly created only for scalar outputs",),
        says="backward was called on more than one number.",
        why="It differentiates one: a loss.",
        steps=("loss.mean().backward(), or sum(); a loss with reduction='none' gives one number for each answer.",),
        example="RuntimeError: grad can be implicitly created only for scalar outputs",
    ),
    Message(
        kind="no-cuda",
        patterns=(r"Found no NVIDIA driver", r"Torch not compiled with CUDA enabled", r"No CUDA GPUs are available"),
        says="Something is to go to a GPU, and torch finds none here.",
        why="The machine has no NVIDIA card or driver, torch came without CUDA, or CUDA_VISIBLE_DEVICES is empty.",
        steps=(
            'device = "cuda" if torch.cuda.is_available() else "cpu", and .to(device) everywhere in place of .cuda().',
            "A checkpoint: torch.load(path, map_location=device).",
        ),
        example="AssertionError: Torch not compiled with CUDA enabled",
    ),
    Message(
        kind="device-side-assert",
        patterns=(r"device-side assert triggered",),
        says="An index was out of range on the GPU; which one, the GPU does not say.",
        why="Mostly a label that the model has no class for, or a token that an embedding has no row for. What runs on "
        "the GPU fails later than the line that is shown.",
        steps=("Run the same batch on the CPU: the message then names it.", "Or set CUDA_LAUNCH_BLOCKING=1."),
        example="RuntimeError: CUDA error: device-side assert triggered",
    ),
    Message(
        kind="no-gradient",
        patterns=(r"element 0 of tensors does not require grad and does not have a grad_fn",),
        says="backward was called on something that no parameter leads to.",
        why="Everything is frozen, it was computed under no_grad or inference_mode, or detached on the way.",
        steps=("Look for torch.no_grad, .detach(), .item() and requires_grad_(False) before the loss.",),
        example="RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn",
    ),
    Message(
        kind="changed-in-place",
        patterns=(r"one of the variables needed for gradient computation has been modified by an inplace operation",),
        says="A tensor that backward needs was changed in place.",
        why="x += y, x[...] = ..., or inplace=True on something that another layer still needs.",
        steps=("Write x = x + y, and inplace=False.", "torch.autograd.set_detect_anomaly(True) names the line."),
        example="RuntimeError: one of the variables needed for gradient computation has been modified by an inplace "
        "operation: [torch.FloatTensor [3, 3]], which is output 0 of ReluBackward0, is at version 1",
    ),
    Message(
        kind="leaf-in-place",
        patterns=(
            r"leaf Variable that requires grad (?:is being|has been) used in an in-?place operation",
            r"view of a leaf Variable that requires grad is being used in an in-?place operation",
        ),
        says="A parameter, or another tensor that wants a gradient, was changed in place.",
        why="The gradient of a number that is overwritten has nowhere to go.",
        steps=(
            "To set values: with torch.no_grad(): weight.copy_(...), or weight.data.",
            "In a forward: y = x + 1 in place of x += 1; x = x.clone() before x[...] = ....",
        ),
        example="RuntimeError: a leaf Variable that requires grad is being used in an in-place operation.",
    ),
    Message(
        kind="backward-twice",
        patterns=(r"rying to backward through the graph a second time",),
        says="backward was called a second time on a graph that the first one freed.",
        why="Two losses share a part, or a state is carried from step to step without detach().",
        steps=("Add the losses and call backward once.", "In loops: state = state.detach()."),
        example="RuntimeError: Trying to backward through the graph a second time (or directly access saved tensors "
        "after they have already been freed).",
    ),
)
