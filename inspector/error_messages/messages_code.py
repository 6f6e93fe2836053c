"""Messages about the loading code: devices, types, wrappers, and what was taken for a model."""

from __future__ import annotations

from inspector.error_messages.message import Message, Q
from inspector.error_messages.report import Cause

_CPU = 'checkpoint = torch.load(path, map_location="cpu", weights_only=True)\n'
_TENSOR = r"(?:torch\.(?:cuda\.)?)?(?:unsigned )?\w{2,40}"
_WRAPPER = r"(?P<wrapper>DataParallel|DistributedDataParallel|FullyShardedDataParallel|OptimizedModule)"
_DICT = rf"{Q}(?:collections\.)?(?P<type>OrderedDict|dict){Q} object"
_OF_MODELS = (
    "eval|cuda|to|train|parameters|forward|half|float|cpu|named_parameters|modules|children|named_modules|zero_grad|"
    "load_state_dict"
)
_CONTAINERS = (
    r"(?:\w{1,40}_)?(?:state_dict|model_state)|model|net|network|generator|ema|params|params_ema|weights?|module|state|"
    "optimizer|epoch|config|args|hyper_parameters"
)

MESSAGES: tuple[Message, ...] = (
    Message(
        kind="no-such-device",
        patterns=(
            r"serialize object on an? (?P<device>\w{2,20}) device but torch\.\w{2,20}\.is_available\(\) is False",
            r"serialize object on an? (?P<device>[A-Z]{2,10})\b(?! device \d)",
            r"If you are running on a CPU-only machine",
            r"map_location ?= ?torch\.device\(.{0,4}cpu.{0,4}\) to map your storages",
            r"to map your storages to the CPU",
        ),
        says="The tensors were saved on a {device} device, and this machine has none.",
        brief="The tensors were saved on a device that this machine has not.",
        why="torch.load puts every tensor back where it was, unless told otherwise.",
        steps=("Pass map_location; on the CPU everything loads.",),
        patch=_CPU,
        hides=("device-cut",),
        example="Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are",
    ),
    Message(
        kind="too-few-devices",
        patterns=(
            r"serialize object on (?P<device>\w{2,20}) device (?P<index>[0-9]{1,4}) but "
            r"torch\.\w{2,20}\.device_count\(\) is (?P<count>[0-9]{1,4})",
            r"serialize object on \w{2,20} device [0-9]",
            r"torch\.cuda\.device_count\(\) is [0-9]",
            r"to map your storages to an existing device",
        ),
        says="The tensors were saved on {device} device {index}, and this machine has {count}.",
        brief="The tensors were saved on a device of a number that this machine has not.",
        why="torch.load puts every tensor back on the device of the same number.",
        steps=("Pass map_location, then move the model where you want it.",),
        patch=_CPU,
        hides=("device-cut",),
        example="Attempting to deserialize object on CUDA device 1 but torch.cuda.device_count() is 1. Please use",
    ),
    Message(
        kind="device-cut",
        patterns=(r"ttempting to deserialize object", r"use torch\.load with map_location"),
        says="The tensors were saved on a device that is not there.",
        why="torch.load puts every tensor back where it was, unless told otherwise.",
        steps=("Pass map_location; on the CPU everything loads.",),
        patch=_CPU,
        causes=(
            Cause("no-such-device", "This machine has no such device.", "torch.cuda.is_available() is False"),
            Cause("too-few-devices", "It has fewer of them.", "torch.cuda.device_count() is below the file's number"),
        ),
        example="RuntimeError('Attempting to deserialize object",
    ),
    Message(
        kind="unknown-device",
        patterns=(
            r"don'?t know how to restore data location of [\w.]{1,80} \(tagged with (?P<device>[\w:]{1,40})\)",
            r"don'?t know how to restore data location",
        ),
        says="The tensors were saved on a device that this torch does not know: {device}.",
        brief="The tensors were saved on a device that this torch does not know.",
        why="It belongs to another build or another maker's accelerator.",
        steps=("Pass map_location; on the CPU everything loads.",),
        patch=_CPU,
        example="don't know how to restore data location of torch.storage.UntypedStorage (tagged with npu:0)",
    ),
    Message(
        kind="old-wrapper",
        patterns=(
            rf"{_WRAPPER}{Q} object has no attribute {Q}(?P<name>src_device_obj|device_ids|static_graph|_modules)",
        ),
        says="The file is a whole pickled {wrapper} of another torch: {name} is an attribute of the wrapper itself.",
        why="torch.save(model) stores the wrapper's fields as they were; other releases of torch have others.",
        steps=(
            "Take the model out of the wrapper, which has no weights of its own.",
            "Or open the file here: the weights are read without the wrapper, and written as a state dict.",
        ),
        patch="model = model.module\n",
        hides=("wrapped-attribute",),
        example="torch.nn.modules.module.ModuleAttributeError: 'DataParallel' object has no attribute 'src_device_obj'",
    ),
    Message(
        kind="wrapped-attribute",
        patterns=(
            rf"{_WRAPPER}{Q} object has no attribute {Q}(?P<name>\w{{1,100}})",
            rf"{_WRAPPER}{Q} object has no attribute",
        ),
        says="{wrapper} is a wrapper: {name} belongs to the model inside it.",
        brief="A wrapper such as DataParallel has no attributes of the model inside it.",
        why="A wrapper passes on calls, not attributes.",
        steps=("Ask the model inside: model.module (model._orig_mod under torch.compile).",),
        patch='inner = getattr(model, "module", getattr(model, "_orig_mod", model))\ninner.{name}\n',
        example="AttributeError: 'DataParallel' object has no attribute 'fc'",
    ),
    Message(
        kind="not-wrapped",
        patterns=(rf"object has no attribute {Q}(?:module|_orig_mod){Q}(?!\w)",),
        says="The model is not inside a wrapper, so it has no .module.",
        why="The code was written for DataParallel (or torch.compile), and this model is the bare one.",
        steps=("Use the model itself, or ask for the wrapper only where there is one.",),
        patch='inner = getattr(model, "module", getattr(model, "_orig_mod", model))\n',
        example="AttributeError: 'ResNet' object has no attribute 'module'",
    ),
    Message(
        kind="state-dict-as-model",
        patterns=(rf"{_DICT} has no attribute {Q}(?P<name>{_OF_MODELS}){Q}(?!\w)",),
        says="What torch.load returned is a {type} of weights, not a model, so it has no .{name}.",
        why="The file holds a state dict or a training checkpoint: numbers without the network's code.",
        steps=(
            "Build the model, load the weights into it, then call what you wanted on it.",
            "Open the file here: it says which model.",
        ),
        patch='state = torch.load(path, map_location="cpu", weights_only=True)\n'
        "# model = the class the weights were trained with\n"
        'model.load_state_dict(state)  # state["state_dict"] for a training checkpoint\n'
        "model.eval()\n",
        hides=("dict-cut",),
        example="AttributeError: 'collections.OrderedDict' object has no attribute 'eval'",
    ),
    Message(
        kind="dict-as-model",
        patterns=(rf"{_DICT} has no attribute {Q}state_dict",),
        says="The file holds a {type}, not a model: there is nothing to call .state_dict() on.",
        why="It is a state dict already, or a training checkpoint with one inside.",
        steps=(
            'Use it as it is, or its entry "state_dict" or "model".',
            "Open the file here: it says where the weights lie.",
        ),
        patch='checkpoint = torch.load(path, map_location="cpu", weights_only=True)\n'
        'state = checkpoint.get("state_dict", checkpoint)\nmodel.load_state_dict(state)\n',
        hides=("dict-cut",),
        example="AttributeError: 'dict' object has no attribute 'state_dict'",
    ),
    Message(
        kind="dict-cut",
        patterns=(rf"{Q}(?:collections\.)?OrderedDict{Q} object has no attr",),
        says="What torch.load returned is a dictionary of weights, not a model.",
        why="The file holds a state dict or a training checkpoint: numbers without the network's code.",
        steps=("Build the model and load the weights into it.", "Open the file here: it says which model."),
        causes=(
            Cause(
                "state-dict-as-model", "A method of a model was called on it.", "the attribute is eval, cuda, to, ..."
            ),
            Cause("dict-as-model", "Its state_dict() was asked for.", "the attribute is state_dict"),
        ),
        example="AttributeError: 'collections.OrderedDict' object has no attribute",
    ),
    Message(
        kind="dict-called",
        patterns=(rf"{_DICT} is not callable",),
        says="A {type} was called like a model.",
        why="torch.load returned weights; a model has to be built for them.",
        steps=("Build the model and load the weights into it.",),
        patch='model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))\n',
        example="TypeError: 'collections.OrderedDict' object is not callable",
    ),
    Message(
        kind="no-such-entry",
        patterns=(rf"KeyError: {Q}(?P<name>{_CONTAINERS}){Q}(?![\w.])",),
        says='The file has no entry "{name}".',
        why="Either it is the state dict itself, or the weights lie under another name.",
        steps=("Print its keys, or open it here: it says where the weights lie.",),
        patch='checkpoint = torch.load(path, map_location="cpu", weights_only=True)\n'
        "print(list(checkpoint)[:10])\nstate = checkpoint.get({name!r}, checkpoint)\n",
        example="KeyError: 'state_dict'",
    ),
    Message(
        kind="no-such-tensor",
        patterns=(
            rf"KeyError: {Q}(?P<name>\w{{1,80}}(?:\.\w{{1,80}}){{0,20}}\."
            r"(?:weight|bias|gamma|beta|running_mean|running_var))",
        ),
        says="The code asks the state dict for {name}, which is not in it.",
        why="The file was saved from another version of the code, or its names have a prefix (module.) or other "
        "endings (gamma and beta for weight and bias).",
        steps=("Print its keys, or open the file here: names are listed, and the repair places those it can prove.",),
        patch='state = torch.load(path, map_location="cpu", weights_only=True)\n'
        "last = {name!r}.rpartition('.')[2]\nprint([key for key in state if key.endswith(last)][:20])\n",
        example="KeyError: 'bert.embeddings.LayerNorm.gamma'",
    ),
    Message(
        kind="older-torch-argument",
        patterns=(
            rf"got an unexpected keyword argument {Q}(?P<name>weights_only|mmap|assign){Q}",
            rf"(?P<name>weights_only){Q} is an invalid keyword argument for",
        ),
        says="Your torch does not know the argument {name} yet.",
        why="weights_only came with torch 1.13, mmap and assign with 2.1.",
        steps=("Update torch, or leave the argument out; without weights_only trust the file first.",),
        example="TypeError: 'weights_only' is an invalid keyword argument: load() got an unexpected keyword argument "
        "'weights_only'",
    ),
    Message(
        kind="lightning-arguments",
        patterns=(
            r"(?:load_from_checkpoint|_load_model_state|core/saving\.py).{0,900}"
            rf"missing [0-9]{{1,2}} required (?:positional|keyword-only) arguments?: {Q}(?P<name>\w{{1,60}})",
            r"__init__\(\) missing [0-9]{1,2} required \S{1,12} arguments?:.{0,300}load_from_checkpoint",
        ),
        says="load_from_checkpoint builds the model first, and the checkpoint does not say its argument {name}.",
        brief="load_from_checkpoint builds the model first, and the checkpoint does not say its arguments.",
        why="Lightning stores the constructor's arguments only after self.save_hyperparameters(), and modules never.",
        steps=(
            "Pass what is missing to load_from_checkpoint, as it was in training.",
            "Open the file here: hyper_parameters shows which arguments it has.",
            "Call self.save_hyperparameters() in __init__ next time; leave modules out with ignore=[...].",
        ),
        patch="model = type(model).load_from_checkpoint(path, {name}=...)  # the value of the training\n",
        example="model = Net.load_from_checkpoint(path)\nTypeError: __init__() missing 1 required positional argument: "
        "'cfg'",
    ),
    Message(
        kind="two-devices",
        patterns=(
            r"Expected all tensors to be on the same device, but found at least two devices, "
            r"(?P<a>[\w:]{1,20}) and (?P<b>[\w:]{1,20})",
            r"Expected all tensors to be on the same device",
            r"found at least two devices",
            # torch before 1.7
            r"Expected object of backend (?:CPU|CUDA) but got backend (?:CPU|CUDA)",
            r"Expected object of device type \w{2,10} but got device type \w{2,10}",
        ),
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
        patterns=(
            rf"Input type \((?P<input>{_TENSOR})\) and (?:weight|bias) type "
            rf"\((?P<weight>{_TENSOR})\) should be the same",
        ),
        says="The input is {input} and the weights are {weight}.",
        why="cuda in one of them means another device; Half, BFloat16 or Double another element type.",
        steps=("Bring the input to the device and type of the weights.",),
        patch="weight = next(model.parameters())\noutput = model(inputs.to(device=weight.device, "
        "dtype=weight.dtype))\n",
        example="Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same",
    ),
    Message(
        kind="half-on-cpu",
        patterns=(rf"not implemented for {Q}(?:Half|BFloat16){Q}",),
        says="This operation does not run in half precision here, which on a CPU is common.",
        why="The weights are float16 or bfloat16, and older CPU kernels have only float32.",
        steps=("Cast the model to float32, or run it on an accelerator.",),
        patch="model = model.float()\n",
        example="RuntimeError: \"slow_conv2d_cpu\" not implemented for 'Half'",
    ),
    Message(
        kind="parallel-device",
        patterns=(
            r"module must have its parameters and buffers on device (?P<want>[\w:]{1,20}) "
            r"\(device_ids\[0\]\) but found one of them on device: (?P<found>[\w:]{1,20})",
        ),
        says="DataParallel wants the model on {want}, and a part of it is on {found}.",
        why="The weights were loaded to the CPU, or the model was never moved.",
        steps=("Move the model before wrapping it; for one device leave the wrapper out.",),
        patch="model = model.to({want!r})\nmodel = torch.nn.DataParallel(model)\n",
        example="module must have its parameters and buffers on device cuda:0 (device_ids[0]) but "
        "found one of them on device: cpu",
    ),
    Message(
        kind="out-of-memory",
        patterns=(
            r"CUDA out of memory",
            r"CUDA error: out of memory",
            r"torch(?:\.cuda)?\.OutOfMemoryError",
            r"DefaultCPUAllocator: (?:can'?t|not enough) (?:allocate )?memory",
        ),
        says="There was not enough memory.",
        why="While loading, file and model are in memory at once; on a device, the file's copy of "
        "training (optimizer included) lands there too.",
        steps=(
            "Load to the CPU with mmap=True, and build the model on meta with assign=True.",
            "Open the file here: it says how much of it is optimizer state; the repaired file leaves that out.",
        ),
        patch='state = torch.load(path, map_location="cpu", weights_only=True, mmap=True)\n'
        "model.load_state_dict(state, assign=True)\n",
        hides=("copy-failed",),
        example="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.",
    ),
    Message(
        kind="meta-copy",
        patterns=(r"Cannot copy out of meta tensor; no data! Please use torch\.nn\.Module\.to_empty",),
        says="The model has parameters without numbers (on the meta device).",
        why="It was built empty and not every tensor was loaded, or it was moved before loading.",
        steps=("Load with assign=True and look at what the strict load reports; use to_empty() only before loading.",),
        patch="model.load_state_dict(state, strict=True, assign=True)\n",
        hides=("meta-tensor",),
        example="NotImplementedError: Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty()",
    ),
    Message(
        kind="no-optimizer-state",
        patterns=(rf"KeyError: {Q}param_groups{Q}(?![\w.])",),
        says="What the optimizer was given is no optimizer's state: it has no param_groups.",
        why="The whole training checkpoint was passed, the model's weights, or a file that never had an optimizer.",
        steps=("Pass the entry that has param_groups; print the keys, or open the file here.",),
        patch='checkpoint = torch.load(path, map_location="cpu", weights_only=True)\n'
        'print([key for key, value in checkpoint.items() if isinstance(value, dict) and "param_groups" in value])\n',
        example="KeyError: 'param_groups'",
    ),
    Message(
        kind="optimizer-groups",
        patterns=(
            r"loaded state dict has a different number of parameter groups",
            r"a parameter group that doesn'?t match the size of optimizer",
            r"loaded state dict contains a parameter group",
            r"match the size of optimizer'?s group",
        ),
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
        patterns=(
            r"Unable to (?:synchronously )?open file \(",
            r"keras\.(?:src\.)?(?:models|saving|engine)",
            r"You are trying to load a weight file containing [0-9]{1,6} layers",
            r"Unknown layer: ",
        ),
        says="This is an error of Keras or HDF5, not of torch.",
        why="The file or the code belongs to another framework.",
        steps=("Load it with Keras; for a model in torch its weights have to be converted.",),
        example="OSError: Unable to synchronously open file (file signature not found)",
        ours=False,
    ),
    Message(
        kind="tensorflow",
        patterns=(
            r"tensorflow\.python",
            r"SavedModel file does not exist at",
            r"tf\.errors",
            r"DataLossError",
            r"NewCheckpointReader",
        ),
        says="This is an error of TensorFlow, not of torch.",
        why="The file or the code belongs to another framework.",
        steps=("Load it with TensorFlow; for a model in torch its weights have to be converted.",),
        example="OSError: SavedModel file does not exist at: model/{saved_model.pbtxt|saved_model.pb}",
        ours=False,
    ),
    Message(
        kind="onnxruntime",
        patterns=(r"onnxruntime\.capi", r"\[ONNXRuntimeError\]"),
        says="This is an error of ONNX Runtime, not of torch.",
        why="It runs exported programs; their weights can be looked at here.",
        steps=("Open the .onnx file here to see its tensors.",),
        example="onnxruntime.capi.onnxruntime_pybind11_state.InvalidProtobuf: [ONNXRuntimeError] : 7",
        ours=False,
    ),
)
