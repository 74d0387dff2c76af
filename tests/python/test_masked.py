"""`masked`: each op against the plain one of the elements that the mask leaves."""

import math

import pytest

import rushlight as rl
from rushlight import masked

REDUCTIONS = {
    "sum": (rl.sum, 0.0),
    "prod": (rl.prod, 1.0),
    "amax": (rl.amax, -math.inf),
    "amin": (rl.amin, math.inf),
    "mean": (rl.mean, math.nan),
    "median": (rl.median, math.nan),
    "logsumexp": (lambda x: rl.logsumexp(x, 0), -math.inf),
    "norm": (rl.linalg.vector_norm, 0.0),
    "var": (rl.var, math.nan),
    "std": (rl.std, math.nan),
}


def data():
    rl.manual_seed(0)
    x = rl.randn(4, 5, dtype=rl.float64)
    mask = rl.rand(4, 5) > 0.4
    mask[2] = False  # a row of which nothing is left
    mask[3, :2] = True
    return x, mask


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("keepdim", [False, True])
def test_reductions_of_rows(name, keepdim):
    plain, empty = REDUCTIONS[name]
    x, mask = data()
    args = (2.0, 1) if name == "norm" else (1,)
    result = getattr(masked, name)(x, *args, keepdim=keepdim, mask=mask)
    assert result.shape == ((4, 1) if keepdim else (4,))
    rows = [plain(row[m]).item() if m.any() else empty for row, m in zip(x, mask, strict=True)]
    rl.testing.assert_close(result.flatten(), rl.tensor(rows, dtype=rl.float64), equal_nan=True)
    function = getattr(masked, name)
    left = masked._output_mask(function, x, *args, keepdim=keepdim, mask=mask)
    assert left.flatten().tolist() == [True, True, False, True] and left.shape == result.shape
    identity = masked._reduction_identity(f"masked.{name}", x)
    assert (identity is None) == (name in ("mean", "var", "std"))
    if name not in ("mean", "var", "std"):
        assert identity.item() == empty or (math.isnan(empty) and identity.isnan())


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_places(name):
    x, mask = data()
    places = getattr(masked, name)(x, 1, mask=mask)
    fill = -math.inf if name == "argmax" else math.inf
    expected = getattr(rl, name)(x.masked_fill(~mask, fill), 1)
    assert places.tolist() == expected.tolist()


def test_scans_and_normalisations():
    x, mask = data()
    rl.testing.assert_close(masked.cumsum(x, 1, mask=mask), (x * mask).cumsum(1))
    rl.testing.assert_close(masked.cumprod(x, 1, mask=mask), x.where(mask, 1.0).cumprod(1))
    for name, sign in (("softmax", 1), ("softmin", -1)):
        result = getattr(masked, name)(x, 1, mask=mask)
        assert result[2].isnan().all()
        for row in (0, 1, 3):
            kept = result[row][mask[row]]
            rl.testing.assert_close(kept, rl.softmax(sign * x[row][mask[row]], 0))
            assert not result[row][~mask[row]].any()
    logs = masked.log_softmax(x, 1, mask=mask)
    rl.testing.assert_close(logs[0].exp(), masked.softmax(x, 1, mask=mask)[0])
    unit = masked.normalize(x, 2.0, 1, mask=mask)
    assert unit[0].square().sum().item() == pytest.approx(1) and not unit[2].any()
    both = masked.logaddexp(x, x, input_mask=mask, other_mask=~mask)
    rl.testing.assert_close(both, x)


def test_masks_are_broadcast_and_checked():
    x, _ = data()
    column = rl.tensor([[True], [False], [True], [False]])
    assert masked.sum(x, mask=column).item() == pytest.approx((x[0] + x[2]).sum().item())
    with pytest.raises(IndexError, match="mask dimensionality higher"):
        masked.sum(x, mask=rl.ones(1, 4, 5, dtype=rl.bool))
    with pytest.raises(RuntimeError, match="dim=1 appears multiple times"):
        masked.sum(x, (1, -1))
    with pytest.raises(ValueError, match="input mask is not given"):
        masked._input_mask(x)
    with pytest.raises(ValueError, match="no fully masked out rows"):
        masked.median(x.int(), 1, mask=column)
    with pytest.raises(ValueError, match="along one dimension, but dim is None"):
        masked.median(x, None, mask=column)
    with pytest.raises(ValueError, match="floating point or complex"):
        masked.mean(x.int())
    with pytest.raises(NotImplementedError, match="identity of amax"):
        masked.amax(x > 0, mask=column)


def test_integers_are_added_up_in_int64():
    x = rl.tensor([100, 100, 3], dtype=rl.int8)
    mask = rl.tensor([True, True, False])
    assert masked.sum(x, mask=mask).item() == 200
    assert masked.prod(x, mask=mask).item() == 10000
    assert masked.amax(x, mask=~mask).dtype == rl.int8


@pytest.mark.parametrize("name", ["sum", "prod", "amax", "mean", "logsumexp", "norm", "var"])
def test_gradients(name):
    x, mask = data()
    mask[2, :3] = True
    args = (2.0, 1) if name == "norm" else (1,)
    assert rl.autograd.gradcheck(
        lambda t: getattr(masked, name)(t, *args, mask=mask), (x.requires_grad_(),)
    )


@pytest.mark.parametrize("name", ["sum", "amax", "mean", "argmin", "softmax", "cumsum", "var"])
def test_a_sparse_mask_of_a_dense_input(name):
    x, mask = data()
    operation = getattr(masked, name)
    expected = operation(x, 1, mask=mask)
    rl.testing.assert_close(operation(x, 1, mask=mask.to_sparse()), expected, equal_nan=True)
