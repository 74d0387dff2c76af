"""What expressions of REFERENCES may call beside NumPy and SciPy: dimensions, places, order."""

import numpy as np

# The largest numbers of dtypes, two of which NumPy does not have.
LARGEST = {"float64": np.finfo("float64").max, "float32": np.finfo("float32").max, "float16": 65504.0, "bfloat16": 3.3895313892515355e38}


def axes(dim):
    """NumPy's axis of a dimension, a list of them (none: all) or None."""
    return dim if dim is None or isinstance(dim, int) else tuple(dim) or None


def along(dim, index):
    """An index into one dimension, all of the others."""
    return (..., index, *[slice(None)] * (-1 - dim)) if dim < 0 else (*[slice(None)] * dim, index)


def scaled(value, factor):
    """factor * value, which stays bool when the factor is 1."""
    return value if isinstance(factor, int) and factor == 1 else factor * value


def quotient(a, b, rounding_mode):
    if rounding_mode == "floor":
        return np.floor_divide(a, b)
    return np.trunc(a / b) if rounding_mode == "trunc" else a / b


def complex_of(real, imag):
    """Without arithmetic, which infinities would not survive."""
    out = np.empty(np.broadcast_shapes(real.shape, imag.shape), complex)
    out.real, out.imag = real, imag
    return out


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
    """Adds values up at the places of an array of these sizes that `view` takes them from; those below 0 are outside."""
    places = np.asarray(view(np.arange(np.prod(sizes)).reshape(sizes)))
    out = np.zeros(np.prod(sizes), values.dtype)
    np.add.at(out, places[places >= 0], np.broadcast_to(values, places.shape)[places >= 0])
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


def above(x):
    """Real numbers that an exponential of 0 is to outweigh: minus infinity does not."""
    return x if np.iscomplexobj(x) else np.maximum(x, -1e4)


def within(x):
    """The same at both ends."""
    return x if np.iscomplexobj(x) else np.clip(x, -1e4, 1e4)


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


# ---- matrices ----


def factor(x, upper):
    """The Cholesky factor."""
    found = np.linalg.cholesky(x)
    return np.conj(np.swapaxes(found, -1, -2)) if upper else found


def triangle(x, upper, unit=False):
    found = np.triu(x) if upper else np.tril(x)
    return found + unit * np.eye(x.shape[-1]) * (1 - found)


def from_factor(x, upper):
    """The matrix of a Cholesky factor, of which one triangle is read."""
    found = triangle(x, upper)
    other = np.conj(np.swapaxes(found, -1, -2))
    return other @ found if upper else found @ other


def solved(a, b, left=True, vectors=True):
    """X of a X = b, or of X a = b; b is a batch of matrices, or of vectors."""
    if b.ndim == 1 or (vectors and b.ndim == a.ndim - 1 and b.shape == a.shape[:-1]):
        return np.linalg.solve(a, b[..., None])[..., 0]
    if left:
        return np.linalg.solve(a, b)
    return np.swapaxes(np.linalg.solve(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)), -1, -2)


def matrix_norm(x, p, dim, keepdim):
    return np.linalg.norm(x, p, tuple(dim), keepdim)


def swapped(pivots, n):
    """The order of n rows after exchanges with the rows of pivots, counted from 1."""
    order = np.arange(n)
    for i, p in enumerate(pivots):
        order[[i, p - 1]] = order[[p - 1, i]]
    return order


def as_pillow_resizes(pixels, size, mode):
    """A picture (H, W, 1) or (H, W, 4); the channels of CMYK are four alike."""
    from PIL import Image

    alone = pixels.shape[2] == 1
    pixels = pixels.astype(np.uint8)
    picture = Image.fromarray(pixels[:, :, 0] if alone else pixels, "L" if alone else "CMYK")
    code = getattr(Image.Resampling, mode.upper())
    return np.asarray(picture.resize((size[1], size[0]), code)).reshape(*size, -1)


def as_planes(pixels, table, mirrored):
    """Of byte v of channel c table[c, v], as planes."""
    pixels = pixels.astype(int)[:, :: -1 if mirrored else 1]
    return np.stack([values[pixels[:, :, c]] for c, values in enumerate(table)])


def as_pillow_adjusts(pixels, change, factor):
    """A picture (H, W, 1) or (H, W, 4), whose last channel stays."""
    from PIL import Image, ImageEnhance

    pixels = pixels.astype(np.uint8)
    if pixels.size == 0:
        return pixels
    alone = pixels.shape[2] == 1
    picture = Image.fromarray(np.ascontiguousarray(pixels[:, :, 0] if alone else pixels[:, :, :3]))
    if change != "hue":
        names = {"brightness": "Brightness", "contrast": "Contrast", "saturation": "Color"}
        picture = getattr(ImageEnhance, names[change])(picture).enhance(factor)
    elif not alone:
        hue, *others = picture.convert("HSV").split()
        turned = (np.asarray(hue).astype(int) + int(factor * 255)) % 256
        hue = Image.fromarray(turned.astype(np.uint8))
        picture = Image.merge("HSV", (hue, *others)).convert("RGB")
    colours = np.asarray(picture).reshape(*pixels.shape[:2], -1)
    return colours if alone else np.concatenate([colours, pixels[:, :, 3:]], 2)


def chunked_cat(arrays, dim, chunks):
    """Each array cut along dim into flat chunks, filled up with zeros, side by side."""
    pieces = []
    for a in arrays:
        missing = -a.shape[dim] % chunks
        padded = np.pad(a, [(0, missing if d == dim else 0) for d in range(a.ndim)])
        pieces.append(padded.reshape(*a.shape[:dim], chunks, -1))
    return np.concatenate(pieces, dim + 1)
