"""Every kind of job there is. Importing this imports none of the work."""

from __future__ import annotations

from dataclasses import replace

from inspector.errors import UsageError
from inspector.jobs.kind import MB, Kind

_HOUR = 3600.0
# More takes long enough to be kept out of the way of others.
_LONG, _LONG_NBYTES = "long-", 1000 * MB


def _either(name: str, says: str, where: str, *, kept: bool = False) -> tuple[Kind, Kind]:
    """What takes long for a large file and no time for a small one: whoever asks knows which."""
    short = Kind(id=name, says=says, where=where, seconds=_HOUR, kept=kept)
    return short, replace(short, id=_LONG + name, long=True)


def sized(name: str, nbytes: int) -> str:
    """Which of the two it is for so many bytes."""
    return _LONG + name if nbytes > _LONG_NBYTES else name


KINDS: tuple[Kind, ...] = (
    Kind(id="drawn", says="Reading the picture", where="pictures:drawn", nbytes=500 * MB, seconds=60.0),
    Kind(id="overlay", says="Drawing the overlay", where="pictures:overlay_png", nbytes=600 * MB, kept=False),
    Kind(id="facts", says="Building the model", where="files:facts"),
    Kind(id="methods", says="Listing the methods", where="heat:methods", nbytes=50 * MB),
    Kind(id="proposals", says="Tracing the layers", where="heat:proposals"),
    Kind(id="layer", says="Tracing the layer", where="heat:layer_named"),
    Kind(id="seen", says="Looking at the picture", where="heat:seen", nbytes=800 * MB),
    Kind(id="cost", says="Trying out one pass", where="heat:cost", nbytes=800 * MB),
    Kind(id="map", says="Making the heat map", where="heat:explained", nbytes=800 * MB),
    Kind(id="long-map", says="Making the heat map", where="heat:explained", nbytes=800 * MB, seconds=_HOUR, long=True),
    Kind(id="grid", says="Drawing the maps", where="panels:grid", nbytes=800 * MB, behind=10.0),
    Kind(id="channels", says="Looking at the channels", where="panels:channels", nbytes=800 * MB),
    Kind(id="channel", says="Looking at the channel", where="panels:channel", nbytes=800 * MB),
    Kind(id="spread", says="Drawing the map", where="panels:spread", nbytes=200 * MB),
    Kind(
        id="sheet", says="Looking at the pictures", where="panels:sheet_of", nbytes=800 * MB, seconds=_HOUR, long=True
    ),
    Kind(id="trust-cost", says="Timing one pass", where="panels:trust_cost", nbytes=800 * MB),
    Kind(id="trust", says="Measuring the map", where="panels:trust", nbytes=800 * MB, seconds=2 * _HOUR, long=True),
    Kind(id="pictures-cost", says="Timing one pass", where="panels:pictures_cost", nbytes=800 * MB),
    Kind(
        id="pictures-trust",
        says="Measuring the pictures",
        where="panels:pictures_trust",
        nbytes=800 * MB,
        seconds=4 * _HOUR,
        long=True,
    ),
    Kind(
        id="run", says="Looking through the checkpoints", where="panels:run", nbytes=800 * MB, seconds=_HOUR, long=True
    ),
    Kind(id="class-folders", says="Listing the pictures", where="evaluation:listed", nbytes=400 * MB, kept=False),
    Kind(id="archived-folders", says="Listing the pictures", where="evaluation:listed", nbytes=400 * MB),
    Kind(id="head-size", says="Trying out one pass", where="evaluation:head", nbytes=800 * MB),
    Kind(
        id="evaluation",
        says="Evaluating the pictures",
        where="evaluation:evaluation",
        nbytes=800 * MB,
        seconds=12 * _HOUR,
        long=True,
        goes_on=True,
    ),
    Kind(id="worst-cases", says="Looking at the worst cases", where="evaluation:worst_cases", nbytes=800 * MB),
    Kind(id="strip", says="Drawing the strip", where="panels:strip_png", nbytes=800 * MB, kept=False),
    Kind(id="zoo", says="Asking the catalogue", where="catalogue:answered", nbytes=1200 * MB, seconds=90.0),
    Kind(id="archive-survey", says="Looking at every file", where="surveys:of_archive", seconds=_HOUR, long=True),
    Kind(id="address-survey", says="Looking at every file", where="surveys:of_address", seconds=_HOUR, long=True),
    Kind(id="folder-survey", says="Looking at every file", where="surveys:of_folder", seconds=_HOUR, long=True),
    Kind(
        id="fetch",
        says="Fetching the file",
        where="fetching:fetched",
        nbytes=200 * MB,
        seconds=6 * _HOUR,
        long=True,
        kept=False,
    ),
    *_either("digest", "Computing the sha256", "files:digest", kept=True),
    Kind(id="tensor", says="Reading the tensor", where="reports:tensor", nbytes=400 * MB),
    Kind(id="tensor-look", says="Reading the first numbers", where="reports:tensor_look", nbytes=200 * MB, kept=False),
    *_either("spectrum", "Decomposing the matrix", "reports:spectrum", kept=True),
    *_either("difference", "Comparing the files", "comparing:difference", kept=True),
    Kind(id="run-folder", says="Listing the checkpoints", where="training_run:listed", nbytes=200 * MB, kept=False),
    *_either("run-report", "Reading the checkpoints", "training_run:measured", kept=True),
    *_either("projection", "Making the map", "projector:projection", kept=True),
    Kind(
        id="pictures-projection",
        says="Looking at the pictures",
        where="projector:pictures",
        nbytes=800 * MB,
        seconds=_HOUR,
        long=True,
    ),
    Kind(id="neighbours", says="Comparing the vectors", where="projector:neighbours", seconds=600.0),
    Kind(id="vectors", says="Reading the vectors", where="projector:vectors", seconds=600.0, kept=False),
    *_either("health", "Reading the tensors", "reports:health", kept=True),
    Kind(id="costs", says="Counting the operations", where="reports:costs"),
    Kind(id="real-costs", says="Running with random numbers", where="reports:real_costs", nbytes=2000 * MB),
    Kind(id="drawing", says="Following one pass", where="reports:drawing"),
    Kind(id="carried-graph", says="Reading the graph", where="reports:carried_graph", nbytes=500 * MB),
    Kind(id="memory", says="Following what is held", where="reports:memory"),
    Kind(id="timing", says="Timing the modules", where="reports:timing", nbytes=2000 * MB, kept=False),
    Kind(id="trace", says="Watching a forward pass", where="reports:trace", nbytes=800 * MB),
    Kind(id="feature-maps", says="Picturing the channels", where="reports:feature_maps", nbytes=800 * MB),
    Kind(id="trace-own", says="Running your code", where="reports:trace_own", seconds=180.0, kept=False),
    Kind(id="verify", says="Verifying", where="reports:verify", seconds=600.0),
    Kind(id="statements", says="Asking the numbers", where="reports:statements", seconds=600.0),
    Kind(id="surgery", says="Planning the steps", where="reports:surgery"),
    Kind(id="optimizer-groups", says="Looking at the optimizer", where="reports:optimizer_groups"),
    Kind(id="code-target", says="Running your code", where="reports:code_target", seconds=90.0, kept=False),
    Kind(id="code-costs", says="Running your code", where="reports:code_costs", seconds=90.0, kept=False),
    Kind(id="code-drawing", says="Running your code", where="reports:code_drawing", seconds=90.0, kept=False),
    *_either("repaired", "Writing the file", "writing:repaired"),
    *_either("as-is", "Writing the file", "writing:as_is"),
    *_either("merged", "Merging the adapter", "writing:merged"),
    Kind(id="trial", says="The trial", where="trials:trial", nbytes=200 * MB, seconds=20.0, kept=False),
    Kind(id="short-trial", says="The trial", where="trials:trial", nbytes=200 * MB, seconds=2.0, kept=False),
    Kind(id="later-trial", says="The later trial", where="trials:trial", nbytes=200 * MB, kept=False, behind=30.0),
    Kind(id="long-trial", says="The long trial", where="trials:trial", nbytes=200 * MB, long=True, kept=False),
)
_BY_ID = {kind.id: kind for kind in KINDS}


def kind_named(name: str) -> Kind:
    """Raises UsageError for one that there is not."""
    if name not in _BY_ID:
        raise UsageError(f"There is no job {name!r}.")
    return _BY_ID[name]
