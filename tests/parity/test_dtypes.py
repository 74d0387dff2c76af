"""All dtypes against PyTorch's: properties, limits, promotion, conversion of every pair, printing, files."""

import copy
import io
import itertools
import math
import pickle

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")

NAMES = [str(dtype).removeprefix("torch.") for dtype in rushlight._C._dtypes]
STORED = [name for name in NAMES if not getattr(rushlight, name)._computes]
FLOAT8 = [name for name in NAMES if name.startswith("float8")]
# complex32 is announced as experimental by PyTorch; real parts are taken on purpose here.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def outcome(function, *args, **kwargs):
    """What a call gives, or the type and text of its error."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return type(error), str(error).split("\n")[0]


def of(module, name):
    return getattr(module, name)


def codes(tensor):
    """The bytes of a tensor, with one code for all that are no number."""
    if tensor.is_complex():
        tensor = (torch if isinstance(tensor, torch.Tensor) else rushlight).view_as_real(tensor)
    size = tensor.dtype.itemsize
    module = torch if isinstance(tensor, torch.Tensor) else rushlight
    raw = tensor.contiguous().view(module.uint8).numpy().copy().reshape(-1, size)
    if tensor.is_floating_point():
        raw[module.isnan(tensor).numpy().reshape(-1)] = 0xAB
    return raw


def values(name):
    """Numbers of a dtype as bytes: all codes of small ones, and what is special in wide ones."""
    size = of(torch, name).itemsize
    rng = np.random.default_rng(7)
    if name == "bool":
        return np.array([0, 1], np.uint8)
    if size == 1:
        return np.arange(256, dtype=np.uint8)
    if size == 2:
        return np.arange(65536, dtype=np.uint16)
    if name == "complex32":
        halfs = rng.integers(0, 65536, 4000).astype(np.uint16)
        return np.concatenate([np.repeat(np.arange(0, 65536, 7, dtype=np.uint16), 2), halfs])
    if "float" in name or "complex" in name:
        made = np.concatenate([
            rng.standard_normal(2000) * 10.0 ** rng.integers(-12, 12, 2000),
            np.arange(-600, 600) / 2,
            2.0 ** np.arange(-30, 70),
            [0.0, -0.0, math.inf, -math.inf, math.nan, 448, 464, 464.1, 480, 240, 247.9, 248, 57344, 61439, 61440],
        ])  # fmt: skip
        return made.astype(np.float64 if name in ("float64", "complex128") else np.float32)
    bits = rng.integers(0, 2 ** (8 * size - 1), 2000).astype(f"u{size}")
    edges = np.array(
        [0, 1, 2, 3, 255, 256, 2 ** (8 * size - 1) - 1, 2 ** (8 * size - 1), 2 ** (8 * size) - 1]
    )
    return np.concatenate([bits, bits * 2 + 1, edges.astype(f"u{size}")])


def made(module, name):
    raw = np.ascontiguousarray(values(name)).view(np.uint8)
    raw = raw[: len(raw) // of(torch, name).itemsize * of(torch, name).itemsize]
    return module.from_numpy(raw.copy()).view(of(module, name))


def whole(tensor):
    """The part of a tensor whose conversion to integers C++ defines."""
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return None
    real = torch.view_as_real(tensor)[..., 0] if tensor.is_complex() else tensor
    real = real.double()
    return real.isfinite(), real


@pytest.mark.parametrize("source", NAMES)
def test_conversions_have_the_same_bits(source):
    ours, theirs = made(rushlight, source), made(torch, source)
    for target in NAMES:
        if source not in STORED and target not in STORED:
            continue
        to, expected = of(torch, target), theirs
        if (
            not (to.is_floating_point or to.is_complex or to is torch.bool)
            and whole(theirs) is not None
        ):
            finite, real = whole(theirs)
            info = torch.iinfo(to)
            fits = finite & (real > info.min - 1.0) & (real < float(info.max))
            keep = rushlight.from_numpy(fits.numpy())
            expected, given = theirs.view(*theirs.shape)[fits], ours[keep]
        else:
            given = ours
        np.testing.assert_array_equal(
            codes(given.to(of(rushlight, target))), codes(expected.to(to)), f"{source} to {target}"
        )


@pytest.mark.parametrize("target", STORED)
def test_conversions_of_strided_and_broadcast_tensors(target):
    x = np.random.default_rng(3).uniform(0, 100, (37, 50))
    for shape in (lambda t: t.t(), lambda t: t[::2, 1::3], lambda t: t[:, :1].expand(37, 9)):
        ours = shape(rushlight.from_numpy(x)).to(of(rushlight, target))
        theirs = shape(torch.from_numpy(x)).to(of(torch, target))
        assert ours.stride() == theirs.stride()
        np.testing.assert_array_equal(codes(ours), codes(theirs))
        back = rushlight.empty(ours.shape, dtype=rushlight.float32).copy_(ours)
        np.testing.assert_array_equal(codes(back), codes(theirs.float()))


def test_promotion_of_every_pair():
    for a, b in itertools.product(NAMES, NAMES):
        found = []
        for module in (rushlight, torch):
            x, y = of(module, a), of(module, b)
            result = [outcome(module.promote_types, x, y), outcome(module.can_cast, x, y)]
            for left, right in itertools.product([(), (3,)], [(), (3,)]):
                result.append(
                    outcome(
                        module.result_type,
                        module.zeros(left, dtype=x),
                        module.zeros(right, dtype=y),
                    )
                )
            for number in (True, 3, 1.5, 1j):
                result.append(outcome(module.result_type, module.zeros(3, dtype=x), number))
            found.append([str(r) for r in result])
        assert found[0] == found[1], (a, b)


def test_properties_and_limits():
    for name in NAMES:
        found = []
        for module in (rushlight, torch):
            dtype = of(module, name)
            about = [
                dtype.is_signed,
                dtype.itemsize,
                dtype.is_floating_point,
                dtype.is_complex,
                repr(dtype),
            ]
            about += [str(dtype.to_real()), str(outcome(dtype.to_complex))]
            assert copy.deepcopy(dtype) is dtype
            assert pickle.loads(pickle.dumps(dtype)) is dtype
            for info in (module.finfo, module.iinfo):
                limits = outcome(info, dtype)
                if isinstance(limits, tuple):
                    about.append(limits[0])
                    continue
                about.append(repr(limits))
                fields = (
                    "bits",
                    "eps",
                    "max",
                    "min",
                    "tiny",
                    "smallest_normal",
                    "resolution",
                    "dtype",
                )
                about += [getattr(limits, field, None) for field in fields]
            found.append(about)
        assert found[0] == found[1]
    assert rushlight.chalf is rushlight.complex32
    from torch.utils._dtype_abbrs import dtype_abbrs as expected

    from rushlight.utils._dtype_abbrs import dtype_abbrs as short

    assert {str(dtype): name for dtype, name in short.items()}.items() <= {
        str(d): n for d, n in expected.items()
    }.items()


@pytest.mark.parametrize("name", STORED)
def test_python_sees_them_alike(name):
    found = []
    for module in (rushlight, torch):
        dtype = of(module, name)
        x = module.tensor([[0, 1 if "int" in name else 1.5, 2], [3, 100, 7]], dtype=dtype)
        seen = [
            repr(x),
            repr(module.empty((0, 2), dtype=dtype)),
            x.tolist(),
            x[0, 1].item(),
            x.type(),
            x.element_size(),
        ]
        seen += [x.is_signed(), x.is_floating_point(), x.is_complex()]
        seen += [bool(x[0, 1]), outcome(int, x[0, 1]), outcome(float, x[1, 1])]
        for factory in (module.zeros, module.ones):
            seen.append(factory(2, 2, dtype=dtype).tolist())
        seen += [
            module.full((2,), 5, dtype=dtype).tolist(),
            module.zeros_like(x).tolist(),
            x.new_tensor([1, 2]).tolist(),
        ]
        y = x.clone()
        y[0] = 9
        y[:, 1].fill_(4)
        seen += [
            y.tolist(),
            module.cat([x, y]).tolist(),
            module.stack([x, y], 1).shape,
            x.t().contiguous().tolist(),
        ]
        seen += [
            x[module.tensor([1, 0])].tolist(),
            x[:, module.tensor([True, False, True])].tolist(),
        ]
        seen += [
            (x == y).tolist(),
            (x != 2).tolist(),
            x.unique().tolist() if "int" in name else None,
        ]
        seen += [
            module.where(x == y, x, y).tolist(),
            x.view(module.uint8).shape,
            x.repeat(1, 2).tolist(),
        ]
        seen += [
            x.expand(2, 2, 3).reshape(-1).tolist(),
            module.isnan(x).tolist(),
            x.any().item(),
            x.all().item(),
        ]
        seen += [
            module.from_dlpack(x).tolist(),
            copy.deepcopy(x).tolist(),
        ]
        if x.is_floating_point():
            seen.append(repr(x.clone().requires_grad_()))
        found.append([str(s) for s in seen])
    for ours, theirs in zip(*found, strict=True):
        assert ours == theirs


@pytest.mark.parametrize("name", STORED)
def test_files_are_exchanged(name):
    raw = np.arange(64, dtype=np.uint8)
    for writer, reader in itertools.product((rushlight, torch), repeat=2):
        x = writer.from_numpy(raw.copy()).view(of(writer, name))
        file = io.BytesIO()
        writer.save({"x": x, "y": x[2:5], "dtype": x.dtype if writer is reader else None}, file)
        file.seek(0)
        loaded = reader.load(file, weights_only=True)
        assert loaded["x"].dtype is of(reader, name)
        if writer is rushlight:  # PyTorch's own pickles of them cannot be read
            assert codes(pickle.loads(pickle.dumps(x))).tolist() == codes(x).tolist()
        np.testing.assert_array_equal(loaded["x"].view(reader.uint8).numpy(), raw)
        assert loaded["y"].untyped_storage().data_ptr() == loaded["x"].untyped_storage().data_ptr()
        assert loaded["y"].storage_offset() == 2


@pytest.mark.parametrize("name", ["uint16", "uint32", "uint64"])
def test_numpy_both_ways(name):
    array = np.array([[0, 1, 2**15], [np.iinfo(name).max, 7, 9]], dtype=name)
    for module in (rushlight, torch):
        x = module.from_numpy(array)
        assert x.dtype is of(module, name)
        assert x.tolist() == array.tolist()
        assert x.numpy().dtype == array.dtype
        assert x.numpy().ctypes.data == array.ctypes.data
        assert module.tensor(array).tolist() == array.tolist()
        assert module.as_tensor(array[::-1].copy().T).tolist() == array[::-1].T.tolist()


@pytest.mark.parametrize("name", [n for n in STORED if "uint" not in n])
def test_numpy_has_none_of_the_others(name):
    for module in (rushlight, torch):
        with pytest.raises(TypeError, match="Got unsupported ScalarType"):
            module.zeros(2, dtype=of(module, name)).numpy()


NUMBERS = [
    0,
    1,
    -1,
    255,
    70000,
    2**31,
    2**63 - 1,
    2**63,
    2**64 - 1,
    -(2**31),
    -(2**63),
    1.5,
    -1.5,
    1e9,
    1e39,
    1j,
    True,
    math.inf,
]


@pytest.mark.parametrize("name", ["uint8", "uint16", "uint32", "uint64"])
def test_numbers_that_fit_and_those_that_do_not(name):
    for number in NUMBERS:
        found = []
        for module in (rushlight, torch):
            dtype = of(module, name)
            filled = outcome(module.zeros(2, dtype=dtype).fill_, number)
            full = outcome(module.full, (1,), number, dtype=dtype)
            found.append([_in_short(filled), _in_short(full)])
        assert found[0] == found[1], number


def _in_short(found):
    """A result as text; of an error its type, and whether it tells of an overflow."""
    if isinstance(found, tuple):
        kind, text = found
        return str((kind, "without overflow" in text))
    return str(found)


def test_large_integers():
    for module in (rushlight, torch):
        x = module.tensor([2**64 - 1, 2**63, 5], dtype=module.uint64)
        assert x.tolist() == [2**64 - 1, 2**63, 5]
        assert x[0].item() == 2**64 - 1
        assert (x == 2**63).tolist() == [False, True, False]
        assert (x * 3).tolist() == [2**64 - 3, 2**63, 15]
        assert module.full((1,), 2**64 - 1, dtype=module.uint64).item() == 2**64 - 1
        assert x.double().tolist() == [2.0**64, 2.0**63, 5.0]
        assert x.float().to(module.uint64)[1].item() == 2**63
        assert x.to(module.int64).tolist() == [-1, -(2**63), 5]
        with pytest.raises(RuntimeError, match="without overflow"):
            module.zeros(2, dtype=module.int64).fill_(2**63)
        with pytest.raises(OverflowError):
            module.tensor([-1], dtype=module.uint64)
