"""Evaluates REFERENCES: what NumPy or SciPy gives for a call of an op.

An expression sees the op's arguments by the schema's names (tensors as arrays, dtypes as NumPy's), `np`, `scipy`, `functools`,
`itertools`, and the functions of reference_arrays.py, reference_layers.py, reference_int8.py and
reference_decoding.py.
"""

import functools
import itertools
import operator

import numpy as np
import scipy

from tests.ops import reference_arrays, reference_decoding, reference_int8, reference_layers
from tests.ops.harness import array, bound, name_of, tensors_of

NAMES = {"functools": functools, "itertools": itertools, "np": np, "scipy": scipy} | vars(reference_arrays) | vars(reference_layers) | vars(reference_int8) | vars(reference_decoding)

# How NumPy calls arguments that a sample gives by name.
_RENAMED = {"dim": "axis", "keepdim": "keepdims", "dims": "axes"}


def expected_of(case, dtype, args, kwargs):
    """What the reference of an op gives for a call, as a list of arrays; None for a result that it does not tell.

    `tested` is the name of the dtype that is tested.
    """
    if case.reference.startswith("numpy."):  # a function of the same arguments in the same order
        function = operator.attrgetter(case.reference.removeprefix("numpy."))(np)
        given = {_RENAMED.get(name, name): _plain(value) for name, value in kwargs.items()}
        found = function(*map(_plain, args), **given)
    else:
        names = {name: _plain(value) for name, value in bound(case.op, args, kwargs).items()}
        number = np.ndim(names.get("self", [])) == 0 and names.get("dim") is not None
        if number and not isinstance(names["self"], (int, float)):  # 0-d counts as 1-d where a dimension is named
            names["self"] = names["self"].reshape(1)
        found = eval(case.reference, NAMES | names | {"tested": dtype})
        if number and isinstance(found, np.ndarray):
            found = found.reshape(())
        elif number:
            found = [v.reshape(()) for v in found]
    many = isinstance(found, (tuple, list))
    return [v if v is None else np.asarray(v) for v in (found if many else (found,))]


def _plain(value):
    """An argument as NumPy takes it; numbers widened, so that the reference rounds less than the op."""
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(v) for v in value)
    if tensors_of(value):
        found = array(value)
        wide = {"f": "float64", "c": "complex128", "i": "int64", "u": "int64"}.get(found.dtype.kind)
        return found.astype(wide) if wide else found
    if type(value).__name__ == "dtype":
        return np.dtype({"bfloat16": "float32"}.get(name_of(value), name_of(value)))
    return value
