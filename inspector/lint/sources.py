"""The files behind the addresses that an audit names: objects below a prefix, a repository, an owner's, or one file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from inspector.errors import UsageError
from inspector.limits import Limits
from inspector.readers.hub.files import list_hub
from inspector.readers.hub.place import has_scheme
from inspector.readers.indexed import IndexedFiles, with_shards
from inspector.readers.listed_folder import RemoteFile
from inspector.readers.web_files import WebFile, beside_web, list_web
from inspector.remote.address import is_web_address
from inspector.remote.buckets import is_bucket_address, list_bucket


def list_all(addresses: Sequence[str], limits: Limits) -> tuple[RemoteFile, ...]:
    """The files of all addresses, in their order. An address of an index of shards is one checkpoint, with the shards
    that it names, which have no row of their own. Raises as `list_remote`."""
    web = iter(list_web([address for address in addresses if is_web_address(address)]))
    found: list[RemoteFile] = []
    for address in dict.fromkeys(addresses):
        if is_web_address(address):
            found.append(_web_with_shards(next(web), limits))
        else:
            found += list_remote(address, limits)
    covered = {shard.address for file in found if isinstance(file, IndexedFiles) for _, shard in file.shards}
    return tuple(file for file in found if file.address not in covered) if covered else tuple(found)


def list_remote(address: str, limits: Limits) -> Iterable[RemoteFile]:
    """The files of one address. Raises UsageError for what is none, AddressError where it cannot be listed."""
    if not is_bucket_address(address) and not has_scheme(address):
        raise UsageError(
            f"{address[:200]} cannot be listed.",
            hint="An audit takes files and folders, s3://, gs:// and az:// prefixes, hf://org/name, hf://org/ and "
            "https://.",
        )
    files = _listed(address, limits)
    name = address.rpartition("/")[2]
    if len(files) != 1 or files[0].address.rpartition("/")[2] != name:
        return files
    # As its listing has it: on the hub with the commit, so that all of it is of one.
    above = f"{files[0].address.rpartition('/')[0]}/"

    def beside(names: Sequence[str]) -> Mapping[str, RemoteFile]:
        listed = {file.address[len(above) :]: file for file in _listed(above, limits)}
        return {one: listed[one] for one in names if one in listed}

    return (with_shards(files[0], name, beside, limits),)


def _listed(address: str, limits: Limits) -> Sequence[RemoteFile]:
    return list_bucket(address) if is_bucket_address(address) else tuple(list_hub(address, limits))


def _web_with_shards(file: WebFile, limits: Limits) -> RemoteFile:
    return with_shards(file, file.name, lambda names: beside_web(file, names), limits)
