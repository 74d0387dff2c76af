"""Functions that take `out=` by a wrapper, and facts that are compared."""

import collections

import pytest

import rushlight as torch
from rushlight._prims_common.wrappers import _maybe_remove_out_wrapper, out_wrapper
from rushlight._subclasses.meta_utils import assert_metadata_eq

Pair = collections.namedtuple("Pair", ("low", "high"))


@out_wrapper()
def double(x):
    return 2 * x


@out_wrapper("low", "high")
def bounds(x):
    return Pair(x.min(), x.max())


def test_out_wrapper():
    x = torch.arange(3.0)
    out = torch.empty(3, dtype=torch.float64)
    assert double(x, out=out) is out and out.tolist() == [0, 2, 4]
    with pytest.warns(UserWarning, match="resized"):
        assert double(x, out=torch.empty(2)).shape == (3,)
    with pytest.raises(RuntimeError, match="can't be cast"):
        double(x, out=torch.empty(3, dtype=torch.int32))
    with pytest.raises(TypeError, match="must be Tensor"):
        double(x, out=1)
    low, high = torch.empty(()), torch.empty(())
    written = bounds(x, out=(low, high))
    assert isinstance(written, Pair) and written.low is low and (low, high) == (0, 2)
    with pytest.raises(TypeError, match="2 tensors"):
        bounds(x, out=low)
    exact = out_wrapper(exact_dtype=True)(lambda x: 2 * x)
    with pytest.raises(RuntimeError, match="dtype"):
        exact(x, out=out)


def test_wrappers_come_off():
    assert _maybe_remove_out_wrapper(double) is double.__wrapped__
    assert _maybe_remove_out_wrapper(torch.add) is torch.add


def test_metadata():
    def facts(a, b, **options):
        seen = []
        assert_metadata_eq(lambda x, y: seen.append((x, y)), a, b, **options)
        return [pair for pair in seen if pair[0] != pair[1]], len(seen)

    x = torch.ones(2, 3)
    differing, total = facts(x, torch.ones(2, 3))
    assert not differing and total > 8
    assert facts(x, torch.ones(3, 2))[0] == [((2, 3), (3, 2)), ((3, 1), (2, 1))]
    assert not facts(x, torch.ones(3, 2), skip_symbolic=True)[0]
    grown = torch.ones(2, 3, requires_grad=True)
    assert (False, True) in facts(x, grown)[0]
    assert (True, False) in facts(grown, grown * 1)[0]
    assert (True, False) not in facts(grown, grown * 1, skip_leaf=True)[0]
    assert (False, True) in facts(x, x[:])[0]
    sparse = torch.eye(2).to_sparse()
    assert not facts(sparse, sparse.clone())[0]
    grown.sum().backward()
    assert (True, False) in facts(torch.ones(2, 3, requires_grad=True), grown)[0]
