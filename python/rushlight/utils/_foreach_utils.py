"""Lists of tensors as `_foreach_*` functions and fused optimisers take them."""

from __future__ import annotations

from rushlight import no_grad


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Devices other than the CPU on which ops on lists are kernels of their own."""
    return ["cuda"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """Devices on which an optimiser's step is one op on lists."""
    return ["cuda", "cpu"]


def _device_has_foreach_support(device) -> bool:
    return device.type in (*_get_foreach_kernels_supported_devices(), "cpu")


def _has_foreach_support(tensors, device) -> bool:
    return _device_has_foreach_support(device) and all(
        t is None or t.device == device for t in tensors
    )


@no_grad()
def _group_tensors_by_device_and_dtype(tensorlistlist, with_indices=False):
    """Lists of equal length, cut into those of one device and dtype each.

    Returns:
        from (device, dtype) of the first list's tensors to the lists of that group and the
        places of its tensors, which are empty unless `with_indices`.
    """
    groups: dict = {}
    for i, tensors in enumerate(zip(*tensorlistlist, strict=True)):
        first = tensors[0]
        lists, places = groups.setdefault(
            (first.device, first.dtype), ([[] for _ in tensorlistlist], [])
        )
        for group, tensor in zip(lists, tensors, strict=True):
            group.append(tensor)
        if with_indices:
            places.append(i)
    return groups
