"""Counts against torch's own, and by hand where torch has no word for it."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torchvision.models import get_model

from inspector.architectures.types import ArchitectureSpec, Candidate, Recognition
from inspector.checkpoint.source import BufferSource
from inspector.checkpoint.tree import module_tree
from inspector.checkpoint.types import Checkpoint, ModuleNode, Origin, StateDict, StateRole, TensorInfo
from inspector.errors import ModelError
from inspector.params.count import count_parameters
from inspector.params.report import RoleSource


def info(name, tensor, *, path=None, **more):
    return TensorInfo(
        name=name,
        path=path or (name,),
        shape=tuple(tensor.shape),
        dtype=str(tensor.dtype).removeprefix("torch."),
        nbytes=tensor.numel() * tensor.element_size(),
        storage_id=str(tensor.untyped_storage()._cdata),
        offset=tensor.storage_offset(),
        stride=tensor.stride(),
        **more,
    )


def state_of(tensors, *, path=(), role=StateRole.WEIGHTS, **more):
    tensors = tuple(tensors)
    defaults = {"modules": module_tree(tensors), "kind": "dict", "why": "a test"}
    return StateDict(path=path, role=role, tensors=tensors, **(defaults | more))


def checkpoint_of(*states):
    return Checkpoint(
        origin=Origin(name="test.pth", nbytes=0),
        format="torch-zip",
        format_says="a test",
        root=None,
        tensors=tuple(tensor for state in states for tensor in state.tensors),
        state_dicts=states,
        source=BufferSource(b""),
    )


def count_of(model):
    kept = model.state_dict(keep_vars=True)  # keep_vars: storages keep their identity
    return count_parameters(checkpoint_of(state_of(info(name, tensor) for name, tensor in kept.items())))


@pytest.mark.parametrize(
    "name",
    ["shufflenet_v2_x0_5", "resnet18", "mobilenet_v3_small", "densenet121", "vit_b_16", "swin_v2_t", "googlenet"],
)
def test_totals_are_torchs_own(name):
    more = {"aux_logits": True, "init_weights": False} if name == "googlenet" else {}
    with torch.device("meta"):
        model = get_model(name, weights=None, **more)
    # Meta tensors share one storage pointer: give every tensor a storage of its own.
    model = model.to_empty(device="cpu")
    report = count_of(model)
    parameters = {p: p for p in model.parameters()}
    persistent = [model.state_dict(keep_vars=True)[name] for name in model.state_dict()]
    buffers = [b for b in persistent if b not in parameters]
    total = report.total
    assert total.parameters == sum(p.numel() for p in model.parameters())
    assert total.parameter_nbytes == sum(p.nbytes for p in model.parameters())
    assert total.buffers == sum(b.numel() for b in buffers)
    assert total.buffer_nbytes == sum(b.nbytes for b in buffers)
    assert total.tensors == len(persistent)
    assert report.role_source is RoleSource.NAME
    assert report.trainable is None
    assert report.shared == ()
    by_path = {row.path: row for row in report.modules}
    for path, module in model.named_modules():
        if path in by_path:
            assert by_path[path].parameters == sum(p.numel() for p in module.parameters()), path
            assert by_path[path].own_parameters == sum(p.numel() for p in module.parameters(recurse=False)), path


def test_columns_sum_and_rows_run_depth_first():
    report = count_of(nn.Sequential(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)), nn.Linear(8, 2)))
    assert [(row.path, row.depth) for row in report.modules] == [("", 0), ("0", 1), ("0.0", 2), ("0.1", 2), ("1", 1)]
    assert [row.parameters for row in report.modules] == [258, 240, 224, 16, 18]
    assert [row.own_parameters for row in report.modules] == [0, 0, 224, 16, 18]
    assert sum(row.own_parameters for row in report.modules) == report.total.parameters
    assert [row.buffers for row in report.modules] == [17, 17, 0, 17, 0]
    assert [row.buffer_nbytes for row in report.modules] == [72, 72, 0, 72, 0]  # 16 floats, one int64
    assert [row.tensors for row in report.modules] == [9, 7, 2, 5, 2]
    assert report.dtypes == (("float32", 274, 1096), ("int64", 1, 8))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 4)
        self.head = nn.Linear(4, 10)
        self.head.weight = self.embedding.weight


def test_a_tied_weight_counts_once_at_its_first_name():
    report = count_of(Tied())
    assert report.total.parameters == 50 == sum(p.numel() for p in Tied().parameters())
    assert report.shared == (("head.weight", "embedding.weight"),)
    assert {row.path: row.parameters for row in report.modules} == {"": 50, "embedding": 40, "head": 10}
    assert report.total.tensors == 3
    assert report.dtypes == (("float32", 50, 200),)


def test_a_transposed_tie_counts_once_and_neighbours_in_one_storage_count_each():
    whole, halves, comb = torch.zeros(4, 6), torch.zeros(12), torch.zeros(8)
    tensors = {
        "a": whole,
        "a_t": whole.t(),
        "b": halves[:6],
        "c": halves[6:],
        "d": comb[::2],
        "e": comb[1::2],
    }
    report = count_parameters(checkpoint_of(state_of(info(name, tensor) for name, tensor in tensors.items())))
    assert report.shared == (("a_t", "a"),)
    assert report.total.parameters == 24 + 6 + 6 + 4 + 4


def test_empty_tensors_share_nothing():
    empty = torch.zeros(0)
    report = count_parameters(checkpoint_of(state_of([info("a", empty), info("b", empty)])))
    assert report.shared == ()
    assert report.total.parameters == 0


def test_a_pickled_module_tells_roles_and_what_is_trainable():
    # Named against the habit: only the pickled module can tell.
    weight = info("running_mean", torch.zeros(6), is_parameter=True, requires_grad=True)
    frozen = info("weight", torch.zeros(4), is_parameter=True, requires_grad=False)
    buffer = info("bias", torch.zeros(3), is_parameter=False, requires_grad=False)
    root = ModuleNode(name="", path="", kind="my.Net", tensors=(weight, frozen, buffer))
    report = count_parameters(checkpoint_of(state_of((weight, frozen, buffer), is_module=True, modules=root)))
    assert (report.total.parameters, report.total.buffers, report.trainable) == (10, 3, 6)
    assert report.role_source is RoleSource.PICKLED_MODULE
    assert report.total.kind == "my.Net"


def recognition_of(state, *, wrapper=""):
    candidate = Candidate(
        spec=ArchitectureSpec(library="torchvision", name="swin_v2_t"),
        twins=(),
        matched=(),
        missing=(),
        extra=(),
        reshaped=(),
        wrapper=wrapper,
        score=1.0,
        exact=True,
        says="",
    )
    return Recognition(state_dict=state.path, candidates=(candidate,), official=None, findings=(), says="")


def test_the_recognised_architecture_tells_roles_before_names_do(monkeypatch):
    from inspector.architectures import targets
    from inspector.architectures.types import Target, TargetKind, TargetTensor

    expected = (
        TargetTensor(name="odd", shape=(5,), is_buffer=True),
        TargetTensor(name="running_mean", shape=(3,), is_buffer=False),
    )
    target = Target(label="t", kind=TargetKind.ARCHITECTURE, tensors=expected)
    monkeypatch.setattr(targets, "target_of_candidate", lambda candidate: target)
    tensors = [info("module.odd", torch.zeros(5)), info("module.running_mean", torch.zeros(3))]
    state = state_of(tensors)
    recognition = recognition_of(state, wrapper="module.")
    report = count_parameters(checkpoint_of(state), state, recognition)
    assert (report.total.parameters, report.total.buffers) == (3, 5)
    assert report.role_source is RoleSource.ARCHITECTURE
    # The quiet twin: a recognition of another state dict of the same file says nothing about this one.
    elsewhere = replace(recognition, state_dict=("ema",))
    by_name = count_parameters(checkpoint_of(state), state, elsewhere)
    assert (by_name.total.parameters, by_name.total.buffers) == (5, 3)
    assert by_name.role_source is RoleSource.NAME


def test_optimizer_bytes_are_those_of_its_tensors_once():
    moment, step = torch.zeros(10), torch.tensor(3.0)
    optimizer = state_of(
        [
            info("state.0.exp_avg", moment, path=("optimizer", "state", "0", "exp_avg")),
            info("state.0.same", moment, path=("optimizer", "state", "0", "same")),
            info("state.0.step", step, path=("optimizer", "state", "0", "step")),
        ],
        path=("optimizer",),
        role=StateRole.OPTIMIZER,
    )
    weights = state_of([info("weight", torch.zeros(10))])
    assert count_parameters(checkpoint_of(weights, optimizer)).optimizer_nbytes == 44
    assert count_parameters(checkpoint_of(weights)).optimizer_nbytes == 0


def test_a_file_without_a_state_dict_is_a_sentence():
    with pytest.raises(ModelError, match=r"test\.pth holds no set of named weights"):
        count_parameters(checkpoint_of())
