"""A signature of OpenSSF model signing beside a model: its list of digests against ours.

The file is a Sigstore bundle whose payload is an in-toto statement (model_signing 1.1,
https://github.com/sigstore/model-transparency). Who signed it takes cryptography and a trust root, which are not here:
that is said, and nothing is called signed.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from inspector.cards.report import CardFile, SignatureReport, SignedAs
from inspector.errors import InspectorError
from inspector.readers.plain_json import parse_json
from inspector.side_files import PathKind, kind_of_path, read_bytes

_SUFFIX, _USUAL = ".sig", "model.sig"
_PREDICATE = "https://model_signing/signature/v1.0"
_MOST_VALUES = 400_000
_HEX = frozenset("0123456789abcdef")


def find_signature(where: Path) -> Path | None:
    """ "model.pth.sig" or "model.sig" beside a file, "model.sig" in a folder; None without one."""
    if kind_of_path(where) is PathKind.FOLDER:
        candidates = [where / _USUAL, where.with_name(where.name + _SUFFIX)]
    else:
        candidates = [where.with_name(where.name + _SUFFIX), where.with_suffix(_SUFFIX), where.with_name(_USUAL)]
    return next((one for one in candidates if kind_of_path(one) is PathKind.FILE), None)


def compare_signature(signature: Path, files: tuple[CardFile, ...]) -> SignatureReport:
    """Its list against the digests of the files; nothing named in it is opened."""
    try:
        listed = _listed(read_bytes(signature))
    except InspectorError as error:
        return SignatureReport(name=signature.name, refusal=error.says.rstrip("."))
    except _Unread as why:
        return SignatureReport(name=signature.name, refusal=str(why))
    entries: list[tuple[str, SignedAs]] = []
    named: dict[str, CardFile] = {file.name: file for file in files}
    if len(files) == 1 and files[0].name in listed:
        # One file of a signed folder: the others were not asked for.
        listed = {files[0].name: listed[files[0].name]}
    for name, (algorithm, digest) in listed.items():
        file = named.pop(name, None)
        # A single file is listed under its own name or as ".".
        if file is None and len(files) == 1 and len(listed) == 1:
            file = named.pop(files[0].name, None)
        entries.append((name, _became(file, algorithm, digest)))
    entries += [(name, SignedAs.UNLISTED) for name in named]
    return SignatureReport(name=signature.name, entries=tuple(entries))


def _became(file: CardFile | None, algorithm: str, digest: str) -> SignedAs:
    if file is None:
        return SignedAs.ABSENT
    if algorithm != "sha256" or not file.sha256:
        return SignedAs.NOT_COMPARED
    return SignedAs.EQUAL if digest == file.sha256 else SignedAs.DIFFERS


class _Unread(Exception):
    """The file is no such signature; the text says why."""


def _listed(raw: bytes) -> dict[str, tuple[str, str]]:
    """name -> (algorithm, digest)."""
    envelope = _mapping(_json(raw, "the signature"), "dsseEnvelope")
    payload = envelope.get("payload")
    if not isinstance(payload, str):
        raise _Unread("it is no Sigstore bundle with a payload")
    try:
        statement = _json(base64.b64decode(payload, validate=True), "its payload")
    except binascii.Error as error:
        raise _Unread("its payload is no base64") from error
    if not isinstance(statement, dict) or statement.get("predicateType") != _PREDICATE:
        raise _Unread("its statement is not one of model signing 1.0")
    resources = _mapping(statement, "predicate").get("resources")
    if not isinstance(resources, list) or not resources:
        raise _Unread("it lists no files")
    found: dict[str, tuple[str, str]] = {}
    for one in resources:
        name, algorithm, digest = _texts(one, ("name", "algorithm", "digest"))
        if name in found:
            raise _Unread("it lists one file twice")
        if not set(digest.lower()) <= _HEX:
            raise _Unread("one of its digests is none")
        found[str(PurePosixPath(name))] = (algorithm.lower(), digest.lower())
    return found


def _json(raw: bytes, what: str) -> object:
    return parse_json(raw, what, most_values=_MOST_VALUES)[0]


def _mapping(value: object, key: str) -> Mapping[str, object]:
    inner = value.get(key) if isinstance(value, dict) else None
    if not isinstance(inner, dict):
        raise _Unread("it is no Sigstore bundle of a model")
    return inner


def _texts(value: object, keys: tuple[str, ...]) -> tuple[str, ...]:
    held = [value.get(key) for key in keys] if isinstance(value, dict) else [None]
    texts = tuple(one for one in held if isinstance(one, str))
    if len(texts) != len(keys):
        raise _Unread("one of its entries is incomplete")
    return texts
