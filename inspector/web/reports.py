"""The core's answers about the file in hand, computed once per file and kept in bounded caches.

Reports are frozen, so sessions may share them. What runs a model or reads numbers is a job (`inspector.jobs`): this
process imports no torch. Slices are imported when first asked, so that the first page comes at once.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

import streamlit as st

from inspector.architectures.types import ArchitectureSpec, Recognition, Target
from inspector.checkpoint.types import Checkpoint, StateDict
from inspector.errors import KeysDoNotFit, NeedsWholeFile, ReadError
from inspector.flops.report import CostReport
from inspector.jobs.job import Job
from inspector.jobs.subjects import FileRef, ModelFacts
from inspector.kept_with import KeptWith
from inspector.keys.report import KeyReport, RepairPlan
from inspector.params.report import ParameterReport
from inspector.web import assumptions, jobs, own_code, remote_files, states
from inspector.web.session import Hand
from inspector.web.store import the_store

_Path = tuple[str, ...] | None


def checkpoint_of(hand: Hand) -> Checkpoint:
    """The opened file. Raises ReadError with a sentence for anything that is no checkpoint, or is gone."""
    if not the_store().is_here(hand.sha256):
        raise ReadError(f"{hand.name} is not on the server any more.", hint="Drop it again on the Open page.")
    return _open(hand.sha256, hand.name)


@st.cache_resource(max_entries=24, show_spinner="Reading the file …", on_release=lambda c: c.source.close())
def _open(sha256: str, name: str) -> Checkpoint:
    return open_anew(sha256, name)


def open_anew(sha256: str, name: str) -> Checkpoint:
    """The file opened once more, for work beside the page, which closes it. Raises ReadError as `checkpoint_of`."""
    from inspector.checkpoint.source import PathSource
    from inspector.readers import open_checkpoint

    stored = the_store().find(sha256)
    if stored is not None and stored.remote:
        the_store().touch(sha256)
        return remote_files.open_again(stored, name)
    path = the_store().get_path(sha256)
    if path is None:
        raise ReadError(f"{name} is not on the server any more.", hint="Drop it again on the Open page.")
    the_store().touch(sha256)
    # As a source, not a path: what lies beside it in the store belongs to other visitors.
    checkpoint = open_checkpoint(PathSource(path, name))
    return replace(checkpoint, origin=replace(checkpoint.origin, name=name, sha256=sha256))


def _path_of(hand: Hand, state: StateDict | None) -> _Path:
    """Of the state dict that is asked about: the given one, else the network that the visitor chose of several; None
    for the likeliest weights."""
    chose = states.path_of(hand.sha256) is not None
    asked = state or (states.meant_state(checkpoint_of(hand)) if chose else None)
    return asked.path if asked is not None else None


def recognition_of(hand: Hand, state: StateDict | None = None) -> Recognition:
    """What the weights are, with the evidence."""
    return _recognition(hand.sha256, hand.name, _path_of(hand, state))


@st.cache_resource(max_entries=48, show_spinner="Comparing with known architectures …")
def _recognition(sha256: str, name: str, path: _Path) -> Recognition:
    from inspector.architectures.recognise import recognise

    checkpoint = _open(sha256, name)
    return recognise(checkpoint, _state(checkpoint, path))


def parameters_of(hand: Hand, state: StateDict | None = None) -> ParameterReport:
    """Parameters and bytes per module."""
    return _parameters(hand.sha256, hand.name, _path_of(hand, state))


@st.cache_resource(max_entries=48, show_spinner=False)
def _parameters(sha256: str, name: str, path: _Path) -> ParameterReport:
    from inspector.params.count import count_parameters

    checkpoint = _open(sha256, name)
    return count_parameters(checkpoint, _state(checkpoint, path), _recognition(sha256, name, path))


def default_input(spec: ArchitectureSpec) -> tuple[int, int, int]:
    """(channels, height, width) that this architecture is usually run at."""
    from inspector.architectures.facts import default_input as ask

    return ask(spec)


def takes_pictures(spec: ArchitectureSpec) -> bool:
    """Whether a picture is all that a forward pass takes."""
    from inspector.architectures.facts import takes_pictures as ask

    return ask(spec)


def costs_of(
    spec: ArchitectureSpec, input_shape: tuple[int, ...] | None = None, batch: int = 1, *, real: bool = False
) -> CostReport:
    """What one forward pass costs at (channels, height, width), or on the usual input; real: with random numbers."""
    kind = "real-costs" if real else "costs"
    found: CostReport = jobs.ask(Job(kind=kind, arguments=(spec, input_shape, batch)), says="Counting the operations")
    return found


def plan_to_run(hand: Hand, target: Target, state: StateDict | None = None) -> RepairPlan:
    """How the file's weights come into what a target builds. Raises KeysDoNotFit where they do not."""
    return _plan_to_run(hand.sha256, hand.name, _path_of(hand, state), target)


@st.cache_resource(max_entries=48, show_spinner="Comparing keys …", hash_funcs={Target: lambda t: target_key(t)})
def _plan_to_run(sha256: str, name: str, path: _Path, target: Target) -> RepairPlan:
    from inspector.keys.runnable import plan_to_run as plan

    checkpoint = _open(sha256, name)
    return plan(checkpoint, target, _state(checkpoint, path))


def why_another(hand: Hand, state: StateDict | None = None) -> str:
    """Why what it was recognised as computes something else than the file, as a sentence; "" where it does not."""
    return _why_another(hand.sha256, hand.name, _path_of(hand, state))


@st.cache_resource(max_entries=48, show_spinner="Comparing keys …")
def _why_another(sha256: str, name: str, path: _Path) -> str:
    from inspector.keys.runnable import why_another as why

    checkpoint = _open(sha256, name)
    return why(checkpoint, _recognition(sha256, name, path), _state(checkpoint, path))


def whose_costs(hand: Hand, state: StateDict | None = None) -> str:
    """Whose costs are counted where the file holds more or less than what it was recognised as; "" for its own."""
    return _whose_costs(hand.sha256, hand.name, _path_of(hand, state))


@st.cache_resource(max_entries=48, show_spinner="Comparing keys …")
def _whose_costs(sha256: str, name: str, path: _Path) -> str:
    from inspector.keys.runnable import whose_costs as whose

    checkpoint = _open(sha256, name)
    return whose(checkpoint, _recognition(sha256, name, path), _state(checkpoint, path))


def why_unfit(hand: Hand) -> str:
    """Why the file's weights cannot be run in what it was recognised as, as a sentence; "" where they can, and where it
    was not recognised."""
    best, target = recognition_of(hand).best, own_target(hand)
    if best is None or best.exact or target is None:
        return ""
    try:
        plan_to_run(hand, target)
    except KeysDoNotFit as error:
        return error.says
    return ""


def own_target(hand: Hand, state: StateDict | None = None) -> Target | None:
    """What the file was recognised as, as a target; None when it was not."""
    best = recognition_of(hand, state).best
    if best is None:
        return None
    from inspector.architectures.targets import follow_shapes

    return follow_shapes(_own_target(best.spec), state or checkpoint_of(hand).weights)


@st.cache_resource(max_entries=48, show_spinner=False)
def _own_target(spec: ArchitectureSpec) -> Target:
    from inspector.architectures.targets import target_of

    return target_of(spec)


def keys_of(
    hand: Hand,
    target: Target,
    state: StateDict | None = None,
    *,
    accept: tuple[str, ...] = (),
    choose: tuple[tuple[str, str], ...] = (),
    partial: bool = False,
) -> KeyReport:
    """The keys against a target, and the plan that makes them fit."""
    return _keys(hand.sha256, hand.name, _path_of(hand, state), target, accept, choose, partial)


def target_key(target: Target) -> str:
    """A digest of everything in it: Streamlit's own takes a second for thousands of tensors."""
    return _TARGET_KEYS.of(target)


# A page asks at every run, of a target that it was given before.
_TARGET_KEYS: KeptWith[Target, str] = KeptWith(
    lambda target: hashlib.sha256(repr(target).encode("utf-8", "surrogatepass")).hexdigest()
)


@st.cache_resource(max_entries=48, show_spinner="Comparing keys …", hash_funcs={Target: target_key})
def _keys(
    sha256: str,
    name: str,
    path: _Path,
    target: Target,
    accept: tuple[str, ...],
    choose: tuple[tuple[str, str], ...],
    partial: bool,
) -> KeyReport:
    from inspector.keys.diagnose import diagnose

    checkpoint = _open(sha256, name)
    return diagnose(
        checkpoint, target, state=_state(checkpoint, path), accept=accept, choose=dict(choose), partial=partial
    )


def file_of(hand: Hand, state: StateDict | None = None) -> FileRef:
    """The file in hand as jobs know it. Raises ReadError when it is gone."""
    if hand.is_elsewhere:
        raise NeedsWholeFile(
            f"This takes the bytes of {hand.name}, of which only the header was read at its address.",
            hint="Fetch the whole file above.",
        )
    path = the_store().get_path(hand.sha256)
    if path is None:
        raise ReadError(f"{hand.name} is not on the server any more.", hint="Drop it again on the Open page.")
    return FileRef(sha256=hand.sha256, name=hand.name, path=path, state=_path_of(hand, state))


def model_file(hand: Hand) -> FileRef:
    """The same as a model that runs: with what this visitor confirmed of what no shape tells; where nobody knows the
    network, or it is only near a known one, with the code for it that was agreed to."""
    code = own_code.used_for(hand.sha256)
    if code is not None or recognition_of(hand).best is None:
        return replace(file_of(hand), code=code)
    return replace(file_of(hand), confirmed=confirmed_of(hand))


def facts_of(hand: Hand) -> ModelFacts:
    """Of the recognised model with the file's weights. Raises where there is none to run, in one sentence."""
    file = model_file(hand)
    job = Job(kind="facts", arguments=(file,), near=hand.sha256)
    found: ModelFacts = jobs.ask(job, says="Building the model and loading the weights")
    return found


def confirmed_of(hand: Hand, state: StateDict | None = None) -> str:
    """Label of the recognised architecture with what this visitor confirmed of it; "" where there is nothing."""
    best = recognition_of(hand, state).best
    return "" if best is None else assumptions.confirmed_label(best.spec)


def _state(checkpoint: Checkpoint, path: _Path) -> StateDict | None:
    return next((s for s in checkpoint.state_dicts if s.path == path), None) if path is not None else None
