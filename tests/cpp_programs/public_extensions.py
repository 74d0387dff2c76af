"""What public extensions compute, once their own setups have built them.

Each function is named for a row of tests/python/test_public_extensions.py, which runs it under the
alias in the folder that the row says.
"""

import sys

import torch
from torch.nn import functional


def close(a, b):
    a, b = torch.as_tensor(a).detach().double(), torch.as_tensor(b).detach().double()
    assert torch.allclose(a, b, atol=1e-5), (a, b)


def spline_conv():
    import torch_spline_conv

    pseudo = torch.tensor([[0.0, 0.5], [0.25, 1.0], [0.9, 0.1]])
    open_spline = torch.tensor([1, 1], dtype=torch.uint8)
    basis, index = torch_spline_conv.spline_basis(pseudo, torch.tensor([3, 3]), open_spline, 1)
    close(basis.sum(1), torch.ones(3))
    assert index.shape == (3, 4)
    x = torch.ones(2, 1, requires_grad=True)
    quarters, first = torch.ones(2, 4) / 4, torch.zeros(2, 4, dtype=torch.long)
    y = torch_spline_conv.spline_weighting(x, torch.ones(9, 1, 2), quarters, first)
    close(y, torch.ones(2, 2))
    y.sum().backward()
    close(x.grad, torch.full((2, 1), 2.0))


def correlation():
    sys.path.insert(0, "Correlation_Module")
    from spatial_correlation_sampler import spatial_correlation_sample

    a, b = torch.rand(1, 4, 5, 5, requires_grad=True), torch.rand(1, 4, 5, 5)
    y = spatial_correlation_sample(a, b, kernel_size=1, patch_size=3)
    close(y[0, 1, 1], (a * b).sum(1)[0])
    close(y[0, 2, 2, :4, :4], (a[0, :, :4, :4] * b[0, :, 1:, 1:]).sum(0))
    y[0, 1, 1].sum().backward()
    close(a.grad, b)


def sort():
    import torchsort

    x = torch.tensor([[8.0, 0.0, 5.0, 3.0, 2.0, 1.0, 6.0, 7.0, 9.0]], requires_grad=True)
    ranks = torchsort.soft_rank(x, regularization_strength=0.1)
    close(ranks, [[8.0, 1.0, 5.0, 4.0, 3.0, 2.0, 6.0, 7.0, 9.0]])
    y = torchsort.soft_sort(x, regularization_strength=1e-3)
    close(y, x.sort().values)
    y[0, 0].backward()
    close(x.grad[0, 1], 1.0)


def lpc():
    import torchlpc

    assert torchlpc.EXTENSION_LOADED
    x, a = torch.rand(2, 6).double(), torch.rand(2, 6, 2).double() / 2
    y = torch.ops.torchlpc.lpc(x, a, torch.zeros(2, 2, dtype=torch.double))
    want = torch.zeros(2, 8, dtype=torch.double)
    for t in range(6):
        want[:, t + 2] = x[:, t] - a[:, t, 0] * want[:, t + 1] - a[:, t, 1] * want[:, t]
    close(y[:, -6:], want[:, 2:])


def abn():
    import inplace_abn

    module, x = inplace_abn.InPlaceABN(3), torch.rand(4, 3, 2, 2)
    want = functional.leaky_relu(functional.batch_norm(x, None, None, training=True), 0.01)
    y = module(x.clone().requires_grad_().clone())
    close(y, want)
    y.sum().backward()
    assert module.bias.grad is not None


def linear():
    import linear_cpu

    x, w, b = torch.rand(3, 4), torch.rand(2, 4), torch.rand(2)
    close(linear_cpu.forward(x, w, b, True)[0], x @ w.T + b)


def muladd():
    import extension_cpp

    a, b = torch.rand(5, requires_grad=True), torch.rand(5)
    y = extension_cpp.ops.mymuladd(a, b, 2.0)
    close(y, a * b + 2)
    y.sum().backward()
    close(a.grad, b)
    torch.library.opcheck(torch.ops.extension_cpp.mymuladd.default, (a.detach(), b, 1.0))


def causal():
    from fast_transformers.causal_product import causal_dot_product

    q, k, v = (torch.rand(1, 2, 6, 4, requires_grad=True) for _ in range(3))
    y = causal_dot_product(q, k, v)
    want = (q @ k.transpose(-1, -2)).tril() @ v
    close(y, want)
    close(*(torch.autograd.grad(out.sum(), q)[0] for out in (y, want)))


def points():
    import torch_points_kernels

    known, asked = torch.rand(1, 20, 3), torch.rand(1, 5, 3)
    index, squares = torch_points_kernels.knn(known, asked, 3)
    want = torch.cdist(asked.double(), known.double()).pow(2).topk(3, largest=False)
    close(squares, want.values)
    assert torch.equal(index, want.indices)


def cluster():
    import torch_cluster

    x, y = torch.rand(12, 3), torch.rand(4, 3)
    _, col = torch_cluster.knn(x, y, 2)
    want = torch.cdist(y, x).topk(2, largest=False).indices
    assert torch.equal(col.view(4, 2).sort().values, want.sort().values)
    assert len(torch_cluster.fps(x, ratio=0.5)) == 6


def scatter():
    import torch_scatter

    src = torch.tensor([1.0, 5.0, 2.0, 4.0], requires_grad=True)
    index = torch.tensor([0, 1, 0, 1])
    close(torch_scatter.scatter(src, index, reduce="sum"), [3.0, 9.0])
    out, places = torch_scatter.scatter_max(src, index)
    close(out, [2.0, 5.0])
    assert places.tolist() == [2, 1]
    out.sum().backward()
    close(src.grad, [0.0, 1.0, 1.0, 0.0])
    parts = torch_scatter.segment_csr(src.detach(), torch.tensor([0, 1, 4]), reduce="mean")
    close(parts, [1.0, 11 / 3])


def lltm():
    import lltm_cpp

    x, w, b = torch.rand(2, 3), torch.rand(12, 7), torch.rand(12)
    h, c = torch.rand(2, 4), torch.rand(2, 4)
    out = lltm_cpp.forward(x, w, b, h, c)
    gates = (torch.cat([h, x], 1) @ w.T + b).chunk(3, 1)
    cell = c + functional.elu(gates[2]) * gates[0].sigmoid()
    close(out[1], cell)
    close(out[0], cell.tanh() * gates[1].sigmoid())


def example():
    import _cppexample

    x = torch.arange(5.0)
    close(_cppexample.normalize(x), (x - x.mean()) / x.std())


def align():
    from monotonic_align._cpp_extensions import monotonic_align

    probs = torch.tensor([[[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]]])
    path = monotonic_align.viterbi_monotonic_alignment(probs, True)
    assert path.tolist() == [[[1, 0], [0, 1], [0, 1]]]


if __name__ == "__main__":
    assert "rushlight" in torch.__version__
    sys.path.insert(0, ".")
    globals()[sys.argv[1]]()
    print("right")
