"""What functions do with their arguments: lists or numbers, no elements, wrong sizes, numbers at the ends of dtypes.

Each line is run by both modules; results and gradients are equal, errors of the same type.
"""

import warnings

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")

from tests.parity.compare import assert_alike, outcome  # noqa: E402

inf, nan = float("inf"), float("nan")

CALLS = """
m.sum(m.full((3,), 1.75), 0, out=m.empty(0, dtype=m.int64))
m.sum(m.full((3,), 1.75), 0, out=m.empty(0, dtype=m.float64))
m.sum(m.full((3,), 1.75), 0, dtype=m.float64, out=m.empty(0))
m.prod(m.full((3,), 1.75), 0, out=m.empty(0, dtype=m.int64))
m.mean(m.full((3,), 1.75), 0, dtype=m.float64, out=m.empty(0))
m.cumsum(m.full((3,), 1.75), 0, out=m.empty(3, dtype=m.int64))
m.cumprod(m.full((3,), 1.75), 0, out=m.empty(3, dtype=m.int64))
m.cumprod(m.full((3,), 1.75), 0, dtype=m.int64, out=m.empty(3))
m.softmax(m.ones(3), 0, dtype=m.float64, out=m.empty(3))
m.bernoulli(m.ones(3), out=m.zeros(3, dtype=m.int64))
m.bernoulli(m.tensor([0., 1.]), out=m.zeros(2, dtype=m.bool))
m.matmul(m.ones(2, 2, requires_grad=True), m.ones(2, 2), out=m.ones(2, 2))
m.matmul(m.ones(2, 2), m.ones(2, 2), out=m.ones(2, 2, requires_grad=True))
m.einsum('ij,jk', m.ones(2, 2, requires_grad=True), m.ones(2, 2)).requires_grad
m.norm(m.ones(3, requires_grad=True), out=m.zeros(()))
m.max(m.tensor([3, 7]), m.tensor(6))
m.max(m.tensor([3, 7]), m.tensor(0))
m.min(m.tensor([3., 7.]), m.tensor(6.))
m.min(m.tensor([[3, 7]]), 0)[0]
m.ones(2, 3) == np.ones((2, 3))
np.ones((2, 3)) == m.ones(2, 3)
m.ones(2) == np.array(['a', 'b'], dtype=object)
np.full(3, 4.) / m.full((3,), 2.)
m.ones(3) / np.full(3, 4.)
m.ones(3) < np.ones(3)
m.ones((np.array(3), np.int64(4))).shape
m.ones(np.array(3)).shape
m.ones(np.array(3.)).shape
m.ones(np.array([3, 2])).shape
~m.ones(2)
~m.tensor([True, False])
m.ones(3).__setitem__(m.tensor([0, 1]), m.ones(2, dtype=m.complex64))
m.ones(3).__setitem__(m.tensor([0, 1]), m.ones(2, dtype=m.float64))
m.ones(3).__setitem__(m.tensor([0, 1]), m.tensor(2))
m.ones(3).__setitem__(m.tensor([0, 1]), 2)
m.ones(3, dtype=m.int64).__setitem__(m.tensor([True, False, True]), 2.5)
m.ones(3).uniform_(1e39, 2e39)
m.ones(3).uniform_(-3e38, 3e38)
m.ones(3, dtype=m.float16).uniform_(0, 1e5)
m.ones(3, dtype=m.bfloat16).uniform_(0, 3.3e38).isfinite()
m.ones(3).uniform_(nan, 1)
m.ones(3).uniform_(2, 1)
warned(m, lambda: m.ones(2).random_(0, 2 ** 25))
warned(m, lambda: m.ones(2).random_(-2 ** 24, 2 ** 24))
warned(m, lambda: m.ones(2, dtype=m.bfloat16).random_(0, 1000))
warned(m, lambda: m.ones(2, dtype=m.float64).random_(0, 2 ** 53))
m.block_diag()
m.broadcast_tensors()
m.cartesian_prod()
m.chain_matmul()
m.chain_matmul(m.ones(2, 3), m.ones(3, 2), m.ones(2, 2))
m.einsum('i->i', [])
m.einsum('i->i')
m.cat((m.ones(0), m.ones(0)), 1)
m.cat((m.ones(0), m.ones(2, 3)), 1)
m.linalg.norm(m.ones(3, 3, 3), 1, (0, 1, 2), True)
m.linalg.norm(m.ones(3, 3, 3), None, (0, 1, 2), True)
m.nn.ReflectionPad1d(2)(m.ones(1, 0, 10))
m.nn.ReflectionPad2d(2)(m.ones(0, 10, 10))
m.nn.ReflectionPad2d(2)(m.ones(0, 3, 10, 10))
m.nn.ReplicationPad3d(2)(m.ones(1, 0, 10, 10, 10))
m.nn.functional.pad(m.ones(1, 0, 10), (2, 2), 'circular')
m.nn.RNN(0, 3)
m.nn.GRU(3, 0)
m.nn.LSTM(3, 3, 0)
m.nn.functional.dropout3d(m.ones(4, 2, 2, 2), 0.5).sum((1, 2, 3)) % 16
warned(m, lambda: m.nn.functional.dropout2d(m.ones(1, 2, 2), 0.))
m.pca_lowrank(m.ones(4, 3, dtype=m.complex64))[0].dtype
grads(lambda x: m.zeros(2).scatter_reduce(0, m.tensor([0, 0, 1]), x, 'amax', include_self=False).nansum(), m.tensor([1., 2., 3.]))
grads(lambda x: m.segment_reduce(x, 'max', lengths=m.tensor([1, 2, 3, 0]), initial=0), m.tensor([1, nan, 3, 4, 5, 5]))
grads(lambda x: m.segment_reduce(x, 'min', lengths=m.tensor([1, 2, 3])), m.tensor([1, nan, 3, 4, 5, 5]))
m.ones([1] * 64).dim()
m.diff(m.ones(3, 2), n=0, prepend=m.ones(3, 1))
m.diff(m.ones(3, 2), n=0, prepend=m.ones(4, 1))
m.roll(m.tensor(1.), 1, 0)
m.roll(m.tensor(1.), 1)
m.fill(m.ones(2, requires_grad=True), 3.).requires_grad
m.combinations(m.ones(2, requires_grad=True), 3).requires_grad
m.combinations(m.ones(0), 2, True)
m.normal(m.zeros(2, requires_grad=True), 0.).requires_grad
m.normal(m.zeros(2), m.zeros(2, requires_grad=True)).requires_grad
m.normal(m.zeros(2), m.zeros(2)).requires_grad
[f(2)._version for f in (m.rand, m.randn, m.randperm, m.empty, m.zeros)]
[f(m.ones(2))._version for f in (m.rand_like, m.randn_like, m.bernoulli)]
[m.randint(3, (2,))._version, m.normal(0., 1., (2,))._version, m.rand(2).mul_(2)._version]
m.nn.functional.gelu(m.ones(2), approximate='sinh')
m.nn.functional.gelu(m.ones(2), out=m.zeros(2))
m.nn.functional.softplus(m.ones(2), out=m.zeros(2))
m.nn.functional.softshrink(m.ones(2), out=m.zeros(2))
m.nn.functional.softshrink(m.ones(2), -0.5)
m.nn.functional.softshrink(m.ones(2), nan)
m.nn.functional.softshrink(m.ones(2, dtype=m.float16), 1e5)
m.nn.functional.linear(m.ones(2, 3), m.ones(4, 3), out=m.zeros(2, 4))
m.nn.functional.fractional_max_pool3d(m.arange(64.).reshape(1, 4, 4, 4), 2, 2, _random_samples=m.full((2, 1, 3), .5))
m.nn.functional.fractional_max_pool2d(m.arange(32.).reshape(2, 1, 4, 4), 2, 2, _random_samples=m.full((1, 1, 2), .5))
m.logcumsumexp(m.tensor([1 + 1j, 2 - 1j, 1000 + 2j, 0.5j]), 0)
m.logcumsumexp(m.tensor([-inf + 0j, 1 + 1j, inf + 1j, 3]), 0)
m.logcumsumexp(m.tensor([-inf + 0j, -inf + 2j]), 0)
m.view_as_real(grads(lambda x: m.logcumsumexp(x, 0), m.tensor([1 + 1j, 2 - 1j, 0.5j]))[0] * 1)
m.view_as_real(grads(lambda x: m.logcumsumexp(x, 0), m.tensor([1 + 1j, 200 - 1j, 3j], dtype=m.complex128))[0] * 1)
m.view_as_real(grads(lambda x: m.softmax(x, 0, dtype=m.float64), m.tensor([1 + 1j, 2, 3j]))[0])
m.view_as_real(grads(lambda x: m.log_softmax(x, 0, dtype=m.float32), m.tensor([1 + 1j, 2, 3j]))[0])
m.asarray(bytearray(range(8)), dtype=m.int32)
m.asarray(bytearray(4))
m.asarray(memoryview(bytearray(range(4))), dtype=m.uint8)
m.asarray([1, 2], copy=False)
m.asarray(m.ones(2), dtype=m.float64, copy=False)
m.asarray(m.ones(2), copy=False)
m.asarray(m.ones(2), device='meta', copy=False)
m.asarray(m.utils.dlpack.to_dlpack(m.arange(3.)))
m.ones(2, device='meta').untyped_storage()[0]
m.tensordot(m.ones(2, 3), m.ones(3, 2), 1)
m.tensordot(m.ones(2, 3), m.ones(2, 3))
m.tensordot(m.ones(2, 3), m.ones(2, 3), 0)
m.tensordot(m.ones(2, 3), m.ones(2, 3), -1)
m.tensordot(m.ones(2, 3), m.ones(2, 3), 3)
m.tensordot(m.ones(2, 3), m.ones(2, 3), [[0], [1]])
m.tensordot(m.ones(2, 3), m.ones(2, 3), [[0, 0], [0, 1]])
m.tensordot(m.ones(2, 1), m.arange(6.).reshape(2, 3), [[1], [1]])
m.tensordot(m.ones(2, 0), m.ones(0, 3), 1)
m.block_diag(m.ones(2), m.tensor(3.), m.ones(2, 1, dtype=m.int64))
m.block_diag(m.ones(2, 2, 2))
m.cartesian_prod(m.tensor([1, 2]), m.tensor([3, 4]))
m.cartesian_prod(m.ones(2, 2))
m.gradient(m.tensor([1., 2, 4]))
m.gradient(m.tensor([1, 2, 4]))
m.gradient(m.ones(3, 4), dim=(0, 0))
m.gradient(m.ones(3, 4).cumsum(1), spacing=[m.tensor([0., 1, 4])], dim=0)
m.gradient(m.ones(1))
m.gradient(m.ones(3, 4), spacing=[1.])
m.gradient(m.ones(3, 4) * 1j)
m.unravel_index(m.tensor([7]), 12)
m.unravel_index(m.tensor([7.]), 12)
m.unravel_index(m.tensor([7]), (-1,))
m.unravel_index(m.tensor([True]), 12)
m.einsum(m.ones(2, 3), [0, 1], m.ones(3, 2), [1, 2], [0, 2])
m.einsum(m.ones(2, 3), [0, 1], m.ones(3, 2), [1, 2])
m.einsum(m.ones(2, 3), [..., 1], [...])
m.einsum(m.ones(2, 3), [0, 52])
m.einsum('ij->j', [m.ones(2, 3)])
m.lu(m.zeros(2, 2))
m.lu(m.tensor([[2., 1], [1, 3]]), get_infos=True)
m.empty_permuted((2, 3, 4), (0, 2, 1)).stride()
m.empty_permuted((2, 0, 3), (2, 0, 1)).stride()
m.empty_permuted((2, 3), (0, 0))
m.empty_permuted((2, 3), (0, -1))
m.empty_permuted((2, 3), (0,))
m.meshgrid(m.ones(2), m.ones(3), indexing='xy')
m.meshgrid(m.ones(2), indexing='zz')
m.broadcast_tensors(m.ones(2, 1), m.ones(3))
m.atleast_1d(m.tensor(1.))
m.atleast_2d(m.tensor(1.), m.ones(2))
m.atleast_3d((m.tensor(1.), m.ones(2)))
m.split(tensor=m.arange(5), split_size_or_sections=3)
m.split(m.arange(5), [2, 3])
m.split(m.arange(5), [2, 2])
m.arange(5).split(split_size=2)
m.arange(5).split([1, 4])
m.norm(m.ones(2, 2), 'nuc')
m.ones(2, 2).norm(1, dim=0)
m.norm(m.ones(2), out=m.empty(1))
m.tensor([0, 1]).nonzero(as_tuple=True)
m.nonzero(m.tensor(1), as_tuple=True)
m.is_nonzero(m.ones(2))
m.is_same_size(m.ones(2), m.ones(2))
m.pca_lowrank(m.ones(3, 4), q=9)
m.pca_lowrank(m.arange(12.).reshape(3, 4), q=2)[1]
m.histogramdd(m.zeros(0, 2), [2, 3])
m.histogramdd(m.zeros(3, 0), [])
m.histogramdd(m.zeros(0, 2), [2, 3], density=True)
m.histogramdd(m.tensor([[0., 1], [1, 2]]), 2, weight=m.tensor([1., 2]))
m.histogramdd(m.zeros(2, 2, dtype=m.int64), [2, 3])
m.histogramdd(m.ones(2, 2), [2])
m.histogramdd(m.ones(2, 2), [2, 2], range=[0., 1.])
m.histogramdd(m.ones(2, 2), [m.tensor([0., 1, 2]), m.tensor([0., 2])])
m.histogram(m.ones(2), m.tensor([0.]))
F.embedding(m.tensor([1]), m.ones(2, 3), padding_idx=5)
F.embedding(m.tensor([1]), m.ones(2, 3), padding_idx=-1)
F.embedding(m.tensor([1]), m.ones(2, 3), max_norm=1.)
F.batch_norm(m.ones(1, 3), None, None, training=True)
F.instance_norm(m.ones(1, 3, 1))
F.instance_norm(m.ones(3))
F.group_norm(m.ones(1, 2), 2)
F.group_norm(m.ones(3), 2)
F.group_norm(m.zeros(0, 4, 2), 2)
F.group_norm(m.zeros(2, 4, 0), 2)
F.interpolate(m.ones(1, 1, 4, 4), size=[2])
F.interpolate(m.ones(1, 1, 4, 4), scale_factor=[2.])
F.interpolate(m.ones(1, 1, 4, 4), size=2)
F.interpolate(m.ones(1, 1, 4, 4), scale_factor=0.5)
F.interpolate(m.ones(1, 1, 4), size=(2,))
m.inner(m.zeros(2, 0), m.zeros(3, 0))
m.inner(m.zeros(0, 0), m.zeros(2, 0))
m.inner(m.ones(3), m.ones(2, 3))
m.matmul(m.zeros(5, 3, 0), m.zeros(0, 2))
m.matmul(m.zeros(2, 0, 3), m.zeros(3))
m.linspace(-0.9, 7.5, 8, dtype=m.int64)
m.linspace(0.5, 7.5, 8, dtype=m.int16)
m.linspace(0, 1, 3, dtype=m.bool)
m.logspace(0, 1, 3, dtype=m.bool)
m.view_as_real(m.linspace(1 + 1j, 3, 4))
m.linalg.vander(m.tensor([True, False]))
m.addr(m.ones(2, 2, dtype=m.int64), m.tensor([1, 2]), m.tensor([3, 4]), beta=2.5)
m.addr(m.ones(2, 2, dtype=m.int64), m.tensor([1, 2]), m.tensor([3, 4]), alpha=2.5)
m.addr(m.ones(2, 2, dtype=m.int64), m.tensor([1, 2]), m.tensor([3, 4]), beta=2, alpha=3)
m.tensor([inf, -inf, nan, 1e20, -1e20, 3e9, -3e9, 300., -1.]).to(m.int64)
m.tensor([inf, -inf, nan, 1e20, -1e20, 3e9, -3e9, 300., -1.]).to(m.int32)
m.tensor([inf, -inf, nan, 1e20, -1e20, 3e9, 300., -1.]).to(m.int16)
m.tensor([inf, -inf, nan, 1e20, -1e20, 300., -1.]).to(m.int8)
m.tensor([inf, -inf, nan, 1e20, -1e20, 3e9, 300., -1.]).to(m.uint8)
m.tensor([inf, -inf, nan, 1e20, -1e20, 3e9, 300., -1.], dtype=m.float64).to(m.int32)
m.tensor([inf, -inf, nan, 1e4]).half().to(m.int64)
m.tensor([inf, -inf, nan, 1e4]).bfloat16().to(m.int32)
m.tensor([inf] * 40).to(m.int32)
m.cdist(m.tensor([[nan, 1.]]), m.tensor([[1., 1.], [nan, 2]]), p=0)
F.pdist(m.tensor([[nan, 1.], [1, 1], [2, nan]]), p=0)
m.ones(3, dtype=m.complex64).index_reduce(0, m.tensor([0]), m.ones(1, dtype=m.complex64), 'prod')
m.ones(3, dtype=m.bool).index_reduce(0, m.tensor([0]), m.ones(1, dtype=m.bool), 'prod')
m.ones(3, dtype=m.complex64).scatter_reduce(0, m.tensor([0]), m.ones(1, dtype=m.complex64), 'amax')
grads(lambda x: m.svd_lowrank(x, q=2)[1], m.tensor([[1., 2, 3], [3, 4, 1], [2, 0, 1], [1, 1, 1]]))
grads(lambda x: m.linalg.svd(x)[0].abs() @ m.ones(2, 1), m.tensor([[1., 2, 3], [3, 4, 1]]))
grads(lambda x: m.linalg.svd(x)[1] * m.linalg.svd(x)[0][:, :1].abs().sum(), m.tensor([[1., 2], [3, 4], [5, 6]]))
grads(lambda x: m.svd(x, some=False)[1], m.tensor([[1., 2, 3], [3, 4, 1]]))
grads(lambda x: (x * 1).logit_(0.1), m.tensor([0.2, 0.5]))
grads(lambda x: (x * 1).renorm_(2, 0, 1.), m.tensor([[1., 2], [0.1, 0.2]]))
m.view_as_real(grads(lambda x: (x * 1).renorm_(2, 0, 1.), m.tensor([[0j, 0], [1j, 2]]))[0])
grads(lambda x, y: (x * 1).float_power_(y), m.tensor([1., 2], dtype=m.float64), m.tensor([1., 2], dtype=m.float64))
grads(lambda x, y, z: (x * 1).addr_(y, z), m.ones(2, 2), m.ones(2), m.ones(2))
"""


def grads(function, *inputs):
    """The gradients of the sum of squares of what the function gives."""
    leaves = [x.requires_grad_() for x in inputs]
    out = function(*leaves)
    (out * out.conj()).real.sum().backward() if out.is_complex() else (out * out).sum().backward()
    return [x.grad for x in leaves]


def warned(module, function):
    """Whether the call warns, and the shape of what it gives."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        shape = function().shape
    return [bool(said), list(shape)]


def run(text, module):
    return eval(text, globals() | {"m": module, "np": np, "F": module.nn.functional})


@pytest.mark.parametrize("text", CALLS.strip().splitlines())
def test_call(text):
    ours, theirs = (outcome(lambda m: run(text, m), m)[0] for m in (rushlight, torch))
    if isinstance(theirs, list) and theirs and str(theirs[0]).endswith("Error"):
        assert ours[0] == theirs[0], f"{ours} instead of {theirs}"
    else:
        assert_alike(ours, theirs)
