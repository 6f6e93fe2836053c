"""What a bucket's store, or the package that speaks with it, refuses, as a sentence and what to do about it."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import dataclass

from inspector.errors import AddressError, FileChanged
from inspector.units import shorten_middle

_SHOWN = 200
_NOTHING = "there is no such bucket or object"
_CREDENTIALS = "Set the store's own credentials, as its command line takes them (AWS_PROFILE, AWS_ACCESS_KEY_ID)."
_NO_CREDENTIALS = frozenset({"NoCredentialsError", "PartialCredentialsError", "DefaultCredentialsError"})
_SETTINGS = frozenset({"ProfileNotFound", "ConfigNotFound", "ConfigParseError", "NoRegionError", "InvalidRegionError"})
_WHICH_SETTINGS = "Check AWS_PROFILE, AWS_ENDPOINT_URL and the files of settings (AWS_CONFIG_FILE)."
_REFUSED = frozenset(
    {
        *("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "403", "401"),
        *("AllAccessDisabled", "AccountProblem"),
    }
)
_FULL = frozenset(
    {
        *("QuotaExceeded", "InsufficientStorage", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded", "507"),
        *("TooManyBuckets", "ServiceQuotaExceeded"),
    }
)
_CLOCK = frozenset({"RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture"})
_BUSY = frozenset({"SlowDown", "ServiceUnavailable", "ThrottlingException", "TooManyRequests", "429", "503"})
_GONE = frozenset({"NoSuchBucket", "NoSuchKey", "404"})
_CHANGED = frozenset({"PreconditionFailed", "412"})
_DENIED = ("Forbidden", "Unauthorized", "Credential")
_UNREACHED = ("ConnectionError", "ConnectorError", "Timeout", "EndpointConnection", "ConnectionRefused")
_FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """why: the end of a sentence, without a full stop. hint: what to do next. full: there is no room left."""

    why: str
    hint: str = ""
    full: bool = False


def refusal(error: BaseException) -> Refusal:
    """What an exception of fsspec, or of a store's package below it, says."""
    chain = list(_chain(error))
    names = {type(one).__name__ for one in chain}
    codes = {code for one in chain if (code := _code(one))}
    told = isinstance(error, OSError) and error.strerror
    text = " ".join(str(told or error).split())[:_SHOWN]
    if codes & _CLOCK:
        return Refusal(
            why="the clock of this machine is not that of the store, which refuses what is signed by it",
            hint="Set this machine's clock, and run the same again.",
        )
    if names & _NO_CREDENTIALS:
        return Refusal(why="access is refused: no credentials were found", hint=_CREDENTIALS)
    if codes & _FULL or any(isinstance(one, OSError) and one.errno in _FULL_DISK for one in chain):
        why = f"there is no room left in the bucket ({text})"
        return Refusal(why=why, hint="Make room, or have the quota raised.", full=True)
    if names & _SETTINGS or (isinstance(error, ValueError) and "endpoint" in text.lower()):
        return Refusal(why=f"the settings for its store are none ({text.rstrip('.')})", hint=_WHICH_SETTINGS)
    if codes & _BUSY:
        return Refusal(why="its store asks for fewer requests", hint="Run the same again later.")
    if isinstance(error, FileNotFoundError) or codes & _GONE:
        return Refusal(why=_NOTHING, hint="Check the bucket's name and the prefix.")
    if (
        isinstance(error, PermissionError)
        or codes & _REFUSED
        or any(part in name for name in names for part in _DENIED)
    ):
        return Refusal(why=f"access is refused: {text or type(error).__name__}", hint=_CREDENTIALS)
    if any(part in name for name in names for part in _UNREACHED):
        return Refusal(why=f"its store cannot be reached ({text})", hint="Check the network, and AWS_ENDPOINT_URL.")
    if isinstance(error, ValueError) and text:
        return Refusal(why=text.rstrip("."))
    return Refusal(why=f"{type(error).__name__}: {text}")


def refused(address: str, error: BaseException) -> AddressError:
    """One sentence for reading or listing an address."""
    where, found = shorten_middle(address, _SHOWN), refusal(error)
    if {code for one in _chain(error) if (code := _code(one))} & _CHANGED:
        name = address.rpartition("/")[2]
        return FileChanged(
            f"{name} changed while it was read: its store has another object there.", hint="Open it again."
        )
    if found.why == _NOTHING:
        return AddressError(f"There is nothing at {where}.", hint=found.hint)
    return AddressError(f"{where} cannot be read: {found.why}.", hint=found.hint)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """It, and what it came of."""
    one: BaseException | None = error
    for _ in range(8):
        if one is None:
            return
        yield one
        one = one.__cause__ or one.__context__


def _code(error: BaseException) -> str:
    """What a store calls it: botocore has it in its answer, others as the status."""
    told = getattr(error, "response", None)
    code = told.get("Error", {}).get("Code") if isinstance(told, dict) else None
    return str(code or getattr(error, "code", "") or getattr(error, "status", "") or "")
