"""A visitor's file as a worker has it: opened as a source, recognised, built as a model that runs."""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

from inspector.architectures.own_model import model_of_code, target_of_own
from inspector.architectures.recognise import recognise
from inspector.architectures.targets import parse_target, target_of
from inspector.architectures.types import Recognition, Target
from inspector.architectures.user_code import check_source, parse_factory
from inspector.cam.runs import ReadyModel
from inspector.checkpoint.digest import digest_of
from inspector.checkpoint.source import PathSource
from inspector.checkpoint.types import Checkpoint, StateDict
from inspector.errors import ReadError, UsageError
from inspector.jobs.bench import Bench
from inspector.jobs.kind import MB
from inspector.jobs.kinds.memory import weights_nbytes
from inspector.jobs.subjects import CodeRef, FileRef, ModelFacts
from inspector.readers import open_checkpoint
from inspector.ready import ready_model
from inspector.side_files import read_bytes

# Names, shapes and offsets: a thousand bytes or so for each tensor.
_A_TENSOR = 1000
# A job's own allowance has room for loading less than this.
_SMALL_NBYTES = 100 * MB


def digest(bench: Bench, path: Path, nbytes: int, modified_ns: int) -> str:
    """sha256 of a file on the server. nbytes, modified_ns: what it is known by until it changes."""
    del nbytes, modified_ns
    return digest_of(path, bench.progress)


def checkpoint_of(bench: Bench, file: FileRef) -> Checkpoint:
    """The opened file. Raises ReadError where it went meanwhile, or is none."""
    if not file.path.is_file():
        raise ReadError(f"{file.name} is not on the server any more.", hint="Drop it again on the Open page.")

    def opened() -> Checkpoint:
        found = open_checkpoint(PathSource(file.path, file.name))
        return replace(found, origin=replace(found.origin, name=file.name, sha256=file.sha256))

    return bench.keep(
        ("file", file.sha256, file.name), opened, nbytes=lambda c: _A_TENSOR * len(c.tensors), tag=file.sha256
    )


def state_of(checkpoint: Checkpoint, file: FileRef) -> StateDict | None:
    """The state dict that is meant; None for the likeliest."""
    return next((s for s in checkpoint.state_dicts if s.path == file.state), None) if file.state is not None else None


def recognition_of(bench: Bench, file: FileRef) -> Recognition:
    """What its weights are."""
    checkpoint = checkpoint_of(bench, file)
    return bench.keep(
        ("recognised", file.sha256, file.name, file.state),
        lambda: recognise(checkpoint, state_of(checkpoint, file)),
        nbytes=lambda _: _A_TENSOR * len(checkpoint.tensors),
        tag=file.sha256,
    )


def ready_of(bench: Bench, file: FileRef) -> ReadyModel:
    """The recognised model with the file's weights, strictly loaded. Raises as `ready_model`, WorkEnded."""
    checkpoint, recognition = checkpoint_of(bench, file), recognition_of(bench, file)

    def build() -> ReadyModel:
        state = state_of(checkpoint, file) or checkpoint.weights
        nbytes = sum(4 * tensor.numel for tensor in state.tensors) if state is not None else 0
        if nbytes > _SMALL_NBYTES:
            # As it is read, and as the model holds it.
            bench.need(2 * nbytes)
        if file.code is not None:
            own, described = built_by(file.code)
            found = state_of(checkpoint, file)
            return ready_model(checkpoint, described, state=found, recognition=recognition, own=own)
        target = target_of(recognition.best.spec) if recognition.best is not None else None
        target = parse_target(file.confirmed) if file.confirmed else target
        return ready_model(checkpoint, target, state=state_of(checkpoint, file), recognition=recognition)

    return bench.keep(("ready", file), build, nbytes=lambda ready: weights_nbytes(ready.model), tag=file.sha256)


def built_by(code: CodeRef) -> tuple[nn.Module, Target]:
    """What a person's own code builds, in this process: a worker of its own. Raises UsageError where the file is not
    the one that was agreed to, and as `model_of_code`."""
    factory = parse_factory(code.text)
    check_source(factory, code.folder)
    if hashlib.sha256(read_bytes(code.folder / factory.where)).hexdigest() != code.sha256:
        raise UsageError("The code changed since you agreed to run it.", hint="Look at it again and agree once more.")
    with contextlib.chdir(code.folder):
        own = model_of_code(code.text, folder=code.folder)
    return own, target_of_own(own, code.text)


def facts(bench: Bench, file: FileRef) -> ModelFacts:
    """Whether there is a model to run, and what is said of it."""
    ready = ready_of(bench, file)
    return ModelFacts(weights_note=ready.weights_note, threads=torch.get_num_threads(), loaded=ready.loaded)
