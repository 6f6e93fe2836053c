"""A Dask cluster that somebody else runs, by the address of its scheduler. It is spoken to, never started or ended.

Whoever may speak to a scheduler may run anything on its workers: an address comes from the operator, never from a file
or a visitor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

from inspector.errors import MissingLibrary, ReadError
from inspector.installed import install_line
from inspector.sweep.piece import engine_version

Result = TypeVar("Result")

_CONNECT_SECONDS = 15
_WORKERS_SECONDS = 60


class Cluster:
    """workers: threads of all workers when the sweep began; who comes later works too."""

    most = 100

    def __init__(self, client: Any, address: str) -> None:
        self._client = client
        self._address = address
        self._executor = client.get_executor(pure=False)
        self.workers = max(1, sum(client.nthreads().values()))
        self.window = 4 * self.workers

    def submit(self, function: Callable[..., Result], /, *args: Any) -> Future[Result]:
        future: Future[Result] = self._executor.submit(function, *args)
        return future

    def cancel(self, futures: Iterable[Future[Any]]) -> None:
        for future in futures:
            future.cancel()

    def renew(self) -> None:
        return None

    def check(self) -> None:
        if self._client.status != "running":
            raise ReadError(
                f"The Dask scheduler at {self._address} is gone.",
                hint="What was done is in the store: run the same again once it is back.",
            )

    def close(self, *, stop: bool) -> None:
        """The futures were cancelled by whoever stops; pieces are short."""
        return


@contextmanager
def cluster_engine(address: str) -> Iterator[Cluster]:
    """The engine of a scheduler. Raises MissingLibrary without `distributed`, ReadError where nobody answers, where no
    worker comes, or where one has another version of this package."""
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingLibrary(
            "A Dask cluster needs the package distributed.", hint=install_line("distributed")
        ) from error
    try:
        connect: Any = Client
        client = connect(address, timeout=_CONNECT_SECONDS, set_as_default=False, name="inspector")
    except (OSError, TimeoutError, ValueError) as error:
        raise ReadError(f"No Dask scheduler answers at {address}: {error}.") from error
    try:
        try:
            client.wait_for_workers(1, timeout=_WORKERS_SECONDS)
        except TimeoutError as error:
            raise ReadError(f"The Dask scheduler at {address} has no workers.") from error
        _check_versions(client, address)
        yield Cluster(client, address)
    finally:
        client.close(timeout=2)


def _version_here() -> str:
    return engine_version()


def _check_versions(client: Any, address: str) -> None:
    try:
        versions = client.run(_version_here)
    except ModuleNotFoundError as error:
        raise ReadError(
            f"A worker of {address} has no Model Inspector.", hint="Install the same version on every worker."
        ) from error
    other = sorted(worker for worker, version in versions.items() if version != engine_version())
    if other:
        raise ReadError(
            f"{len(other)} of {len(versions)} workers of {address} have another version of Model Inspector, "
            f"first {other[0]}.",
            hint="Install the same version on every worker.",
        )
