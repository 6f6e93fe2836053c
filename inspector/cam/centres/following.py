"""Where every tensor of a forward pass looks, followed while it runs.

Tensors are known by the memory that they show, not by their names: autograd makes new objects of views.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from inspector.cam.centres.operations import Call, rule_of
from inspector.cam.centres.places import Places, Unplaced, nowhere, of_picture

# (storage, offset, sizes, strides)
Region = tuple[int, int, tuple[int, ...], tuple[int, ...]]


class Following(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A context manager around a forward pass. Its storages are kept, so that none is taken for another."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._places: dict[Region, Places] = {}
        # What has a place, or had one: anything else of it that is not known may look anywhere.
        self._storages: dict[int, torch.UntypedStorage] = {}
        self._lost: set[int] = set()

    def begin(self, picture: Tensor) -> None:
        """picture: (N, C, H, W)."""
        self._keep(picture, of_picture(picture.shape))

    def places_of(self, tensor: Tensor) -> Places | None:
        """None where nothing can be said."""
        try:
            return self._look_up(tensor)
        except Unplaced:
            return None

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """The operation itself; what it does to places never stops it."""
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        tensors = [t for value in (*args, *kwargs.values()) for t in _tensors(value)]
        if any(self._touches(tensor) for tensor in tensors):
            self._follow(func, args, kwargs, list(_tensors(result)))
        return result

    def _follow(
        self, func: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any], results: list[Tensor]
    ) -> None:
        schema = func._schema
        names = [argument.name for argument in schema.arguments]
        given = {argument.name: argument.default_value for argument in schema.arguments if argument.has_default_value()}
        given |= dict(zip(names, args, strict=False)) | dict(kwargs)
        shapes = tuple(tuple(result.shape) for result in results)
        found: list[Places | None] = [None] * len(results)
        try:
            rule = rule_of(func)
            if rule is not None:
                own = rule(Call(given=given, shapes=shapes, look_up=self._look_up))
                # Statistics beside a result have no place.
                found = [*own] if isinstance(own, list) else [own, *(nowhere(shape) for shape in shapes[1:])]
        except Exception:  # noqa: BLE001 - an operation in a form that nobody thought of says nothing
            pass
        for result, places in zip(results, found, strict=True):
            if places is None or len(places.axes) != result.dim():
                self._lose(result)
            elif schema.name.endswith("_") or "out" in given:
                self._write(result, places)
            else:
                self._keep(result, places)

    def _touches(self, tensor: Tensor) -> bool:
        storage = _storage_of(tensor)
        return storage is not None and storage._cdata in self._storages

    def _look_up(self, tensor: Tensor) -> Places:
        if not self._touches(tensor):
            return nowhere(tensor.shape)
        region = _region(tensor)
        if region[0] in self._lost or region not in self._places:
            raise Unplaced
        return self._places[region]

    def _keep(self, tensor: Tensor, places: Places) -> None:
        storage = _storage_of(tensor)
        if storage is None or (not places.moves and storage._cdata not in self._storages):
            return
        self._storages[storage._cdata] = storage
        self._places[_region(tensor)] = places

    def _write(self, tensor: Tensor, places: Places) -> None:
        """Into memory that other tensors may show as well: only what changes nothing there is known."""
        if self._places.get(_region(tensor)) != places:
            self._lose(tensor)

    def _lose(self, tensor: Tensor) -> None:
        storage = _storage_of(tensor)
        if storage is None:
            return
        self._storages[storage._cdata] = storage
        self._lost.add(storage._cdata)


def _storage_of(tensor: Tensor) -> torch.UntypedStorage | None:
    """None of what has no memory of its own kind (sparse tensors)."""
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):
        return None


def _region(tensor: Tensor) -> Region:
    storage = tensor.untyped_storage()._cdata
    return storage, int(tensor.storage_offset()), tuple(tensor.shape), tensor.stride()


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [tensor for item in value for tensor in _tensors(item)] if isinstance(value, list | tuple) else []
