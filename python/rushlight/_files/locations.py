"""Where the storages of a file go: the tags of devices in it, and `map_location`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

from rushlight import _C

Tagger: TypeAlias = Callable[[Any], str | None]
Deserializer: TypeAlias = Callable[[Any, str], Any]


def _tagger(kind: str) -> Tagger:
    return lambda storage: str(storage.device) if storage.device.type == kind else None


def _kind(location: str) -> str:
    return location.partition(":")[0]


def _from_cpu(storage: Any, location: str) -> Any:
    return storage if _kind(location) == "cpu" else None


def _from_cuda(storage: Any, location: str) -> Any:
    if _kind(location) != "cuda":
        return None
    validate_cuda_device(location)
    return storage.to(device=location)


def _from_meta(storage: Any, location: str) -> Any:
    return _C._meta_storage(storage.nbytes()) if _kind(location) == "meta" else None


# In the order in which they are asked: priority, what tags a storage, what puts it there again.
_package_registry: list[tuple[int, Tagger, Deserializer]] = [
    (10, _tagger("cpu"), _from_cpu),
    (20, _tagger("cuda"), _from_cuda),
    (22, _tagger("meta"), _from_meta),
]


def register_package(priority: int, tagger: Tagger, deserializer: Deserializer) -> None:
    """Lets `save` and `load` know one more kind of place for storages.

    Args:
        priority: lower ones are asked first; the CPU has 10, CUDA 20.
        tagger: a function of a storage that returns the location to write into the file, or None if
            the storage is of another kind.
        deserializer: of a storage in main memory and such a text, the storage there, or None.

    Example:
        >>> def of_storage(storage):  # no storage is of a new kind
        ...     return None
        >>> def place(storage, location):
        ...     return None
        >>> torch.serialization.register_package(30, of_storage, place)
    """
    _package_registry.append((priority, tagger, deserializer))
    _package_registry.sort(key=operator.itemgetter(0))


def location_tag(storage: Any) -> str:
    """What stands for the place of a storage in a file: "cpu", "cuda:0".

    Args:
        storage: the storage.

    Raises:
        RuntimeError: if no registered package knows its place.

    Example:
        >>> torch.serialization.location_tag(torch.ones(2).untyped_storage())
        'cpu'
    """
    for _, tagger, _ in _package_registry:
        tag = tagger(storage)
        if tag:
            return tag
    raise RuntimeError(f"don't know how to determine data location of {type(storage).__name__}")


def default_restore_location(storage: Any, location: str) -> Any:
    """A storage that was saved at `location`, at the same place here.

    Args:
        storage: the storage.
        location: the name of the place.

    Raises:
        RuntimeError: if no registered package knows it, or its device is not here.

    Example:
        >>> storage = torch.ones(2).untyped_storage()
        >>> torch.serialization.default_restore_location(storage, "cpu") is storage
        True
    """
    for _, _, deserializer in _package_registry:
        placed = deserializer(storage, location)
        if placed is not None:
            return placed
    raise RuntimeError(
        f"don't know how to restore data location {location!r}, where a file has a "
        f"{type(storage).__name__}: say another one with map_location"
    )


def validate_cuda_device(location: str) -> int:
    """The number of the GPU that "cuda:1" means; RuntimeError if it is not here.

    Args:
        location: "cuda" or "cuda:1".

    For an example see `serialization.register_package`.
    """
    from rushlight import cuda

    remedy = "Give map_location, for example torch.device('cpu'), to load on what there is."
    if not cuda.is_available():
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is "
            f"False. {remedy}"
        )
    index = _C.device(location).index or 0
    if index >= cuda.device_count():
        raise RuntimeError(
            f"Attempting to deserialize object on CUDA device {index} but "
            f"torch.cuda.device_count() is {cuda.device_count()}. {remedy}"
        )
    return index


def validate_hpu_device(location: str) -> int:
    """RuntimeError: there are no such devices here.

    Args:
        location: "hpu".

    For an example see `serialization.register_package`.
    """
    raise RuntimeError(
        "Attempting to deserialize object on a HPU device, but rushlight was built without support "
        f"for it ({location})"
    )


def locator(map_location: Any) -> Callable[[Any, str], Any]:
    """`map_location` as a function of a storage and where it was saved."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda item, place: default_restore_location(
            item, str(map_location.get(place, place))
        )
    if isinstance(map_location, str | bytes):
        name = map_location.decode("ascii") if isinstance(map_location, bytes) else map_location
        return lambda item, place: default_restore_location(item, name)
    if isinstance(map_location, _C.device):
        return lambda item, place: default_restore_location(item, str(map_location))
    if not callable(map_location):
        raise TypeError(
            "map_location must be a device, a str, a dict or a function, "
            f"not {type(map_location).__name__}"
        )

    def by_function(item: Any, place: str) -> Any:
        moved = map_location(item, place)
        return default_restore_location(item, place) if moved is None else moved

    return by_function
