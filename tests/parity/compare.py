"""Runs one piece of code on PyTorch and on rushlight and compares what becomes of it.

`outcome(function, module)` calls `function(module)` with the seed 0 and turns the result, or the
error, into plain data: tensors into lists with their dtype, modules into their text. The names of
the packages are made equal.
"""

import warnings
from collections.abc import Mapping


def plain(value):
    """A result as data that compares by value."""
    if type(value).__name__ in ("Tensor", "Parameter") and hasattr(value, "tolist"):
        return type(value).__name__, dtype_name(value.dtype), _numbers(value), value.requires_grad
    if hasattr(value, "named_parameters"):
        return repr(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if type(value).__name__ == "dtype":
        return dtype_name(value)
    return type(value).__name__ if " object at 0x" in repr(value) else repr(value)


def dtype_name(dtype):
    return str(dtype).split(".")[-1]


def _numbers(tensor):
    """Values rounded to seven digits: kernels may differ in the last bit."""
    if tensor.is_meta:
        return "meta"

    def rounded(value):
        if isinstance(value, list):
            return [rounded(item) for item in value]
        return float(f"{value:.5g}") if isinstance(value, float) else value

    return rounded(tensor.detach().tolist())


def outcome(function, module, messages=True):
    """What `function(module)` gives: (result or error, categories of the warnings)."""
    module.manual_seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = plain(function(module))
        except Exception as error:
            text = str(error) if messages else ""
            result = [type(error).__name__, text]
    kinds = [warning.category.__name__ for warning in caught]
    name = module.__name__
    return repr(result).replace(f"{name}.", "").replace("torch.", ""), kinds
