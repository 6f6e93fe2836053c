"""Files as common libraries write them: their own classes raise no alarm, and other names beside them do."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torchvision
from torch import nn
from torch.nn.utils import prune
from torch.optim.lr_scheduler import OneCycleLR, StepLR

from inspector.checkpoint.types import Checkpoint, GlobalVerdict
from inspector.findings import Severity
from inspector.readers import open_checkpoint
from inspector.readers.unpickle.globals.verdicts import judge


class Fetched:
    """Pickles as getattr(owner, name), as a bound method does."""

    def __init__(self, owner: object, name: str) -> None:
        self.made = (getattr, (owner, name))

    def __reduce__(self) -> tuple[object, ...]:
        return self.made


def opened(value: object, folder: Path) -> Checkpoint:
    torch.save(value, folder / "a.pt")
    return open_checkpoint(folder / "a.pt")


def alarms(checkpoint: Checkpoint) -> list[str]:
    return [f.says for f in checkpoint.findings if f.severity.rank >= Severity.WARNING.rank]


def quantised() -> nn.Module:
    # The older of torch's two ways, which wraps packed weights in an object of torch's own C++ classes.
    return torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(4, 3)), {nn.Linear})


def pruned() -> nn.Module:
    module = nn.Linear(3, 2)
    prune.l1_unstructured(module, "weight", 0.5)
    return module


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "make",
    [
        lambda: {"steps": range(3), "w": torch.ones(1)},
        lambda: nn.utils.weight_norm(nn.Linear(3, 2)),
        lambda: nn.utils.spectral_norm(nn.Linear(3, 2)),
        pruned,
        quantised,
        lambda: quantised().state_dict(),
        lambda: {"schedule": {"anneal_func": Fetched(OneCycleLR, "_annealing_cos")}, "w": torch.ones(1)},
        lambda: {"a": Fetched(OneCycleLR, "_annealing_cos"), "b": Fetched(OneCycleLR, "_annealing_linear")},
        lambda: {"schedule": {"anneal_func": Fetched(OneCycleLR.__new__(OneCycleLR), "_annealing_cos")}},
    ],
    ids=[
        "range",
        "weight norm",
        "spectral norm",
        "pruned",
        "quantised",
        "packed",
        "one cycle",
        "two cycles",
        "old cycle",
    ],
)
def test_what_torch_itself_writes_raises_no_alarm(make: object, tmp_path: Path) -> None:
    checkpoint = opened(make(), tmp_path)  # type: ignore[operator]
    assert {g.verdict for g in checkpoint.globals} <= {GlobalVerdict.KNOWN}, checkpoint.globals
    assert not alarms(checkpoint)


@pytest.mark.parametrize(
    "others",
    [
        [Fetched(StepLR, "step")],
        [Fetched(OneCycleLR, "__init__")],
        [Fetched(OneCycleLR, "_annealing_cos"), Fetched(nn.Linear, "forward")],
        [Fetched(OneCycleLR, "__reduce__")],
    ],
)
def test_getattr_of_anything_else_stays_dangerous(others: list[Fetched], tmp_path: Path) -> None:
    found = {g.name: g.verdict for g in opened({"w": torch.ones(1), "o": others}, tmp_path).globals}
    assert found["builtins.getattr"] is GlobalVerdict.DANGEROUS


@pytest.mark.parametrize(
    "name",
    [
        "deepspeed.runtime.zero.config.ZeroStageEnum",
        "deepspeed.runtime.fp16.loss_scaler.LossScaler",
        "timm.models.vision_transformer.VisionTransformer",
        "timm.models._efficientnet_blocks.InvertedResidual",
        "timm.models.layers.drop.DropPath",
        "timm.layers.mlp.Mlp",
        "transformers.models.bert.modeling_bert.BertModel",
        "transformers.models.gpt2.modeling_gpt2.GPT2LMHeadModel",
        "transformers.models.llama.modeling_llama.LlamaRMSNorm",
        "transformers.models.llama.configuration_llama.LlamaConfig",
        "transformers.training_args.TrainingArguments",
        "transformers.activations.NewGELUActivation",
        "ultralytics.nn.tasks.DetectionModel",
        "ultralytics.nn.modules.conv.Conv",
        "torch.distributed.tensor.placement_types.Shard",
    ],
)
def test_classes_of_common_libraries_are_known(name: str) -> None:
    module, _, last = name.rpartition(".")
    assert judge(module, last)[0] is GlobalVerdict.KNOWN


@pytest.mark.parametrize(
    "name",
    [
        "timm.models._hub.TemporaryDirectory",
        "timm.models._hub.HfApi",
        "timm.models.hub.Path",
        "timm.models._builder.Path",
        "timm.models.vision_transformer.partial",
        "timm.models._helpers.Callable",
        "timm.models.helpers.Mlp",
        "timm.models.helpers.sub.Mlp",
        "timm.data.dataset.ImageDataset",
        "transformers.models.auto.modeling_auto.AutoModel",
        "transformers.models.fuyu.modeling_fuyu.Image",
        "transformers.dynamic_module_utils.get_class_in_module",
        "transformers_modules.x.modeling_x.XModel",
        "transformers.models.bert.tokenization_bert.BertTokenizer",
        "ultralytics.nn.tasks.SafeUnpickler",
        "ultralytics.nn.tasks.torch_safe_load",
        "ultralytics.nn.autobackend.AutoBackend",
        "models.yolo.Model",
    ],
)
def test_their_neighbours_are_not(name: str) -> None:
    module, _, last = name.rpartition(".")
    assert judge(module, last)[0] is not GlobalVerdict.KNOWN


def test_a_newline_in_the_head_of_a_zip_makes_no_pickle_of_it(tmp_path: Path) -> None:
    """A zip begins with "P", a persistent id up to the next newline: pickle ends there, whatever stands behind."""
    # Behind the newline stands "VisionTransformer", which is the opcode for a text: from there a pickle would go on.
    # The file's name is the archive's, and has to be one that the opcodes survive.
    torch.save(torchvision.models.VisionTransformer(16, 8, 1, 2, 8, 8), tmp_path / "vit.pt")
    assert not alarms(open_checkpoint(tmp_path / "vit.pt"))


def test_a_class_that_is_an_argument_was_not_thrown_away(tmp_path: Path) -> None:
    tensor = torch.ones(2).as_subclass(type("Kind", (torch.Tensor,), {"__module__": __name__}))
    globals()["Kind"] = type(tensor)
    place = {g.name: g.place for g in opened({"w": tensor}, tmp_path).globals}
    assert "thrown away" not in place[f"{__name__}.Kind"]


def test_one_name_is_and_two_are(tmp_path: Path) -> None:
    checkpoint = opened({"w": torch.ones(1), "x": Fetched(nn.Linear, "x").__class__}, tmp_path)
    said = next(f.says for f in checkpoint.findings if f.id == "unknown-global")
    assert "1 name that is not known here" in said
