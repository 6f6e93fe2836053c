"""The names that `verdicts.py` judges by: what runs code, what makes only data, what torch.load allows by itself.

Lists of bad names are always incomplete, so nothing rests on the first one: whatever is in none of them is unknown.
Sources: Python's library reference, torch/_weights_only_unpickler.py, and the published advisories on scanners of
pickles (their gadget names, as facts).
"""

from __future__ import annotations

import re


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Top-level modules of which every function is a way to run code, reach the system or the network, or resolve names.
DANGEROUS_MODULES = _names(
    """
    os posix posixpath nt ntpath subprocess _posixsubprocess sys runpy importlib imp _imp pkgutil pty socket _socket
    ssl _ssl select selectors shutil webbrowser ctypes _ctypes cffi pickle _pickle cPickle pickletools dill
    cloudpickle joblib marshal shelve code codeop asyncio _asyncio multiprocessing _multiprocessing threading _thread
    concurrent operator _operator requests urllib urllib2 urllib3 http httplib aiohttp httpx ftplib smtplib telnetlib
    imaplib poplib nntplib xmlrpc socketserver wsgiref pip ensurepip venv timeit cProfile profile pstats pdb bdb
    doctest trace tempfile signal _signal inspect types gc linecache tracemalloc platform distutils _distutils_hack
    setuptools pkg_resources site sysconfig builtins __builtin__ _io _pyio io fileinput glob pathlib2 zipimport
    zipapp zipfile tarfile antigravity idlelib lib2to3 commands popen2 pydoc unittest nose pytest _pytest IPython
    jinja2 yaml sqlite3 _sqlite3 dbm mmap resource _winapi winreg msvcrt _interpreters _interpchannels
    _xxsubinterpreters _xxinterpchannels interpreters faulthandler atexit sched logging curses readline rlcompleter
    tkinter turtle crypt getpass paramiko fabric psutil cgi cgitb py_compile compileall modulefinder _osx_support
    _aix_support _aix_bootsubprocess _pyrepl _frozen_importlib _frozen_importlib_external _testcapi _testinternalcapi
    _bootsubprocess pexpect sh plumbum git nturl2path filecmp syslog pipes mailcap mailbox aifc sunau wave dotenv
    _tkinter Tkinter tkFileDialog annotationlib importlib_metadata importlib_resources new thread anydbm dumbdbm whichdb
    dbhash gdbm bsddb posixfile ihooks rexec xmlrpclib SocketServer BaseHTTPServer SimpleHTTPServer asyncore asynchat
    smtpd uu netrc gettext pyclbr tabnanny cmd fcntl genericpath _posixshmem _sitebuiltins wheel numexpr hydra
    jsonpickle mako tornado ptyprocess invoke execnet cython Cython pyximport mlflow bentoml gradio fsspec s3fs
    gcsfs smart_open
    boto3 botocore wget huggingface_hub safetensors pyautogui pynput
    """
)
# Names that no text has by chance behind a line that begins with "c": a pickle that gets no further than to name one
# was written to call it.
UNMISTAKABLE = _names(
    """
    builtins.exec builtins.eval builtins.compile builtins.open builtins.getattr builtins.__import__ builtins.breakpoint
    builtins.globals builtins.apply builtins.execfile builtins.input os.system os.popen os.execv os.execve os.execl
    os.execlp os.execvp os.spawnl os.spawnv os.spawnlp os.posix_spawn os.startfile os.remove os.unlink posix.system
    posix.popen posix.execv nt.system subprocess.Popen subprocess.call subprocess.run subprocess.check_call
    subprocess.check_output subprocess.getoutput subprocess.getstatusoutput runpy.run_path runpy.run_module
    runpy._run_code pty.spawn pickle.loads pickle.load _pickle.loads _pickle.load importlib.import_module
    commands.getoutput commands.getstatusoutput webbrowser.open socket.socket socket.create_connection shutil.rmtree
    marshal.loads types.CodeType types.FunctionType ctypes.CDLL code.interact timeit.timeit pip.main
    """
)
DANGEROUS_PREFIXES: dict[str, str] = {
    "joblib.numpy_pickle.NDArrayWrapper": "makes joblib load an array from another file, and any pickle in that",
    "joblib.numpy_pickle_compat.NDArrayWrapper": "makes joblib load an array from another file, and any pickle in that",
    "joblib.numpy_pickle.ZNDArrayWrapper": "makes joblib read an array from another file",
    "joblib.numpy_pickle_compat.ZNDArrayWrapper": "makes joblib read an array from another file",
    "sklearn.externals.joblib": "loads other pickles and calls other callables",
    "torch.hub": "fetches and runs code from the network",
    "torch.load": "loads another pickle",
    "torch.save": "writes a file",
    "torch.from_file": "opens a file",
    "torch.compile": "compiles and runs code",
    "torch.jit": "compiles or runs code",
    "torch.storage._load_from_bytes": "loads another pickle that is inside this one",
    "torch.utils.collect_env": "runs commands",
    "torch.utils.bottleneck": "runs code",
    "torch.utils.benchmark": "compiles and runs code",
    "torch.utils.data.datapipes": "opens files and loads other pickles",
    "torch.utils.cpp_extension": "compiles and loads code",
    "torch.utils.model_dump": "loads other pickles",
    "torch.utils.show_pickle": "loads other pickles",
    "torch.utils.hipify": "reads and writes files",
    "torch.utils.model_zoo": "fetches files from the network",
    "torch.utils._config_module": "loads another pickle",
    "torch.utils.tensorboard": "writes files",
    "torch._dynamo": "compiles and runs code",
    "torch._inductor": "compiles and runs code",
    "torch._functorch": "compiles and runs code",
    "torch._export": "compiles and runs code",
    "torch._higher_order_ops": "calls another callable",
    "torch.export": "loads another archive",
    "torch.onnx": "writes files and runs code",
    "torch.fx.experimental": "evaluates text as code",
    "torch.fx.graph_module": "compiles text of the file as code",
    "torch.fx._symbolic_trace": "calls another callable",
    "torch.package": "imports code from an archive",
    "torch.serialization": "loads or writes another file",
    "torch.ops.load_library": "loads a binary library",
    "torch.classes.load_library": "loads a binary library",
    "torch.library": "defines operators from code",
    "torch.distributed.rpc": "runs code in other processes",
    "torch.distributed.run": "starts processes",
    "torch.distributed.launch": "starts processes",
    "torch.distributed.launcher": "starts processes",
    "torch.distributed.nn": "writes and imports code",
    "torch.distributed.elastic": "starts processes",
    "torch.distributed.distributed_c10d": "loads pickles of other processes",
    "torch.multiprocessing.spawn": "starts processes",
    "torch.testing": "runs code",
    "torch._jit_internal": "reads and compiles code",
    "torch._sources": "reads and compiles code",
    "torch._weights_only_unpickler": "loads another pickle",
    "torch.cuda.memory._dump_snapshot": "writes a file",
    "torchvision.datasets.utils": "fetches and unpacks files",
    # The classes themselves are known; what is left are their methods and helpers.
    "pathlib": "reads, writes and deletes files",
    "sympy.sympify": "evaluates text as code",
    "sympy.S": "evaluates text as code",
    "sympy.lambdify": "compiles text of the file as code",
    "sympy.core.sympify": "evaluates text as code",
    "sympy.parsing": "evaluates text as code",
    "sympy.parse_expr": "evaluates text as code",
    "sympy.preview": "runs commands",
    "sympy.printing.preview": "runs commands",
    "sympy.utilities.lambdify": "compiles text of the file as code",
    "sympy.utilities.autowrap": "compiles and runs code",
    "sklearn.datasets": "fetches and opens files",
    "spacy.load": "loads another model, with its code",
    "spacy.util": "loads another model, with its code",
    "transformers.pipeline": "loads another model, with its code",
    "transformers.pipelines": "loads another model, with its code",
    "transformers.dynamic_module_utils": "fetches and runs code from the network",
    "accelerate.commands": "starts processes",
    "datasets.load_dataset": "fetches files and runs their code",
    "datasets.load": "fetches files and runs their code",
    "nltk.data": "loads another pickle",
    "nltk.downloader": "fetches files from the network",
    "dask.base": "calls other callables",
    "dask.core": "calls other callables",
    "PIL.Image.open": "opens a file",
    "PIL.ImageShow": "runs commands",
    "PIL.ImageGrab": "runs commands",
    "PIL.ImageMath": "evaluates text as code",
    "PIL.EpsImagePlugin.Ghostscript": "runs commands",
    "copy._reconstruct": "calls another callable",
    "tokenize.open": "opens a file",
    "_warnings": "changes the interpreter's state",
    "typing.ForwardRef._evaluate": "evaluates text as code",
    "typing.ForwardRef.evaluate": "evaluates text as code",
    "typing.evaluate_forward_ref": "evaluates text as code",
    "numpy.f2py": "compiles and runs code",
    "numpy.testing": "runs code",
    "numpy.distutils": "runs commands",
    "numpy.load": "loads another pickle",
    "numpy.memmap": "opens a file",
    "numpy.fromfile": "opens a file",
    "numpy.ndarray": "writes files by its methods",
    "numpy.ctypeslib": "loads a binary library",
    "numpy.lib.format": "loads another pickle",
    "numpy.lib._format_impl": "loads another pickle",
    "numpy.lib._datasource": "fetches and opens files",
    "numpy.lib.npyio": "loads another pickle",
    "numpy.lib.utils": "reaches other names",
    "pandas.read_pickle": "loads another pickle",
    "pandas.io": "opens files and loads other pickles",
    "pandas.compat.pickle_compat": "loads another pickle",
    "pandas.eval": "evaluates text as code",
    "pandas.core.computation": "evaluates text as code",
    "test.support": "runs commands",
    "test.libregrtest": "runs commands",
    "functools.partial": "wraps another callable",
    "functools.partialmethod": "wraps another callable",
    "functools.reduce": "calls another callable",
    "itertools.starmap": "calls another callable",
    "itertools.accumulate": "calls another callable",
    "uuid": "runs commands",
    "_functools.partial": "wraps another callable",
    "_functools.reduce": "calls another callable",
    "functools.cache": "wraps another callable",
    "functools.lru_cache": "wraps another callable",
    "functools.cmp_to_key": "wraps another callable",
    "functools.singledispatch": "wraps another callable",
    "itertools.dropwhile": "calls another callable",
    "itertools.filterfalse": "calls another callable",
    "itertools.groupby": "calls another callable",
    "itertools.takewhile": "calls another callable",
    "contextvars.Context": "calls another callable",
    "dataclasses._create_fn": "compiles text of the file as code",
    "typing._eval_type": "evaluates text as code",
    "typing.get_type_hints": "evaluates text as code",
    "string.Formatter": "reaches other names",
    "base64": "decodes what another call may run",
    "codecs.decode": "decodes what another call may run",
    "codecs.encode": "encodes what another call may run",
    "codecs.open": "opens a file",
    "codecs.StreamReaderWriter": "writes a file",
    "bz2.open": "opens a file",
    "gzip.open": "opens a file",
    "lzma.open": "opens a file",
    "argparse.FileType": "opens a file",
    "configparser": "opens a file",
    "csv.DictWriter": "writes a file",
    "numpy.savetxt": "writes a file",
    "numpy.save": "writes a file",
    "numpy.savez": "writes a file",
    "numpy.lib._npyio_impl": "reads and writes files",
    "copyreg.add_extension": "changes how other pickles are loaded",
    "copyreg.remove_extension": "changes how other pickles are loaded",
    "copyreg.pickle": "changes how other pickles are loaded",
    "decimal.setcontext": "changes the interpreter's state",
    "warnings": "changes the interpreter's state",
    "contextlib.ExitStack": "calls another callable",
    "weakref.finalize": "calls another callable",
    "ast.literal_eval": "evaluates text",
}
# Functions that several modules of one project hand out under the same names.
DANGEROUS_LOOKS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(look), why)
    for look, why in (
        (
            r"torch\._C\.(PyTorchFile\w+|import_ir_module\w*|\w*_?jit_\w+|CompilationUnit|_(load|import|export|aoti)\w*"
            r"|_parse_source_def)(\.\w+)*",
            "compiles code or opens another file",
        ),
        (
            r"torch\.distributed\.(\w+\.)*(FileStore|TCPStore|HashStore|init_process_group)",
            "opens files or the network",
        ),
        (
            r"numpy\.(\w+\.)*(fromfile|fromregex|genfromtxt|loadtxt|savetxt|recfrom\w+|DataSource|memmap|load_library)",
            "opens a file",
        ),
        (
            r"numpy\.(\w+\.)*(vectorize|frompyfunc|fromfunction|apply_along_axis|apply_over_axes|piecewise)",
            "calls another callable",
        ),
        (r"pandas\.(\w+\.)*(read_\w+|HDFStore|ExcelFile|ExcelWriter)", "opens files and loads other pickles"),
        (r"pandas\.(\w+\.)*(DataFrame|Series|NDFrame|Index)\.\w+", "writes files or evaluates text by its methods"),
        (r"PIL\.(\w+\.)*\w*Image\w*\.(save|show)", "writes a file or runs commands"),
        (r"sklearn\.externals\.joblib\.(\w+\.)*(load|dump|hash|Memory|Parallel|delayed)\w*", "loads another pickle"),
        (
            r"(tensorflow|keras|tf_keras)\.(\w+\.)*(Lambda|load_model|load_weights|func_load|get_file|py_function"
            r"|numpy_function|(write|read)_file|(Write|Read)File)",
            "loads other files or runs code in them",
        ),
        (r"xml\.(\w+\.)*(parse|iterparse)", "opens a file"),
    )
)
# Methods that open, write or fetch files, or call what they are given, of whatever class.
METHODS = _names(
    """
    load loads dump from_file from_pretrained push_to_hub load_from_checkpoint save_pretrained tofile to_pickle
    write_text write_bytes unlink rmdir rename touch
    """
)
# Functions that run text or commands, under whatever module they are named.
RUNNERS = _names("eval exec execfile system popen")
# A module object reached through another one ("torch.serialization", "os"), and what gives names to everything else.
SYSTEM = _names(
    """
    os sys subprocess builtins __builtins__ importlib posix nt ctypes shutil runpy pickle marshal types operator
    inspect socket pty functools _operator _pickle _io io pydoc code codeop threading multiprocessing tempfile
    bltns copyreg
    """
)
# Of `builtins` what makes data or measures it. Left out is whatever runs, imports, reads, writes, looks up names, makes
# classes, or calls what it is handed: `map`, `sorted` and `max` (by their key), `iter`, `sum`, `type`, `print` ...
BUILTINS_DATA = _names(
    """
    set frozenset list tuple dict bytes bytearray complex slice range xrange int long float str unicode bool object
    NoneType memoryview Ellipsis NotImplemented
    len abs round divmod ord chr unichr bin hex oct hash callable isinstance issubclass
    BaseException Exception BaseExceptionGroup ExceptionGroup ArithmeticError AssertionError AttributeError
    BlockingIOError BrokenPipeError BufferError ChildProcessError ConnectionAbortedError ConnectionError
    ConnectionRefusedError ConnectionResetError EOFError EnvironmentError FileExistsError FileNotFoundError
    FloatingPointError GeneratorExit IOError ImportError IndentationError IndexError InterruptedError IsADirectoryError
    KeyError KeyboardInterrupt LookupError MemoryError ModuleNotFoundError NameError NotADirectoryError
    NotImplementedError OSError OverflowError PermissionError ProcessLookupError PythonFinalizationError RecursionError
    ReferenceError RuntimeError StandardError StopAsyncIteration StopIteration SyntaxError SystemError SystemExit
    TabError TimeoutError TypeError UnboundLocalError UnicodeDecodeError UnicodeEncodeError UnicodeError
    UnicodeTranslateError ValueError WindowsError ZeroDivisionError
    Warning BytesWarning DeprecationWarning EncodingWarning FutureWarning ImportWarning PendingDeprecationWarning
    ResourceWarning RuntimeWarning SyntaxWarning UnicodeWarning UserWarning
    """
)
# Modules whose classes are known as modules and optimizers, and nothing but a class is meant: the name has a capital.
KNOWN_CLASS_MODULES = re.compile(
    r"torch\.nn\.modules\.\w+|torchvision\.models(\.(?!feature_extraction)\w+)+|torchvision\.ops\.\w+"
    r"|torch\.optim(\.\w+)*|__torch__(\.\w+)*|torch\.nn\.quantized(\.\w+)+|torch\.ao\.nn(\.\w+)+"
    r"|torch\.distributed\.checkpoint\.metadata"
)
# Those modules themselves, and not a class in them.
MODULES_LOOK = re.compile(r"torch\.nn\.modules\.[a-z_]\w*|torch\.optim\.[a-z_]\w*|torch\.(fx|cuda|autograd)")
# No bare F, _VF or _Reduction: those are modules under a short name.
KNOWN_CLASS_NAME = re.compile(r"_?(?!VF$|Reduction$)[A-Z]\w+")
KNOWN_CLASSES = _names(
    """
    torch.nn.parameter.Parameter torch.nn.parameter.Buffer torch.nn.parameter.UninitializedParameter
    torch.nn.parameter.UninitializedBuffer
    torch.nn.utils.parametrize.ParametrizationList torch.nn.utils.parametrizations._WeightNorm
    torch.nn.utils.parametrizations._SpectralNorm torch.nn.utils.parametrizations._Orthogonal
    torch.nn.parallel.data_parallel.DataParallel torch.nn.parallel.distributed.DistributedDataParallel
    torchvision.transforms._presets.ImageClassification torch.ScriptObject torch._C.ScriptObject
    torch.nn.utils.weight_norm.WeightNorm torch.nn.utils.spectral_norm.SpectralNorm
    torch.nn.utils.spectral_norm.SpectralNormStateDictHook torch.nn.utils.spectral_norm.SpectralNormLoadStateDictPreHook
    torch.nn.utils.prune.L1Unstructured torch.nn.utils.prune.RandomUnstructured torch.nn.utils.prune.LnStructured
    torch.nn.utils.prune.RandomStructured torch.nn.utils.prune.CustomFromMask torch.nn.utils.prune.Identity
    torch.nn.utils.prune.PruningContainer
    torch.distributed.tensor.DTensor torch.distributed.tensor._api.DTensor torch.distributed._tensor.api.DTensor
    torch.distributed.tensor._dtensor_spec.DTensorSpec torch.distributed.tensor._dtensor_spec.TensorMeta
    torch.distributed.tensor._dtensor_spec.ShardOrderEntry torch.distributed.tensor.placement_types.Shard
    torch.distributed.tensor.placement_types.Replicate torch.distributed.tensor.placement_types.Partial
    torch.distributed._tensor.placement_types.DTensorSpec torch.distributed._tensor.placement_types.TensorMeta
    torch.distributed._tensor.placement_types.Shard torch.distributed._tensor.placement_types.Replicate
    torch.distributed._tensor.placement_types._Partial torch.distributed.device_mesh.DeviceMesh
    torch.distributed._tensor.device_mesh.DeviceMesh torch.distributed._device_mesh.DeviceMesh
    torch.distributed._shard.sharded_tensor.metadata.TensorProperties torch.fx.passes.shape_prop.TensorMetadata
    torch.distributed._shard.sharded_tensor.metadata.MEM_FORMAT_ENCODING
    torch.distributed._mesh_layout._MeshLayout torch.distributed._mesh_layout._FlatLayout
    bitsandbytes.nn.modules.Linear4bit bitsandbytes.nn.modules.Linear8bitLt bitsandbytes.nn.modules.Params4bit
    bitsandbytes.nn.modules.Int8Params bitsandbytes.nn.modules.LinearNF4 bitsandbytes.nn.modules.LinearFP4
    bitsandbytes.functional.QuantState bitsandbytes.autograd._functions.MatmulLtState
    optimum.quanto.nn.qlinear.QLinear optimum.quanto.nn.qconv2d.QConv2d optimum.quanto.nn.qlayernorm.QLayerNorm
    optimum.quanto.tensor.weights.qbytes.WeightQBytesTensor optimum.quanto.tensor.weights.qbits.WeightQBitsTensor
    optimum.quanto.tensor.qtype.qtype optimum.quanto.tensor.optimizers.absmax_optimizer.AbsmaxOptimizer
    transformers.pytorch_utils.Conv1D transformers.modeling_utils.Conv1D
    """
)
# Classes of other projects that are modules or their settings, by the module and the end of their names: a module of
# theirs also has helpers in it, some of which fetch files. Names as the projects' own releases write them.
KNOWN_LOOKS = tuple(
    (re.compile(module), re.compile(name))
    for module, name in (
        # timm 0.4 to 1.0: what builds, finds or fetches models is left out.
        (
            r"timm\.(models(\.(?!_?(hub|helpers|features|builder|manipulate|registry|factory|prune|pretrained)(\.|$))\w+)+"
            r"|layers(\.\w+)+)",
            r"(?!SEWithNorm$|Path$|TemporaryDirectory$|HfApi$|EfficientNetBuilder$)[A-Z]\w*",
        ),
        (
            r"transformers\.models\.(?!auto\.)\w+\.(modeling|configuration)_\w+",
            r"[A-Z]\w*(Config|Model|Layer|Attention|MLP|Norm|Embeddings?|Encoder|Decoder|Block|Head|LMHead|Pooler|Output"
            r"|Intermediate|Transform|Stage|Stem|Pooling|Experts|Router|Gate|For[A-Z]\w+)",
        ),
        (r"transformers\.activations", r"[A-Z]\w*(Activation|GELU|Function|Swish|ReLU\w*|GELUActivation)"),
        (r"ultralytics\.(nn\.modules(\.\w+)?|nn\.tasks)", r"(?!Safe|Path$)[A-Z]\w*"),
    )
)
KNOWN_NAMES = _names(
    """
    argparse.Namespace datetime.datetime datetime.date datetime.time datetime.timedelta datetime.timezone
    pathlib.PosixPath pathlib.WindowsPath pathlib.PurePosixPath pathlib.PureWindowsPath pathlib._local.PosixPath
    pathlib._local.WindowsPath pathlib._local.PurePosixPath pathlib._local.PureWindowsPath pathlib.Path
    decimal.Decimal uuid.UUID uuid.SafeUUID fractions.Fraction types.SimpleNamespace collections.abc.OrderedDict
    io.BytesIO _io.BytesIO io.StringIO _io.StringIO zoneinfo.ZoneInfo._unpickle typing.Any typing.Union
    numpy.ndarray numpy.matrix copyreg._reconstructor copyreg.__newobj__ copyreg.__newobj_ex__
    torch.Tensor torch._C._TensorMeta torch.Generator
    torch.per_tensor_affine torch.per_channel_affine torch.per_tensor_symmetric torch.per_channel_symmetric
    torch.per_channel_affine_float_qparams torch.strided torch.sparse_coo torch.sparse_csr torch.sparse_csc
    torch.sparse_bsr torch.sparse_bsc torch.preserve_format torch.contiguous_format torch.channels_last
    torch._utils._rebuild_device_tensor_from_numpy torch._utils._rebuild_xla_tensor
    torch.autograd.variable.Variable torch.nn.backends.thnn._get_thnn_function_backend
    torch.jit._pickle.build_intlist torch.jit._pickle.build_tensorlist torch.jit._pickle.build_doublelist
    torch.jit._pickle.build_boollist torch.jit._pickle.build_tensor_from_id torch.jit._pickle.restore_type_tag
    torch.distributed.checkpoint.filesystem._StorageInfo torch.distributed.checkpoint.filesystem._StoragePrefix
    torch.serialization._get_layout
    torch.nn.functional.relu torch.nn.functional.gelu torch.nn.functional.silu torch.nn.functional.elu
    torch.nn.functional.leaky_relu torch.nn.functional.mish torch.nn.functional.softmax torch.nn.functional.tanh
    torch.nn.functional.sigmoid torch.nn.functional.hardswish torch.relu torch.tanh torch.sigmoid
    numpy.random._pickle.__randomstate_ctor numpy.random._pickle.__bit_generator_ctor
    numpy.random._pickle.__generator_ctor
    omegaconf.dictconfig.DictConfig omegaconf.listconfig.ListConfig omegaconf.base.ContainerMetadata
    omegaconf.base.Metadata omegaconf.nodes.AnyNode omegaconf.nodes.StringNode omegaconf.nodes.IntegerNode
    omegaconf.nodes.FloatNode omegaconf.nodes.BooleanNode
    yacs.config.CfgNode easydict.EasyDict addict.addict.Dict
    pytorch_lightning.utilities.parsing.AttributeDict lightning.fabric.utilities.data.AttributeDict
    lightning_fabric.utilities.data.AttributeDict pytorch_lightning.utilities.data.AttributeDict
    contextlib.nullcontext bitsandbytes.nn.modules.maybe_rearrange_weight
    diffusers.configuration_utils.FrozenDict
    deepspeed.runtime.zero.config.ZeroStageEnum deepspeed.utils.tensor_fragment.fragment_address
    deepspeed.runtime.fp16.loss_scaler.LossScaler deepspeed.runtime.fp16.loss_scaler.DynamicLossScaler
    transformers.training_args.TrainingArguments transformers.training_args.OptimizerNames
    transformers.training_args.ParallelMode transformers.training_args_seq2seq.Seq2SeqTrainingArguments
    transformers.trainer_utils.SchedulerType transformers.trainer_utils.IntervalStrategy
    transformers.trainer_utils.SaveStrategy transformers.trainer_utils.HubStrategy
    transformers.trainer_utils.EvaluationStrategy transformers.trainer_utils.FSDPOption
    transformers.trainer_pt_utils.AcceleratorConfig accelerate.state.PartialState
    accelerate.utils.dataclasses.DistributedType accelerate.state.DistributedType
    ultralytics.utils.IterableSimpleNamespace ultralytics.yolo.utils.IterableSimpleNamespace
    torchao.quantization.Int8Tensor torchao.quantization.Float8Tensor torchao.quantization.Int4Tensor
    torchao.quantization.quantize_.common.kernel_preference.KernelPreference
    torchao.quantization.quantize_.workflows.int8.int8_tensor.QuantizeTensorToInt8Kwargs
    torchao.quantization.quantize_.workflows.float8.float8_tensor.QuantizeTensorToFloat8Kwargs
    torchao.quantization.granularity.PerRow torchao.quantization.granularity.PerTensor
    torchao.quantization.granularity.PerGroup torchao.quantization.granularity.PerAxis
    torchao.quantization.granularity.PerToken torchao.quantization.granularity.PerBlock
    torchao.quantization.quant_primitives.MappingType torchao.quantization.quant_primitives.ZeroPointDomain
    """
)
# torch.FloatTensor, torch.cuda.sparse.HalfTensor: the classes that torch before 0.4 had for each element type.
TENSOR_CLASS = re.compile(
    r"torch\.(cuda\.)?(sparse\.)?(BFloat16|Bool|Byte|Char|Double|Float|Half|Int|Long|Short)Tensor"
)
# Types that torch names and this package has no numbers for.
OTHER_DTYPES = re.compile(r"torch\.(u?int[1-7]|bcomplex32)")
# What torch.load(weights_only=True) allows beside storages, dtypes and tensor classes: `_get_allowed_globals` of 2.15.
WEIGHTS_ONLY = _names(
    """
    collections.OrderedDict collections.Counter builtins.set builtins.bytearray builtins.complex torch.Size
    torch.device torch.Tensor torch.nn.parameter.Parameter torch.serialization._get_layout _codecs.encode
    torch._utils._rebuild_tensor torch._utils._rebuild_tensor_v2 torch._utils._rebuild_tensor_v3
    torch._utils._rebuild_parameter torch._utils._rebuild_parameter_with_state torch._utils._rebuild_qtensor
    torch._utils._rebuild_sparse_tensor torch._utils._rebuild_meta_tensor_no_storage
    torch._utils._rebuild_device_tensor_from_numpy torch._utils._rebuild_device_tensor_from_cpu_tensor
    torch._utils._rebuild_wrapper_subclass torch._tensor._rebuild_from_type_v2
    torch.per_tensor_affine torch.per_tensor_symmetric torch.per_channel_affine torch.per_channel_symmetric
    torch.per_channel_affine_float_qparams
    """
)
# Modules that weights_only refuses even when a user allows the name.
WEIGHTS_ONLY_BLOCKED = frozenset({"sys", "os", "posix", "nt"})
