"""Small conversions that several layers share."""

from collections.abc import Iterable


def _ntuple(n, name="parse"):
    def parse(value):
        if isinstance(value, Iterable):
            return tuple(value)
        return (value,) * n

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(values, n):
    """Each item `n` times, last item first: the padding that `F.pad` takes from a layer's."""
    return tuple(v for v in reversed(values) for _ in range(n))


def _changed(module, **defaults):
    """Settings that are not their defaults, as `extra_repr` shows them: ", name=value"."""
    values = {name: getattr(module, name) for name in defaults}
    return "".join(f", {name}={v}" for name, v in values.items() if v != defaults[name])


def _list_with_default(out_size, defaults):
    """The sizes of `out_size`, those that are None from the end of `defaults`."""
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    return [
        d if v is None else v for v, d in zip(out_size, defaults[-len(out_size) :], strict=False)
    ]


def consume_prefix_in_state_dict_if_present(state_dict, prefix):
    """Take a prefix off all names of a state, in place."""
    for key in [key for key in state_dict if key.startswith(prefix)]:
        state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is None:
        return
    stem = prefix.rstrip(".")
    for key in list(metadata):
        if key == stem:
            metadata[""] = metadata.pop(key)
        elif key.startswith(prefix):
            metadata[key[len(prefix) :]] = metadata.pop(key)
