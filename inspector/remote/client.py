"""Asks web addresses: resolved once, checked at each step, followed through redirects, tried again, within limits."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPException, HTTPMessage, HTTPResponse

from inspector.errors import AddressError, AddressRefused, NeedsWholeFile
from inspector.remote import lines
from inspector.remote.address import WebAddress, redirected
from inspector.remote.lines import Line, Overdue, TooMuch
from inspector.remote.networks import as_ip, why_not_public
from inspector.remote.policy import OWN, Policy

_MOST_IDLE = 6
_REDIRECTS = (301, 302, 303, 307, 308)
# Which another try may mend.
_PASSING = (429, 500, 502, 503, 504)
_USUAL_PORTS = (80, 443)
_FIRST_PAUSE_SECONDS = 0.5
# A server that has sent so much is worth a second wait after a silence.
_PROVEN_NBYTES = 8 << 20
_DAY_SECONDS = 86_400
# What a proxy would take for its own machine or network; without one, what they stand for is checked.
_OWN_NAMES = ("localhost", ".local", ".internal", ".lan", ".home.arpa")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came. address: of the server that gave it, behind the redirects. whole: whether the body is all of it."""

    address: WebAddress
    status: int
    reason: str
    headers: HTTPMessage
    body: bytes
    whole: bool


@dataclass(slots=True)
class _Chain:
    """One request's way. private: whether private addresses may follow. sent_by: the host that redirected last.
    public: a public one that was asked before, after which no private one may, "" while none was. at_home: whether it
    began at the origin that there is a secret for, and never left it."""

    private: bool
    at_home: bool
    deadline: float
    public: str = ""
    sent_by: str = ""


class Client:
    """Safe to use from several threads. Keeps connections that the servers leave open, and what names stand for."""

    def __init__(self, policy: Policy = OWN) -> None:
        self.policy = policy
        self.requests = 0
        self.nbytes = 0
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._idle: dict[str, list[Line]] = {}
        self._numbers: dict[tuple[str, int], tuple[str, ...]] = {}

    def get(
        self, address: WebAddress, *, most_nbytes: int, name: str, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """The answer with at most that many bytes of its body, whatever its status.

        headers: of the request, Range say. name: what to call it in sentences. Raises AddressError.
        """
        pause = _FIRST_PAUSE_SECONDS
        waited = False
        for tries_left in reversed(range(self.policy.tries)):
            answer: Answer | None = None
            try:
                with self.open(address, name=name, headers=headers, most_nbytes=most_nbytes) as opened:
                    answer = opened.read_answer(most_nbytes)
            except _Cut as cut:
                silent = isinstance(cut.__cause__, TimeoutError)
                if not tries_left or (silent and (waited or not self._is_proven())):
                    raise cut.error from cut.__cause__
                waited = waited or silent
            if answer is not None:
                if answer.status not in _PASSING or not tries_left:
                    return answer
                pause = self._pause_of(answer, name) or pause
            self._sleep(pause, name)
            pause *= 2
        raise AssertionError

    @contextmanager
    def open(
        self, address: WebAddress, *, name: str, headers: Mapping[str, str] | None = None, most_nbytes: int
    ) -> Iterator[Opened]:
        """The answer behind the redirects, its body unread. most_nbytes: that will be read of it at most.

        Raises AddressError.
        """
        policy = self.policy
        seconds = policy.seconds + most_nbytes / policy.slowest
        at_home = policy.access is not None and address.origin == policy.access.origin
        deadline = time.monotonic() + min(seconds, self._left(name))
        chain = _Chain(private=policy.private, at_home=at_home, deadline=deadline)
        at = address
        for _ in range(policy.redirects + 1):
            line, response = self._ask(at, chain, name, dict(headers or {}))
            location = response.headers.get("Location", "")
            if response.status not in _REDIRECTS or not location:
                opened = Opened(client=self, address=at, name=name, line=line, response=response)
                try:
                    yield opened
                finally:
                    opened.end()
                return
            opened = Opened(client=self, address=at, name=name, line=line, response=response)
            opened.end(most_nbytes=policy.header_nbytes)
            following = redirected(at, location, passwords=policy.passwords)
            if at.scheme == "https" and following.scheme == "http" and not policy.downgrade:
                raise AddressRefused(f"The server of {name} redirects from https to http ({following.shown}).")
            chain.at_home = chain.at_home and following.origin == at.origin
            chain.sent_by, at = at.host, following
        raise AddressError(f"The server of {name} redirects more than {policy.redirects} times.")

    @contextmanager
    def stream(self, address: WebAddress, *, name: str) -> Iterator[Opened]:
        """A whole answer, to be read to its end however long that takes: each wait is bounded, the sum is not.

        Raises AddressError, also for another answer than 200.
        """
        try:
            with self.open(address, name=name, most_nbytes=self.policy.file_nbytes) as opened:
                if opened.status != 200:
                    raise AddressError(f"{name} cannot be fetched: the server answers {opened.status}.")
                yield opened
        except _Cut as cut:
            raise cut.error from cut.__cause__

    def _ask(self, at: WebAddress, chain: _Chain, name: str, headers: dict[str, str]) -> tuple[Line, HTTPResponse]:
        # What a server left open may have been closed meanwhile; that is seen only by asking.
        for line in self._lines(at, chain):
            again = line.used
            try:
                return line, self._send(line, at, chain, headers)
            except (TimeoutError, TooMuch) as error:
                line.end()
                raise _Cut(self._said(error, name)) from error
            except (OSError, HTTPException, ValueError) as error:
                line.end()
                if not again:
                    raise _Cut(self._said(error, name)) from error
        raise AssertionError

    def _lines(self, at: WebAddress, chain: _Chain) -> Iterator[Line]:
        numbers = self._checked(at, chain)
        while True:
            with self._lock:
                idle = self._idle.get(at.origin)
                line = idle.pop() if idle else None
            if line is None:
                break
            yield line
        if self.policy.proxy:
            yield lines.connect_by_proxy(at, self.policy)
        else:
            yield lines.connect(at, numbers, self.policy, chain.deadline)

    def _checked(self, at: WebAddress, chain: _Chain) -> tuple[str, ...]:
        """The addresses to connect to. Asked of the system once; judged on every request, as redirects differ."""
        place = (at.host, at.port)
        policy, trusted = self.policy, at.origin in self.policy.trusted
        if not trusted:
            # Before the name is looked up: whether it stands for anything is told by no other sentence.
            if not policy.passwords and at.authorization:
                raise AddressRefused("An address with a name and password in it is not taken here.")
            if not policy.low_ports and at.port not in _USUAL_PORTS and at.port < 1024:
                raise AddressRefused(f"Port {at.port} is no web server's, and is not asked.")
        literal = as_ip(at.host)
        with self._lock:
            numbers = self._numbers.get(place, ())
        if literal is not None:
            numbers = (at.host,)
        elif not numbers and not policy.proxy:
            try:
                # Numbers in odd spellings, too: the system takes 0x7f.1 and 2130706433 for addresses.
                numbers = lines.addresses_of(at.host, at.port, policy.connect_seconds)
            except OSError as error:
                if not (trusted or chain.private or policy.tells_numbers):
                    raise lines.no_public_address(at, policy, sent_by=chain.public) from None
                raise AddressError(
                    f"The name {at.host} stands for no address here ({error.strerror or error}).",
                    hint="Check the address.",
                ) from error
            with self._lock:
                numbers = self._numbers.setdefault(place, numbers)
        if chain.sent_by and (trusted or chain.private):
            lines.check_sent_on(at, numbers, chain.sent_by)
        if trusted:
            return numbers
        if not chain.private:
            if policy.proxy and at.host.endswith(_OWN_NAMES):
                raise AddressRefused(f"{at.host} is a name of a machine's own network, and is not asked.")
            lines.check_addresses(at, numbers, policy, sent_by=chain.public)
            chain.public = at.host
        elif all(self._is_public(number) for number in numbers):
            # Whom a public server sends on does not get to ask this machine's own networks.
            chain.private, chain.public = False, at.host
        return numbers

    def _is_public(self, number: str) -> bool:
        ip = as_ip(number)
        return ip is not None and not why_not_public(ip)

    def _send(self, line: Line, at: WebAddress, chain: _Chain, headers: dict[str, str]) -> HTTPResponse:
        policy = self.policy
        line.begin(chain.deadline, policy.header_nbytes)
        http = line.http
        by_proxy = bool(policy.proxy) and at.scheme == "http"
        http.putrequest("GET", at.text if by_proxy else at.target, skip_host=True, skip_accept_encoding=True)
        http.putheader("Host", at.host_and_port)
        http.putheader("User-Agent", "model-inspector")
        http.putheader("Accept-Encoding", "identity")
        if policy.access is not None and chain.at_home:
            http.putheader("Authorization", policy.access.header)
        elif at.authorization:
            http.putheader("Authorization", at.authorization)
        for key, value in headers.items():
            http.putheader(key, value)
        http.endheaders()
        with self._lock:
            self.requests += 1
        line.used = True
        return http.getresponse()

    def _is_proven(self) -> bool:
        """Whether a silence is worth waiting through once more: amid a long transfer, never of a look."""
        return self.policy.look_seconds is None and self.nbytes >= _PROVEN_NBYTES

    def _left(self, name: str) -> float:
        """Seconds that are left for everything together."""
        policy = self.policy
        if policy.look_seconds is None:
            return float("inf")
        seconds = policy.look_seconds + (self.nbytes / policy.look_slowest if policy.look_slowest else 0)
        left = seconds - (time.monotonic() - self._began)
        if left <= 0:
            raise self._took_too_long(name)
        return left

    def _took_too_long(self, name: str) -> NeedsWholeFile:
        return NeedsWholeFile(
            f"Looking at {name} through its address took more than {self.policy.look_seconds:g} s.",
            hint="Its server is too slow or sends too little; download the file and open it from disk.",
        )

    def end_look(self) -> None:
        """From here on numbers are read, which takes as long as it takes: each request is bounded, the sum is not."""
        self.policy = replace(self.policy, look_seconds=None, look_nbytes=None)

    def count(self, nbytes: int, name: str) -> None:
        """What came. Raises NeedsWholeFile over the policy's bytes for a look."""
        with self._lock:
            self.nbytes += nbytes
        most = self.policy.look_nbytes
        if most is not None and self.nbytes > most:
            raise NeedsWholeFile(f"More than {most // 1_000_000} MB of {name} would have to be read to look at it.")

    def begin_anew(self) -> None:
        """The limits of a look start again, for the next question about the same file."""
        with self._lock:
            self._began, self.nbytes = time.monotonic(), 0

    def _pause_of(self, answer: Answer, name: str) -> float:
        """How long the server asks to wait; 0.0 where it says nothing. Raises AddressError over what is waited."""
        stated = answer.headers.get("Retry-After", "").strip()
        seconds = 0.0
        if stated.isascii() and stated.isdecimal():
            seconds = float(stated[:9])
        elif stated:
            try:
                seconds = max(0.0, parsedate_to_datetime(stated).timestamp() - time.time())
            except (ValueError, OverflowError):
                seconds = 0.0
        if seconds > self.policy.wait_seconds:
            raise AddressError(
                f"The server of {name} answers {answer.status} {answer.reason[:60]} and asks to come back "
                f"{_when(seconds)}.",
                hint="Try again then.",
            )
        return seconds

    def _sleep(self, seconds: float, name: str) -> None:
        time.sleep(min(seconds, self._left(name)))

    def keep(self, origin: str, line: Line) -> None:
        """A line whose answer was read to its end."""
        with self._lock:
            idle = self._idle.setdefault(origin, [])
            if len(idle) < _MOST_IDLE:
                idle.append(line)
                return
        line.end()

    def close(self) -> None:
        """Let go of what is kept open. Asking again connects again."""
        with self._lock:
            idle, self._idle = self._idle, {}
        for line in [line for some in idle.values() for line in some]:
            line.end()

    def _said(self, error: Exception, name: str) -> AddressError:
        policy = self.policy
        if isinstance(error, Overdue) and policy.look_seconds is not None:
            return self._took_too_long(name)
        if isinstance(error, Overdue):
            return AddressError(f"The server of {name} is too slow: what was asked for did not come in time.")
        if isinstance(error, TimeoutError):
            return AddressError(f"The server of {name} sent nothing for {policy.read_seconds:g} s.")
        if isinstance(error, TooMuch):
            return AddressError(f"The server of {name} sends more than was asked for.")
        if isinstance(error, HTTPException | ValueError):
            return AddressError(f"The server of {name} does not answer as a web server does.")
        return AddressError(f"The server of {name} broke off: {getattr(error, 'strerror', None) or error}.")


def _when(seconds: float) -> str:
    """How long a server asks to wait: seconds, or the day where that is far."""
    if seconds < _DAY_SECONDS:
        return f"in {seconds:,.0f} s"
    try:
        return f"on {datetime.fromtimestamp(time.time() + seconds, UTC):%Y-%m-%d}"
    except (OverflowError, ValueError, OSError):
        return "in more than a lifetime"


class _Cut(Exception):
    """An answer that broke off: worth another try. error: what to say when it is the last."""

    def __init__(self, error: AddressError) -> None:
        super().__init__(error.says)
        self.error = error


class Opened:
    """An answer whose body is to be read."""

    def __init__(self, *, client: Client, address: WebAddress, name: str, line: Line, response: HTTPResponse) -> None:
        self._client = client
        self._line = line
        self._response = response
        self._name = name
        self.address = address
        self.status = response.status
        self.headers = response.headers

    def read(self, n: int) -> bytes:
        """The next n bytes, fewer at its end. Raises what another try may mend."""
        # Chunks of one byte have six around it.
        self._line.expect(8 * n if self._response.chunked else n + 65536)
        try:
            data = self._response.read(n)
        except (OSError, HTTPException, ValueError) as error:
            self._line.end()
            raise _Cut(self._client._said(error, self._name)) from error
        self._client.count(len(data), self._name)
        return data

    def go_on(self, n: int) -> None:
        """The limit of time starts again, for the next n bytes of a long answer."""
        policy = self._client.policy
        self._line.begin(time.monotonic() + policy.seconds + n / policy.slowest, 0)

    @property
    def length(self) -> int | None:
        """Of the body that is left, where the server says."""
        return self._response.length

    def read_answer(self, most_nbytes: int) -> Answer:
        """All of it up to that many bytes."""
        announced = self._response.length
        data = self.read(most_nbytes)
        if announced is not None and len(data) < min(announced, most_nbytes):
            raise _Cut(
                AddressError(f"The server of {self._name} sent {len(data):,} of {min(announced, most_nbytes):,} bytes.")
            )
        return Answer(
            address=self.address,
            status=self.status,
            reason=self._response.reason or "",
            headers=self.headers,
            body=data,
            whole=self._response.isclosed() or announced == len(data),
        )

    def end(self, most_nbytes: int = 0) -> None:
        """Keep the line where the answer was read to its end; a short rest is read for that."""
        response = self._response
        try:
            short = response.length is not None and response.length <= most_nbytes
            if short and not response.isclosed():
                self._line.expect(most_nbytes)
                response.read()
        except (OSError, HTTPException, ValueError):
            self._line.end()
            return
        if response.isclosed() and not response.will_close:
            self._client.keep(self.address.origin, self._line)
        else:
            self._line.end()
