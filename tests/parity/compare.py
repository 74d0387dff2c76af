"""Runs one piece of code on PyTorch and on rushlight and compares what becomes of it.

`outcome(function, module)` calls `function(module)` with the seed 0 and turns the result, or the
error, into plain data: tensors into lists with their dtype, modules into their text. The names of
the packages are made equal. `assert_alike` compares two outcomes, floats up to rounding.
"""

import math
import re
import warnings
from collections.abc import Mapping


def plain(value):
    """A result as data that compares by value."""
    if type(value).__name__ in ("Tensor", "Parameter") and hasattr(value, "tolist"):
        values = "meta" if value.is_meta else value.detach().tolist()
        return [type(value).__name__, dtype_name(value.dtype), values, value.requires_grad]
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


class Failure(list):
    """The type and the message of an error."""

    def is_like(self, other):
        """Whether the type is the same and the messages have a phrase in common."""
        (kind, said), (other_kind, other_said) = self, other
        phrases, other_phrases = map(_phrases, (said, other_said))
        return kind == other_kind and (said == other_said or bool(phrases & other_phrases))


def _phrases(text, words=4):
    """What stands in a text in so many words in a row."""
    every = re.findall(r"[a-z_0-9']+", text.lower())
    return {tuple(every[i : i + words]) for i in range(len(every) - words + 1)}


def dtype_name(dtype):
    return str(dtype).split(".")[-1]


def _renamed(value, name):
    """Plain data without the names of the packages."""
    if isinstance(value, str):
        return value.replace(f"{name}.", "").replace("torch.", "")
    if isinstance(value, list):
        return type(value)(_renamed(item, name) for item in value)
    if isinstance(value, dict):
        return {_renamed(key, name): _renamed(item, name) for key, item in value.items()}
    return value


def outcome(function, module):
    """What `function(module)` gives: the result or the error, and the categories of warnings."""
    module.manual_seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = plain(function(module))
        except Exception as error:
            result = Failure([type(error).__name__, str(error)])
    return _renamed([result, [w.category.__name__ for w in caught]], module.__name__)


def assert_outcomes_alike(ours, theirs):
    """`assert_alike`; messages say things in their own words, but for a phrase to know them by."""
    if isinstance(theirs[0], Failure):
        assert isinstance(ours[0], Failure), f"{ours} != {theirs}"
        assert ours[0].is_like(theirs[0]), f"{ours} != {theirs}"
        ours = [theirs[0], *ours[1:]]
    assert_alike(ours, theirs)


def assert_alike(ours, theirs, tolerance=2e-5):
    """Equal structure and values; floats may differ by a part, or for small ones an amount."""
    if isinstance(theirs, float) and isinstance(ours, float):
        close = math.isclose(ours, theirs, rel_tol=tolerance, abs_tol=tolerance / 10)
        assert close or (math.isnan(ours) and math.isnan(theirs)), f"{ours} != {theirs}"
    elif isinstance(theirs, list) and isinstance(ours, list):
        assert len(ours) == len(theirs), f"{ours} != {theirs}"
        for a, b in zip(ours, theirs, strict=True):
            assert_alike(a, b, tolerance)
    elif isinstance(theirs, dict) and isinstance(ours, dict):
        assert list(ours) == list(theirs)
        for key in theirs:
            assert_alike(ours[key], theirs[key], tolerance)
    else:
        assert ours == theirs
