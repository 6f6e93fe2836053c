"""How far an address is followed: what may be asked, how long, and how much."""

from __future__ import annotations

from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """A secret for one origin ("https://host"), sent to no other. header: the Authorization field's value."""

    origin: str
    header: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Plain values, so that a job may carry it.

    private: whether addresses that no public host has may be asked: this machine, its networks. A public server's
    redirect never leads there. trusted: origins that may be asked wherever they are: the operator's own hub.
    low_ports: whether other ports below 1024 than a web server's may be asked. tells_numbers: whether a refusal may say
    which address a name stands for, to a person who may look it up. passwords: whether an address may bring a name and
    password. downgrade: whether https may redirect to http.
    proxy: "http://host:port" through which everything goes, "" for none; the environment's are not asked.
    connect_seconds, read_seconds: until a connection stands, and until the next bytes come. seconds: of one request,
    beside what its bytes take at slowest bytes a second. look_seconds, look_nbytes: of everything that one source is
    asked for together, None for no such limit. look_slowest: bytes a second; what came may have taken that long beside
    look_seconds, 0 for a limit that nothing moves. spool_nbytes: of one file that are kept on this machine's disk while
    it is worked on, 0 for none.
    """

    private: bool = False
    trusted: tuple[str, ...] = ()
    low_ports: bool = False
    tells_numbers: bool = False
    passwords: bool = False
    downgrade: bool = False
    proxy: str = ""
    access: Access | None = None
    connect_seconds: float = 10.0
    read_seconds: float = 30.0
    seconds: float = 60.0
    slowest: int = 20_000
    wait_seconds: float = 20.0
    tries: int = 3
    redirects: int = 5
    header_nbytes: int = 64 * 1024
    file_nbytes: int = 1 << 42
    look_seconds: float | None = None
    look_nbytes: int | None = None
    look_slowest: int = 0
    spool_nbytes: int = 0


#: What a person types on their own machine: their networks are theirs.
OWN = Policy(private=True, low_ports=True, tells_numbers=True, passwords=True, spool_nbytes=8 << 30)
#: The same until the header is read: a slow line may take its time, a server that hardly sends may not.
OWN_LOOK = replace(OWN, look_seconds=60.0, look_slowest=20_000)
#: What a visitor of a server types.
VISITOR = Policy(look_seconds=60.0, look_nbytes=64 * 1024 * 1024)
