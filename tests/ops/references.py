"""The names that an expression of REFERENCES may use, beside the arguments of its op by the schema's names.

`np` and `scipy` are NumPy and SciPy; tensors are arrays, dtypes NumPy's. What several families need stands here.
"""

import functools
import itertools
import operator

import numpy as np
import scipy

from tests.ops.harness import array, bound, name_of, tensors_of

__all__ = ["functools", "itertools", "np", "scipy"]

# The largest numbers of dtypes, two of which NumPy does not have.
LARGEST = {"float64": np.finfo("float64").max, "float32": np.finfo("float32").max, "float16": 65504.0, "bfloat16": 3.3895313892515355e38}

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
        found = eval(case.reference, globals() | names | {"tested": dtype})
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


def axes(dim):
    """NumPy's axis of a dimension, a list of them (none: all) or None."""
    return dim if dim is None or isinstance(dim, int) else tuple(dim) or None


def along(dim, index):
    """An index into one dimension, all of the others."""
    return (..., index, *[slice(None)] * (-1 - dim)) if dim < 0 else (*[slice(None)] * dim, index)


def scaled(value, factor):
    """factor * value, which stays bool when the factor is 1."""
    return value if isinstance(factor, int) and factor == 1 else factor * value


def rounded(value, mode):
    return {None: np.asarray, "floor": np.floor, "trunc": np.trunc}[mode](value)


def reduced(losses, reduction):
    return (np.asarray, np.mean, np.sum)[reduction](losses)


def huber(error, delta):
    return np.where(np.abs(error) < delta, 0.5 * error**2, delta * (np.abs(error) - 0.5 * delta))


def vector_norm(x, p=2, dim=None, keepdim=False):
    """Over several dimensions as over one."""
    over = tuple(range(x.ndim)) if axes(dim) is None else np.atleast_1d(axes(dim))
    size = np.abs(x)
    if p in (np.inf, -np.inf):
        return (np.max if p > 0 else np.min)(size, tuple(over), keepdims=keepdim)
    if p == 0:
        return np.count_nonzero(x, tuple(over), keepdims=keepdim).astype("float64")
    return np.sum(size**p, tuple(over), keepdims=keepdim) ** (1 / p)


def points(x, sizes, half):
    """Lengths of a transform whose -1 are the input's own; `half` tells that the last is of one half's inverse."""
    if sizes is None:
        return None
    own = list(x.shape[x.ndim - len(sizes) :])
    if half:
        own[-1] = 2 * (own[-1] - 1)
    return [n if given == -1 else given for n, given in zip(own, sizes, strict=True)]


# ---- places ----


def adjoint_of(view, values, sizes):
    """Adds values up at the places of an array of these sizes that `view` takes them from."""
    places = np.asarray(view(np.arange(np.prod(sizes)).reshape(sizes)))
    out = np.zeros(np.prod(sizes), values.dtype)
    np.add.at(out, places.reshape(-1), values.reshape(-1))
    return out.reshape(sizes)


def diagonals(shape, offset, dim1, dim2):
    """The sizes of matrices whose diagonals are the last dimension."""
    n, rank = shape[-1] + abs(offset), len(shape) + 1
    sizes = list(shape[:-1])
    for d in sorted((dim1 % rank, dim2 % rank)):
        sizes.insert(d, n)
    return sizes


def windows(x, dim, size, step):
    """All windows of a dimension, as a new last one."""
    return np.lib.stride_tricks.sliding_window_view(x, size, dim)[along(dim, slice(None, None, step)) if dim >= 0 else along(dim - 1, slice(None, None, step))]


def places(index, dim):
    """Where gather and scatter look: their own place, and `index` along one dimension."""
    found = list(np.indices(index.shape))
    if found:
        found[dim] = index
    return tuple(found) or (index.reshape(1) * 0,)


def written(x, place, values, how=None):
    """A copy with values at places, in the order of the values; `how` (np.add …) combines them with what is there."""
    out = x.copy()
    if how is None:
        out[place] = values
    else:
        how.at(out, place, values)
    return out


def combined(x, place, values, how, include_self):
    """Values reduced into places."""
    counts = written(np.full(x.shape, int(include_self)), place, 1, np.add)
    start = {"sum": 0, "mean": 0, "prod": 1, "amax": -np.inf, "amin": np.inf}[how]
    ufunc = {"sum": np.add, "mean": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}[how]
    touched = written(np.zeros(x.shape, bool), place, True)
    out = written(x if include_self else np.where(touched, start, x), place, values, ufunc)
    return np.where(touched, out / np.maximum(counts, 1), out) if how == "mean" else out


# ---- order ----


def in_order(x, dim, descending=False):
    order = np.argsort(-x if descending else x, dim, kind="stable")
    return np.take_along_axis(x, order, dim), order


def ranked(x, rank, dim, keepdim):
    """The element of a rank and where it stands."""
    return tuple(np.take(v, [rank] if keepdim else rank, dim) for v in in_order(x, dim))


def most_frequent(x, dim, keepdim):
    """The smallest of the most frequent elements, and where it stands last."""
    rows = np.moveaxis(x, dim, -1).reshape(-1, x.shape[dim])
    found = [min(row, key=lambda v, row=row: (-np.sum(row == v), v)) for row in rows]
    last = [np.flatnonzero(row == v)[-1] for row, v in zip(rows, found, strict=True)]
    sizes = list(x.shape)
    sizes[dim] = 1
    return tuple(np.reshape(v, sizes) if keepdim else np.reshape(v, sizes).squeeze(dim) for v in (found, last))


def last_extreme(ufunc, x, dim):
    """Where the running extreme stands: the last of equal elements."""
    here = np.equal(x, ufunc.accumulate(x, dim))
    count = np.arange(x.shape[dim]).reshape([-1] + [1] * (x.ndim - 1 - dim % x.ndim))
    return np.maximum.accumulate(np.where(here, count, 0), dim)


def searched(sequences, values, side):
    """np.searchsorted for rows of sequences."""
    if sequences.ndim == 1:
        return np.searchsorted(sequences, values, side)
    rows = zip(sequences.reshape(-1, sequences.shape[-1]), values.reshape(-1, values.shape[-1]), strict=True)
    return np.stack([np.searchsorted(s, v, side) for s, v in rows]).reshape(values.shape)


def unasked(results, *asked):
    """Results of np.unique, of which those that were not asked for are not told."""
    return results[0], *(r if want else None for r, want in zip(results[1:], asked, strict=True))


def runs(x, dim, return_inverse, return_counts):
    """The first of each run of equal slices; each element's run; the lengths of the runs."""
    slices = x.reshape(x.size, 1) if dim is None else np.moveaxis(x, dim, 0).reshape(x.shape[dim], -1)
    starts = np.ones(len(slices), bool)
    starts[1:] = np.any(slices[1:] != slices[:-1], 1)
    run = np.cumsum(starts) - 1
    found = [np.take(x, np.flatnonzero(starts), dim)]
    found += [run.reshape(x.shape) if dim is None else run] * return_inverse
    return found + [np.bincount(run)] * return_counts
