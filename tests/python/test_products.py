"""Products with rules of their own: groups, scaled 8-bit floats, a layer with its loss."""

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F


def test_groups_of_rows_columns_and_sums():
    torch.manual_seed(0)
    ends = torch.tensor([3, 3, 8], dtype=torch.int32)
    a, b = torch.randn(8, 4), torch.randn(3, 4, 5)
    a.requires_grad_()
    out = F.grouped_mm(a, b, offs=ends)
    assert torch.allclose(out, torch.cat([a[:3] @ b[0], a[3:] @ b[2]]))
    out.sum().backward()
    assert a.grad.shape == a.shape
    assert torch._grouped_mm(a, b, offs=torch.tensor([1, 2, 5], dtype=torch.int32))[5:].eq(0).all()
    sums = F.grouped_mm(a.t(), torch.ones(8, 2), offs=ends)
    assert sums.shape == (3, 4, 2) and sums[1].eq(0).all()
    columns = F.grouped_mm(b.mT, torch.ones(4, 8), offs=ends)
    assert columns.shape == (5, 8)
    batch = F.grouped_mm(b, b.mT)
    assert torch.allclose(batch, torch.bmm(b, b.mT))
    for arguments, options in (
        ((a, b), {}),
        ((a, b), {"offs": ends.long()}),
        ((a, b), {"offs": ends, "bias": torch.ones(5)}),
        ((a, b.double()), {"offs": ends}),
        ((a, b), {"offs": ends, "out_dtype": torch.double}),
    ):
        with pytest.raises(RuntimeError):
            F.grouped_mm(*arguments, **options)


def test_scaled_products_of_8_bit_floats():
    torch.manual_seed(0)
    a, b = (torch.randn(4, 6).to(torch.float8_e4m3fn) for _ in range(2))
    two, whole, rows = torch.tensor(2.0), F.ScalingType.TensorWise, F.ScalingType.RowWise
    plain = a.float() @ b.float().t()
    out = F.scaled_mm(a, b.t(), two, whole, two, whole, output_dtype=torch.float32)
    assert torch.allclose(out, 4 * plain)
    left, right = torch.rand(4, 1), torch.rand(1, 4)
    out = F.scaled_mm(a, b.t(), [left], [rows], right, rows, bias=torch.ones(4))
    assert out.dtype == torch.bfloat16
    assert torch.allclose(out.float(), plain * left * right + 1, rtol=1e-2, atol=1e-2)
    assert torch._scaled_mm(a, b.t(), two, two).dtype == a.dtype
    assert torch._scaled_mm(a, b.t(), left, right, out_dtype=torch.half).dtype == torch.half
    with pytest.raises(ValueError, match="Float8"):
        F.scaled_mm(plain, b.t(), two, whole, two, whole)
    with pytest.raises(NotImplementedError, match="blocks"):
        F.scaled_mm(a, b.t(), two, F.ScalingType.BlockWise1x128, two, whole)


def test_a_layer_with_its_loss():
    torch.manual_seed(0)
    loss = nn.LinearCrossEntropyLoss(4, 5, bias=True, label_smoothing=0.1)
    x, target = torch.randn(3, 4), torch.tensor([0, 4, -100])
    wanted = F.cross_entropy(loss.linear(x), target, label_smoothing=0.1)
    assert torch.equal(loss(x, target), wanted)
    assert list(loss.state_dict()) == ["linear.weight", "linear.bias"]
    assert "out_features=(), bias=True" in repr(loss)
    several = nn.LinearCrossEntropyLoss(4, 5, out_features=(2, 3), weight=torch.rand(5))
    places = torch.randint(5, (3, 2, 3))
    wanted = F.cross_entropy(several.linear(x).reshape(3, 5, 2, 3), places, several.weight)
    assert torch.equal(several(x, places), wanted)
    with pytest.raises(RuntimeError, match="dimensionality 1 or 2"):
        loss(torch.randn(2, 3, 4), target)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "rows, terms, columns", [(17, 70, 600), (50, 777, 1500), (128, 300, 129), (33, 2100, 515)]
)
def test_products_with_a_transposed_factor(dtype, rows, terms, columns):
    """Rows of a large weight lie along the sums: the product is computed as its transpose."""
    torch.manual_seed(0)
    wide = torch.randn(rows, terms, dtype=torch.float64)
    weight = torch.randn(columns, terms, dtype=torch.float64)
    bias, added = (
        torch.randn(columns, dtype=torch.float64),
        torch.randn(rows, columns, dtype=torch.float64),
    )
    x, w, b, c = (t.to(dtype) for t in (wide, weight, bias, added))
    product = wide @ weight.t().contiguous()
    close = (
        {"rtol": 1e-4, "atol": 1e-3} if dtype == torch.float32 else {"rtol": 1e-10, "atol": 1e-10}
    )
    for found, expected in (
        (F.linear(x, w), product),
        (F.linear(x, w, b), product + bias),
        (torch.addmm(c, x, w.t(), beta=0.5, alpha=-2), 0.5 * added - 2 * product),
        (torch.addmm(b, x, w.t()), product + bias),
        (torch.mm(w, x.t()), product.t()),
        (torch.mm(x, w.t(), out=torch.empty(columns, rows, dtype=dtype).t()), product),
    ):
        assert torch.allclose(found.double(), expected, **close)
    threads, before = torch.get_num_threads(), F.linear(x, w, b)
    for n in (1, 2, 3, 5):
        torch.set_num_threads(n)
        assert torch.equal(F.linear(x, w, b), before)
    torch.set_num_threads(threads)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", [(3, 0), (2, 3, 0), (0,), (0, 0), (0, 2, 0)])
def test_linear_layers_without_features(shape, bias):
    x = torch.ones(shape, requires_grad=True)
    weight = torch.ones(4, 0, requires_grad=True)
    b = torch.ones(4, requires_grad=True) if bias else None
    out = F.linear(x, weight, b)
    assert out.shape == (*shape[:-1], 4) and bool((out == int(bias)).all())
    inputs = (x, weight, b) if bias else (x, weight)
    grads = torch.autograd.grad(out.sum(), inputs, create_graph=True)
    assert [g.shape for g in grads] == [t.shape for t in inputs]
    if bias:
        assert grads[2].tolist() == [out.numel() // 4] * 4
    second = torch.autograd.grad(sum(g.sum() for g in grads), inputs, allow_unused=True)
    assert all(g is None or not g.any() for g in second)


def test_layers_whose_inner_size_is_zero_train():
    loss = nn.AdaptiveLogSoftmaxWithLoss(4, 6, [2, 4])
    x = torch.randn(5, 4, requires_grad=True)
    loss(x, torch.tensor([0, 1, 2, 4, 5])).loss.backward()
    assert x.grad.any() and all(p.grad is not None for p in loss.parameters())
    table = nn.Embedding(3, 0, sparse=True)
    table(torch.tensor([0, 2])).sum().backward()
    assert table.weight.grad.shape == (3, 0)


@pytest.mark.parametrize("shape", [(2, 3), (2, 2, 3), (3,)])
@pytest.mark.parametrize("bias", [False, True])
def test_a_layer_keeps_its_weight_for_the_input_alone(shape, bias):
    x = torch.randn(shape)
    weight = torch.randn(4, 3, requires_grad=True)
    b = torch.zeros(4, requires_grad=True) if bias else None
    out = F.linear(x, weight, b)
    with torch.no_grad():
        weight.mul_(2)  # a step between forward and backward
    out.sum().backward()
    expected = x.reshape(-1, 3).sum(0).expand(4, 3)
    assert torch.allclose(weight.grad, expected)
    vector = torch.randn(3, requires_grad=True)
    out = F.linear(x, vector)
    with torch.no_grad():
        vector.mul_(2)
    out.sum().backward()
    assert torch.allclose(vector.grad, x.reshape(-1, 3).sum(0))
