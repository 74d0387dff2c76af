"""dtype, layout, device, requires_grad and out= of every factory of the op table."""

from functools import partial

import pytest

import rushlight as torch
from gen import table

FACTORIES = [op for op in table.load() if op.has_options]
# The values of `empty` are anyone's.
WITH_OUT = [op for op in FACTORIES if "out" in op.variants and op.name != "empty"]
SPARSE = (
    torch.sparse_coo,
    torch.sparse_csr,
    torch.sparse_csc,
    torch.sparse_bsr,
    torch.sparse_bsc,
)
VALUES = {
    "int[]": (6,),
    "int": 6,
    "Scalar": 6,
    "float": 1.0,
    "Tensor": torch.tensor(6.0),
    "stride": (1,),
    "physical_layout": (0,),
    "start": 0,
    "low": 0,
}


def function(op):
    space, _, name = op.name.partition("_")
    return getattr(torch.fft, name) if space == "fft" else getattr(torch, op.name)


def arguments(op):
    """Values of what is required, for a result of a few elements."""
    out = []
    for a in op.args:
        if a.default is None:
            kind = a.type.base + ("[]" if a.type.is_list else "")
            value = VALUES.get(a.name, VALUES[kind])
            out.append(
                torch.tensor(float(value))
                if kind == "Tensor" and not torch.is_tensor(value)
                else value
            )
    return out


def ids(op):
    return op.symbol


def made(op, **options):
    torch.manual_seed(0)
    return function(op)(*arguments(op), **options)


def dtypes(op):
    return (torch.int32, torch.int64) if op.name == "randperm" else (torch.float32, torch.float64)


def test_there_are_factories():
    assert len(WITH_OUT) > 20
    assert len(FACTORIES) > len(WITH_OUT)


@pytest.mark.parametrize("op", WITH_OUT, ids=ids)
@pytest.mark.filterwarnings("ignore")
def test_out_is_computed_in_its_own_dtype(op):
    for dtype in dtypes(op):
        out = torch.empty(0, dtype=dtype)
        assert made(op, out=out) is out
        assert out.dtype == dtype
        assert torch.equal(out, made(op, dtype=dtype))


@pytest.mark.parametrize("op", WITH_OUT, ids=ids)
@pytest.mark.filterwarnings("ignore")
def test_options_that_out_contradicts_are_refused(op):
    mine, other = dtypes(op)
    out = torch.empty(0, dtype=mine)
    with pytest.raises(RuntimeError, match="does not match dtype of out"):
        made(op, out=out, dtype=other)
    with pytest.raises(RuntimeError, match="does not match device type of out"):
        made(op, out=out, device="meta")
    with pytest.raises(RuntimeError, match="does not match layout of out"):
        made(op, out=out, layout=torch.sparse_coo)
    if mine.is_floating_point:
        assert made(op, out=out, requires_grad=True).requires_grad


@pytest.mark.parametrize("op", WITH_OUT, ids=ids)
@pytest.mark.filterwarnings("ignore")
def test_out_of_as_many_elements(op):
    """Sequences fill it in its own shape; others give it theirs. What lies beside it stays."""
    dtype = dtypes(op)[0]
    expected = made(op, dtype=dtype)
    n = expected.numel()
    for shape in ((n,), (1, n), (n, 1)):
        memory = torch.full((2 * n,), 77, dtype=dtype)
        out = memory[:n].view(shape)
        made(op, out=out)
        assert out.shape == (shape if "any_shape" in op.out else expected.shape)
        assert torch.equal(out.reshape(-1), expected.reshape(-1))
        assert (memory[n:] == 77).all()
    if "any_shape" in op.out:
        strided = torch.full((2 * n,), 77, dtype=dtype)
        made(op, out=strided[::2])
        assert torch.equal(strided[::2], expected)
        assert (strided[1::2] == 77).all()


@pytest.mark.parametrize("op", FACTORIES, ids=ids)
@pytest.mark.filterwarnings("ignore")
def test_a_layout_is_taken_or_refused(op):
    given = arguments(op)
    if op.on_self:
        model = torch.ones(6, 6)
        given = [(6, 6) if g == (6,) else g for g in given[1:]]
        call = getattr(model, op.name, None) or partial(function(op), model)
    else:
        given = [(6, 6) if g == (6,) else g for g in given]
        call = function(op)
    if "stride" in op.name or "permuted" in op.name:
        given[-2:] = [(6, 6), (6, 1) if "stride" in op.name else (0, 1)]
    assert call(*given, layout=torch.strided).layout is torch.strided
    for layout in SPARSE:
        try:
            result = call(*given, layout=layout)
        except (NotImplementedError, RuntimeError) as error:
            assert "parse" in str(error), error
        else:
            assert result.layout is layout
            assert not result.to_dense().any()


def test_the_class_called_with_a_tensor_gives_a_view():
    class Own(torch.Tensor):
        pass

    x = torch.ones(2, requires_grad=True)
    for make in (torch.Tensor, Own, torch.FloatTensor, x.new):
        y = make(x)
        assert y is not x and y._base is x and isinstance(y, Own if make is Own else torch.Tensor)
        x.grad = None
        (y * 3).sum().backward()
        assert x.grad.tolist() == [3, 3]
    z = torch.zeros(2)
    torch.Tensor(z).add_(1)
    assert z.tolist() == [1, 1] and z._version == 1


def test_ranges_of_integers_with_bounds_that_are_none():
    """int64 cuts bounds and step first; smaller integers count before that, and cut where they begin."""
    cases = [
        ((-1, 0.5), [-1], [-1, 0]),
        ((0, 2.5), [0, 1], [0, 1, 2]),
        ((5, 0, -1.5), [5, 4, 3, 2, 1], [5, 4, 3, 2]),
        ((0, 5, 2.5), [0, 2, 4], [0, 2]),
        ((-0.5, 0.5), [], [0]),
        ((0, 2**40 + 0.5, 2**39), [0, 2**39], None),
    ]
    for bounds, whole, narrow in cases:
        assert torch.arange(*bounds, dtype=torch.int64).tolist() == whole
        assert torch.arange(*bounds, out=torch.empty(0, dtype=torch.int64)).tolist() == whole
        if narrow is not None:
            assert torch.arange(*bounds, dtype=torch.int32).tolist() == narrow
    with pytest.raises(RuntimeError, match="step must be nonzero"):
        torch.arange(0, 3, 0.5, dtype=torch.int64)
    with pytest.warns(UserWarning, match="deprecated"):
        for dtype in (torch.int64, torch.int32):
            assert torch.range(5, 0, -1.5, dtype=dtype).tolist() == [5, 4, 3, 2, 1, 0]
            assert torch.range(-1, 0.5, dtype=dtype).tolist() == [-1, 0]
