"""A connection to exactly the address that was checked, whose every wait has an end."""

from __future__ import annotations

import io
import re
import socket
import ssl
import threading
import time
from contextlib import suppress
from http.client import HTTPConnection, HTTPResponse
from typing import Any

from inspector.errors import AddressError, AddressRefused, NotPublic
from inspector.remote.address import WebAddress, parse_address
from inspector.remote.networks import as_ip, tells_secrets, why_not_public
from inspector.remote.policy import Policy

_BUFFER_NBYTES = 64 * 1024
_MOST_ADDRESSES = 16
# An address in any of the spellings that the system takes for a number.
_NUMERIC = re.compile(r"(0x[0-9a-f]*|\d+)(\.(0x[0-9a-f]*|\d+))*\.?")


class Overdue(TimeoutError):
    """A request took longer than it may, though something kept coming."""


class TooMuch(OSError):
    """A server sent more than it was asked for."""


def addresses_of(host: str, port: int, seconds: float) -> tuple[str, ...]:
    """Every numeric address that a name stands for, as the system knows it now. Raises OSError.

    In a thread of its own: the system's resolver knows no time limit.
    """
    found: list[str] = []
    failed: list[OSError | UnicodeError] = []

    def ask() -> None:
        try:
            for *_, place in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
                found.append(str(place[0]))
        except (OSError, UnicodeError) as error:
            failed.append(error)

    thread = threading.Thread(target=ask, daemon=True, name="inspector-resolve")
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0] if isinstance(failed[0], OSError) else OSError(str(failed[0]))
    if not found:
        raise TimeoutError(f"no answer within {seconds:g} s")
    return tuple(dict.fromkeys(found))[:_MOST_ADDRESSES]


def check_addresses(address: WebAddress, numbers: tuple[str, ...], policy: Policy, *, sent_by: str = "") -> None:
    """Raises AddressRefused where one of them is no public host's: which of several is asked is chance.

    sent_by: the public host that redirects there, "" where it is what was asked for.
    """
    for number in numbers:
        ip = as_ip(number)
        why = "no address" if ip is None else why_not_public(ip)
        if why:
            if number == address.host:
                says = f"{address.host} is no public address ({why})."
            elif policy.tells_numbers or _NUMERIC.fullmatch(address.host):
                says = f"{address.host} stands for {number}, which is no public address ({why})."
            else:
                raise no_public_address(address, policy, sent_by=sent_by)
            if sent_by:
                raise _sent_on(address, policy, sent_by, says)
            raise NotPublic(
                says, hint="Only public addresses are asked from here; download the file and open it from disk."
            )


def check_sent_on(address: WebAddress, numbers: tuple[str, ...], sent_by: str) -> None:
    """Raises AddressRefused where a redirect leads to what a cloud tells its machines alone, keys among it. That holds
    between private addresses, too. sent_by: the host that redirects."""
    if any(tells_secrets(ip) for ip in map(as_ip, numbers) if ip is not None):
        raise AddressRefused(
            f"{sent_by} redirects to {address.host_and_port}, where a cloud tells its machines their keys: "
            "no redirect is followed there.",
            hint="Check the address.",
        )


def no_public_address(address: WebAddress, policy: Policy, *, sent_by: str = "") -> AddressRefused:
    """Of a name that stands for nothing, and of one of a network of one's own: whoever asks is not told which: names
    in there are nobody else's to know."""
    says = f"No public address is known here for the name {address.host}."
    if sent_by:
        return _sent_on(address, policy, sent_by, says)
    return NotPublic(
        says,
        hint="Look for a slip in the name. A file of a network of your own: download it and open it from disk.",
    )


def _sent_on(address: WebAddress, policy: Policy, sent_by: str, says: str) -> AddressRefused:
    """No setting allows it, so that none is named. says: what is known of the address."""
    return AddressRefused(
        f"{sent_by}, a public server, redirects to {address.host_and_port}, and nobody is sent on from "
        f"there to private addresses: {says}",
        hint="If it is meant, give that address itself." if policy.private else "Check the address.",
    )


class _Timed(io.RawIOBase):
    """A socket's bytes, each wait no longer than one may be silent, all waits no longer than the deadline."""

    def __init__(self, line: Line) -> None:
        super().__init__()
        self._line = line

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._line.receive(buffer)


class Line:
    """One connection. `http.client` takes it for its socket."""

    def __init__(self, sock: socket.socket, policy: Policy) -> None:
        self._sock = sock
        self._policy = policy
        self._deadline = 0.0
        self._left = 0
        self.used = False
        self.http = HTTPConnection("-")
        self.http.auto_open = 0
        self.http.sock = self

    def begin(self, deadline: float, most_nbytes: int) -> None:
        """The next request: until when (of time.monotonic), and how many bytes it may bring before `expect`."""
        self._deadline, self._left = deadline, most_nbytes

    def expect(self, nbytes: int) -> None:
        """So many more may come."""
        self._left += nbytes

    def receive(self, buffer: Any) -> int:
        self._wait()
        try:
            n = self._sock.recv_into(buffer)
        except TimeoutError as error:
            if time.monotonic() >= self._deadline:
                raise Overdue from error
            raise
        self._left -= n
        if self._left < 0:
            raise TooMuch
        return n

    def sendall(self, data: Any) -> None:
        self._wait()
        self._sock.sendall(data)

    def _wait(self) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise Overdue
        self._sock.settimeout(min(self._policy.read_seconds, left))

    def makefile(self, mode: str = "rb", *_: Any, **__: Any) -> io.BufferedReader:
        assert mode == "rb"
        return io.BufferedReader(_Timed(self), _BUFFER_NBYTES)

    def close(self) -> None:
        """What http.client calls where the server will close; the answer is still being read then."""

    def end(self) -> None:
        """Let go of the connection."""
        with suppress(OSError):
            self._sock.close()

    def __del__(self) -> None:
        self.end()


def connect(address: WebAddress, numbers: tuple[str, ...], policy: Policy, deadline: float) -> Line:
    """A line to the first of the numbers that answers, with the certificate of the name. Raises AddressError."""
    failed: OSError | None = None
    for number in numbers:
        seconds = min(policy.connect_seconds, deadline - time.monotonic())
        if seconds <= 0:
            break
        try:
            sock = socket.create_connection((number, address.port), timeout=seconds)
        except OSError as error:
            failed = error
            continue
        return _dressed(sock, address, policy)
    raise _unreached(address, failed or TimeoutError())


def connect_by_proxy(address: WebAddress, policy: Policy) -> Line:
    """A line through the proxy; where the name leads is the proxy's to know. Raises AddressError."""
    proxy = parse_address(policy.proxy)
    try:
        sock = socket.create_connection((proxy.host, proxy.port), timeout=policy.connect_seconds)
        if address.scheme == "https":
            tunnel = HTTPConnection(proxy.host, proxy.port)
            tunnel.auto_open, tunnel.sock = 0, sock
            host = f"[{address.host}]" if ":" in address.host else address.host
            tunnel.putrequest("CONNECT", f"{host}:{address.port}", skip_host=True, skip_accept_encoding=True)
            tunnel.putheader("Host", f"{host}:{address.port}")
            tunnel.endheaders()
            answer = HTTPResponse(sock, method="CONNECT")
            answer.begin()
            if answer.status != 200:
                raise OSError(f"it answers {answer.status} to CONNECT")
    except OSError as error:
        raise AddressError(
            f"The proxy {proxy.host_and_port} does not lead to {address.host}: {_why(error)}."
        ) from error
    return _dressed(sock, address, policy)


def _dressed(sock: socket.socket, address: WebAddress, policy: Policy) -> Line:
    if address.scheme == "https":
        try:
            sock = ssl.create_default_context().wrap_socket(sock, server_hostname=address.host)
        except (OSError, ValueError) as error:
            sock.close()
            raise _unreached(address, error) from error
    return Line(sock, policy)


def _unreached(address: WebAddress, error: OSError | ValueError) -> AddressError:
    if isinstance(error, ssl.SSLCertVerificationError):
        return AddressError(
            f"{address.host} shows a certificate that is not trusted for it: {error.verify_message}.",
            hint="Check the address.",
        )
    return AddressError(f"{address.host_and_port} cannot be reached: {_why(error)}.", hint="Check the address.")


def _why(error: OSError | ValueError) -> str:
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
