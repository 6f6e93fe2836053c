"""What SARIF 2.1.0 demands of the objects that we write, by hand from the standard: the official schema is 112 kB of
somebody else's text, and no package brings it. Allowed are only properties that the standard has and we use."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

_URI = re.compile(r"(?:file:///)?(?:[A-Za-z0-9._~!$&'()*+,;=@/-]|%[0-9A-Fa-f]{2})*")
LEVELS = ("none", "note", "warning", "error")
Check = Callable[[Any], None]


def assert_sarif(log: Any) -> None:
    """Raise AssertionError where the log breaks a rule of the standard, or of what GitHub asks for besides."""
    _object(log, {"$schema": _text, "version": _one_of("2.1.0"), "runs": _array(_run, most=20)}, ("version", "runs"))


def _run(run: Any) -> None:
    _object(
        run,
        {
            "tool": _tool,
            "columnKind": _one_of("utf16CodeUnits", "unicodeCodePoints"),
            "invocations": _array(_invocation),
            "artifacts": _array(_artifact, unique=True),
            "results": _array(_result, most=25_000),
        },
        ("tool", "results"),
    )
    rules = run["tool"]["driver"]["rules"]
    ids = [rule["id"] for rule in rules]
    assert len(set(ids)) == len(ids)  # 3.19.23
    for result in run["results"]:
        # 3.27.6: the index is of the rule, not of the result.
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]


def _tool(tool: Any) -> None:
    _object(tool, {"driver": _driver}, ("driver",))


def _driver(driver: Any) -> None:
    kinds: dict[str, Check] = {"name": _text, "semanticVersion": _version, "rules": _array(_rule, unique=True)}
    _object(driver, kinds, ("name", "rules"))


def _rule(rule: Any) -> None:
    kinds: dict[str, Check] = {
        "id": _text,
        "shortDescription": _message,
        "help": _message,
        "defaultConfiguration": lambda one: _object(one, {"level": _one_of(*LEVELS)}, ()),
    }
    _object(rule, kinds, ("id", "shortDescription", "help"))


def _invocation(one: Any) -> None:
    def notification(note: Any) -> None:
        _object(note, {"message": _message, "level": _one_of(*LEVELS)}, ("message",))

    kinds: dict[str, Check] = {
        "executionSuccessful": _is(bool),
        "exitCode": _is(int),
        "toolExecutionNotifications": _array(notification),
    }
    _object(one, kinds, ("executionSuccessful",))


def _artifact(artifact: Any) -> None:
    def hashes(held: Any) -> None:
        assert list(held) == ["sha-256"] and re.fullmatch("[0-9a-f]{64}", held["sha-256"])

    _object(artifact, {"location": _location, "length": _is(int), "hashes": hashes}, ("location",))


def _result(result: Any) -> None:
    kinds: dict[str, Check] = {
        "ruleId": _text,
        "ruleIndex": _is(int),
        "level": _one_of(*LEVELS),
        "message": _message,
        "locations": _array(_place),
        "partialFingerprints": _texts,
        "properties": _texts,
    }
    # GitHub: a rule, a place and a fingerprint for each.
    _object(result, kinds, tuple(kinds))
    assert len(result["locations"]) == 1


def _place(place: Any) -> None:
    def physical(one: Any) -> None:
        _object(one, {"artifactLocation": _location, "region": _region}, ("artifactLocation", "region"))

    def logical(one: Any) -> None:
        _object(one, {"fullyQualifiedName": _text, "kind": _text}, ())

    kinds: dict[str, Check] = {"physicalLocation": physical, "logicalLocations": _array(logical, unique=True)}
    _object(place, kinds, ("physicalLocation",))


def _region(region: Any) -> None:
    _object(region, {"startLine": _is(int)}, ("startLine",))
    assert region["startLine"] >= 1


def _location(location: Any) -> None:
    _object(location, {"uri": _text, "uriBaseId": _one_of("%SRCROOT%")}, ("uri",))
    assert _URI.fullmatch(location["uri"]), location["uri"]
    # 3.4.4: a base only for a relative reference.
    assert ("uriBaseId" in location) is not location["uri"].startswith("file:")


def _message(message: Any) -> None:
    _object(message, {"text": _text}, ("text",))
    assert not re.search(r"(?<!\{)\{\d+\}|\]\(", message["text"])


def _object(held: Any, kinds: dict[str, Check], required: tuple[str, ...]) -> None:
    assert isinstance(held, dict), held
    assert set(held) <= set(kinds), set(held) - set(kinds)
    assert set(required) <= set(held), set(required) - set(held)
    for name, value in held.items():
        assert value is not None
        kinds[name](value)


def _array(check: Check, *, unique: bool = False, most: int | None = None) -> Check:
    def all_of(held: Any) -> None:
        assert isinstance(held, list) and (most is None or len(held) <= most)
        if unique:
            assert all(one not in held[:number] for number, one in enumerate(held))
        for one in held:
            check(one)

    return all_of


def _one_of(*texts: str) -> Check:
    def check(held: Any) -> None:
        assert held in texts

    return check


def _is(kind: type) -> Check:
    def check(held: Any) -> None:
        assert type(held) is kind and (kind is bool or held >= 0)

    return check


def _texts(held: Any) -> None:
    assert isinstance(held, dict) and held
    for value in held.values():
        _text(value)


def _text(held: Any) -> None:
    assert isinstance(held, str) and held
    held.encode("utf-8")  # No half of a surrogate pair.


def _version(held: Any) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", held)
