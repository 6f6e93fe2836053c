"""Messages about the loading code: devices, types, wrappers, and what was taken for a model."""

from __future__ import annotations

from inspector.pasted.message import Message

_CPU = 'checkpoint = torch.load(path, map_location="cpu", weights_only=True)\n'
_TENSOR = r"(?:torch\.(?:cuda\.)?)?\w{2,40}"

MESSAGES: tuple[Message, ...] = (
    Message(
        kind="no-such-device",
        pattern=r"Attempting to deserialize object on an? (?P<device>\w{2,20}) device but "
        r"torch\.\w{2,20}\.is_available\(\) is False",
        says="The tensors were saved on a {device} device, and this machine has none.",
        why="torch.load puts every tensor back where it was, unless told otherwise.",
        steps=("Pass map_location; on the CPU everything loads.",),
        patch=_CPU,
        example="Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are",
    ),
    Message(
        kind="too-few-devices",
        pattern=r"Attempting to deserialize object on (?P<device>\w{2,20}) device (?P<index>[0-9]{1,4}) but "
        r"torch\.\w{2,20}\.device_count\(\) is (?P<count>[0-9]{1,4})",
        says="The tensors were saved on {device} device {index}, and this machine has {count}.",
        why="torch.load puts every tensor back on the device of the same number.",
        steps=("Pass map_location, then move the model where you want it.",),
        patch=_CPU,
        example="Attempting to deserialize object on CUDA device 1 but torch.cuda.device_count() is 1. Please use",
    ),
    Message(
        kind="unknown-device",
        pattern=r"don't know how to restore data location of [\w.]{1,80} \(tagged with (?P<device>[\w:]{1,40})\)",
        says="The tensors were saved on a device that this torch does not know: {device}.",
        why="It belongs to another build or another maker's accelerator.",
        steps=("Pass map_location; on the CPU everything loads.",),
        patch=_CPU,
        example="don't know how to restore data location of torch.storage.UntypedStorage (tagged with npu:0)",
    ),
    Message(
        kind="wrapped-attribute",
        pattern=r"'(?P<wrapper>DataParallel|DistributedDataParallel|FullyShardedDataParallel|OptimizedModule)' "
        r"object has no attribute '(?P<name>\w{1,100})'",
        says="{wrapper} is a wrapper: {name} belongs to the model inside it.",
        why="A wrapper passes on calls, not attributes.",
        steps=("Ask the model inside: model.module (model._orig_mod under torch.compile).",),
        patch='inner = getattr(model, "module", getattr(model, "_orig_mod", model))\ninner.{name}\n',
        example="AttributeError: 'DataParallel' object has no attribute 'fc'",
    ),
    Message(
        kind="state-dict-as-model",
        pattern=r"'(?:collections\.)?(?P<type>OrderedDict|dict)' object has no attribute "
        r"'(?P<name>eval|cuda|to|train|parameters|forward|"
        r"half|float|cpu|named_parameters|modules|children|named_modules|zero_grad|load_state_dict)'",
        says="What torch.load returned is a {type} of weights, not a model, so it has no .{name}.",
        why="The file holds a state dict or a training checkpoint: numbers without the network's code.",
        steps=(
            "Build the model, load the weights into it, then call .{name}.",
            "Open the file here: it says which model.",
        ),
        patch='state = torch.load(path, map_location="cpu", weights_only=True)\n'
        "# model = the class the weights were trained with\n"
        'model.load_state_dict(state)  # state["state_dict"] for a training checkpoint\n'
        "model.eval()\n",
        example="AttributeError: 'collections.OrderedDict' object has no attribute 'eval'",
    ),
    Message(
        kind="dict-as-model",
        pattern=r"'(?:collections\.)?(?P<type>OrderedDict|dict)' object has no attribute 'state_dict'",
        says="The file holds a {type}, not a model: there is nothing to call .state_dict() on.",
        why="It is a state dict already, or a training checkpoint with one inside.",
        steps=(
            'Use it as it is, or its entry "state_dict" or "model".',
            "Open the file here: it says where the weights lie.",
        ),
        patch='checkpoint = torch.load(path, map_location="cpu", weights_only=True)\n'
        'state = checkpoint.get("state_dict", checkpoint)\nmodel.load_state_dict(state)\n',
        example="AttributeError: 'dict' object has no attribute 'state_dict'",
    ),
    Message(
        kind="dict-called",
        pattern=r"'(?:collections\.)?(?P<type>OrderedDict|dict)' object is not callable",
        says="A {type} was called like a model.",
        why="torch.load returned weights; a model has to be built for them.",
        steps=("Build the model and load the weights into it.",),
        patch='model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))\n',
        example="TypeError: 'collections.OrderedDict' object is not callable",
    ),
    Message(
        kind="not-dict-like",
        pattern=r"Expected state_dict to be dict-like, got <class '(?P<type>[\w.]{1,200})'>",
        says="load_state_dict was given a {type} instead of a dictionary of tensors.",
        why="A path, a whole model or a list was passed: torch.load comes first, and of a model its state_dict().",
        steps=("Pass a state dict.",),
        patch='loaded = torch.load(path, map_location="cpu", weights_only=True)\nmodel.load_state_dict(loaded)\n',
        example="TypeError: Expected state_dict to be dict-like, got <class 'str'>.",
    ),
    Message(
        kind="no-such-entry",
        pattern=r"KeyError: "
        r"'(?P<name>state_dict|model_state_dict|model|net|model_state|ema|params|weights|optimizer|optimizer_state_dict|epoch)'",
        says='The file has no entry "{name}".',
        why="Either it is the state dict itself, or the weights lie under another name.",
        steps=("Print its keys, or open it here: it says where the weights lie.",),
        patch='checkpoint = torch.load(path, map_location="cpu", weights_only=True)\n'
        "print(list(checkpoint)[:10])\nstate = checkpoint.get({name!r}, checkpoint)\n",
        example="KeyError: 'state_dict'",
    ),
    Message(
        kind="two-devices",
        pattern=r"Expected all tensors to be on the same device(?:, but found at least two devices, "
        r"(?P<a>[\w:]{1,20}) and (?P<b>[\w:]{1,20}))?",
        says="The model and what it is given are on two devices.",
        why="After loading with map_location the model stays where it was built; inputs do not follow it.",
        steps=(
            "Move both to one device. A tensor that is no parameter and no registered buffer does not move with .to().",
        ),
        patch="device = next(model.parameters()).device\noutput = model(inputs.to(device))\n",
        example="RuntimeError: Expected all tensors to be on the same device, but found at least two "
        "devices, cuda:0 and cpu!",
    ),
    Message(
        kind="input-type",
        pattern=rf"Input type \((?P<input>{_TENSOR})\) and (?:weight|bias) type "
        rf"\((?P<weight>{_TENSOR})\) should be the same",
        says="The input is {input} and the weights are {weight}.",
        why="cuda in one of them means another device; Half, BFloat16 or Double another element type.",
        steps=("Bring the input to the device and type of the weights.",),
        patch="weight = next(model.parameters())\noutput = model(inputs.to(device=weight.device, "
        "dtype=weight.dtype))\n",
        example="Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same",
    ),
    Message(
        kind="scalar-type",
        pattern=r"expected (?:m1 and m2 to have the same dtype, but got: |(?:scalar|object of scalar) "
        r"type )(?P<want>\w{2,20})(?: but (?:found|got scalar type)| !=)? (?P<found>\w{2,20})",
        says="One tensor is {want}, the other {found}.",
        why="A checkpoint in half precision and inputs in float32 (or the other way round) meet.",
        steps=("Cast the input to the weights' type, or the model with .float(); or run under torch.autocast.",),
        patch="model = model.float()\noutput = model(inputs.float())\n",
        example="RuntimeError: expected scalar type Half but found Float",
    ),
    Message(
        kind="dtype-differs",
        pattern=r"mat1 and mat2 must have the same dtype, but got (?P<want>\w{2,20}) and (?P<found>\w{2,20})",
        says="One tensor is {want}, the other {found}.",
        why="A checkpoint in half precision and inputs in float32 (or the other way round) meet.",
        steps=("Cast the input to the weights' type, or the model with .float(); or run under torch.autocast.",),
        patch="model = model.float()\noutput = model(inputs.float())\n",
        example="RuntimeError: mat1 and mat2 must have the same dtype, but got Half and Float",
    ),
    Message(
        kind="half-on-cpu",
        pattern=r"not implemented for 'Half'",
        says="This operation does not run in half precision here, which on a CPU is common.",
        why="The weights are float16 and older CPU kernels have only float32.",
        steps=("Cast the model to float32, or run it on an accelerator.",),
        patch="model = model.float()\n",
        example="RuntimeError: \"slow_conv2d_cpu\" not implemented for 'Half'",
    ),
    Message(
        kind="parallel-device",
        pattern=r"module must have its parameters and buffers on device (?P<want>[\w:]{1,20}) "
        r"\(device_ids\[0\]\) but found one of them on device: (?P<found>[\w:]{1,20})",
        says="DataParallel wants the model on {want}, and a part of it is on {found}.",
        why="The weights were loaded to the CPU, or the model was never moved.",
        steps=("Move the model before wrapping it; for one device leave the wrapper out.",),
        patch="model = model.to({want!r})\nmodel = torch.nn.DataParallel(model)\n",
        example="module must have its parameters and buffers on device cuda:0 (device_ids[0]) but "
        "found one of them on device: cpu",
    ),
    Message(
        kind="out-of-memory",
        pattern=r"(?:CUDA out of memory|torch(?:\.cuda)?\.OutOfMemoryError|DefaultCPUAllocator: "
        r"(?:can't|not enough) (?:allocate )?memory)",
        says="There was not enough memory.",
        why="While loading, file and model are in memory at once; on a device, the file's copy of "
        "training (optimizer included) lands there too.",
        steps=(
            "Load to the CPU with mmap=True, and build the model on meta with assign=True.",
            "Open the file here: it says how much of it is optimizer state; the export leaves that out.",
        ),
        patch='state = torch.load(path, map_location="cpu", weights_only=True, mmap=True)\n'
        "model.load_state_dict(state, assign=True)\n",
        example="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.",
    ),
    Message(
        kind="meta-copy",
        pattern=r"Cannot copy out of meta tensor; no data!",
        says="The model has parameters without numbers (on the meta device).",
        why="It was built empty and not every tensor was loaded, or it was moved before loading.",
        steps=("Load with assign=True and look at what the strict load reports; use to_empty() only before loading.",),
        patch="model.load_state_dict(state, strict=True, assign=True)\n",
        example="NotImplementedError: Cannot copy out of meta tensor; no data!",
    ),
    Message(
        kind="optimizer-groups",
        pattern=r"loaded state dict (?:has a different number of parameter groups|contains a "
        r"parameter group that doesn't match the size of optimizer's group)",
        says="The optimizer's state was saved for other parameters than this optimizer has.",
        why="Parameters are counted, not named: a frozen, new or missing layer shifts every index.",
        steps=("Build the optimizer over the same parameters in the same order, or start it anew.",),
        example="ValueError: loaded state dict contains a parameter group that doesn't match the "
        "size of optimizer's group",
    ),
)
FOREIGN: tuple[Message, ...] = (
    Message(
        kind="keras",
        pattern=r"(?:Unable to (?:synchronously )?open file "
        r"\(|keras\.(?:src\.)?(?:models|saving|engine)|You are trying to load a weight file "
        r"containing [0-9]{1,6} layers|Unknown layer: )",
        says="This is an error of Keras or HDF5, not of torch.",
        why="The file or the code belongs to another framework.",
        steps=("Load it with Keras; for a model in torch its weights have to be converted.",),
        example="OSError: Unable to synchronously open file (file signature not found)",
        ours=False,
    ),
    Message(
        kind="tensorflow",
        pattern=r"(?:tensorflow\.python|SavedModel file does not exist "
        r"at|tf\.errors|DataLossError|NewCheckpointReader)",
        says="This is an error of TensorFlow, not of torch.",
        why="The file or the code belongs to another framework.",
        steps=("Load it with TensorFlow; for a model in torch its weights have to be converted.",),
        example="OSError: SavedModel file does not exist at: model/{saved_model.pbtxt|saved_model.pb}",
        ours=False,
    ),
    Message(
        kind="onnxruntime",
        pattern=r"onnxruntime\.capi|\[ONNXRuntimeError\]",
        says="This is an error of ONNX Runtime, not of torch.",
        why="It runs exported programs; their weights can be looked at here.",
        steps=("Open the .onnx file here to see its tensors.",),
        example="onnxruntime.capi.onnxruntime_pybind11_state.InvalidProtobuf: [ONNXRuntimeError] : 7",
        ours=False,
    ),
)
